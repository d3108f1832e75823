"""How a scan stands in a BIDS data set: its name, and a sidecar that describes it and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neuralmedbench.deid.headers.rules import BASIC, CODES
from neuralmedbench.deid.values import clean_descriptor
from neuralmedbench.files.json_files import read_json
from neuralmedbench.records.case import CaseRecord, Sequence

BIDS = {
    Sequence.T1W: ("anat", "", "T1w"),
    Sequence.CE_T1W: ("anat", "ce-gadolinium", "T1w"),
    Sequence.T2W: ("anat", "", "T2w"),
    Sequence.FLAIR: ("anat", "", "FLAIR"),
    Sequence.T2STARW: ("anat", "", "T2starw"),
    Sequence.PDW: ("anat", "", "PDw"),
    Sequence.DWI: ("dwi", "", "dwi"),
    Sequence.ADC: ("dwi", "", "ADC"),
    Sequence.SWI: ("swi", "", "swi"),
    Sequence.CT: ("ct", "", "ct"),
    Sequence.CE_CT: ("ct", "ce-contrast", "ct"),
}
"""Folder, entity and suffix of each kind of scan."""
ALLOWED = frozenset({
    "Modality", "MagneticFieldStrength", "ImagingFrequency", "Manufacturer", "MRAcquisitionType", "ScanningSequence",
    "SequenceVariant", "ScanOptions", "ImageType", "SliceThickness", "SpacingBetweenSlices", "EchoTime", "EchoNumber", "RepetitionTime",
    "InversionTime", "FlipAngle", "EchoTrainLength", "PixelBandwidth", "PercentSampling", "PercentPhaseFOV", "AcquisitionMatrixPE",
    "PhaseEncodingSteps", "ReconMatrixPE", "DiffusionBValue", "XRayExposure", "XRayTubeCurrent", "KVP", "ConvolutionKernel",
    "ImageOrientationPatientDICOM", "InPlanePhaseEncodingDirectionDICOM", "ConversionSoftware", "ConversionSoftwareVersion",
})  # fmt: skip
DEVICE = frozenset({"ManufacturersModelName", "SoftwareVersions", "ReceiveCoilName"})
"""Kept with the option 113109."""
DESCRIPTIONS = ("SeriesDescription", "ProtocolName")
"""Kept as words about scans with the option 113105."""
CLOCK = re.compile(r"(\d{2})(\d{2})(\d{2})")
SHORT_WORD = re.compile(r"[A-Za-z0-9 _.+*\\-]{1,40}")
"""With the backslash by which the converter joins several values."""
METHOD = ("headers by an allow-list", "face removed in native space")
"""A list, as BIDS wants it."""


def bids_names(case: CaseRecord) -> dict[str, str]:
    """Give the BIDS path without suffix of each series; a second series of the same kind gets `run-2`.

    Returns: By series id, for example `anat/sub-0123_ce-gadolinium_T1w`.
    """
    names: dict[str, str] = {}
    seen: Counter[Sequence] = Counter()
    for series in case.series:
        folder, entity, suffix = BIDS[series.sequence]
        seen[series.sequence] += 1
        run = f"run-{seen[series.sequence]}" if seen[series.sequence] > 1 else ""
        names[series.series_id] = f"{folder}/" + "_".join(part for part in (f"sub-{case.case_id}", entity, run, suffix) if part)
    return names


def clean_sidecar(path: Path | None, *, modality: str, codes: Iterable[str] = (), acquired: str = "") -> dict[str, Any]:
    """Give the sidecar that is published with a scan.

    `path`: what dcm2niix wrote; None for scans that came as NIfTI. Returns: Technical keys with numbers, short words or lists of them;
    descriptions reduced to words about scans.
    """
    held = sorted({BASIC, *codes})
    source = read_json(path) if path is not None else {}
    allowed = ALLOWED | (DEVICE if "113109" in held else frozenset())
    kept = {key: value for key, value in source.items() if key in allowed and _harmless(value)}
    if "113107" in held and (clock := CLOCK.fullmatch(acquired)):
        kept["AcquisitionTime"] = ":".join(clock.groups())
    for key in DESCRIPTIONS if "113105" in held else ():
        if isinstance(source.get(key), str) and (text := clean_descriptor(source[key])):
            kept[key] = text
    declared = [{"CodeValue": code, "CodingSchemeDesignator": "DCM", "CodeMeaning": CODES[code]} for code in held]
    return {**kept, "Modality": modality, "DeidentificationMethod": list(METHOD), "DeidentificationMethodCodeSequence": declared}


def _harmless(value: Any) -> bool:
    if isinstance(value, list):
        return all(_harmless(part) and not isinstance(part, list) for part in value)
    return isinstance(value, bool | int | float) or (isinstance(value, str) and SHORT_WORD.fullmatch(value) is not None)
