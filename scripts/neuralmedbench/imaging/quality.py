"""Numbers, flags and limits: what a person should look at, and what is set aside because it cannot be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.records.case import Plane, Series

if TYPE_CHECKING:
    import SimpleITK as sitk

THICK_MM, THICK_RATIO = 2.0, 1.5
"""A scan is 2-D when its slices are thicker than this and than this many pixels."""
MOVED_MM = 10.0
MIN_COVERED = 0.75
ADULT_BRAIN_ML = (900.0, 2100.0)
MIN_AGREEMENT = 0.1
"""Mutual information in nats below which two scans of one head have little in common (0.3 and more is usual)."""


@dataclass(frozen=True)
class QualityLimit:
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
    QualityLimit("template_agreement_where_covered", 0.05, float("inf"), "the template's head was not found in the reference"),
    # A slab of five slices of 5 mm shows about a fifth of the brain; with less, no transform to it can be trusted.
    QualityLimit("template_covered", 0.1, 1.0, "the reference shows too little of the brain"),
    # Brains of one-year-olds have about 800 ml, the largest of adults 2,000; half and half as much again is no brain. A slab may be small.
    QualityLimit("whole_brain_ml", 400.0, 3000.0, "the outlined brain is not the size of a brain"),
    QualityLimit("contrast", 0.05, float("inf"), "the brain of the reference is of one grey"),
)
"""A reference that breaks one of these quarantines its case: everything else is placed by it."""
SERIES_LIMITS = (
    QualityLimit("covered", 0.02, 1.0, "it does not show the brain of the reference"),
    # As above: noise reaches 0.003, the glioma case 0.41 to 0.72 (0.08 by its headers alone, 17 mm off).
    QualityLimit("agreement_where_covered", 0.05, float("inf"), "it could not be registered to the reference"),
    # Nobody lies in a head coil turned by more than 45 degrees or a quarter of a metre away from the series before.
    QualityLimit("rotation_deg", 0.0, 45.0, "its registration is implausible"),
    QualityLimit("shift_mm", 0.0, 250.0, "its registration is implausible"),
    QualityLimit("contrast", 0.05, float("inf"), "its brain is of one grey"),
)
"""A series that breaks one of these is set aside; its case goes on with the others."""


def check_limits(quality: dict[str, float], limits: tuple[QualityLimit, ...]) -> None:
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


def millilitres(mask: sitk.Image) -> float:
    """Volume of a mask."""
    import SimpleITK as sitk

    return float(np.count_nonzero(sitk.GetArrayViewFromImage(mask)) * np.prod(mask.GetSpacing()) / 1000)


def contrast(image: sitk.Image, brain: sitk.Image) -> float:
    """Spread of the middle nine tenths of the brain's values, relative to their median; 0 without a brain."""
    import SimpleITK as sitk

    inside = sitk.GetArrayViewFromImage(image)[sitk.GetArrayViewFromImage(brain) > 0]
    if not inside.size:
        return 0.0
    low, middle, high = (float(value) for value in np.percentile(inside, (5, 50, 95)))
    return round((high - low) / max(abs(middle), 1e-12), 4)


def measure_reference(
    series: Series, image: sitk.Image, brain: sitk.Image, fitted: dict[str, float]
) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
    """Measure the reference series.

    Parameters
    ----------
    series : Series
        Its record.
    image, brain : SimpleITK.Image
        The scan (float32) and its brain mask (uint8).
    fitted : dict of str to float
        What `atlas.fit.fit_quality` says of the template in it.

    Returns
    -------
    tuple of dict, dict and tuple
        Numbers of the case, numbers of the series, and its flags.

    Raises
    ------
    DataError
        If one of `quality.REFERENCE_LIMITS` is broken.
    """
    volume = round(millilitres(brain), 1)
    of_case = {"brain_ml": volume, **{f"template_{name}": value for name, value in fitted.items()}}
    of_series = {"contrast": contrast(image, brain)}
    limited = {
        **of_case,
        **of_series,
        "template_agreement_where_covered": fitted["agreement"] / max(fitted["covered"], 0.05),
        **({"whole_brain_ml": volume} if fitted["covered"] >= MIN_COVERED else {}),
    }
    try:
        check_limits(limited, REFERENCE_LIMITS)
    except DataError as error:
        message = f"{series.series_id} ({series.sequence.value}), the reference: {error}"
        raise DataError(message) from None
    return of_case, of_series, reference_flags(volume, fitted)
