"""Rates before and after a model's training cut-off, as a sign that it read the cases: topic `contamination`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, paired_difference, square_and_add, unpaired_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, patients_rate
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.words import plural
from neuralmedbench.tables.declare import ContrastRow, Measure, MeasureRow, ModelRows, of_models, topic
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import Key, Outcomes
from neuralmedbench.tables.study import Study

FEWEST_PATIENTS = 8
"""With fewer patients on a side nothing is compared. (Our rule.)"""

METRICS = (PASS1_PATIENTS, "rubric")
DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

NEVER_PUBLISHED = "patients who are not public: no training data can hold their cases"
NO_CUTOFF = "no training cut-off is documented: `knowledge_cutoff` in its yaml"
NO_DATE = "no item has a date of publication"


class Sides(NamedTuple):
    """Items that are certainly as old as the training data, and certainly newer; both of shape (items,)."""

    before: Mask
    after: Mask

    @property
    def divided(self) -> bool:
        """True if there are items on both sides."""
        return bool(self.before.any() and self.after.any())


BEFORE, AFTER, DIFFERENCE, BEYOND = "before", "after", "difference", "beyond_others"
"""Slices: the items of the two sides of a cut-off, both of them, and both beside models that it does not divide."""

Row = MeasureRow | ContrastRow


@of_models("contamination")
def contamination_rows(made: ModelRows) -> Iterator[Row]:
    """Items from before and after a model's training cut-off (`value_of_slice`).

    Models that are neither readers nor built-in references. Where nothing is compared, `note` has
    the reason.
    """
    study, outcomes, config = made.study, made.outcomes, made.study.models[made.model]
    if not outcomes.items or made.model in study.readers or config.baseline:
        return
    note, cutoff = _lacking(made), config.knowledge_cutoff
    if note or cutoff is None:
        nothing = np.zeros(len(outcomes.items), dtype=bool)
        yield made.difference(PASS1_PATIENTS, Difference(), nothing, slice=DIFFERENCE, value_of_slice=cutoff or "", note=note)
        return
    sides = sides_of(outcomes, cutoff)
    others = [other for other in study.models if other != made.model and _is_control(study, outcomes, other)]
    for metric in METRICS:
        values = _values(outcomes, made.model, metric)
        if metric == PASS1_PATIENTS or not np.isnan(values).all():
            beside = {other: _values(outcomes, other, metric) for other in others}
            yield from _compared(made, metric, values, sides, beside, value_of_slice=cutoff)


def _lacking(made: ModelRows) -> str:
    """Return what a comparison lacks; empty if nothing."""
    if made.benchmark.config.subjects == "patient":
        return NEVER_PUBLISHED
    if made.study.models[made.model].knowledge_cutoff is None:
        return NO_CUTOFF
    return "" if any(DATE.match(item.date) for item in made.outcomes.items) else NO_DATE


def _compared(made: ModelRows, metric: str, values: Floats, sides: Sides, beside: Mapping[str, Floats], **cells: Any) -> Iterator[Row]:
    """Yield the rates of the two groups of items, their difference, and what of it lies beyond other models."""
    known, by = ~np.isnan(values), made.outcomes.by_patient(made.study.settings)
    before, after = sides.before & known, sides.after & known
    either = before | after
    patients = [by.at(mask).clusters for mask in (before, after)]
    if min(patients) < FEWEST_PATIENTS:
        counts = f"{patients[0]} {plural(2, made.benchmark.cluster)} before and {patients[1]} after"
        note = f"{counts}: fewer than {FEWEST_PATIENTS} on a side are not compared"
        yield made.difference(metric, Difference(), either, slice=DIFFERENCE, note=note, **cells)
        return
    for name, mask in ((BEFORE, before), (AFTER, after)):
        yield made.rate(metric, np.where(mask, values, np.nan), interval_of=patients_rate, slice=name, **cells)
    difference = unpaired_difference(values[either], before[either], by.at(either))
    yield made.difference(metric, difference, either, slice=DIFFERENCE, **cells)
    beyond = beyond_others(values, Sides(before, after), by, list(beside.values()))
    if beyond.value is not None:
        yield made.difference(metric, Difference(*beyond[:3]), either, slice=BEYOND, note=", ".join(beside), **cells)


def beyond_others(values: Floats, sides: Sides, by: ByPatient, beside: Sequence[Floats]) -> Interval:
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
    return outcomes.pass1_of_complete_items(key) if metric == PASS1_PATIENTS else outcomes.metric(metric, key)


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


MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "Answers that pass before and after the cut-off; as a contrast, before minus after.",
    ),
    Measure(
        "rubric",
        "Rubric",
        "Points of the rubric before and after the cut-off; as a contrast, before minus after.",
    ),
)

TABLE = topic("contamination", contamination_rows, MEASURES)
