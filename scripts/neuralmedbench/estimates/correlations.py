"""Correlation over models between their scores on two sets of items, corrected for the unreliability of both scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints, codes_of


@dataclass(frozen=True)
class SetScores:
    """Item values of many models on one set.

    Attributes
    ----------
    values : ndarray of float, shape (models, items)
        No NaN; the score of a model is the mean of its row.
    patients : sequence of str
        Patient of each item.
    """

    values: Floats
    patients: Sequence[str]


class CorrectedCorrelation(NamedTuple):
    """Pearson's correlation of two scores over models.

    `reliability` is that of either score; None where the models do not differ, or with one patient. `observed` is None where either is None;
    `corrected` where either is not above 0; `low` and `high` also with fewer than 4 models, or where all hangs on one patient.
    """

    reliability: tuple[float | None, float | None]
    observed: float | None = None
    corrected: float | None = None
    low: float | None = None
    high: float | None = None


def corrected_correlation(first: SetScores, second: SetScores, confidence: float) -> CorrectedCorrelation:
    """Correlate two scores over models as if both had been taken from endlessly many patients like these.

    The reliability of a score is coefficient alpha with patients as parts: the mean of all split-half reliabilities over halves of the
    patients (Cronbach). The corrected correlation is the observed one over the root of the product of both reliabilities (Spearman); it may
    exceed 1. Covariances are taken between different patients alone, so a patient of both sets does not correlate their errors.

    The interval is Fisher's for models, widened by the jackknife variance of the corrected value over patients, and divided as the value is.
    Chance in single answers is in both parts, so it is rather too wide. It takes the models as drawn at random. It is not cut at -1 or 1.

    Parameters
    ----------
    first, second : SetScores
        The same models, in the same order.
    confidence : float
        Confidence level.

    Returns
    -------
    CorrectedCorrelation
        With the reliability of both scores.

    References
    ----------
    Spearman, American Journal of Psychology 15 (1904) 72. Cronbach, Psychometrika 16 (1951) 297. Hunter and Schmidt, Methods of
    Meta-Analysis (2004): the interval of a corrected correlation is that of the observed one, corrected alike.
    """
    from scipy import special

    codes = codes_of([*first.patients, *second.patients])
    clusters, split = int(codes.max(initial=-1)) + 1, len(first.patients)
    parts = _by_patient(first.values, codes[:split], clusters), _by_patient(second.values, codes[split:], clusters)
    scores = [part.deviations.sum(axis=1) for part in parts]
    models = len(scores[0])
    # variances of the scores, and of what would be left of them over endlessly many patients
    spread = [float(score @ score) / max(models - 1, 1) for score in scores]
    true = [_between_patients(part, part) for part in parts]
    reliability = [value / whole if whole > 1e-12 and np.isfinite(value) else None for (value, _), whole in zip(true, spread, strict=True)]
    found = CorrectedCorrelation((reliability[0], reliability[1]))
    if reliability[0] is None or reliability[1] is None:
        return found
    found = found._replace(observed=float(scores[0] @ scores[1]) / (models - 1) / float(np.sqrt(spread[0] * spread[1])))
    if min(reliability[0], reliability[1]) <= 0:
        return found
    shared, shared_without = _between_patients(*parts)
    corrected = shared / float(np.sqrt(true[0][0] * true[1][0]))
    found = found._replace(corrected=corrected)
    # without each patient in turn; NaN where nothing but chance is left without that patient
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.where((true[0][1] > 1e-12) & (true[1][1] > 1e-12), shared_without / np.sqrt(true[0][1] * true[1][1]), np.nan) - corrected
    # Fisher's interval holds for a correlation that was not divided
    divisor = float(np.sqrt(reliability[0] * reliability[1]))
    plain = corrected * divisor
    if models < 4 or abs(plain) >= 1 or not np.isfinite(moved).all():
        return found
    variance = 1 / (models - 3) + float(moved @ moved) * (divisor / (1 - plain**2)) ** 2
    reach = special.ndtri(0.5 + confidence / 2) * np.sqrt(variance)
    low, high = (float(np.tanh(np.arctanh(plain) + side * reach)) / divisor for side in (-1, 1))
    return found._replace(low=low, high=high)


class _ByPatient(NamedTuple):
    """Scores in parts: what each patient adds to each model's score, minus the mean of the models, and the share of the items.

    Shapes (models, patients) and (patients,); 0 for a patient of the other set.
    """

    deviations: Floats
    shares: Floats


def _by_patient(values: Floats, codes: Ints, clusters: int) -> _ByPatient:
    parts = np.stack([np.bincount(codes, weights=row, minlength=clusters) for row in values]) / max(len(codes), 1)
    return _ByPatient(parts - parts.mean(axis=0), np.bincount(codes, minlength=clusters) / max(len(codes), 1))


def _between_patients(first: _ByPatient, second: _ByPatient) -> tuple[float, Floats]:
    """Return the covariance over models of the values of different patients, and the same without each patient, shape (patients,)."""
    one, other = first.deviations, second.deviations
    own, own_share = (one * other).sum(axis=0), first.shares * second.shares
    score, other_score = one.sum(axis=1), other.sum(axis=1)
    # over all pairs of patients, less each patient with itself; then less all pairs of each patient in turn
    sums = score @ other_score - own.sum() - np.array([0.0, *(score @ other + other_score @ one - 2 * own)])
    weights = 1 - own_share.sum() - np.array([0.0, *(first.shares + second.shares - 2 * own_share)])
    means = np.divide(sums, weights, out=np.full(len(sums), np.nan), where=weights > 1e-12) / max(len(one) - 1, 1)
    return float(means[0]), means[1:]
