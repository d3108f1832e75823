"""Bring T1 before and after contrast agent to the same units: scanners choose the gain of every series anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.volumes import read_volume
from neuralmedbench.imaging.windows import shared_window
from neuralmedbench.records.case import Sequence, Series

if TYPE_CHECKING:
    import SimpleITK as sitk

Floats = npt.NDArray[np.float32]

KEPT = 0.7
"""Part of the brain that the fit goes by: what enhances, moved or lies at an edge is in the rest."""
ROUNDS = 20
MIN_LIKENESS = 0.5
"""Correlation of the kept voxels below which both scans are weighted too differently for one window."""


@dataclass(frozen=True)
class Match:
    """How the units of a scan follow from those of another: value = gain * other + offset.

    Attributes
    ----------
    gain, offset : float
        Offset in the scan's own units.
    likeness : float
        Correlation of the voxels by which they were found.
    """

    gain: float
    offset: float
    likeness: float


def match_units(other: Floats, scan: Floats) -> Match | None:
    """Fit the units of one scan to those of another of the same brain.

    Parameters
    ----------
    other, scan : ndarray of float32, shape (N,)
        Values of the same places of the brain, after registration.

    Returns
    -------
    Match or None
        None when there are too few places, or brighter is not brighter in both.

    Notes
    -----
    Least trimmed squares (Rousseeuw 1984): start from the ratio of the medians, then again and again fit to the 70 % of places
    that lie nearest to the line. The slope is the ratio of the spreads (reduced major axis), because both scans are noisy and an
    ordinary regression would make the slope too small.
    """
    if other.size < 100 or float(np.median(other)) <= 0 or float(np.median(scan)) <= 0:
        return None
    x, y = other.astype(np.float64), scan.astype(np.float64)
    gain, offset = float(np.median(y) / np.median(x)), 0.0
    near = np.ones(x.size, dtype=bool)
    for _ in range(ROUNDS):
        off = np.abs(y - gain * x - offset)
        near = off <= np.quantile(off, KEPT)
        spread = float(x[near].std())
        if spread == 0:
            return None
        before = gain, offset
        gain = float(y[near].std()) / spread
        offset = float(y[near].mean() - gain * x[near].mean())
        if np.allclose(before, (gain, offset), rtol=1e-4, atol=1e-3):
            break
    likeness = float(np.corrcoef(x[near], y[near])[0, 1]) if gain > 0 else 0.0
    return Match(gain, offset, likeness) if likeness > 0 else None


def share_window(series: list[Series], folder: Path, brain: sitk.Image) -> list[Series]:
    """Bring T1 and the scans after contrast to one window, where they are alike enough.

    Parameters
    ----------
    series : list of Series
        The normalised scans of a case, each with its own window.
    folder : Path
        Folder of their copies in the space of the reference.
    brain : SimpleITK.Image
        Brain mask of the reference.

    Returns
    -------
    list of Series
        With the shared window and the quality numbers `t1_gain`, `t1_offset` and `t1_likeness` of every scan that was matched. One that
        could not be keeps its own window and gets the flag `t1_in_other_units`.
    """
    import SimpleITK as sitk

    t1 = next((entry for entry in series if entry.sequence is Sequence.T1W), None)
    enhanced = [entry for entry in series if entry.sequence is Sequence.CE_T1W]
    if t1 is None or not enhanced:
        return series
    copies = {entry.series_id: read_volume(folder / f"{entry.series_id}_space-ref.nii") for entry in (t1, *enhanced)}
    inside = sitk.GetArrayFromImage(sitk.Resample(brain, copies[t1.series_id], sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    voxels = {name: sitk.GetArrayViewFromImage(copy) for name, copy in copies.items()}
    done = {entry.series_id: entry for entry in series}
    matches: dict[str, tuple[float, float]] = {}
    for entry in enhanced:
        both = inside & (voxels[t1.series_id] > voxels[t1.series_id].min()) & (voxels[entry.series_id] > voxels[entry.series_id].min())
        match = match_units(voxels[t1.series_id][both], voxels[entry.series_id][both])
        if match is None or match.likeness < MIN_LIKENESS:
            done[entry.series_id] = replace(entry, flags=(*entry.flags, "t1_in_other_units"))
            continue
        matches[entry.series_id] = match.gain, match.offset
        numbers = {"t1_gain": round(match.gain, 5), "t1_offset": round(match.offset, 3), "t1_likeness": round(match.likeness, 4)}
        done[entry.series_id] = replace(entry, quality=entry.quality | numbers)
    if matches:
        own = {name: window for name in matches if (window := done[name].window)}
        shared = shared_window(t1.window or (0.0, 1.0), own, matches)
        for name, window in {t1.series_id: shared["t1"], **{name: shared[name] for name in matches}}.items():
            done[name] = replace(done[name], window=window, flags=(*done[name].flags, "shared_window"))
    return list(done.values())
