"""Gold of local cases: terms resolved against the vocabulary, and the rubric criteria derived from the answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from neuralmedbench.benchmarks.answers_table import AnswerRow
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.sign_names import APPEARANCES, NAMING, sign_names
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.items import SIDE_WORDS, Arm, Criterion, Disclosure, Family, Gold, Item, Lesion
from neuralmedbench.records.vocabulary import BRACKETS, Diagnosis, Vocabulary, normal_form

LESION_FAMILIES = frozenset({Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION})
"""Families whose rubric asks for location, side and signal of the lesion."""


AS_WRITTEN = Vocabulary(version="", digest="", diagnoses={}, locations={})
"""Empty vocabulary, for imported sets: their terms are kept as written; scoring looks them up in the vocabulary of its run."""


def gold_of(item: Item, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    """Build the gold of one item of a case, as in `gold_for`."""
    return gold_for(item.item_id, item.family, answer, vocabulary)


def gold_for(item_id: str, family: Family, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    """Build the gold of one item or question with the rubric of its family.

    A diagnosis in the vocabulary gets its preferred name, with the original wording as an alias. One that is unknown, a kind of a diagnosis,
    or says more in brackets (a place, a subtype), is kept as written: the matcher reads it.
    """
    found = diagnosis_of(answer, vocabulary)
    in_brackets = vocabulary.find(answer.diagnosis) is None and found is vocabulary.find(BRACKETS.sub(" ", answer.diagnosis))
    is_kind = found is not None and normal_form(answer.diagnosis) in map(normal_form, found.narrower)
    name = found.name if found and not in_brackets and not is_kind else answer.diagnosis
    written = (answer.diagnosis,) if normal_form(answer.diagnosis) != normal_form(name) else ()
    gold = Gold(
        item_id=item_id,
        answer=name,
        aliases=tuple(dict.fromkeys((*written, *answer.aliases))),
        icd10=answer.icd10 or (found.icd10[0] if found and found.icd10 else ""),
        differentials=tuple(_preferred_name(term, vocabulary) for term in answer.differentials),
        findings=answer.findings,
        findings_complete=answer.findings_complete,
        lesion=lesion_of(answer, vocabulary),
        rationale=answer.rationale,
        must_not=(*answer.must_not, *answer.harmful),
        turn_leaders=tuple(_preferred_name(term, vocabulary) for term in answer.turn_leaders),
        established=answer.established,
        essential=answer.essential if family is Family.DIFFERENTIAL_DIAGNOSIS else (),
    )
    capping = {f"must_not_{number}" for number in range(len(answer.must_not) + 1, len(gold.must_not) + 1)}
    return replace(gold, rubric=tuple(replace(row, cap=row.criterion in capping) for row in criteria(family, gold)))


def diagnosis_of(answer: AnswerRow, vocabulary: Vocabulary) -> Diagnosis | None:
    """Look up the diagnosis of a row by its term, else by its ICD-10 code; None if the vocabulary has neither."""
    return vocabulary.of_whole_reference(answer.diagnosis, answer.icd10)


def _preferred_name(term: str, vocabulary: Vocabulary) -> str:
    found = vocabulary.find(term)
    return found.name if found else term


def lesion_of(answer: AnswerRow, vocabulary: Vocabulary) -> Lesion | None:
    """Return the lesion of a row, at a place of the vocabulary where it has that place; None without a location."""
    if not answer.lesion_location:
        return None
    return Lesion(
        location=vocabulary.places.get(normal_form(answer.lesion_location), answer.lesion_location),
        side=answer.lesion_side,
        behaviour=answer.lesion_behaviour,
        size_mm=answer.lesion_size_mm,
        position_mm=answer.lesion_position_mm,
        extent_mm=answer.lesion_extent_mm,
    )


def criteria(family: Family, gold: Gold) -> tuple[Criterion, ...]:
    """Build the rubric of one item from its gold.

    `states_side`, `states_location`, `names_signal_<sequence>`, `mentions_finding_<n>`, `considers_<n>` and `argues_<n>` earn points;
    `must_not_<n>` costs points if the answer states it; `gold_for` marks those of harmful statements as capping.
    """
    rows: list[Criterion] = []
    if gold.lesion and family in LESION_FAMILIES:
        if gold.lesion.side:
            rows.append(Criterion(criterion="states_side", text=f"States that the lesion lies {SIDE_WORDS[gold.lesion.side]}.", points=1.0))
        rows.append(Criterion(criterion="states_location", text=f"Places the lesion in: {gold.lesion.location}.", points=1.0))
        for sequence, signal in sorted(gold.lesion.behaviour.items()):
            text = f"Says that the lesion is {signal} on {sequence}."
            rows.append(Criterion(criterion=f"names_signal_{sequence.lower()}", text=text, points=0.5))
    if family is not Family.LESION_RECOGNITION:
        rows += _numbered("mentions_finding", "Mentions the finding: {}", gold.findings, 1.0)
        alternatives = tuple(term for term in gold.differentials if term != gold.answer)
        rows += _numbered("considers", "Considers: {}", alternatives, 0.5)
    if family is Family.RATIONALE_GENERATION:
        rows += _numbered("argues", "Argues: {}", gold.rationale, 1.0)
    rows += _numbered("must_not", "Says: {}", gold.must_not, -1.0)
    return tuple(rows)


def _numbered(name: str, template: str, statements: tuple[str, ...], points: float) -> list[Criterion]:
    return [
        Criterion(criterion=f"{name}_{number}", text=template.format(statement.rstrip(".") + "."), points=points)
        for number, statement in enumerate(statements, start=1)
    ]


def is_normal(answer: AnswerRow, vocabulary: Vocabulary) -> bool:
    """Return True if the patient has no disease that a scan could show."""
    found = diagnosis_of(answer, vocabulary)
    return found is not None and found.is_normal


def unknown_terms(answer: AnswerRow, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return tags for the terms that are not in the vocabulary and are kept as written."""
    tags = []
    if diagnosis_of(answer, vocabulary) is None:
        tags.append("diagnosis_not_in_vocabulary")
    if answer.lesion_location and normal_form(answer.lesion_location) not in vocabulary.places:
        tags.append("location_not_in_vocabulary")
    return tuple(tags)


