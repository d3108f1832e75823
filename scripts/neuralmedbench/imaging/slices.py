"""Cut the pictures of a case: choose slices, find the same anatomy in every sequence, draw each through its window.

A picture shows a native slice: nothing is interpolated between slices, unless a policy asks for another plane than that of a thick-slice
scan, and then the picture is marked as resampled. The rigid transforms of the normalise stage locate the same anatomy in every sequence;
the brain is in the middle of every picture. Each picture keeps the geometry of its slice: where its pixels lie in the patient.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.known_lesions import KnownLesion
from neuralmedbench.files.plain_pictures import write_grey
from neuralmedbench.imaging.choose import (
    content_slices,
    lesion_slices,
    shows_tissue,
    slice_scores,
    uniform_slices,
    usable_slices,
)
from neuralmedbench.imaging.pictures import (
    GAP_PX,
    SLICE_AXIS,
    Floats,
    cut_plane,
    letterbox,
    letterbox_corner,
    montage,
    montage_columns,
    montage_corners,
    resize,
    square,
    square_grid,
    to_grey,
)
from neuralmedbench.imaging.scans import (
    Points,
    Scan,
    SlicePlace,
    centre_points,
    load_scan,
    nearest_slices,
    slice_index,
    transform_points,
    vector,
)
from neuralmedbench.imaging.side_letters import mark_sides
from neuralmedbench.imaging.windows import CT_WINDOWS, Window
from neuralmedbench.records.case import CT_SEQUENCES, CaseRecord, Plane, Slice, Tile
from neuralmedbench.runtime.atomic_write import atomic_folder

Grey = npt.NDArray[np.uint8]
MIN_TILE_PX = 8
NOT_SHOWN = "none of its slices at the chosen positions shows tissue"


def cut_slices(
    case: CaseRecord, source: Path, pictures: Path, policy: SlicesConfig, lesion: KnownLesion | None = None, *, at_lesion: bool = False
) -> tuple[Slice, ...]:
    """Cut the pictures of a case.

    Parameters
    ----------
    case : CaseRecord
        The normalised case, the reference first.
    source : Path
        Its folder.
    pictures : Path
        Folder of the PNG files; it is replaced. Paths in the result are relative to its parent.
    policy : SlicesConfig
        Choice and display of slices.
    lesion : KnownLesion or None
        For the policy `lesion` and `at_lesion`. Under the policy a case without a lesion gets the slices of `uniform`, marked as oracle too,
        because the absence of a lesion is part of the answer.
    at_lesion : bool
        True to cut oracle slices too, after the others, in the same planes; a case without a lesion has none.

    Returns
    -------
    tuple of Slice
        In the order of the series; within a series from feet to head (right to left, front to back). Oracle slices are marked.

    Raises
    ------
    DataError
        If a series shows too little brain.

    Notes
    -----
    All series in one plane are cut at the positions of the first of them. A series that does not reach a position, or whose picture there
    would be black, has no picture there; positions that fall on the same slice give one picture. A slab in another plane than the reference's may give fewer slices.
    """
    import SimpleITK as sitk

    # names of oracle slices begin with a word of their own, so that the other pictures are called the same with and without them
    choices = {"": policy} | ({"oracle-": policy.model_copy(update={"policy": "lesion"})} if at_lesion and lesion else {})
    leaders: dict[tuple[Plane, str], tuple[Points, Points]] = {}  # per plane: rigid transform of its first series, and its points there
    slices: dict[str, Slice] = {}
    with atomic_folder(pictures) as folder:
        for series in case.series:
            scan = load_scan(series, source)
            voxels = sitk.GetArrayViewFromImage(scan.image)
            planes = tuple(Plane) if policy.policy == "three_plane" else (scan.plane,)
            for (prefix, chosen), plane in product(choices.items(), planes):
                if (plane, prefix) not in leaders:
                    indices = _indices(case, source, scan, plane, chosen, lesion=lesion)
                    if not indices:  # nothing of it can be shown: the next series leads
                        continue
                    leaders[plane, prefix] = scan.rigid, centre_points(scan, plane, indices)
                rigid, points = leaders[plane, prefix]
                # the points of the leader, in the space of this series
                positions = nearest_slices(scan, plane, transform_points(points, scan.rigid @ np.linalg.inv(rigid)))
                positions = [place for place in positions if _is_visible(scan, voxels, plane, place, policy)]
                groups = [[place] for place in positions] if policy.layout == "single" else [positions] * bool(positions)
                for (name, window), group in product(_windows(scan, policy), groups):
                    grey, rendered = draw(scan, voxels, plane, group, policy, window=window)
                    image_id = _image_id(scan, plane, group, policy, taken=slices, window=name, prefix=prefix)
                    write_grey(folder / f"{image_id}.png", grey)
                    slices[image_id] = replace(
                        describe(scan, plane, group, (grey, rendered), policy),
                        image_id=image_id,
                        path=f"{pictures.name}/{image_id}.png",
                        sha256=sha256_of(folder / f"{image_id}.png"),
                        window=window,
                        window_name=name,
                        oracle=chosen.policy == "lesion",
                    )
    return tuple(slices.values())


def with_slices(case: CaseRecord, slices: tuple[Slice, ...]) -> CaseRecord:
    """Return a case with its slices, and without the series that none of them shows, which are set aside."""
    shown = {entry.volume_sha256 for entry in slices}
    series = tuple(entry for entry in case.series if entry.volume_sha256 in shown)
    excluded = {entry.series_id: f"{entry.sequence.value}: {NOT_SHOWN}" for entry in case.series if entry not in series}
    return replace(case, series=series, slices=slices, set_aside=case.set_aside | excluded)


def describe(scan: Scan, plane: Plane, group: list[SlicePlace], drawn: tuple[Grey, RenderedSlice], policy: SlicesConfig) -> Slice:
    """Return the record of a picture; the caller adds its name, file and window."""
    grey, rendered = drawn
    middle = group[(len(group) - 1) // 2]  # of a single picture, its only slice
    rows, columns = native_pixel(scan, plane)
    series = scan.series
    side, mm = rendered.grey.shape[0], policy.field_of_view_mm
    tiles = (
        place_tile(scan, plane, place, field_of_view_mm=mm, top_px=top, left_px=left, side_px=side)
        for place, (top, left) in zip(group, rendered.corners, strict=True)
    )
    return Slice(
        image_id="",
        path="",
        sha256="",
        pixels_sha256=hashlib.sha256(grey.tobytes()).hexdigest(),
        volume_sha256=series.volume_sha256,
        sequence=series.sequence,
        plane=plane,
        index=middle.index,
        position_mm=round(middle.position_mm, 2),
        tiles=tuple(tiles),
        native_mm_per_px=(round(rows, 5), round(columns, 5)),
        mm_per_px=round(rendered.mm_per_px, 5),
        window=scan.window,
        window_name="",
        resampled=series.plane is not None and plane is not series.plane,
        side_marked=rendered.marked,
        size_px=(grey.shape[1], grey.shape[0]),
    )


def _windows(scan: Scan, policy: SlicesConfig) -> list[tuple[str, Window]]:
    """List the windows of a scan by name: those of the policy for CT, its one window otherwise."""
    if scan.series.sequence in CT_SEQUENCES:
        return [(name, scan.window if name == "brain" else CT_WINDOWS[name]) for name in policy.ct_windows]
    return [("shared" if "shared_window" in scan.series.flags else "own", scan.window)]


def _indices(case: CaseRecord, source: Path, scan: Scan, plane: Plane, policy: SlicesConfig, *, lesion: KnownLesion | None) -> list[int]:
    """Choose the slices of the first scan of a plane."""
    brain = _visible_brain(scan, plane, policy)
    is_reference = scan.series.series_id == case.series[0].series_id
    count = policy.per_sequence if is_reference else min(policy.per_sequence, len(usable_slices(brain)))
    if not count:
        return []
    if policy.policy == "content":
        return content_slices(brain, _scores(case, source, scan, plane), count)
    if policy.policy == "lesion" and lesion is not None:
        centre = transform_points(np.array([lesion.position_mm]), scan.rigid)[0]
        spacing = scan.image.GetSpacing()[2 - SLICE_AXIS[plane]]
        across = lesion.extent_mm["xyz".index(plane.axis)] if lesion.extent_mm else lesion.size_mm
        return lesion_slices(slice_index(scan, plane, centre), across / 2 / spacing, policy.per_sequence, len(brain))
    return uniform_slices(brain, count)


def _visible_brain(scan: Scan, plane: Plane, policy: SlicesConfig) -> npt.NDArray[np.bool_]:
    """Return the brain mask with the slices of a plane along axis 0, without those whose pictures show nothing, whatever the mask says."""
    import SimpleITK as sitk

    brain = scan.stack(plane).copy()
    voxels = sitk.GetArrayViewFromImage(scan.image)
    inside = np.flatnonzero(brain.any(axis=(1, 2)))
    for place in nearest_slices(scan, plane, centre_points(scan, plane, inside)):
        if not _is_visible(scan, voxels, plane, place, policy):
            brain[place.index] = False
    return brain


def _is_visible(scan: Scan, voxels: Floats, plane: Plane, place: SlicePlace, policy: SlicesConfig) -> bool:
    """Return True if the picture of a slice shows tissue through the scan's own window."""
    plain = policy.model_copy(update={"side_marker": False})
    return shows_tissue(render_slice(scan, voxels, plane, place, plain, window=scan.window, side_px=0).grey)


