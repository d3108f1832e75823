"""The pixels of raw DICOM files: whether they are complete, which images are there twice, and copies that can be converted."""

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
from neuralmedbench.ingest.raw_files import RawScan
from neuralmedbench.ingest.raw_series import RawSeries

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

CONVERTIBLE = frozenset({
    "1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.5", "1.2.840.10008.1.2.4.50",
    "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81", "1.2.840.10008.1.2.4.90",
    "1.2.840.10008.1.2.4.91",
})  # fmt: skip
"""Transfer syntaxes that dcm2niix reads: not compressed, RLE, JPEG baseline and lossless, JPEG-LS, JPEG 2000."""
DEFLATED, BIG_ENDIAN = "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2"
END_OF_FRAMES = b"\xfe\xff\xdd\xe0\x00\x00\x00\x00"


def syntax_of(scan: RawScan) -> Any:
    """Transfer syntax of a DICOM file; implicit little endian when it names none."""
    from pydicom.uid import ImplicitVRLittleEndian

    header = scan.whole or scan.header
    meta = getattr(header, "file_meta", None)
    return (meta.get("TransferSyntaxUID") if meta is not None else None) or ImplicitVRLittleEndian


def is_cut_off(scan: RawScan) -> bool:
    """Whether a DICOM file is smaller than the image that its header describes, or its compressed image has no end."""
    header = scan.whole or scan.header
    if header is None:
        return False
    syntax = syntax_of(scan)
    if syntax.is_compressed and syntax != DEFLATED:
        return END_OF_FRAMES not in scan.path.read_bytes()[-65536:]
    stored = len(_pixels(scan)) if syntax == DEFLATED else scan.path.stat().st_size - scan.header_bytes
    return _image_bytes(header) > stored


def _image_bytes(header: Dataset) -> float:
    rows, columns, bits = (dicom.number(header, keyword) or 0.0 for keyword in ("Rows", "Columns", "BitsAllocated"))
    return rows * columns * bits / 8 * (dicom.number(header, "NumberOfFrames") or 1)


def _pixels(scan: RawScan) -> bytes:
    return bytes(dicom.value(dicom.read_dicom(scan.path), "PixelData") or b"")


def pixel_digest(scan: RawScan) -> str:
    """Digest of the pixels of a file (of a frame with its number), as they are stored: equal for copies under other UIDs."""
    return f"{_stored_digest(scan.path, scan.header_bytes, scan.path.stat().st_mtime_ns)}-{scan.frame}"


@lru_cache(maxsize=4096)
def _stored_digest(path: Path, header_bytes: int, changed_ns: int) -> str:
    """Digest of what follows the header; a file that changed in between (`changed_ns`) is read anew."""
    return hashlib.sha256(path.read_bytes()[header_bytes:]).hexdigest() if changed_ns else ""


