"""Read the raw files of a case, recognised by content and not by name; multi-frame objects frame by frame.

Positions, timing and diffusion weighting of an enhanced object are in its functional groups (PS3.3, C.7.6.16). Frames get the header of
a plain image, so that all other code handles one kind of header.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import foreign_input
from neuralmedbench.files.inside import resolve_links
from neuralmedbench.files.nifti import NIFTI_2
from neuralmedbench.files.raw_folder import RawIndex
from neuralmedbench.ingest.geometry import UIH_GRID
from neuralmedbench.ingest.sequences import B_VALUES
from neuralmedbench.records.case import NoHead

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


NIFTI_SUFFIXES = (".nii", ".nii.gz")
SIDECAR_SUFFIXES = (".bval", ".bvec", ".json")
"""Files with the gradients and the acquisition of a NIfTI file."""
NIFTI_1, TWO_FILES, TWO_FILES_2 = b"n+1\0", b"ni1\0", b"ni2\0"
HEAD = 540
"""Bytes of the longest header (NIfTI-2)."""
OTHER_FORMATS = (
    ("NRRD", b"NRRD", "", "3D Slicer"),
    ("MetaImage", b"ObjectType", "", "3D Slicer"),
    ("PAR/REC", b"# === DATA DESC", "", "dcm2niix"),
    ("PAR/REC", b"", ".rec", "dcm2niix"),
    ("MGH", b"\0\0\0\1", (".mgh", ".mgz"), "mri_convert of FreeSurfer"),
    ("MINC", b"CDF", (".mnc", ".mnc.gz"), "mnc2nii"),
    ("MINC", b"\x89HDF", ".mnc", "mnc2nii"),
    ("AFNI", b"", (".head", ".brik", ".brik.gz"), "3dAFNItoNIFTI of AFNI"),
    ("MRtrix", b"mrtrix image", "", "mrconvert of MRtrix"),
    ("ECAT", b"MATRIX7", "", "ecat2nii of TPCCLIB"),
)
"""Name, start (unzipped) and suffixes of scans in formats that are not read here, and the program that converts them."""
ANALYZE = b"\x5c\1\0\0", b"\0\0\1\x5c"
"""Length of the header (348), with which files of Analyze begin, as those of NIfTI do."""
OFFICE_PARTS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/", b"mimetype")
"""Names with which office documents, which are zip archives, begin."""
FIRST_NAME = 30
"""Where a zip archive has the name of its first file."""
OLD_OFFICE = b"\xd0\xcf\x11\xe0"
START = 2**17
"""Bytes that are read of any file: enough for the names before a compressed header."""
ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ")

MAX_TEXT_BYTES = 20_000_000
"""Bytes of the largest note, health record or sidecar that is read."""
TOO_LONG = f"a text of more than {MAX_TEXT_BYTES // 10**6} MB; keep what belongs to the case and list the cases again"

FILE_NAMES = "numbered_files.tsv"
"""Paths of a case's files by number, for people; beside the private index."""

PAIR = "NIfTI in two files (.hdr and .img): convert it to one .nii; fslchfiletype of FSL does it"
NO_SIDES = "a scan in another format (Analyze), which does not say which side is left: use its DICOM files"
MISNAMED = "named as NIfTI, but it holds none (damaged, or another format)"


