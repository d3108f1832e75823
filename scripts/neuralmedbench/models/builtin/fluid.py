"""Ventricles and sulci: how much fluid there is, and where."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from neuralmedbench.models.builtin.measure import Frame
from neuralmedbench.models.builtin.picture import DISC
from neuralmedbench.models.builtin.reading import Reading, ramp
from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Kind


def fluid_features(reading: Reading) -> dict[str, float]:
    """Ventricles and sulci: Evans index above 0.30 is enlarged; tight sulci at the vertex speak for hydrocephalus."""
    scans = next((found for kind in (Kind.T1W, Kind.CE_T1W, Kind.FLAIR, Kind.CT, Kind.T2W) if (found := reading.of(kind))), ())
    scans = tuple(frame for frame in scans if frame.plane in {Plane.AXIAL, None})
    if not scans:
        return {}
    evans = max((evans_index(frame) for frame in scans if _middle(reading.z(frame))), default=0.0)
    horns = max((temporal_horns(frame) for frame in scans if 0.12 < (reading.z(frame) or 0.0) < 0.38), default=None)
    sulci = [(reading.z(frame), sulcal_fraction(frame)) for frame in scans]
    high = [value for z, value in sulci if z is not None and 0.75 < z < 0.95]
    wide = float(np.mean([value for z, value in sulci if z is None or 0.35 < z < 0.95] or [0.0]))
    large = ramp(evans, 0.3, 0.38)
    features = {"large_ventricles": large, "wide_sulci": ramp(wide, 0.24, 0.34)}
    if horns is not None:
        features["wide_temporal_horns"] = ramp(horns, 0.006, 0.015)
    if high and len(scans) > 2:
        features["tight_vertex"] = large * (1 - ramp(float(np.mean(high)), 0.08, 0.2))
    return features


def _middle(z: float | None) -> bool:
    return z is None or 0.42 < z < 0.75


def evans_index(frame: Frame) -> float:
    """Width of the frontal horns over the width of the brain.

    Parameters
    ----------
    frame : Frame
        An axial picture.

    Returns
    -------
    float
        0 when no ventricle is seen.
    """
    row, _, height, width = frame.box
    part = frame.ventricles.copy()
    part[int(row + 0.05 * height) :] = False
    part[: int(row - 0.6 * height)] = False
    labels, count = ndimage.label(part)
    keep = [number for number in range(1, count + 1) if (labels == number).sum() > 0.002 * frame.brain.sum()]
    columns = np.flatnonzero(np.isin(labels, keep).any(axis=0)) if keep else np.array([], dtype=int)
    if columns.size == 0:
        return 0.0
    return float((columns[-1] - columns[0] + 1) / (2 * width))


def sulcal_fraction(frame: Frame) -> float:
    """Share of fluid in the outer fifth of the brain.

    Parameters
    ----------
    frame : Frame
        An axial picture.

    Returns
    -------
    float
        Between 0 and 1.
    """
    shell = frame.brain & (frame.depth < 0.2 * frame.radius)
    return float((frame.fluid & shell).sum() / max(1, shell.sum()))


def temporal_horns(frame: Frame) -> float:
    """Fluid inside the mesial temporal lobes.

    Parameters
    ----------
    frame : Frame
        An axial picture through the temporal lobes.

    Returns
    -------
    float
        The smaller of both sides, as a fraction of the brain in the picture.
    """
    row, column, height, width = frame.box
    y, x = np.indices(frame.brain.shape)
    across, along = (x - column) / width, (y - row) / height
    region = (np.abs(across) > 0.25) & (np.abs(across) < 0.65) & (np.abs(along) < 0.35) & (frame.depth > 0.2 * frame.radius)
    horns = ndimage.binary_opening(frame.fluid, DISC) & region
    return float(min((horns & (across < 0)).sum(), (horns & (across > 0)).sum()) / frame.brain.sum())
