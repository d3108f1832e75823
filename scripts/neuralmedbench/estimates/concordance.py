"""Agreement of a value with clinicians' values of the same answers; patients are resampled."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.agreement import icc, quadratic_kappa
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, Ints

COEFFICIENTS = ("pearson", "spearman", "icc", "kappa", "auc", "bias")
"""Pearson's r, Spearman's rho, ICC(2,1), kappa with quadratic weights, area under the ROC curve, mean difference."""

AT_ONCE = 500
"""Resamples that are computed together."""

FEW_LEVELS = 32
"""Up to this number of distinct values a matrix product is faster than `numpy.add.reduceat`."""

NOISE = 1e-10
"""Share of the sum of squares below which values do not vary."""

MOST_UNDEFINED, FEWEST_PATIENTS = 0.1, 8
"""With a larger share of resamples in which a coefficient is not defined, or with fewer patients, there is no interval: the
rest would be a biased sample of the coefficient. (Our rule.)"""


Level = Literal["pairs", "units", "shared units"]
"""Coefficients are computed over the pairs; over means of units that each belong to one patient, as items do; or over means of units whose
answers are of the same patients, as models are."""


class Pairs(NamedTuple):
    """Values beside those of one clinician; every array has shape (pairs,).

    Attributes
    ----------
    value, clinician : ndarray of float
        Both from 0 to 1 where they are graded alike.
    passed : ndarray of bool
        Whether the clinician's value passes.
    weight : ndarray of float
        1 / pairs of the answer: every answer weighs the same.
    units : ndarray of int
        What the value is of (a model, an item), numbered from 0 without gaps.
    by : ByPatient
        Patients of the pairs.
    """

    value: Floats
    clinician: Floats
    passed: npt.NDArray[np.bool_]
    weight: Floats
    units: Ints
    by: ByPatient


def concordance(pairs: Pairs, wanted: Collection[str] = COEFFICIENTS, over: Level = "pairs") -> dict[str, Interval]:
    """Compute coefficients.

    Parameters
    ----------
    pairs : Pairs
        One row per pair.
    wanted : collection of str
        Names from `COEFFICIENTS`; over shared units not `auc`.
    over : str
        See `Level`.

    Returns
    -------
    dict of str to Interval
        `bootstrap` over patients, expanded as `percentile_interval` says; `none` where a coefficient is not defined.
    """
    if over == "shared units":
        return concordance_of_units(pairs, wanted)
    if over == "units":
        pairs = means_of_units(pairs)
    if len(pairs.value) == 0:
        return dict.fromkeys(wanted, Interval())
    rows = np.stack([pairs.value, pairs.clinician, pairs.passed.astype(np.float64)], axis=1)
    cells, place = np.unique(rows, axis=0, return_inverse=True)
    # equal rows are one cell: a resample is a row of patient weights times the amount of each cell per patient
    amounts = np.zeros((pairs.by.clusters, len(cells)))
    np.add.at(amounts, (pairs.by.codes, place.reshape(-1)), pairs.weight)
    value, clinician, passed = cells[:, 0], cells[:, 1], cells[:, 2] > 0.5
    weights = pairs.by.weights
    # the estimate itself, then the resamples in chunks
    found = _over_cells(value, clinician, passed, amounts.sum(axis=0)[None], wanted)
    drawn = [
        _over_cells(value, clinician, passed, weights[start : start + AT_ONCE] @ amounts, wanted)
        for start in range(0, len(weights), AT_ONCE)
    ]
    return {name: _interval(float(found[name][0]), np.concatenate([part[name] for part in drawn]), pairs.by) for name in wanted}


def concordance_of_units(pairs: Pairs, wanted: Collection[str]) -> dict[str, Interval]:
    """Compute coefficients over the means of units whose answers are of the same patients, as models are: all but `auc`.

    The means of each unit are computed again in each resample. Parameters and result are those of `concordance`.
    """
    by, units = pairs.by, int(pairs.units.max()) + 1
    # sums of weight, value and clinician per patient and unit
    sums = np.zeros((3, by.clusters, units))
    for part, amount in zip(sums, (pairs.weight, pairs.weight * pairs.value, pairs.weight * pairs.clinician), strict=True):
        np.add.at(part, (by.codes, pairs.units), amount)
    found, drawn = (
        _over_means(chosen @ sums[0], chosen @ sums[1], chosen @ sums[2], wanted) for chosen in (np.ones((1, by.clusters)), by.weights)
    )
    return {name: _interval(float(found[name][0]), drawn[name], by) for name in wanted}


def means_of_units(pairs: Pairs) -> Pairs:
    """Return the means of units that each belong to one patient, as items do; every unit weighs the same."""
    total = np.bincount(pairs.units, weights=pairs.weight)
    value, clinician, passed = (
        np.bincount(pairs.units, weights=pairs.weight * amount) / total for amount in (pairs.value, pairs.clinician, pairs.passed)
    )
    first = np.unique(pairs.units, return_index=True)[1]
    return Pairs(value, clinician, passed >= 0.5, np.ones(len(total)), np.arange(len(total)), pairs.by.at(first))


def _over_means(size: Floats, value: Floats, clinician: Floats, wanted: Collection[str]) -> dict[str, Floats]:
    known = size > 0
    first, second = (np.where(known, total / np.where(known, size, 1.0), np.nan) for total in (value, clinician))
    # a unit that a resample leaves out ranks last, and weighs nothing
    ranks = (_ranks(np.where(known, first, np.inf)), _ranks(np.where(known, second, np.inf)))
    return _of_values(np.nan_to_num(first), np.nan_to_num(second), known.astype(np.float64), ranks, wanted)


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1), dtype=np.float64)


def _over_cells(
    value: Floats, clinician: Floats, passed: npt.NDArray[np.bool_], amounts: Floats, wanted: Collection[str]
) -> dict[str, Floats]:
    ranks = (_midranks(value, amounts), _midranks(clinician, amounts)) if "spearman" in wanted else None
    found = _of_values(value[None], clinician[None], amounts, ranks, wanted)
    if "auc" in wanted:
        found["auc"] = _area(value, passed, amounts)
    return found


def _of_values(
    first: Floats, second: Floats, amounts: Floats, ranks: tuple[Floats, Floats] | None, wanted: Collection[str]
) -> dict[str, Floats]:
    """Coefficients by row; values have shape (1 or rows, cells), amounts (rows, cells)."""
    size = amounts.sum(axis=-1)
    one, other, squares, apart, joined = (
        _total(part, amounts) for part in (first, second, first**2 + second**2, (first - second) ** 2, (first + second) ** 2)
    )
    found = {
        "pearson": _correlation(first, second, amounts),
        "icc": icc(np.stack([size, joined, squares, one, other], axis=-1))[0],
        "kappa": quadratic_kappa(np.stack([size, one, other, squares, apart, size, size], axis=-1)),
        "bias": np.divide(one - other, size, out=np.full_like(size, np.nan), where=size > 0),
    }
    if ranks is not None:
        found["spearman"] = _correlation(*ranks, amounts)
    return {name: values for name, values in found.items() if name in wanted}


def _correlation(first: Floats, second: Floats, amounts: Floats) -> Floats:
    size = amounts.sum(axis=-1)
    one, other, ones, others, joint = (_total(part, amounts) for part in (first, second, first**2, second**2, first * second))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread, far = ones - one**2 / size, others - other**2 / size
        varies = (spread > NOISE * ones) & (far > NOISE * others)
        return np.asarray(np.where(varies, (joint - one * other / size) / np.sqrt(spread * far), np.nan), dtype=np.float64)


def _total(values: Floats, amounts: Floats) -> Floats:
    """Sum values, shape (1 or rows, cells), by row: one row of them is a product of matrices."""
    return np.asarray(amounts @ values[0] if len(values) == 1 else (amounts * values).sum(axis=-1), dtype=np.float64)


def _midranks(values: Floats, amounts: Floats) -> Floats:
    """Ranks that the values have where each occurs as often as its amount says: shape (rows, cells)."""
    totals, place = _by_level(values, amounts)
    return np.asarray((np.cumsum(totals, axis=-1) - totals / 2)[:, place], dtype=np.float64)


def _area(values: Floats, passed: npt.NDArray[np.bool_], amounts: Floats) -> Floats:
    # wins of passed over failed cells, ties by half
    right, wrong = (_by_level(values, amounts * side)[0] for side in (passed, ~passed))
    below = np.cumsum(wrong, axis=-1) - wrong / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((right * below).sum(axis=-1) / (right.sum(axis=-1) * wrong.sum(axis=-1)), dtype=np.float64)


def _by_level(values: Floats, amounts: Floats) -> tuple[Floats, Ints]:
    """Amounts of each different value, ascending, and the place of each cell among them."""
    levels, place = np.unique(values, return_inverse=True)
    if len(levels) <= FEW_LEVELS:
        return amounts @ np.eye(len(levels))[place], place
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    return np.add.reduceat(amounts[:, order], starts, axis=-1), place


def _interval(value: float, drawn: Floats, by: ByPatient) -> Interval:
    if not np.isfinite(value):
        return Interval()
    reliable = by.clusters >= FEWEST_PATIENTS and np.mean(~np.isfinite(drawn)) <= MOST_UNDEFINED
    low, high = by.percentiles(drawn) if reliable else (None, None)
    return Interval(value, low, high, "bootstrap")
