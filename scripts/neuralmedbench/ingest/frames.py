"""Enhanced multi-frame objects taken apart: each frame with the header that a plain image of it would have.

Positions, timing and diffusion weighting of an enhanced object stand in its functional groups (PS3.3, C.7.6.16). Taken apart, they
are measured, labelled, cleaned and converted like every other scan, and nothing has to know two kinds of header.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

STORAGE = "1.2.840.10008.5.1.4.1.1."
PLAIN = {"2.1": "2", "2.2": "2", "4.1": "4", "4.4": "4"}
"""Enhanced and legacy-converted CT and MR, and the plain kind of image that a frame of each is."""
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
"""What is taken out of each functional group, and the name that it has in a plain image."""
ECHOES = {"SPIN": ["SE"], "GRADIENT": ["GR"], "BOTH": ["SE", "GR"]}


def holds_frames(header: Dataset) -> bool:
    """Whether an object is an enhanced one whose functional groups say where each frame lies."""
    return dicom.text(header, "SOPClassUID").removeprefix(STORAGE) in PLAIN and bool(dicom.value(header, EACH))


def frame_headers(header: Dataset) -> Iterator[Dataset]:
    """Give the header of each frame, in the order of the frames.

    `header`: header of an enhanced CT or MR object, without pixels. Returns: Plain header: what stands in functional groups has its plain
    name, the groups are gone. Each frame has a UID of its own, made from that of the object and its number.
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
        _put(frame, "InstanceNumber", number)
        _put(frame, "SOPInstanceUID", generate_uid(entropy_srcs=[dicom.text(header, "SOPInstanceUID"), str(number)]))
        frame.file_meta = header.file_meta
        yield frame


def _lift(group: Dataset, frame: Dataset) -> None:
    for sequence, names in LIFTED.items():
        items = dicom.value(group, sequence)
        if not items:
            continue
        for source, target in names.items():
            found: Any = dicom.value(items[0], source)
            if found is not None:
                _put(frame, target, found)


def _put(frame: Dataset, keyword: str, value: Any) -> None:
    """Set an element of one frame; its element is new, because the old one is shared by all frames."""
    if keyword in frame:
        delattr(frame, keyword)
    setattr(frame, keyword, value)


def _plain_names(base: Dataset, header: Dataset) -> None:
    """Give what the whole object says the names that plain images use."""
    kind = dicom.text(header, "SOPClassUID").removeprefix(STORAGE)
    _put(base, "SOPClassUID", STORAGE + PLAIN[kind])
    if name := dicom.text(header, "PulseSequenceName"):
        _put(base, "SequenceName", name)
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
