"""Rates before and after a model's training cut-off, as a sign that it read the cases: `contamination.csv`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.contrasts import paired_difference, square_and_add, unpaired_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, patients_rate
from neuralmedbench.records.results import PATIENT
from neuralmedbench.records.words import counted, plural
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key, Outcomes
from neuralmedbench.tables.rows import Cells, ModelRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, exploratory

FEWEST_PATIENTS = 8
"""With fewer patients on a side nothing is compared. (Our rule.)"""

METRICS = ("pass1", "rubric")
DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

NEVER_PUBLISHED = "patients who are not public: no training data can hold their cases"
NO_CUTOFF = "no training cut-off is documented: `knowledge_cutoff` in its yaml"
NO_DATE = "no item has a date of publication"
ALONE = "no model of the run is free of this cut-off, so newer cases may only be harder"
BESIDE = "newer cases may be harder for every model: read what lies beyond the others"


class Sides(NamedTuple):
    """Items that are certainly as old as the training data, and certainly newer; both of shape (items,)."""

    before: Mask
    after: Mask

    @property
    def divided(self) -> bool:
        """True if there are items on both sides."""
        return bool(self.before.any() and self.after.any())


BEYOND = ("beyond_others", "beyond_low", "beyond_high")
"""Columns of the difference beyond the models that a cut-off does not divide."""


@dataclass(frozen=True, kw_only=True)
class ContaminationRow(ModelRow):
    """One model before and after its training cut-off."""

    cutoff: str | None = None
    metric: str | None = None
    before: float | None = None
    before_low: float | None = None
    before_high: float | None = None
    after: float | None = None
    after_low: float | None = None
    after_high: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    beyond_others: float | None = None
    beyond_low: float | None = None
    beyond_high: float | None = None
    others: str | None = None
    n_items_before: int | None = None
    n_patients_before: int | None = None
    n_items_after: int | None = None
    n_patients_after: int | None = None
    n_items_left_out: int | None = None
    note: str | None = None


def contamination_rows(study: Study) -> list[ContaminationRow]:
    """Rows of `contamination.csv`: arm full, strategy direct; models that are neither readers nor built-in references.

    Per model, benchmark and metric the rates before and after its cut-off and their difference, before minus after; or one row with a note
    that states what is lacking.
    """
    rows: list[Cells] = []
    for benchmark in study.benchmarks.values():
        asked = [model for model in study.models if model not in study.readers and not study.models[model].baseline]
        if benchmark.outcomes.items:
            rows += [row for model in asked for row in _rows(study, benchmark, model)]
    return [ContaminationRow(**row) for row in rows]


def _rows(study: Study, benchmark: BenchmarkStudy, model: str) -> Iterator[Cells]:
    outcomes, config = benchmark.outcomes, study.models[model]
    head: Cells = {"benchmark": benchmark.name, "model": model, "cutoff": config.knowledge_cutoff}
    # state what is lacking, else compare
    if benchmark.config.subjects == "patient":
        yield head | {"note": NEVER_PUBLISHED}
    elif config.knowledge_cutoff is None:
        yield head | {"note": NO_CUTOFF}
    elif not any(DATE.match(item.date) for item in outcomes.items):
        yield head | {"note": NO_DATE}
    else:
        sides = sides_of(outcomes, config.knowledge_cutoff)
        others = [other for other in study.models if other != model and _is_control(study, outcomes, other)]
        for metric in METRICS:
            values = _values(outcomes, model, metric)
            if metric == METRICS[0] or not np.isnan(values).all():
                beside = [_values(outcomes, other, metric) for other in others]
                found = contrast_of_sides(values, sides, outcomes.by_patient(study.settings), beside, cluster=benchmark.cluster)
                yield head | {"metric": metric} | found | ({"others": ", ".join(others)} if found.get("beyond_others") is not None else {})


def contrast_of_sides(values: Floats, sides: Sides, by: ByPatient, beside: list[Floats], *, cluster: str = PATIENT) -> Cells:
    """Compare the rates of two groups of items: cells of `contamination.csv`.

    The two sides are of different patients;
    `beyond_others` is the same for the paired differences to the mean of `beside`, models that the date does not divide; arrays have the
    shape (items,).
    """
    known = ~np.isnan(values)
    before, after = sides.before & known, sides.after & known
    row: Cells = {"n_items_left_out": int((known & ~before & ~after).sum())}
    for name, mask in (("before", before), ("after", after)):
        row |= {f"n_items_{name}": int(mask.sum()), f"n_patients_{name}": by.at(mask).clusters}
    # too few patients on a side: counts only
    if min(row["n_patients_before"], row["n_patients_after"]) < FEWEST_PATIENTS:
        sides_of = f"{row['n_patients_before']} {plural(2, cluster)} before and {row['n_patients_after']} after"
        return row | {"note": f"{sides_of}: fewer than {FEWEST_PATIENTS} on a side are not compared"}
    rates = [patients_rate(values[mask], by.at(mask)) for mask in (before, after)]
    for name, rate in zip(("before", "after"), rates, strict=True):
        row |= with_ends({name: rate})
    either = before | after
    difference = unpaired_difference(values[either], before[either], by.at(either))
    row |= {"difference": difference.value, "low": difference.low, "high": difference.high, "p_value": difference.p_value}
    beyond = _beyond(values, (before, after), by, beside)
    row |= {"beyond_others": beyond.value, "beyond_low": beyond.low, "beyond_high": beyond.high}
    return row | {"note": ALONE if beyond.value is None else BESIDE}


def _beyond(values: Floats, sides: tuple[Mask, Mask], by: ByPatient, beside: list[Floats]) -> Interval:
    """Return the difference that is left after subtracting, item by item, the mean of models that this cut-off does not divide."""
    if not beside:
        return Interval()
    # items may be harder after the cut-off for every model: compare with models that it does not divide
    mean = np.mean(beside, axis=0)
    found = [paired_difference(values[mask], mean[mask], by.at(mask)) for mask in sides]
    if min(one.patients for one in found) < FEWEST_PATIENTS:
        return Interval()
    return square_and_add(found[0], found[1])


def _values(outcomes: Outcomes, model: str, metric: str) -> Floats:
    """Return item values: pass@1 of items without a missing answer, rubric points of items that were judged."""
    key = Key(model)
    return outcomes.pass1_of_complete_items(key) if metric == METRICS[0] else outcomes.metric(metric, key)


def _is_control(study: Study, outcomes: Outcomes, model: str) -> bool:
    """Return True for a control: a baseline, which learned nothing, or a model whose own cut-off does not divide the items."""
    config = study.models[model]
    if model in study.readers:
        return False
    if config.baseline or config.knowledge_cutoff is None:
        return config.baseline
    return not sides_of(outcomes, config.knowledge_cutoff).divided


def sides_of(outcomes: Outcomes, cutoff: str) -> Sides:
    """Divide the items by date at a cut-off, `YYYY-MM` (its last day counts) or `YYYY-MM-DD`.

    On neither side: items without a date, from the month or year of the cut-off, or of patients with items on both sides.
    """
    # dates are compared as text; `YYYY-MM` stands for its last day
    end = f"{cutoff}-99"[:10]
    spans = [(f"{found[0]}-00-00"[:10], f"{found[0]}-99-99"[:10]) if (found := DATE.match(item.date)) else None for item in outcomes.items]
    before = np.array([span is not None and span[1] <= end for span in spans], dtype=bool)
    after = np.array([span is not None and span[0] > end for span in spans], dtype=bool)
    # a patient with items on both sides belongs to neither
    both = np.intersect1d(outcomes.patients[before], outcomes.patients[after])
    one = ~np.isin(outcomes.patients, both)
    return Sides(before & one, after & one)


def contamination_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State how much better models do before their cut-off, and how much beyond the models that it does not divide."""
    rows = tables["contamination"]
    known = [row for row in rows if row.get("difference") is not None and row["metric"] == "pass1"]
    if not known:
        return Takeaway("No model could be compared before and after its training cut-off.", "0 comparisons")
    size = f"{counted(len(known), 'comparison')} of pass@1"
    beyond = [{**row, **dict(zip(("difference", "low", "high"), (row[name] for name in BEYOND), strict=True))} for row in known]
    text = exploratory(study, "Before minus after the training cut-off", known)
    others = exploratory(study, "Beyond models that it does not divide", beyond)
    return Takeaway(" ".join(filter(None, (text, others, "Newer cases may only be harder."))), size)


TABLE = Table(
    name="contamination",
    row=ContaminationRow,
    rows=of_study(contamination_rows),
    suppression=Suppression(f"{MODEL} cutoff metric note", mark="", patients=""),
    takeaways={"contamination": contamination_takeaway},
)
