"""Degraded pictures by level, each artefact on the items that answer at all its levels: `degradation.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from neuralmedbench.estimates.contrasts import paired_difference
from neuralmedbench.estimates.intervals import patients_rate
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.records.words import counted
from neuralmedbench.tables.confidence.measures import Confidences, ConfidenceSource, Draws, gather_confidences
from neuralmedbench.tables.confidence.reliability import cluster_of_patients, overconfidence_interval
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.rows import Cells, ModelRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, exploratory, rows_of_best, size_of


@dataclass(frozen=True, kw_only=True)
class DegradationRow(ModelRow):
    """One artefact at one level; level 0 is the arm full on the same items."""

    operator: str
    level: int
    arms: str
    pass1_patients: float | None = None
    pass1_patients_low: float | None = None
    pass1_patients_high: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    mean_confidence: float | None = None
    accuracy: float | None = None
    overconfidence: float | None = None
    overconfidence_low: float | None = None
    overconfidence_high: float | None = None
    shift: float | None = None
    shift_low: float | None = None
    shift_high: float | None = None
    with_confidence: int | None = None
    n_items: int | None = None
    n_patients: int | None = None


def degradation_rows(study: Study) -> list[DegradationRow]:
    """Rows of `degradation.csv`.

    One per benchmark, model, artefact and level, strategy direct; pass@1, and mean stated confidence minus share right (`overconfidence`).
    All levels of an artefact are over the same items: those without a missing answer at any of them, and for the confidence those of which
    every level has one. `difference` and `shift` (calibration shift) are paired, the level minus level 0.
    """
    return [DegradationRow(**row) for benchmark in study.benchmarks.values() for row in _rows(study, benchmark)]


def _rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[Cells]:
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
        arms = " ".join(levels[level].arm for level in levels if level)
        head: Cells = {"benchmark": benchmark.name, "model": model, "operator": operator, "arms": arms}
        yield from (head | row for row in _levels(study, benchmark, levels, stated))


def _levels(
    study: Study, benchmark: BenchmarkStudy, levels: Mapping[int, Key], stated: Mapping[tuple[str, str], Confidences]
) -> Iterator[Cells]:
    """Yield the rows of one model and artefact."""
    outcomes = benchmark.outcomes
    values = {level: outcomes.pass1_of_complete_items(key) for level, key in levels.items()}
    shared = ~np.isnan(np.stack(list(values.values()))).any(axis=0)
    values = {level: np.where(shared, value, np.nan) for level, value in values.items()}
    sizes: Cells = {"n_items": int(shared.sum()), "n_patients": len(np.unique(outcomes.patients[shared]))}
    # confidences of the items that have one at every level
    confidences = {level: stated[key.model, key.arm] for level, key in levels.items()}
    sure = reduce(np.intersect1d, (one.items for one in confidences.values()), np.flatnonzero(shared))
    for level, value in values.items():
        row: Cells = {"level": level, "with_confidence": int(sure.size)} | with_ends(
            {PASS1_PATIENTS: patients_rate(value, outcomes.by_patient(study.settings, levels[level]))}
        )
        if level:
            changed = paired_difference(value, values[0], outcomes.by_patient(study.settings, levels[level], levels[0]))
            row |= {"difference": changed.value, "low": changed.low, "high": changed.high, "p_value": changed.p_value}
        if sure.size:
            # as in confidence.csv: patients who share a request under this level or level 0 are one
            by = outcomes.by_patient(study.settings, levels[level], levels[0])
            joined = cluster_of_patients(outcomes.patients, by)
            here, clean = (Draws(confidences[one].of_items(sure), by, joined) for one in (level, 0))
            row |= _confidence(here, clean if level else None)
        yield row | sizes


def _confidence(here: Draws, clean: Draws | None) -> Cells:
    """Return the cells about confidence; `clean` are the answers at level 0."""
    found = here.found
    low, high = overconfidence_interval(found, here)
    row: Cells = {"mean_confidence": float(found.value.mean()), "accuracy": float(found.right.mean())}
    row |= {"overconfidence": float((found.value - found.right).mean()), "overconfidence_low": low, "overconfidence_high": high}
    if clean is not None:
        low, high = here.by.percentiles(here.overconfidence - clean.overconfidence, here.clusters)
        shift = row["overconfidence"] - float((clean.found.value - clean.found.right).mean())
        row |= {"shift": shift, "shift_low": low, "shift_high": high}
    return row


def _labels(row: Cells) -> list[Label]:
    # all levels are over the items that the arms of the artefact ask
    return [label for arm in row["arms"].split() for label in arm_labels({"arm": arm})]


def takeaway(study: Study, tables: Tables) -> Takeaway:
    """State what the highest level of each artefact changes for the model of rank 1, or for the first one where none has a rank."""
    rows = tables["degradation"]
    levels = [row for row in rows if row["level"] and row["difference"] is not None]
    if not levels:
        return Takeaway("No model answered about degraded pictures.", "0 items")
    widest = max(levels, key=lambda row: row["n_items"])
    n = f"{counted(len({row['operator'] for row in levels}), 'artefact')}, up to {size_of(widest)}"
    ranked = rows_of_best(levels, tables, widest["benchmark"])
    shown = ranked or [row for row in levels if row["model"] == levels[0]["model"]]
    highest = {}
    for row in sorted(shown, key=lambda row: row["level"]):
        artefact = str(row["operator"]).replace("_", " ")
        highest[row["benchmark"], row["operator"]] = {**row, "of": f"with level {row['level']} of {artefact}"}
    return Takeaway(exploratory(study, "Against the pictures as they are", highest.values()), n)


TABLE = Table(
    name="degradation",
    row=DegradationRow,
    rows=of_study(degradation_rows),
    suppression=Suppression(f"{MODEL} operator level", labels=_labels),
    takeaways={"degraded": takeaway},
)
