"""Breadth against depth: the Two-Axis Framework."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import NOTHING, ByPatient, Floats, Interval, IntervalSettings, rate_interval
from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import counted, points
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, whole_size, without_head


def above_prior(score: Floats | float, prior: Floats | float) -> Floats:
    """Return the share of the distance from the prior to a perfect score; 0 is no better than guessing the commonest answer.

    NaN where guessing is already perfect.

    Examples
    --------
    >>> float(above_prior(0.75, 0.5))
    0.5
    """
    room = 1 - np.asarray(prior, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(room > 0, (np.asarray(score) - prior) / room, np.nan)


def breadth_depth_gap(
    breadth: tuple[Floats, Floats, list[str]], depth: tuple[Floats, Floats, list[str]], settings: IntervalSettings
) -> Interval:
    """Return breadth minus depth, each as the share of the distance from the prior to a perfect score.

    `breadth` and `depth` are item values, prior values and patient ids. A patient on both sides is drawn for both together.
    """
    if not len(breadth[2]) or not len(depth[2]):
        return NOTHING
    # one table with the items of both sides: score and prior of breadth, then of depth
    by, split = ByPatient(breadth[2] + depth[2], settings), len(breadth[2])
    table = np.full((len(by.codes), 4), np.nan)
    table[:split, 0], table[:split, 1] = breadth[0], breadth[1]
    table[split:, 2], table[split:, 3] = depth[0], depth[1]
    if np.isnan(table).all(axis=0).any():
        return NOTHING
    means = np.nanmean(table, axis=0)
    value = float(above_prior(means[0], means[1]) - above_prior(means[2], means[3]))
    if not np.isfinite(value):
        return NOTHING
    draws = by.resampled_means(table)
    gaps = above_prior(draws[:, 0], draws[:, 1]) - above_prior(draws[:, 2], draws[:, 3])
    return Interval(value, *by.percentiles(gaps), "bootstrap")


@dataclass(frozen=True, kw_only=True)
class AxesRow(ResultRow):
    """One model on one breadth and one depth benchmark."""

    model: str
    title: str | None = None
    breadth_benchmark: str
    breadth_in_reference_pool: bool | None = None
    breadth: float | None = None
    breadth_low: float | None = None
    breadth_high: float | None = None
    breadth_prior: float | None = None
    depth_benchmark: str
    depth_in_reference_pool: bool | None = None
    depth: float | None = None
    depth_low: float | None = None
    depth_high: float | None = None
    depth_prior: float | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None


def axis_rows(study: Study) -> list[AxesRow]:
    """Rows of `axes.csv`: every model on each pair of a breadth and a depth benchmark."""
    scored = [benchmark for benchmark in study.benchmarks.values() if benchmark.outcomes.items]
    models = [model for model in study.models if model not in study.readers]  # readers answer only a sample of the items
    sides = {axis: [benchmark for benchmark in scored if benchmark.config.axis is axis] for axis in (Axis.BREADTH, Axis.DEPTH)}
    return [_axis_row(study, model, breadth, depth) for breadth in sides[Axis.BREADTH] for depth in sides[Axis.DEPTH] for model in models]


def _axis_row(study: Study, model: str, breadth: BenchmarkStudy, depth: BenchmarkStudy) -> AxesRow:
    row: Cells = {"model": model, "title": study.models[model].title}
    sides = []
    for axis, benchmark in (("breadth", breadth), ("depth", depth)):
        outcomes = benchmark.outcomes
        values = outcomes.metric("pass1", Key(model))
        if outcomes.counts[Key(model)].missing_fraction > study.settings.max_missing_fraction:
            values = np.full(len(values), np.nan)  # missing answers would count as errors of the model
        interval = rate_interval(values, outcomes.by_patient(study.settings))
        row |= {f"{axis}_benchmark": benchmark.name, axis: interval.value}
        row |= {f"{axis}_low": interval.low, f"{axis}_high": interval.high, f"{axis}_prior": float(benchmark.prior["pass1"].mean())}
        sides.append((values, benchmark.prior["pass1"], [item.patient_id for item in outcomes.items]))
    gap = breadth_depth_gap(sides[0], sides[1], study.settings)
    return AxesRow(**row, gap=gap.value, gap_low=gap.low, gap_high=gap.high)


def gap_sentence(tables: Tables) -> str:
    """State which models are significantly better at one axis, on every pair of a breadth and a depth set: one pair of many proves little."""
    rows = [row for row in tables["axes"] if row["gap_low"] is not None]
    if not rows:
        return ""
    models: dict[str, list[Cells]] = {}
    for row in rows:
        models.setdefault(row["model"], []).append(row)
    # a model is significantly better only if all its intervals exclude 0
    pairs = len({(row["breadth_benchmark"], row["depth_benchmark"]) for row in rows})
    beyond = "beyond guessing the commonest answer,"
    where = f" on all {pairs} pairs of sets" if pairs > 1 else ""
    # gap_low > 0 on every pair: better at breadth; gap_high < 0: better at depth
    sure = [own for own in models.values() if all(row["gap_low"] > 0 for row in own)]
    depth = [own for own in models.values() if all(row["gap_high"] < 0 for row in own)]
    if not sure:
        if depth:
            return (
                f"Breadth against depth: {beyond} {len(depth)} of {len(models)} models are surely better at depth{where}, none at breadth."
            )
        return f"Breadth against depth: {beyond} no model is surely better at one than at the other{where}."
    top = max((row for own in sure for row in own), key=lambda row: row["gap"])
    gap, low, high = (points(top[name], plus="") for name in ("gap", "gap_low", "gap_high"))
    text = f"{len(sure)} of {len(models)} models are surely better at breadth{where}"
    return f"Breadth against depth: {text}; the largest gap is that of {top['title']}, {gap} points ({low} to {high})."


def axes_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the gap between breadth and depth."""
    rows = tables["axes"]
    if not (sentence := gap_sentence(tables)):
        nothing = "A gap needs a breadth and a depth benchmark that the same model answered; this run has none."
        known = any(row["gap"] is not None for row in rows)
        return Takeaway(
            "No gap has an interval: too few patients, or no model's scores differ between them." if known else nothing, "0 models"
        )
    pairs = sorted({(row["breadth_benchmark"], row["depth_benchmark"]) for row in rows})
    text = counted(len({row["model"] for row in rows}), "model")
    return Takeaway(without_head(sentence), f"{text} on {counted(len(pairs), 'pair')} of sets; {whole_size(study, tables)}")


TABLE = Table(
    name="axes",
    row=AxesRow,
    rows=of_study(axis_rows),
    suppression=Suppression(
        "model title breadth_benchmark breadth_in_reference_pool depth_benchmark depth_in_reference_pool", mark="", patients=""
    ),
    takeaways={"axes": axes_takeaway},
)
