"""Cut the pictures that a reader gets to see out of a normalised case.

A picture shows a native slice: nothing is interpolated between slices, unless a policy asks for a plane that a thick-slice scan was
not acquired in, and then the picture says so. The same anatomy is looked up in every sequence by the rigid transforms of the
normalise stage, and stands in the middle of every picture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.known_lesions import KnownLesion
from neuralmedbench.files.plain_pictures import write_grey
from neuralmedbench.imaging.choose import SlicePolicy, around, content_slices, slice_scores, uniform_slices, usable_slices
from neuralmedbench.imaging.display import RenderedSlice, draw, native_pixel
from neuralmedbench.imaging.pictures import SLICE_AXIS, to_grey
from neuralmedbench.imaging.scans import Points, Scan, SlicePlace, carry, centre_points, load, places, slice_index
from neuralmedbench.imaging.windows import COMPUTED, CT_WINDOWS, Window
from neuralmedbench.records.case import CaseRecord, Plane, Slice, Tile
from neuralmedbench.runtime.atomic_write import atomic_folder

PLANES = (Plane.AXIAL, Plane.CORONAL, Plane.SAGITTAL)


def cut_slices(case: CaseRecord, source: Path, pictures: Path, policy: SlicePolicy, lesion: KnownLesion | None = None) -> tuple[Slice, ...]:
    """Cut the pictures of a case.

    Parameters
    ----------
    case : CaseRecord
        The normalised case, the reference first.
    source : Path
        Its folder.
    pictures : Path
        Folder of the PNG files; it is replaced. Paths in the result are relative to the folder above it.
    policy : SlicePolicy
        Which slices.
    lesion : KnownLesion or None
        For the policy `lesion`; a case without a lesion gets the slices of `uniform` there, marked as oracle too, because that
        there is no lesion is part of the answer.

    Returns
    -------
    tuple of Slice
        In the order of the series, each from feet to head (right to left, front to back).

    Raises
    ------
    DataError
        If a series shows too little brain.

    Notes
    -----
    Series that are cut in one plane share their positions: those of the first of them. A series that does not reach a position
    lacks that picture; a position that falls on a slice which is already shown is not repeated. A slab in another plane than the
    reference's shows as many slices as it has.
    """
    import SimpleITK as sitk

    leaders: dict[Plane, tuple[Points, Points]] = {}
    slices: dict[str, Slice] = {}
    with atomic_folder(pictures) as folder:
        for series in case.series:
            scan = load(series, source)
            voxels = sitk.GetArrayViewFromImage(scan.image)
            for plane in PLANES if policy.policy == "three_plane" else (scan.plane,):
                if plane not in leaders:
                    indices = _indices(case, source, scan, plane, policy, lesion=lesion)
                    leaders[plane] = scan.rigid, centre_points(scan, plane, indices)
                rigid, points = leaders[plane]
                found = places(scan, plane, carry(points, scan.rigid @ np.linalg.inv(rigid)))
                groups = [[place] for place in found] if policy.layout == "single" else [found] * bool(found)
                for (name, window), group in product(_windows(scan, policy), groups):
                    grey, shown = draw(scan, voxels, plane, group, policy, window=window)
                    image_id = _image_id(scan, plane, group, policy, taken=slices, window=name)
                    write_grey(folder / f"{image_id}.png", grey)
                    slices[image_id] = replace(
                        _describe(scan, plane, group, grey, shown),
                        image_id=image_id,
                        path=f"{pictures.name}/{image_id}.png",
                        sha256=sha256_of(folder / f"{image_id}.png"),
                        window=window,
                        window_name=name,
                        oracle=policy.policy == "lesion",
                    )
    return tuple(slices.values())


def _describe(scan: Scan, plane: Plane, group: list[SlicePlace], grey: npt.NDArray[np.uint8], shown: RenderedSlice) -> Slice:
    """Say what a picture shows; its name, file and window are filled in by who writes it."""
    middle = group[(len(group) - 1) // 2]
    rows, columns = native_pixel(scan, plane)
    series = scan.series
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
        tiles=tuple(Tile(index=place.index, position_mm=round(place.position_mm, 2)) for place in group),
        native_mm_per_px=(round(rows, 5), round(columns, 5)),
        mm_per_px=round(shown.mm_per_px, 5),
        window=scan.window,
        window_name="",
        resampled=series.plane is not None and plane is not series.plane,
        side_marked=shown.marked,
    )


def _windows(scan: Scan, policy: SlicePolicy) -> list[tuple[str, Window]]:
    if scan.series.sequence in COMPUTED:
        return [(name, scan.window if name == "brain" else CT_WINDOWS[name]) for name in policy.ct_windows]
    return [("shared" if "shared_window" in scan.series.flags else "own", scan.window)]


def _indices(case: CaseRecord, source: Path, scan: Scan, plane: Plane, policy: SlicePolicy, *, lesion: KnownLesion | None) -> list[int]:
    """Choose the slices of the scan that leads a plane."""
    brain = scan.stack(plane)
    is_reference = scan.series.series_id == case.series[0].series_id
    count = policy.per_sequence if is_reference else min(policy.per_sequence, len(usable_slices(brain)))
    if policy.policy == "content":
        return content_slices(brain, _scores(case, source, scan, plane), count)
    if policy.policy == "lesion" and lesion is not None:
        there = carry(np.array([lesion.position_mm]), scan.rigid)[0]
        spacing = scan.image.GetSpacing()[2 - SLICE_AXIS[plane]]
        return around(slice_index(scan, plane, there), lesion.size_mm / 2 / spacing, policy.per_sequence, len(brain))
    return uniform_slices(brain, count)


def _scores(case: CaseRecord, source: Path, leader: Scan, plane: Plane) -> npt.NDArray[np.float64]:
    """How much the slices of a plane show, over all sequences that are cut in it: a lesion may be visible in one of them only."""
    import SimpleITK as sitk

    number = len(leader.stack(plane))
    points = centre_points(leader, plane, range(number))
    total = np.zeros(number)
    for series in case.series:
        scan = load(series, source)
        if scan.plane is not plane:
            continue
        axis = SLICE_AXIS[plane]
        grey = np.moveaxis(to_grey(sitk.GetArrayViewFromImage(scan.image), scan.window), axis, 0)
        scores = slice_scores(grey, scan.stack(plane))
        there = [slice_index(scan, plane, point) for point in carry(points, scan.rigid @ np.linalg.inv(leader.rigid))]
        total += np.interp(there, np.arange(len(scores)), scores, left=0.0, right=0.0)
    return total


def _image_id(scan: Scan, plane: Plane, group: list[SlicePlace], policy: SlicePolicy, *, taken: Container[str], window: str) -> str:
    """Sequence, axis and position; the second series of a kind, and slices nearer than 1 mm, get a letter."""
    kind = scan.series.sequence.value.lower()
    head = f"{kind}-{window}" if scan.series.sequence in COMPUTED and window != "brain" else kind
    where = f"{plane.axis}{round(group[0].position_mm):+04d}" if policy.layout == "single" else f"montage-{plane.axis}"
    name = f"{head}-{where}"
    return next(f"{name}{letter}" for letter in ("", *"bcdefghijklmnopqrstuvwxyz") if f"{name}{letter}" not in taken)
