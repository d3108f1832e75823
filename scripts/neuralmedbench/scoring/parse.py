"""Reading answers without gold: what stands in the form that was asked for, and nothing else."""

from __future__ import annotations

import re

from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.answer_words import MAX_CANDIDATES, MAX_WORDS, abstains, clean, confidence_of, diagnosis_of, in_order, status_of
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.parse_checklist import parse_checklist
from neuralmedbench.scoring.parse_structured import parse_structured
from neuralmedbench.scoring.sections import DECORATION, INLINE_NUMBER, NUMBERED, Sections, read_sections

FREE_ANSWER = ("REASONING", "ANSWER", "CONFIDENCE")
"""Sections of an answer in free words."""

REFUSAL = re.compile(
    r"\b(?:i(?: a|')?m sorry|i apologi[sz]e|i (?:cannot|can't|can not|am (?:not able|unable))|as an ai|i'm (?:not able|unable)|i won't)\b",
    re.I,
)


def parse_answer(text: str, item: Item) -> Prediction:
    """Read an answer.

    Parameters
    ----------
    text : str
        What the model wrote; any text at all.
    item : Item
        Its runner, family, options and answer schema say in which form the answer was asked for.

    Returns
    -------
    Prediction
        `strict` when the form is kept, `repaired` when it is recognisable, `failed` when it is not: then nothing is
        read from the text, so that prose never counts as rank 1. Never raises.
    """
    text = plain_text(text)
    if item.runner is Runner.STRUCTURED:
        prediction = parse_structured(text, item.answer_schema)
    elif item.runner is Runner.CHOICE:
        prediction = _parse_choice(text, item.options)
    elif item.family is Family.LESION_RECOGNITION:
        prediction = parse_checklist(text, item.family) or _parse_lesion(read_sections(text))
    elif item.family is Family.QUESTION_ANSWERING:
        prediction = _parse_open_answer(read_sections(text, FREE_ANSWER))
    else:
        prediction = parse_checklist(text, item.family) or _parse_differential(read_sections(text))
    if prediction.parse_status is ParseStatus.FAILED:
        return Prediction(parse_status=ParseStatus.FAILED, abstained=not text.strip() or bool(REFUSAL.search(text)))
    return prediction


def plain_text(text: str) -> str:
    """Give a text as it is parsed: with straight apostrophes, without NUL."""
    return text.replace("’", "'").replace("\x00", "")


def _parse_differential(sections: Sections) -> Prediction:
    if "DIFFERENTIAL" not in sections.lines:
        return Prediction(parse_status=ParseStatus.FAILED)
    candidates, strict = _candidates(sections.lines["DIFFERENTIAL"])
    abstained = bool(candidates) and abstains(candidates[0])
    if not candidates:
        return Prediction(parse_status=ParseStatus.FAILED)
    confidence, plain = confidence_of(sections)
    return Prediction(
        parse_status=status_of(
            strict and plain and sections.strict and in_order(sections, "DIFFERENTIAL", "FINDINGS", "RATIONALE", "CONFIDENCE")
        ),
        differential=() if abstained else candidates,
        findings=sections.text("FINDINGS"),
        rationale=sections.text("RATIONALE") or sections.text("REASONING"),
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _parse_lesion(sections: Sections) -> Prediction:
    lesion = clean(sections.text("LESION"))
    if not normal_form(lesion):
        return Prediction(parse_status=ParseStatus.FAILED)
    abstained = abstains(lesion) and normal_form(lesion) != "none"
    confidence, plain = confidence_of(sections)
    fields = {"lesion": lesion, "location": clean(sections.text("LOCATION")), "side": clean(sections.text("SIDE"))}
    return Prediction(
        parse_status=status_of(plain and sections.strict and in_order(sections, "LESION", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE")),
        differential=() if abstained else (lesion,),
        findings=sections.text("FINDINGS"),
        fields=None if abstained else fields,
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _parse_open_answer(sections: Sections) -> Prediction:
    answer = clean(sections.text("ANSWER"))
    if not normal_form(answer):
        return Prediction(parse_status=ParseStatus.FAILED)
    abstained = abstains(answer)
    confidence, plain = confidence_of(sections)
    return Prediction(
        parse_status=status_of(plain and sections.strict and in_order(sections, "ANSWER", "CONFIDENCE")),
        differential=() if abstained else (answer,),
        findings=answer,
        rationale=sections.text("REASONING"),
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _parse_choice(text: str, options: tuple[str, ...]) -> Prediction:
    letter = read_choice(text, options)
    if not letter:
        return Prediction(parse_status=ParseStatus.FAILED)
    sections = read_sections(text)
    confidence, plain = confidence_of(sections)
    asked = text.strip() == letter or (sections.strict and sections.text("ANSWER") == letter)
    return Prediction(
        parse_status=status_of(plain and asked),
        differential=(options[LETTERS.index(letter)],),
        choice=letter,
        confidence=confidence,
    )


def _candidates(lines: list[str]) -> tuple[tuple[str, ...], bool]:
    """Candidates in order of rank, and whether they stand as asked: 1 to 5, numbered, one a line, without explanations."""
    strict = not lines[0].strip()
    rows = [part for line in lines for part in INLINE_NUMBER.split(line) if part.strip()]
    numbered = [match for row in rows if (match := NUMBERED.fullmatch(DECORATION.sub("", row).rstrip()))]
    if numbered:
        strict &= len(numbered) == len(rows) and [int(match.group(1)) for match in numbered] == list(range(1, len(rows) + 1))
        texts = [match.group(2) for match in sorted(numbered, key=lambda match: int(match.group(1)))]
    else:
        strict = False
        texts = [DECORATION.sub("", row) for row in rows if len(row.split()) <= MAX_WORDS]
    cleaned = [diagnosis_of(text) for text in texts]
    strict &= len(texts) <= MAX_CANDIDATES and [text.strip() for text in texts] == cleaned
    return tuple(text for text in cleaned if normal_form(text))[:MAX_CANDIDATES], strict
