"""Why a raw DICOM file is no part of a scan."""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING

from neuralmedbench.files import dicom
from neuralmedbench.ingest.frames import STORAGE
from neuralmedbench.ingest.orientation import main_axis
from neuralmedbench.ingest.words import plain_words

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

SCANS = frozenset({"2", "4"})
"""CT and MR images: the last part of their SOP Class UID. Enhanced ones were taken apart before."""
NAMES: tuple[tuple[str, str], ...] = (
    ("7", "screenshot (secondary capture)"),
    ("77.", "photograph or video"),
    ("88.67", "dose report"),
    ("88.68", "dose report"),
    ("88.71", "acquisition protocol or dose record"),
    ("88.59", "key object selection"),
    ("88.", "structured report"),
    ("11.", "presentation state"),
    ("104.", "document (encapsulated PDF or other file)"),
    ("481.", "radiotherapy object"),
    ("66.4", "segmentation mask"),
    ("66.5", "segmentation mask"),
    ("66.7", "segmentation mask"),
    ("66.", "registration, fiducials or raw data"),
    ("66", "registration, fiducials or raw data"),
    ("67", "value map without an image"),
    ("30", "parametric map"),
    ("9.", "waveform"),
    ("4.2", "spectroscopy"),
    ("4.3", "colour picture, not a scan"),
    ("6.", "ultrasound"),
    ("128", "PET image"),
    ("130", "PET image"),
    ("20", "nuclear medicine image"),
    ("1", "radiograph"),
    ("12.", "angiogram or fluoroscopy"),
)
"""SOP classes by the start of the last part of their UID, the longer starts first: what they are to a person."""
MEDIA_DIRECTORY = "1.2.840.10008.1.3.10"
SEVERAL_FRAMES = frozenset({"2.1", "2.2", "4.1", "4.4"})
MODALITIES = {"SR": "structured report", "PR": "presentation state", "KO": "key object selection", "DOC": "document"}
DOSE = re.compile(r"\b(?:dose|exposure) (?:report|record|info\w*|summary)|\bpatient protocol\b|\bdosis\w*")
LOCALIZER = re.compile(
    r"\b(?:loc|locali[sz]er\w*|lokali\w*|reperage|scano\w*|scout\w*|survey|surview|topogram\w*|3 ?pl(?:ane)?|three plane|smartprep|aahead ?scout"
    r"|plan scan|calibration|asset cal)\b"
)
MAX_LOCALIZER_FILES = 45
SKEW = 0.02
"""By how much products of direction cosines may differ from those of unit vectors at right angles."""


def file_reason(header: Dataset) -> str:
    """Why a DICOM file is set aside, in words that hold no header value; empty when it may be part of a scan."""
    uid = dicom.text(header, "SOPClassUID")
    kind = uid.removeprefix(STORAGE)
    modality = dicom.text(header, "Modality")
    types = set(dicom.texts(header, "ImageType"))
    description = plain_words(dicom.text(header, "SeriesDescription"), dicom.text(header, "ProtocolName"))
    greys = dicom.text(header, "PhotometricInterpretation")
    placed = len(dicom.numbers(header, "ImagePositionPatient")) == 3 and len(dicom.numbers(header, "ImageOrientationPatient")) == 6
    sized = dicom.number(header, "Rows") and dicom.number(header, "Columns")
    reasons = (
        ("directory of a medium (DICOMDIR)", uid == MEDIA_DIRECTORY),
        ("dose report", bool(DOSE.search(description)) and (kind.startswith("7") or "SCREEN SAVE" in types or not placed)),
        ("screenshot (secondary capture)", kind.startswith("7.") or "SCREEN SAVE" in types),
        (_named(kind), kind not in SCANS | SEVERAL_FRAMES),
        (MODALITIES.get(modality, ""), modality in MODALITIES),
        ("neither an MR nor a CT image", modality not in {"MR", "CT"}),
        ("several frames in one object that does not say where each of them lies", kind in SEVERAL_FRAMES),
        ("text is burned into the image (BurnedInAnnotation)", dicom.text(header, "BurnedInAnnotation").upper() == "YES"),
        ("colour picture, not a scan", (dicom.number(header, "SamplesPerPixel") or 1) != 1 or greys == "PALETTE COLOR"),
        ("inverted greys (MONOCHROME1): neither conversion nor defacing turns them; store it as MONOCHROME2", greys == "MONOCHROME1"),
        ("localizer", "LOCALIZER" in types or LOCALIZER.search(description) is not None),
        ("cut off before its image, or an object without one", not sized),
        ("several frames in one object that does not say where each of them lies", (dicom.number(header, "NumberOfFrames") or 1) > 1),
        ("slice without a position in space", not placed),
        ("pixel spacing or orientation that no image can have", not is_possible(header)),
    )
    return next((reason for reason, applies in reasons if applies), "")


def is_possible(header: Dataset) -> bool:
    """Whether pixels have two sides and the rows and columns of an image stand at right angles, up to what headers round."""
    spacing, cosines = dicom.numbers(header, "PixelSpacing"), dicom.numbers(header, "ImageOrientationPatient")
    if len(spacing) != 2 or min(spacing) <= 0 or len(cosines) != 6:
        return False
    row, column = cosines[:3], cosines[3:]
    products = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((row, row), (column, column), (row, column)))
    return all(abs(product - expected) <= SKEW for product, expected in zip(products, (1, 1, 0), strict=True))


def _named(kind: str) -> str:
    return next(
        (name for start, name in NAMES if kind == start or (start.endswith(".") and kind.startswith(start))), "neither an MR nor a CT image"
    )


def is_several_planes(firsts: SequenceOf[Dataset | None], total: int) -> bool:
    """Whether one small series shows several planes, as only a localizer does.

    Parameters
    ----------
    firsts : sequence of Dataset
        One header of each kind of image in the series.
    total : int
        Number of files in the series.
    """
    planes = {main_axis(dicom.numbers(header, "ImageOrientationPatient")) for header in firsts if header is not None}
    return len(planes - {None}) > 1 and total <= MAX_LOCALIZER_FILES
