"""Plant errors: in the references of chosen items, and in answers of a model that a grader has judged.

In the latter the words and the order of the sections are the model's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from neuralmedbench.records.arm_changes import DENIAL
from neuralmedbench.records.checklist import PLACES
from neuralmedbench.records.items import Arm, Gold, Item
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import CORE_DIAGNOSIS, PLANTED, Grade, ParseStatus, PlantedAnswer, response_key, text_digest
from neuralmedbench.records.vocabulary import Urgency, Vocabulary
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.planted.checks import is_met
from neuralmedbench.scoring.planted.edits import (
    EDITS,
    FAILED,
    PASSED,
    RIGHT,
    SIDE_WORD,
    WRONG,
    Draft,
    Edit,
    Reference,
    right_answer,
    write_section,
    wrong_answer,
)
from neuralmedbench.scoring.rubric import GRADED_RUNNERS, gradable
from neuralmedbench.scoring.sections import KNOWN, header_of

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(]?[A-Z])")
LEANS_ON_ANOTHER = re.compile(
    r"(?:but|first|second|third|finally|further|furthermore|hence|however|in addition|it|its|moreover|next|so|such|that|then|therefore|these"
    r"|they|this|those|thus)\b",
    re.IGNORECASE,
)
"""Beginnings of sentences that mean something only after the sentence before them."""
REVISION = "1"
"""Of the edits: their words stand in the requests to graders, so a change of them is asked again."""


@dataclass(frozen=True)
class Base:
    """An answer in which errors can be planted: its kind (`right`, `wrong`), its reference, and the answer in its parts."""

    kind: str
    reference: Reference
    draft: Draft

    def edited(self, edit: Edit) -> Draft | None:
        """Return the answer after an edit; None if the edit is not for this answer."""
        return edit.apply(self.draft, self.reference) if edit.base == self.kind else None

    def text(self, draft: Draft) -> str:
        """Write this answer, or what an edit made of it."""
        return draft.text(self.reference)


@dataclass(frozen=True)
class References:
    """The items of a benchmark and their references, by item id, the vocabulary and the time-critical diagnoses."""

    items: Mapping[str, Item]
    gold: Mapping[str, Gold]
    vocabulary: Vocabulary
    urgency: Urgency = field(default_factory=Urgency)

    def of(self, item_id: str) -> Reference:
        """Return what an edit may know of an item."""
        return Reference(self.items[item_id], self.gold[item_id], self.vocabulary, self.urgency)


def plant_in_answers(
    responses: Iterable[Response], grades: Iterable[Grade], references: References, *, patients: int
) -> list[PlantedAnswer]:
    """Plant errors in answers of a model that a grader has judged.

    Parameters
    ----------
    responses : iterable of Response
        Of one model; those under the arm full are used, one per item and verdict.
    grades : iterable of Grade
        Of one grader for them.
    references : References
        What is asked, and the right answers.
    patients : int
        Answers per edit, each of another patient, at most.

    Returns
    -------
    list of PlantedAnswer
        The edited answers, and the answers that they are made of (`passed` or `failed` by this grader), which are not graded again:
        `expected` of these is what the grader gave. An answer is left out if its sections cannot be told apart.
    """
    values: dict[tuple[object, ...], dict[str, bool]] = {}
    for grade in grades:
        if grade.value is not None:
            values.setdefault((response_key(grade), grade.text_sha256), {})[grade.criterion] = is_met(grade.criterion, grade.value)
    items = references.items
    usable = [row for row in responses if row.item_id in references.gold and row.arm == Arm.FULL and gradable(row, items[row.item_id])]
    known = {row.item_id: references.of(row.item_id) for row in usable}
    bases: dict[tuple[str, str], Base] = {}
    for response in sorted(usable, key=lambda row: text_digest(row.text)):
        given = values.get((response_key(response), text_digest(response.text)), {})
        for base in _bases(response.text, known[response.item_id], given):
            bases.setdefault((response.item_id, base.kind), base)
    return _plant_in(sorted(bases.values(), key=lambda base: place_of(base.reference.item)), patients)


def planted_in_answers(responses: Iterable[Response], grades: Sequence[Grade], references: References) -> list[PlantedAnswer]:
    """Return what `plant_in_answers` planted in answers of a model, if the grader was tested on them: it follows from its grades.

    Parameters
    ----------
    responses, grades, references
        As of `plant_in_answers`; grades of the answers with planted errors are among the grades.

    Returns
    -------
    list of PlantedAnswer
        Of any number of patients, so possibly more than were asked about. Errors for a jury are planted in answers that the jury passed or
        failed: its members were asked about those that all of them have judged alike.
    """
    if not any(grade.model == PLANTED for grade in grades):
        return []
    return plant_in_answers(responses, grades, references, patients=len(references.items))


def _bases(text: str, reference: Reference, values: Mapping[str, bool]) -> list[Base]:
    """Return an answer as one that the grader passed, or failed; a grader that gives no verdict may have done neither, or found fault in part."""
    ideal = right_answer(reference).expected
    expected = {name: value for name, value in values.items() if name in ideal}
    sections = _sections(text)
    if not expected or sections is None:
        return []
    draft = _draft(text, reference, expected)
    if draft is None:
        return []
    verdict = expected.get(CORE_DIAGNOSIS)
    kinds = {
        PASSED: verdict is not False,
        FAILED: verdict is False or (verdict is None and any(ideal[name] != expected[name] for name in expected)),
    }
    return [AnswerBase(kind, reference, draft, tuple(sections)) for kind, fits in kinds.items() if fits]


def _sections(text: str) -> list[tuple[str, str]] | None:
    """Split an answer into its sections as written; None if it begins otherwise, or has one twice."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        header = header_of(line)
        if header in KNOWN or (header in PLACES and header in line):
            parts.append((header, [line]))
        elif parts:
            parts[-1][1].append(line)
        elif line.strip():
            return None
    headers = [header for header, _ in parts]
    return [(header, "\n".join(lines)) for header, lines in parts] if parts and len(set(headers)) == len(headers) else None


