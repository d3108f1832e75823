"""Answers that a round may show: answers of models, and controls that are known to be right or wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import DIAGNOSES, NO_LESION, Family, Gold, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import RatingPart
from neuralmedbench.records.words import as_sentence

CONFIDENCE = 0.9
"""Confidence stated in right and wrong controls alike."""


@dataclass(frozen=True)
class RatingCandidate:
    """One response with its item.

    Attributes
    ----------
    item : Item
        The item, with case, family and level.
    response : Response
        The response; its state is ok.
    sent : tuple of RequestTurn
        The messages that this model got, within its picture budget.
    gold : Gold or None
        Reference answer, if known.
    """

    item: Item
    response: Response
    sent: tuple[RequestTurn, ...]
    gold: Gold | None

    @property
    def stratum(self) -> str:
        """Model, family and level."""
        return f"{self.response.model}/{self.item.family}/{self.item.level}"

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer to each message."""
        return self.response.turns if len(self.sent) > 1 else (self.response.text,)


@dataclass(frozen=True)
class ControlAnswer:
    """A control: the candidate whose question it answers, its text, and whether the text is right."""

    candidate: RatingCandidate
    text: str
    part: RatingPart


def reference_lines(item: Item, gold: Gold) -> list[str]:
    """Return the reference as lines of text: answer, lesion, alternatives, findings, and how it was established; unknown parts are left out."""
    choice = f"{gold.choice}. " if gold.choice else ""
    place = ""
    if gold.lesion and gold.answer != NO_LESION:
        place = " ".join(part for part in (gold.lesion.side, gold.lesion.location) if part)
    lines = [
        ("Reference", f"{choice}{gold.answer}"),
        ("Lesion" if item.family is Family.LESION_RECOGNITION else "Main lesion", place),
        ("To be considered", "; ".join(gold.differentials)),
        ("Findings", "; ".join(gold.findings)),
        ("Known from", gold.established),
    ]
    return [f"{name}: {text}" for name, text in lines if text]


def make_controls(candidates: Iterable[RatingCandidate], number: int, random: Random) -> list[ControlAnswer]:
    """Make up to `number` right and `number` wrong answers to questions of the round, the right ones first.

    Only questions with one message, a known answer and a supported form (ranked diagnoses, choice) are used, one per case. There are
    fewer controls if there are fewer such cases. A wrong answer names the diagnosis of another case, with the findings of that case.
    """
    # one question per case: a right and a wrong answer to the same case would be conspicuous
    by_case = {(one.item.benchmark, one.item.case_id): one for one in sorted(candidates, key=_item_id) if _has_form(one)}
    # sorted before the shuffle, so that equal seeds give equal controls
    asked = [by_case[case] for case in sorted(by_case)]
    random.shuffle(asked)
    right = [ControlAnswer(one, _right(one), RatingPart.CONTROL_RIGHT) for one in asked]
    # wrong controls start at the other end of the list, so that both kinds share a case only if there are few
    from_the_end = asked[::-1]
    wrong = [
        ControlAnswer(one, text, RatingPart.CONTROL_WRONG)
        for place, one in enumerate(from_the_end, start=1)
        if (text := _wrong(one, [*from_the_end[place:], *from_the_end[: place - 1]]))
    ]
    return right[:number] + wrong[:number]


def _item_id(one: RatingCandidate) -> str:
    return one.item.item_id


def _has_form(one: RatingCandidate) -> bool:
    if one.gold is None:
        return False
    if one.item.runner is Runner.CHOICE:
        return bool(one.gold.choice)
    return one.item.runner is Runner.OPEN and one.item.family in DIAGNOSES and bool(one.gold.answer)


def _right(one: RatingCandidate) -> str:
    assert one.gold is not None
    return f"ANSWER: {one.gold.choice}\nCONFIDENCE: {CONFIDENCE}" if one.item.runner is Runner.CHOICE else _written(one, one.gold)


def _written(one: RatingCandidate, gold: Gold, without: frozenset[str] = frozenset()) -> str:
    """Write an answer in the format that the question asks for: a checklist, or a ranked differential with reasons."""
    # at most three diagnoses; `without` removes names that are right for the other case
    names = [name for name in (gold.answer, *gold.differentials) if name.casefold() not in without][:3]
    ranked = [f"{rank}. {name}" for rank, name in enumerate(names, start=1)]
    findings, reasons = (" ".join(as_sentence(text) for text in texts) or "Not stated." for texts in (gold.findings, gold.rationale))
    # the prompt shows which format it asks for
    if "SEEN:" not in one.sent[0].words:
        differential = "\n".join(ranked)
        return f"DIFFERENTIAL:\n{differential}\nFINDINGS: {findings}\nRATIONALE: {reasons}\nCONFIDENCE: {CONFIDENCE}"
    speaks_for = "; ".join(gold.findings[:2]) or "the history"
    evidence = [f" | for: {speaks_for} | against: nothing", *(" | for: the history | against: the findings" for _ in ranked[1:])]
    # sequences and planes of the pictures, each named once
    seen = [", ".join(dict.fromkeys(words)) for words in zip(*((image.sequence, image.plane) for image in one.item.images), strict=True)]
    sections = {
        "SEEN": "; ".join(word for word in seen if word) or "nothing",
        "LOCATION": gold.lesion.location if gold.lesion and gold.lesion.location else "none",
        "SIDE": gold.lesion.side if gold.lesion and gold.lesion.side else "none",
        "FINDINGS": findings,
        "DIFFERENTIAL": "".join(f"\n{name}{why}" for name, why in zip(ranked, evidence, strict=True)),
        "CONFIDENCE": str(CONFIDENCE),
        "MISSING": "nothing",
        "RATIONALE": reasons,
    }
    lines = [(name, sections[name]) for name in SECTIONS.get(one.item.family, tuple(sections)) if name in sections]
    return "\n".join(f"{name}:{text if text.startswith(chr(10)) else f' {text}'}" for name, text in lines)


def _wrong(one: RatingCandidate, others: Sequence[RatingCandidate]) -> str:
    """Return a wrong option, or the answer of the first other case that is not defensible here; empty if there is none."""
    assert one.gold is not None
    if one.item.runner is Runner.CHOICE:
        letter = next((letter for letter in LETTERS[: len(one.item.options)] if letter != one.gold.choice), "")
        return f"ANSWER: {letter}\nCONFIDENCE: {CONFIDENCE}" if letter else ""
    right = frozenset(name.casefold() for name in (one.gold.answer, *one.gold.aliases))
    # a control that is wrong must not name an alias or an accepted alternative
    defensible = right | {name.casefold() for name in one.gold.differentials}
    for other in others:
        if other.item.runner is Runner.OPEN and other.gold and other.gold.answer.casefold() not in defensible:
            return _written(one, other.gold, without=right)
    return ""
