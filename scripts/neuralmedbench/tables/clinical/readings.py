"""What is true of the items that ask for a diagnosis, and what every answer to them names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import ByPatient, Floats, IntervalSettings, Ints
from neuralmedbench.estimates.suppression import Label
from neuralmedbench.records.items import DIAGNOSES, Gold, Item, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.vocabulary import Diagnosis, TimeCritical, Vocabulary
from neuralmedbench.scoring.lines import resolve
from neuralmedbench.scoring.matching import RIGHT
from neuralmedbench.tables.groups import NORMAL, Mask
from neuralmedbench.tables.outcomes import Key, headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

MIN_PATIENTS = 2
"""A target condition needs this many patients with it, and as many without it. (Our rule.)"""

UNKNOWN_REFERENCE = "reference not in the vocabulary"
NO_DIAGNOSIS = "no readable diagnosis"
UNRECOGNISED = "words not in the vocabulary"

READ = "read"
INDETERMINATE = ("refused", "truncated", "unparsable", "abstained", "unrecognised")
"""Why an answer names no diagnosis that can be compared; `unrecognised`: words that the vocabulary does not know and no grader passed."""

TIME_CRITICAL, ALL_REFERENCES = "time_critical", "all"
"""References of topic `urgency` beside single diagnoses."""


class TargetCondition(NamedTuple):
    """A target condition: `abnormal`, or a `family`, `diagnosis` (both of the vocabulary) or `class` (of structured items) by its name."""

    kind: str
    name: str


ABNORMAL = TargetCondition("abnormal", "any abnormality")


@dataclass(frozen=True)
class Finding:
    """A reference, or what an answer names.

    Attributes
    ----------
    conditions : frozenset of TargetCondition
        All target conditions that it is; empty for a normal scan, and where nothing can be read.
    group : str
        Its row or column of the confusion matrix.
    state : str
        `READ`, or one of `INDETERMINATE`.
    """

    conditions: frozenset[TargetCondition]
    group: str
    state: str = READ

    @property
    def normal(self) -> bool:
        """True if it states a normal scan."""
        return self.state == READ and not self.conditions


def finding_of(entry: Diagnosis, vocabulary: Vocabulary) -> Finding:
    """Return the conditions of a diagnosis: any abnormality, its family, itself and all wider terms."""
    lineage = [entry, *vocabulary.ancestors(entry.key)]
    widest = lineage[-1].name
    if entry.key == NORMAL:
        return Finding(frozenset(), widest)
    narrower = (TargetCondition("diagnosis", one.name) for one in lineage[:-1])
    return Finding(frozenset({ABNORMAL, TargetCondition("family", widest), *narrower}), widest)


def finding_of_class(label: str, vocabulary: Vocabulary) -> Finding:
    """Return the conditions of a class of a structured item, which is compared as written."""
    known = vocabulary.find(label)
    if known is not None and known.key == NORMAL:
        return Finding(frozenset(), label)
    return Finding(frozenset({ABNORMAL, TargetCondition("class", label)}), label)


@dataclass(frozen=True, kw_only=True)
class DiagnosticItems:
    """Items of one benchmark that ask for a diagnosis in the answer's own words or as a class, in the order of the arrays.

    Attributes
    ----------
    places : ndarray of int, shape (items,)
        Their index in `Outcomes.items`.
    patients : ndarray of int, shape (items,)
        Their patients.
    truth : tuple of Finding
        Their references. One that the vocabulary lacks is an abnormality of unknown family.
    entries : tuple of Diagnosis or None
        Entries of the references; None for classes and for references that the vocabulary lacks.
    """

    places: Ints
    patients: Ints
    items: tuple[Item, ...]
    gold: tuple[Gold, ...]
    truth: tuple[Finding, ...]
    entries: tuple[Diagnosis | None, ...]

    def by_patient(self, settings: IntervalSettings) -> ByPatient:
        """Return the patients of the items with the settings of their intervals."""
        return ByPatient(self.patients, settings)

    def having(self, condition: TargetCondition) -> Mask:
        """Return the items with a condition, shape (items,)."""
        return np.array([condition in truth.conditions for truth in self.truth], dtype=bool)

    def lacking(self, condition: TargetCondition) -> Mask:
        """Return the items certainly without a condition: those whose reference is unknown to the vocabulary are left out."""
        known = np.array([truth.group != UNKNOWN_REFERENCE for truth in self.truth], dtype=bool)
        return ~self.having(condition) & known

    def patients_of(self, mask: Mask) -> int:
        """Count the patients of some items."""
        return len(set(self.patients[mask].tolist()))

    @property
    def targets(self) -> list[TargetCondition]:
        """Target conditions: any abnormality, families, diagnoses and classes that at least two patients have and two lack."""
        wider = Counter(one for truth in self.truth for one in truth.conditions)
        stated = {TargetCondition("diagnosis", entry.name) for entry in self.entries if entry is not None}
        # a wider diagnosis that is the reference of no item is no target, a family is
        found = [one for one in sorted(wider, key=_order) if one.kind != "diagnosis" or one in stated]
        return [one for one in found if min(self.patients_of(self.having(one)), self.patients_of(self.lacking(one))) >= MIN_PATIENTS]


def _order(condition: TargetCondition) -> tuple[int, str]:
    return ("abnormal", "family", "class", "diagnosis").index(condition.kind), condition.name


def diagnostic_items(study: Study, benchmark: BenchmarkStudy) -> DiagnosticItems:
    """Return the items that ask for a diagnosis; places and sides of lesions, free questions and choice items are left out."""
    outcomes, vocabulary = benchmark.outcomes, study.vocabulary
    wanted = [
        place
        for place, item in enumerate(outcomes.items)
        if item.family in DIAGNOSES and item.runner in (Runner.OPEN, Runner.DIALOGUE, Runner.STRUCTURED)
    ]
    truth, entries = list[Finding](), list[Diagnosis | None]()
    for place in wanted:
        gold = outcomes.gold[place]
        label = gold.fields.diagnosis_class if gold.fields is not None else None
        if outcomes.items[place].runner is Runner.STRUCTURED and label is not None:
            truth.append(finding_of_class(label, vocabulary))
            entries.append(None)
            continue
        entry = vocabulary.of_whole_reference(gold.answer, gold.icd10)
        entries.append(entry)
        truth.append(Finding(frozenset({ABNORMAL}), UNKNOWN_REFERENCE) if entry is None else finding_of(entry, vocabulary))
    places = np.array(wanted, dtype=np.int64)
    return DiagnosticItems(
        places=places,
        patients=outcomes.patients[places],
        items=tuple(outcomes.items[place] for place in wanted),
        gold=tuple(outcomes.gold[place] for place in wanted),
        truth=tuple(truth),
        entries=tuple(entries),
    )


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The answers of one model under the arm full, strategy direct; missing ones are not among them.

    Attributes
    ----------
    places : ndarray of int, shape (answers,)
        Index of the item of each answer.
    scores, named : tuple
        Score of each answer, and what it names.
    n_items : int
        Number of items.
    expected : ndarray of int, shape (items,)
        Number of answers expected to each item.
    complete : bool
        False if more answers are missing than the configuration allows: then there are counts and no rates.
    """

    places: Ints
    scores: tuple[Score, ...]
    named: tuple[Finding, ...]
    n_items: int
    expected: Ints
    complete: bool

    @cached_property
    def read(self) -> Mask:
        """Answers that name a diagnosis, or a normal scan; shape (answers,)."""
        return np.array([one.state == READ for one in self.named], dtype=bool)

    def naming(self, condition: TargetCondition) -> Mask:
        """Answers that name a condition, shape (answers,)."""
        return np.array([condition in one.conditions for one in self.named], dtype=bool)

    def share(self, event: Mask) -> Floats:
        """Return the share of each item's answers that have a property, shape (items,); NaN for an item without an answer."""
        answers = np.bincount(self.places, minlength=self.n_items)
        events = np.bincount(self.places, weights=event, minlength=self.n_items)
        return np.where(answers > 0, events / np.maximum(answers, 1), np.nan)


