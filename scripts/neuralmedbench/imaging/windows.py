"""Display windows: the intensities shown as black and white, one window per volume, chosen in the brain and never in the scalp.

T1 before and after contrast agent get one window, in matched units, because scanners choose the gain separately for every series. It leaves
at least half of the grey scale to the brain of each scan; where it would show grey air, each scan keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import read_volume
from neuralmedbench.imaging.scans import copy_path
from neuralmedbench.records.case import CT_SEQUENCES, Sequence, Series

if TYPE_CHECKING:
    import SimpleITK as sitk


Floats = npt.NDArray[np.float32]
Window = tuple[float, float]

CT_WINDOWS: dict[str, Window] = {
    "brain": (0.0, 80.0),
    "blood": (-20.0, 180.0),
    "bone": (-800.0, 2000.0),
    "soft-tissue": (-135.0, 215.0),
    "wide": (-1024.0, 1024.0),
}
"""Fixed windows in HU (centre/width 40/80, 80/200, 600/2800, 40/350 and 0/2048)."""
VESSEL_WINDOW: Window = (0.0, 160.0)
"""Brain window of CT with contrast agent, in HU: vessels stay below white."""

PERCENTILES = (0.5, 99.5)
BRIGHT_PERCENTILES = (1.0, 99.8)
"""For T1 with contrast agent: an enhancing lesion is the brightest spot of the brain, and may be small."""
BRIGHT_MEDIANS = 1.6
"""Lower bound of white in T1 with contrast agent, in medians of the brain. Without it, in a brain where nothing large enhances, white
matter would be nearly white and a small enhancing plaque invisible."""
WIDEST = 1.5
"""Upper bound of that white, in ranges of the brain from black: with an offset of the units, the median says nothing about the range."""
DWI_MEDIANS = 2.5
"""White of a diffusion scan, in medians of the brain: a percentile would follow a bright infarct and turn the brain black."""
ADC_WINDOW: Window = (0.0, 2000.0)
"""In 1e-6 mm2/s: healthy brain (700 to 900) is dark grey, an acute infarct (400) nearly black, fluid (3000) white."""
ADC_UNITS = (1e-6, 1e-3, 1.0)
"""Units in which scanners store ADC maps, in mm2/s."""
ADC_BRAIN = (400e-6, 2000e-6)
"""Plausible median ADC of a brain with its fluid, in mm2/s."""
TRIMMED_SHARE = 0.7
"""Fraction of the brain's voxels used by the fit of units; the rest may enhance, have moved or lie at an edge."""
FIT_ROUNDS = 20
MIN_CORRELATION = 0.5
"""Below this correlation of the fitted voxels the contrasts differ too much for one window."""
MIN_BRAIN_SHARE, MAX_AIR = 0.5, 0.03
"""Limits of a shared window, as fractions of it: the least width of each scan's own window, and the brightest air."""
AIR_PERCENTILE = 5.0
"""Percentile of a scan's values that is air, or the empty ground around a brain without skull."""


def window_of(sequence: Sequence, voxels: npt.NDArray[np.float32 | np.int16], brain: npt.NDArray[np.bool_]) -> Window:
    """Choose the window of a scan.

    Parameters
    ----------
    sequence : Sequence
        Kind of scan; CT gets a fixed window in HU, an ADC map a fixed one in its own unit.
    voxels : ndarray of float32 or int16, shape (Z, Y, X)
        The volume.
    brain : ndarray of bool, shape (Z, Y, X)
        Only these voxels count: in the scalp, fat would set the scale.

    Returns
    -------
    tuple of float
        Black and white, in the volume's own units, rounded to four digits.

    Raises
    ------
    DataError
        If the brain is empty or of one value, or the unit of an ADC map cannot be inferred.
    """
    if sequence in CT_SEQUENCES:
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
        high = max(high, min(BRIGHT_MEDIANS * float(np.median(inside)), low + WIDEST * (high - low)))
    else:
        low, high = (float(value) for value in np.percentile(inside, PERCENTILES))
    window = _rounded(low, high)
    if window[1] <= window[0] or float(inside.min()) == float(inside.max()):
        message = f"the brain of the {sequence.value} scan has one grey value only; exclude the series"
        raise DataError(message)
    return window


def adc_unit(inside: Floats) -> float:
    """Infer the unit of an ADC map, one of `ADC_UNITS` (mm2/s), from its values in the brain; DataError if none fits.

    The ranges of plausible medians do not overlap between units.
    """
    median = float(np.median(inside))
    for unit in ADC_UNITS:
        if ADC_BRAIN[0] <= median * unit <= ADC_BRAIN[1]:
            return unit
    message = f"the brain of the ADC map has a median of {median:.3g}, which fits no unit of diffusion; override its sequence or exclude it"
    raise DataError(message)


def shared_window(t1: Window, enhanced: dict[str, Window], matches: dict[str, tuple[float, float]]) -> dict[str, Window]:
    """Return one window for T1 before and after contrast agent: equal signals are equally bright in both pictures.

    Parameters
    ----------
    t1 : tuple of float
        Window of the T1 scan alone.
    enhanced : dict of str to tuple of float
        Windows of the scans after contrast agent alone, by series id.
    matches : dict of str to tuple of float
        Gain and offset per series id: value = gain * (value of the T1 scan) + offset.

    Returns
    -------
    dict of str to tuple of float
        From the darkest black to the brightest white of all, in the units of each scan; `t1` is the key of the T1 scan.
    """
    # all windows in the units of the T1 scan, united, then in the units of each scan
    in_t1 = [t1, *(((low - matches[name][1]) / matches[name][0], (high - matches[name][1]) / matches[name][0])
                   for name, (low, high) in enhanced.items())]  # fmt: skip
    low, high = min(window[0] for window in in_t1), max(window[1] for window in in_t1)
    converted = {name: _rounded(gain * low + offset, gain * high + offset) for name, (gain, offset) in matches.items()}
    return {"t1": _rounded(low, high), **converted}


def keep_brain_share(shared: dict[str, Window], own: dict[str, Window]) -> dict[str, Window]:
    """Lower the white of a shared window until the own window of each scan has `MIN_BRAIN_SHARE` of it; what enhances more is white."""
    shares = (_width(own[name]) / _width(window) for name, window in shared.items())
    part = min(shares) / MIN_BRAIN_SHARE
    if part >= 1:
        return shared
    return {name: _rounded(low, low + part * (high - low)) for name, (low, high) in shared.items()}


def has_black_air(voxels: Floats, window: Window) -> bool:
    """Return True if the air of a scan is (nearly) black through a window."""
    return float(np.percentile(voxels, AIR_PERCENTILE)) <= window[0] + MAX_AIR * _width(window)


def _width(window: Window) -> float:
    return window[1] - window[0]


def _rounded(low: float, high: float) -> Window:
    return float(f"{low:.4g}"), float(f"{high:.4g}")


@dataclass(frozen=True)
class Match:
    """Linear relation between the units of two scans: value = gain * other + offset.

    Attributes
    ----------
    gain, offset : float
        Offset in the units of the scan.
    correlation : float
        Correlation of the fitted voxels.
    """

    gain: float
    offset: float
    correlation: float