def _draft(text: str, reference: Reference, expected: Mapping[str, bool]) -> Draft | None:
    prediction = parse_answer(text, reference.item)
    if prediction.parse_status is ParseStatus.FAILED or prediction.abstained or not prediction.differential:
        return None
    fields = prediction.fields or {}
    return Draft(
        prediction.differential,
        findings=_sentences(prediction.findings),
        rationale=_sentences(prediction.rationale),
        location=fields.get("location") or "",
        side=fields.get("side") or "",
        prose=True,
        expected=expected,
    )


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in SENTENCE_END.split(text) if part.strip())


@dataclass(frozen=True)
class AnswerBase(Base):
    """An answer of a model: `passed` or `failed`, with its sections as written (header and lines)."""

    sections: Sequence[tuple[str, str]] = field(default=())

    def edited(self, edit: Edit) -> Draft | None:
        """Return the answer after an edit; None if the edit is not for it, changes no criterion that it should, or cannot be sure of it."""
        if (edit.base == RIGHT) != (self.kind == PASSED):
            return None
        draft = edit.apply(self.draft, self.reference)
        if draft is None or (edit.name == "side" and not self._swapped_throughout(draft)):
            return None
        sentences = (*self.draft.findings, *self.draft.rationale)
        if edit.name == "sentences_reordered" and any(map(LEANS_ON_ANOTHER.match, sentences)):
            return None
        if edit.name == "negation" and any(map(DENIAL.search, sentences)):
            # a sentence that denies one thing may state another: it was left as it is
            draft = draft.opened("mentions_finding_", "argues_")
        changed = any(self.draft.expected[name] != value for name, value in draft.expected.items())
        return draft if changed or edit.neutral else None

    def text(self, draft: Draft) -> str:
        """Write this answer, or what an edit made of it: only sections that the edit changes are written anew."""
        before, after = (_contents(one, self.reference) for one in (self.draft, draft))
        written = [
            (header, text if before.get(header) == after.get(header) else write_section(header, after[header]))
            for header, text in self.sections
        ]
        present = {header for header, _ in self.sections}
        added = [
            (header, write_section(header, text)) for header, text in after.items() if header not in present and before.get(header) != text
        ]
        return "\n".join(text for _, text in (*written, *added))

    def _swapped_throughout(self, draft: Draft) -> bool:
        """Return True if every side was that of the lesion and is now the other: the left of a left-handed patient is not."""
        lesion = self.reference.gold.lesion
        before, after = ({word.lower() for word in SIDE_WORD.findall(self.text(one))} for one in (self.draft, draft))
        return lesion is None or (before == {lesion.side} and not after & before)


