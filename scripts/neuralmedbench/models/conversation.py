"""The messages of a call: fixed turns, or the case's replies to a model that asks. Pictures are digests until a call is really made.

With the strategy `viewer` the model is shown the slices that it asks for. With the strategies `ask` and `workup` a matcher that knows only the
case answers the model. It compares words and nothing else, so that the same question gets the same reply on every machine, and a conversation can
be rebuilt from the model's answers alone; with an informant (`models.informant`), from these and its replies.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.models.informant import informed_questions
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.models.requests_of_model import within_budget
from neuralmedbench.records.examinations.inventory import RequestMatch, RequestOutcome
from neuralmedbench.records.examinations.matching import match_request
from neuralmedbench.records.fact_matching import matching_facts, matching_statements
from neuralmedbench.records.requests import (
    Fact,
    Inquiry,
    Request,
    RequestImage,
    RequestTurn,
    earlier_request,
    joined_words,
    with_earlier_answer,
)
from neuralmedbench.records.thoughts import THINKING
from neuralmedbench.records.views import FINAL, SliceView, Viewer, view_steps

NO_WORDS = "(no answer)"
"""Replaces an empty answer in the history of a dialogue; providers refuse empty messages."""


@dataclass(frozen=True)
class PromptMessage:
    """One message of a conversation, its pictures by path and digest; the rest as in `records.requests.RequestTurn`."""

    role: str
    text: str
    images: tuple[RequestImage, ...] = ()
    after: str = ""
    labels_after: bool = False

    @classmethod
    def of(cls, turn: RequestTurn) -> PromptMessage:
        """Return the user message of a turn."""
        return cls("user", turn.text, turn.images, turn.after, turn.labels_after)

    @property
    def words(self) -> str:
        """All its text, without the labels of the pictures."""
        return joined_words(self.text, self.after)


ViewSource = Callable[[SliceView], str]
"""Gives the digest of the picture of a view, which then lies at its path; empty if there is none."""


def stored_view(view: SliceView, root: Path = Path()) -> str:
    """Return the digest of the picture of a view that was cut before; empty if it was not. Nothing is cut."""
    path = root / view.path
    return sha256_of(path) if path.is_file() else ""


def next_messages(
    request: Request, answers: Sequence[str], max_images: int | None, views: ViewSource = stored_view, replies: Sequence[str] = ()
) -> tuple[PromptMessage, ...] | None:
    """Return the messages of the next call of a sample.

    Parameters
    ----------
    request : Request
        The request.
    answers : sequence of str
        The model's answers so far; those to `Request.earlier` come first.
    max_images : int or None
        The model's picture budget.
    views : callable
        Source of the slices that a model asks for; by default those that were cut before.
    replies : sequence of str
        What the informant replied, if a language model tells the facts; without any reply words decide.

    Returns
    -------
    tuple of PromptMessage or None
        System message (if any), user and assistant messages in turn, then the next user message; None after the final answer.
    """
    if first := len(request.earlier):
        if len(answers) < first:
            return next_messages(earlier_request(request), answers, max_images, views)
        request, answers = with_earlier_answer(request, shown_answer(answers[first - 1])), answers[first:]
    turns = within_budget(request.turns, max_images)
    if request.inquiry is not None:
        turns = _with_replies(turns, request.inquiry, answers, max_images, replies)
    if request.viewer is not None:
        turns = (*turns, *_viewer_replies(request.viewer, answers, max_images, views))
    if len(answers) >= len(turns):
        return None
    # the history: each turn with its answer, then the turn that is due
    messages = [PromptMessage("system", request.system)] if request.system else []
    for turn, answer in zip(turns, answers, strict=False):
        messages += [PromptMessage.of(turn), PromptMessage("assistant", answer or NO_WORDS)]
    return (*messages, PromptMessage.of(turns[len(answers)]))


def shown_answer(answer: str) -> str:
    """Return an earlier answer as a request shows it: without thoughts."""
    return THINKING.sub("", answer).strip()


def informant_messages(request: Request, answers: Sequence[str], replies: Sequence[str]) -> tuple[PromptMessage, ...] | None:
    """Return the messages of the informant's next call, after the model's answers to the request and its own replies; None if none is due."""
    inquiry = request.inquiry
    if inquiry is None or not inquiry.informant:
        return None
    asked = informed_questions(inquiry, questions_asked(inquiry, answers), replies)
    if (due := next((one for one in asked if one.facts is None), None)) is None:
        return None
    messages = [PromptMessage("system", inquiry.informant), PromptMessage("user", due.question)]
    for reply in due.replies:
        messages += [PromptMessage("assistant", reply or NO_WORDS), PromptMessage("user", inquiry.correction)]
    return tuple(messages)


def _with_replies(
    turns: tuple[RequestTurn, ...], inquiry: Inquiry, answers: Sequence[str], max_images: int | None, replies: Sequence[str]
) -> tuple[RequestTurn, ...]:
    """Append the reply to each of the model's questions, up to its first answer without one."""
    told = _work_up_replies(inquiry, answers) if inquiry.is_work_up else _question_replies(inquiry, answers, replies)
    return (*turns, *within_budget(told, max_images))


