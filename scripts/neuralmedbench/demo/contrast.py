"""Signal of each tissue in each sequence, and the acquisition parameters for the DICOM header."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuralmedbench.demo.grid import Volume
from neuralmedbench.demo.head import Tissue


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One sequence of a study.

    Attributes
    ----------
    description : str
        SeriesDescription and ProtocolName.
    signal : dict of Tissue to float
        Intensity of each tissue, white matter about 100 in T1 (CT: Hounsfield units, ADC: 1e-6 mm2/s); 0 if absent.
    noise : float
        Standard deviation of the noise in each channel, in units of `signal`.
    bias : float
        Largest relative deviation of the bias field; 0 for maps and CT, which have none.
    blur : int
        Side of the box filter, in voxels, that blurs a slice within its plane (1: no blur).
    tags : dict
        DICOM keywords and their values.
    image_type : tuple of str
        DICOM ImageType.
    """

    description: str
    signal: dict[Tissue, float]
    noise: float
    bias: float = 0.15
    blur: int = 1
    tags: dict[str, object] = field(default_factory=dict)
    image_type: tuple[str, ...] = ("ORIGINAL", "PRIMARY", "M", "ND", "NORM")

    @property
    def is_ct(self) -> bool:
        """True if this is computed tomography."""
        return "KVP" in self.tags

    @property
    def air(self) -> float:
        """Signal of air."""
        return self.signal[Tissue.AIR]

    def lookup(self) -> Volume:
        """Return the intensities indexed by tissue number."""
        table = np.zeros(len(Tissue), np.float32)
        for tissue, value in self.signal.items():
            table[tissue] = value
        return table


def _signal(*values: float) -> dict[Tissue, float]:
    return dict(zip(Tissue, values, strict=True))


#                   air csf  gm  wm bone marrow fat muscle skin vitreous lens mucosa dura vessel
_T1 = _signal(0, 22, 63, 94, 8, 78, 150, 55, 62, 20, 48, 60, 40, 35)
_T1C = _signal(0, 22, 66, 95, 8, 82, 150, 60, 66, 20, 48, 125, 75, 170)
_SPIN = {"ScanningSequence": "SE", "SequenceVariant": ["SK", "SP", "OSP"], "MRAcquisitionType": "2D"}

PROTOCOLS: dict[str, Protocol] = {
    "T1": Protocol(
        description="T1_SE_TRA",
        signal=_T1,
        noise=2.2,
        tags=_SPIN | {"SequenceName": "*se2d1", "RepetitionTime": 500.0, "EchoTime": 9.0, "FlipAngle": 90.0},
    ),
    "T1-3D": Protocol(
        description="T1_MPRAGE_SAG_ISO",
        signal=_T1,
        noise=3.2,
        tags={
            "ScanningSequence": ["GR", "IR"],
            "SequenceVariant": ["SK", "SP", "MP"],
            "MRAcquisitionType": "3D",
            "SequenceName": "*tfl3d1_16ns",
            "RepetitionTime": 2300.0,
            "EchoTime": 2.98,
            "InversionTime": 900.0,
            "FlipAngle": 9.0,
        },
    ),
    "T1C+": Protocol(
        description="T1_SE_TRA_KM",
        signal=_T1C,
        noise=2.2,
        tags=_SPIN
        | {
            "SequenceName": "*se2d1",
            "RepetitionTime": 500.0,
            "EchoTime": 9.0,
            "FlipAngle": 90.0,
            "ContrastBolusAgent": "Gadobutrol",
            "ContrastBolusRoute": "IV",
            "ContrastBolusVolume": 7.5,
        },
    ),
    "T2": Protocol(
        description="T2_TSE_TRA",
        signal=_signal(0, 225, 108, 76, 6, 62, 118, 36, 55, 230, 42, 150, 45, 12),
        noise=3.5,
        tags=_SPIN | {"SequenceName": "*tse2d1_15", "RepetitionTime": 4800.0, "EchoTime": 98.0, "FlipAngle": 150.0, "EchoTrainLength": 15},
    ),
    "FLAIR": Protocol(
        description="T2_TIRM_TRA_DARK-FLUID",
        signal=_signal(0, 12, 94, 70, 5, 38, 84, 34, 42, 14, 34, 95, 38, 12),
        noise=3.0,
        tags={
            "ScanningSequence": ["SE", "IR"],
            "SequenceVariant": ["SK", "SP", "MP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*tir2d1_16",
            "RepetitionTime": 9000.0,
            "EchoTime": 88.0,
            "InversionTime": 2500.0,
            "FlipAngle": 150.0,
            "EchoTrainLength": 16,
        },
    ),
    "DWI": Protocol(
        description="EP2D_DIFF_TRA_TRACEW",
        signal=_signal(0, 10, 62, 54, 2, 5, 9, 14, 16, 8, 16, 22, 8, 4),
        noise=3.0,
        blur=3,
        tags={
            "ScanningSequence": "EP",
            "SequenceVariant": ["SK", "SP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*ep_b1000t",
            "RepetitionTime": 5600.0,
            "EchoTime": 92.0,
            "FlipAngle": 90.0,
            "DiffusionBValue": 1000.0,
            "DiffusionDirectionality": "ISOTROPIC",
        },
        image_type=("DERIVED", "PRIMARY", "DIFFUSION", "TRACEW", "ND", "NORM"),
    ),
    "ADC": Protocol(
        description="EP2D_DIFF_TRA_ADC",
        signal=_signal(0, 3000, 840, 740, 0, 0, 0, 1200, 900, 2900, 800, 1500, 500, 300),
        noise=35,
        bias=0,
        blur=3,
        tags={
            "ScanningSequence": "EP",
            "SequenceVariant": ["SK", "SP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*ep_b0_1000",
            "RepetitionTime": 5600.0,
            "EchoTime": 92.0,
            "FlipAngle": 90.0,
        },
        image_type=("DERIVED", "PRIMARY", "DIFFUSION", "ADC", "ND", "NORM"),
    ),
    "SWI": Protocol(
        description="SWI_TRA",
        signal=_signal(0, 112, 98, 86, 4, 30, 62, 55, 58, 118, 40, 50, 40, 10),
        noise=3.0,
        tags={
            "ScanningSequence": "GR",
            "SequenceVariant": ["SP", "OSP"],
            "MRAcquisitionType": "2D",
            "SequenceName": "*fl2d1_swi",
            "RepetitionTime": 650.0,
            "EchoTime": 20.0,
            "FlipAngle": 20.0,
        },
        image_type=("ORIGINAL", "PRIMARY", "M", "SWI", "NORM"),
    ),
    "CT": Protocol(
        description="CCT NATIVE HEAD 5.0",
        signal=_signal(-1000, 7, 38, 28, 1150, 480, -95, 52, 30, 8, 75, 40, 52, 50),
        noise=3.5,
        bias=0,
        tags={
            "KVP": 120.0,
            "XRayTubeCurrent": 280,
            "ExposureTime": 1000,
            "Exposure": 280,
            "ConvolutionKernel": "J40s",
            "GantryDetectorTilt": 0.0,
            "FilterType": "0",
            "RescaleType": "HU",
        },
        image_type=("ORIGINAL", "PRIMARY", "AXIAL"),
    ),
}
"""The sequences, by the names of NeuroVLM-Bench (`T1-3D` is a T1 at 1 mm)."""
