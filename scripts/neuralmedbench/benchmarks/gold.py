"""Gold of local cases: terms resolved against the vocabulary, and the rubric criteria derived from the answer."""

from __future__ import annotations

from dataclasses import replace

from neuralmedbench.benchmarks.answers_table import AnswerRow
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Arm, Criterion, Disclosure, Family, Gold, Item, Lesion
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

SIDE_WORDS = {"left": "on the left", "right": "on the right", "bilateral": "on both sides", "midline": "in the midline"}

LESION_FAMILIES = frozenset({Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION})
"""Families whose rubric asks for location, side and signal of the lesion."""

NORMAL_CLASS = "normal"


def gold_of(item: Item, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    """Build the gold of one item of a case, as in `gold_for`."""
    return gold_for(item.item_id, item.family, answer, vocabulary)


def gold_for(item_id: str, family: Family, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    """Build the gold of one item or question with the rubric of its family.

    A diagnosis in the vocabulary gets its preferred name, with the original wording as an alias; an unknown one is kept as written.
    """
    found = diagnosis_of(answer, vocabulary)
    name = found.name if found else answer.diagnosis
    written = (answer.diagnosis,) if normal_form(answer.diagnosis) != normal_form(name) else ()
    gold = Gold(
        item_id=item_id,
        answer=name,
        aliases=tuple(dict.fromkeys((*written, *answer.aliases))),
        icd10=answer.icd10 or (found.icd10[0] if found and found.icd10 else ""),
        differentials=tuple(_preferred_name(term, vocabulary) for term in answer.differentials),
        findings=answer.findings,
        findings_complete=answer.findings_complete,
        lesion=_lesion(answer, vocabulary),
        rationale=answer.rationale,
        must_not=answer.must_not,
        turn_leaders=tuple(_preferred_name(term, vocabulary) for term in answer.turn_leaders),
        established=answer.established,
    )
    return replace(gold, rubric=criteria(family, gold))


def diagnosis_of(answer: AnswerRow, vocabulary: Vocabulary) -> Diagnosis | None:
    """Look up the diagnosis of a row by its term, else by its ICD-10 code; None if the vocabulary has neither."""
    return vocabulary.find(answer.diagnosis) or (vocabulary.find(answer.icd10) if answer.icd10 else None)


def _preferred_name(term: str, vocabulary: Vocabulary) -> str:
    found = vocabulary.find(term)
    return found.name if found else term


def _lesion(answer: AnswerRow, vocabulary: Vocabulary) -> Lesion | None:
    if not answer.lesion_location:
        return None
    return Lesion(
        location=vocabulary.places.get(normal_form(answer.lesion_location), answer.lesion_location),
        side=answer.lesion_side,
        behaviour=answer.lesion_behaviour,
        size_mm=answer.lesion_size_mm,
        position_mm=answer.lesion_position_mm,
    )


def criteria(family: Family, gold: Gold) -> tuple[Criterion, ...]:
    """Build the rubric of one item from its gold.

    `states_side`, `states_location`, `names_signal_<sequence>`, `mentions_finding_<n>`, `considers_<n>` and `argues_<n>` earn points;
    `must_not_<n>` costs points if the answer states it.
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
    return found is not None and found.classes == NORMAL_CLASS


def unknown_terms(answer: AnswerRow, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return tags for the terms that are not in the vocabulary and are kept as written."""
    tags = []
    if diagnosis_of(answer, vocabulary) is None:
        tags.append("diagnosis_not_in_vocabulary")
    if answer.lesion_location and normal_form(answer.lesion_location) not in vocabulary.places:
        tags.append("location_not_in_vocabulary")
    return tuple(tags)


def check_findings(gold: Gold) -> None:
    """Reject findings that name the diagnosis: the arm `findings_disclosed` would reveal the answer."""
    names = [form for name in (gold.answer, *gold.aliases) if (form := normal_form(name))]
    for number, finding in enumerate(gold.findings, start=1):
        text = normal_form(finding)
        # whole words only; scripts without spaces (Chinese) have none, so there any occurrence counts
        if any(f" {name} " in f" {text} " or (not name.isascii() and name in text) for name in names):
            message = f"{gold.item_id}: finding {number} names the diagnosis; write what is seen, not what it means"
            raise DataError(message)


def disclosure(gold: Gold) -> Disclosure:
    """Write the findings as the text that the arm `findings_disclosed` adds to the item."""
    lines = "\n".join(f"- {finding}" for finding in gold.findings)
    return Disclosure(item_id=gold.item_id, arm=Arm.FINDINGS_DISCLOSED, text=f"Findings of an expert who read these pictures:\n{lines}")
