"""Write the scans of a case as de-identified DICOM files: headers cleaned, burned-in text and faces removed from the pixels."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.hide import count_text, has_suspect_header, hide_text
from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.faces.deface import deface
from neuralmedbench.deid.faces.locate import Head, defacing_order, frame_of
from neuralmedbench.deid.headers.cleaner import HeaderCleaner, write_dicom
from neuralmedbench.deid.headers.rules import OF_PIXELS, HeaderRules, declare
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.case import Sequence

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

MIN_SLICES = 3
SAME_DIRECTION = 1e-3
UNEVEN = 0.05
"""Largest distance of a slice from the even grid, as a part of the slice distance."""
STALE = ("SmallestImagePixelValue", "LargestImagePixelValue", "PixelPaddingRangeLimit")
"""Optional elements that changed pixels can make wrong."""
ONLY_BIDS = "not plain DICOM images of one volume (it arrived as NIfTI, or was converted when it was read): --format bids writes it"


def clean_dicom_case(cleaning: Cleaning) -> dict[str, str]:
    """Write the series of a case as `out`/<series_id>/000001.dcm...; returns the reasons of excluded series, by id.

    A series that cannot be defaced is never written; DataError if none is left.
    """
    case, excluded = cleaning.case, cleaning.excluded
    for series in defacing_order(case.series):
        raw, target = cleaning.source / series.path, cleaning.out / series.series_id
        if not raw.is_dir():
            excluded[series.series_id] = ONLY_BIDS
            continue
        is_map = series.sequence is Sequence.ADC
        try:
            clean_dicom_series(raw, target, cleaning.rules, cleaning.checks, is_map=is_map, heads=cleaning.heads)
        except (DataError, DeidentificationError) as error:
            excluded[series.series_id] = str(error)
            shutil.rmtree(target, ignore_errors=True)
    if len(excluded) == len(case.series):
        message = f"no series can be given as DICOM: {next(iter(excluded.values()))}"
        raise DataError(message)
    return excluded


def clean_dicom_series(
    source: Path, target: Path, rules: HeaderRules, checks: Counter[str], *, is_map: bool = False, heads: list[Head] | None = None
) -> None:
    """Write the de-identified files of one series, in the order of their positions.

    `source`, `target`: folder of the raw files, one image each, and new folder for `000001.dcm`... Adds to `checks`: `header_*` as in
    `cleaner.clean_header`, `dicom_files_cleaned`, `dicom_images_changed`, `burned_in_*` as in `hide.count_text`, `faces_removed`, and
    `deface_*` for each flag of `deface`. `is_map`, `heads`: as for `deface`; this scan is added to `heads`. Raises DataError if the images are
    not a stack or cannot be decoded, as their faces could not be removed. Raises DeidentificationError if a face cannot be located, text
    cannot be hidden, or a file cannot be written.
    """
    stack = stack_images([dicom.read_dicom(path) for path in sorted(source.glob("*.dcm"))])
    hidden = hide_text(stack.volume.voxels, 2, suspect=has_suspect_header(stack.images[0]))
    known = [] if heads is None else heads
    volume = Volume(hidden.voxels, stack.volume.affine)
    defaced = deface(volume, is_map=is_map, heads=known, name=target.name, frame=frame_of(source))
    known.extend([defaced.head] if defaced.head else [])
    stored = blank(stack, hidden.burned_in.mask | defaced.mask)
    cleaner, counts = HeaderCleaner(rules), Counter[str]()
    target.mkdir(parents=True)
    for number, (image, plane) in enumerate(zip(stack.images, stored, strict=True), start=1):
        changed = not bool((image.pixel_array == plane).all())
        counts.update({f"header_{name}": count for name, count in cleaner.clean(image).items()})
        put_pixels(image, plane)  # even if unchanged: trailing bytes, unused bits and codec comments would remain in the old pixel data
        image.BurnedInAnnotation = "NO"
        declare(image, rules.held | OF_PIXELS)
        write_dicom(target / f"{number:06d}.dcm", image, f"file {number} of {len(stack.images)} of a series")
        counts["dicom_images_changed"] += changed
    counts["dicom_files_cleaned"] += len(stack.images)
    counts["faces_removed"] += bool(defaced.mask.any())
    counts.update(f"deface_{flag}" for flag in defaced.flags)
    checks.update(counts)
    count_text(checks, hidden.burned_in, "hide", "series")


@dataclass(frozen=True)
class DicomStack:
    """A series in the order of its positions.

    Attributes
    ----------
    images : tuple of Dataset
        One dataset per file.
    stored : ndarray, shape (Z, Y, X)
        Pixels as stored: slice, row, column; bits beyond BitsStored, which may hold overlays, are cleared.
    volume : Volume
        Voxels (X, Y, Z) = (column, row, slice) with rescale slope and intercept, and the affine to RAS+ mm.
    """

    images: tuple[Dataset, ...]
    stored: npt.NDArray[Any]
    volume: Volume


def stack_images(images: list[Dataset]) -> DicomStack:
    """Stack the images of a series by their positions, without resampling.

    Raises DataError if they are not an evenly spaced stack of parallel images of one size, or cannot be decoded.
    """
    first = images[0]
    cosines = np.array([dicom.numbers(image, "ImageOrientationPatient") or (np.nan,) * 6 for image in images])
    origins = np.array([dicom.numbers(image, "ImagePositionPatient") or (np.nan,) * 3 for image in images])
    spacing = dicom.numbers(first, "PixelSpacing")
    if len(images) < MIN_SLICES or len(spacing) != 2 or not np.isfinite(cosines).all() or not np.isfinite(origins).all():
        message = f"not a stack of at least {MIN_SLICES} images with a position in space"
        raise DataError(message)
    if np.abs(cosines - cosines[0]).max() > SAME_DIRECTION:
        message = "its images are not parallel"
        raise DataError(message)
    # sort along the normal of the slices, and check that they are evenly spaced
    row, column = cosines[0, :3], cosines[0, 3:]
    order = np.argsort(origins @ np.cross(row, column), kind="stable")
    origins = origins[order]
    step = (origins[-1] - origins[0]) / (len(origins) - 1)
    even = origins[0] + np.arange(len(origins))[:, None] * step
    if not np.linalg.norm(step) or np.abs(origins - even).max() > UNEVEN * np.linalg.norm(step):
        message = "its slices do not lie on an even grid"
        raise DataError(message)
    ordered = tuple(images[place] for place in order)
    # affine from (column, row, slice) to LPS+ mm, then to RAS+
    stored = _unpack(ordered)
    lps = np.eye(4)
    lps[:3, :4] = np.column_stack([row * spacing[1], column * spacing[0], step, origins[0]])
    scales = [rescale(image) for image in ordered]
    values = np.stack([plane * np.float32(slope) + np.float32(intercept) for plane, (slope, intercept) in zip(stored, scales, strict=True)])
    return DicomStack(ordered, stored, Volume(values.transpose(2, 1, 0), np.diag([-1.0, -1.0, 1.0, 1.0]) @ lps))


def _unpack(images: tuple[Dataset, ...]) -> npt.NDArray[Any]:
    planes = []
    for image in images:
        try:
            plane = image.pixel_array
        except Exception:  # without a decoder or with damaged pixels pydicom raises various exceptions, whose messages may hold values
            message = (
                "its pixels cannot be decoded (damaged, or compressed in a way for which there is no decoder): store it without compression"
            )
            raise DataError(message) from None
        planes.append(_without_unused_bits(plane, image))
    if any(plane.ndim != 2 or plane.shape != planes[0].shape or plane.dtype != planes[0].dtype for plane in planes):
        message = "its images differ in size or are not grey"
        raise DataError(message)
    return np.stack(planes)


def _without_unused_bits(plane: npt.NDArray[Any], image: Dataset) -> npt.NDArray[Any]:
    unused = plane.dtype.itemsize * 8 - int(dicom.number(image, "BitsStored") or plane.dtype.itemsize * 8)
    if plane.dtype.kind not in "iu" or unused <= 0:
        return plane
    return np.asarray((plane << unused) >> unused, dtype=plane.dtype)  # the right shift extends the sign of signed pixels


def rescale(image: Dataset) -> tuple[float, float]:
    """Return rescale slope and intercept; 1 and 0 if a header has none."""
    return dicom.number(image, "RescaleSlope") or 1.0, dicom.number(image, "RescaleIntercept") or 0.0


def blank(stack: DicomStack, mask: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Set masked voxels to the background of the series, in stored values.

    `mask`: shape (X, Y, Z). Returns stored pixels, shape (Z, Y, X); the background is the lowest value of the volume, converted with each
    image's rescale slope and intercept.
    """
    stored = stack.stored.copy()
    low = float(stack.volume.voxels.min())
    for number, image in enumerate(stack.images):
        slope, intercept = rescale(image)
        kind = np.iinfo(stored.dtype) if stored.dtype.kind in "iu" else np.finfo(stored.dtype)
        value = np.clip((low - intercept) / slope, float(kind.min), float(kind.max))
        stored[number][mask[:, :, number].T] = round(float(value)) if stored.dtype.kind in "iu" else value
    return stored


def put_pixels(image: Dataset, plane: npt.NDArray[Any]) -> None:
    """Set the pixels (rows, columns) of an image whose file meta group holds the transfer syntax; a compressed image becomes uncompressed."""
    from pydicom.uid import ExplicitVRLittleEndian

    syntax = image.file_meta.TransferSyntaxUID
    if syntax.is_compressed:
        image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    big = not syntax.is_compressed and not syntax.is_little_endian
    encoded = plane.astype(plane.dtype.newbyteorder(">") if big else plane.dtype.newbyteorder("<")).tobytes()
    image.add_new("PixelData", "OW" if plane.dtype.itemsize > 1 else "OB", encoded)
    if plane.nbytes % 2:  # DICOM values have an even length
        image["PixelData"].value += b"\0"
    for keyword in STALE:
        image.pop(keyword, None)
