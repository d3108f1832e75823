"""Whether text that was burned into the pixels is gone from a scan, and whether all other pixels are as they were."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.score.tally import FILES, ScoreTally
from neuralmedbench.files import dicom
from neuralmedbench.files.answer_key import holds
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.answer_key import PixelBox, SeriesKey

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

Plane = npt.NDArray[np.float64]

MARGIN_PX = 12
"""So far around the text a cleaner may hide."""
READ_AT = 4
"""A program that reads pictures needs larger letters than scanners write."""
LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])


def score_pixels(raw: Path, hidden: Volume, rules: SeriesKey, tally: ScoreTally) -> None:
    """Compare every raw file of a series with the voxels that it became.

    `hidden`: the scan after burned-in text was hidden and before its face was removed, voxels (X, Y, Z), affine to RAS+ mm. `tally`: where
    the counts go: `pixels_retained` and `pixels_hidden`, one check a file.
    """
    planes = []
    for path in sorted(raw.glob("*.dcm")):
        dataset = dicom.read_dicom(path)
        before = _measured(dataset)
        after = plane_of(dataset, before.shape, hidden)
        tally.add((FILES, "pixels_retained", "research"), _is_retained(before, after, rules.boxes))
        if rules.boxes:
            tally.add((FILES, "pixels_hidden", "HIPAA"), all(_is_hidden(_cut(before, box), _cut(after, box)) for box in rules.boxes))
            planes.append(after)
    if planes:
        read = read_text(planes[len(planes) // 2], rules.boxes)
        if read is not None:
            left = any(holds(read, word) for box in rules.boxes for word in box.text)
            tally.add((FILES, "pixels_hidden", "HIPAA"), not left, where="read by a program")


def score_lost_pixels(rules: SeriesKey, tally: ScoreTally) -> None:
    """Count a series that did not come through: its text is hidden, its pixels are not retained."""
    if rules.boxes:
        tally.add((FILES, "pixels_hidden", "HIPAA"), rules.files, rules.files)
    if rules.kept:
        tally.add((FILES, "pixels_retained", "research"), 0, rules.files)


def plane_of(dataset: Dataset, shape: tuple[int, ...], volume: Volume) -> Plane:
    """Find the voxels that the pixels of one DICOM file became, by their place in the scanner.

    `dataset`: the file: ImagePositionPatient, ImageOrientationPatient (LPS+ mm), PixelSpacing. `volume`: the scan, voxels (X, Y, Z), affine
    to RAS+ mm. Returns: ndarray of float64, shape (rows, columns); Values of the voxels; NaN where the volume has none.
    """
    origin, along = (np.array(dicom.numbers(dataset, name)) for name in ("ImagePositionPatient", "ImageOrientationPatient"))
    down_mm, across_mm = dicom.numbers(dataset, "PixelSpacing")
    back = np.linalg.inv(volume.affine)
    start, across, down = (back[:3, :3] @ (LPS_TO_RAS * vector) for vector in (origin, across_mm * along[:3], down_mm * along[3:]))
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    index = [np.rint(start[axis] + back[axis, 3] + rows * down[axis] + columns * across[axis]).astype(np.intp) for axis in range(3)]
    inside = np.logical_and.reduce([(part >= 0) & (part < size) for part, size in zip(index, volume.voxels.shape, strict=True)])
    if inside.all():
        return np.asarray(volume.voxels[tuple(index)], dtype=np.float64)
    values = np.full(shape, np.nan)
    values[inside] = volume.voxels[tuple(part[inside] for part in index)]
    return values


def _measured(dataset: Dataset) -> Plane:
    """Pixels in the units of the scan."""
    slope, intercept = dicom.number(dataset, "RescaleSlope"), dicom.number(dataset, "RescaleIntercept")
    stored = np.asarray(dataset.pixel_array, dtype=np.float64)
    return stored * (1.0 if slope is None else slope) + (intercept or 0.0)


def _is_hidden(before: Plane, after: Plane) -> bool:
    """Whether the letters (the highest value of the box) cannot be told from what is around them."""
    letters = before == before.max()
    if after.max() == after.min():
        return True
    spread = after[~letters].std() + after[letters].std()
    return bool((after[letters] != before[letters]).all() and abs(after[letters].mean() - after[~letters].mean()) < spread)


def _is_retained(before: Plane, after: Plane, boxes: tuple[PixelBox, ...]) -> bool:
    same = np.abs(before - after) < 0.5
    for box in boxes:
        same[max(0, box.top - MARGIN_PX) : box.bottom + MARGIN_PX, max(0, box.left - MARGIN_PX) : box.right + MARGIN_PX] = True
    return bool(same.all())


def read_text(plane: Plane, boxes: tuple[PixelBox, ...]) -> str | None:
    """Read the boxes of a picture with tesseract; None where it is not installed."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    return "\n".join(_read(program, _cut(plane, box, margin=MARGIN_PX)) for box in boxes)


def _read(program: str, cut: Plane) -> str:
    import io

    from PIL import Image

    grey: Any = 255 * (cut - cut.min()) / max(float(np.ptp(cut)), 1.0)
    picture = Image.fromarray(255 - np.nan_to_num(grey).astype(np.uint8))
    held = io.BytesIO()
    picture.resize((picture.width * READ_AT, picture.height * READ_AT)).save(held, "PNG")
    done = subprocess.run([program, "-", "-", "--psm", "6"], input=held.getvalue(), capture_output=True, check=False, timeout=60)
    return done.stdout.decode("utf-8", "replace")


def _cut(plane: Plane, box: PixelBox, *, margin: int = 0) -> Plane:
    return plane[max(0, box.top - margin) : box.bottom + margin, max(0, box.left - margin) : box.right + margin]
