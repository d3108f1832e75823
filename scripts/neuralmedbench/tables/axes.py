"""Breadth against depth: the Two-Axis Framework."""

from __future__ import annotations

import numpy as np
from scipy import stats

from neuralmedbench.estimates.intervals import NOTHING, Floats, Interval, Settings, codes_of, percentile_interval, resampled_means

MODELS_FOR_A_CORRELATION = 8
"""With fewer models a correlation between the axes is an anecdote."""

STRAIGHT = 0.95
"""Beyond this correlation its interval is too narrow to be shown."""


def above_prior(score: Floats | float, prior: Floats | float) -> Floats:
    """Share of the way from the prior to a perfect score; 0 is no better than guessing the commonest.

    NaN where guessing is already perfect: then there is no way to go.

    Examples
    --------
    >>> float(above_prior(0.75, 0.5))
    0.5
    """
    room = 1 - np.asarray(prior, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(room > 0, (np.asarray(score) - prior) / room, np.nan)


def breadth_depth_gap(breadth: tuple[Floats, Floats, list[str]], depth: tuple[Floats, Floats, list[str]], settings: Settings) -> Interval:
    """Breadth minus depth, each as the share of the way from the prior to a perfect score.

    Parameters
    ----------
    breadth, depth : tuple of (ndarray, ndarray, list of str)
        Item values of pass@1 of the model, of the prior, and the patient of each item.
    settings : Settings
        Resamples, seed and confidence.

    Returns
    -------
    Interval
        Patients that stand on both sides are drawn together.
    """
    codes = codes_of(breadth[2] + depth[2])
    if not len(breadth[2]) or not len(depth[2]):
        return NOTHING
    table = np.full((len(codes), 4), np.nan)
    split = len(breadth[2])
    table[:split, 0], table[:split, 1] = breadth[0], breadth[1]
    table[split:, 2], table[split:, 3] = depth[0], depth[1]
    if np.isnan(table).all(axis=0).any():
        return NOTHING
    means = np.nanmean(table, axis=0)
    value = float(above_prior(means[0], means[1]) - above_prior(means[2], means[3]))
    if not np.isfinite(value):
        return NOTHING
    draws = resampled_means(table, codes, settings)
    gaps = above_prior(draws[:, 0], draws[:, 1]) - above_prior(draws[:, 2], draws[:, 3])
    return Interval(value, *percentile_interval(gaps, int(codes.max()) + 1, settings.confidence), "bootstrap")


def rank_correlation(breadth: list[float], depth: list[float]) -> float | None:
    """Spearman correlation over models; None with fewer than 8 or when one axis does not vary."""
    if len(breadth) < MODELS_FOR_A_CORRELATION or np.ptp(breadth) == 0 or np.ptp(depth) == 0:
        return None
    return float(stats.spearmanr(breadth, depth).statistic)


def correlation_interval(value: float, models: int, confidence: float) -> tuple[float, float] | None:
    """Give the interval of a rank correlation by Fisher's transformation.

    Parameters
    ----------
    value : float
        Spearman's correlation, -1 to 1.
    models : int
        Number of models, more than 3.
    confidence : float
        Confidence level.

    Returns
    -------
    tuple of float or None
        Low and high; None beyond 0.95 on either side, where the formula is too narrow.

    References
    ----------
    Bonett and Wright, Psychometrika 65 (2000) 23: variance (1 + r^2 / 2) / (n - 3), for correlations up to 0.95.
    """
    if abs(value) > STRAIGHT:
        return None
    half = stats.norm.ppf(0.5 + confidence / 2) * np.sqrt((1 + value**2 / 2) / (models - 3))
    return float(np.tanh(np.arctanh(value) - half)), float(np.tanh(np.arctanh(value) + half))
