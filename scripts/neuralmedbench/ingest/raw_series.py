"""The raw files of a case, sorted into series; every file that is no part of a scan is set aside with a reason."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import DataError
from neuralmedbench.ingest.orientation import slice_position
from neuralmedbench.ingest.sequences import Physics, plain_words
from neuralmedbench.ingest.set_aside import file_reason, is_several_planes
from neuralmedbench.io import dicom
from neuralmedbench.io.raw_index import RawIndex

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

NIFTI_SUFFIXES = (".nii", ".nii.gz")
GRADIENT_SUFFIXES = (".bval", ".bvec")
SPLITTING_TYPES = frozenset({"ADC", "FA", "PHASE", "P", "R", "I", "TRACEW", "EADC", "MPR", "PROJECTION IMAGE", "MIP", "SUBTRACTION"})
"""Words of ImageType that make another kind of image within one series."""


@dataclass(frozen=True)
class RawScan:
    """One raw file: its number in the index, where it lies, and its DICOM header when it is DICOM."""

    number: int
    path: Path
    header: Dataset | None = None


@dataclass(frozen=True)
class RawSeries:
    """The files of one series.

    Attributes
    ----------
    series_id : str
        `series-01`...
    scans : tuple of RawScan
        DICOM files in the order of their positions, or one NIfTI file.
    beside : tuple of RawScan
        What belongs to a NIfTI file: gradients.
    """

    series_id: str
    scans: tuple[RawScan, ...]
    beside: tuple[RawScan, ...] = ()

    @property
    def header(self) -> Dataset | None:
        """Header of the first file; None for NIfTI."""
        return self.scans[0].header


@dataclass
class Sorted:
    """All raw files of a case: the series, and the reasons of the others by file number."""

    series: list[RawSeries] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)


def load_raw_files(index: RawIndex, root: Path) -> list[RawScan]:
    """Read the headers of all raw files, and check that each still holds what was listed.

    Parameters
    ----------
    index : RawIndex
        The private index.
    root : Path
        Folder that relative paths start from.

    Returns
    -------
    list of RawScan
        In the order of the index. A file that is not readable DICOM has no header.

    Raises
    ------
    DataError
        If a file is absent or holds something else than when it was listed; files are known by their number.
    """
    return [read_raw_file(number, root / file.path, file.sha256, len(index.files)) for number, file in enumerate(index.files, start=1)]


def read_raw_file(number: int, path: Path, sha256: str = "", total: int = 0) -> RawScan:
    """Read one raw file's header; without a digest nothing is compared. DataError as in `load_raw_files`."""
    content = checked_bytes(path, sha256, f"file {number} of {total}")
    if is_nifti(path) or path.name.endswith(GRADIENT_SUFFIXES):
        return RawScan(number, path)
    try:
        return RawScan(number, path, dicom.read_header(content))
    except DataError:
        return RawScan(number, path)


