"""Statistics over models.

Of single items: how far an item separates strong models from weak ones, and whether guessing explains who solves it. Of two sets of items:
the correlation between the models' scores on both, corrected for the unreliability of both scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints, codes_of

FEWEST_MODELS = 8
"""With fewer models the discrimination of an item is not estimated: of eight, its interval still is about one wide. (Our rule.)"""


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


class _ByPatient(NamedTuple):
    """Scores in parts: what each patient adds to each model's score, minus the mean of the models, and the share of the items.

    Shapes (models, patients) and (patients,); 0 for a patient of the other set.
    """

    deviations: Floats
    shares: Floats


class Discrimination(NamedTuple):
    """Correlation of an item with the rest of its benchmark over models: below 0 where weak models solve it and strong ones do not."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_reversed(self) -> bool:
        """True if the interval lies below 0, without a correction for the number of items (our rule)."""
        return self.high is not None and self.high < 0


def item_discriminations(shares: Floats, patients: Ints, confidence: float) -> list[Discrimination]:
    """Correlate each item with the items of the other patients, over models.

    Parameters
    ----------
    shares : ndarray of float, shape (models, items)
        Share of right answers, NaN where a model has none.
    patients : ndarray of int, shape (items,)
        Patient of each item, from 0. Items of the same patient are left out of the rest, as they share more than what is to be measured.
    confidence : float
        Level of the intervals.

    Returns
    -------
    list of Discrimination
        Nothing where fewer than `FEWEST_MODELS` answered the item, or they do not differ. The interval is Fisher's, which takes models as
        drawn at random.
    """
    from scipy import special

    known, found = ~np.isnan(shares), list[Discrimination]()
    # sums over the items of each patient, shape (models, patients)
    own_sums, own_numbers = (_sums(values, patients) for values in (np.where(known, shares, 0.0), known.astype(np.float64)))
    quantile = float(special.ndtri(0.5 + confidence / 2))
    for item in range(shares.shape[1]):
        number = own_numbers.sum(axis=1) - own_numbers[:, patients[item]]
        used = known[:, item] & (number > 0)
        rest = (own_sums.sum(axis=1) - own_sums[:, patients[item]])[used] / number[used]
        own = shares[used, item]
        models = len(own)
        if models < FEWEST_MODELS or np.ptp(own) == 0 or np.ptp(rest) < 1e-12:
            found.append(Discrimination())
            continue
        value = float(np.clip(np.corrcoef(own, rest)[0, 1], -1 + 1e-12, 1 - 1e-12))
        reach = quantile / np.sqrt(models - 3)
        low, high = (float(np.tanh(np.arctanh(value) + side * reach)) for side in (-1, 1))
        found.append(Discrimination(value, low, high))
    return found


def _sums(values: Floats, patients: Ints) -> Floats:
    return np.stack([np.bincount(patients, weights=row) for row in values])


def is_shared(number: int, models: int) -> bool:
    """Return True if a wrong answer that so many models give is shared: by two thirds of at least `FEWEST_MODELS` (our rule)."""
    return models >= FEWEST_MODELS and 3 * number >= 2 * models


def guessing_p(solving: int, models: int, chance: float, samples: int = 1) -> float:
    """Return the chance that at least so many models solve an item if all of them guess independently.

    Parameters
    ----------
    solving, models : int
        Models that pass the item in more than half of their answers, and all that were asked.
    chance : float
        Chance of one guess.
    samples : int
        Answers of a model. They may be one guess repeated or a new one each time: the larger chance to be right in most of them counts.

    Examples
    --------
    >>> round(guessing_p(3, 3, 0.25), 4)
    0.0156
    """
    from scipy import stats

    most = float(stats.binom.sf(samples // 2, samples, chance))
    return float(stats.binom.sf(solving - 1, models, max(chance, most)))


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
