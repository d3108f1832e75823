"""Beyond pass and fail: the length of ranked differentials, dialogues turn by turn, and labelled steps of reasoning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Ints
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.scores import GradeState, Score, response_key
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.records.words import counted
from neuralmedbench.scoring.lines import resolve
from neuralmedbench.scoring.llm.reasoning import COMPLETENESS, EFFICIENCY, FACTUALITY
from neuralmedbench.tables.declare import ALL, MODEL, NUMBER, RANKED, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import K, Key, Outcomes, headline
from neuralmedbench.tables.rows import Cells, MeasureRow, ModelRow, Tables
from neuralmedbench.tables.shapes import ModelRows
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, value_share


@dataclass(frozen=True, kw_only=True)
class DifferentialRow(ModelRow):
    """Length of the ranked differentials of one model in one family and level."""

    family: str | None = None
    level: str | None = None
    mean_candidates: float | None = None
    full_lists: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    answers: int | None = None
    without_list: int | None = None
    missing: int | None = None


def differential_rows(study: Study) -> list[DifferentialRow]:
    """Rows of `differential.csv`.

    Per benchmark with items that ask for a ranked differential, family, level and model, under the arm full and the strategy
    direct: how many candidates its lists have. A refused, truncated or unreadable answer has no list; a missing one does not count, and
    is reported separately.
    """
    rows: list[DifferentialRow] = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        lists = {model: _Lists(benchmark, model) for model in study.models}
        for family, level, mask in _cells(outcomes):
            for model, own in lists.items():
                counts = own.counted(mask, outcomes.patients)
                rows.append(DifferentialRow(benchmark=benchmark.name, model=model, family=family, level=level, **counts))
    return rows


def _cells(outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    """Yield all ranked items, each family, each level, and each pair of both."""
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
        for row in headline(benchmark.scores.get(model, [])):
            place = places.get(row.item_id)
            # a list that cannot be compared with the reference (its language, a name outside the vocabulary) is missing
            if place is None or row.missing or (row.state == "ok" and row.in_candidates is None):
                continue
            self.there[place] += 1
            if row.state != "ok" or not row.differential:
                self.unread[place] += 1
                continue
            self.lists[place] += 1
            self.candidates[place] += len(row.differential)
            self.long[place] += len(row.differential) >= K

    def counted(self, mask: Mask, patients: Ints) -> Cells:
        """Count answers and the length of lists over some items."""
        there, lists = int(self.there[mask].sum()), int(self.lists[mask].sum())
        # items with at least one answer that is present
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


def _differential_labels(row: Cells) -> list[Label]:
    family, level = row["family"], row["level"]
    labels = [(f"{ALL} {RANKED}", "")]
    if level == ALL:
        return labels if family == ALL else [*labels, ("differential", family)]
    return [*labels, (f"differential {family}", level)]


DIFFERENTIAL = Table(
    name="differential",
    row=DifferentialRow,
    rows=of_study(differential_rows),
    suppression=Suppression(f"{MODEL} family level", labels=_differential_labels),
)


RIGHT, ANCHORED, LOST = "right", "anchored", "lost"
"""Measures: the leader after a turn is right; a wrong first leader is still the last one; a right first leader is given up at the end."""


def turn_rows(study: Study) -> list[MeasureRow]:
    """Measures of dialogues, under the arm full and the strategy direct.

    `right` after every turn; `anchored`, the share of samples with a wrong first leader that end with the same diagnosis; `lost`, the
    share of samples with a right first leader that end with a wrong one. The last two are our measures, over samples in which every turn
    was answered. A turn that names nothing is wrong, and never the same as another one.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        for model in benchmark.scores:
            made = ModelRows("turns", study, benchmark, model)
            asked = [(place, row) for place, row in made.answers.there.rows() if row.turn_passes and not row.other_language]
            for measure, turn, values in _measures(asked, study.vocabulary):
                part = {"slice": "turn", "value_of_slice": str(turn)} if turn else {}
                rows.append(made.mean(measure, values, **part))
    return rows