def check_findings(gold: Gold, vocabulary: Vocabulary) -> None:
    """Reject findings that name the diagnosis, a wider or narrower term or a sign that names them: `findings_disclosed` would reveal it."""
    names = AnswerNames.of(gold, vocabulary)
    for number, finding in enumerate(gold.findings, start=1):
        if name := names.first_in(finding):
            message = f"{gold.item_id}: finding {number} names the diagnosis ({name}); write what is seen, not what it means"
            raise DataError(message)


@dataclass(frozen=True)
class AnswerNames:
    """Names of a diagnosis, of its wider and narrower terms and of signs that name them, each with its normal form; and their abbreviations.

    However wide a term is, its names count, unless they say what is seen (`sign_names.APPEARANCES`): "tumour" is what a mass means.
    Abbreviations count as they are written.
    """

    forms: tuple[tuple[str, str], ...]
    abbreviations: tuple[str, ...]

    @classmethod
    def of(cls, gold: Gold, vocabulary: Vocabulary) -> AnswerNames:
        """Collect the names of the answer of an item."""
        found = vocabulary.of_whole_reference(gold.answer, gold.icd10)
        related = [] if found is None else [found, *vocabulary.ancestors(found.key), *vocabulary.descendants(found.key)]
        own = {normal_form(name) for name in (gold.answer, *gold.aliases, *(found.terms if found else ()))}
        others = (term for entry in related for term in entry.in_full)
        wider = (term for term in others if normal_form(term) in own or normal_form(term) not in APPEARANCES)
        names = dict.fromkeys((gold.answer, *gold.aliases, *wider, *sign_names(gold, vocabulary, NAMING)))
        return cls(
            tuple((name, form) for name in names if (form := normal_form(name))),
            tuple(name for entry in related for name in entry.abbreviations),
        )

    def first_in(self, text: str) -> str:
        """Return the first name that a text contains; empty if there is none."""
        plain = normal_form(text)
        for name, form in self.forms:
            # whole words only; scripts without spaces (Chinese) have none, so there any occurrence counts
            if f" {form} " in f" {plain} " or f" {form}s " in f" {plain} " or (not form.isascii() and form in plain):
                return name
        # abbreviations count only as they are written: MS is a disease, ms a unit
        written = set(re.findall(r"\w+", text))
        return next((name for name in self.abbreviations if name in written), "")


