"""Pictures of a case for the person who signs the audit: sides, brain outline, registration, possible mirroring, chosen slices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas.matching import Pose, Target, agreement, climb, coarse_head, rigid
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.plain_pictures import Levels, lettered, outlined, side_by_side, to_levels, write_levels
from neuralmedbench.files.volumes import as_transform, centre_of_grid, grid_over, image_like, read_volume, use_one_thread
from neuralmedbench.imaging.quality import REFERENCE_LIMITS, SERIES_LIMITS, QualityLimit
from neuralmedbench.imaging.register import brain_centre, brain_target
from neuralmedbench.imaging.scans import brain_path, read_rigid
from neuralmedbench.records.case import CaseRecord, Series
from neuralmedbench.runtime.atomic_write import atomic_folder

if TYPE_CHECKING:
    import SimpleITK as sitk

Mask = npt.NDArray[np.bool_]
REVIEW = "review"
"""Folder beside `case.json` for the pieces of the review page."""
GRID_MM = 1.5
FIELD = 16
"""Side of a checkerboard field in pixels."""
RIM, BACKGROUND = 4, 25
"""Voxels shown around the head, and the largest grey value (of 255) of the background."""
TILE_PX, MONTAGE_PX, ROW_PX = 112, 336, 900
"""Largest side of a slice and of a montage on a contact sheet, and width of its rows."""
SIDES = ("RL", "AP", "IS")
"""Letters at the start and the end of the axes x, y, z of LPS+."""
MIRROR_GRID_MM = 5.0
MIRROR_STEPS = (0.1, 0.1, 0.1, 6.0, 6.0, 6.0)
"""Initial step sizes of the search: rotations in rad, translations in mm. Both images are searched, because a head is never quite upright
and its mirror image leans the other way."""


def write_case_pieces(case: CaseRecord, folder: Path) -> None:
    """Write the review pictures of a normalised case.

    Parameters
    ----------
    case : CaseRecord
        The normalised case, the reference first.
    folder : Path
        Its folder. `review/` in it is replaced: `<series_id>_planes.png` per series (three planes with side letters and the brain
        outline), `<series_id>_registration.png` per series but the reference (a checkerboard with the reference), and `quality.json`
        (numbers with their limits).

    Notes
    -----
    Everything is shown in the space of the reference, on a grid of `GRID_MM`. The outline is that of the reference's brain: a misplaced
    series does not fill it. The letters are derived from the directions of that grid, never assumed.
    """
    import SimpleITK as sitk

    use_one_thread()
    quality = {"case": _numbers(case.quality, REFERENCE_LIMITS)}
    with atomic_folder(folder / REVIEW) as out:
        # the reference: grid around its head, brain mask, planes through the centre of the brain
        first, *others = case.series
        native = read_volume(folder / first.path)
        grid = _around_head(native)
        reference = _in_reference(first, native, folder, grid)
        mask = sitk.ReadImage(brain_path(folder / first.path).as_posix())
        mask = sitk.Resample(mask, grid, sitk.Transform(), sitk.sitkNearestNeighbor, 0)
        brain = sitk.GetArrayFromImage(mask) > 0
        centre = tuple(round(float(along.mean())) for along in np.nonzero(brain))
        reference_levels = _levels(first, reference, brain)
        write_levels(out / f"{first.series_id}_planes.png", _planes(reference_levels, centre, grid, brain=brain))
        quality[first.series_id] = _numbers(first.quality, REFERENCE_LIMITS)
        mirror = mirror_reference(reference, mask)
        # the other series: planes at the same place, registration, comparison with the mirror image
        for series in others:
            image = _in_reference(series, read_volume(folder / series.path), folder, grid)
            levels = _levels(series, image, brain)
            write_levels(out / f"{series.series_id}_planes.png", _planes(levels, centre, grid, brain=brain))
            write_levels(out / f"{series.series_id}_registration.png", _planes(reference_levels, centre, grid, other=levels))
            numbers = {**series.quality, "mirrored_margin": mirrored_margin(mirror, image)}
            quality[series.series_id] = _numbers(numbers, SERIES_LIMITS)
        write_json(out / "quality.json", quality)


def write_chosen_pieces(case: CaseRecord, folder: Path) -> None:
    """Write the chosen pictures of a case as contact sheets.

    Parameters
    ----------
    case : CaseRecord
        The case with its pictures.
    folder : Path
        Its folder. `review/` in it is replaced: `<series_id>_slices.png` per series with pictures, scaled down, in their order.
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
    """Read a picture and scale it down to at most `side` pixels in both directions."""
    from PIL import Image

    with Image.open(path) as picture:
        grey = picture.convert("L")
        grey.thumbnail((side, side), Image.Resampling.BOX)
        return to_levels(np.asarray(grey, dtype=np.float32), 0.0, 255.0)


def _around_head(reference: sitk.Image) -> sitk.Image:
    """Return a grid over the head of the reference and a rim around it."""
    import SimpleITK as sitk

    grid = grid_over(reference, GRID_MM)
    head = sitk.GetArrayFromImage(coarse_head(reference, GRID_MM)) > BACKGROUND
    start, size = [], []
    for axis in (2, 1, 0):  # SimpleITK counts x, y, z
        extent = np.flatnonzero(head.any(axis=tuple(other for other in range(3) if other != axis)))
        first, last = (int(extent[0]), int(extent[-1])) if len(extent) else (0, head.shape[axis] - 1)
        start.append(max(0, first - RIM))
        size.append(min(head.shape[axis], last + 1 + RIM) - start[-1])
    return sitk.RegionOfInterest(grid, size, start)