STORAGE = "1.2.840.10008.5.1.4.1.1."
PLAIN = {"2.1": "2", "2.2": "2", "4.1": "4", "4.4": "4"}
"""Plain SOP class for the frames of enhanced and legacy-converted CT and MR, without the prefix `STORAGE`."""
SHARED, EACH = "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"
NOT_OF_A_FRAME = (
    SHARED, EACH, "NumberOfFrames", "DimensionIndexSequence", "DimensionOrganizationSequence", "ConcatenationUID", "InConcatenationNumber",
    "ConcatenationFrameOffsetNumber", "InConcatenationTotalNumber", "PixelData",
)  # fmt: skip
LIFTED: dict[str, dict[str, str]] = {
    "PixelMeasuresSequence": {name: name for name in ("PixelSpacing", "SliceThickness", "SpacingBetweenSlices")},
    "PlaneOrientationSequence": {"ImageOrientationPatient": "ImageOrientationPatient"},
    "PlanePositionSequence": {"ImagePositionPatient": "ImagePositionPatient"},
    "PixelValueTransformationSequence": {name: name for name in ("RescaleIntercept", "RescaleSlope", "RescaleType")},
    "MRTimingAndRelatedParametersSequence": {name: name for name in ("RepetitionTime", "FlipAngle", "EchoTrainLength")},
    "MREchoSequence": {"EffectiveEchoTime": "EchoTime"},
    "MRModifierSequence": {"InversionTimes": "InversionTime"},
    "MRDiffusionSequence": {"DiffusionBValue": "DiffusionBValue"},
    "FrameContentSequence": {"TemporalPositionIndex": "TemporalPositionIdentifier"},
    "MRImageFrameTypeSequence": {"FrameType": "ImageType"},
    "CTImageFrameTypeSequence": {"FrameType": "ImageType"},
    "CTAcquisitionDetailsSequence": {"GantryDetectorTilt": "GantryDetectorTilt"},
    "CTReconstructionSequence": {"ConvolutionKernel": "ConvolutionKernel"},
}
"""Elements taken from each functional group, with their keyword in a plain image."""
TILES = ((0x0029, 0x1010), (0x0019, 0x100A), UIH_GRID)
"""Private elements with the layout of the tiles of a mosaic: Siemens (CSA header, number of images), UIH."""
PRIVATE_IN_USE = frozenset({*TILES, *B_VALUES.values()})
"""Private elements that are read from the header of a plain image."""
ECHOES = {"SPIN": ["SE"], "GRADIENT": ["GR"], "BOTH": ["SE", "GR"]}


class FileKind(StrEnum):
    """Kind of a raw file, by its content."""

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
        Its path.
    header : Dataset or None
        DICOM header; of a frame the header of an equivalent plain image.
    kind : FileKind
        Its kind.
    why_not : str
        Reason for which it is not a scan; empty for a scan.
    frame : int or None
        Number of the frame from 0; None for a file with one image.
    whole : Dataset or None
        Header of the multi-frame object of a frame.
    header_bytes : int
        Number of bytes before the pixels of a DICOM file.
    """

    number: int
    path: Path
    header: Dataset | None = None
    kind: FileKind = FileKind.DICOM
    why_not: str = ""
    frame: int | None = None
    whole: Dataset | None = None
    header_bytes: int = 0

    @property
    def is_json(self) -> bool:
        """Return whether it is named as JSON."""
        return self.path.suffix.lower() == ".json"


def load_raw_files(index: RawIndex, root: Path) -> list[RawScan]:
    """Read the headers of all raw files in the order of the index, multi-frame objects frame by frame.

    The first header of every series is whole, the others are without sequences and private elements.

    DataError if a file is absent, changed since the listing, or has a relative path that leads outside the folder; messages name files by
    number.
    """
    scans: list[RawScan] = []
    whole: set[str] = set()
    shared: dict[Any, Any] = {}
    for number, file in enumerate(index.files, start=1):
        what = f"file {number} of {len(index.files)}"
        scan = read_raw_file(number, path_inside(root, file.path, what), file.sha256, what)
        series = dicom.text(scan.header, "SeriesInstanceUID") if scan.header is not None else ""
        if series in whole:
            drop_bulk(scan, shared)
        whole.add(series)
        scans += frames_of(scan)
    return scans


def drop_bulk(scan: RawScan, shared: dict[Any, Any]) -> None:
    """Drop what nobody reads from the header of a plain image: a scanner's own elements take 300 kB a file. `shared` as in `dicom.drop_bulk`."""
    if scan.header is not None and not holds_frames(scan.header):
        dicom.drop_bulk(scan.header, PRIVATE_IN_USE, shared)


def frames_of(scan: RawScan) -> Iterable[RawScan]:
    """Split a multi-frame object into its frames; return anything else unchanged, and as no scan what cannot be split."""
    if scan.header is None or not holds_frames(scan.header):
        return [scan]
    try:
        with foreign_input():
            headers = list(frame_headers(scan.header))
    except DataError as error:
        return [replace(scan, header=None, kind=FileKind.OTHER, why_not=f"not a scan: {error}")]
    return [replace(scan, header=header, frame=frame, whole=scan.header) for frame, header in enumerate(headers)]


