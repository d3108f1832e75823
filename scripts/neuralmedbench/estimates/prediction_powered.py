"""The pass rate of a model, corrected by clinicians who judged a sample that was drawn with known probability.

A grader judges every answer and may be wrong; clinicians judge few answers. With g the grader's pass (0 or 1), c the clinicians', w the
weight of an answer in the raw rate (1 / samples of its item), and p the probability with which it was drawn, the corrected rate is

    sum(w g) / sum(w)  +  F * sum_rated(w (c - g) / p) / sum_rated(w / p),

the rate by the grader over all answers and the mean correction over the rated ones; F is the share of the weight that could be drawn at
all (a refused answer cannot: it is wrong by rule, and needs no clinician). This is the prediction-powered mean of Angelopoulos et al.,
Science 382 (2023) 669, which survey statistics knows as the difference estimator (Sarndal, Swensson and Wretman, Model Assisted Survey
Sampling, 1992, chapter 6). The correction divides by the weights that were seen (Hajek) and not by those that there are
(Horvitz-Thompson): a draw is made over all benchmarks at once and some answers come back without a judgement, so the weights seen vary by
chance, and only then is a grader that is off by the same amount everywhere repaired exactly. Its bias is of the order 1 / n.

From three raters on the interval is also about other raters like them; with fewer it is about these alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, resampling_weights

HALF_A_PATIENT = 0.5
"""Patients added to the rated ones on each side: with answers that the grader passed and the clinicians failed, and the reverse."""

FEWEST_RATERS = 3
"""With fewer raters nothing can be said about others: the variance of two has one degree of freedom. (Our rule: docs/ratings.md.)"""


@dataclass(frozen=True, kw_only=True)
class RatedAnswers:
    """The expected answers of one model; every array has shape (answers,).

    Attributes
    ----------
    graded : ndarray of float
        1 where the grader passes the answer, else 0; also 0 where no grader gave a value, or there is no answer.
    judged : ndarray of float
        1 or 0 where clinicians pass or fail it, NaN where none did.
    unjudged : ndarray of bool
        Drawn, shown, and nobody could judge it.
    probability : ndarray of float
        With which the answer was drawn, above 0 and at most 1; NaN where it was not.
    weight : ndarray of float
        1 / samples of the item.
    drawable : ndarray of bool
        Whether it could have been drawn.
    by : ByPatient
        Patients of the answers.
    without : ndarray of float, shape (raters, answers), optional
        `judged` without each rater.
    """

    graded: Floats
    judged: Floats
    unjudged: npt.NDArray[np.bool_]
    probability: Floats
    weight: Floats
    drawable: npt.NDArray[np.bool_]
    by: ByPatient
    without: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def rated(self) -> npt.NDArray[np.bool_]:
        """True where clinicians judged an answer."""
        return ~np.isnan(self.judged)

    def bounds_of_unjudged(self) -> tuple[float | None, float | None]:
        """Return the corrected rate if every answer that nobody could judge had failed, and if it had passed; both within 0 to 1."""
        found = [corrected_rate(self, np.where(self.unjudged, verdict, self.judged)) for verdict in (0.0, 1.0)]
        low, high = (None if value is None else float(np.clip(value, 0, 1)) for value in found)
        return low, high


def corrected_rate(answers: RatedAnswers, judged: Floats | None = None) -> float | None:
    """Return the corrected rate by the formula: it may lie outside 0 to 1.

    Parameters
    ----------
    answers : RatedAnswers
        The answers of a model.
    judged : ndarray of float, shape (answers,), optional
        Other judgements than those of `answers`.

    Returns
    -------
    float or None
        None when no answer is rated.
    """
    judged = answers.judged if judged is None else judged
    return None if np.isnan(judged).all() else float(_rate(_columns(answers, judged).sum(axis=0)))


def calibrated_rate(answers: RatedAnswers) -> Interval:
    """Return the corrected rate with an interval from resampled patients, the rated ones among them.

    Parameters
    ----------
    answers : RatedAnswers
        The answers of a model.

    Returns
    -------
    Interval
        Both within 0 to 1; `bootstrap`, expanded for the number of rated patients as `percentile_interval` says, and from three raters on
        for what others would have judged. Without bounds when fewer than two patients are rated; `none` when no answer is.

    Notes
    -----
    Where the clinicians contradict the grader in no rated answer a bootstrap would say that they never do. So half a patient with a
    contradiction in each direction is resampled with the others (compare Bonett and Price, Journal of Educational and Behavioral
    Statistics 37 (2012) 479, who add one to each of the two cells for independent pairs). Measured without and with it: docs/ratings.md.

    The variance between raters is that of the jackknife, which leaves out one rater at a time (Efron and Stein, Annals of Statistics 9 (1981)
    586); degrees of freedom of the sum: Satterthwaite, Biometrics Bulletin 2 (1946) 110.
    """
    value = corrected_rate(answers)
    if value is None:
        return Interval()
    settings, rated = answers.by.settings, answers.by.at(answers.rated).clusters
    sums = answers.by.sums(_columns(answers, answers.judged))
    # two pseudo-patients that contradict the grader, one in each direction
    half = HALF_A_PATIENT * sums[:, 4].sum() / rated
    sums = np.vstack([sums, [[0.0, 0.0, 0.0, half, half], [0.0, 0.0, 0.0, -half, half]]])
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = _rate(resampling_weights(len(sums), settings.resamples, settings.seed) @ sums)
    low, high = answers.by.percentiles(drawn, rated)
    value = float(np.clip(value, 0, 1))
    if low is None or high is None:
        return Interval(value, None, None, "bootstrap")
    low, high = widened(value, (min(value, low), max(value, high)), _widening_by_raters(answers, high - low, rated))
    return Interval(value, low, high, "bootstrap")


def widened(value: float, ends: tuple[float, float], times: float) -> tuple[float, float]:
    """Move the ends of an interval away from its value, within 0 and 1."""
    return max(value - (value - ends[0]) * times, 0.0), min(value + (ends[1] - value) * times, 1.0)


def _widening_by_raters(answers: RatedAnswers, width: float, patients: int) -> float:
    """How many times wider an interval over patients must be to hold for other raters too: 1 with fewer than three raters."""
    from scipy import special

    if len(answers.without) < FEWEST_RATERS:
        return 1.0
    found = [corrected_rate(answers, judged) for judged in answers.without]
    rates = np.array([np.nan if one is None else one for one in found])
    if np.isnan(rates).any() or width <= 0:
        return 1.0
    raters, upper = len(rates), 0.5 + answers.by.settings.confidence / 2
    half = width / 2
    of_patients = (half / special.stdtrit(patients - 1, upper)) ** 2
    of_raters = (raters - 1) / raters * float(((rates - rates.mean()) ** 2).sum())
    freedom = (of_patients + of_raters) ** 2 / (of_patients**2 / (patients - 1) + of_raters**2 / (raters - 1))
    return float(special.stdtrit(freedom, upper) * np.sqrt(of_patients + of_raters) / half)


def _columns(answers: RatedAnswers, judged: Floats) -> Floats:
    """Return the terms of the rate, shape (answers, 5): graded, weight, drawable weight, correction, inverse probability weight."""
    rated, weight = ~np.isnan(judged), answers.weight
    inverse = np.where(rated, weight / np.where(rated, answers.probability, 1.0), 0.0)
    correction = inverse * np.where(rated, judged - answers.graded, 0.0)
    return np.stack([weight * answers.graded, weight, weight * answers.drawable, correction, inverse], axis=1)


def _rate(sums: Floats) -> Floats:
    """Rate of sums, shape (..., 5)."""
    graded, weight, drawable, correction, inverse = np.moveaxis(sums, -1, 0)
    return np.asarray(graded / weight + drawable / weight * correction / inverse, dtype=np.float64)


def correct_rate(observed: float, sensitivity: float, specificity: float) -> float | None:
    """Return the true rate behind a pass rate by a grader with known errors; None if the grader is no better than chance.

    References
    ----------
    Rogan and Gladen, American Journal of Epidemiology 107 (1978) 71; cut at 0 and 1.

    Examples
    --------
    >>> round(correct_rate(0.45, 0.75, 1.0), 3), correct_rate(0.5, 0.5, 0.5)
    (0.6, None)
    """
    better = sensitivity + specificity - 1
    return min(max((observed + specificity - 1) / better, 0.0), 1.0) if better > 0 else None