def _question_replies(inquiry: Inquiry, answers: Sequence[str], replies: Sequence[str] = ()) -> list[RequestTurn]:
    """Return the replies to the questions of a model (strategy `ask`)."""
    return [_respond(inquiry, facts, asked) for asked, facts in enumerate(facts_told(inquiry, answers, replies), start=1)]


def questions_asked(inquiry: Inquiry, answers: Sequence[str]) -> list[str]:
    """Return the questions of a model, up to its first answer without one, or to the budget."""
    questions = [question_of(answer, FINAL_CHOICE if inquiry.is_choice else FINAL) for answer in answers[: inquiry.max_questions]]
    return list(takewhile(bool, questions))


def _work_up_replies(inquiry: Inquiry, answers: Sequence[str]) -> list[RequestTurn]:
    """Return the replies to the requests of a model (strategy `workup`)."""
    turns: list[RequestTurn] = []
    for asked, step in enumerate(released(inquiry, answers), start=1):
        left = inquiry.max_questions - asked
        fact = inquiry.facts[step.place] if step.place is not None and not step.again else None
        said = inquiry.again if step.again else inquiry.unclear if step.outcome is RequestOutcome.UNCLEAR else inquiry.unknown
        closing = inquiry.closing if left <= 0 else inquiry.left.replace("{left}", str(left))
        turns.append(RequestTurn(text=f"{fact.text if fact else said}\n\n{closing}", images=fact.images if fact else ()))
    return turns


def _viewer_replies(viewer: Viewer, answers: Sequence[str], max_images: int | None, views: ViewSource) -> list[RequestTurn]:
    """Return the replies to the actions of a model (strategy `viewer`); `views` gives the pictures."""
    left = viewer.max_views if max_images is None else min(viewer.max_views, max_images)
    turns: list[RequestTurn] = []
    shown = 0
    for step in view_steps(viewer, answers, max_images):
        left -= step.cost
        said = viewer.wrong.replace("{reason}", step.reason) if step.mistake else ""
        if step.distance_mm is not None:
            said = viewer.measured.replace("{mm}", f"{step.distance_mm:.1f}")
        images = [
            RequestImage(path=view.path, sha256=views(view), label=f"View {number}: {view.label}", volume_sha256=view.scan.volume_sha256)
            for number, view in enumerate(step.views, start=shown + 1)
        ]
        shown += len(images)
        closing = viewer.closing if left <= 0 else viewer.left.replace("{left}", str(left))
        turns.append(RequestTurn(text="\n\n".join(filter(None, (said, closing))), images=tuple(images)))
    return turns


@dataclass(frozen=True)
class WorkUpStep:
    """One request of a work-up: what was asked for, and what came of it; `again` if it had been given before."""

    request: str
    outcome: RequestOutcome
    place: int | None = None
    again: bool = False


