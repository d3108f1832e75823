"""Correlation of breadth and depth scores over models."""

from __future__ import annotations

import numpy as np
from scipy import stats

from neuralmedbench.tables.rows import Cells, Tables
from neuralmedbench.tables.study import Study

MODELS_FOR_A_CORRELATION = 8
"""With fewer models a correlation between the axes says too little to be shown."""

STRAIGHT = 0.95
"""Beyond this correlation its interval is too narrow to be shown."""


def rank_correlation(breadth: list[float], depth: list[float]) -> float | None:
    """Return the Spearman correlation over models; None with fewer than 8, or when one axis does not vary."""
    if len(breadth) < MODELS_FOR_A_CORRELATION or np.ptp(breadth) == 0 or np.ptp(depth) == 0:
        return None
    return float(stats.spearmanr(breadth, depth).statistic)


def correlation_interval(value: float, models: int, confidence: float) -> tuple[float, float] | None:
    """Return the interval of a rank correlation by Fisher's transformation; None beyond 0.95 on either side, where it is too narrow.

    References
    ----------
    Bonett and Wright, Psychometrika 65 (2000) 23: variance (1 + r^2 / 2) / (n - 3), for correlations up to 0.95.
    """
    if abs(value) > STRAIGHT:
        return None
    half = stats.norm.ppf(0.5 + confidence / 2) * np.sqrt((1 + value**2 / 2) / (models - 3))
    return float(np.tanh(np.arctanh(value) - half)), float(np.tanh(np.arctanh(value) + half))


def correlation_statement(study: Study, tables: Tables) -> str:
    """State the rank correlation of each pair of a breadth and a depth set, or why none is given."""
    known = [row for row in tables["axes"] if not study.models[row["model"]].baseline and None not in (row["breadth"], row["depth"])]
    pairs: dict[tuple[str, str], list[Cells]] = {}
    for row in known:
        pairs.setdefault((row["breadth_benchmark"], row["depth_benchmark"]), []).append(row)
    parts = []
    for (breadth, depth), rows in pairs.items():
        value = rank_correlation([row["breadth"] for row in rows], [row["depth"] for row in rows])
        if value is not None:
            bounds = correlation_interval(value, len(rows), study.settings.confidence)
            span = f" ({bounds[0]:.2f} to {bounds[1]:.2f})" if bounds else ""
            parts.append(f"{value:.2f}{span} of {breadth} and {depth} over {len(rows)} models")
    if parts:
        return (
            f"Rank correlation of breadth and depth: {'; '.join(parts)}. The interval takes models as drawn at random, which they are not."
        )
    most = max((len(rows) for rows in pairs.values()), default=0)
    why = f"this run has {most}" if most < MODELS_FOR_A_CORRELATION else "the models of this run are all equal on one side"
    return f"A correlation between breadth and depth is given over at least {MODELS_FOR_A_CORRELATION} real models with a score on both; {why}."
