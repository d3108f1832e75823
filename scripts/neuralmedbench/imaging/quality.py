"""Quality numbers of normalised scans: flags for a person to look at, and limits beyond which a scan is excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.atlas import matching
from neuralmedbench.errors import DataError
from neuralmedbench.records.case import CT_SEQUENCES, PLANES_ACROSS, Plane, Series

if TYPE_CHECKING:
    import SimpleITK as sitk

THICK_MM, THICK_RATIO = 2.0, 1.5
"""A scan is 2-D if its slices are thicker than `THICK_MM` and than `THICK_RATIO` pixels."""
MOVED_MM = 10.0
MIN_COVERED = 0.75
ADULT_BRAIN_ML = (900.0, 2100.0)
MOST_CONTRAST = 100.0
"""Above this contrast, the median is about zero and divides by nothing: the outline is not of the brain, or the units have an offset."""
MIN_AGREEMENT = 0.1
"""Mutual information in nats below which the registration of two scans of one head is poor (0.3 and more is usual)."""


@dataclass(frozen=True)
class QualityLimit:
    """Allowed range of a quality number.

    Attributes
    ----------
    number : str
        Its name.
    least, most : float
        The range, ends included.
    reason : str
        Message for a value outside the range.
    """

    number: str
    least: float
    most: float
    reason: str


BRAIN_HU = QualityLimit(
    "brain_hu", 5.0, 100.0, "its brain has no values of tissue in Hounsfield units: export the CT in them, without a threshold"
)
"""Median of the brain in CT. Measured: 30 to 40; 0 where a threshold left the vessels alone, and far outside where values run from 0 to 1 or 255, or begin at 0."""

REFERENCE_LIMITS = (
    # Half of `MIN_AGREEMENT`. Measured: 0.84 in heads of the demo, 0.59 in a real glioma case, 0.004 in noise of the same extent.
    QualityLimit("template_agreement_where_covered", 0.05, float("inf"), "the template's head was not found in the reference"),
    # A slab of five slices of 5 mm shows about a fifth of the brain; with less, no transform to it can be trusted.
    QualityLimit("template_covered", 0.1, 1.0, "the reference shows too little of the brain"),
    # Brains of preterm newborns have about 300 ml, the largest of adults 2,000 ml; the limits are half of one and 1.5 times the other.
    # Checked for whole brains only, because a slab may be small.
    QualityLimit("whole_brain_ml", 150.0, 3000.0, "the outlined brain is not the size of a brain"),
    BRAIN_HU,
    QualityLimit("contrast", 0.05, float("inf"), "the brain of the reference is of one grey"),
)
"""A reference outside one of these quarantines its case, because all other series are registered to it."""
SERIES_LIMITS = (
    QualityLimit("covered", 0.02, 1.0, "it does not show the brain of the reference"),
    # As above. Measured: 0.003 in noise, 0.41 to 0.72 in the glioma case (0.08 with its headers' positions alone, 17 mm off).
    QualityLimit("agreement_where_covered", 0.05, float("inf"), "it could not be registered to the reference"),
    # Nobody lies in a head coil turned by more than 45 degrees or a quarter of a metre away from the series before.
    QualityLimit("rotation_deg", 0.0, 45.0, "its registration is implausible"),
    QualityLimit("shift_mm", 0.0, 250.0, "its registration is implausible"),
    BRAIN_HU,
    QualityLimit("contrast", 0.05, float("inf"), "its brain is of one grey"),
)
"""A series outside one of these is excluded; its case continues with the others."""


def check_limits(quality: dict[str, float], limits: tuple[QualityLimit, ...]) -> None:
    """Raise a DataError with the reason, the number and its limit if a quality number is out of range; absent numbers pass."""
    for limit in limits:
        value = quality.get(limit.number)
        if value is None or limit.least <= value <= limit.most:
            continue
        allowed = f"at least {limit.least:g}" if value < limit.least else f"at most {limit.most:g}"
        message = f"{limit.reason} ({limit.number} {value:g}, {allowed}): look at it, override its sequence or exclude it"
        raise DataError(message)


def plane_of(spacing: tuple[float, ...]) -> Plane | None:
    """Return the plane in which a scan was acquired, in place of that of ingest (`ingest.geometry`), which calls fewer scans isotropic.

    Parameters
    ----------
    spacing : tuple of float
        Voxel sizes in mm along x, y, z of an LPS+ volume.

    Returns
    -------
    Plane or None
        The plane across the largest voxel size; None for (nearly) isotropic 3-D scans.
    """
    thickest = max(spacing)
    others = sorted(spacing)[:2]
    if thickest <= THICK_MM or thickest < THICK_RATIO * others[1]:
        return None
    return PLANES_ACROSS[spacing.index(thickest)]


def series_flags(quality: dict[str, float]) -> tuple[str, ...]:
    """Return the flags of one series."""
    flags = {
        "patient_moved": quality["shift_mm"] > MOVED_MM,
        "part_of_the_brain": quality["covered"] < MIN_COVERED,
        "poor_registration": quality["agreement_after"] < MIN_AGREEMENT,
        "contrast_not_measurable": "contrast" not in quality,
    }
    return tuple(name for name, present in flags.items() if present)


def reference_flags(brain_ml: float, fit: dict[str, float], quality: dict[str, float]) -> tuple[str, ...]:
    """Return the flags of the reference and its brain mask; `quality`: numbers of the series."""
    whole = fit["covered"] >= MIN_COVERED
    flags = {
        "part_of_the_brain": not whole,
        "odd_brain_volume": whole and not ADULT_BRAIN_ML[0] <= brain_ml <= ADULT_BRAIN_ML[1],
        "poor_template_fit": agreement_where_covered(fit["agreement"], fit["covered"]) < MIN_AGREEMENT,
        "contrast_not_measurable": "contrast" not in quality,
    }
    return tuple(name for name, present in flags.items() if present)


def agreement_where_covered(agreement: float, covered: float) -> float:
    """Return the agreement, which is weighted by the part that is covered, without this weight: a slab is judged by what it shows."""
    return agreement / max(covered, matching.MIN_COVERED)


def millilitres(mask: sitk.Image) -> float:
    """Return the volume of a mask in ml."""
    import SimpleITK as sitk

    return float(np.count_nonzero(sitk.GetArrayViewFromImage(mask)) * np.prod(mask.GetSpacing()) / 1000)


def contrast(image: sitk.Image, brain: sitk.Image) -> dict[str, float]:
    """Measure the range of the brain's intensities (5th to 95th percentile) relative to their median, as `contrast`.

    0 without a brain; empty if it is not measurable, because the median is about zero (`MOST_CONTRAST`).
    """
    inside = _inside(image, brain)
    if not inside.size:
        return {"contrast": 0.0}
    low, middle, high = (float(value) for value in np.percentile(inside, (5, 50, 95)))
    if high - low > MOST_CONTRAST * abs(middle):
        return {}
    return {"contrast": round((high - low) / max(abs(middle), 1e-12), 4)}


def brain_hu(series: Series, image: sitk.Image, brain: sitk.Image) -> dict[str, float]:
    """Return the median of the brain of a CT as `brain_hu`; empty for MR, whose values have no unit, and without a brain."""
    if series.sequence not in CT_SEQUENCES or not (inside := _inside(image, brain)).size:
        return {}
    return {BRAIN_HU.number: round(float(np.median(inside)), 2)}


def _inside(image: sitk.Image, brain: sitk.Image) -> npt.NDArray[Any]:
    import SimpleITK as sitk

    return np.asarray(sitk.GetArrayViewFromImage(image)[sitk.GetArrayViewFromImage(brain) > 0])


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
        Quality of the template fit (`atlas.fit.fit_quality`).

    Returns
    -------
    tuple of dict, dict and tuple
        Numbers of the case, numbers of the series, and its flags.

    Raises
    ------
    DataError
        If a number is outside one of `REFERENCE_LIMITS`.
    """
    volume = round(millilitres(brain), 1)
    of_case = {"brain_ml": volume, **{f"template_{name}": value for name, value in fitted.items()}}
    of_series = contrast(image, brain)
    # numbers with limits; the volume only if the scan covers the brain
    limited = {
        **of_case,
        **of_series,
        **brain_hu(series, image, brain),
        "template_agreement_where_covered": agreement_where_covered(fitted["agreement"], fitted["covered"]),
        **({"whole_brain_ml": volume} if fitted["covered"] >= MIN_COVERED else {}),
    }
    try:
        check_limits(limited, REFERENCE_LIMITS)
    except DataError as error:
        message = f"{series.series_id} ({series.sequence.value}), the reference: {error}"
        raise DataError(message) from None
    return of_case, of_series, reference_flags(volume, fitted, of_series)