def match_units(other: Floats, scan: Floats) -> Match | None:
    """Fit gain and offset between two scans of the same brain.

    Parameters
    ----------
    other, scan : ndarray of float32, shape (N,)
        Values of the same voxels of the brain, after registration.

    Returns
    -------
    Match or None
        None if there are too few voxels, or the scans are not positively correlated.

    Notes
    -----
    Least trimmed squares (Rousseeuw 1984): start from the ratio of the medians, then repeatedly fit the 70 % of the voxels nearest to the
    line. The slope is the ratio of the standard deviations (reduced major axis), because both scans are noisy and ordinary regression
    would underestimate it.
    """
    if other.size < 100 or float(np.median(other)) <= 0 or float(np.median(scan)) <= 0:
        return None
    x, y = other.astype(np.float64), scan.astype(np.float64)
    gain, offset = float(np.median(y) / np.median(x)), 0.0
    near = np.ones(x.size, dtype=bool)
    for _ in range(FIT_ROUNDS):
        residual = np.abs(y - gain * x - offset)
        near = residual <= np.quantile(residual, TRIMMED_SHARE)
        spread = float(x[near].std())
        if spread == 0:
            return None
        before = gain, offset
        gain = float(y[near].std()) / spread
        offset = float(y[near].mean() - gain * x[near].mean())
        if np.allclose(before, (gain, offset), rtol=1e-4, atol=1e-3):
            break
    correlation = float(np.corrcoef(x[near], y[near])[0, 1]) if gain > 0 else 0.0
    return Match(gain, offset, correlation) if correlation > 0 else None


def share_window(series: list[Series], folder: Path, brain: sitk.Image) -> list[Series]:
    """Give T1 and the scans after contrast agent one window, where their contrasts are similar enough.

    Parameters
    ----------
    series : list of Series
        The normalised scans of a case, each with a window of its own.
    folder : Path
        Folder of their copies in the space of the reference.
    brain : SimpleITK.Image
        Brain mask of the reference.

    Returns
    -------
    list of Series
        Matched scans have the shared window and the quality numbers `t1_gain`, `t1_offset` and `t1_likeness` (the correlation). The
        others keep their window and get the flag `t1_in_other_units`; so do all if air would be grey in one of them.
    """
    import SimpleITK as sitk

    t1 = next((entry for entry in series if entry.sequence is Sequence.T1W), None)
    enhanced = [entry for entry in series if entry.sequence is Sequence.CE_T1W]
    if t1 is None or not enhanced:
        return series
    copies = {entry.series_id: read_volume(copy_path(folder / f"{entry.series_id}.nii")) for entry in (t1, *enhanced)}
    inside = sitk.GetArrayFromImage(sitk.Resample(brain, copies[t1.series_id], sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    voxels = {name: sitk.GetArrayViewFromImage(copy) for name, copy in copies.items()}
    done = {entry.series_id: entry for entry in series}
    matches: dict[str, tuple[float, float]] = {}
    for entry in enhanced:
        # voxels outside a scan have the darkest value of its copy
        both = inside & (voxels[t1.series_id] > voxels[t1.series_id].min()) & (voxels[entry.series_id] > voxels[entry.series_id].min())
        match = match_units(voxels[t1.series_id][both], voxels[entry.series_id][both])
        if match is None or match.correlation < MIN_CORRELATION:
            done[entry.series_id] = replace(entry, flags=(*entry.flags, "t1_in_other_units"))
            continue
        numbers = {"t1_gain": round(match.gain, 5), "t1_offset": round(match.offset, 3), "t1_likeness": round(match.correlation, 4)}
        done[entry.series_id] = replace(entry, quality=entry.quality | numbers)
        matches[entry.series_id] = match.gain, match.offset
    if matches:
        own = {name: window for name in (t1.series_id, *matches) if (window := done[name].window)}
        shared = shared_window(own[t1.series_id], {name: own[name] for name in matches}, matches)
        shared = keep_brain_share({t1.series_id: shared["t1"], **{name: shared[name] for name in matches}}, own)
        if all(has_black_air(voxels[name], window) for name, window in shared.items()):
            for name, window in shared.items():
                done[name] = replace(done[name], window=window, flags=(*done[name].flags, "shared_window"))
        else:
            for name in matches:
                done[name] = replace(done[name], flags=(*done[name].flags, "t1_in_other_units"))
    return list(done.values())
