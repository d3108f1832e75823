"""Reading answers without gold: what stands in the form that was asked for, and nothing else."""

from __future__ import annotations

import re

from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.parse_structured import parse_structured
from neuralmedbench.scoring.sections import DECORATION, Sections, read_sections

MAX_CANDIDATES = 5
MAX_WORDS = 14
"""A line of a differential with more words is an explanation, unless it is numbered."""

FREE_ANSWER = ("REASONING", "ANSWER", "CONFIDENCE")
"""Sections of an answer in free words."""

NUMBERED = re.compile(r"\s*(\d{1,2})[.)]\s*(.*)")
INLINE_NUMBER = re.compile(r"(?<!\S)(?=\d{1,2}[.)]\s)")
EXPLANATION = re.compile(r"\s+[-–—]\s+|:\s+|\s*\((?:confidence|probability|likelihood)?[:\s~]*\d{1,3}\s*%\)")
ABSTENTION = re.compile(
    r"(?:unknown|none|n a|not sure|uncertain|unclear|undetermined|indeterminate|inconclusive|no diagnosis|"
    r"(?:i )?(?:cannot|can not|am unable to|unable to|not possible to)\b.*|(?:cannot|could not) be determined|insufficient\b.*|"
    r"not enough information.*)"
)
REFUSAL = re.compile(
    r"\b(?:i(?: a|')?m sorry|i apologi[sz]e|i (?:cannot|can't|can not|am (?:not able|unable))|as an ai|i'm (?:not able|unable)|i won't)\b",
    re.I,
)
CONFIDENCE = re.compile(r"(\d{1,3}(?:\.\d{1,10})?|\.\d{1,10})\s*(%?)(.*)")


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
    text = text.replace("’", "'").replace("\x00", "")
    if item.runner is Runner.STRUCTURED:
        prediction = parse_structured(text, item.answer_schema)
    elif item.runner is Runner.CHOICE:
        prediction = _parse_choice(text, item.options)
    elif item.family is Family.LESION_RECOGNITION:
        prediction = _parse_lesion(read_sections(text))
    elif item.family is Family.QUESTION_ANSWERING:
        prediction = _parse_open_answer(read_sections(text, FREE_ANSWER))
    else:
        prediction = _parse_differential(read_sections(text))
    if prediction.parse_status is ParseStatus.FAILED:
        return Prediction(parse_status=ParseStatus.FAILED, abstained=not text.strip() or bool(REFUSAL.search(text)))
    return prediction


def _status(strict: bool) -> ParseStatus:
    return ParseStatus.STRICT if strict else ParseStatus.REPAIRED


def _parse_differential(sections: Sections) -> Prediction:
    if "DIFFERENTIAL" not in sections.lines:
        return Prediction(parse_status=ParseStatus.FAILED)
    candidates, strict = _candidates(sections.lines["DIFFERENTIAL"])
    abstained = bool(candidates) and ABSTENTION.fullmatch(normal_form(candidates[0])) is not None
    if not candidates:
        return Prediction(parse_status=ParseStatus.FAILED)
    confidence, plain = _confidence(sections)
    return Prediction(
        parse_status=_status(
            strict and plain and sections.strict and _in_order(sections, "DIFFERENTIAL", "FINDINGS", "RATIONALE", "CONFIDENCE")
        ),
        differential=() if abstained else candidates,
        findings=sections.text("FINDINGS"),
        rationale=sections.text("RATIONALE") or sections.text("REASONING"),
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _parse_lesion(sections: Sections) -> Prediction:
    lesion = _clean(sections.text("LESION"))
    if not normal_form(lesion):
        return Prediction(parse_status=ParseStatus.FAILED)
    abstained = ABSTENTION.fullmatch(normal_form(lesion)) is not None and normal_form(lesion) != "none"
    confidence, plain = _confidence(sections)
    fields = {"lesion": lesion, "location": _clean(sections.text("LOCATION")), "side": _clean(sections.text("SIDE"))}
    return Prediction(
        parse_status=_status(plain and sections.strict and _in_order(sections, "LESION", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE")),
        differential=() if abstained else (lesion,),
        findings=sections.text("FINDINGS"),
        fields=None if abstained else fields,
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _parse_open_answer(sections: Sections) -> Prediction:
    answer = _clean(sections.text("ANSWER"))
    if not normal_form(answer):
        return Prediction(parse_status=ParseStatus.FAILED)
    abstained = ABSTENTION.fullmatch(normal_form(answer)) is not None
    confidence, plain = _confidence(sections)
    return Prediction(
        parse_status=_status(plain and sections.strict and _in_order(sections, "ANSWER", "CONFIDENCE")),
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
    confidence, plain = _confidence(sections)
    asked = text.strip() == letter or (sections.strict and sections.text("ANSWER") == letter)
    return Prediction(
        parse_status=_status(plain and asked),
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
    cleaned = [_clean(EXPLANATION.split(_clean(text), maxsplit=1)[0]) for text in texts]
    strict &= len(texts) <= MAX_CANDIDATES and [text.strip() for text in texts] == cleaned
    return tuple(text for text in cleaned if normal_form(text))[:MAX_CANDIDATES], strict


def _clean(text: str) -> str:
    """Take off decoration, quotes and the full stop; a placeholder of the form that was left standing is empty."""
    plain = re.sub(r"[*_`]{1,3}", "", text).strip(" \t\"'.,;")
    return "" if re.fullmatch(r"<[^<>]*>", plain) else plain


def _confidence(sections: Sections) -> tuple[float | None, bool]:
    text = sections.text("CONFIDENCE")
    match = CONFIDENCE.match(re.sub(r"[*_`]", "", text).strip())
    if match is None:
        return None, not text
    value = float(match.group(1)) / (100 if match.group(2) else 1)
    return (value, match.group(0) == match.group(1) == text) if 0 <= value <= 1 else (None, False)


def _in_order(sections: Sections, *headers: str) -> bool:
    """Whether the sections stand as asked; steps before them are asked for by some strategies."""
    return tuple(sections.lines) in {headers, ("REASONING", *headers)}
