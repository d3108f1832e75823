"""Scores as arrays: the outcome of every expected answer, counted per item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.intervals import ByPatient, Floats, IntervalSettings, Ints, codes_of
from neuralmedbench.estimates.repeats import pass_at_k
from neuralmedbench.records.items import DIAGNOSES, Gold, Item, Runner, discloses_findings
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.records.value_rules import threshold
from neuralmedbench.tables.answers import GRADES, RUBRIC, Answers, Samples, gather_answers
from neuralmedbench.tables.shared_requests import joined_clusters, paired_members, request_codes

PAIR_RIGHT, PAIR_PART, PAIR_WRONG, PAIR_SAME = PAIR_METRICS = ("pair_right", "pair_part", "pair_wrong", "pair_same")
"""Share of the pairs with every member right, some of them, none; and with one and the same readable answer to all members."""


def pair_shares(items: Sequence[Item], samples: Samples, requests: Ints | None = None) -> dict[str, Floats]:
    """Score pairs of items, by `PAIR_METRICS`; shape (items,), the value of a pair at its first item, NaN everywhere else.

    Samples are matched in their order. A pair with a missing answer counts in none of the four: right, part and wrong sum to 1 only where
    no answer and no grade is missing. A pair whose members share a request (`requests`, their codes) has no value: one answer to both is
    right or wrong about the pair by construction.

    Set accuracy and confusion of Sepehri et al., MediConfusion (2024). Guessing between two options gets a quarter of the pairs right.
    """
    given, asked = samples.by_item(), samples.number()
    shares = {name: np.full(len(items), np.nan) for name in PAIR_METRICS}
    for places in paired_members(items).values():
        # a pair has as many samples as its member with the fewest
        expected = int(asked[places].min())
        if not expected or (requests is not None and len(set(requests[places].tolist())) < len(places)):
            continue
        together = list(zip(*(given[place] for place in places), strict=False))[:expected]
        answered = [rows for rows in together if not any(row.missing for row in rows)]
        right = [sum(bool(row.passed) for row in rows) for rows in answered if all(row.passed is not None for row in rows)]
        counts = {
            PAIR_RIGHT: sum(number == len(places) for number in right),
            PAIR_PART: sum(0 < number < len(places) for number in right),
            PAIR_WRONG: sum(number == 0 for number in right),
            PAIR_SAME: sum(_is_one_answer(rows) for rows in answered),
        }
        for name, number in counts.items():
            shares[name][places[0]] = number / expected
    return shares


def _is_one_answer(rows: Sequence[Score]) -> bool:
    answers = {row.differential[:1] if row.state == "ok" else () for row in rows}
    return len(answers) == 1 and answers != {()}


K = 5
"""Samples, and candidates, of the two readings of pass@5."""

FULL, DIRECT = "full", "direct"

PASS1_STRICT = "pass1_strict"
"""pass@1 where an answer in another form than the requested one does not pass."""


class Key(NamedTuple):
    """A model under one arm and one strategy."""

    model: str
    arm: str = FULL
    strategy: str = DIRECT


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Outcomes of the answers of one model under one arm and one strategy; every array has shape (items,).

    Attributes
    ----------
    samples : ndarray of int
        Answers expected; 0 where the arm does not ask the item.
    passes, missing, false_names, unread : ndarray of int
        Answers that pass; that are missing (no response, or no grade); that name a wrong diagnosis; that are wrong because they were not read.
    not_graded : ndarray of int
        Of the missing ones those that are there and have no grade.
    strict : ndarray of int
        Answers that pass and keep the requested form.
    candidates, unlisted : ndarray of int
        Answers whose first five candidates hold the reference; whose candidates cannot be compared, because of their language
        or because the vocabulary does not have the reference.
    grades : dict of str to ndarray of float
        Mean grade by criterion (`main_condition`, `core_diagnosis`), and mean points (`RUBRIC`); NaN where there is
        none. Arms that disclose findings have no points: an answer could copy them.
    graded : dict of str to ndarray of int
        Answers with such a grade.
    pairs : dict of str to ndarray of float
        See `pair_shares`.
    languages : tuple of str
        Languages without names in the vocabulary, of answers that were not graded (ISO 639-1).
    foreign : int
        Answers that were not graded because of them.
    present : int
        Answers that are there, graded or not.
    tally : dict of str to int
        Of these: `refused`, `truncated`, `truncated_thinking` (of these, before the answer began), `unparsable`, `unread_missing` (unparsable and not graded, so that they are missing and not wrong),
        `contradicted` (a letter before the words of another option), `abstained`.
    brier : float or None
        Mean squared distance of the stated confidence from the outcome.
    sampled : bool
        True if the samples differ by design (temperature above 0), so that pass@k is meaningful.
    """

    samples: Ints
    passes: Ints
    strict: Ints
    missing: Ints
    not_graded: Ints
    false_names: Ints
    unread: Ints
    candidates: Ints
    unlisted: Ints
    grades: dict[str, Floats]
    pairs: dict[str, Floats]
    languages: tuple[str, ...]
    present: int
    tally: dict[str, int]
    brier: float | None
    sampled: bool
    graded: dict[str, Ints] = field(default_factory=dict)
    foreign: int = 0

    def mean_of(self, amount: npt.NDArray[np.number]) -> Floats:
        """Return an amount as a share of the expected answers of each item; NaN where the item is not asked."""
        return np.where(self.samples > 0, amount / np.maximum(self.samples, 1), np.nan)

    @property
    def if_missing_passed(self) -> Counts:
        """The counts if every missing answer had passed, in the form that was asked for, with the reference among its candidates."""
        amounts = {name: getattr(self, name) + self.missing for name in ("passes", "strict", "candidates")}
        return replace(self, **amounts)

    @property
    def unanswered(self) -> bool:
        """True if every expected answer is missing: then the model's rates are unknown, not 0."""
        return bool((self.missing >= self.samples).all())

    @property
    def missing_fraction(self) -> float:
        """Share of the expected answers that are missing."""
        return float(self.missing.sum() / max(int(self.samples.sum()), 1))

    def not_graded_of(self, items: npt.NDArray[np.bool_]) -> float:
        """Return the share of the expected answers to some items that are there and were not graded."""
        return float(self.not_graded[items].sum() / max(int(self.samples[items].sum()), 1))


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """One benchmark: the items that have a reference, in the order of every array, and the counts of every key.

    `requests` has the codes of the requests of arms in which items share one (`shared_requests.request_codes`). `repeatable` items may have samples that differ (runners open and dialogue), `ranked` items ask for a ranked differential.
    """

    benchmark: str
    axis: str
    items: tuple[Item, ...]
    gold: tuple[Gold, ...]
    patients: Ints
    repeatable: npt.NDArray[np.bool_]
    ranked: npt.NDArray[np.bool_]
    counts: dict[Key, Counts]
    answers: Answers
    requests: dict[Key, Ints] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, int]:
        """Places of the items by id."""
        return {item.item_id: place for place, item in enumerate(self.items)}

    def differential_items(self, key: Key) -> npt.NDArray[np.bool_]:
        """Return a mask of the items over which both readings of pass@5 are counted: a ranked differential is asked for, in five samples.

        If no item has five samples there is one reading alone, the candidates, and every item that asks for a ranked differential counts.
        """
        repeated = self.ranked & (self.counts[key].samples >= K)
        return repeated if repeated.any() else self.ranked

    def pass1_of_complete_items(self, key: Key) -> Floats:
        """Return pass@1 by item, NaN where any answer is missing: a contrast must not reflect missing answers."""
        return np.where(self.counts[key].missing > 0, np.nan, self.metric("pass1", key))

    def complete(self, *keys: Key) -> npt.NDArray[np.bool_]:
        """Return a mask of the items that are asked under all keys and lack no answer under any."""
        return np.asarray(~np.isnan([self.pass1_of_complete_items(key) for key in keys]).any(axis=0))

    def metric(self, name: str, key: Key, *, within_family: bool = False, best: bool = False) -> Floats:
        """Return item values of one metric: shape (items,), between 0 and 1, NaN where it does not apply, and everywhere without any answer.

        Missing answers count as failed, with `best` as passed. `pass5`, `all_right` and `candidates5` are over the same items
        (`differential_items`). Within one family the first two are known for every item that has five samples, whatever it asks for.
        """
        counts = self.counts[key].if_missing_passed if best else self.counts[key]
        if name in counts.grades:  # rubric points may be known where no grader decided about the diagnosis
            return counts.grades[name]
        values = np.full(len(self.items), np.nan)
        if counts.unanswered:
            return values
        if name in counts.pairs:
            return counts.pairs[name]
        amounts = {
            "pass1": counts.passes,
            PASS1_STRICT: counts.strict,
            "candidates5": counts.candidates,
            "false_alarm": counts.false_names,
        }
        if name in amounts:
            listed = self.differential_items(key) & (counts.unlisted == 0)
            return np.where(listed | (name != "candidates5"), counts.mean_of(amounts[name]), np.nan)
        # pass@5 and all-right need five samples that differ by design
        usable = (self.repeatable if within_family else self.differential_items(key)) & (counts.samples >= K) & counts.sampled
        if usable.any():
            samples, passes = counts.samples[usable], counts.passes[usable]
            values[usable] = pass_at_k(samples, passes, K) if name == "pass5" else (passes == samples).astype(float)
        return values

    def by_patient(self, settings: IntervalSettings, *keys: Key) -> ByPatient:
        """Return the patients of the items with the settings of their intervals.

        Under the arms of `keys`, patients who share a request are one: one draw stands for all of its items.
        """
        joined = self.clusters(*keys)
        return ByPatient(self.patients, settings, None if joined is self.patients else joined)

    def clusters(self, *keys: Key) -> Ints:
        """Return the patient of each item, patients who share a request under one of the arms joined; shape (items,)."""
        shared = [self.requests[key] for key in keys if key in self.requests]
        return joined_clusters(self.patients, shared) if shared else self.patients

    def request_count(self, key: Key, items: npt.NDArray[np.bool_]) -> int:
        """Count the different requests of some items under an arm."""
        return len(np.unique(self.requests[key][items])) if key in self.requests else int(items.sum())

    def pairs_of_one_request(self, key: Key) -> int:
        """Count the pairs that an arm asks and whose members share a request."""
        if key not in self.requests:
            return 0
        asked, codes = self.expected(key), self.requests[key]
        pairs = [places for places in paired_members(self.items).values() if asked[places].all()]
        return sum(len(set(codes[places].tolist())) < len(places) for places in pairs)

    def expected(self, key: Key) -> npt.NDArray[np.bool_]:
        """Return a mask of the items that the arm asks."""
        return self.counts[key].samples > 0


