"""Answers of readers: the form of a question, the export of a page, and the import of exports as texts in the format of the prompt."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from neuralmedbench.errors import RatingError
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.ratings.answering.work_ups import (
    AskedExamination,
    StatedDiagnosis,
    candidates_text,
    problem_of_asking,
    problem_of_stated,
)
from neuralmedbench.ratings.exports import Digest, Pseudonym, Rater, StratumKey, StrictModel, read_file
from neuralmedbench.ratings.imports import KEY_FILE, checked_entries, packet_of
from neuralmedbench.records.checklist import SECTIONS, with_places
from neuralmedbench.records.items import DIAGNOSES, Family, Item, Runner, Strategy
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import MOST_CANDIDATES, Inquiry, Request

CONFIDENCE = "CONFIDENCE"
SHORT_DIFFERENTIAL = ("DIFFERENTIAL", "FINDINGS", "RATIONALE", CONFIDENCE)
SHORT_LESION = ("LESION", "LOCATION", "SIDE", "FINDINGS", CONFIDENCE)
ANSWER = ("ANSWER", CONFIDENCE)

NAMING = frozenset({"DIFFERENTIAL", "LESION", "ANSWER"})
"""Sections that name a diagnosis or finding: an answered form fills in one of them; the alternative is "cannot tell"."""

CANDIDATES = {"DIFFERENTIAL": 5, "LESION": 1}
"""Sections with candidates, and the largest number of candidates in each."""

SIDES = ("left", "right", "bilateral", "midline", "none")

LONGEST = 10_000
"""Largest number of characters in a field."""


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """The form of one answer: its sections in order or the labels of its fields, its options, and whether candidates come with evidence.

    `inquiry` is that of a work-up, every message of which states diagnoses, and whose last one is answered in this form. None among the labels of a field means "cannot tell"; `confidence` has no labels, because it is a number.
    """

    sections: tuple[str, ...] = ()
    evidence: bool = False
    options: tuple[str, ...] = ()
    fields: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    inquiry: Inquiry | None = None

    def shown(self) -> dict[str, Any]:
        """Return the form as the page reads it."""
        shown: dict[str, Any] = {
            "sections": list(self.sections),
            "evidence": self.evidence,
            "options": [[letter, text] for letter, text in zip(LETTERS, self.options, strict=False)],
            "fields": [[name, list(labels)] for name, labels in self.fields.items()],
        }
        return shown | ({"stated": MOST_CANDIDATES} if self.inquiry else {})


class FilledCandidate(StrictModel):
    """A diagnosis or a type of lesion with its evidence."""

    name: str = Field(min_length=1, max_length=300)
    speaks_for: str = Field("", alias="for", max_length=LONGEST)
    against: str = Field("", max_length=LONGEST)


class FilledForm(StrictModel):
    """Content of a form: text by section and candidates, or the letter of an option, or the labels of fields."""

    texts: dict[str, str] = Field(default_factory=dict)
    candidates: list[FilledCandidate] = Field(default_factory=list)
    choice: str = ""
    fields: dict[str, str | None] = Field(default_factory=dict)
    confidence: float | None = Field(None, ge=0, le=1)


class FilledTurn(StrictModel):
    """The answer to one message. `locked`: the reader then saw a later message, or a later question on the case.

    In a work-up it states diagnoses, and has the status `asked` if it asks for an examination.
    """

    status: Literal["open", "answered", "cannot_tell", "asked"]
    locked: bool
    answer: FilledForm
    stated: list[StatedDiagnosis] = Field(default_factory=list)
    asked: AskedExamination | None = None
    seconds_active: float = Field(ge=0, le=86_400)


class AnsweredItem(StrictModel):
    """One question, by its opaque id, with the answers of one reader."""

    item_id: str
    position: int = Field(ge=1)
    turns: list[FilledTurn] = Field(min_length=1)


class AnswerExport(StrictModel):
    """One export of a reader's page."""

    schema_name: Literal["neuralmedbench.answers/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rater: Rater
    started: str
    exported: str
    complete: bool
    items: list[AnsweredItem]


class AskedItem(StrictModel):
    """The question of an opaque id: the item, the prompt that was shown, and the probability of its draw from its stratum."""

    item_id: str
    benchmark: str
    request_id: Digest
    stratum: str
    probability: float = Field(gt=0, le=1)


class ReaderKey(StrictModel):
    """One reader's packet; `packet_sha256` is the digest of its content, `order` the order of the questions."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, AskedItem]
    order: list[str]


class ReaderRoundKey(StrictModel):
    """`key.json` of a reader round: it never leaves this machine and never goes to a reader."""

    schema_name: Literal["neuralmedbench.answers_key/1"] = Field(alias="schema")
    round_id: str
    seed: int
    secret: str
    strata: dict[str, StratumKey]
    packets: list[ReaderKey]
    strategy: Literal[Strategy.DIRECT, Strategy.WORKUP] = Strategy.DIRECT


def forms_of(item: Item, request: Request) -> tuple[AnswerForm, ...]:
    """Return the form in which each message of a request is answered.

    Parameters
    ----------
    item : Item
        The question.
    request : Request
        The request under arm `full`, strategy `direct` or `workup`.

    Returns
    -------
    tuple of AnswerForm
        One per message; a single one for a work-up.

    Raises
    ------
    RatingError
        If the prompt asks for other sections or for another order: the form would then answer another prompt.
    """
    # earlier turns of a dialogue ask for a short differential, only the last one for the item's own form
    last = replace(_form(item, request.answer_schema), inquiry=request.inquiry)
    rounds = len(request.turns) - 1
    forms = (*(AnswerForm(sections=SHORT_DIFFERENTIAL) for _ in range(rounds)), last)
    for form, turn in zip(forms, request.turns, strict=True):
        # positions of the sections and fields in the prompt, which must have all of them in this order
        asked = [turn.text.rfind(f"\n{name}:") for name in form.sections]
        asked += [turn.text.rfind(f'\n"{name}":') for name in form.fields]
        if -1 in asked or asked != sorted(asked):
            message = f"{request.item_id}: its prompt does not ask for {', '.join((*form.sections, *form.fields))} in this order; a page cannot ask it"
            raise RatingError(message)
    return forms


def _form(item: Item, schema: str) -> AnswerForm:
    """Return the form of the only answer, or of the last one of a dialogue."""
    if item.runner is Runner.CHOICE:
        return AnswerForm(sections=ANSWER, options=item.options)
    if item.runner is Runner.STRUCTURED:
        # labels come from the JSON schema of the answer; a page offers them as choices
        asked = json.loads(schema or item.answer_schema)
        fields = {name: tuple(rule.get("enum", ())) for name, rule in asked["properties"].items()}
        if unlabelled := [name for name, labels in fields.items() if not labels and name != CONFIDENCE.lower()]:
            message = f"{item.item_id}: the field {unlabelled[0]} of its schema has no list of labels; a page cannot ask it"
            raise RatingError(message)
        return AnswerForm(fields=fields)
    if sections := _checklist(schema):
        return AnswerForm(sections=sections, evidence=True)
    if item.runner is Runner.DIALOGUE or item.family in DIAGNOSES:
        return AnswerForm(sections=SHORT_DIFFERENTIAL)
    return AnswerForm(sections=SHORT_LESION if item.family is Family.LESION_RECOGNITION else ANSWER)


def _checklist(schema: str) -> tuple[str, ...]:
    # a schema with the keys of a checklist asks for that checklist
    keys = tuple(name.upper() for name in json.loads(schema)["properties"]) if schema else ()
    return keys if keys in {*SECTIONS.values(), *map(with_places, SECTIONS.values())} else ()


NOT_STATED = "not stated"
"""Text of a section that a reader left empty; "nothing" or "none" would be statements."""

CANNOT_TELL = "cannot tell"
NO_LETTER = "none, I cannot tell"
EVIDENCE_LABEL = re.compile(r"\b(for|against)\s*[:：]", re.IGNORECASE)

EXPLAINS = re.compile(r"\s*[:：]\s+|\s+[-–—]\s+")
"""Signs after which the parser expects an explanation; in a reader's diagnosis they are part of the name."""

OPEN, STATUS_CANNOT_TELL, ASKED = "open", "cannot_tell", "asked"
NamedExport = tuple[str, AnswerExport]
Forms = Mapping[str, tuple[AnswerForm, ...]]


def read_exports(folder: Path, key: ReaderRoundKey, forms: Forms) -> list[NamedExport]:
    """Read the exports of the readers of a round.

    Parameters
    ----------
    folder : Path
        `data/ratings/<round>/` with the key and the JSON exports; tables in it are for people and are not read.
    key : ReaderRoundKey
        Key of the round.
    forms : mapping of str to sequence of AnswerForm
        Current forms by item id.

    Returns
    -------
    list of (str, AnswerExport)
        One per reader with the name of its file: the complete export, or the progress file that was saved last.

    Raises
    ------
    RatingError
        If there is no export, a file belongs to another packet or reader, names an unknown or repeated item, has content that its form
        does not allow, or changes a locked answer, or a reader has two complete exports.
    """
    packets = {packet.packet_id: packet for packet in key.packets}
    by_reader: dict[str, list[NamedExport]] = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        if path.name != KEY_FILE:
            export = read_file(path, AnswerExport)
            _check(path.name, export, packets, key.round_id, forms)
            by_reader[export.rater.id].append((path.name, export))
    if not by_reader:
        message = f"{folder.name}: there is no export; put the JSON files that the readers returned into its folder"
        raise RatingError(message)
    return [_choose_export(rows) for _, rows in sorted(by_reader.items())]


def _check(name: str, export: AnswerExport, packets: Mapping[str, ReaderKey], round_id: str, forms: Forms) -> None:
    packet = packet_of(name, export, packets, round_id)
    for where, item in checked_entries(name, export.items, packet.items):
        if problem := _problem(item, forms[packet.items[item.item_id].item_id]):
            message = f"{where}: {problem}"
            raise RatingError(message)
    # items that are absent from the export count as unfinished too
    unfinished = len(packet.items) - sum(_is_finished(item) for item in export.items)
    if export.complete and unfinished:
        message = f"{name}: it is marked as complete, but {unfinished} questions are not answered"
        raise RatingError(message)


def _is_finished(item: AnsweredItem) -> bool:
    return all(turn.status != OPEN for turn in item.turns) and item.turns[-1].status != ASKED


def _problem(item: AnsweredItem, forms: tuple[AnswerForm, ...]) -> str:
    if inquiry := forms[0].inquiry:
        if problem := problem_of_asking(inquiry, [turn.asked for turn in item.turns]):
            return problem
        forms = forms * len(item.turns)
    if len(item.turns) != len(forms):
        return f"{len(item.turns)} answers, the question has {len(forms)} messages"
    for number, (form, turn) in enumerate(zip(forms, item.turns, strict=True), start=1):
        # a turn is locked when the next one is shown, so locks run from the first turn on
        if turn.status == OPEN and turn.locked:
            return f"message {number} is locked without an answer"
        if number > 1 and turn.status != OPEN and not item.turns[number - 2].locked:
            return f"message {number} is answered, although the answer to message {number - 1} is not locked"
        if turn.status != OPEN and (problem := _problem_of_turn(form, turn)):
            return f"message {number}: {problem}" if len(forms) > 1 else problem
    return ""


def _problem_of_turn(form: AnswerForm, turn: FilledTurn) -> str:
    if (turn.status == ASKED) is not (turn.asked is not None) or (turn.asked and not form.inquiry):
        return "a request that the question does not take, or a status that does not fit it"
    if turn.stated and not form.inquiry:
        return "diagnoses with probabilities, which the question does not ask for"
    if form.inquiry and (problem := problem_of_stated(turn.stated, needed=_is_answered(turn))):
        return problem
    if turn.asked:
        return "an answer beside a request" if turn.answer != FilledForm() else ""
    return problem_of(form, turn.answer, answered=_is_answered(turn))


def problem_of(form: AnswerForm, filled: FilledForm, *, answered: bool) -> str:
    """Return the first problem of a filled form, without quoting its text; empty if it is valid. `answered` is False for "cannot tell"."""
    return next(_problems(form, filled, answered=answered), "")


def _problems(form: AnswerForm, filled: FilledForm, *, answered: bool) -> Iterator[str]:
    naming = next((name for name in form.sections if name in NAMING), "")
    # a reader who cannot tell names nothing: no candidate, letter, field or confidence
    most = CANDIDATES.get(naming, 0) if answered else 0
    without_words = {*CANDIDATES, CONFIDENCE, *(() if answered and not form.options else ("ANSWER",))}
    letters = LETTERS[: len(form.options)] if answered else ""
    # each problem is reported without the reader's words
    if len(filled.candidates) > most:
        yield f"{len(filled.candidates)} diagnoses, at most {most} are asked for"
    if not all(_line(one.name) and (form.evidence or not (one.speaks_for or one.against)) for one in filled.candidates):
        yield "a diagnosis without a name, or with evidence that is not asked for"
    if set(filled.texts) - (set(form.sections) - without_words):
        yield "a section that the question does not ask for"
    if filled.texts.get("SIDE", "") not in ("", *SIDES):
        yield f"a side that is none of {', '.join(SIDES)}"
    if filled.choice and (len(filled.choice) > 1 or filled.choice not in letters):
        yield f"an option that is not there; the options are {' '.join(letters) or 'none'}"
    if set(filled.fields) - {name for name, labels in form.fields.items() if labels and answered}:
        yield "a field that the question does not ask for"
    elif any(label not in form.fields[name] for name, label in filled.fields.items()):
        yield "a label that the field does not offer"
    if filled.confidence is not None and not answered:
        yield "a confidence, although the reader cannot tell"
    if answered and not (filled.candidates or filled.choice or _line(filled.texts.get("ANSWER", "")) or any(filled.fields.values())):
        yield "its status is answered, but it names nothing"


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_answered(turn: FilledTurn) -> bool:
    return turn.status != STATUS_CANNOT_TELL


def _choose_export(rows: Sequence[NamedExport]) -> NamedExport:
    """Choose the valid export of a reader; no later export may change an answer that an earlier one has locked."""
    # a progress file and the complete export may have the same time in seconds
    ordered = sorted(rows, key=lambda row: (row[1].exported, row[1].complete, row[0]))
    # every pair, because progress files may come from several sittings
    for earlier, later in combinations(ordered, 2):
        _check_locked(earlier, later)
    complete = [row for row in ordered if row[1].complete]
    if len(complete) > 1:
        message = f"{complete[0][0]} and {complete[1][0]}: two complete exports of one reader; keep the one that counts"
        raise RatingError(message)
    return complete[0] if complete else ordered[-1]


def _check_locked(earlier: NamedExport, later: NamedExport) -> None:
    # status and answer of a locked turn must be the same in all later exports; times may grow
    locked = dict(_locked(earlier[1]))
    for number, item in enumerate(later[1].items, start=1):
        for place, turn in enumerate(item.turns, start=1):
            before = locked.get((item.item_id, place))
            if before and (not turn.locked or (turn.status, turn.answer) != (before.status, before.answer)):
                message = f"{later[0]}, entry {number}: the answer to message {place} was locked in {earlier[0]} and has changed since"
                raise RatingError(message)


def _locked(export: AnswerExport) -> Iterator[tuple[tuple[str, int], FilledTurn]]:
    for item in export.items:
        yield from (((item.item_id, place), turn) for place, turn in enumerate(item.turns, start=1) if turn.locked)


def given_answers(named: NamedExport, packet: ReaderKey, forms: Forms) -> dict[str, list[GivenAnswer]]:
    """Return the finished answers of a reader in the format of their prompts, by benchmark; unfinished ones are left out."""
    name, export = named
    given: dict[str, list[GivenAnswer]] = defaultdict(list)
    for number, item in enumerate(export.items, start=1):
        asked = packet.items[item.item_id]
        # a dialogue is imported only when every turn is answered
        if not _is_finished(item):
            continue
        of_item = forms[asked.item_id]
        of_turns = of_item * len(item.turns) if of_item[0].inquiry else of_item
        texts = [_message(form, turn) for form, turn in zip(of_turns, item.turns, strict=True)]
        given[asked.benchmark].append(
            GivenAnswer(
                where=f"{name}, entry {number}",
                item=asked.item_id,
                sample=0,
                turns=tuple(texts),
                strategy=Strategy.WORKUP if of_item[0].inquiry else Strategy.DIRECT,
                seconds=tuple(turn.seconds_active for turn in item.turns),
            )
        )
    return given


def _message(form: AnswerForm, turn: FilledTurn) -> str:
    """Return a reader's message in the format of the prompt; in a work-up with the stated diagnoses before the request or the final answer."""
    stated = candidates_text([(_name(one.name), one.probability) for one in turn.stated])
    said = f"REQUEST: {_line(turn.asked.request)}" if turn.asked else answer_text(form, turn.answer, answered=_is_answered(turn))
    return "\n".join(filter(None, (stated, said)))


def answer_text(form: AnswerForm, filled: FilledForm, *, answered: bool) -> str:
    """Return an answer in the format of the prompt; a reader who cannot tell gets the words that count as an abstention.

    Line breaks become spaces, bars in evidence become slashes, and characters that would end the name of a diagnosis are replaced; the rest
    of the text is unchanged. A choice question has no letter for an abstention.
    """
    # structured items: one JSON object, as the schema asks; None means `cannot tell`
    if form.fields:
        stated = {name: (filled.fields.get(name) if labels else filled.confidence) for name, labels in form.fields.items()}
        return json.dumps(stated, ensure_ascii=False)
    return "\n".join(_section(name, form, filled, answered=answered) for name in form.sections)


def _section(name: str, form: AnswerForm, filled: FilledForm, *, answered: bool) -> str:
    if name == CONFIDENCE:
        return (
            f"{name}: {(filled.confidence or 0.0) if answered else 0.0:g}" if filled.confidence is not None or not answered else f"{name}:"
        )
    # LESION is one line, DIFFERENTIAL a numbered list
    if name in CANDIDATES:
        named = filled.candidates if answered else [FilledCandidate(name=CANNOT_TELL)]
        lines = [_candidate(one, evidence=form.evidence) for one in named]
        if name == "LESION":
            return f"{name}: {lines[0]}"
        return "\n".join([f"{name}:", *(f"{rank}. {line}" for rank, line in enumerate(lines, start=1))])
    if name in ANSWER:
        if form.options:
            return f"{name}: {filled.choice or NO_LETTER}"
        return f"{name}: {_line(filled.texts.get(name, '')) if answered else CANNOT_TELL}"
    return f"{name}: {_line(filled.texts.get(name, '')) or NOT_STATED}"


def _name(text: str) -> str:
    return EXPLAINS.sub(", ", _line(text).strip(" .,;:-–—").replace("|", "/"))


def _candidate(one: FilledCandidate, *, evidence: bool) -> str:
    name = _name(one.name)
    if not evidence:
        return name
    for_it, against = (EVIDENCE_LABEL.sub(r"\1", _line(words).replace("|", "/")) or NOT_STATED for words in (one.speaks_for, one.against))
    return f"{name} | for: {for_it} | against: {against}"
