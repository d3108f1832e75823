"""What a model would be worth if it answered only when sure: rows of `risk_coverage.csv`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.calibration import area_under_risk, best_area, selective_accuracy
from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import counted
from neuralmedbench.tables.confidence.draws import Draws, rate_of
from neuralmedbench.tables.confidence.sources import REASONS, Confidences
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, best_of, value_share

FIXED = (0.5, 0.8, 1.0)
"""Coverages at which the share right has an interval."""

POINTS = tuple(number / 20 for number in range(1, 21))
"""Coverages of the curve."""


@dataclass(frozen=True, kw_only=True)
class RiskCoverageRow(ResultRow):
    """One point of a curve, or one measure of it."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    source: str
    measure: str
    coverage: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    threshold: float | None = None
    n: int | None = None
    n_patients: int | None = None


def risk_rows(found: Confidences, draws: Draws) -> list[Cells]:
    """Rows of `risk_coverage.csv` of one model.

    Measures `accuracy` (share right among the surest part of the answers; with an interval at `FIXED`), `aurc`, `aurc_best` (every right
    answer surer than every wrong one), `aurc_random` (confidence says nothing), and the shares of answers without a confidence by
    reason. Nothing where no answer has a confidence.
    """
    known, rest = len(found.value), len(found.rest_right)
    if not known:
        return []
    total, right = known + rest, int(found.right.sum() + found.rest_right.sum())
    levels, counts, rights = tied_groups(found, found.value)
    patients = len({*found.patients.tolist(), *found.rest_patients.tolist()})
    head = {"benchmark": found.benchmark, "model": found.model, "source": str(found.source), "n": total, "n_patients": patients}
    rows: list[Cells] = []
    coverages = np.array([point for point in POINTS if point * total >= 1])
    grouped = tied_groups(found, draws.groups.astype(np.float64))[1:]
    shares, drawn = selective_accuracy(counts, rights, coverages), draws.selective(np.array(FIXED))
    drawn += selective_accuracy(counts, rights, np.array(FIXED)) - selective_accuracy(*grouped, np.array(FIXED))
    ends = np.cumsum(counts)
    for coverage, share in zip(coverages.tolist(), shares.tolist(), strict=True):
        last = int(np.searchsorted(ends, coverage * total - 1e-9))
        threshold = float(levels[last]) if last < len(levels) else None
        row = head | {"measure": "accuracy", "coverage": coverage, "value": share, "threshold": threshold}
        if coverage in FIXED:
            row |= _interval(found, draws, share, threshold, drawn[:, FIXED.index(coverage)])
        rows.append(row)
    area = float(area_under_risk(counts, rights))
    low, high = draws.around(area, draws.area, float(area_under_risk(*grouped)))
    rows.append(head | {"measure": "aurc", "value": area, "low": low, "high": high, "interval": "none" if low is None else "bootstrap"})
    rows.append(head | {"measure": "aurc_best", "value": best_area(total, right)})
    rows.append(head | {"measure": "aurc_random", "value": 1 - right / total})
    return rows + [head | {"measure": reason, "value": found.reasons[reason] / total} for reason in REASONS]


def tied_groups(found: Confidences, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Sort answers into groups of equal confidence.

    The values from the highest, shape (values,); answers, and right answers, of each, with those that have no confidence behind them,
    shape (values + 1,).
    """
    levels, place = np.unique(-value, return_inverse=True)
    counts = np.bincount(place.reshape(-1)).astype(np.float64)
    rights = np.bincount(place.reshape(-1), weights=found.right)
    return -levels, np.append(counts, len(found.rest_right)), np.append(rights, found.rest_right.sum())


def _interval(found: Confidences, draws: Draws, share: float, threshold: float | None, drawn: Floats) -> Cells:
    """Interval of the share right at a coverage: by the rules of rates, over the answers that are kept at least in part."""
    kept = np.ones(len(found.value), dtype=bool) if threshold is None else found.value >= threshold
    right, patients = found.right[kept], found.patients[kept]
    if threshold is None:
        right, patients = np.append(right, found.rest_right), np.append(patients, found.rest_patients)
    moved = share - float(right.mean())  # the last group may be kept in part
    interval = rate_of(right, patients, drawn - moved, draws.settings)
    ends = [None if end is None else min(1.0, max(0.0, end + moved)) for end in (interval.low, interval.high)]
    return {"low": ends[0], "high": ends[1], "interval": interval.method}


def abstention_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Say what answering only when sure would have been worth to the model that stands first."""
    rows = [row for row in tables["risk_coverage"] if row["measure"] == "accuracy" and row["value"] is not None]
    n = counted(sum(row["n"] for row in rows if row["coverage"] == 1), "answer")
    for name, benchmark in sorted(study.benchmarks.items(), key=lambda pair: pair[1].config.axis is not Axis.DEPTH):
        best = best_of(tables, name)
        own = {
            row["coverage"]: row
            for row in rows
            if best and (row["benchmark"], row["model"], row["source"]) == (name, best["model"], "stated")
        }
        if best and 0.5 in own and 1.0 in own:
            told = f"{best['title']} is right in {value_share(own[0.5])} of the surest half of its answers and in {value_share(own[1.0])} of all"
            return Takeaway(f"{told} ({benchmark.config.title}).", n)
    return Takeaway("No ranked model states how sure it is, so nothing can be said about answering only when sure.", n)