def path_inside(root: Path, path: str, what: str) -> Path:
    """Return the path of an indexed file; DataError if a relative one, or a link, leads outside the folder."""
    full = root / path
    if Path(path).is_absolute():
        return full  # written by a listing, which checked it against its source
    try:
        inside = resolve_links(full).is_relative_to(root.resolve())
    except OSError:  # a link that leads to itself
        inside = False
    if not inside:
        message = f"{what} lies outside the folder of the index; list the cases again (nmb cases list)"
        raise DataError(message)
    return full


def read_raw_file(number: int, path: Path, sha256: str = "", what: str = "a file") -> RawScan:
    """Read the header of one raw file, and compare its digest if one is given. DataError as in `load_raw_files`."""
    with opened(path, sha256, what) as file:
        start = file.read(START)
        if path.name.lower().endswith(SIDECAR_SUFFIXES):
            if path.stat().st_size > MAX_TEXT_BYTES:
                return RawScan(number, path, kind=FileKind.OTHER, why_not=TOO_LONG)
            return RawScan(number, path, kind=FileKind.SIDECAR)
        if dicom.looks_like_dicom(start):
            try:
                dicom.check_file_size(path)
                header, length = dicom.header_and_length(start + file.read())
            except dicom.TooLargeError as error:
                return RawScan(number, path, kind=FileKind.OTHER, why_not=str(error))
            except DataError as error:
                return RawScan(number, path, kind=FileKind.OTHER, why_not=f"not a scan: {error}")
            return RawScan(number, path, header, header_bytes=length)
    why_not = _why_no_nifti(start, path)
    return RawScan(number, path, kind=FileKind.OTHER if why_not else FileKind.NIFTI, why_not=why_not)


def _why_no_nifti(start: bytes, path: Path) -> str:
    """Return why a file is not a NIfTI file, by its first bytes; empty if it is one."""
    name = path.name.lower()
    if name.endswith((".img", ".img.gz")) and (header := _header_of_voxels(path)):
        return header
    zipped = start[:2] == b"\x1f\x8b"
    head = _unzipped(start) if zipped else start[:HEAD]
    if head[344:348] == NIFTI_1 or head[4:8] == NIFTI_2:
        return ""
    formats = (
        f"a scan in another format ({name_of_format}): convert it to NIfTI, or use its DICOM files; {program} converts it"
        for name_of_format, magic, suffixes, program in OTHER_FORMATS
        if head.startswith(magic) and name.endswith(suffixes)
    )
    other = next(formats, "")
    # the first reason that applies is returned
    reasons = (
        (NoHead.EMPTY, not start),
        (PAIR, head[344:348] == TWO_FILES or head[4:8] == TWO_FILES_2),
        (MISNAMED, name.endswith(NIFTI_SUFFIXES)),
        (NO_SIDES, head.startswith(ANALYZE) and name.endswith((".hdr", ".hdr.gz"))),
        (other, bool(other)),
        (NoHead.OFFICE, start.startswith(OLD_OFFICE) or start.startswith(OFFICE_PARTS, FIRST_NAME)),
        (NoHead.ARCHIVE, zipped or start.startswith(ARCHIVES)),
    )
    return next((reason for reason, applies in reasons if applies), NoHead.NO_SCAN)


def _header_of_voxels(path: Path) -> str:
    """Return why the header beside the voxels of a scan in two files (.hdr and .img) is no NIfTI file; empty without one."""
    stem = path.name.lower().rpartition(".img")[0]
    headers = (file for file in path.parent.iterdir() if file.name.lower() in {f"{stem}.hdr", f"{stem}.hdr.gz"})
    header = next(headers, None)
    if header is None:
        return ""
    with header.open("rb") as file:
        return _why_no_nifti(file.read(START), header)


