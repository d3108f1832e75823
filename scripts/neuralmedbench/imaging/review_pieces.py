"""What the imaging stages show of a case to the person who signs: sides, brain, how the series fit together, the chosen pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.small_pictures import Levels, lettered, outlined, side_by_side, to_levels, write_levels
from neuralmedbench.files.volumes import as_transform, grid_over, read_volume
from neuralmedbench.imaging.mirror import make_side, mirrored_margin
from neuralmedbench.imaging.normalise import read_rigid
from neuralmedbench.imaging.quality import REFERENCE_LIMITS, SERIES_LIMITS, QualityLimit
from neuralmedbench.records.case import CaseRecord, Series
from neuralmedbench.runtime.atomic_write import atomic_folder

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
REVIEW = "review"
"""Folder beside `case.json` that holds the pieces."""
GRID_MM = 1.5
FIELD = 16
"""Pixels along the side of a field of the checkerboard."""
RIM, SHOWN = 4, 25
"""Voxels around the head that are shown, and the grey value of 255 above which a voxel is no background."""
TILE_PX, MONTAGE_PX, ROW_PX = 112, 336, 900
SIDES = ("RL", "AP", "IS")
"""Letters of the ends of the axes x, y, z of LPS+."""


def write_case_pieces(case: CaseRecord, folder: Path) -> None:
    """Write the pieces of a normalised case.

    Parameters
    ----------
    case : CaseRecord
        The normalised case, the reference first.
    folder : Path
        Its folder. `review/` in it is replaced: for every series `<series_id>_planes.png` (three planes with the letters of their sides
        and the outline of the brain), for every series but the reference `<series_id>_registration.png` (a checkerboard with the
        reference), and `quality.json` (numbers beside their limits).

    Notes
    -----
    Everything is shown in the space of the reference, on a grid of `GRID_MM`; the outline is that of the reference's brain, so that a series
    that was brought to another place shows it. The letters follow the directions of that grid, not an assumption about them.
    """
    import SimpleITK as sitk

    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    quality = {"case": _numbers(case.quality, REFERENCE_LIMITS)}
    with atomic_folder(folder / REVIEW) as out:
        first, *others = case.series
        native = read_volume(folder / first.path)
        grid = _around_head(native)
        reference = _in_reference(first, native, folder, grid)
        mask = sitk.ReadImage((folder / first.path).with_name(f"{first.series_id}_brain.nii").as_posix())
        mask = sitk.Resample(mask, grid, sitk.Transform(), sitk.sitkNearestNeighbor, 0)
        brain = sitk.GetArrayFromImage(mask) > 0
        places = tuple(round(float(along.mean())) for along in np.nonzero(brain))
        ground = _levels(first, reference, brain)
        write_levels(out / f"{first.series_id}_planes.png", _planes(ground, places, grid, brain=brain))
        quality[first.series_id] = _numbers(first.quality, REFERENCE_LIMITS)
        side = make_side(reference, mask)
        for series in others:
            image = _in_reference(series, read_volume(folder / series.path), folder, grid)
            levels = _levels(series, image, brain)
            write_levels(out / f"{series.series_id}_planes.png", _planes(levels, places, grid, brain=brain))
            write_levels(out / f"{series.series_id}_registration.png", _planes(ground, places, grid, beside=levels))
            numbers = {**series.quality, "mirrored_margin": mirrored_margin(side, image)}
            quality[series.series_id] = _numbers(numbers, SERIES_LIMITS)
        write_json(out / "quality.json", quality)


def write_chosen_pieces(case: CaseRecord, folder: Path) -> None:
    """Write the pictures that were chosen of a case as small contact sheets.

    Parameters
    ----------
    case : CaseRecord
        The case with its pictures.
    folder : Path
        Its folder. `review/` in it is replaced: `<series_id>_slices.png` for every series of which there are pictures, in their
        order, small.
    """
    with atomic_folder(folder / REVIEW) as out:
        for series in case.series:
            entries = [entry for entry in case.slices if entry.volume_sha256 == series.volume_sha256]
            tiles = [_small(folder / entry.path, TILE_PX if len(entry.tiles) < 2 else MONTAGE_PX) for entry in entries]
            if tiles:
                fitting = max(1, ROW_PX // max(tile.shape[1] for tile in tiles))
                rows = [side_by_side(tiles[start : start + fitting]) for start in range(0, len(tiles), fitting)]
                width = max(row.shape[1] for row in rows)
                sheet = np.vstack([np.pad(row, ((0, 4), (0, width - row.shape[1]))) for row in rows])
                write_levels(out / f"{series.series_id}_slices.png", sheet)


def _small(path: Path, side: int) -> Levels:
    """Read a picture, at most so many pixels high and wide."""
    from PIL import Image

    with Image.open(path) as picture:
        grey = picture.convert("L")
        grey.thumbnail((side, side), Image.Resampling.BOX)
        return to_levels(np.asarray(grey, dtype=np.float32), 0.0, 255.0)


def _around_head(reference: sitk.Image) -> sitk.Image:
    """Lay a grid over the head of the reference, with a rim around it."""
    import SimpleITK as sitk

    grid = grid_over(reference, GRID_MM)
    head = sitk.GetArrayFromImage(coarse_head(reference, GRID_MM)) > SHOWN
    start, size = [], []
    for axis in (2, 1, 0):
        seen = np.flatnonzero(head.any(axis=tuple(other for other in range(3) if other != axis)))
        first, last = (int(seen[0]), int(seen[-1])) if len(seen) else (0, head.shape[axis] - 1)
        start.append(max(0, first - RIM))
        size.append(min(head.shape[axis], last + 1 + RIM) - start[-1])
    return sitk.RegionOfInterest(grid, size, start)


def _numbers(quality: dict[str, float], limits: tuple[QualityLimit, ...]) -> list[dict[str, Any]]:
    """Give each number with its limits; an end that is open is None."""
    allowed = {limit.number: [end if math.isfinite(end) else None for end in (limit.least, limit.most)] for limit in limits}
    return [{"number": name, "value": value, "allowed": allowed.get(name)} for name, value in sorted(quality.items())]


def _in_reference(series: Series, native: sitk.Image, folder: Path, grid: sitk.Image) -> sitk.Image:
    """Bring a series to the grid of the reference."""
    import SimpleITK as sitk

    rigid = as_transform(read_rigid(folder, series))
    return sitk.Resample(native, grid, rigid, sitk.sitkLinear, float(sitk.GetArrayViewFromImage(native).min()))


def _levels(series: Series, image: sitk.Image, brain: Mask) -> Levels:
    import SimpleITK as sitk

    voxels = sitk.GetArrayViewFromImage(image)
    low, high = series.window or np.percentile(voxels[brain], (0.5, 99.5))
    return to_levels(voxels, float(low), float(high))


def _planes(
    levels: Levels, places: tuple[int, ...], grid: sitk.Image, *, brain: Mask | None = None, beside: Levels | None = None
) -> Levels:
    """Cut three planes through a place: axial, coronal, sagittal, as a reader expects them; `beside` takes turns with the volume."""
    sides = _sides(grid)
    pictures = []
    for axis, (down, across) in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        cut = np.take(levels, places[axis], axis=axis)
        if beside is not None:
            cut = _checkered(cut, np.take(beside, places[axis], axis=axis))
        if brain is not None:
            cut = outlined(cut, np.take(brain, places[axis], axis=axis))
        (left, right), (up, low) = sides[across], sides[down]
        if axis:  # the array runs upwards, a picture downwards
            cut, up, low = cut[::-1], low, up
        pictures.append(lettered(cut, (left, right, up, low)))
    return side_by_side(pictures)


def _sides(grid: sitk.Image) -> list[tuple[str, str]]:
    """Letters of the start and of the end of each axis (Z, Y, X) of an array, by the directions of its grid."""
    directions = np.array(grid.GetDirection()).reshape(3, 3).T[::-1]
    names = [(SIDES[int(np.argmax(np.abs(way)))], way[int(np.argmax(np.abs(way)))] > 0) for way in directions]
    return [(ends[0], ends[1]) if forwards else (ends[1], ends[0]) for ends, forwards in names]


def _checkered(first: Levels, second: Levels) -> Levels:
    """Let two pictures take turns in fields of `FIELD` pixels: edges that run on across the fields are in the same place."""
    row, column = np.ogrid[: first.shape[0], : first.shape[1]]
    return np.where((row // FIELD + column // FIELD) % 2 == 0, first, second)