def released(inquiry: Inquiry, answers: Sequence[str]) -> list[WorkUpStep]:
    """Return what the requests of a work-up released, up to the first answer without one, or to the budget.

    Where the order is fixed, each answer brings the next examination, with or without a request.
    """
    held = inquiry.held
    steps: list[WorkUpStep] = []
    for number, answer in enumerate(answers[: inquiry.max_questions]):
        request = request_of(answer)
        if not request and not inquiry.fixed:
            break
        match = RequestMatch(RequestOutcome.GIVEN, number) if inquiry.fixed else match_request(request, held)
        steps.append(
            WorkUpStep(
                request, match.outcome, match.place, again=any(step.place == match.place for step in steps if step.place is not None)
            )
        )
    return steps


def load_messages(messages: Sequence[PromptMessage], root: Path, max_picture_px: int | None = None) -> tuple[Message, ...]:
    """Read the pictures of a conversation, scaled down to `max_picture_px`; DataError if one is absent or is not the picture of the prompt."""
    return tuple(
        Message(
            entry.role, entry.text, tuple(_picture(image, root, max_picture_px) for image in entry.images), entry.after, entry.labels_after
        )
        for entry in messages
    )


def sent_size(size: tuple[int, int], max_picture_px: int | None) -> tuple[int, int]:
    """Return the width and height of a picture as it is sent: its longest side is at most `max_picture_px`."""
    factor = min(1.0, (max_picture_px or max(size)) / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _scaled_down(png: bytes, max_picture_px: int) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        size = sent_size(picture.size, max_picture_px)
        if size == picture.size:
            return png
        smaller = io.BytesIO()
        picture.resize(size, Image.Resampling.LANCZOS).save(smaller, format="PNG")
    return smaller.getvalue()


def _picture(image: RequestImage, root: Path, max_picture_px: int | None) -> MessageImage:
    try:
        png = (root / image.path).read_bytes()
    except OSError as error:
        fault = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        message = f"{image.path}: the picture {fault}; run slices again"
        raise DataError(message) from None
    if hashlib.sha256(png).hexdigest() != image.sha256:
        message = f"{image.path}: not the picture that the prompt was made with; run slices, items and prompts again"
        raise DataError(message)
    return MessageImage(image.label, _scaled_down(png, max_picture_px) if max_picture_px else png, image.sha256)


QUESTION = re.compile(r"^[\s>*_#-]*QUESTION[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)
REQUEST = re.compile(r"^[\s>*_#-]*REQUEST[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)

FINAL_CHOICE = re.compile(r"^[\s>*_#-]*ANSWER[*_]*\s*:", re.IGNORECASE | re.MULTILINE)


def question_of(answer: str, final: re.Pattern[str] = FINAL) -> str:
    """Return the question in an answer; empty if there is none: the model gave its final answer or did not keep to the form."""
    return _last_asked(QUESTION, answer, final)


def request_of(answer: str) -> str:
    """Return the request for an examination in an answer; empty as in `question_of`."""
    return _last_asked(REQUEST, answer, FINAL)


def _last_asked(pattern: re.Pattern[str], answer: str, final: re.Pattern[str]) -> str:
    said = shown_answer(answer)
    asked = pattern.findall(said)
    return "" if final.search(said) or not asked else asked[-1].strip()


def _respond(inquiry: Inquiry, facts: Sequence[Fact], asked: int) -> RequestTurn:
    """Answer a question with facts of the case, and say how many questions are left."""
    reply = "\n".join(fact.text for fact in facts) or inquiry.unknown
    left = inquiry.max_questions - asked
    closing = inquiry.closing if left <= 0 else inquiry.left.replace("{left}", str(left))
    return RequestTurn(text=f"{reply}\n\n{closing}", images=tuple(image for fact in facts for image in fact.images))


def facts_told(inquiry: Inquiry, answers: Sequence[str], replies: Sequence[str] = ()) -> list[Sequence[Fact]]:
    """Return the facts with which the case answers each question of a model (none if it does not say), as far as an informant has replied."""
    questions = questions_asked(inquiry, answers)
    if inquiry.informant and replies:
        return [one.facts for one in informed_questions(inquiry, questions, replies) if one.facts is not None]
    return [(matching_statements if inquiry.is_choice else matching_facts)(question, inquiry.facts) for question in questions]