def _scores(case: CaseRecord, source: Path, leader: Scan, plane: Plane) -> npt.NDArray[np.float64]:
    """Sum the scores of the slices of a plane over all its sequences: a lesion may be visible in one of them only."""
    import SimpleITK as sitk

    number = len(leader.stack(plane))
    points = centre_points(leader, plane, range(number))
    total = np.zeros(number)
    for series in case.series:
        scan = load_scan(series, source)
        if scan.plane is not plane:
            continue
        axis = SLICE_AXIS[plane]
        grey = np.moveaxis(to_grey(sitk.GetArrayViewFromImage(scan.image), scan.window), axis, 0)
        scores = slice_scores(grey, scan.stack(plane))
        indices = [slice_index(scan, plane, point) for point in transform_points(points, scan.rigid @ np.linalg.inv(leader.rigid))]
        total += np.interp(indices, np.arange(len(scores)), scores, left=0.0, right=0.0)
    return total


def _image_id(
    scan: Scan, plane: Plane, group: list[SlicePlace], policy: SlicesConfig, *, taken: Container[str], window: str, prefix: str
) -> str:
    """Return an id of sequence, axis and position; a letter is added for a second series of the kind and slices closer than 1 mm."""
    kind = scan.series.sequence.value.lower()
    head = f"{kind}-{window}" if scan.series.sequence in CT_SEQUENCES and window != "brain" else kind
    where = f"{plane.axis}{round(group[0].position_mm):+04d}" if policy.layout == "single" else f"montage-{plane.axis}"
    name = f"{prefix}{head}-{where}"
    return next(f"{name}{letter}" for letter in ("", *"bcdefghijklmnopqrstuvwxyz") if f"{name}{letter}" not in taken)


