"""What is measured of the reference series and of every brain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.imaging.quality import MIN_COVERED, REFERENCE_LIMITS, check_limits, reference_flags
from neuralmedbench.records.case import Series

if TYPE_CHECKING:
    import SimpleITK as sitk


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
