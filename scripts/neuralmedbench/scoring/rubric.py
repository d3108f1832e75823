"""The deterministic grader: main condition, core diagnosis and the criteria of an item's rubric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.keys import text_digest
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState, ParseStatus, Prediction
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.criteria import meets
from neuralmedbench.scoring.matching import RIGHT, Reference, Relation, location_right, relation, says_no_lesion, side_right
from neuralmedbench.scoring.parse import parse_answer

MAIN_CONDITION = "main_condition"
CORE_DIAGNOSIS = "core_diagnosis"
GRADED_RUNNERS = frozenset({Runner.OPEN, Runner.DIALOGUE})


def gradable(response: Response, item: Item) -> bool:
    """Whether graders look at a response: open items and dialogues that were answered."""
    return item.runner in GRADED_RUNNERS and response.state is ResponseState.OK


def grade_with_rubric(
    responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, *, grader: str
) -> list[Grade]:
    """Grade the responses of one model without asking a model.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id; an item without gold is not graded.
    vocabulary : Vocabulary
        What counts as the same diagnosis.
    grader : str
        Name of the grader.

    Returns
    -------
    list of Grade
        `main_condition`, `core_diagnosis` and the criteria of the item's rubric, for every open or dialogue response that
        was answered; an answer that is not in the form earns nothing. What only a reader can judge has no grade: a free answer to a question
        that is not the reference in the same words, and a criterion that asks a question. Free answers have no `main_condition`.
    """
    references = {item_id: Reference.of(row, vocabulary) for item_id, row in gold.items()}
    rows = []
    for response in responses:
        item, reference = items[response.item_id], references.get(response.item_id)
        if reference is not None and gradable(response, item):
            rows += _grade(response, item, reference, grader)
    return rows


def _grade(response: Response, item: Item, reference: Reference, grader: str) -> list[Grade]:
    prediction = parse_answer(response.text, item)
    main, core, why = verdict(prediction, item, reference)
    rows = [(MAIN_CONDITION, main, 1.0, why), (CORE_DIAGNOSIS, core, 1.0, why)]
    if item.family is Family.QUESTION_ANSWERING:  # a main condition is one of a diagnosis
        rows = [] if _needs_reader(prediction, core=core) else rows[1:]
    for criterion in reference.gold.rubric:
        if criterion.text.rstrip().endswith(("?", "？")):
            continue
        rows.append((criterion.criterion, meets(prediction, reference, criterion), criterion.points, criterion.text))
    return [grade_row(response, grader, name, value=float(value), weight=weight, explanation=why) for name, value, weight, why in rows]


def _needs_reader(prediction: Prediction, *, core: bool) -> bool:
    """Whether words alone cannot tell that a free answer is wrong: it was read, and says something else or the same in other words."""
    return prediction.parse_status is not ParseStatus.FAILED and not prediction.abstained and not core


def grade_row(response: Response, grader: str, criterion: str, *, value: float | None, weight: float, explanation: str) -> Grade:
    """Make a grade of a response; a grade without a value has failed."""
    return Grade(
        item_id=response.item_id,
        benchmark=response.benchmark,
        arm=response.arm,
        strategy=response.strategy,
        model=response.model,
        revision=response.revision,
        repeat=response.repeat,
        text_sha256=text_digest(response.text),
        grader=grader,
        criterion=criterion,
        value=value,
        weight=weight,
        explanation=explanation,
        state=GradeState.FAILED if value is None else GradeState.OK,
    )


def verdict(prediction: Prediction, item: Item, reference: Reference) -> tuple[bool, bool, str]:
    """Judge main condition and core diagnosis, and say why.

    Parameters
    ----------
    prediction : Prediction
        The answer as read.
    item : Item
        Its family decides what is compared.
    reference : Reference
        The right answer.

    Returns
    -------
    main_condition, core_diagnosis : bool
        Diagnosis: rank 1 is the reference, a wider or a narrower term; and: it is the reference or a narrower term.
        Lesion: a lesion in the right place; and: on the right side too. Both: no lesion where there is none.
    why : str
        One sentence.
    """
    if prediction.parse_status is ParseStatus.FAILED:
        return False, False, "the answer is not in the form that was asked for"
    if prediction.abstained:
        return False, False, "the answer declines to name one"
    if item.family is Family.LESION_RECOGNITION:
        return _lesion_verdict(prediction, reference)
    found = relation(prediction.differential[0], reference)
    return found in {*RIGHT, Relation.PARENT}, found in RIGHT, f"rank 1 against the reference: {found}"


def _lesion_verdict(prediction: Prediction, reference: Reference) -> tuple[bool, bool, str]:
    fields = prediction.fields or {}
    none_said = says_no_lesion(fields.get("lesion", ""), reference.vocabulary)
    lesion = reference.gold.lesion
    if lesion is None:
        return none_said, none_said, "there is no lesion" if none_said else "there is no lesion, the answer names one"
    if none_said:
        return False, False, "there is a lesion, the answer names none"
    place = location_right(fields.get("location", ""), lesion, reference.vocabulary)
    side = side_right(fields.get("side", ""), lesion)
    return place, place and side, f"location {'right' if place else 'wrong'}, side {'right' if side else 'wrong'}"
