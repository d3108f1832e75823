"""Dialogues of fixed rounds, turn by turn: whether a model holds on to its first hypothesis when the case says otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import codes_of, rate_interval
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.matching import resolve
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ResultRow
from neuralmedbench.tables.study import Study

RIGHT, ANCHORED, LOST = "right", "anchored", "lost"
"""Measures: the leader after a turn is right; a wrong first leader is still the last one; a right first leader is given up at the end."""


@dataclass(frozen=True, kw_only=True)
class TurnRow(ResultRow):
    """One measure of one model's dialogues, after a turn or over all turns."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    measure: str
    turn: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    samples: int | None = None


def turn_rows(study: Study) -> list[TurnRow]:
    """Rows of `turns.csv`.

    For each model and benchmark with dialogues, under the arm full and the strategy direct: `right` after every turn; `anchored`, of the
    samples whose first leader was wrong those that end with the same diagnosis; `lost`, of those whose first leader was right those
    that end with a wrong one. The two are ours, and are counted over samples of which every turn was answered.

    A sample counts in its item, an item as the mean of its samples, and intervals are clustered by patient. A turn that names nothing is
    wrong, and never the same as another one.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        for model, scores in benchmark.scores.items():
            asked = [row for row in headline(scores) if row.turn_passes and not row.missing]
            for measure, turn, values in _measures(asked, study.vocabulary):
                rows.append(TurnRow(benchmark=benchmark.name, model=model, measure=measure, turn=turn, **_interval(study, values)))
    return rows


Values = list[tuple[Score, bool]]


def _measures(scores: list[Score], vocabulary: Vocabulary) -> Iterator[tuple[str, int | None, Values]]:
    if not scores:
        return
    for turn in range(max(len(row.turn_passes) for row in scores)):
        yield RIGHT, turn + 1, [(row, row.turn_passes[turn]) for row in scores if turn < len(row.turn_passes)]
    several = [row for row in scores if len(row.turn_passes) > 1]
    wrong = [row for row in several if not row.turn_passes[0]]
    yield ANCHORED, None, [(row, _same(row.turn_leaders[0], row.turn_leaders[-1], vocabulary)) for row in wrong]
    yield LOST, None, [(row, not row.turn_passes[-1]) for row in several if row.turn_passes[0]]


def _same(first: str, last: str, vocabulary: Vocabulary) -> bool:
    """Whether two leaders are one diagnosis: in the vocabulary, or else by their words."""
    if not first or not last:
        return False
    one, other = resolve(first, vocabulary), resolve(last, vocabulary)
    return one.key == other.key if one and other else normal_form(first) == normal_form(last)


def _interval(study: Study, values: Values) -> Cells:
    items: dict[str, list[bool]] = defaultdict(list)
    patients: dict[str, str] = {}
    for row, value in values:
        items[row.item_id].append(value)
        patients[row.item_id] = row.patient_id
    means = np.array([np.mean(found) for found in items.values()], dtype=np.float64)
    interval = rate_interval(means, codes_of(list(patients.values())), study.settings)
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n_items": len(items),
        "n_patients": len(set(patients.values())),
        "samples": len(values),
    }


TABLE = Table(
    name="turns",
    row=TurnRow,
    rows=of_study(turn_rows),
    suppression=Suppression(f"{MODEL} measure turn"),
)
