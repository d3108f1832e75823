"""The deterministic grader: judges main condition, core diagnosis and rubric criteria by words alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neuralmedbench.records.arm_changes import in_form
from neuralmedbench.records.items import DIAGNOSES, Criterion, Family, Gold, Item, Lesion, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, Grade, GradeState, ParseStatus, Prediction, text_digest
from neuralmedbench.records.thoughts import is_only_thoughts
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.lines import REFERENCE_KEY
from neuralmedbench.scoring.matching import (
    RIGHT,
    ReferenceAnswer,
    Relation,
    diagnosis_of_criterion,
    reference_rank,
    relation,
    says_no_lesion,
)
from neuralmedbench.scoring.other_languages import unread_criterion, unread_language, without_names
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.places import location_right, mentioned_places, side_right
from neuralmedbench.scoring.statements import contains_statement, prose, readable, sentences

SIGNALS = {
    "hyperintense": ("hyperintense", "hyperintensity", "hyperintensities", "bright", "high signal", "increased signal", "elevated signal"),
    "hypointense": ("hypointense", "hypointensity", "dark", "low signal", "decreased signal", "signal loss"),
    "isointense": ("isointense", "iso intense"),
    "hyperdense": ("hyperdense", "hyperdensity", "hyperattenuating", "dense", "high density"),
    "hypodense": ("hypodense", "hypodensity", "hypoattenuating", "low density"),
    "enhancing": ("enhancing", "enhancement", "enhances"),
    "restricted": ("restricted", "restriction", "restricts"),
}
"""Words for each signal behaviour of a lesion."""

SEQUENCE_WORDS = {
    "t1w": ("t1", "t1w"),
    "cet1w": ("contrast", "gadolinium", "post contrast", "t1c", "cet1w"),
    "t2w": ("t2", "t2w"),
    "dwi": ("dwi", "diffusion"),
}
GRADED_RUNNERS = frozenset({Runner.OPEN, Runner.DIALOGUE})
OUTSIDE = "the vocabulary does not have the reference"


def gradable(response: Response, item: Item) -> bool:
    """Return True if graders grade a response: an answered open item or dialogue; thoughts alone are no answer."""
    return (
        in_form(item, response.arm).runner in GRADED_RUNNERS and response.state is ResponseState.OK and not is_only_thoughts(response.text)
    )


def grade_with_rubric(
    responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, *, grader: str
) -> list[Grade]:
    """Grade the responses of one model deterministically.

    Parameters
    ----------
    responses : iterable of Response
        Answers of one model.
    items, gold : mapping
        By item id; an item without gold is not graded.
    vocabulary : Vocabulary
        Diagnoses and their synonyms.
    grader : str
        Name of the grader.

    Returns
    -------
    list of Grade
        `main_condition`, `core_diagnosis` and the criteria of the item's rubric, for every answered open or dialogue response; an answer
        that does not keep to the form earns nothing. What only a reader can judge has no grade: a free answer in other words than the
        reference, and a criterion that is a question. Free answers have no `main_condition`. What is in a language that cannot be read, and all
        answers to a reference outside the vocabulary, are `not_graded`.
    """
    references = {item_id: ReferenceAnswer.of(row, vocabulary) for item_id, row in gold.items()}
    rows = []
    for response in responses:
        item, reference = items[response.item_id], references.get(response.item_id)
        if reference is not None and gradable(response, item):
            rows += _grade_response(response, item, reference, grader)
    return rows


def _grade_response(response: Response, item: Item, reference: ReferenceAnswer, grader: str) -> list[Grade]:
    prediction = parse_answer(response.text, item)
    main, core, why = verdict(prediction, item, reference)
    rows: list[tuple[str, bool | None, float, str]] = [(MAIN_CONDITION, main, 1.0, why), (CORE_DIAGNOSIS, core, 1.0, why)]
    if is_outside(item, reference):
        rows = [(name, None, weight, OUTSIDE) for name, _, weight, _ in rows]
    elif not main and (language := unread_language(response.text, prediction, item, reference)):
        rows = [(name, None, weight, without_names(language)) for name, _, weight, _ in rows]
    if item.family is Family.QUESTION_ANSWERING:  # only a diagnosis has a main condition
        rows = [] if _needs_reader(prediction, core=core) else rows[1:]
    for criterion in reference.gold.rubric:
        if is_question(criterion):
            continue
        met = _meets_criterion(prediction, reference, criterion)
        unread = unread_criterion(response.text, prediction, item, reference, criterion, met=met)
        rows.append((criterion.criterion, None if unread else met, criterion.points, unread or criterion.text))
    return [
        make_grade(response, grader, name, value=float(value), weight=weight, explanation=why)
        if value is not None
        else make_grade(response, grader, name, value=None, weight=weight, explanation=f"not graded: {why}", missing=GradeState.NOT_GRADED)
        for name, value, weight, why in rows
    ]


def is_outside(item: Item, reference: ReferenceAnswer) -> bool:
    """Return True if an item asks for a diagnosis that the vocabulary does not have: words cannot judge its answers."""
    return item.runner in GRADED_RUNNERS and item.family in DIAGNOSES and reference.outside


def is_question(criterion: Criterion) -> bool:
    """Return True if a criterion is a question, which only a reader can answer."""
    return criterion.text.rstrip().endswith(("?", "？"))


def verdict(prediction: Prediction, item: Item, reference: ReferenceAnswer) -> tuple[bool, bool, str]:
    """Judge main condition and core diagnosis, and give the reason.

    Main condition: rank 1 is the reference or a wider or narrower term; of a lesion, the location is right. Core diagnosis: rank 1 is the
    reference or a narrower term; of a lesion, the side is right too. "No lesion" is right for both if there is none.

    Parameters
    ----------
    prediction : Prediction
        The answer as read.
    item : Item
        An open item or a dialogue.
    reference : ReferenceAnswer
        Its reference.

    Returns
    -------
    tuple of (bool, bool, str)
        Main condition, core diagnosis, reason.
    """
    if prediction.parse_status is ParseStatus.FAILED:
        return False, False, "the answer is not in the form that was asked for"
    if prediction.abstained:
        return False, False, "the answer declines to name one"
    if item.family is Family.LESION_RECOGNITION:
        return _lesion_verdict(prediction, reference)
    rank_1 = relation(prediction.differential[0], reference)
    return rank_1 in {*RIGHT, Relation.PARENT}, rank_1 in RIGHT, f"rank 1 against the reference: {rank_1}"


def _lesion_verdict(prediction: Prediction, reference: ReferenceAnswer) -> tuple[bool, bool, str]:
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


def _needs_reader(prediction: Prediction, *, core: bool) -> bool:
    """Return True if words alone cannot show that a free answer is wrong: it was read and differs from the reference."""
    return prediction.parse_status is not ParseStatus.FAILED and not prediction.abstained and not core


def _meets_criterion(prediction: Prediction, reference: ReferenceAnswer, criterion: Criterion) -> bool:
    """Return True if an answer meets a criterion (which is bad if its points are negative).

    The name begins with the kind: `states_side`, `states_location`, `names_signal_`, `considers_`, `must_not_`. Any other criterion is a
    statement (its text after the first colon) that findings or rationale must contain. A forbidden diagnosis counts on rank 1 only.
    """
    name = criterion.criterion
    statement = (criterion.text.partition(": ")[2] or criterion.text).rstrip(".")
    lesion = reference.gold.lesion
    if lesion and name.startswith(("states_side", "states_location", "names_signal_")):
        return _meets_lesion(prediction, reference, lesion, name)
    if name.startswith(("considers_", "must_not_")):
        # the statement is a diagnosis of its own, to be looked for in the differential
        diagnosis = diagnosis_of_criterion(statement, reference.vocabulary)
        if name.startswith("considers_"):
            return reference_rank(prediction.differential, diagnosis) is not None
        if diagnosis.entry.key != REFERENCE_KEY:  # otherwise `must_not_` forbids a statement, not a known diagnosis
            return reference_rank(prediction.differential[:1], diagnosis) is not None
    return contains_statement(f"{prediction.findings} {prediction.rationale}", statement)


def _meets_lesion(prediction: Prediction, reference: ReferenceAnswer, lesion: Lesion, name: str) -> bool:
    fields = prediction.fields or {}
    if name == "states_side":
        return side_right(fields.get("side", prose(prediction.findings)), lesion)
    # the field of the form where there is one, else the sentences of the findings
    if name == "states_location" and "location" in fields:
        return location_right(fields["location"], lesion, reference.vocabulary)
    if name == "states_location":
        place = reference.vocabulary.places.get(normal_form(lesion.location), lesion.location)
        # by sentence, because a denial ends the places of a text
        return any(place in mentioned_places(part, reference.vocabulary) for part in sentences(prediction.findings) if readable(part))
    sequence = name.removeprefix("names_signal_")
    behaviour = {key.lower(): value for key, value in lesion.behaviour.items()}.get(sequence, "")
    return _names_signal(f"{prediction.findings} {prediction.rationale}", sequence, behaviour)


def _names_signal(text: str, sequence: str, behaviour: str) -> bool:
    sequences = SEQUENCE_WORDS.get(sequence, (sequence,))
    signals = SIGNALS.get(behaviour, (behaviour,))
    parts = [f" {normal_form(part)} " for part in text.split(".") if readable(part)]
    return any(_contains_any(part, sequences) and (_contains_any(part, signals) or contains_statement(part, behaviour)) for part in parts)


def _contains_any(sentence: str, words: Iterable[str]) -> bool:
    return any(f" {normal_form(word)} " in sentence for word in words)


def make_grade(
    response: Response,
    grader: str,
    criterion: str,
    *,
    value: float | None,
    weight: float,
    explanation: str,
    missing: GradeState = GradeState.FAILED,
) -> Grade:
    """Build a grade of a response; without a value its state is `missing`."""
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
        state=missing if value is None else GradeState.OK,
    )
