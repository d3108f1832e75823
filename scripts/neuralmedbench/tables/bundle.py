"""The bundle of the case browser: every item with its reference and all responses to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from neuralmedbench.models.conversation import PromptMessage, next_messages, released
from neuralmedbench.records.bundle import BundleCandidate, BundleGrade, BundleImage, BundleResponse, BundleTurn, CaseBundle
from neuralmedbench.records.items import OPTION, Family, Gold, Item, ItemImage, ShownLesion
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response
from neuralmedbench.records.scores import Grade, Key, Score, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.checklist import may_be_checklist
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.parse import parse_under, plain_text
from neuralmedbench.scoring.workup import read_turn


@dataclass(frozen=True, kw_only=True)
class AskedOf:
    """What is known of the requests of a benchmark.

    Attributes
    ----------
    lesions : iterable of ShownLesion
        Visibility of the known lesion in each picture, for the picture's label, which no model sees.
    requests : iterable of Request
        Requests as sent, for the messages of dialogues.
    vocabulary : Vocabulary or None
        Names of diagnoses, by which the candidates of a work-up are compared with the reference; needed for work-ups alone.
    """

    lesions: Iterable[ShownLesion] = ()
    requests: Iterable[Request] = ()
    vocabulary: Vocabulary | None = None


NOTHING_KNOWN = AskedOf()


def bundle_cases(
    items: list[Item],
    gold: list[Gold],
    responses: list[Response],
    scores: list[Score],
    grades: list[Grade],
    *,
    known: AskedOf = NOTHING_KNOWN,
) -> list[CaseBundle]:
    """Combine items, references, responses, scores and grades of one benchmark.

    Parameters
    ----------
    items, gold, responses, scores, grades : list of record
        Of all models and graders. Scores and grades without a response are left out, as are grades that report no error.
    known : AskedOf
        Requests, vocabulary, and lesions on the pictures.

    Returns
    -------
    list of CaseBundle
        Sorted by item.
    """
    # index everything by item or by response
    reference = {row.item_id: row for row in gold}
    scored = {response_key(score): score for score in scores}
    dialogues = {(row.item_id, row.arm, row.strategy): row for row in known.requests if row.inquiry or len(row.turns) > 1}
    references = (
        {name: ReferenceAnswer.of(row, known.vocabulary) for name, row in reference.items()}
        if known.vocabulary and any(row.inquiry and row.inquiry.is_work_up for row in dialogues.values())
        else {}
    )
    graded = _grades(grades)
    asked = {item.item_id: item for item in items}
    answers: dict[str, list[BundleResponse]] = defaultdict(list)
    for response in sorted(responses, key=lambda response: (response.model, response.arm, response.strategy, response.repeat)):
        key, request = response_key(response), dialogues.get((response.item_id, response.arm, response.strategy))
        right = references.get(response.item_id)
        turns = turns_of(response, request, right)
        shown = _response(response, asked.get(response.item_id), scored.get(key), tuple(graded.get(key, ())), turns)
        if right and request and request.inquiry and request.inquiry.is_work_up and response.state not in MISSING_STATES:
            shown = replace(shown, candidates=_candidates(response.text, right))
        answers[response.item_id].append(shown)
    # then one bundle per item
    lesions = {(row.case_id, row.image_id): row for row in known.lesions}
    return [
        _bundle(item, reference.get(item.item_id), tuple(answers[item.item_id]), lesions)
        for item in sorted(items, key=lambda item: item.item_id)
    ]


def _grades(grades: list[Grade]) -> dict[Key, list[BundleGrade]]:
    """Return the grades of each response, by grader and criterion; equal grades share one object."""
    shown = dict[tuple[str, str, float | None, str], BundleGrade]()
    found: dict[Key, list[BundleGrade]] = defaultdict(list)
    for grade in sorted((grade for grade in grades if not _is_absent(grade)), key=lambda grade: (grade.grader, grade.criterion)):
        shown_as = grade.grader, grade.criterion, grade.value, grade.explanation
        if shown_as not in shown:
            shown[shown_as] = BundleGrade(grader=grade.grader, criterion=grade.criterion, value=grade.value, explanation=grade.explanation)
        found[response_key(grade)].append(shown[shown_as])
    return found


def _is_absent(grade: Grade) -> bool:
    return grade.criterion.startswith(ERROR_AXIS) and grade.value == 0


def _reply_text(message: PromptMessage, request: Request | None) -> str:
    """Return the words of a reply; views, which are pictures of no item, by their labels."""
    labels = [image.label for image in message.images] if request and request.viewer else []
    return "\n".join([*labels, message.words])


def turns_of(response: Response, request: Request | None, reference: ReferenceAnswer | None = None) -> tuple[BundleTurn, ...]:
    """Return the dialogue before the last answer: all answers but the last, each with the message that followed it.

    An interrupted dialogue keeps all its answers. A turn of a work-up has what was asked for, what came of it, and the candidates, which are
    compared with the reference.
    """
    # the last answer is shown by itself, unless the dialogue was interrupted
    came = response.turns if response.state in MISSING_STATES else response.turns[:-1]
    messages = None
    if request and came:
        own, replies = replace(request, earlier=()), response.informed
        # the last question has no reply if its informant failed
        messages = next_messages(own, came, None, replies=replies) or next_messages(own, came[:-1], None, replies=replies)
    sent = [message for message in messages or () if message.role == "user"][1 : len(came) + 1]
    turns = [
        BundleTurn(
            answer=answer,
            told=_reply_text(message, request) if message else "",
            images=tuple(image.sha256 for image in message.images) if message and not (request and request.viewer) else (),
        )
        for answer, message in zip_longest(came, sent)
    ]
    if request is None or request.inquiry is None or reference is None or not request.inquiry.is_work_up:
        return tuple(turns)
    facts = request.inquiry.facts
    for number, step in enumerate(released(request.inquiry, came)):
        given = "" if step.place is None else facts[step.place].name
        turns[number] = replace(turns[number], request=step.request, outcome="again" if step.again else str(step.outcome), given=given)
    return tuple(replace(turn, candidates=_candidates(turn.answer, reference)) for turn in turns)


def _candidates(answer: str, reference: ReferenceAnswer) -> tuple[BundleCandidate, ...]:
    read = read_turn(answer, None, reference)
    return tuple(
        BundleCandidate(name=one.name, probability=one.probability, right=right)
        for one, right in zip(read.candidates, read.right, strict=True)
    )


def _response(
    response: Response, item: Item | None, score: Score | None, grades: tuple[BundleGrade, ...], turns: tuple[BundleTurn, ...]
) -> BundleResponse:
    # an answer with a score was parsed before, and only a checklist holds more than its score
    worth_reading = score is None or may_be_checklist(plain_text(response.text))
    read = parse_under(response.text, item, response.arm) if item and worth_reading else None
    fields = (score.fields if score else read.fields if read else None) or {}
    return BundleResponse(
        model=response.model,
        arm=response.arm,
        repeat=response.repeat,
        state=str(response.state),
        text=response.text,
        strategy=response.strategy,
        differential=score.differential if score else read.differential if read else (),
        counted=score is not None,
        passed=score.passed if score else None,
        relation=score.relation if score else "",
        grades=grades,
        seen=read.seen if read else "",
        evidence=read.evidence if read else (),
        missing=read.missing if read else "",
        turns=turns,
        place=_place(fields.get("location", ""), fields.get("side", "")) if item and item.family is Family.LESION_RECOGNITION else "",
    )


def _place(location: str, side: str) -> str:
    return ", ".join(word for word in (location, side) if word)


def _bundle(
    item: Item, gold: Gold | None, responses: tuple[BundleResponse, ...], lesions: Mapping[tuple[str, str], ShownLesion]
) -> CaseBundle:
    return CaseBundle(
        item_id=item.item_id,
        case_id=item.case_id,
        patient_id=item.patient_id,
        benchmark=item.benchmark,
        family=str(item.family),
        level=str(item.level),
        runner=str(item.runner),
        question=item.question or "\n".join(turn.question for turn in item.turns),
        context="\n\n".join(part for part in (item.notes, item.record, *(turn.reveal for turn in item.turns)) if part),
        images=tuple(
            BundleImage(path=image.path, sha256=image.sha256, label=_label(image, lesions.get((item.case_id, image.image_id))))
            for image in item.images
        ),
        answer=gold.answer if gold else "",
        findings=gold.findings if gold else (),
        established=gold.established if gold else "",
        responses=responses,
        options=item.options,
        place=_place(gold.lesion.location, gold.lesion.side) if gold and gold.lesion else "",
        facts=tuple(fact for fact in (item.date, *item.tags) if fact),
    )


def _label(image: ItemImage, lesion: ShownLesion | None) -> str:
    parts = [
        f"option: {image.label}" if image.role == OPTION else "",
        image.sequence,
        image.plane,
        f"{image.window} window" if image.window else "",
    ]
    if image.tiles_mm:
        parts.append(f"{len(image.tiles_mm)} slices")
    elif image.position_mm is not None:
        parts.append(f"{image.position_mm:+.0f} mm")
    if lesion is not None and lesion.shown:
        parts.append(f"lesion {lesion.width_px:.0f} px" if lesion.width_px else "lesion")
    if image.oracle:
        parts.append("oracle")
    return ", ".join(part for part in parts if part)
