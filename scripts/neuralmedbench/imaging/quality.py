"""Numbers, flags and limits: what a person should look at, and what is set aside because it cannot be right."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import Plane

THICK_MM, THICK_RATIO = 2.0, 1.5
"""A scan is 2-D when its slices are thicker than this and than this many pixels."""
MOVED_MM = 10.0
MIN_COVERED = 0.75
ADULT_BRAIN_ML = (900.0, 2100.0)
MIN_AGREEMENT = 0.1
"""Mutual information in nats below which two scans of one head have little in common (0.3 and more is usual)."""


@dataclass(frozen=True)
class Limit:
    """What a quality number may be.

    Attributes
    ----------
    number : str
        Its name.
    least, most : float
        Both are allowed.
    reason : str
        What is wrong outside, as a person reads it.
    """

    number: str
    least: float
    most: float
    reason: str


REFERENCE_LIMITS = (
    # Half of `MIN_AGREEMENT`; heads of the demo reach 0.84, a real glioma case 0.59, noise of the same extent 0.004.
    Limit("template_agreement_where_covered", 0.05, float("inf"), "the template's head was not found in the reference"),
    # A slab of five slices of 5 mm shows about a fifth of the brain; with less, no transform to it can be trusted.
    Limit("template_covered", 0.1, 1.0, "the reference shows too little of the brain"),
    # Brains of one-year-olds have about 800 ml, the largest of adults 2,000; half and half as much again is no brain. A slab may be small.
    Limit("whole_brain_ml", 400.0, 3000.0, "the outlined brain is not the size of a brain"),
    Limit("contrast", 0.05, float("inf"), "the brain of the reference is of one grey"),
)
"""A reference that breaks one of these quarantines its case: everything else is placed by it."""
SERIES_LIMITS = (
    Limit("covered", 0.02, 1.0, "it does not show the brain of the reference"),
    # As above: noise reaches 0.003, the glioma case 0.41 to 0.72 (0.08 by its headers alone, 17 mm off).
    Limit("agreement_where_covered", 0.05, float("inf"), "it could not be registered to the reference"),
    # Nobody lies in a head coil turned by more than 45 degrees or a quarter of a metre away from the series before.
    Limit("rotation_deg", 0.0, 45.0, "its registration is implausible"),
    Limit("shift_mm", 0.0, 250.0, "its registration is implausible"),
    Limit("contrast", 0.05, float("inf"), "its brain is of one grey"),
)
"""A series that breaks one of these is set aside; its case goes on with the others."""


def check_limits(quality: dict[str, float], limits: tuple[Limit, ...]) -> None:
    """Refuse what cannot be right.

    Parameters
    ----------
    quality : dict of str to float
        Numbers; one that is absent is not checked.
    limits : tuple of Limit
        What they may be.

    Raises
    ------
    DataError
        With the reason, the number and its limits.
    """
    for limit in limits:
        value = quality.get(limit.number)
        if value is None or limit.least <= value <= limit.most:
            continue
        allowed = f"at least {limit.least:g}" if value < limit.least else f"at most {limit.most:g}"
        message = f"{limit.reason} ({limit.number} {value:g}, {allowed}): look at it, override its sequence or exclude it"
        raise DataError(message)


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
