"""Sort the raw files of a case into series; exclude every file that is not part of a scan, with the reason."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.files import dicom
from neuralmedbench.ingest.bids import applies_to, entities_of
from neuralmedbench.ingest.geometry import is_mosaic, main_axis, place_of, slice_position
from neuralmedbench.ingest.raw_files import PLAIN, STORAGE, FileKind, RawScan, put_element, stem_of
from neuralmedbench.ingest.sequences import plain_words
from neuralmedbench.records.case import NoHead

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

SCANS = frozenset({"2", "4"})
"""CT and MR images: last part of their SOP Class UID. Enhanced objects were split into frames before."""
OBJECT_NAMES: tuple[tuple[str, NoHead], ...] = (
    ("7", NoHead.SCREENSHOT),
    ("77.", NoHead.PHOTOGRAPH),
    ("88.67", NoHead.DOSE_REPORT),
    ("88.68", NoHead.DOSE_REPORT),
    ("88.71", NoHead.PROTOCOL),
    ("88.59", NoHead.KEY_OBJECT),
    ("88.", NoHead.REPORT),
    ("11.", NoHead.PRESENTATION),
    ("104.", NoHead.FILE_IN_DICOM),
    ("481.", NoHead.RADIOTHERAPY),
    ("66.4", NoHead.SEGMENTATION),
    ("66.5", NoHead.SEGMENTATION),
    ("66.7", NoHead.SEGMENTATION),
    ("66.", NoHead.REGISTRATION),
    ("66", NoHead.REGISTRATION),
    ("67", NoHead.VALUE_MAP),
    ("30", NoHead.PARAMETRIC_MAP),
    ("9.", NoHead.WAVEFORM),
    ("4.2", NoHead.SPECTROSCOPY),
    ("4.3", NoHead.COLOUR),
    ("6.", NoHead.ULTRASOUND),
    ("128", NoHead.PET),
    ("130", NoHead.PET),
    ("20", NoHead.NUCLEAR),
    ("1", NoHead.RADIOGRAPH),
    ("12.", NoHead.ANGIOGRAM),
)
"""Names of other SOP classes for people, by the start of the last part of their UID (a prefix if it ends in a dot); first match counts."""
SCATTERED_FRAMES = "several frames in one object that does not say where each of them lies"
MODALITIES = {"SR": NoHead.REPORT, "PR": NoHead.PRESENTATION, "KO": NoHead.KEY_OBJECT, "DOC": NoHead.DOCUMENT}
DOSE = re.compile(r"\b(?:dose|exposure) (?:report|record|info\w*|summary)|\bpatient protocol\b|\bdosis\w*")
LOCALIZER = re.compile(
    r"\b(?:loc|locali[sz]er\w*|lokali\w*|reperage|scano\w*|scout\w*|survey|surview|topogram\w*|3 ?pl(?:ane)?|three plane|smartprep|aahead ?scout"
    r"|plan scan|calibration|asset cal)\b"
)
MAX_LOCALIZER_FILES = 45
NUMBERS_OF_IMAGE = ("InstanceNumber", "AcquisitionNumber", "TemporalPositionIdentifier", "AcquisitionTime", "EchoTime")
"""Elements by which different images at one place differ."""
STACK_SHARE, MIN_STACK = 0.8, 8
"""A smaller series in several planes is a stack with reference pictures if one plane has at least this part and number of its images."""
SKEW = 0.02
"""Tolerance of the scalar products of direction cosines against those of orthogonal unit vectors."""
SPLITTING_TYPES = frozenset({
    "ADC", "FA", "PHASE", "P", "R", "I", "TRACEW", "EADC", "MPR", "PROJECTION IMAGE", "MIP", "MNIP", "MINIP", "SUBTRACTION", "DERIVED",
    "PHASE MAP", "ADC MAP", "T1 MAP", "T2 MAP", "IP", "OP", "W", "F",
})  # fmt: skip
"""Values of ImageType by which one DICOM series is split into several."""


@dataclass(frozen=True)
class RawSeries:
    """The files of one series.

    Attributes
    ----------
    series_id : str
        `series-01`...
    scans : tuple of RawScan
        DICOM images in the order of their positions, or one NIfTI file.
    sidecars : tuple of RawScan
        Gradients and sidecars of a NIfTI file; inherited ones (BIDS) first, from far to near.
    """

    series_id: str
    scans: tuple[RawScan, ...]
    sidecars: tuple[RawScan, ...] = ()

    @property
    def header(self) -> Dataset | None:
        """Header of the first image; None for NIfTI."""
        return self.scans[0].header

    @property
    def numbers(self) -> list[int]:
        """Numbers of its files in the index, ascending."""
        return sorted({scan.number for scan in (*self.scans, *self.sidecars)})


@dataclass
class RawSeriesList:
    """All raw files of a case: its series, the reasons of excluded files, and the first file of each duplicate, by number."""

    series: list[RawSeries] = field(default_factory=list)
    excluded: dict[int, str] = field(default_factory=dict)
    first_copies: dict[int, int] = field(default_factory=dict)


def sort_into_series(scans: Iterable[RawScan]) -> RawSeriesList:
    """Sort raw files into series: DICOM by series number, then NIfTI files by name.

    Ids are numbered over all series, usable or not, so that an override of a label never changes the id of another series.
    """
    result = RawSeriesList()
    groups: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    firsts: dict[tuple[object, ...], int] = {}
    # DICOM images by series, NIfTI files, sidecars
    volumes: list[RawScan] = []
    sidecars: list[RawScan] = []
    for scan in scans:
        if scan.header is not None:
            first = firsts.setdefault(_identity_of(scan), scan.number)
            if first != scan.number:
                result.first_copies[scan.number] = first
            reason = NoHead.DUPLICATE if first != scan.number else exclusion_reason(scan.header)
            if reason:
                result.excluded[scan.number] = reason
            else:
                groups[(dicom.number(scan.header, "SeriesNumber") or 0.0, dicom.text(scan.header, "SeriesInstanceUID"))].append(scan)
        elif scan.kind is FileKind.NIFTI:
            volumes.append(scan)
        elif scan.kind is FileKind.SIDECAR:
            sidecars.append(scan)
        else:
            result.excluded[scan.number] = scan.why_not
    parts: list[tuple[tuple[RawScan, ...], tuple[RawScan, ...]]] = []  # scans and sidecars of each series
    for key in sorted(groups):
        _number_frames(groups[key])
        parts += [(part, ()) for part in _split(groups[key], result)]
    for scan in sorted(volumes, key=lambda scan: scan.path.as_posix()):
        parts.append(((scan,), tuple(sorted((one for one in sidecars if _belongs(one.path, scan.path)), key=_nearness))))
    # sidecars that belong to no scan
    used = {one.number for _, extra in parts for one in extra}
    result.excluded.update({scan.number: NoHead.WITHOUT_SCAN for scan in sidecars if scan.number not in used})
    result.series = [RawSeries(f"series-{place:02d}", part, extra) for place, (part, extra) in enumerate(parts, start=1)]
    return result


def _identity_of(scan: RawScan) -> tuple[object, ...]:
    """Return what only copies of an image share: some anonymisers write one SOPInstanceUID into all files."""
    header = scan.header
    uid = dicom.text(header, "SOPInstanceUID") if header is not None else ""
    if header is None or not uid:
        return scan.number, scan.frame
    return uid, *place_of(header), *(dicom.text(header, keyword) for keyword in NUMBERS_OF_IMAGE)


def _number_frames(scans: list[RawScan]) -> None:
    """Give the frames of a series in several objects consecutive instance numbers, by which the converter sorts volumes."""
    objects = {scan.number: scan.whole for scan in scans if scan.whole is not None}
    if len(objects) < 2:
        return

    def order(scan: RawScan) -> tuple[float, float, int, int]:
        whole = objects[scan.number]
        instance, part = (dicom.number(whole, keyword) or 0.0 for keyword in ("InstanceNumber", "InConcatenationNumber"))
        return instance, part, scan.number, scan.frame or 0

    for number, scan in enumerate(sorted((scan for scan in scans if scan.whole is not None), key=order), start=1):
        if scan.header is not None:
            put_element(scan.header, "InstanceNumber", number)


def _split(scans: list[RawScan], result: RawSeriesList) -> list[tuple[RawScan, ...]]:
    """Split the images of one SeriesInstanceUID by kind (echo, map, orientation, size, spacing); exclude localizers."""
    scans, localizer = split_localizer(scans)
    few = f"{len(localizer)} of {len(scans) + len(localizer)} images, in another plane" if scans else "few slices in several planes"
    result.excluded.update({scan.number: f"{NoHead.LOCALIZER} ({few})" for scan in localizer})
    parts: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        parts[_kind_of_image(scan.header)].append(scan)
    return [tuple(sorted(part, key=_position_key(part[0].header))) for _, part in sorted(parts.items(), key=lambda part: str(part[0]))]


def _kind_of_image(header: Dataset | None) -> tuple[object, ...]:
    if header is None:
        return ()
    orientation = tuple(round(cosine, 1) + 0.0 for cosine in dicom.numbers(header, "ImageOrientationPatient"))
    types = tuple(sorted(SPLITTING_TYPES & {part.replace("_", " ") for part in dicom.texts(header, "ImageType")}))
    echo = round(dicom.number(header, "EchoTime") or 0.0)  # in whole ms
    spacing = tuple(round(side, 2) for side in dicom.numbers(header, "PixelSpacing"))
    return echo, types, orientation, dicom.number(header, "Rows"), dicom.number(header, "Columns"), spacing


def _position_key(first: Dataset | None) -> Callable[[RawScan], tuple[float, float, int]]:
    def key(scan: RawScan) -> tuple[float, float, int]:
        header = scan.header
        if header is None or first is None:
            return 0.0, 0.0, scan.number
        return slice_position(header, first), dicom.number(header, "InstanceNumber") or 0.0, scan.number

    return key


def _belongs(sidecars: Path, scan: Path) -> bool:
    """Return whether gradients or a sidecar apply to a scan: same name and folder, or BIDS inheritance."""
    one, other = stem_of(sidecars), stem_of(scan)
    if sidecars.parent == scan.parent and one == other:
        return True
    return sidecars.parent in scan.parents and applies_to(one, other)


def _nearness(sidecars: RawScan) -> tuple[int, int, str]:
    """Sort key of sidecars: distant folders and general names first, because later sidecars override earlier ones."""
    return len(sidecars.path.parts), len(entities_of(stem_of(sidecars.path))), sidecars.path.as_posix()


def exclusion_reason(header: Dataset) -> str:
    """Return why a DICOM file is excluded, without any header value; empty if it may be part of a scan."""
    uid = dicom.text(header, "SOPClassUID")
    kind = uid.removeprefix(STORAGE)
    modality = dicom.text(header, "Modality")
    types = set(dicom.texts(header, "ImageType"))
    description = plain_words(dicom.text(header, "SeriesDescription"), dicom.text(header, "ProtocolName"))
    greys = dicom.text(header, "PhotometricInterpretation")
    placed = len(dicom.numbers(header, "ImagePositionPatient")) == 3 and len(dicom.numbers(header, "ImageOrientationPatient")) == 6
    sized = dicom.number(header, "Rows") and dicom.number(header, "Columns")
    # the first reason that applies is returned: kind of object before missing elements
    reasons = (
        (NoHead.DIRECTORY, uid == dicom.MEDIA_DIRECTORY),
        (NoHead.DOSE_REPORT, bool(DOSE.search(description)) and (kind.startswith("7") or "SCREEN SAVE" in types or not placed)),
        (NoHead.SCREENSHOT, kind.startswith("7.") or "SCREEN SAVE" in types),
        (_named(kind), kind not in SCANS | PLAIN.keys()),
        (MODALITIES.get(modality, ""), modality in MODALITIES),
        (NoHead.NEITHER_MR_NOR_CT, modality not in {"MR", "CT"}),
        (SCATTERED_FRAMES, kind in PLAIN),
        ("text is burned into the image (BurnedInAnnotation)", dicom.text(header, "BurnedInAnnotation").upper() == "YES"),
        (NoHead.COLOUR, (dicom.number(header, "SamplesPerPixel") or 1) != 1 or greys == "PALETTE COLOR"),
        ("inverted greys (MONOCHROME1): neither conversion nor defacing turns them; store it as MONOCHROME2", greys == "MONOCHROME1"),
        (NoHead.LOCALIZER, "LOCALIZER" in types or LOCALIZER.search(description) is not None),
        ("cut off before its image, or an object without one", not sized),
        (SCATTERED_FRAMES, (dicom.number(header, "NumberOfFrames") or 1) > 1),
        ("slice without a position in space", not placed and not is_mosaic(header)),
        ("pixel spacing or orientation that no image can have", not has_valid_geometry(header)),
    )
    return next((reason for reason, applies in reasons if applies), "")


def has_valid_geometry(header: Dataset) -> bool:
    """Return whether pixel spacing is positive, and row and column are orthogonal unit vectors, up to rounding in headers."""
    spacing, cosines = dicom.numbers(header, "PixelSpacing"), dicom.numbers(header, "ImageOrientationPatient")
    if len(spacing) != 2 or min(spacing) <= 0 or len(cosines) != 6:
        return False
    row, column = cosines[:3], cosines[3:]
    products = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((row, row), (column, column), (row, column)))
    return all(abs(product - expected) <= SKEW for product, expected in zip(products, (1, 1, 0), strict=True))


def _named(kind: str) -> str:
    return next(
        (name for start, name in OBJECT_NAMES if kind == start or (start.endswith(".") and kind.startswith(start))),
        NoHead.NEITHER_MR_NOR_CT,
    )


def split_localizer(scans: list[RawScan]) -> tuple[list[RawScan], list[RawScan]]:
    """Split a small series in several planes into its stack and its reference pictures; without a stack all of it is a localizer."""
    planes = [main_axis(dicom.numbers(scan.header, "ImageOrientationPatient")) if scan.header is not None else None for scan in scans]
    counts = Counter(plane for plane in planes if plane is not None)
    if len(counts) < 2 or len(scans) > MAX_LOCALIZER_FILES:
        return scans, []
    plane, images = counts.most_common(1)[0]
    if images < max(STACK_SHARE * len(scans), MIN_STACK):
        return [], scans
    stack = [scan for scan, other in zip(scans, planes, strict=True) if other in {plane, None}]
    return stack, [scan for scan, other in zip(scans, planes, strict=True) if other not in {plane, None}]