def readings_of(study: Study, benchmark: BenchmarkStudy, model: str, asked: DiagnosticItems) -> Readings:
    """Read what every answer of a model names."""
    counts = benchmark.outcomes.counts[Key(model)]
    place = {item.item_id: number for number, item in enumerate(asked.items)}
    known = dict[str, Diagnosis | None]()
    scores = [
        row for row in headline(benchmark.scores.get(model, [])) if row.item_id in place and not row.missing and row.passed is not None
    ]
    expected, missing = (amount[asked.places] for amount in (counts.samples, counts.missing))
    return Readings(
        places=np.array([place[row.item_id] for row in scores], dtype=np.int64),
        scores=tuple(scores),
        named=tuple(_read(row, asked.truth[place[row.item_id]], study.vocabulary, known) for row in scores),
        n_items=len(asked.items),
        expected=expected,
        complete=bool(expected.sum() > 0 and missing.sum() <= study.settings.max_missing_fraction * expected.sum()),
    )


def is_right(score: Score) -> bool:
    """Return True if a grader passed an answer or the vocabulary finds the reference in its first diagnosis."""
    return bool(score.passed) or (score.state == ResponseState.OK and score.relation in RIGHT)


def _read(score: Score, truth: Finding, vocabulary: Vocabulary, known: dict[str, Diagnosis | None]) -> Finding:
    """Return what an answer names; `known` keeps the entries of texts that were looked up before."""
    if score.state != ResponseState.OK:
        return Finding(frozenset(), NO_DIAGNOSIS, str(score.state))
    if score.parse_status == ParseStatus.FAILED:
        return Finding(frozenset(), NO_DIAGNOSIS, "unparsable")
    if score.abstained or not score.differential:
        return Finding(frozenset(), NO_DIAGNOSIS, "abstained")
    first = score.differential[0]
    if score.runner == Runner.STRUCTURED:
        return truth if score.passed else finding_of_class(first, vocabulary)
    if first not in known:
        known[first] = resolve(first, vocabulary)
    entry = known[first]
    named = None if entry is None else finding_of(entry, vocabulary)
    within = named is not None and named.conditions >= truth.conditions and named.normal == truth.normal
    if is_right(score) and (not within or truth.group == UNKNOWN_REFERENCE):
        return truth  # the reference in other words, or a wider term that a grader accepted
    return named or Finding(frozenset(), UNRECOGNISED, "unrecognised")


