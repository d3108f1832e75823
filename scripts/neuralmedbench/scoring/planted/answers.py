"""Choose the items of a benchmark on which errors are planted, and write the answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Arm, Gold, Item
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import PLANTED, PlantedAnswer
from neuralmedbench.records.urgency import Urgency
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.llm.grader_requests import scored_responses
from neuralmedbench.scoring.planted.edits import EDITS, RIGHT, WRONG, Draft, Reference, right_answer, wrong_answer
from neuralmedbench.scoring.rubric import CORE_DIAGNOSIS, GRADED_RUNNERS

REVISION = "1"
"""Of the edits: their words stand in the requests to graders, so a change of them is asked again."""


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
    references = [Reference(item, gold[item.item_id], vocabulary, urgency) for item in sorted(usable, key=_place)]
    bases = {
        (kind, reference.item.item_id): draft
        for reference in references
        for kind, draft in ((RIGHT, right_answer(reference)), (WRONG, wrong_answer(reference)))
        if draft is not None
    }
    rows: dict[tuple[str, str], PlantedAnswer] = {}
    for edit in EDITS:
        drafts = [
            (reference, base, edited)
            for reference in references
            if (base := bases.get((edit.base, reference.item.item_id))) and (edited := edit.apply(base, reference))
        ]
        seen = set[str]()
        for reference, base, edited in sorted(drafts, key=lambda row: not _changes_verdict(row[1], row[2])):
            item = reference.item
            if item.patient_id in seen or len(seen) >= patients:
                continue
            # an unedited answer is numbered by the first edit that needs it
            row = _row(edit.base, "", base, reference, len(seen))
            known = rows.get((edit.base, item.item_id), row)
            rows[edit.base, item.item_id] = min(known, row, key=lambda one: one.number)
            rows[edit.name, item.item_id] = _row(edit.name, edit.base, edited, reference, len(seen))
            seen.add(item.patient_id)
    return list(rows.values())


def _place(item: Item) -> str:
    return hashlib.sha256(item.item_id.encode()).hexdigest()


def _changes_verdict(base: Draft, edited: Draft) -> bool:
    """Return True if an edit changes the core diagnosis: such items are used first."""
    return base.expected.get(CORE_DIAGNOSIS) is True and edited.expected.get(CORE_DIAGNOSIS) is False


def _row(edit: str, base: str, draft: Draft, reference: Reference, number: int) -> PlantedAnswer:
    item = reference.item
    return PlantedAnswer(
        item_id=item.item_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        edit=edit,
        base=base,
        number=number,
        text=draft.text(reference),
        expected=dict(draft.expected),
    )


def answers_to_grade(
    path: Path, items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, *, planted: int | None
) -> list[Response]:
    """Read the answers that a grader judges: those of a model, or planted ones of so many patients per edit."""
    if planted is None:
        return scored_responses(read_records(path, Response), items, gold, vocabulary)
    return planted_responses(read_records(path, PlantedAnswer), items, planted)


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
        Under the arm full; the edit stands in place of the strategy.
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
        if row.number < patients
    ]
