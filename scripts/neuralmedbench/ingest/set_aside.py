"""Why a raw DICOM file is no part of a scan."""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING

from neuralmedbench.ingest.orientation import main_axis
from neuralmedbench.ingest.sequences import plain_words
from neuralmedbench.io import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

STORAGE = "1.2.840.10008.5.1.4.1.1."
SCANS = frozenset({"2", "2.1", "2.2", "4", "4.1", "4.4"})
"""CT and MR images, plain, enhanced and legacy-converted: the last part of their SOP Class UID."""
LOCALIZER = re.compile(
    r"\b(?:loc|locali[sz]er\w*|scout\w*|survey|surview|topogram|3 ?plane|three plane|smartprep|aahead ?scout|plan scan|calibration|asset cal)\b"
)
MAX_LOCALIZER_FILES = 45


def file_reason(header: Dataset) -> str:
    """Why a DICOM file is set aside, in words that hold no header value; empty when it may be part of a scan."""
    kind = dicom.text(header, "SOPClassUID").removeprefix(STORAGE)
    modality = dicom.text(header, "Modality")
    types = set(dicom.texts(header, "ImageType"))
    description = plain_words(dicom.text(header, "SeriesDescription"), dicom.text(header, "ProtocolName"))
    frames = dicom.number(header, "NumberOfFrames") or 1
    placed = len(dicom.numbers(header, "ImagePositionPatient")) == 3 and len(dicom.numbers(header, "ImageOrientationPatient")) == 6
    reasons = (
        ("screenshot (secondary capture)", kind == "7" or kind.startswith("7.") or "SCREEN SAVE" in types),
        ("segmentation mask", kind.startswith("66")),
        (
            "report or presentation state without an image of a scan",
            kind.startswith(("88.", "11.", "104.", "481.")) or modality in {"SR", "PR", "KO", "DOC"},
        ),
        ("neither an MR nor a CT image", kind not in SCANS or modality not in {"MR", "CT"}),
        ("text is burned into the image (BurnedInAnnotation)", dicom.text(header, "BurnedInAnnotation").upper() == "YES"),
        ("colour picture, not a scan", (dicom.number(header, "SamplesPerPixel") or 1) != 1),
        ("localizer", "LOCALIZER" in types or LOCALIZER.search(description) is not None),
        ("slice without a position in space", not placed and frames < 2),
    )
    return next((reason for reason, applies in reasons if applies), "")


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
