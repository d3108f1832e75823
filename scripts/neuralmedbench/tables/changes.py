"""Old answers against new ones: the pairing and the tests of a change, which runs, revisions and a probe share.

Three tests show a change of one model on one benchmark: pass@1, the passes of single items, and their leading diagnoses. The last two compare
how often an old and a new answer differ with how often repeats differ. Holm's correction is over all tests of a comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.contrasts import Difference, paired_difference
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, Ints, codes_of, patients_rate
from neuralmedbench.estimates.repeats import AnswerChange, compare_answers
from neuralmedbench.records.items import Arm, Runner, Strategy
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.tables.answers import Samples, gather_answers, paired_samples
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.shared_requests import joined_clusters

HEADLINE = (str(Arm.FULL), str(Strategy.DIRECT))
PASSED, LEADER = "passed", "leader"
OLD, NEW = "old", "new"
QUESTIONS, REFERENCES = "questions", "references"
"""What may differ for an item between the sides, so that its answers are not paired."""
LEFT_OUT = ("only_a", "only_b", "other_question", "other_reference", "unanswered")
"""Why an item that can pass is not paired."""


@dataclass(frozen=True)
class Side:
    """The answers of one model to one benchmark, in one run or of one revision.

    Attributes
    ----------
    revision : str
        Its revision.
    scores : sequence of Score
        The answers, missing ones included.
    requests : mapping of (str, str, str) to str
        Digest of what was asked by item, arm and strategy; empty if it is not known.
    references : mapping of str to Any
        By item, what was known of its reference.
    """

    revision: str
    scores: Sequence[Score]
    requests: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    references: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: Sequence[Score], responses: Iterable[Response]) -> Side:
        """Return the scores of one revision with the requests of their responses."""
        return cls(scores[0].revision, scores, {(row.item_id, row.arm, row.strategy): row.request_id for row in responses})

    @property
    def conditions(self) -> set[tuple[str, str]]:
        """Arms and strategies under which it was asked."""
        return {(row.arm, row.strategy) for row in self.scores}

    @cached_property
    def cannot_pass(self) -> set[str]:
        """Items without a reference, and structured ones whose reference has no class."""
        items = set()
        for row in self.scores:
            no_class = row.runner == Runner.STRUCTURED and not row.missing and row.passed is None and not row.other_language
            if no_class or not row.scored:
                items.add(row.item_id)
        return items


def records_of_items(sides: Sequence[Side]) -> list[Score]:
    """Return the first record of every item, sorted by its id."""
    records = {row.item_id: row for side in reversed(sides) for row in reversed(side.scores)}
    return [records[name] for name in sorted(records)]


@dataclass(frozen=True)
class PairedItems:
    """The items of two sides under one arm and strategy; masks have the shape (items,).

    Attributes
    ----------
    items : sequence of Score
        A record of every item.
    samples : tuple of Samples
        The answers of both sides.
    requests : tuple of ndarray of str
        By item the digest of what was asked on each side, or its id where that is not known.
    sets : dict of str to mask
        `a`, `b`: items that each side was asked and that can pass. Of those with the same reference and request on both, `paired` have all
        answers and grades, and the other ones are left out (`LEFT_OUT`). `answered` have all answers, graded or not, and may not be able to pass.
    """

    items: Sequence[Score]
    samples: tuple[Samples, Samples]
    requests: Sequence[npt.NDArray[np.str_]]
    sets: Mapping[str, Mask]

    @property
    def paired(self) -> Mask:
        """Items of which all answers and grades are there on both sides."""
        return self.sets["paired"]

    def of_family(self, family: str) -> PairedItems:
        """Keep the items of one task family."""
        part = np.array([item.family == family for item in self.items])
        return replace(self, sets={name: items & part for name, items in self.sets.items()})

    def some(self, part: Mask) -> list[Score]:
        """Return the records of some items."""
        return [self.items[place] for place in np.flatnonzero(part).tolist()]

    def sizes(self, part: Mask) -> dict[str, int]:
        """Count some items and their patients."""
        return {"n_items": int(part.sum()), "n_patients": len({item.patient_id for item in self.some(part)})}

    @cached_property
    def rows(self) -> tuple[list[list[Score]], list[list[Score]]]:
        """The records of both sides by item."""
        return self.samples[0].by_item(), self.samples[1].by_item()

    @cached_property
    def same_texts(self) -> Ints:
        """Number of samples that are the same on both sides, word for word; shape (items,)."""
        same = [place for place, old, new in paired_samples(*self.samples) if old.text_sha256 == new.text_sha256]
        return np.bincount(same, minlength=len(self.items))

    def same_answers(self, part: Mask) -> float:
        """Return the share of the answers to some items that are the same, word for word, as that of the same sample on the other side."""
        return float(self.same_texts[part].sum() / np.minimum(*(samples.number() for samples in self.samples))[part].sum())

    @property
    def repeated(self) -> Mask:
        """True for items with several samples on both sides."""
        return (self.samples[0].number() > 1) & (self.samples[1].number() > 1)

    @property
    def identical(self) -> Mask:
        """True for items of which every answer is the same on both sides, word for word."""
        return (self.same_texts == self.samples[0].number()) & (self.same_texts == self.samples[1].number())

    def pass_change(self, settings: IntervalSettings) -> tuple[float, float, Difference]:
        """Return old and new pass@1 of the paired items and new minus old, patients alike; those who share a request are one cluster.

        The interval is 0 to 0 if every answer is the same word for word.
        """
        places = np.flatnonzero(self.paired)
        patients = codes_of([item.patient_id for item in self.some(self.paired)])
        by = ByPatient(patients, settings, joined_clusters(patients, [codes_of(digests[places]) for digests in self.requests]))
        old, new = (samples.mean("passed")[places] for samples in self.samples)
        difference = paired_difference(new, old, by)
        if difference.value == 0 and self.identical[places].all():
            difference = difference._replace(low=0.0, high=0.0)
        rates = [patients_rate(side, by).value or 0.0 for side in (old, new)]
        return rates[0], rates[1], difference

    def answer_changes(self, vocabulary: Vocabulary, settings: IntervalSettings) -> dict[str, tuple[Mask, AnswerChange]]:
        """Compare old and new answers with the noise of repeats, by pass and by leading diagnosis, each with its items; none without an item."""
        named = [any(row.differential for rows in both for row in rows) for both in zip(*self.rows, strict=True)]
        changes = {}
        for metric, part in ((PASSED, self.paired), (LEADER, self.sets["answered"] & np.array(named))):
            if part.any():
                old, new = ([_categories(side[place], metric, vocabulary) for place in np.flatnonzero(part).tolist()] for side in self.rows)
                changes[metric] = part, compare_answers(old, new, settings)
        return changes


def paired_items(
    old: Side, new: Side, items: Sequence[Score] | None = None, despite: Collection[str] = ()
) -> Iterator[tuple[tuple[str, str], PairedItems]]:
    """Pair the items of two sides under every arm and strategy of both: the same reference, the same request, and no answer missing in either.

    Parameters
    ----------
    old, new : Side
        The sides.
    items : sequence of Score, optional
        A record of each item of both sides, and of others.
    despite : collection of str
        `QUESTIONS`, `REFERENCES`: pair items although these differ.

    Yields
    ------
    condition, paired : (str, str), PairedItems
        Arm and strategy, `HEADLINE` first.
    """
    items = records_of_items((old, new)) if items is None else items
    names = [item.item_id for item in items]
    answers = gather_answers(items, {OLD: old.scores, NEW: new.scores})
    can_pass = [np.array([name not in side.cannot_pass for name in names]) for side in (old, new)]
    other_reference = np.zeros(len(names), dtype=bool)
    if REFERENCES not in despite:
        other_reference = np.array([old.references.get(name) != new.references.get(name) for name in names])
    for condition in sorted(old.conditions & new.conditions, key=lambda condition: (condition != HEADLINE, condition)):
        samples = answers.of((OLD, *condition)), answers.of((NEW, *condition))
        requests = [np.array([side.requests.get((name, *condition)) or name for name in names]) for side in (old, new)]
        same = ~other_reference & ((requests[0] == requests[1]) | (QUESTIONS in despite))
        a, b = (side.asked & able for side, able in zip(samples, can_pass, strict=True))
        graded = samples[0].number(~samples[0]["graded"]) + samples[1].number(~samples[1]["graded"]) == 0
        sets = {
            "a": a,
            "b": b,
            "paired": a & b & same & graded,
            "answered": samples[0].answered & samples[1].answered & same,
            "only_a": a & ~b,
            "only_b": b & ~a,
            "other_question": a & b & ~other_reference & ~same,
            "other_reference": a & b & other_reference,
            "unanswered": a & b & same & ~graded,
        }
        yield condition, PairedItems(items, samples, requests, sets)


def leader_of(score: Score, vocabulary: Vocabulary) -> str:
    """Return the leading diagnosis of an answer, or in brackets why it has none."""
    if score.differential:
        diagnosis = vocabulary.find(score.differential[0])
        return diagnosis.key if diagnosis else normal_form(score.differential[0])
    if score.state != "ok":
        return f"({score.state})"
    return "(unread)" if score.parse_status == ParseStatus.FAILED else "(none)"


def _categories(rows: Iterable[Score], metric: str, vocabulary: Vocabulary) -> list[str]:
    return [str(row.passed) if metric == PASSED else leader_of(row, vocabulary) for row in rows]