def time_critical_items(study: Study, asked: DiagnosticItems) -> dict[int, TimeCritical]:
    """Return the index of every item whose reference is time-critical, with the entry of the list."""
    found = {place: study.urgency.of(entry.key, study.vocabulary) for place, entry in enumerate(asked.entries) if entry is not None}
    return {place: entry for place, entry in found.items() if entry is not None}


def forbidding(gold: Gold) -> list[str]:
    """Return the names of the criteria of a reference that cost points: statements that must not be made."""
    return [one.criterion for one in gold.rubric if one.points < 0]


def clinical_parts(study: Study, benchmark: BenchmarkStudy) -> Iterator[tuple[Label, str]]:
    """Yield the parts of a benchmark that the clinical tables are about, with the id of each of their items."""
    asked = diagnostic_items(study, benchmark)
    for target in asked.targets:
        for side, mask in (("with", asked.having(target)), ("without", asked.lacking(target))):
            for place in np.flatnonzero(mask).tolist():
                yield (f"{side} {target.kind}", target.name), asked.items[place].item_id
    urgent = time_critical_items(study, asked)
    for place, (item, truth, entry) in enumerate(zip(asked.items, asked.truth, asked.entries, strict=True)):
        yield ("confused", truth.group), item.item_id
        if place in urgent and entry is not None:
            yield ("urgent", TIME_CRITICAL), item.item_id
            yield ("urgent", entry.name), item.item_id
            if forbidding(asked.gold[place]):
                yield ("forbidding", TIME_CRITICAL), item.item_id
    for item, gold in zip(benchmark.outcomes.items, benchmark.outcomes.gold, strict=True):
        if forbidding(gold):
            yield ("forbidding", ALL_REFERENCES), item.item_id