Values = list[tuple[int, float]]
"""Places of items, each with a value from 0 to 1 of one of their answers."""


def _measures(answers: list[tuple[int, Score]], vocabulary: Vocabulary) -> Iterator[tuple[str, int | None, Values]]:
    if not answers:
        return
    for turn in range(max(len(row.turn_passes) for _, row in answers)):
        yield RIGHT, turn + 1, [(place, row.turn_passes[turn]) for place, row in answers if turn < len(row.turn_passes)]
    # anchoring needs a first and a last turn
    several = [(place, row) for place, row in answers if len(row.turn_passes) > 1]
    wrong = [(place, row) for place, row in several if not row.turn_passes[0]]
    yield ANCHORED, None, [(place, _same(row.turn_leaders[0], row.turn_leaders[-1], vocabulary)) for place, row in wrong]
    yield LOST, None, [(place, not row.turn_passes[-1]) for place, row in several if row.turn_passes[0]]


def _same(first: str, last: str, vocabulary: Vocabulary) -> bool:
    """Return True if two leaders are one diagnosis: in the vocabulary, or else by their words."""
    if not first or not last:
        return False
    one, other = resolve(first, vocabulary), resolve(last, vocabulary)
    return one.key == other.key if one and other else normal_form(first) == normal_form(last)


TURNS = Table(
    name="turns",
    row=MeasureRow,
    rows=of_study(turn_rows),
    suppression=Suppression(NUMBER),
)


MEASURES = (EFFICIENCY, FACTUALITY, COMPLETENESS)


def reasoning_rows(study: Study) -> list[MeasureRow]:
    """Shares of steps by grader (`source`): means over answers under the arm full and the strategy direct.

    `left_out` counts answers whose grade is missing; an answer for which the measure is undefined (no step, or none that the evidence
    decides) is in neither number.
    """
    return [
        row
        for benchmark in study.benchmarks.values()
        for model in study.models
        for grader in study.graders
        for row in _step_rows(study, ModelRows("reasoning", study, benchmark, model), grader)
    ]


def _step_rows(study: Study, made: ModelRows, grader: str) -> Iterator[MeasureRow]:
    # a grade of another text than the scored one is stale
    places = {(response_key(row), row.text_sha256): place for place, row in made.answers.rows()}
    known: dict[str, list[tuple[int, float]]] = defaultdict(list)
    failed: Counter[str] = Counter()
    for grade in study.used_grades(made.benchmark.name, made.model, grader):
        place = places.get((response_key(grade), grade.text_sha256))
        if grade.criterion not in MEASURES or place is None:
            continue
        if grade.state is GradeState.OK and grade.value is not None:
            known[grade.criterion].append((place, grade.value))
        else:
            failed[grade.criterion] += 1
    for measure in MEASURES:
        values = known[measure]
        if values or failed[measure]:
            yield made.ratio(measure, made.sums(values), source=grader, n_answers=len(values), left_out=failed[measure])


def reasoning_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how much of the reasoning the evidence of the case supports."""
    rows = [row for row in tables["reasoning"] if row["value"] is not None]
    factual = [row for row in rows if row["measure"].endswith("factuality")]
    n = counted(sum(row["n_answers"] for row in factual or rows[:1]), "labelled answer")
    if not factual:
        return Takeaway("No steps of the reasoning were labelled in this run.", n)
    parts = [f"{study.models[row['model']].title} {value_share(row)}" for row in factual[:4]]
    return Takeaway(f"Of the steps that the evidence decides, it supports: {', '.join(parts)}.", n)


REASONING = Table(
    name="reasoning",
    row=MeasureRow,
    rows=of_study(reasoning_rows),
    suppression=Suppression(NUMBER),
    takeaways={"steps": reasoning_takeaway},
)