def _contents(draft: Draft, reference: Reference) -> dict[str, str]:
    return {**draft.sections(reference), "LOCATION": draft.location or "none", "SIDE": draft.side or "none"}


def plant_errors(
    items: Iterable[Item], gold: Mapping[str, Gold], *, vocabulary: Vocabulary, urgency: Urgency, patients: int
) -> list[PlantedAnswer]:
    """Plant errors in answers made from the references of a benchmark.

    Parameters
    ----------
    items : iterable of Item
        Items of the benchmark; only open items and dialogues with a reference are used.
    gold : mapping of str to Gold
        By item id.
    vocabulary : Vocabulary
        Siblings and names of diagnoses.
    urgency : Urgency
        Time-critical diagnoses.
    patients : int
        Answers per edit, each of another patient, at most.

    Returns
    -------
    list of PlantedAnswer
        For every edit the edited answers and, once per item, the right or wrong answers that they are made of. The choice of the items
        depends on their ids alone, so that adding a model changes no request, and a larger number only adds answers.
    """
    usable = [item for item in items if item.runner in GRADED_RUNNERS and item.item_id in gold]
    references = [Reference(item, gold[item.item_id], vocabulary, urgency) for item in sorted(usable, key=place_of)]
    written = [
        (row, kind, draft) for row in references for kind, draft in ((RIGHT, right_answer(row)), (WRONG, wrong_answer(row))) if draft
    ]
    return _plant_in([Base(kind, row, draft) for row, kind, draft in written], patients)


def place_of(item: Item) -> str:
    """Return the place of an item among those that errors are planted on: by a digest of its id."""
    return hashlib.sha256(item.item_id.encode()).hexdigest()


def _plant_in(bases: Sequence[Base], patients: int) -> list[PlantedAnswer]:
    """Make every edit of answers of different patients, those first whose core diagnosis it changes, and list what was edited."""
    rows: dict[tuple[str, str], PlantedAnswer] = {}
    for edit in EDITS:
        drafts = [(base, edited) for base in bases if (edited := base.edited(edit))]
        seen = set[str]()
        for base, edited in sorted(drafts, key=lambda row: not _changes_verdict(row[0].draft, row[1])):
            item = base.reference.item
            if item.patient_id in seen or len(seen) >= patients:
                continue
            # an unedited answer is numbered by the first edit that needs it
            row = _row(base.kind, "", base, base.draft, len(seen))
            known = rows.get((base.kind, item.item_id), row)
            rows[base.kind, item.item_id] = min(known, row, key=lambda one: one.number)
            rows[edit.name, item.item_id] = _row(edit.name, base.kind, base, edited, len(seen))
            seen.add(item.patient_id)
    return list(rows.values())


def _changes_verdict(base: Draft, edited: Draft) -> bool:
    """Return True if an edit changes the core diagnosis: such items are used first."""
    return base.expected.get(CORE_DIAGNOSIS) is True and edited.expected.get(CORE_DIAGNOSIS) is False


def _row(edit: str, kind: str, base: Base, draft: Draft, number: int) -> PlantedAnswer:
    item = base.reference.item
    return PlantedAnswer(
        item_id=item.item_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        edit=edit,
        base=kind,
        number=number,
        text=base.text(draft),
        expected=dict(draft.expected),
    )


def planted_responses(rows: Iterable[PlantedAnswer], items: Mapping[str, Item], patients: int) -> list[Response]:
    """Return planted answers as responses, which graders grade like those of a model.

    Parameters
    ----------
    rows : iterable of PlantedAnswer
        Of one benchmark.
    items : mapping of str to Item
        By item id.
    patients : int
        Answers per edit, at most.

    Returns
    -------
    list of Response
        Under the arm full; the edit stands in place of the strategy. Answers of models that were edited are not among them.
    """
    return [
        Response(
            item_id=row.item_id,
            case_id=items[row.item_id].case_id,
            patient_id=row.patient_id,
            benchmark=row.benchmark,
            arm=Arm.FULL,
            strategy=row.edit,
            model=PLANTED,
            revision=REVISION,
            repeat=0,
            request_id="",
            runner=items[row.item_id].runner,
            state=ResponseState.OK,
            text=row.text,
        )
        for row in rows
        if row.number < patients and row.edit not in (PASSED, FAILED)
    ]
