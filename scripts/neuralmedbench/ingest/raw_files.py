"""The raw files of a case, known by what they hold and not by their names."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.raw_index import RawIndex
from neuralmedbench.ingest.frames import frame_headers, holds_frames

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

NIFTI_SUFFIXES = (".nii", ".nii.gz")
SIDECAR_SUFFIXES = (".bval", ".bvec", ".json")
"""What lies beside a NIfTI file and says how it was made."""
NIFTI_1, NIFTI_2, TWO_FILES = b"n+1\0", b"n+2\0", b"ni1\0"
HEAD = 540
ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ")

EMPTY = "empty file (0 bytes)"
ARCHIVE = "an archive or a compressed file: unpack it beside the others"
PAIR = "NIfTI in two files (.hdr and .img): convert it to one .nii"
MISNAMED = "named as NIfTI, but it holds none (damaged, or another format)"
NO_SCAN = "not a scan (neither readable DICOM nor NIfTI)"


class FileKind(StrEnum):
    """What a raw file is."""

    DICOM = "dicom"
    NIFTI = "nifti"
    SIDECAR = "sidecar"
    PICTURE = "picture"
    OTHER = "other"


@dataclass(frozen=True)
class RawScan:
    """One raw file, or one frame of a multi-frame object.

    Attributes
    ----------
    number : int
        Number of the file in the index.
    path : Path
        Where it lies.
    header : Dataset or None
        DICOM header; of a frame the one that a single image of it would have.
    kind : Kind
        What it is by its content.
    why_not : str
        Why a file of another kind is no scan.
    frame : int or None
        Number of the frame from 0; None for a file with one image.
    whole : Dataset or None
        Header of the object that a frame is part of.
    header_bytes : int
        How many bytes of a DICOM file stand before its pixels.
    """

    number: int
    path: Path
    header: Dataset | None = None
    kind: FileKind = FileKind.DICOM
    why_not: str = ""
    frame: int | None = None
    whole: Dataset | None = None
    header_bytes: int = 0


def load_raw_files(index: RawIndex, root: Path) -> list[RawScan]:
    """Read the headers of all raw files, and check that each still holds what was listed.

    Returns: In the order of the index; a multi-frame object is there frame by frame. Raises DataError if a file is absent, holds something
    else than when it was listed, or lies outside the folder although its path is relative; files are known by their number.
    """
    scans: list[RawScan] = []
    for number, file in enumerate(index.files, start=1):
        what = f"file {number} of {len(index.files)}"
        scans += frames_of(read_raw_file(number, path_inside(root, file.path, what), file.sha256, what))
    return scans


def frames_of(scan: RawScan) -> Iterable[RawScan]:
    """Give a multi-frame object frame by frame; anything else as it is."""
    if scan.header is None or not holds_frames(scan.header):
        return [scan]
    return [replace(scan, header=header, frame=frame, whole=scan.header) for frame, header in enumerate(frame_headers(scan.header))]


def path_inside(root: Path, path: str, what: str) -> Path:
    """Give the path of an indexed file; DataError when a relative one climbs out of its folder, or a link leads out of it."""
    found = root / path
    if Path(path).is_absolute():
        return found  # a listing writes whole paths, already checked against its source
    if not found.resolve().is_relative_to(root.resolve()):
        message = f"{what} lies outside the folder of the index; list the cases again (nmb cases list)"
        raise DataError(message)
    return found


def read_raw_file(number: int, path: Path, sha256: str = "", what: str = "a file") -> RawScan:
    """Read one raw file's header; without a digest nothing is compared. DataError as in `load_raw_files`."""
    content = checked_bytes(path, sha256, what)
    if path.name.lower().endswith(SIDECAR_SUFFIXES):
        return RawScan(number, path, kind=FileKind.SIDECAR)
    if dicom.looks_like_dicom(content[: dicom.PREAMBLE + 4]):
        try:
            header, length = dicom.header_and_length(content)
        except DataError as error:
            return RawScan(number, path, kind=FileKind.OTHER, why_not=f"{NO_SCAN}: {error}")
        return RawScan(number, path, header, header_bytes=length)
    why_not = _why_no_nifti(content, path)
    return RawScan(number, path, kind=FileKind.OTHER if why_not else FileKind.NIFTI, why_not=why_not)


def _why_no_nifti(content: bytes, path: Path) -> str:
    """Why some bytes are no NIfTI file; empty when they are one."""
    if not content:
        return EMPTY
    zipped = content[:2] == b"\x1f\x8b"
    head = _unzipped(content) if zipped else content[:HEAD]
    if head[344:348] == NIFTI_1 or head[4:8] == NIFTI_2:
        return ""
    if head[344:348] == TWO_FILES:
        return PAIR
    if path.name.lower().endswith(NIFTI_SUFFIXES):
        return MISNAMED
    return ARCHIVE if zipped or content.startswith(ARCHIVES) else NO_SCAN


def _unzipped(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(content, HEAD)
    except zlib.error:
        return b""


def checked_bytes(path: Path, sha256: str, what: str) -> bytes:
    """Read a raw file and compare its digest; a DataError names it by `what`, never by its path."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        message = f"{what} is not where it was listed; put it back, or list the cases again (nmb cases list)"
        raise DataError(message) from None
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        message = f"{what} is not what was listed (other digest); list the cases again (nmb cases list)"
        raise DataError(message)
    return content


def stem_of(path: Path) -> str:
    """File name without `.nii`, `.nii.gz`, `.bval`..."""
    name = path.name
    for suffix in (*NIFTI_SUFFIXES[::-1], *SIDECAR_SUFFIXES):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem
