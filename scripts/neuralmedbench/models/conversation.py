"""The messages of a call: fixed turns, or the case's replies to a model that asks. Pictures are digests until a call is really made.

With the strategy `viewer` the model is shown the slices that it asks for. With the strategies `ask` and `workup` a matcher that knows only the case answers the model. It compares words and nothing else, so that the
same question gets the same reply on every machine, and a conversation can be rebuilt from the model's answers alone.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.models.picture_budget import within_budget
from neuralmedbench.models.protocol import Message, MessageImage
from neuralmedbench.records.examinations import EvidenceKind, Examination, RequestMatch, RequestOutcome, match_request
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
from neuralmedbench.records.responses import THINKING
from neuralmedbench.records.views import SliceView, Viewer, view_steps
from neuralmedbench.records.vocabulary import normal_form

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
    request: Request, answers: Sequence[str], max_images: int | None, views: ViewSource = stored_view
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
        turns = _with_replies(turns, request.inquiry, answers, max_images)
    if request.viewer is not None:
        turns = (*turns, *viewer_replies(request.viewer, answers, max_images, views))
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


def _with_replies(
    turns: tuple[RequestTurn, ...], inquiry: Inquiry, answers: Sequence[str], max_images: int | None
) -> tuple[RequestTurn, ...]:
    """Append the reply to each of the model's questions, up to its first answer without one."""
    replies = work_up_replies if inquiry.is_work_up else question_replies
    return (*turns, *within_budget(replies(inquiry, answers), max_images))


def question_replies(inquiry: Inquiry, answers: Sequence[str]) -> list[RequestTurn]:
    """Return the replies to the questions of a model (strategy `ask`)."""
    return [respond(inquiry, question, asked) for asked, question in enumerate(questions_asked(inquiry, answers), start=1)]


def questions_asked(inquiry: Inquiry, answers: Sequence[str]) -> list[str]:
    """Return the questions of a model, up to its first answer without one, or to the budget."""
    questions = [question_of(answer, FINAL_CHOICE if inquiry.is_choice else FINAL) for answer in answers[: inquiry.max_questions]]
    return list(takewhile(bool, questions))


def work_up_replies(inquiry: Inquiry, answers: Sequence[str]) -> list[RequestTurn]:
    """Return the replies to the requests of a model (strategy `workup`)."""
    turns: list[RequestTurn] = []
    for asked, step in enumerate(released(inquiry, answers), start=1):
        left = inquiry.max_questions - asked
        fact = inquiry.facts[step.place] if step.place is not None and not step.again else None
        said = inquiry.again if step.again else inquiry.unclear if step.outcome is RequestOutcome.UNCLEAR else inquiry.unknown
        closing = inquiry.closing if left <= 0 else inquiry.left.replace("{left}", str(left))
        turns.append(RequestTurn(text=f"{fact.text if fact else said}\n\n{closing}", images=fact.images if fact else ()))
    return turns


def viewer_replies(viewer: Viewer, answers: Sequence[str], max_images: int | None, views: ViewSource) -> list[RequestTurn]:
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


def held_by(inquiry: Inquiry) -> list[Examination]:
    """Return the examinations that a work-up can release."""
    return [
        Examination(name=fact.name, kind=EvidenceKind(fact.kind), text=fact.text, sequence=fact.sequence, plane=fact.plane)
        for fact in inquiry.facts
    ]


def released(inquiry: Inquiry, answers: Sequence[str]) -> list[WorkUpStep]:
    """Return what the requests of a work-up released, up to the first answer without one, or to the budget.

    Where the order is fixed, each answer brings the next examination, with or without a request.
    """
    held = held_by(inquiry)
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


def load_messages(messages: Sequence[PromptMessage], root: Path) -> tuple[Message, ...]:
    """Read the pictures of a conversation; DataError if one is absent or is not the picture of the prompt."""
    return tuple(
        Message(entry.role, entry.text, tuple(_picture(image, root) for image in entry.images), entry.after, entry.labels_after)
        for entry in messages
    )


def _picture(image: RequestImage, root: Path) -> MessageImage:
    try:
        png = (root / image.path).read_bytes()
    except OSError as error:
        fault = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        message = f"{image.path}: the picture {fault}; run slices again"
        raise DataError(message) from None
    if hashlib.sha256(png).hexdigest() != image.sha256:
        message = f"{image.path}: not the picture that the prompt was made with; run slices, items and prompts again"
        raise DataError(message)
    return MessageImage(image.label, png, image.sha256)


