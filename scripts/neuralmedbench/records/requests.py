"""Requests: the rendered prompts that models are sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

from neuralmedbench.records.examinations.inventory import EvidenceKind, Examination
from neuralmedbench.records.views import Viewer

SCHEMA_VERSION = 8

MOST_CANDIDATES = 4
"""Diagnoses that are stated with a probability in each message of a work-up, as `workup_candidates.j2` asks for them."""

LONG_PROMPT = 100_000
"""Characters of a prompt, about 25,000 tokens: more than the letters of years, and with its pictures more than many local models take."""


@dataclass(frozen=True, kw_only=True)
class RequestImage:
    """A picture in a request: the file, the digest of its bytes, and the label shown before it.

    `example` marks pictures of answered examples (other patients), `option` marks answer options, and `needed` pictures that the question
    needs together (`items.NEEDED`); picture budgets cut neither options nor needed pictures.
    `volume_sha256` is the scan of the picture (in a benchmark of pictures, the picture itself), which a passed audit must cover.
    """

    path: str
    sha256: str
    label: str
    example: bool = False
    option: bool = False
    volume_sha256: str = ""
    needed: bool = False


@dataclass(frozen=True, kw_only=True)
class RequestTurn:
    """One user message: text, its pictures, then the text `after` them.

    Each picture comes after its label, or before it with `labels_after`. The first `example_characters` characters of the text are answered
    examples of other patients.
    """

    text: str
    images: tuple[RequestImage, ...] = ()
    example_characters: int = 0
    after: str = ""
    labels_after: bool = False

    @property
    def words(self) -> str:
        """All its text, without the labels of the pictures."""
        return joined_words(self.text, self.after)


class OrderedMessage(Protocol):
    """What decides the order of a message's parts."""

    @property
    def after(self) -> str:
        """Text after the pictures."""

    @property
    def labels_after(self) -> bool:
        """True if each picture is shown before its label."""


def order_of_parts(message: OrderedMessage) -> dict[str, object]:
    """Return what a digest holds of the order of a message's parts: nothing for the usual order, so that older digests stay valid."""
    return {**({"after": message.after} if message.after else {}), **({"labels_after": True} if message.labels_after else {})}


def joined_words(text: str, after: str) -> str:
    """Join the text before the pictures of a message and the text after them."""
    return "\n\n".join(part for part in (text, after) if part) if after else text


