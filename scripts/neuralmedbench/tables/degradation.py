"""Degraded pictures by level, each artefact on the items that answer at all its levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce

import numpy as np

from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.tables.confidence import OF_LEVELS, OVERCONFIDENCE, SHARE_RIGHT, measure_rows, shift_row, stated_confidences
from neuralmedbench.tables.declare import Cells, ContrastRow, Measure, MeasureRow, ModelRows, of_benchmarks, topic
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key
from neuralmedbench.tables.study import BenchmarkStudy, Study

Row = MeasureRow | ContrastRow


@of_benchmarks
def degradation_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[Row]:
    """Answers to degraded pictures, by artefact (`slice`) and level (`value_of_slice`).

    Level 0 is the full request. All levels of an artefact are over the same items: those without a
    missing answer at any of them, and for the confidence those of which every level has one.
    """
    artefacts: dict[tuple[str, str], dict[int, Key]] = defaultdict(dict)
    for key in benchmark.outcomes.counts:
        arm = benchmark.arms.get(key.arm)
        if arm and arm.degradation and arm.degradation[1] and key.strategy == DIRECT:
            operator, level = arm.degradation
            artefacts[key.model, operator].setdefault(level, key)
    for (model, operator), keys in sorted(artefacts.items()):
        levels = {0: Key(model, FULL), **dict(sorted(keys.items()))}
        yield from _levels(ModelRows("degradation", study, benchmark, model), operator, levels)


def _levels(made: ModelRows, operator: str, levels: Mapping[int, Key]) -> Iterator[Row]:
    """Yield the rows of one model and artefact."""
    outcomes, clean = made.outcomes, levels[0]
    shared = outcomes.complete(*levels.values())
    # confidences of the items that have one at every level
    confidences = {level: stated_confidences(made, key.arm).known for level, key in levels.items()}
    sure = reduce(np.intersect1d, (known.places for known in confidences.values()), np.flatnonzero(shared))
    for level, key in levels.items():
        cells: Cells = {"slice": operator, "value_of_slice": str(level)}
        yield made.passes(key, shared, **cells)
        if level:
            yield made.passes_contrast(PASS1_PATIENTS, key, clean, shared, **cells)
        known = confidences[level].of_items(sure)
        yield from measure_rows(made, known, OF_LEVELS, **cells)
        if level and sure.size:
            yield shift_row(made, known, confidences[0].of_items(sure), **cells)


MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "Answers that pass at this level, patients alike; as a contrast, this level minus level 0.",
    ),
    Measure("mean_confidence", "Mean confidence", "Mean confidence that the answers state."),
    Measure(
        SHARE_RIGHT,
        "Right",
        "Answers that pass, on the items with a stated confidence at every level.",
        main=False,
    ),
    Measure(
        OVERCONFIDENCE,
        "Overconfidence",
        "Mean stated confidence minus share right; as a contrast, this level minus level 0.",
        "points",
    ),
)

TABLE = topic("degradation", degradation_rows, MEASURES)
