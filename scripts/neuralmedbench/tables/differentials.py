"""Ranked differentials: whether the reference stands first, among the first three, among the first five; and how long the lists are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import (
    NOTHING,
    Floats,
    Interval,
    IntervalSettings,
    Ints,
    cluster_sums,
    exact_interval,
    percentile_interval,
    resampling_weights,
)
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.declare import ALL, MODEL, RANKED, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import K, Key, Outcomes, headline
from neuralmedbench.tables.rows import Cells, ResultRow
from neuralmedbench.tables.study import BenchmarkStudy, Study

DEPTHS = {"top1": 1, "top3": 3, "top5": K}
METRICS = (*DEPTHS, "mrr")


@dataclass(frozen=True, kw_only=True)
class DifferentialRow(ResultRow):
    """Ranked differentials of one model in one family and level."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    family: str | None = None
    level: str | None = None
    top1: float | None = None
    top1_low: float | None = None
    top1_high: float | None = None
    top3: float | None = None
    top3_low: float | None = None
    top3_high: float | None = None
    top5: float | None = None
    top5_low: float | None = None
    top5_high: float | None = None
    mrr: float | None = None
    mrr_low: float | None = None
    mrr_high: float | None = None
    mean_candidates: float | None = None
    full_lists: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    answers: int | None = None
    without_list: int | None = None
    missing: int | None = None


def differential_rows(study: Study) -> list[DifferentialRow]:
    """Rows of `differential.csv`.

    For each benchmark with items that ask for a ranked differential, family, level and model, under the arm full and the strategy
    direct: recall among the first 1, 3 and 5 candidates and the mean reciprocal rank (of lists of five; 0 when the reference is not
    among them). An item counts as the mean over its samples that are there. A refused, truncated or unreadable answer did not find the
    reference; a missing one is no answer, and is counted beside.

    The vocabulary decides (the reference, a synonym, or a narrower term), so `top1` of open items is not pass@1, which a grader decides.
    """
    rows: list[DifferentialRow] = []
    for benchmark in study.benchmarks.values():
        lists = {model: _Lists(benchmark, model) for model in study.models}
        for family, level, mask in _cells(benchmark.outcomes) if lists else ():
            values = np.stack([np.where(mask, own.values[name], np.nan) for own in lists.values() for name in METRICS], axis=1)
            intervals = iter(rate_intervals(values, benchmark.outcomes.patients, study.settings))
            for model, own in lists.items():
                row: Cells = {"benchmark": benchmark.name, "model": model, "family": family, "level": level}
                for name in METRICS:
                    found = next(intervals)
                    row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                rows.append(DifferentialRow(**row, **own.counted(mask, benchmark.outcomes.patients)))
    return rows


def _cells(outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    """Give all ranked items, each family, each level, and each pair of both."""
    if not outcomes.ranked.any():
        return
    families, levels = np.array([str(item.family) for item in outcomes.items]), np.array([str(item.level) for item in outcomes.items])
    for family in (ALL, *sorted(set(families[outcomes.ranked].tolist()))):
        for level in (ALL, *sorted(set(levels[outcomes.ranked].tolist()))):
            mask = outcomes.ranked & ((families == family) | (family == ALL)) & ((levels == level) | (level == ALL))
            if mask.any():
                yield family, level, mask


class _Lists:
    """The differentials of one model, counted by item: every array has shape (items,)."""

    def __init__(self, benchmark: BenchmarkStudy, model: str) -> None:
        outcomes = benchmark.outcomes
        places = {item.item_id: place for place, item in enumerate(outcomes.items) if outcomes.ranked[place]}
        size = len(outcomes.items)
        self.samples = np.where(outcomes.ranked, outcomes.counts[Key(model)].samples, 0)
        self.there, self.unread, self.lists, self.candidates, self.long = (np.zeros(size, dtype=np.int64) for _ in range(5))
        sums = {name: np.zeros(size) for name in METRICS}
        for row in headline(benchmark.scores.get(model, [])):
            place = places.get(row.item_id)
            if place is None or row.missing:
                continue
            self.there[place] += 1
            self._add(place, row)
            if row.reference_rank is not None:
                for name, depth in DEPTHS.items():
                    sums[name][place] += row.reference_rank <= depth
                sums["mrr"][place] += 1 / row.reference_rank
        self.values = {name: np.where(self.there > 0, total / np.maximum(self.there, 1), np.nan) for name, total in sums.items()}

    def _add(self, place: int, row: Score) -> None:
        if row.state != "ok" or not row.differential:
            self.unread[place] += 1
            return
        self.lists[place] += 1
        self.candidates[place] += len(row.differential)
        self.long[place] += len(row.differential) >= K

    def counted(self, mask: Mask, patients: Ints) -> Cells:
        """Count answers and the length of lists over some items."""
        there, lists = int(self.there[mask].sum()), int(self.lists[mask].sum())
        known = mask & (self.there > 0)
        return {
            "mean_candidates": float(self.candidates[mask].sum() / lists) if lists else None,
            "full_lists": float(self.long[mask].sum() / lists) if lists else None,
            "n_items": int(known.sum()),
            "n_patients": len(set(patients[known].tolist())),
            "answers": there,
            "without_list": int(self.unread[mask].sum()),
            "missing": int(self.samples[mask].sum()) - there,
        }


def rate_intervals(values: Floats, patients: Ints, settings: IntervalSettings) -> list[Interval]:
    """Means of many columns with intervals by the rules of `intervals.rate_interval`, under one set of resamples.

    One a column. Patients of other items are drawn too, so a bootstrap differs from that of `rate_interval` by chance alone.
    """
    known = ~np.isnan(values)
    found: dict[int, Interval] = {}
    clusters: dict[int, int] = {}
    for column in range(values.shape[1]):
        if not known[:, column].any():
            found[column] = NOTHING
            continue
        codes = np.unique(patients[known[:, column]], return_inverse=True)[1].reshape(-1)
        exact = exact_interval(values[known[:, column], column], codes, settings)
        if exact is None:
            clusters[column] = int(codes.max()) + 1
        else:
            found[column] = exact
    if clusters:
        columns, size = list(clusters), int(patients.max()) + 1
        weights = resampling_weights(size, settings.resamples, settings.seed)
        masks, place = np.unique(known[:, columns], axis=1, return_inverse=True)
        totals = weights @ cluster_sums(np.where(known, values, 0.0)[:, columns], patients, size)
        sizes = (weights @ cluster_sums(masks.astype(np.float64), patients, size))[:, place.reshape(-1)]
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = totals / sizes
        for number, column in enumerate(columns):
            ends = percentile_interval(drawn[:, number], clusters[column], settings.confidence)
            found[column] = Interval(float(np.nanmean(values[:, column])), *ends, "bootstrap")
    return [found[column] for column in range(values.shape[1])]


def _labels(row: Cells) -> list[Label]:
    family, level = row["family"], row["level"]
    labels = [(f"{ALL} {RANKED}", "")]
    if level == ALL:
        return labels if family == ALL else [*labels, ("differential", family)]
    return [*labels, (f"differential {family}", level)]


TABLE = Table(
    name="differential",
    row=DifferentialRow,
    rows=of_study(differential_rows),
    suppression=Suppression(f"{MODEL} family level", labels=_labels),
)
