"""Intervals of everything that is said of confidences: one set of resampled patients, sums by group of confidence."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from neuralmedbench.estimates.calibration import MASS_BINS, area_under_risk, mass_bins, selective_accuracy, width_bins
from neuralmedbench.estimates.intervals import (
    Floats,
    Interval,
    IntervalSettings,
    Ints,
    exact_interval,
    percentile_interval,
    resampling_weights,
)
from neuralmedbench.tables.confidence.sources import Confidences

GROUPS = 6 * MASS_BINS
"""Into so many groups of confidence the answers are sorted for the resamples; what it moves is taken off (`Draws.around`)."""


class Draws:
    """Resampled measures of one `Confidences`; every array has shape (resamples,) unless it says otherwise.

    Parameters
    ----------
    found : Confidences
        With at least one answer that has a confidence.
    patients : int
        Patients of the benchmark: the resamples of all models and arms are the same, so that differences between them are paired.
    settings : IntervalSettings
        Resamples, seed and confidence.
    """

    def __init__(self, found: Confidences, patients: int, settings: IntervalSettings) -> None:
        self.found, self.patients, self.settings = found, patients, settings
        self.groups = mass_bins(found.value, GROUPS)
        self.clusters = len(set(found.patients.tolist()))

    def _by_patient(self, weights: Floats | None, patients: Ints, groups: Ints, size: int) -> Floats:
        sums = np.bincount(patients * size + groups, weights=weights, minlength=self.patients * size)
        return np.asarray(sums, dtype=np.float64).reshape(self.patients, size)

    @cached_property
    def _sums(self) -> list[Floats]:
        found = self.found
        one, rest = np.zeros_like(found.items), np.zeros_like(found.rest_patients)
        gap, bins = found.value - found.right, width_bins(found.value)
        parts = [
            self._by_patient(None, found.patients, self.groups, GROUPS),
            self._by_patient(found.right, found.patients, self.groups, GROUPS),
            self._by_patient(gap, found.patients, bins, int(bins.max()) + 1),
            self._by_patient(gap**2, found.patients, one, 1),
            self._by_patient(None, found.rest_patients, rest, 1),
            self._by_patient(found.rest_right, found.rest_patients, rest, 1),
        ]
        weights = resampling_weights(self.patients, self.settings.resamples, self.settings.seed)
        drawn = weights @ np.concatenate(parts, axis=1)
        return list(np.split(drawn, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1))

    @cached_property
    def _answers(self) -> Floats:
        return np.asarray(self._sums[0].sum(axis=1), dtype=np.float64)

    def _per_answer(self, sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / self._answers, dtype=np.float64)

    @property
    def overconfidence(self) -> Floats:
        """Mean confidence minus share right; made of its own two sums, as contrasts between arms need no more."""
        found, one = self.found, np.zeros_like(self.found.items)
        sums = [self._by_patient(weights, found.patients, one, 1) for weights in (found.value - found.right, None)]
        drawn = resampling_weights(self.patients, self.settings.resamples, self.settings.seed) @ np.concatenate(sums, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(drawn[:, 0] / drawn[:, 1], dtype=np.float64)

    @property
    def calibration_error(self) -> Floats:
        """Expected calibration error over bins of equal width."""
        return self._per_answer(np.abs(self._sums[2]).sum(axis=1))

    @property
    def error_by_chance(self) -> Floats:
        """Calibration error of a perfectly calibrated model whose answers scatter as these do: what is drawn, less what is there."""
        gap = np.bincount(width_bins(self.found.value), weights=self.found.value - self.found.right)
        return self._per_answer(np.abs(self._sums[2] - gap * (self._answers / len(self.found.value))[:, None]).sum(axis=1))

    def error_interval(self, error: float) -> tuple[float | None, float | None]:
        """Give the interval of the calibration error.

        Noise adds to this error, and resampling adds noise: the low end is the percentile turned around `error`, and 0 unless `error` is
        above nearly all that chance alone gives; the high end is the further one of the percentile and the turned one. (Our
        rule. `perf/confidence_intervals.py` measures how often it holds the truth; plain percentiles of a calibrated model never did.)
        """
        low, high = percentile_interval(self.calibration_error, self.clusters, self.settings.confidence)
        chance = percentile_interval(self.error_by_chance, self.clusters, self.settings.confidence)[1]
        if low is None or high is None:
            return None, None
        turned = max(0.0, 2 * error - high)
        return 0.0 if chance is not None and error <= chance else turned, min(1.0, max(high, 2 * error - low))

    @property
    def brier(self) -> Floats:
        """Brier score."""
        return self._per_answer(self._sums[3][:, 0])

    @property
    def auroc(self) -> Floats:
        """Area under the ROC curve of confidence for right; equals within a group count by half."""
        counts, rights = self._sums[0], self._sums[1]
        wrongs = counts - rights
        below = np.cumsum(wrongs, axis=1) - wrongs
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((rights * (below + wrongs / 2)).sum(axis=1) / (rights.sum(axis=1) * wrongs.sum(axis=1)), dtype=np.float64)

    def _surest_first(self) -> tuple[Floats, Floats]:
        counts, rights, rest, rest_right = self._sums[0], self._sums[1], self._sums[4], self._sums[5]
        return np.concatenate([counts[:, ::-1], rest], axis=1), np.concatenate([rights[:, ::-1], rest_right], axis=1)

    @property
    def area(self) -> Floats:
        """Area under the risk-coverage curve."""
        return area_under_risk(*self._surest_first())

    def selective(self, coverages: Floats) -> Floats:
        """Share right at each coverage: shape (resamples, coverages)."""
        return selective_accuracy(*self._surest_first(), coverages)

    def shares_right(self, bins: Ints) -> Floats:
        """Share right in each of the `MASS_BINS` bins `bins`, of shape (answers,): shape (resamples, MASS_BINS)."""
        parts = [self._by_patient(weights, self.found.patients, bins, MASS_BINS) for weights in (self.found.right, None)]
        weights = resampling_weights(self.patients, self.settings.resamples, self.settings.seed)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((weights @ parts[0]) / (weights @ parts[1]), dtype=np.float64)

    def around(self, value: float | None, drawn: Floats, grouped: float | None = None) -> tuple[float | None, float | None]:
        """Give the interval of a measure between 0 and 1."""
        if value is None:
            return None, None
        low, high = percentile_interval(drawn + (0.0 if grouped is None else value - grouped), self.clusters, self.settings.confidence)
        return (None, None) if low is None or high is None else (max(0.0, low), min(1.0, high))


def rate_of(right: Floats, patients: Ints, drawn: Floats, settings: IntervalSettings) -> Interval:
    """Interval of a share of answers, by the rules of `intervals.rate_interval`, with resamples that were drawn before."""
    codes = np.unique(patients, return_inverse=True)[1].reshape(-1)
    exact = exact_interval(right, codes, settings)
    if exact is not None:
        return exact
    return Interval(float(right.mean()), *percentile_interval(drawn, int(codes.max()) + 1, settings.confidence), "bootstrap")