STATEMENT = "statement"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One piece of information that a case gives on request; `asked_by` are words of a question for it that are not in its text.

    In a work-up it is an examination: `name`, `kind`, `sequence` and `plane` are those of `records.examinations.inventory.Examination`. The facts of a choice
    item have the kind `STATEMENT`.
    """

    text: str
    asked_by: str = ""
    images: tuple[RequestImage, ...] = ()
    name: str = ""
    kind: str = ""
    sequence: str = ""
    plane: str = ""


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A dialogue in which the model asks questions (strategy `ask`), or for examinations (`workup`).

    Attributes
    ----------
    facts : tuple of Fact
        All information on the case, in order.
    max_questions : int
        After so many questions the final answer is requested.
    unknown, left, closing : str
        Sentences of the case: for a question without an answer; on the number of questions left (`{left}`); to request the final answer.
    unclear, again : str
        In a work-up: for a request that names no examination, and for one that was given already. Empty under `ask`.
    fixed : bool
        In a work-up: True if the facts come one by one in their order, whatever is asked for.
    informant, correction : str
        Under `ask`, where a language model finds the facts that answer a question: its system message, with the numbered facts, and what it
        is told after a reply in no form. Empty: words decide (`records.fact_matching`).
    """

    facts: tuple[Fact, ...]
    max_questions: int
    unknown: str
    left: str
    closing: str
    unclear: str = ""
    again: str = ""
    fixed: bool = False
    informant: str = ""
    correction: str = ""

    @property
    def is_work_up(self) -> bool:
        """True under the strategy `workup`."""
        return bool(self.unclear)

    @property
    def held(self) -> tuple[Examination, ...]:
        """The examinations that a work-up can release."""
        return tuple(
            Examination(
                name=fact.name,
                kind=EvidenceKind(fact.kind),
                text=fact.text.removeprefix(f"{fact.name}:").lstrip(),  # without the name under which it is given
                sequence=fact.sequence,
                plane=fact.plane,
            )
            for fact in self.facts
        )

    @property
    def is_choice(self) -> bool:
        """True under the strategy `ask` if the answer is one of several options."""
        return any(fact.kind == STATEMENT for fact in self.facts)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One rendered prompt.

    Attributes
    ----------
    item_id, case_id, patient_id, benchmark : str
        Ids of the item, its case and patient, and the name of the benchmark.
    arm : str
        `full`, `no_image`, `no_text`, `shuffled_image`, `findings_disclosed`...
    strategy : str
        `direct`, `cot`, `few_shot`...
    request_id : str
        SHA-256 over the rendered system text, turns (pictures by digest) and answer schema; not unique per row.
    runner : str
        How the answer will be parsed.
    system : str
        System message.
    turns : tuple of RequestTurn
        One message, or the messages of a dialogue, each sent after the previous answer.
    answer_schema : str
        JSON schema of the (last) answer, or empty. Open items, and structured items in stages, request the same fields in words.
    samples : int
        Number of answers; `repeat` counts from 0.
    words_cut : int
        Number of words of the case removed by the benchmark's text budget.
    inquiry : Inquiry or None
        Under the strategy `ask`: the answers of the case. `turns` is then the first message only.
    layout : str
        Input layout of a family of models (`config/layouts/`), to which alone it is sent; empty for the layout `common`.
    viewer : Viewer or None
        Under the strategy `viewer`: the scans that the model can look through. `turns` is then the first message only.
    earlier : tuple of RequestTurn
        Messages of the arm `full`, if the model's answer to (the last of) them is shown in this request: in place of `EARLIER` in its text.
    """

    item_id: str
    case_id: str
    patient_id: str
    benchmark: str
    arm: str
    strategy: str
    request_id: str
    runner: str
    system: str
    turns: tuple[RequestTurn, ...]
    answer_schema: str
    samples: int
    words_cut: int = 0
    inquiry: Inquiry | None = None
    layout: str = ""
    earlier: tuple[RequestTurn, ...] = ()
    viewer: Viewer | None = None

    @property
    def characters(self) -> int:
        """Characters of its text, without the labels of the pictures."""
        return len(self.system) + sum(len(turn.words) for turn in self.turns)

    @property
    def most_calls(self) -> int:
        """Most calls of one of its samples, without those to `earlier`: the model may decide how often it asks."""
        if self.viewer is not None:
            return self.viewer.max_views + 1
        return self.inquiry.max_questions + 1 if self.inquiry is not None else len(self.turns)

    @property
    def asks_back(self) -> bool:
        """True if the model decides what it is sent next."""
        return self.inquiry is not None or self.viewer is not None


def long_prompt_line(lengths: Collection[int], what: str) -> str:
    """Say how many texts are longer than `LONG_PROMPT`; empty if none is.

    `lengths`: characters of each. `what`: what they are, such as `prompts`.

    Examples
    --------
    >>> long_prompt_line([900, 120_000], "prompts")
    '1 of 2 prompts have more than 100,000 characters (the longest 120,000): take out the notes that are none, or set `max_case_words`'
    """
    long = [length for length in lengths if length > LONG_PROMPT]
    if not long:
        return ""
    return (
        f"{len(long)} of {len(lengths)} {what} have more than {LONG_PROMPT:,} characters (the longest {max(long):,}):"
        " take out the notes that are none, or set `max_case_words`"
    )


EARLIER = "{earlier_answer}"
"""Place in a request where the model's own earlier answer is shown."""


def earlier_request(request: Request) -> Request:
    """Return the request of the arm `full` whose answer another one shows."""
    return replace(request, arm="full", turns=request.earlier, earlier=())


def with_earlier_answer(request: Request, answer: str) -> Request:
    """Return a request with the earlier answer in its place."""
    turns = tuple(
        replace(turn, text=turn.text.replace(EARLIER, answer, 1), after=turn.after.replace(EARLIER, answer, 1)) for turn in request.turns
    )
    return replace(request, turns=turns, earlier=())
