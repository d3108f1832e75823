"""Pixels of raw DICOM files: detect incomplete, blank and duplicate images, and copy images so that they can be converted."""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import MAX_VOXELS
from neuralmedbench.ingest.geometry import place_of
from neuralmedbench.ingest.raw_files import RawScan
from neuralmedbench.ingest.raw_series import RawSeries

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

CONVERTIBLE = frozenset({
    "1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.5", "1.2.840.10008.1.2.4.50",
    "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81", "1.2.840.10008.1.2.4.90",
    "1.2.840.10008.1.2.4.91",
})  # fmt: skip
"""Transfer syntaxes that dcm2niix reads: uncompressed, RLE, JPEG baseline and lossless, JPEG-LS, JPEG 2000."""
BIG_ENDIAN = "1.2.840.10008.1.2.2"
END_OF_FRAMES = b"\xfe\xff\xdd\xe0\x00\x00\x00\x00"
"""Sequence delimitation item, after the last compressed frame."""
END_BYTES = 65536


def syntax_of(scan: RawScan) -> Any:
    """Return the transfer syntax of a DICOM file; implicit little endian if it has none."""
    from pydicom.uid import ImplicitVRLittleEndian

    header = scan.whole or scan.header
    meta = getattr(header, "file_meta", None)
    return (meta.get("TransferSyntaxUID") if meta is not None else None) or ImplicitVRLittleEndian


def is_cut_off(scan: RawScan) -> bool:
    """Return whether a DICOM file is smaller than the image that its header describes, or its compressed image is truncated."""
    header = scan.whole or scan.header
    if header is None:
        return False
    syntax = syntax_of(scan)
    if not syntax.is_transfer_syntax:
        return False  # how long the pixels should be is not known; reading them says so
    if syntax.is_compressed:
        with scan.path.open("rb") as file:
            file.seek(max(0, scan.path.stat().st_size - END_BYTES))
            return END_OF_FRAMES not in file.read()
    stored = len(_pixels(scan)) if syntax == dicom.DEFLATED else scan.path.stat().st_size - scan.header_bytes
    return _pixel_count(header) * (dicom.number(header, "BitsAllocated") or 0.0) / 8 > stored


def split_cut_off(scans: SequenceOf[RawScan]) -> tuple[tuple[RawScan, ...], list[int]]:
    """Return the images of complete files in the order of `scans`, and the numbers of the files that are cut off, ascending."""
    cut = {number for number, scan in {scan.number: scan for scan in scans}.items() if is_cut_off(scan)}
    return tuple(scan for scan in scans if scan.number not in cut), sorted(cut)


def _pixel_count(header: Dataset) -> float:
    """Return the number of pixels of all frames, as a header states it."""
    rows, columns, frames = (dicom.number(header, keyword) for keyword in ("Rows", "Columns", "NumberOfFrames"))
    return (rows or 0.0) * (columns or 0.0) * (frames or 1.0)


def check_size(scans: SequenceOf[RawScan]) -> None:
    """Refuse a series that would convert to more than `MAX_VOXELS`, by its headers: compressed pixels say nothing about their number."""
    sizes = {scan.number: 0.0 for scan in scans}
    for scan in scans:
        if scan.header is not None:
            sizes[scan.number] += _pixel_count(scan.header)
    if (total := sum(sizes.values())) > MAX_VOXELS:
        largest = max(sizes, key=lambda number: sizes[number])
        message = (
            f"{total / 1e6:,.0f} million pixels in one series ({len(sizes)} files, the largest is file {largest} of the case); at most"
            f" {MAX_VOXELS // 10**6} million are converted: split it, or reduce its matrix, and list the cases again"
        )
        raise DataError(message)


def _pixels(scan: RawScan) -> bytes:
    return bytes(dicom.value(dicom.read_dicom(scan.path), "PixelData") or b"")


def pixel_digest(scan: RawScan) -> str:
    """Return the digest of the stored pixels of a file, with the number of a frame: equal for copies under other UIDs."""
    return f"{_stored_digest(scan.path, scan.header_bytes, scan.path.stat().st_mtime_ns)}-{scan.frame}"


@lru_cache(maxsize=4096)
def _stored_digest(path: Path, header_bytes: int, changed_ns: int) -> str:
    """Return the digest of the bytes after the header; `changed_ns` is part of the cache key only, so that a changed file is read again."""
    return hashlib.sha256(path.read_bytes()[header_bytes:]).hexdigest() if changed_ns else ""


