"""Degraded pictures by level, each artefact on the items that answer at all its levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.words import counted
from neuralmedbench.tables.confidence.measures import Confidences, ConfidenceSource, Draws, gather_confidences
from neuralmedbench.tables.confidence.reliability import cluster_of_patients, overconfidence_interval, shift_between
from neuralmedbench.tables.declare import NUMBER, Suppression, Table, of_study, side_labels
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.rows import Cells, ContrastRow, MeasureRow, Tables
from neuralmedbench.tables.shapes import ModelRows
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, exploratory, rows_of_best, size_of

Row = MeasureRow | ContrastRow
OVERCONFIDENCE = "overconfidence"


def degradation_rows(study: Study) -> list[Row]:
    """Measure every artefact (`slice`) by level (`value_of_slice`, level 0 is the arm full), strategy direct.

    pass@1, and mean stated confidence minus share right (`overconfidence`). All levels of an artefact are over the same items: those without
    a missing answer at any of them, and for the confidence those of which every level has one. Differences are to level 0.
    """
    return [row for benchmark in study.benchmarks.values() for row in _rows(study, benchmark)]


def _rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[Row]:
    artefacts: dict[tuple[str, str], dict[int, Key]] = defaultdict(dict)
    for key in benchmark.outcomes.counts:
        arm = benchmark.arms.get(key.arm)
        if arm and arm.degradation and arm.degradation[1] and key.strategy == DIRECT:
            operator, level = arm.degradation
            artefacts[key.model, operator].setdefault(level, key)
    if not artefacts:
        return
    stated = {(one.model, one.arm): one for one in gather_confidences(study, benchmark) if one.source is ConfidenceSource.STATED}
    for (model, operator), keys in sorted(artefacts.items()):
        levels = {0: Key(model, FULL), **dict(sorted(keys.items()))}
        yield from _levels(ModelRows("degradation", study, benchmark, model), operator, levels, stated)


def _levels(made: ModelRows, operator: str, levels: Mapping[int, Key], stated: Mapping[tuple[str, str], Confidences]) -> Iterator[Row]:
    """Yield the rows of one model and artefact."""
    outcomes, clean = made.outcomes, levels[0]
    shared = outcomes.complete(*levels.values())
    # confidences of the items that have one at every level
    confidences = {level: stated[key.model, key.arm] for level, key in levels.items()}
    sure = reduce(np.intersect1d, (one.items for one in confidences.values()), np.flatnonzero(shared))
    with_confidence = np.isin(np.arange(len(shared)), sure)
    for level, key in levels.items():
        cells: Cells = {"slice": operator, "value_of_slice": str(level)}
        yield made.passes(key, shared, **cells)
        if level:
            yield made.passes_contrast(PASS1_PATIENTS, key, clean, shared, **cells)
        if not sure.size:
            continue
        # as in confidence.csv: patients who share a request under this level or level 0 are one
        by = outcomes.by_patient(made.study.settings, key, clean)
        yield from _confidence(made, key, confidences[level].of_items(sure), by, **cells)
        if level:
            shift = shift_between(confidences[level], confidences[0], sure, by)
            yield made.difference(OVERCONFIDENCE, shift, with_confidence, arm=key.arm, **cells)


def _confidence(made: ModelRows, key: Key, found: Confidences, by: ByPatient, **cells: Any) -> Iterator[MeasureRow]:
    """Yield the measures of the confidence at one level."""
    low, high = overconfidence_interval(found, Draws(found, by, cluster_of_patients(made.outcomes.patients, by)))
    cells |= {"arm": key.arm, "n_answers": len(found.value), "n_items": len(set(found.items.tolist()))}
    cells["n_patients"] = len(set(found.patients.tolist()))
    yield made.plain("mean_confidence", value=float(found.value.mean()), **cells)
    yield made.plain("accuracy", value=float(found.right.mean()), **cells)
    yield made.plain(OVERCONFIDENCE, value=float((found.value - found.right).mean()), low=low, high=high, **cells)


def takeaway(study: Study, tables: Tables) -> Takeaway:
    """State what the highest level of each artefact changes for the model of rank 1, or for the first one where none has a rank."""
    rows = tables["degradation"]
    levels = [row for row in rows if row["measure"] == PASS1_PATIENTS and row.get("difference") is not None]
    if not levels:
        return Takeaway("No model answered about degraded pictures.", "0 items")
    widest = max(levels, key=lambda row: row["n_items"])
    n = f"{counted(len({row['slice'] for row in levels}), 'artefact')}, up to {size_of(widest)}"
    ranked = rows_of_best(levels, tables, widest["benchmark"])
    shown = ranked or [row for row in levels if row["model"] == levels[0]["model"]]
    highest = {}
    for row in sorted(shown, key=lambda row: row["value_of_slice"]):
        artefact = str(row["slice"]).replace("_", " ")
        highest[row["benchmark"], row["slice"]] = {**row, "of": f"with level {row['value_of_slice']} of {artefact}"}
    return Takeaway(exploratory(study, "Against the pictures as they are", highest.values()), n)


TABLE = Table(
    name="degradation",
    row=MeasureRow,
    rows=of_study(degradation_rows),
    suppression=Suppression(NUMBER, labels=side_labels),
    takeaways={"degraded": takeaway},
)