def checked_bytes(path: Path, sha256: str, what: str) -> bytes:
    """Read a raw file and compare its digest; a DataError names it by `what`, never by its path."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        message = f"{what} is not where it was listed; put it back, or list the cases again (scripts/list_cases.py)"
        raise DataError(message) from None
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        message = f"{what} is not what was listed (other digest); list the cases again (scripts/list_cases.py)"
        raise DataError(message)
    return content


def is_cut_off(scan: RawScan) -> bool:
    """Whether an uncompressed DICOM file is smaller than the image that its header describes."""
    header = scan.header
    syntax = getattr(header, "file_meta", {}).get("TransferSyntaxUID")
    if header is None or syntax is None or syntax.is_compressed:
        return False
    sizes = [dicom.number(header, keyword) for keyword in ("Rows", "Columns", "BitsAllocated")]
    rows, columns, bits = (size or 0.0 for size in sizes)
    return scan.path.stat().st_size < rows * columns * bits / 8 * (dicom.number(header, "NumberOfFrames") or 1)


def is_nifti(path: Path) -> bool:
    """Whether a file is NIfTI by its name."""
    return path.name.lower().endswith(NIFTI_SUFFIXES)


def stem_of(path: Path) -> str:
    """File name without `.nii`, `.nii.gz`, `.bval`..."""
    name = path.name
    for suffix in (*NIFTI_SUFFIXES[::-1], *GRADIENT_SUFFIXES):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem


def sort_into_series(scans: Iterable[RawScan]) -> Sorted:
    """Sort raw files into series.

    Parameters
    ----------
    scans : iterable of RawScan
        All raw files of one case.

    Returns
    -------
    Sorted
        DICOM series by series number, then NIfTI files by name; ids count all of them, so that an override of a label never
        changes another series' id.
    """
    result = Sorted()
    groups: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    seen: set[str] = set()
    volumes: list[RawScan] = []
    beside: dict[str, list[RawScan]] = defaultdict(list)
    for scan in scans:
        if scan.header is not None:
            uid = dicom.text(scan.header, "SOPInstanceUID")
            reason = "duplicate of another file" if uid in seen else file_reason(scan.header)
            seen |= {uid} - {""}
            if reason:
                result.set_aside[scan.number] = reason
            else:
                groups[(dicom.number(scan.header, "SeriesNumber") or 0.0, dicom.text(scan.header, "SeriesInstanceUID"))].append(scan)
        elif is_nifti(scan.path):
            volumes.append(scan)
        elif scan.path.name.endswith(GRADIENT_SUFFIXES):
            beside[(scan.path.parent / stem_of(scan.path)).as_posix()].append(scan)
        else:
            result.set_aside[scan.number] = "not a scan (neither readable DICOM nor NIfTI)"
    found: list[tuple[tuple[RawScan, ...], tuple[RawScan, ...]]] = []
    for key in sorted(groups):
        found += [(part, ()) for part in _split(groups[key], result)]
    for scan in sorted(volumes, key=lambda scan: scan.path.as_posix()):
        found.append(((scan,), tuple(beside.pop((scan.path.parent / stem_of(scan.path)).as_posix(), ()))))
    for rest in beside.values():
        result.set_aside.update({scan.number: "gradients without their scan" for scan in rest})
    result.series = [RawSeries(f"series-{place:02d}", part, extra) for place, (part, extra) in enumerate(found, start=1)]
    return result


def _split(scans: list[RawScan], result: Sorted) -> list[tuple[RawScan, ...]]:
    """One SeriesInstanceUID may hold several kinds of image: echoes, maps, orientations."""
    parts: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        parts[_kind_of_image(scan.header)].append(scan)
    if is_several_planes([part[0].header for part in parts.values()], len(scans)):
        result.set_aside.update({scan.number: "localizer (few slices in several planes)" for scan in scans})
        return []
    return [tuple(sorted(part, key=_position_key(part[0].header))) for _, part in sorted(parts.items(), key=lambda part: str(part[0]))]


def _kind_of_image(header: Dataset | None) -> tuple[object, ...]:
    if header is None:
        return ()
    orientation = tuple(round(cosine, 1) + 0.0 for cosine in dicom.numbers(header, "ImageOrientationPatient"))
    types = tuple(sorted(SPLITTING_TYPES & set(dicom.texts(header, "ImageType"))))
    echo = round(dicom.number(header, "EchoTime") or 0.0)
    return echo, types, orientation, dicom.number(header, "Rows"), dicom.number(header, "Columns")


def _position_key(first: Dataset | None) -> Callable[[RawScan], tuple[float, float, int]]:
    def key(scan: RawScan) -> tuple[float, float, int]:
        header = scan.header
        if header is None or first is None:
            return 0.0, 0.0, scan.number
        return slice_position(header, first), dicom.number(header, "InstanceNumber") or 0.0, scan.number

    return key


def words_of(header: Dataset) -> str:
    """Collect the words of a header that tell the kind of scan."""
    keywords = ("SeriesDescription", "ProtocolName", "SequenceName", "ImageType")
    return plain_words(*(dicom.text(header, keyword).replace("\\", " ") for keyword in keywords))


def physics_of(header: Dataset) -> Physics:
    """Collect timing, diffusion weighting and agent of a header."""
    return Physics(
        repetition_ms=dicom.number(header, "RepetitionTime"),
        echo_ms=dicom.number(header, "EchoTime"),
        inversion_ms=dicom.number(header, "InversionTime"),
        b_value=b_value_of(header),
        agent=dicom.text(header, "ContrastBolusAgent"),
    )


def b_value_of(header: Dataset) -> float | None:
    """Diffusion weighting in s/mm2: of the standard's element, or of the vendors' private ones (Siemens, Philips, GE)."""
    standard = dicom.number(header, "DiffusionBValue")
    if standard is not None:
        return standard
    for group, number in ((0x0019, 0x100C), (0x2001, 0x1003), (0x0043, 0x1039)):
        try:
            raw = header[group, number].value
            first = raw.decode("ascii").split("\\")[0] if isinstance(raw, bytes) else raw if isinstance(raw, int | float | str) else raw[0]
            # GE adds 1e9 to the b-value of some software versions
            return float(first) % 100_000
        except Exception:  # absent, or of another shape: the header does not tell
            continue
    return None
