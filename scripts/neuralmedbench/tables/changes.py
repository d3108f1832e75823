"""Old answers against new ones: the tests of a change, which runs, revisions and a probe share.

Three tests show a change of one model on one benchmark: pass@1, the passes of single items, and their leading diagnoses. The last two compare
how often an old and a new answer differ with how often repeats differ. Holm's correction is over all tests of a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, paired_difference
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, codes_of, patients_rate
from neuralmedbench.estimates.repeats import AnswerChange, compare_answers, share_of_same_answers
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.tables.shared_requests import joined_clusters
from neuralmedbench.tables.stored_runs import ItemOutcome, PairedItems

PASSED, LEADER = "passed", "leader"
ItemPair = tuple[ItemOutcome, ItemOutcome]


def leader_of(score: Score, vocabulary: Vocabulary) -> str:
    """Return the leading diagnosis of an answer, or in brackets why it has none."""
    if score.differential:
        diagnosis = vocabulary.find(score.differential[0])
        return diagnosis.key if diagnosis else normal_form(score.differential[0])
    if score.state != "ok":
        return f"({score.state})"
    return "(unread)" if score.parse_status == ParseStatus.FAILED else "(none)"


class MetricChange(NamedTuple):
    """How old and new answers differ by one metric, and the items that it compares."""

    pairs: list[ItemPair]
    answers: AnswerChange


def answer_changes(sides: PairedItems, vocabulary: Vocabulary, settings: IntervalSettings) -> dict[str, MetricChange]:
    """Compare old and new answers with the noise of repeats, by pass and by leading diagnosis; a metric without an item is left out."""
    pairs = {PASSED: sides.pairs, LEADER: [pair for pair in sides.answered if any(_names_a_diagnosis(side) for side in pair)]}
    changes = {}
    for metric, compared in pairs.items():
        if compared:
            old, new = ([_categories(side, metric, vocabulary) for side in column] for column in zip(*compared, strict=True))
            changes[metric] = MetricChange(compared, compare_answers(old, new, settings))
    return changes


def _categories(outcome: ItemOutcome, metric: str, vocabulary: Vocabulary) -> list[str]:
    return [str(row.passed) if metric == PASSED else leader_of(row, vocabulary) for row in outcome.rows]


def _names_a_diagnosis(outcome: ItemOutcome) -> bool:
    return any(row.differential for row in outcome.rows)


class PassChange(NamedTuple):
    """Pass@1 of old and new answers, and the difference, new minus old."""

    old: float
    new: float
    difference: Difference


def pass_change(pairs: Sequence[ItemPair], settings: IntervalSettings) -> PassChange:
    """Compare pass@1 of paired items, patients alike; those who share a request are one cluster.

    The interval is 0 to 0 if every answer is the same word for word.
    """
    old, new = (np.array([side.share for side in column], dtype=np.float64) for column in zip(*pairs, strict=True))
    patients = codes_of([first.rows[0].patient_id for first, _ in pairs])
    requests = [codes_of([side.request or side.rows[0].item_id for side in column]) for column in zip(*pairs, strict=True)]
    by = ByPatient(patients, settings, joined_clusters(patients, requests))
    difference = paired_difference(new, old, by)
    if difference.value == 0 and all(first.texts == second.texts for first, second in pairs):
        difference = difference._replace(low=0.0, high=0.0)
    rates = [patients_rate(side, by).value or 0.0 for side in (old, new)]
    return PassChange(rates[0], rates[1], difference)


def same_answers(pairs: Sequence[ItemPair]) -> float | None:
    """Return the share of answers that are the same, word for word, as that of the same sample on the other side."""
    return share_of_same_answers((first.texts, second.texts) for first, second in pairs)


def patients_of(pairs: Sequence[ItemPair]) -> int:
    """Count the patients of paired items."""
    return len({first.rows[0].patient_id for first, _ in pairs})
