"""Numbers and flags by which a person recognises a case that was normalised badly."""

from __future__ import annotations

from neuralmedbench.records.case import Plane

THICK_MM, THICK_RATIO = 2.0, 1.5
"""A scan is 2-D when its slices are thicker than this and than this many pixels."""
MOVED_MM = 10.0
MIN_COVERED = 0.75
ADULT_BRAIN_ML = (900.0, 2100.0)
MIN_AGREEMENT = 0.1
"""Mutual information in nats below which two scans of one head have nothing in common (0.3 and more is usual)."""


def plane_of(spacing: tuple[float, ...]) -> Plane | None:
    """Tell in which plane a scan was acquired.

    Parameters
    ----------
    spacing : tuple of float
        Voxel sizes in mm along x, y, z of an LPS+ volume.

    Returns
    -------
    Plane or None
        By the largest voxel size; None for (nearly) isotropic 3-D scans.
    """
    thickest = max(spacing)
    others = sorted(spacing)[:2]
    if thickest <= THICK_MM or thickest < THICK_RATIO * others[1]:
        return None
    return (Plane.SAGITTAL, Plane.CORONAL, Plane.AXIAL)[spacing.index(thickest)]


def series_flags(quality: dict[str, float]) -> tuple[str, ...]:
    """Name what a person should know about one series."""
    flags = {
        "patient_moved": quality["shift_mm"] > MOVED_MM,
        "part_of_the_brain": quality["covered"] < MIN_COVERED,
        "poor_registration": quality["agreement_after"] < MIN_AGREEMENT,
    }
    return tuple(name for name, found in flags.items() if found)


def reference_flags(brain_ml: float, fit: dict[str, float]) -> tuple[str, ...]:
    """Name what a person should know about the reference and its brain mask."""
    whole = fit["covered"] >= MIN_COVERED
    flags = {
        "part_of_the_brain": not whole,
        "odd_brain_volume": whole and not ADULT_BRAIN_ML[0] <= brain_ml <= ADULT_BRAIN_ML[1],
        "poor_template_fit": fit["agreement"] / max(fit["covered"], 0.05) < MIN_AGREEMENT,
    }
    return tuple(name for name, found in flags.items() if found)