def gather_outcomes(
    benchmark: str,
    axis: str,
    items: Iterable[Item],
    gold: Iterable[Gold],
    *,
    scores: Mapping[str, list[Score]],
    sampled: Mapping[str, bool],
    responses: Mapping[str, Sequence[Response]] | None = None,
) -> Outcomes:
    """Count the outcomes of all expected answers (`answers.gather_answers`).

    Items without the reference that their pass rule needs are left out: they cannot pass.
    """
    reference = {row.item_id: row for row in gold}
    # items without a reference cannot pass, and are left out
    used = tuple(sorted((item for item in items if can_pass(item, reference.get(item.item_id))), key=lambda item: item.item_id))
    answers = gather_answers(used, scores)
    requests = {
        Key(model, *arm): codes for model, answers in (responses or {}).items() for arm, codes in request_codes(used, answers).items()
    }
    counts = {}
    for key in (Key(*condition) for condition in answers.spans):
        # under arms that disclose findings there are no points: an answer could copy the statements
        points = not discloses_findings(key.arm)
        counts[key] = _count(answers.of(key), used, sampled=sampled[key.model], has_points=points, requests=requests.get(key))
    return Outcomes(
        benchmark=benchmark,
        axis=axis,
        items=used,
        gold=tuple(reference[item.item_id] for item in used),
        patients=codes_of([item.patient_id for item in used]),
        repeatable=np.array([item.runner in (Runner.OPEN, Runner.DIALOGUE) for item in used], dtype=bool),
        ranked=np.array([_is_ranked(item) for item in used], dtype=bool),
        counts=counts,
        answers=answers,
        requests=requests,
    )