def is_blank(scan: RawScan) -> bool:
    """Return whether all pixels of an image are equal; False if its compression cannot be read here, or it is too large."""
    import numpy as np

    syntax = syntax_of(scan)
    if (header := scan.whole or scan.header) is None or _pixel_count(header) > MAX_VOXELS:
        return False  # `check_size` reports it
    if not syntax.is_transfer_syntax:
        return False  # reading them reports it
    if syntax.is_compressed:
        try:
            pixels = dicom.read_dicom(scan.path).pixel_array
        except Exception:  # no decoder, or damaged: the conversion reports it
            return False
    else:
        whole = _pixels(scan)
        pixels = np.frombuffer(whole[: len(whole) // 2 * 2], dtype=np.uint16)
    if scan.whole is not None and scan.frame is not None:
        pixels = np.array_split(pixels.ravel(), int(dicom.number(scan.whole, "NumberOfFrames") or 1))[scan.frame]
    return bool(pixels.size and pixels.min() == pixels.max())


def copy_dicom(scans: SequenceOf[RawScan], folder: Path) -> None:
    """Copy images to the new folder `folder` as `000001.dcm`..., one image per file, in a form that the converter reads.

    Convertible files are copied byte by byte. DataError if an image is damaged, or in a compression without a decoder here.
    """
    folder.mkdir(parents=True)
    opened: tuple[Path, Dataset] | None = None  # object by object, so that each is read once for all its frames
    for place, scan in sorted(enumerate(scans, start=1), key=lambda numbered: numbered[1].path):
        target = folder / f"{place:06d}.dcm"
        if scan.frame is None and syntax_of(scan) in CONVERTIBLE:
            shutil.copyfile(scan.path, target)
            continue
        if opened is None or opened[0] != scan.path:
            opened = scan.path, dicom.read_dicom(scan.path)
        _write_plain(scan, opened[1], target)


def _write_plain(scan: RawScan, whole: Dataset, target: Path) -> None:
    """Write one image of a file: a frame as a plain image, decompressed if the converter cannot read its compression."""
    from pydicom.dataset import Dataset as New
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    syntax = syntax_of(scan)
    image = New()
    image.update(scan.header if scan.header is not None else whole)
    image.file_meta = FileMetaDataset()
    image.file_meta.MediaStorageSOPClassUID, image.file_meta.MediaStorageSOPInstanceUID = image.SOPClassUID, image.SOPInstanceUID
    kept = syntax in CONVERTIBLE and syntax.is_compressed
    image.file_meta.TransferSyntaxUID = syntax if kept else ExplicitVRLittleEndian
    try:
        pixels = _frame_bytes(scan, whole)
        image.add_new("PixelData", "OB" if kept else "OW", pixels)
        image["PixelData"].is_undefined_length = kept
        image.save_as(target, enforce_file_format=True)
    except DataError:
        raise
    except OSError:  # a fault of the disk, not of the data
        raise
    except Exception as error:  # pydicom raises many classes, with header values in their messages
        message = f"an image could not be unpacked ({type(error).__name__})"
        raise DataError(message) from None


def _frame_bytes(scan: RawScan, whole: Dataset) -> bytes:
    """Return the pixels of one frame: little endian, or encapsulated if compressed."""
    import numpy as np
    from pydicom.encaps import encapsulate, generate_frames

    syntax = syntax_of(scan)
    count, number = int(dicom.number(whole, "NumberOfFrames") or 1), scan.frame or 0
    if syntax not in CONVERTIBLE and syntax != dicom.DEFLATED:
        return _decoded(whole, number, syntax)
    if syntax.is_compressed:
        frames = list(generate_frames(whole.PixelData, number_of_frames=count))
        if number >= len(frames):
            message = "a multi-frame object holds fewer images than its header says"
            raise DataError(message)
        return encapsulate([frames[number]])
    size = len(whole.PixelData) // count
    pixels = bytes(whole.PixelData[number * size : (number + 1) * size])
    return np.frombuffer(pixels, dtype=">u2").astype("<u2").tobytes() if syntax == BIG_ENDIAN and whole.BitsAllocated == 16 else pixels


def _decoded(whole: Dataset, number: int, syntax: Any) -> bytes:
    """Decode with pydicom one frame in a transfer syntax that the converter does not read."""
    try:
        pixels = whole.pixel_array
    except Exception:  # pydicom raises many classes where a decoder is missing
        name = syntax.name if syntax.is_transfer_syntax else "an unknown way"
        message = f"compressed in a way that nothing here reads ({name}); store it without compression and list the cases again"
        raise DataError(message) from None
    pixels = pixels[number] if pixels.ndim == 3 else pixels
    return bytes(pixels.astype(pixels.dtype.newbyteorder("<")).tobytes())


def split_duplicates(scans: SequenceOf[RawScan]) -> tuple[tuple[RawScan, ...], tuple[RawScan, ...]]:
    """Split the images of a series into originals and copies (same place, same pixels), both in the order of `scans`.

    Pixels are read only where two images are at the same place.
    """
    places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        places[place_of(scan.header)].append(scan)
    most = max(len(at_one_place) for at_one_place in places.values())
    if most == 1:
        return tuple(scans), ()
    different = {place: _first_of_each(at_one_place) for place, at_one_place in places.items() if len(at_one_place) > 1}
    # in a series of several volumes, equal slices at one place are blank slices of different volumes, not copies
    volumes = max((len(firsts) for firsts in different.values()), default=1)
    copies: set[int] = set()
    for place, firsts in different.items():
        spare = [scan for scan in places[place] if id(scan) not in firsts]
        copies |= {id(scan) for scan in spare[max(0, volumes - len(firsts)) :]}
    return tuple(scan for scan in scans if id(scan) not in copies), tuple(scan for scan in scans if id(scan) in copies)


def _first_of_each(scans: list[RawScan]) -> set[int]:
    """Return the object ids of the first image of each content."""
    firsts: dict[str, int] = {}
    for scan in scans:
        firsts.setdefault(pixel_digest(scan), id(scan))
    return set(firsts.values())


def repeated_series(series: Iterable[RawSeries]) -> dict[str, str]:
    """Map the id of every series that was sent again to the id of its original: same places, same pixels in an earlier series."""
    copies: dict[str, str] = {}
    known: list[tuple[RawSeries, dict[tuple[float, ...], list[RawScan]]]] = []
    for one in series:
        if one.header is None:
            continue
        places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
        for scan in one.scans:
            places[place_of(scan.header)].append(scan)
        original = next((other for other, theirs in known if set(places) <= set(theirs) and _repeats(places, theirs)), None)
        if original is None:
            known.append((one, places))
        else:
            copies[one.series_id] = original.series_id
    return copies


def _repeats(places: dict[tuple[float, ...], list[RawScan]], theirs: dict[tuple[float, ...], list[RawScan]]) -> bool:
    return all({pixel_digest(scan) for scan in scans} <= {pixel_digest(scan) for scan in theirs[place]} for place, scans in places.items())
