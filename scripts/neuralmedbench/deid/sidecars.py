"""Sidecars of NIfTI files: the keys that describe the scan, nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from neuralmedbench.deid.values import clean_descriptor
from neuralmedbench.io.files import read_json

ALLOWED = frozenset({
    "Modality", "MagneticFieldStrength", "ImagingFrequency", "Manufacturer", "ManufacturersModelName", "MRAcquisitionType", "ScanningSequence",
    "SequenceVariant", "ScanOptions", "ImageType", "SliceThickness", "SpacingBetweenSlices", "EchoTime", "EchoNumber", "RepetitionTime",
    "InversionTime", "FlipAngle", "EchoTrainLength", "PixelBandwidth", "PercentSampling", "PercentPhaseFOV", "AcquisitionMatrixPE",
    "PhaseEncodingSteps", "ReconMatrixPE", "DiffusionBValue", "XRayExposure", "XRayTubeCurrent", "KVP", "ConvolutionKernel",
    "ImageOrientationPatientDICOM", "InPlanePhaseEncodingDirectionDICOM", "ConversionSoftware", "ConversionSoftwareVersion",
})  # fmt: skip
DESCRIPTIONS = ("SeriesDescription", "ProtocolName")
SHORT_WORD = re.compile(r"[A-Za-z0-9 _.+*-]{1,40}")
METHOD = "headers by an allow-list, face removed in native space"


def clean_sidecar(path: Path | None, *, modality: str) -> dict[str, Any]:
    """Give the sidecar that is published with a scan.

    Parameters
    ----------
    path : Path or None
        What dcm2niix wrote; None for scans that came as NIfTI.
    modality : str
        DICOM Modality.

    Returns
    -------
    dict
        Technical keys with numbers, short words or lists of them; descriptions reduced to words about scans.
    """
    source = read_json(path) if path is not None else {}
    kept = {key: value for key, value in source.items() if key in ALLOWED and _harmless(value)}
    for key in DESCRIPTIONS:
        if isinstance(source.get(key), str) and (text := clean_descriptor(source[key])):
            kept[key] = text
    return {**kept, "Modality": modality, "DeidentificationMethod": METHOD}


def _harmless(value: Any) -> bool:
    if isinstance(value, list):
        return all(_harmless(part) and not isinstance(part, list) for part in value)
    return isinstance(value, bool | int | float) or (isinstance(value, str) and SHORT_WORD.fullmatch(value) is not None)