QUESTION = re.compile(r"^[\s>*_#-]*QUESTION[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)
REQUEST = re.compile(r"^[\s>*_#-]*REQUEST[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)

FINAL = re.compile(r"^[\s>*_#-]*DIFFERENTIAL(?: DIAGNOS[IE]S)?[*_]*\s*:", re.IGNORECASE | re.MULTILINE)
FINAL_CHOICE = re.compile(r"^[\s>*_#-]*ANSWER[*_]*\s*:", re.IGNORECASE | re.MULTILINE)

MOST_FACTS = 3
"""Most facts in one reply."""

NEARLY = 0.6
"""A fact with at least this share of the best fact's weight is part of the reply."""

SHORTEST_STEM = 4

STOP_WORD_LIST = (
    "a an and any are as at be been by can case could did do does for from had has have he her him his history how i if in "
    "is it its know like me my no not of on or out patient patients please she show tell that the their them there they "
    "this to was were what when where which who whom why will with would you your"
)
STOP_WORDS = frozenset(STOP_WORD_LIST.split())
"""Words that say nothing about what a question asks for."""


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


def respond(inquiry: Inquiry, question: str, asked: int) -> RequestTurn:
    """Answer a question from the case, and say how many questions are left."""
    facts = facts_told(inquiry, question)
    reply = "\n".join(fact.text for fact in facts) or inquiry.unknown
    left = inquiry.max_questions - asked
    closing = inquiry.closing if left <= 0 else inquiry.left.replace("{left}", str(left))
    return RequestTurn(text=f"{reply}\n\n{closing}", images=tuple(image for fact in facts for image in fact.images))


def facts_told(inquiry: Inquiry, question: str) -> list[Fact]:
    """Return the facts with which the case answers a question; none if it does not say."""
    return (matching_statements if inquiry.is_choice else matching_facts)(question, inquiry.facts)


def matching_facts(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """Find the facts that answer a question.

    Notes
    -----
    A word of the question weighs log(1 + facts / facts that contain it), its inverse document frequency within the case; a fact weighs the
    sum of its shared words. Two words match if they are equal or the shorter one, of at least four letters, begins the longer one.
    """
    words = [_words(f"{fact.text} {fact.asked_by}") for fact in facts]
    matches = {word: [place for place, of_fact in enumerate(words) if _contains(of_fact, word)] for word in _words(question)}
    weights: dict[int, float] = defaultdict(float)
    for places in matches.values():
        for place in places:
            weights[place] += math.log1p(len(facts) / len(places))
    if not weights:
        return []
    best = max(weights.values())
    # heaviest first, ties in the order of the case; the reply itself keeps the order of the case
    chosen = [place for place, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])) if weight >= NEARLY * best]
    return [facts[place] for place in sorted(chosen[:MOST_FACTS])]


GENERAL = STOP_WORDS | frozenset(
    (
        "affected after also anything appear appearance been before body condition conditions current currently describe developed during else exam examination experience experienced "
        "experiencing feel felt finding findings first further gained get happened history information known lost made medical more much new notice noticed now "
        "other past physical present problem problems recent recently result results reveal revealed some something start started symptom symptoms take takes taking test than "
        "then these those time type use used you there"
    ).split()
)
"""Words that do not tell one short statement from another."""

SUBJECTS: tuple[tuple[str, str], ...] = (
    (
        "family|familial|relatives?|siblings?|parents?|hereditary|inherited",
        r"family|familial|mother|father|sisters?|brothers?|parents?|aunts?|uncles?|grand\w*|siblings?|cousins?",
    ),
    (r"medications?|medicines?|drugs?|pills?|prescri\w*", r"medications?|medicines?|drugs?|pills?|prescri\w*|taking|takes|mg"),
    (r"treat\w*|therap\w*|tried|remed\w*", r"treat\w*|therap\w*|tried|remed\w*"),
    (r"travel\w*|abroad|trips?", r"travel\w*|abroad|trips?|visited|immigrated|returned from"),
    (r"where|locat\w*|(?:which|what) parts?|distribution", r"locat\w*|localized|scattered|distribut\w*"),
    ("when|how long|duration|onset", r"ago|began|begins?|started|first|persist\w*|since|earlier|(?:days?|weeks?|months?)"),
    (
        r"medical (?:history|problems?|conditions?)|past history|comorbid\w*|chronic (?:illness\w*|diseases?|conditions?)|health problems?",
        r"medical (?:history|problems?|conditions?)|history of|comorbid\w*|otherwise healthy",
    ),
    (r"physical exam\w*|examination|looks? like", "exam|examination"),
)
"""Words by which a question names a subject, and words of the statements on it."""


ALTERNATIVES = re.compile(r"\b(?:or|and)\b|[,;?.]", re.IGNORECASE)


def matching_statements(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """Find the statements that answer a question (choice items, whose cases are lists of short statements).

    Notes
    -----
    Stricter than `matching_facts`: a wrong statement is worse than none. Each part of a question (`fever, chills or a cough`) is looked for by
    itself. A part on a subject (`SUBJECTS`), or after such a part, is answered from the statements on it that share a word with the rest of the part, or, if there is
    no such rest, from all of them. Any other part needs a statement that shares more than half of its words, or half and at least two. Of these
    statements, those that share most words are told, at most `MOST_FACTS`; none if more than that share as many and no subject was named.
    """
    statements = [normal_form(fact.text) for fact in facts]
    found: set[int] = set()
    subjects: Sequence[tuple[str, str]] = ()
    for part in map(normal_form, ALTERNATIVES.split(question)):
        subjects = [subject for subject in SUBJECTS if _has(subject[0], part)] or subjects
        found.update(_places_of_part(part, subjects, statements))
    return [facts[place] for place in sorted(found)[:MOST_FACTS]]


def _places_of_part(part: str, named: Sequence[tuple[str, str]], statements: Sequence[str]) -> list[int]:
    if not _words(part):
        return []
    for asked, _ in named:
        part = re.sub(rf"\b(?:{asked})\b", " ", part)
    words = {_singular(word) for word in _words(part) - GENERAL}
    shared = {
        place: sum(_contains({_singular(one) for one in _words(statement)}, word) for word in words)
        for place, statement in enumerate(statements)
        if not named or any(_has(told, statement) for _, told in named)
    }
    enough = (1 if words else 0) if named else max(1, len(words) // 2 + 1 if len(words) < 4 else (len(words) + 1) // 2)
    most = max(shared.values(), default=0)
    places = [place for place, common in shared.items() if common == most >= enough]
    return places if named or len(places) <= MOST_FACTS else []


def _has(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text) is not None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > SHORTEST_STEM and word.endswith("s") else word


def _words(text: str) -> set[str]:
    return {word for word in normal_form(text).split() if word not in STOP_WORDS and len(word) > 1}


def _contains(words: set[str], word: str) -> bool:
    return any(
        other == word or (min(len(other), len(word)) >= SHORTEST_STEM and (other.startswith(word) or word.startswith(other)))
        for other in words
    )