def is_blank(scan: RawScan) -> bool:
    """Whether every pixel of an image is the same; False when its compression cannot be read here."""
    import numpy as np

    syntax = syntax_of(scan)
    if syntax.is_compressed and syntax != DEFLATED:
        try:
            pixels = dicom.read_dicom(scan.path).pixel_array
        except Exception:  # no decoder, or damaged: the conversion finds out
            return False
    else:
        whole = _pixels(scan)
        pixels = np.frombuffer(whole[: len(whole) // 2 * 2], dtype=np.uint16)
    if scan.whole is not None and scan.frame is not None:
        pixels = np.array_split(pixels.ravel(), int(dicom.number(scan.whole, "NumberOfFrames") or 1))[scan.frame]
    return bool(pixels.size and pixels.min() == pixels.max())


def copy_dicom(scans: SequenceOf[RawScan], folder: Path) -> None:
    """Copy images under neutral names, so that each file is one image that the converter reads.

    `folder`: new folder for `000001.dcm`...; a file that can be converted as it is is copied byte by byte. Raises DataError if an image is
    compressed in a way that nothing here reads, or damaged.
    """
    folder.mkdir(parents=True)
    opened: tuple[Path, Dataset] | None = None
    for place, scan in enumerate(scans, start=1):
        target = folder / f"{place:06d}.dcm"
        if scan.frame is None and syntax_of(scan) in CONVERTIBLE:
            shutil.copyfile(scan.path, target)
            continue
        if opened is None or opened[0] != scan.path:
            opened = scan.path, dicom.read_dicom(scan.path)
        _write_plain(scan, opened[1], target)


def _write_plain(scan: RawScan, whole: Dataset, target: Path) -> None:
    """Write one image of a file: a frame of it as a plain image, and unpacked where the converter could not."""
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
    except OSError:  # of the disk, not of the data
        raise
    except Exception as error:  # pydicom raises many kinds, with values in their texts
        message = f"an image could not be unpacked ({type(error).__name__})"
        raise DataError(message) from None


def _frame_bytes(scan: RawScan, whole: Dataset) -> bytes:
    """Pixels of one frame, little endian, or one compressed frame in the form of a file."""
    import numpy as np
    from pydicom.encaps import encapsulate, generate_frames

    syntax = syntax_of(scan)
    count, number = int(dicom.number(whole, "NumberOfFrames") or 1), scan.frame or 0
    if syntax not in CONVERTIBLE and syntax != DEFLATED:
        return _decoded(whole, number, syntax)
    if syntax.is_compressed and syntax != DEFLATED:
        frames = list(generate_frames(whole.PixelData, number_of_frames=count))
        if number >= len(frames):
            message = "a multi-frame object holds fewer images than its header says"
            raise DataError(message)
        return encapsulate([frames[number]])
    size = len(whole.PixelData) // count
    pixels = bytes(whole.PixelData[number * size : (number + 1) * size])
    return np.frombuffer(pixels, dtype=">u2").astype("<u2").tobytes() if syntax == BIG_ENDIAN and whole.BitsAllocated == 16 else pixels


def _decoded(whole: Dataset, number: int, syntax: Any) -> bytes:
    """Decode with pydicom what the converter does not read."""
    try:
        pixels = whole.pixel_array
    except Exception:  # pydicom raises many kinds where a decoder lacks
        name = syntax.name if syntax.is_transfer_syntax else "an unknown way"
        message = f"compressed in a way that nothing here reads ({name}); store it without compression and list the cases again"
        raise DataError(message) from None
    pixels = pixels[number] if pixels.ndim == 3 else pixels
    return bytes(pixels.astype(pixels.dtype.newbyteorder("<")).tobytes())


def split_duplicates(scans: SequenceOf[RawScan]) -> tuple[tuple[RawScan, ...], tuple[RawScan, ...]]:
    """Tell the images of a series from copies of them: same place, same pixels.

    Returns: What is kept, in the order of `scans`, and the copies. Pixels are read only where two images lie at the same place.
    """
    places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        places[_place(scan)].append(scan)
    most = max(len(at_one_place) for at_one_place in places.values())
    if most == 1:
        return tuple(scans), ()
    different = {place: _first_of_each(at_one_place) for place, at_one_place in places.items() if len(at_one_place) > 1}
    # several volumes lie at the same places: their empty slices are equal and are no copies
    volumes = max((len(firsts) for firsts in different.values()), default=1)
    copies: set[int] = set()
    for place, firsts in different.items():
        spare = [scan for scan in places[place] if id(scan) not in firsts]
        copies |= {id(scan) for scan in spare[max(0, volumes - len(firsts)) :]}
    return tuple(scan for scan in scans if id(scan) not in copies), tuple(scan for scan in scans if id(scan) in copies)


def _first_of_each(scans: list[RawScan]) -> set[int]:
    """Identities of the first image with each content."""
    firsts: dict[str, int] = {}
    for scan in scans:
        firsts.setdefault(pixel_digest(scan), id(scan))
    return set(firsts.values())


def repeated_series(series: Iterable[RawSeries]) -> dict[str, str]:
    """Find series that were sent again: every image of them is in an earlier series, at the same place and with the same pixels.

    Returns: By the id of the copy, the id of the series that it repeats.
    """
    found: dict[str, str] = {}
    known: list[tuple[RawSeries, dict[tuple[float, ...], list[RawScan]]]] = []
    for one in series:
        if one.header is None:
            continue
        places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
        for scan in one.scans:
            places[_place(scan)].append(scan)
        original = next((other for other, theirs in known if set(places) <= set(theirs) and _repeats(places, theirs)), None)
        if original is None:
            known.append((one, places))
        else:
            found[one.series_id] = original.series_id
    return found


def _repeats(places: dict[tuple[float, ...], list[RawScan]], theirs: dict[tuple[float, ...], list[RawScan]]) -> bool:
    return all({pixel_digest(scan) for scan in scans} <= {pixel_digest(scan) for scan in theirs[place]} for place, scans in places.items())


def _place(scan: RawScan) -> tuple[float, ...]:
    """Where an image lies and how large it is; images of different series are compared only when this is equal."""
    header = scan.header
    if header is None:
        message = "an image without a header has no place"
        raise DataError(message)
    numbers = (*dicom.numbers(header, "ImagePositionPatient"), *dicom.numbers(header, "ImageOrientationPatient"))
    return (*(round(number, 2) + 0.0 for number in numbers), *(dicom.number(header, side) or 0.0 for side in ("Rows", "Columns")))