def _numbers(quality: dict[str, float], limits: tuple[QualityLimit, ...]) -> list[dict[str, Any]]:
    """List each number with its limits; None where there is no limit."""
    allowed = {limit.number: [end if math.isfinite(end) else None for end in (limit.least, limit.most)] for limit in limits}
    return [{"number": name, "value": value, "allowed": allowed.get(name)} for name, value in sorted(quality.items())]


def _in_reference(series: Series, native: sitk.Image, folder: Path, grid: sitk.Image) -> sitk.Image:
    """Resample a series to the grid of the reference."""
    import SimpleITK as sitk

    rigid = as_transform(read_rigid(folder, series))
    return sitk.Resample(native, grid, rigid, sitk.sitkLinear, float(sitk.GetArrayViewFromImage(native).min()))


def _levels(series: Series, image: sitk.Image, brain: Mask) -> Levels:
    """Convert a resampled series to grey levels, through its window."""
    import SimpleITK as sitk

    voxels = sitk.GetArrayViewFromImage(image)
    low, high = series.window or np.percentile(voxels[brain], (0.5, 99.5))
    return to_levels(voxels, float(low), float(high))


def _planes(levels: Levels, centre: tuple[int, ...], grid: sitk.Image, *, brain: Mask | None = None, other: Levels | None = None) -> Levels:
    """Cut the axial, coronal and sagittal planes through a voxel, as a radiologist views them; checkered with `other` if given."""
    sides = _sides(grid)
    pictures = []
    for axis, (down, across) in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        cut = np.take(levels, centre[axis], axis=axis)
        if other is not None:
            cut = _checkered(cut, np.take(other, centre[axis], axis=axis))
        if brain is not None:
            cut = outlined(cut, np.take(brain, centre[axis], axis=axis))
        (left, right), (up, low) = sides[across], sides[down]
        if axis:  # rows of the array run from feet to head, rows of a picture from top to bottom
            cut, up, low = cut[::-1], low, up
        pictures.append(lettered(cut, (left, right, up, low)))
    return side_by_side(pictures)


def _sides(grid: sitk.Image) -> list[tuple[str, str]]:
    """Return the letters of the start and the end of each array axis (Z, Y, X), by the directions of the grid."""
    directions = np.array(grid.GetDirection()).reshape(3, 3).T[::-1]
    names = [(SIDES[int(np.argmax(np.abs(way)))], way[int(np.argmax(np.abs(way)))] > 0) for way in directions]
    return [(ends[0], ends[1]) if forwards else (ends[1], ends[0]) for ends, forwards in names]


def _checkered(first: Levels, second: Levels) -> Levels:
    """Combine two pictures as a checkerboard: edges that continue across the fields are at the same place in both."""
    row, column = np.ogrid[: first.shape[0], : first.shape[1]]
    return np.where((row // FIELD + column // FIELD) % 2 == 0, first, second)


@dataclass(frozen=True)
class MirrorReference:
    """The reference, prepared for the comparison with a series and its mirror image.

    Attributes
    ----------
    target : Target
        The brain and a rim around it.
    centre : tuple of float
        Centre of the brain, LPS+ in mm.
    """

    target: Target
    centre: tuple[float, float, float]


def mirror_reference(reference: sitk.Image, brain: sitk.Image) -> MirrorReference:
    """Prepare the reference (float32) with its brain mask (uint8), LPS+, on one grid."""
    return MirrorReference(brain_target(reference, brain, MIRROR_GRID_MM), brain_centre(brain))


def mirrored_margin(reference: MirrorReference, image: sitk.Image) -> float:
    """Compare a registered series with its mirror image: a converter that swaps left and right leaves no other trace.

    Parameters
    ----------
    reference : MirrorReference
        The reference.
    image : SimpleITK.Image
        The series (float32) in the space of the reference, on the same grid.

    Returns
    -------
    float
        Agreement with the reference (mutual information in nats) minus that of the mirror image, both after a search over small rotations
        and translations. Below 0 the mirror image fits better: left and right may be swapped in one of the two. Heads are nearly
        symmetric, so a value near 0 says nothing.
    """
    target, centre = reference.target, reference.centre
    rough = coarse_head(image, MIRROR_GRID_MM)
    swapped = _mirror_image(rough, centre)

    def best(moving: sitk.Image) -> float:
        def value(pose: Pose) -> float:
            return agreement(target, moving, rigid(pose, centre))

        return value(climb(value, [(0.0,) * 6], MIRROR_STEPS))

    return round(best(rough) - best(swapped), 4)


def _mirror_image(image: sitk.Image, centre: tuple[float, float, float]) -> sitk.Image:
    """Mirror a volume in the sagittal plane through a point; the directions of its grid do not change."""
    import SimpleITK as sitk

    flipped = image_like(sitk.GetArrayFromImage(image)[:, :, ::-1], image)
    across = np.array(image.GetDirection()).reshape(3, 3)[:, 0]
    middle = centre_of_grid(image)
    offset = 2 * float(np.dot(np.subtract(centre, middle), across))
    flipped.SetOrigin((np.array(image.GetOrigin()) + offset * across).tolist())
    return flipped
