"""Which intensities of a scan are shown as black and white: one window a volume, set by the brain and never by the scalp."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import Sequence

Floats = npt.NDArray[np.float32]
Window = tuple[float, float]

COMPUTED = (Sequence.CT, Sequence.CE_CT)
"""Computed tomography: values are Hounsfield units."""
CT_WINDOWS: dict[str, Window] = {"brain": (0.0, 80.0), "blood": (-20.0, 180.0), "bone": (-800.0, 2000.0)}
"""Fixed windows in HU (centre/width 40/80, 80/200 and 600/2800)."""
VESSEL_WINDOW: Window = (0.0, 160.0)
"""The brain window of CT with contrast agent: vessels stay below white."""

PERCENTILES = (0.5, 99.5)
BRIGHT_PERCENTILES = (1.0, 99.8)
"""For T1 with contrast agent: an enhancing lesion is the brightest spot of the brain, and may be small."""
BRIGHT_MEDIANS = 1.6
"""Least white of T1 with contrast agent in medians of the brain: without it, and with nothing large that enhances, white matter would be
nearly white, and a small enhancing plaque beside it would be lost."""
DWI_MEDIANS = 2.5
"""White of a diffusion picture in medians of the brain: with a bright infarct as white, any percentile would turn the brain black."""
ADC_WINDOW: Window = (0.0, 2000.0)
"""In 1e-6 mm2/s: healthy brain (700 to 900) is a dark grey, an acute infarct (400) nearly black, fluid (3000) white."""
ADC_UNITS = (1e-6, 1e-3, 1.0)
"""Units in which scanners write ADC maps, in mm2/s."""
ADC_BRAIN = (400e-6, 2000e-6)
"""Median ADC that a brain with its fluid can have, in mm2/s."""


def window_of(sequence: Sequence, voxels: npt.NDArray[np.float32 | np.int16], brain: npt.NDArray[np.bool_]) -> Window:
    """Choose the intensities that are shown as black and white.

    Parameters
    ----------
    sequence : Sequence
        Kind of scan; CT gets a fixed window in HU, an ADC map one in its own unit.
    voxels : ndarray of float32 or int16, shape (Z, Y, X)
        The volume.
    brain : ndarray of bool, shape (Z, Y, X)
        Where intensities are looked at: with the scalp, fat would set the scale.

    Returns
    -------
    tuple of float
        Black and white, in the volume's own units, rounded to four digits.

    Raises
    ------
    DataError
        If the brain is empty or of one value, or the unit of an ADC map is not known.
    """
    if sequence in COMPUTED:
        return VESSEL_WINDOW if sequence is Sequence.CE_CT else CT_WINDOWS["brain"]
    inside = voxels[brain].astype(np.float32, copy=False)
    if not inside.size:
        message = f"the {sequence.value} scan shows no brain, so that no window can be chosen; exclude the series"
        raise DataError(message)
    if sequence is Sequence.ADC:
        per_micro = 1e-6 / adc_unit(inside)
        return _rounded(ADC_WINDOW[0] * per_micro, ADC_WINDOW[1] * per_micro)
    if sequence is Sequence.DWI:
        low, high = 0.0, DWI_MEDIANS * float(np.median(inside))
    elif sequence is Sequence.CE_T1W:
        low, high = (float(value) for value in np.percentile(inside, BRIGHT_PERCENTILES))
        high = max(high, BRIGHT_MEDIANS * float(np.median(inside)))
    else:
        low, high = (float(value) for value in np.percentile(inside, PERCENTILES))
    window = _rounded(low, high)
    if window[1] <= window[0] or float(inside.min()) == float(inside.max()):
        message = f"the brain of the {sequence.value} scan has one grey value only; exclude the series"
        raise DataError(message)
    return window


def adc_unit(inside: Floats) -> float:
    """Find the unit of an ADC map.

    Parameters
    ----------
    inside : ndarray of float32
        Its values in the brain.

    Returns
    -------
    float
        The unit in mm2/s: one of `ADC_UNITS`, whose plausible medians do not overlap.

    Raises
    ------
    DataError
        If the median of the brain fits none.
    """
    median = float(np.median(inside))
    for unit in ADC_UNITS:
        if ADC_BRAIN[0] <= median * unit <= ADC_BRAIN[1]:
            return unit
    message = f"the brain of the ADC map has a median of {median:.3g}, which fits no unit of diffusion; override its sequence or exclude it"
    raise DataError(message)


def shared_window(t1: Window, enhanced: dict[str, Window], matches: dict[str, tuple[float, float]]) -> dict[str, Window]:
    """Give T1 and T1 after contrast one window: what is equally bright in the patient is equally bright in both pictures.

    Parameters
    ----------
    t1 : tuple of float
        Own window of the T1 scan.
    enhanced : dict of str to tuple of float
        Own windows of the scans after contrast, by series id.
    matches : dict of str to tuple of float
        Gain and offset of each: value = gain * (value of the T1 scan) + offset.

    Returns
    -------
    dict of str to tuple of float
        The window from the darkest black to the brightest white of all of them, in each scan's own units; that of T1 under `t1`.
    """
    in_t1 = [t1, *(((low - matches[name][1]) / matches[name][0], (high - matches[name][1]) / matches[name][0])
                   for name, (low, high) in enhanced.items())]  # fmt: skip
    low, high = min(window[0] for window in in_t1), max(window[1] for window in in_t1)
    own = {name: _rounded(gain * low + offset, gain * high + offset) for name, (gain, offset) in matches.items()}
    return {"t1": _rounded(low, high), **own}


def _rounded(low: float, high: float) -> Window:
    return float(f"{low:.4g}"), float(f"{high:.4g}")
