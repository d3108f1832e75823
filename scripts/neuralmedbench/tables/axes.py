"""Breadth against depth: the Two-Axis Framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, IntervalSettings, bootstrap_p_value, rate_interval
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import Axis
from neuralmedbench.records.results import FAMILY_TITLES
from neuralmedbench.records.words import all_of, are, counted, listing, percent, points
from neuralmedbench.tables.declare import SCORED, Suppression, Table, of_study
from neuralmedbench.tables.floors import BRACKET, Floor
from neuralmedbench.tables.missing import is_left_open
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.rows import Cells, ResultRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import SIDES, Takeaway, claims_of, whole_size, without_head


def above_floor(score: Floats | float, floor: Floats | float) -> Floats:
    """Return the share of the distance from the floor to a perfect score; 0 is no better than the best constant answer.

    NaN where the constant answer is already perfect.

    Examples
    --------
    >>> float(above_floor(0.75, 0.5))
    0.5
    """
    room = 1 - np.asarray(floor, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(room > 0, (np.asarray(score) - floor) / room, np.nan)


FEWEST_SHARED = 8
"""With fewer patients who share their answer with another one there is no gap. (Our rule: perf/breadth_depth.py.)"""


class Side(NamedTuple):
    """One family of one benchmark: item values of a model, shape (items,), the floor of the items, and their patients."""

    score: Floats
    floor: Floor
    patients: list[str]

    @property
    def earnable(self) -> Side:
        """Only the items whose answer is that of another patient too: on the others no constant can be right."""
        kept = self.floor.shared
        return Side(self.score[kept], self.floor.at(kept), [name for name, keep in zip(self.patients, kept, strict=True) if keep])


class Gap(NamedTuple):
    """Breadth minus depth and its two parts, each as the share of the way from the floor to a perfect score."""

    breadth: Interval
    depth: Interval
    difference: Interval
    p_value: float | None


NO_GAP = Gap(Interval(), Interval(), Interval(), None)


def breadth_depth_gap(breadth: Side, depth: Side, settings: IntervalSettings) -> Gap:
    """Compare two sides; a patient on both is drawn for both together.

    The floor lies between what the constant earns that was chosen on other patients, from which the values are computed, and what the best
    one earns in hindsight: each end of an interval takes the one that makes it wider.
    """
    sides = [breadth.earnable, depth.earnable]
    # the side with fewer patients decides how far an interval reaches
    fewest = min(len(set(side.patients)) for side in sides)
    if fewest < FEWEST_SHARED:
        return NO_GAP
    # one table with the items of both sides: score and both floors of breadth, then of depth
    by, split = ByPatient(sides[0].patients + sides[1].patients, settings), len(sides[0].patients)
    table = np.full((len(by.codes), 6), np.nan)
    for place, rows in ((0, slice(None, split)), (3, slice(split, None))):
        side = sides[place // 3]
        table[rows, place : place + 3] = np.stack([side.score, side.floor.chosen, side.floor.hindsight], axis=1)
    if np.isnan(table).all(axis=0).any():
        return NO_GAP
    means, draws = np.nanmean(table, axis=0), by.resampled_means(table)
    # how far above the floor: at most (chosen on others) and at least (in hindsight)
    high, low = (above_floor(means[[0, 3]], means[[floor, 3 + floor]]) for floor in (1, 2))
    high_draws, low_draws = (above_floor(draws[:, [0, 3]], draws[:, [floor, 3 + floor]]) for floor in (1, 2))
    if not np.isfinite(low).all():
        return NO_GAP

    def within(value: float, at_least: Floats, at_most: Floats) -> Interval:
        # an end that does not vary is known: the score equals its floor in every resample
        bottom, top = by.percentiles(at_least, fewest)[0], by.percentiles(at_most, fewest)[1]
        return Interval(value, float(at_least[0]) if bottom is None else bottom, float(at_most[0]) if top is None else top, BRACKET)

    parts = [within(float(high[side]), low_draws[:, side], high_draws[:, side]) for side in (0, 1)]
    # below the floor counts as at the floor: an answer that is worse than a constant one is no reason for a gap
    high, high_draws, low_draws = (np.maximum(of, 0) for of in (high, high_draws, low_draws))
    low_gap, high_gap = low_draws[:, 0] - high_draws[:, 1], high_draws[:, 0] - low_draws[:, 1]
    p_value = min(1.0, 2 * min(bootstrap_p_value(low_gap, fewest), bootstrap_p_value(-high_gap, fewest)))
    return Gap(parts[0], parts[1], within(float(high[0] - high[1]), low_gap, high_gap), p_value)


@dataclass(frozen=True, kw_only=True)
class AxesRow(ResultRow):
    """One model on one breadth and one depth benchmark."""

    model: str
    title: str | None = None
    breadth_benchmark: str
    breadth_family: str | None = None
    breadth_in_reference_pool: bool | None = None
    breadth: float | None = None
    breadth_low: float | None = None
    breadth_high: float | None = None
    breadth_prior: float | None = None
    breadth_above: float | None = None
    breadth_above_low: float | None = None
    breadth_above_high: float | None = None
    breadth_shared: float | None = None
    depth_benchmark: str
    depth_family: str | None = None
    depth_in_reference_pool: bool | None = None
    depth: float | None = None
    depth_low: float | None = None
    depth_high: float | None = None
    depth_prior: float | None = None
    depth_above: float | None = None
    depth_above_low: float | None = None
    depth_above_high: float | None = None
    depth_shared: float | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    gap_p: float | None = None
    n_patients: int | None = None
    note: str | None = None


def axis_rows(study: Study) -> list[AxesRow]:
    """Rows of `axes.csv`: every model on each pair of a family of a breadth and of a depth benchmark."""
    models = [model for model in study.models if model not in study.readers]  # readers answer only a sample of the items
    parts: dict[str, list[tuple[BenchmarkStudy, str]]] = {Axis.BREADTH: [], Axis.DEPTH: []}
    for benchmark in study.benchmarks.values():
        if benchmark.config.axis in parts:
            parts[benchmark.config.axis] += [
                (benchmark, family) for family in sorted({str(item.family) for item in benchmark.outcomes.items})
            ]
    return [_axis_row(study, model, breadth, depth) for breadth in parts[Axis.BREADTH] for depth in parts[Axis.DEPTH] for model in models]


def _axis_row(study: Study, model: str, breadth: tuple[BenchmarkStudy, str], depth: tuple[BenchmarkStudy, str]) -> AxesRow:
    row: Cells = {"model": model, "title": study.models[model].title}
    sides = []
    for axis, (benchmark, family) in (("breadth", breadth), ("depth", depth)):
        outcomes = benchmark.outcomes
        kept = np.array([item.family == family for item in outcomes.items], dtype=bool)
        values, floor, by = (
            outcomes.metric("pass1", Key(model))[kept],
            benchmark.floors["pass1"].at(kept),
            outcomes.by_patient(study.settings).at(kept),
        )
        if is_left_open(outcomes, Key(model), "pass1", kept, study.settings.max_missing_fraction):
            values = np.full(len(values), np.nan)  # missing answers would count as errors of the model
        row |= {f"{axis}_benchmark": benchmark.name, f"{axis}_family": family} | with_ends({axis: rate_interval(values, by)})
        row |= {f"{axis}_prior": float(floor.chosen.mean()), f"{axis}_shared": float(floor.shared.mean())}
        sides.append(Side(values, floor, [item.patient_id for item, keep in zip(outcomes.items, kept, strict=True) if keep]))
    gap = breadth_depth_gap(sides[0], sides[1], study.settings)
    row |= with_ends({"breadth_above": gap.breadth, "depth_above": gap.depth})
    note = _why_no_gap(sides, gap, study.settings.max_missing_fraction)
    # the patients of the gap where there is one, else those of the two rates
    row["n_patients"] = min(len(set((side if note else side.earnable).patients)) for side in sides)
    if not note:
        row |= with_ends({"gap": gap.difference}) | {"gap_p": gap.p_value}
    return AxesRow(**row, note=note)


UNSHARED = "too few patients with the same answer"
UNEARNED = "not shown to be better than the best constant answer on either axis"


def gap_is_shown(gap: Gap) -> bool:
    """Return True if the model is better than the best constant answer on one axis at least; else a gap says nothing about it."""
    return any(part.low is not None and part.low > 0 for part in (gap.breadth, gap.depth))


def _why_no_gap(sides: Sequence[Side], gap: Gap, limit: float) -> str:
    unknown = [str(axis) for axis, side in zip((Axis.BREADTH, Axis.DEPTH), sides, strict=True) if np.isnan(side.score).all()]
    if unknown:
        return (
            f"{' and '.join(unknown)} {are(len(unknown))} not known, as more than {percent(limit)} of the answers are missing or not graded"
        )
    if gap.difference.value is None:
        return UNSHARED
    return "" if gap_is_shown(gap) else UNEARNED


def better_axis(tables: Tables) -> dict[str, list[Cells]]:
    """Return the rows with a gap of the models that are better at one axis than at the other, by axis.

    On every pair of families, as one pair of many proves little.
    """
    models: dict[str, list[Cells]] = {}
    for row in tables["axes"]:
        if row["gap_low"] is not None:
            models.setdefault(row["model"], []).append(row)
    # better at an axis: the gap is significant, and the score of that axis is above its floor
    sure = {
        (row["model"], *_pair_of({**row, "depth_benchmark": row["benchmark"], "depth_family": row["family"]}))
        for row in claims_of(tables, SIDES)
    }
    return {
        axis: [
            row
            for own in models.values()
            if all((row["model"], *_pair_of(row)) in sure and sign * row["gap"] > 0 and row[f"{axis}_above_low"] > 0 for row in own)
            for row in own
        ]
        for sign, axis in ((1, "breadth"), (-1, "depth"))
    }


def gap_sentence(tables: Tables) -> str:
    """State how many models are better at one axis than at the other."""
    rows = [row for row in tables["axes"] if row["gap_low"] is not None]
    if not rows:
        return ""
    better = better_axis(tables)
    breadth, depth = ({row["model"] for row in better[axis]} for axis in ("breadth", "depth"))
    number = len({_pair_of(row) for row in rows})
    where = f" on {all_of(number, 'pair')} of tasks" if number > 1 else ""
    models = len({row["model"] for row in rows})
    beyond = "Breadth against depth: beyond the best constant answer, "
    if not breadth and not depth:
        whom = {1: f"{rows[0]['title']} is not", 2: "neither of 2 models is"}.get(models, f"none of {models} models is")
        return f"{beyond}{whom} shown to be better at one than at the other{where}."
    top = max(better["breadth"] + better["depth"], key=lambda row: abs(row["gap"]))
    gap, low, high = (points(top[name]) for name in ("gap", "gap_low", "gap_high"))
    counts = f"{len(breadth) or 'none'} {are(len(breadth))} better at breadth and {len(depth) or 'none'} at depth"
    who = f"{top['title']} is better at {'breadth' if breadth else 'depth'}" if models == 1 else f"of {models} models {counts}"
    whose = "its gap is" if models == 1 else f"the largest gap is that of {top['title']},"
    return f"{beyond}{who}{where}; {whose} {gap} points ({low} to {high}; {task(top, 'breadth')} minus {task(top, 'depth')})."


def _pair_of(row: Cells) -> tuple[str, ...]:
    return tuple(row[name] for name in ("breadth_benchmark", "breadth_family", "depth_benchmark", "depth_family"))


def task(row: Cells, axis: str) -> str:
    """Name one side of a row: benchmark and family."""
    return f"{row[f'{axis}_benchmark']} ({FAMILY_TITLES[row[f'{axis}_family']].lower()})"


def axes_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise the gap between breadth and depth."""
    rows = tables["axes"]
    size = f"{counted(len({row['model'] for row in rows}), 'model')} on {counted(len({_pair_of(row) for row in rows}), 'pair')} of tasks; "
    if sentence := gap_sentence(tables):
        return Takeaway(without_head(sentence, study), size + whole_size(study, tables))
    if not rows:
        return Takeaway("A gap needs a breadth and a depth benchmark that the same model answered; this run has none.", "0 models")
    notes = Counter(row["note"] or "too few patients for an interval" for row in rows)
    why = listing([f"{note} ({number} of {len(rows)} rows)" for note, number in notes.most_common()], len(notes))
    return Takeaway(f"No gap between breadth and depth is given: {why}.", size + whole_size(study, tables))


def _family_labels(row: Cells) -> list[Label]:
    return [(f"{SCORED} family", row[f"{axis}_family"]) for axis in ("breadth", "depth")]


TABLE = Table(
    name="axes",
    row=AxesRow,
    rows=of_study(axis_rows),
    suppression=Suppression(
        "model title breadth_benchmark breadth_family breadth_in_reference_pool depth_benchmark depth_family depth_in_reference_pool",
        mark="",
        labels=_family_labels,
    ),
    takeaways={"axes": axes_takeaway},
)