def can_pass(item: Item, gold: Gold | None) -> bool:
    """Return True if an item has the reference that its pass rule needs.

    For structured items a class, or a value whose rule can say right or wrong; an answer for the others.
    """
    if item.runner is Runner.STRUCTURED and gold is not None and gold.values:
        return any(value.decides and threshold(value) is not None for value in gold.values)
    if item.runner is Runner.STRUCTURED:
        return gold is not None and gold.fields is not None and gold.fields.diagnosis_class is not None
    return gold is not None


def _is_ranked(item: Item) -> bool:
    return item.runner in (Runner.OPEN, Runner.DIALOGUE) and item.family in DIAGNOSES


def _count(samples: Samples, items: tuple[Item, ...], *, sampled: bool, has_points: bool, requests: Ints | None) -> Counts:
    expected, there = samples.number(), samples.there
    graded, not_graded = samples["graded"], samples["there"] & ~samples["graded"]
    # how an answer reads does not depend on a grade
    unparsable, foreign = there["unparsable"], samples["foreign"]
    # a false name is a wrong diagnosis in a readable answer
    wrong = graded & ~samples["passed"] & ~samples["abstained"]
    named = wrong & (samples["state"] == ResponseState.OK) & ~samples["unparsable"]
    judged = samples.where(graded & ~np.isnan(samples["confidence"]))
    without = np.full(len(items), np.nan)
    kinds = {
        "refused": there["state"] == ResponseState.REFUSED,
        "truncated": there["state"] == ResponseState.TRUNCATED,
        "truncated_thinking": there["in_thought"],
        "unparsable": unparsable,
        "unread_missing": unparsable & ~there["graded"],
        "contradicted": there["contradicted"],
        "abstained": there["abstained"] & ~there["foreign"],
    }
    return Counts(
        samples=expected,
        passes=samples.number(samples["passed"]),
        strict=samples.number(samples["strict"]),
        missing=samples.number(~graded),
        not_graded=samples.number(not_graded),
        false_names=samples.number(named),
        unread=samples.number(wrong & samples["unparsable"]),
        candidates=samples.number(samples["in_candidates"]),
        unlisted=samples.number(samples["unlisted"]),
        grades={name: without if name == RUBRIC and not has_points else there.mean(name) for name in GRADES},
        pairs=pair_shares(items, samples, requests),
        languages=tuple(sorted({score.other_language for _, score in samples.where(foreign).rows()})),
        present=len(there.scores),
        tally={name: int(mask.sum()) for name, mask in kinds.items()},
        brier=float(np.mean((judged["confidence"] - judged["passed"]) ** 2)) if len(judged.scores) else None,
        sampled=sampled,
        graded={name: there.number(~np.isnan(there[name])) for name in GRADES if name != RUBRIC or has_points},
        foreign=int(foreign.sum()),
    )


def headline(scores: list[Score], arm: str = FULL) -> list[Score]:
    """Return the rows of the arm full, or another one, and the strategy direct."""
    return [row for row in scores if (row.arm, row.strategy) == (arm, DIRECT)]
