"""Beyond pass and fail: the length of ranked differentials, dialogues turn by turn, and labelled steps of reasoning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.scores import GradeState, Key, Score, response_key
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.lines import resolve
from neuralmedbench.scoring.llm.reasoning import COMPLETENESS, EFFICIENCY, FACTUALITY
from neuralmedbench.tables.declare import ALL, RANKED, Cells, Measure, MeasureRow, ModelRows, no_labels, of_models, topic
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import K, Outcomes

LEVEL = "level"
"""Slice of the rows about the length of lists."""


@of_models("differential")
def differential_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Length of the ranked differentials, of all items that ask for one and by level.

    A missing answer counts in none of them.
    """
    outcomes, answers = made.outcomes, list(made.answers.there.rows())
    samples = outcomes.counts[made.key()].samples
    for level, mask in _levels(outcomes):
        # a list that cannot be compared with the reference (its language, a name outside the vocabulary) is missing
        there = [(place, row) for place, row in answers if mask[place] and (row.state != "ok" or row.in_candidates is not None)]
        lists = [row.differential for _, row in there if row.state == "ok" and row.differential]
        amounts = {
            "candidates": (sum(map(len, lists)), len(lists)),
            "full_lists": (sum(len(names) >= K for names in lists), len(lists)),
            "no_list": (len(there) - len(lists), len(there)),
        }
        cells: Cells = {"left_out": int(samples[mask].sum()) - len(there), "slice": LEVEL, "value_of_slice": level}
        known = np.isin(np.arange(len(mask)), [place for place, _ in there])
        for name, (amount, of) in amounts.items():
            yield made.plain(name, known, value=amount / of if of else None, n_answers=of, **cells)


def _levels(outcomes: Outcomes) -> Iterator[tuple[str, Mask]]:
    """Yield all ranked items, then those of each level."""
    levels = np.array([str(item.level) for item in outcomes.items])
    if outcomes.ranked.any():
        yield ALL, outcomes.ranked
        yield from ((level, outcomes.ranked & (levels == level)) for level in sorted(set(levels[outcomes.ranked].tolist())))


def _differential_labels(row: Cells) -> list[Label]:
    level = row["value_of_slice"]
    return [(f"{ALL} {RANKED}", ""), *([] if level == ALL else [(f"differential {ALL}", level)])]


LIST_MEASURES = (
    Measure(
        "candidates",
        "Candidates",
        "Diagnoses on a list, on average; at most five are read.",
        "number",
    ),
    Measure("full_lists", "Lists of five", "Lists with five diagnoses, of all lists."),
    Measure(
        "no_list",
        "Without a list",
        "Answers without a list (refused, truncated, unread), of those that came.",
    ),
)

DIFFERENTIAL = topic("differential", differential_rows, LIST_MEASURES, labels=_differential_labels)


RIGHT, ANCHORED, LOST = "right", "anchored", "lost"
"""Measures: the leader after a turn is right; a wrong first leader is still the last one; a right first leader is given up at the end."""


@of_models("turns")
def turn_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Dialogues, turn by turn.

    A turn that names nothing is wrong, and never the same as another one. Over samples in which
    every turn was answered.
    """
    asked = [(place, row) for place, row in made.answers.there.rows() if row.turn_passes and not row.other_language]
    for measure, turn, values in _measures(asked, made.study.vocabulary):
        part = {"slice": "turn", "value_of_slice": str(turn)} if turn else {}
        yield made.mean(measure, values, **part)


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


TURN_MEASURES = (
    Measure(RIGHT, "Right after turn", "Answers whose first diagnosis after this turn is right."),
    Measure(
        ANCHORED,
        "Keeps wrong diagnosis",
        "Answers that end with their wrong first diagnosis, of those that began with a wrong one.",
    ),
    Measure(
        LOST,
        "Leaves right diagnosis",
        "Answers that end with a wrong diagnosis, of those that began with the right one.",
    ),
)

TURNS = topic("turns", turn_rows, TURN_MEASURES, labels=no_labels)


OF_STEPS = (EFFICIENCY, FACTUALITY, COMPLETENESS)


@of_models("reasoning")
def reasoning_rows(made: ModelRows) -> Iterator[MeasureRow]:
    """Labelled steps of reasoning, by grader (`source`).

    `left_out` counts answers whose grade is missing; an answer for which the measure is undefined
    (no step, or none that the evidence decides) is in neither number.
    """
    # a grade of another text than the scored one is stale
    places = {(response_key(row), row.text_sha256): place for place, row in made.answers.rows()}
    for grader in made.study.graders:
        yield from _step_rows(made, grader, places)


def _step_rows(made: ModelRows, grader: str, places: Mapping[tuple[Key, str], int]) -> Iterator[MeasureRow]:
    known: dict[str, list[tuple[int, float]]] = defaultdict(list)
    failed: Counter[str] = Counter()
    for grade in made.study.used_grades(made.benchmark.name, made.model, grader):
        place = places.get((response_key(grade), grade.text_sha256))
        if grade.criterion not in OF_STEPS or place is None:
            continue
        if grade.state is GradeState.OK and grade.value is not None:
            known[grade.criterion].append((place, grade.value))
        else:
            failed[grade.criterion] += 1
    for measure in OF_STEPS:
        values = known[measure]
        if values or failed[measure]:
            yield made.ratio(measure, made.sums(values), source=grader, n_answers=len(values), left_out=failed[measure])


STEP_MEASURES = (
    Measure(
        EFFICIENCY,
        "Efficiency",
        "Steps that reason instead of citing or repeating, of all steps of an answer.",
    ),
    Measure(
        FACTUALITY,
        "Factuality",
        "Steps of reasoning that the evidence of the case supports, of those that it decides.",
    ),
    Measure(
        COMPLETENESS,
        "Completeness",
        "Arguments of the reference that the answer covers, of all its arguments.",
    ),
)

REASONING = topic("reasoning", reasoning_rows, STEP_MEASURES, labels=no_labels)
