"""The view service: list what can be shown of a case, and cut one slice on demand, with the code of the slices.

A view without zoom through the usual window is, byte for byte, the picture that the slices stage cuts of that slice. (If two slices of
the leading scan cross one thick slice, its picture may be centred by the other of the two, one pixel off.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.plain_pictures import write_grey
from neuralmedbench.imaging.pictures import Floats, square_grid
from neuralmedbench.imaging.scans import (
    Scan,
    SlicePlace,
    brain_path,
    centre_points,
    load_scan,
    nearest_slices,
    rigid_path,
    slice_index,
    transform_points,
    vector,
)
from neuralmedbench.imaging.slices import native_pixel, place_tile, render_slice
from neuralmedbench.imaging.windows import CT_WINDOWS, Window
from neuralmedbench.records.case import CT_SEQUENCES, CaseRecord, Plane, Series, State
from neuralmedbench.records.views import CT_WINDOW_NAMES, MR_WINDOWS, WHOLE, SliceView, ViewPlane, ViewRules, ViewScan

AGAIN = "run list_views and assemble_prompts again"
OPEN_SCANS = 6
"""Scans that are held in memory, about 80 MB each."""


def list_views(case: CaseRecord, source: Path, rules: ViewRules, policy: SlicesConfig) -> list[ViewScan]:
    """List what may be shown of a normalised case.

    Parameters
    ----------
    case : CaseRecord
        The case, the reference first.
    source : Path
        Its folder.
    rules : ViewRules
        Planes and windows that may be shown.
    policy : SlicesConfig
        Display of pictures.

    Returns
    -------
    list of ViewScan
        In the order of the series; none of a quarantined case, and without scans of which no plane or window may be shown.
    """
    if case.state is not State.OK:
        return []
    by_id = {series.series_id: load_scan(series, source) for series in case.series}
    numbers, listed = Counter[str](), []
    for scan in by_id.values():
        sequence = scan.series.sequence
        numbers[sequence.value] += 1
        number = numbers[sequence.value]
        usual = CT_WINDOW_NAMES if sequence in CT_SEQUENCES else MR_WINDOWS
        planes = sorted(map(Plane, rules.planes), key=lambda plane: (plane is not scan.plane, list(Plane).index(plane)))
        listed.append(
            ViewScan(
                benchmark=case.benchmark,
                case_id=case.case_id,
                series_id=scan.series.series_id,
                name=sequence.value if number == 1 else f"{sequence.value} ({number})",
                sequence=sequence.value,
                volume_sha256=scan.series.volume_sha256,
                case_sha256=sha256_of(source / "case.json"),
                windows=tuple(name for name in usual if name in rules.windows),
                planes=tuple(
                    _plane(scan, plane, places_of(scan, by_id[_leader(case.series, plane).series_id], plane), policy) for plane in planes
                ),
                field_of_view_mm=policy.field_of_view_mm,
                sent_px=policy.sent_px,
                side_marker=policy.side_marker,
            )
        )
    return [entry for entry in listed if entry.planes and entry.windows]


def _leader(series: Sequence[Series], plane: Plane) -> Series:
    """Return the series in whose brain the pictures of a plane are centred: the first one of that plane, else the reference."""
    return next((entry for entry in series if (entry.plane or Plane.AXIAL) is plane), series[0])


def places_of(scan: Scan, leader: Scan, plane: Plane) -> list[SlicePlace]:
    """Return all slices of a scan in a plane, in order, centred where the pictures of the leader are."""
    number, whole = len(scan.stack(plane)), len(leader.stack(plane))
    points = transform_points(centre_points(leader, plane, range(whole)), scan.rigid @ np.linalg.inv(leader.rigid))
    first, last = (slice_index(scan, plane, point) for point in (points[0], points[-1]))
    step = (points[-1] - points[0]) / max(whole - 1, 1)
    places = []
    for index in range(number):
        # where the leader's line of centres crosses the slice; a slice of the leader there gives the very centre of the slices stage
        crossing = (index - first) / ((last - first) or 1.0) * (whole - 1)
        same = points[min(max(round(crossing), 0), whole - 1)]
        found = [place for place in nearest_slices(scan, plane, np.array([same, points[0] + crossing * step])) if place.index == index]
        # a line of a single point, or one along the slices, crosses nothing: then the brain of the scan itself is in the middle
        places.append(found[0] if found else nearest_slices(scan, plane, centre_points(scan, plane, [index]))[0])
    return places


def _plane(scan: Scan, plane: Plane, places: list[SlicePlace], policy: SlicesConfig) -> ViewPlane:
    tiles = [
        place_tile(scan, plane, place, field_of_view_mm=policy.field_of_view_mm, top_px=0, left_px=0, side_px=1)
        for place in (places[0], places[-1])
    ]
    (low, high), steps = (np.array(tile.corner_mm) for tile in tiles), max(len(places) - 1, 1)
    in_head = np.flatnonzero(scan.stack(plane).any(axis=(1, 2)))
    return ViewPlane(
        plane=plane.value,
        slices=len(places),
        first_mm=round(places[0].position_mm, 3),
        step_mm=round((places[-1].position_mm - places[0].position_mm) / steps, 5),
        first_in_head=int(in_head[0]) + 1,
        last_in_head=int(in_head[-1]) + 1,
        corner_mm=vector(low, 4),
        right_mm=vector(np.array(tiles[0].right_mm), 4),
        down_mm=vector(np.array(tiles[0].down_mm), 4),
        next_mm=vector((high - low) / steps, 4),
        resampled=scan.series.plane is not None and plane is not scan.series.plane,
    )


@dataclass(frozen=True)
class _OpenScan:
    """A scan in memory, its voxels, and its slices by plane."""

    scan: Scan
    voxels: Floats
    places: dict[Plane, list[SlicePlace]]


class ViewService:
    """Cuts the views that models ask for, and writes each to its file.

    Parameters
    ----------
    allow : callable
        Raises an error if a view may not be shown.
    root : Path
        Folder to which paths are relative.
    """

    def __init__(self, allow: Callable[[SliceView], None], root: Path = Path()) -> None:
        self._allow, self._root = allow, root
        self._open: dict[tuple[str, str], _OpenScan] = {}
        self._digests: dict[str, str] = {}

    def __call__(self, view: SliceView) -> str:
        """Cut a view, and return the digest of its picture, which lies at `view.path`.

        Raises
        ------
        DeidentificationError
            If it may not be shown.
        DataError
            If the normalised case is another one than that which the view was listed from.
        """
        if view.path not in self._digests:
            self._allow(view)
            target = self._root / view.path
            write_grey(target, self.grey(view))
            self._digests[view.path] = sha256_of(target)
        return self._digests[view.path]

    def grey(self, view: SliceView) -> npt.NDArray[np.uint8]:
        """Cut a view: grey values, shape (n, n), dtype uint8."""
        opened, plane = self._opened(view.scan), Plane(view.plane)
        scan, place = opened.scan, opened.places[plane][view.number - 1]
        rows, columns = native_pixel(scan, plane)
        whole = square_grid(place.centre, (rows, columns), view.scan.field_of_view_mm)
        # not validated: a zoomed field of view is smaller than one that may be set
        policy = SlicesConfig.model_construct(
            field_of_view_mm=view.scan.field_of_view_mm / view.zoom,
            side_marker=view.scan.side_marker,
        )
        side_px = view.scan.sent_px
        if view.zoom > 1:  # as large as without zoom, about the point that is asked for
            side_mm = whole.number * whole.size_mm
            right, down = ((part / WHOLE - 0.5) * side_mm for part in view.at)
            place = replace(place, centre=(place.centre[0] + down / rows, place.centre[1] + right / columns))
            side_px = side_px or whole.number
        return render_slice(scan, opened.voxels, plane, place, policy, window=view_window(scan, view.window), side_px=side_px).grey

    def _opened(self, listed: ViewScan) -> _OpenScan:
        key = listed.case_sha256, listed.series_id
        if key in self._open:
            return self._open[key]
        import SimpleITK as sitk

        source = self._root / "data" / "normalised" / listed.benchmark / f"sub-{listed.case_id}"
        case = read_case(source / "case.json")
        series = next((entry for entry in case.series if entry.series_id == listed.series_id), None)
        if sha256_of(source / "case.json") != listed.case_sha256 or series is None or series.volume_sha256 != listed.volume_sha256:
            message = f"{listed.benchmark}, case {listed.case_id}: its normalised scans are no longer those of the prompts; {AGAIN}"
            raise DataError(message)
        leaders = {Plane(entry.plane): _leader(case.series, Plane(entry.plane)) for entry in listed.planes}
        scans = {entry.series_id: _load(case, source, entry) for entry in (series, *leaders.values())}
        scan = scans[series.series_id]
        places = {plane: places_of(scan, scans[leader.series_id], plane) for plane, leader in leaders.items()}
        while len(self._open) >= OPEN_SCANS:
            self._open.pop(next(iter(self._open)))
        self._open[key] = _OpenScan(scan, sitk.GetArrayViewFromImage(scan.image), places)
        return self._open[key]


def _load(case: CaseRecord, source: Path, series: Series) -> Scan:
    """Read a scan whose files are those of its record."""
    volume = source / series.path
    for path in (volume, brain_path(volume), rigid_path(volume)):
        name = path.relative_to(source).as_posix()
        if not path.is_file() or sha256_of(path) != case.files.get(name):
            message = f"{case.benchmark}, case {case.case_id}: {name} is not the file of its record; run normalise_case again"
            raise DataError(message)
    return load_scan(series, source)


def view_window(scan: Scan, name: str) -> Window:
    """Return the ends of a window by its name."""
    if scan.series.sequence in CT_SEQUENCES:
        return scan.window if name == "brain" else CT_WINDOWS[name]
    (low, high), (dark, white) = scan.window, MR_WINDOWS[name]
    return low + dark * (high - low), low + white * (high - low)