def disclosure(gold: Gold) -> Disclosure:
    """Write the findings as the text that the arm `findings_disclosed` adds to the item."""
    lines = "\n".join(f"- {finding}" for finding in gold.findings)
    return Disclosure(item_id=gold.item_id, arm=Arm.FINDINGS_DISCLOSED, text=f"Findings of an expert who read these pictures:\n{lines}")


def add_findings_of_others(built: BenchmarkItems, arms: Sequence[str], vocabulary: Vocabulary) -> BenchmarkItems:
    """Add what the arm `findings_of_another` shows, if it is asked."""
    if Arm.FINDINGS_OF_ANOTHER not in arms:
        return built
    gold = {row.item_id: row for row in built.gold}
    return replace(built, disclosures=(*built.disclosures, *findings_of_others(built.items, gold, built.disclosures, vocabulary)))


def findings_of_others(
    items: Sequence[Item], gold: Mapping[str, Gold], shown: Iterable[Disclosure], vocabulary: Vocabulary
) -> list[Disclosure]:
    """Choose for each item with findings those of another patient: what the arm `findings_of_another` shows instead.

    Parameters
    ----------
    items : sequence of Item
        The items.
    gold : mapping of str to Gold
        Their gold by item id.
    shown : iterable of Disclosure
        What `findings_disclosed` shows.
    vocabulary : Vocabulary
        Tells which diseases are related.

    Returns
    -------
    list of Disclosure
        Of the patients with a disease of another family, none of whose findings name the item's diagnosis, the one whose findings are
        nearest in number of words; ties by the digest of the item's case with that of the donor. Items of one case get one donor. An
        item without such a patient has no row.
    """
    texts = {row.item_id: row.text for row in shown if row.arm == Arm.FINDINGS_DISCLOSED and row.text}
    asked = sorted((item for item in items if item.item_id in texts and item.item_id in gold), key=lambda item: item.item_id)
    family = {item.item_id: vocabulary.disease_family(gold[item.item_id].answer) or gold[item.item_id].answer for item in asked}
    # items of one family with equally long findings are equally good, so not every item is compared with every other one
    groups = defaultdict[tuple[str, int], list[Item]](list)
    for item in asked:
        groups[family[item.item_id], len(texts[item.item_id].split())].append(item)
    rows = []
    for (own, words), alike in groups.items():
        by_distance = defaultdict[int, list[Item]](list)
        for (other, length), members in groups.items():
            if other != own:
                by_distance[abs(length - words)] += members
        for item in alike:
            names = AnswerNames.of(gold[item.item_id], vocabulary)
            # ties in an order of their own for each case, so that no patient lends to all
            donors = (
                other
                for distance in sorted(by_distance)
                for other in sorted(by_distance[distance], key=lambda one: (sha256_of_value([item.case_id, one.case_id]), one.item_id))
                if other.patient_id != item.patient_id
            )
            if text := next((texts[other.item_id] for other in donors if not names.first_in(texts[other.item_id])), ""):
                rows.append(Disclosure(item_id=item.item_id, arm=Arm.FINDINGS_OF_ANOTHER, text=text))
    return sorted(rows, key=lambda row: row.item_id)