def _unzipped(start: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(start, HEAD)
    except zlib.error:
        return b""


@contextmanager
def opened(path: Path, sha256: str, what: str) -> Iterator[BinaryIO]:
    """Open a raw file after comparing its digest, if one is given; a DataError names it as `what`, never by its path."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        message = f"{what} is not where it was listed; put it back, or list the cases again (nmb cases list)"
        raise DataError(message) from None
    with file:
        if sha256 and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            message = f"{what} is not what was listed (other digest); list the cases again (nmb cases list)"
            raise DataError(message)
        file.seek(0)
        yield file


def checked_bytes(path: Path, sha256: str, what: str) -> bytes:
    """Read a raw file of which it is known that it is small; DataError as in `opened`."""
    with opened(path, sha256, what) as file:
        return file.read()


def read_sidecar(path: Path) -> dict[str, Any]:
    """Return the fields of a sidecar; DataError if it is not a JSON object."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        message = "the sidecar beside a scan is not a JSON object"
        raise DataError(message)
    return fields


def merge_sidecars(paths: Iterable[Path]) -> dict[str, Any]:
    """Return the fields of sidecars from far to near, of which later ones override earlier ones (BIDS inheritance); DataError as in `read_sidecar`."""
    fields: dict[str, Any] = {}
    for path in paths:
        fields |= read_sidecar(path)
    return fields


def stem_of(path: Path) -> str:
    """Return the file name without `.nii`, `.nii.gz`, `.bval`..."""
    name = path.name
    for suffix in (*NIFTI_SUFFIXES[::-1], *SIDECAR_SUFFIXES):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return path.stem


def holds_frames(header: Dataset) -> bool:
    """Return whether an object is an enhanced one with functional groups per frame."""
    return dicom.text(header, "SOPClassUID").removeprefix(STORAGE) in PLAIN and bool(dicom.value(header, EACH))


def frame_headers(header: Dataset) -> Iterator[Dataset]:
    """Yield a plain header per frame of an enhanced CT or MR object, without pixels, in the order of the frames.

    Elements of the functional groups move to the top level under their plain keywords. The UID of a frame is derived from that of the
    object and its number.
    """
    from pydicom.dataset import Dataset as New
    from pydicom.uid import generate_uid

    base = New()
    base.update({element.tag: element for element in header if element.keyword not in NOT_OF_A_FRAME})
    _plain_names(base, header)
    shared = dicom.value(header, SHARED) or []
    for number, groups in enumerate(dicom.value(header, EACH) or [], start=1):
        frame = New()
        frame.update(base)
        for group in (*shared, groups):
            _lift(group, frame)
        put_element(frame, "InstanceNumber", number)
        put_element(frame, "SOPInstanceUID", generate_uid(entropy_srcs=[dicom.text(header, "SOPInstanceUID"), str(number)]))
        frame.file_meta = header.file_meta
        yield frame


def _lift(group: Dataset, frame: Dataset) -> None:
    for sequence, names in LIFTED.items():
        items = dicom.value(group, sequence)
        if not items:
            continue
        for source, target in names.items():
            value: Any = dicom.value(items[0], source)
            if value is not None:
                put_element(frame, target, value)


def put_element(frame: Dataset, keyword: str, value: Any) -> None:
    """Set an element of one frame; the old element is deleted, not changed, because all frames share it."""
    if keyword in frame:
        delattr(frame, keyword)
    setattr(frame, keyword, value)


def _plain_names(base: Dataset, header: Dataset) -> None:
    """Add the attributes of the whole object under the keywords of plain images."""
    kind = dicom.text(header, "SOPClassUID").removeprefix(STORAGE)
    put_element(base, "SOPClassUID", STORAGE + PLAIN[kind])
    if name := dicom.text(header, "PulseSequenceName"):
        put_element(base, "SequenceName", name)
    echoes = [
        *ECHOES.get(dicom.text(header, "EchoPulseSequence"), []),
        *(["EP"] if dicom.text(header, "EchoPlanarPulseSequence") == "YES" else []),
        *(["IR"] if dicom.text(header, "InversionRecovery") == "YES" else []),
    ]
    if echoes and "ScanningSequence" not in base:
        base.ScanningSequence = echoes
    agents = dicom.value(header, "ContrastBolusAgentSequence")
    if agents and "ContrastBolusAgent" not in base:
        base.ContrastBolusAgent = dicom.text(agents[0], "CodeMeaning") or "YES"