@dataclass(frozen=True)
class RenderedSlice:
    """One slice as displayed.

    Attributes
    ----------
    grey : ndarray of uint8, shape (n, n)
        The picture.
    mm_per_px : float
        Size of its pixels.
    marked : bool
        True if it has side letters.
    corners : tuple of (int, int)
        Top and left pixel of it, or of each slice of a montage, in the picture.
    """

    grey: npt.NDArray[np.uint8]
    mm_per_px: float
    marked: bool
    corners: tuple[tuple[int, int], ...] = ((0, 0),)


def draw(
    scan: Scan, voxels: Floats, plane: Plane, group: list[SlicePlace], policy: SlicesConfig, *, window: Window
) -> tuple[npt.NDArray[np.uint8], RenderedSlice]:
    """Draw one picture: a single slice, or a montage.

    Parameters
    ----------
    scan : Scan
        The scan.
    voxels : ndarray of float32, shape (Z, Y, X)
        Its values.
    plane : Plane
        The plane to cut.
    group : list of SlicePlace
        The slice, or those of a montage.
    policy : SlicesConfig
        Display settings.
    window : tuple of float
        Intensities of black and white.

    Returns
    -------
    tuple of ndarray of uint8 and RenderedSlice
        The picture, and its first slice; `marked` is True if all its slices are.
    """
    if policy.layout == "single":
        one = render_slice(scan, voxels, plane, group[0], policy, window=window, side_px=policy.sent_px)
        return one.grey, one
    # montage: as square as possible, within the size that is sent
    columns = montage_columns(len(group))
    side = max((policy.sent_px - (columns - 1) * GAP_PX) // columns, MIN_TILE_PX) if policy.sent_px else 0
    tiles = [render_slice(scan, voxels, plane, place, policy, window=window, side_px=side) for place in group]
    whole = montage([tile.grey for tile in tiles])
    framed = max(policy.sent_px, *whole.shape) if policy.sent_px else 0
    above, before = letterbox_corner(whole.shape, framed) if framed else (0, 0)
    corners = ((above + top, before + left) for top, left in montage_corners(len(tiles), tiles[0].grey.shape[0]))
    of_all = RenderedSlice(tiles[0].grey, tiles[0].mm_per_px, marked=all(tile.marked for tile in tiles), corners=tuple(corners))
    return (letterbox(whole, framed) if framed else whole), of_all


def render_slice(
    scan: Scan, voxels: Floats, plane: Plane, place: SlicePlace, policy: SlicesConfig, *, window: Window, side_px: int
) -> RenderedSlice:
    """Draw one slice with the brain in the middle; `side_px` 0 keeps the native resolution."""

    def framed(cut: Floats, fill: float) -> tuple[Floats, float]:
        picture, mm_per_px = square(cut, place.centre, native_pixel(scan, plane), side_mm=policy.field_of_view_mm, fill=fill)
        if not side_px:
            return picture, mm_per_px
        return resize(picture, side_px), mm_per_px * picture.shape[0] / side_px

    picture, mm_per_px = framed(cut_plane(voxels, plane, place.index), float(voxels.min()))
    grey = to_grey(picture, window)
    if not policy.side_marker:
        return RenderedSlice(grey, mm_per_px, marked=False)
    brain, _ = framed(cut_plane(scan.brain, plane, place.index).astype(np.float32), 0.0)
    marked, is_marked = mark_sides(grey, brain > 0, plane)
    return RenderedSlice(marked, mm_per_px, marked=is_marked)


def native_pixel(scan: Scan, plane: Plane) -> tuple[float, float]:
    """Return the size of a native pixel along rows and columns of a plane in mm."""
    rows, columns = (size for axis, size in enumerate(scan.image.GetSpacing()[::-1]) if axis != SLICE_AXIS[plane])
    return rows, columns


def place_tile(scan: Scan, plane: Plane, place: SlicePlace, *, field_of_view_mm: float, top_px: int, left_px: int, side_px: int) -> Tile:
    """Describe one slice of a picture, drawn with its upper left corner at a pixel and a side of `side_px` pixels."""
    grid = square_grid(place.centre, native_pixel(scan, plane), field_of_view_mm)
    # upper left corner of the first pixel, and those of its neighbours below and to the right, in pixels of the square before resizing
    ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * grid.number / side_px - 0.5
    corner, below, beside = _patient_points(scan, plane, place.index, np.array(grid.start) + ends * np.array(grid.step))
    return Tile(
        index=place.index,
        position_mm=round(place.position_mm, 2),
        left_px=left_px,
        top_px=top_px,
        side_px=side_px,
        corner_mm=vector(corner, 3),
        right_mm=vector(beside - corner, 6),
        down_mm=vector(below - corner, 6),
    )


def _patient_points(scan: Scan, plane: Plane, index: int, cells: Points) -> Points:
    """Return the places, in the space of the reference, of rows and columns of a slice in display orientation, shape (N, 2)."""
    rows, columns = (axis for axis in range(3) if axis != SLICE_AXIS[plane])
    where = np.zeros((len(cells), 3))
    where[:, SLICE_AXIS[plane]] = index
    where[:, rows] = cells[:, 0] if plane is Plane.AXIAL else scan.brain.shape[rows] - 1 - cells[:, 0]  # flipped by cut_plane
    where[:, columns] = cells[:, 1]
    native = np.array([scan.image.TransformContinuousIndexToPhysicalPoint(point[::-1].tolist()) for point in where])
    return transform_points(native, np.asarray(np.linalg.inv(scan.rigid), dtype=np.float64))
