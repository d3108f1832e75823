"""Parse an answer, without its gold: the requested form first, then the usual other ones; turn by turn where values were asked in turns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.records.arm_changes import NONE_ARM, as_asked, in_form, order_under
from neuralmedbench.records.checklist import PLACES, SECTIONS, with_places
from neuralmedbench.records.items import Family, Item, ItemImage, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import LONGEST_DIFFERENTIAL, ParseStatus, Prediction
from neuralmedbench.records.thoughts import split_thoughts, without_thoughts
from neuralmedbench.records.value_rules import part_of_schema
from neuralmedbench.records.views import ANSWER_ACTION
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.records.words import count_words
from neuralmedbench.scoring.checklist import ChecklistCandidate, may_be_checklist, read_candidate, read_candidates, read_checklist
from neuralmedbench.scoring.choice import read_choice
from neuralmedbench.scoring.free_form import LETTER, free_answer, leading_statement, lesion_object, stated_diagnoses
from neuralmedbench.scoring.lists import list_from, mark_of
from neuralmedbench.scoring.places import numbered_images, read_place
from neuralmedbench.scoring.sections import DECORATION, Sections, clean, read_sections
from neuralmedbench.scoring.structured_answer import parse_structured

MAX_WORDS = 14
"""A line of a differential with more words is an explanation, unless it is numbered."""
EXPLANATION = re.compile(r"\s[-–—]\s|:(?:\s|$)|\((?:confidence|probability|likelihood)?[:\s~]*\d{1,3}\s*%\)")
ABSTENTION = re.compile(
    r"(?:unknown|none|n a|not sure|uncertain|unclear|undetermined|indeterminate|inconclusive|no diagnosis|"
    r"(?:i )?(?:cannot|can not|am unable to|unable to|not possible to)\b.*|(?:cannot|could not) be determined|insufficient\b.*|"
    r"not enough information.*)"
)
CONFIDENCE = re.compile(r"(\d{1,3}(?:\.\d{1,10})?|\.\d{1,10})\s*(%?)(.*)")
NONE_SEEN = re.compile(
    r"\s*(?:there (?:is|are) )?no (?:visible |focal |definite )?lesions?(?: (?:is|are) (?:seen|visible|shown|present))?\s*(?:[.\n]|$)", re.I
)
NO_LESION = {"lesion": "no lesion", "location": "", "side": ""}
FREE_ANSWER = ("REASONING", "ANSWER", "CONFIDENCE")
"""Sections of a free-text answer."""
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
SPACED = {
    "，": ", ",
    "、": ", ",
    "；": "; ",
    "：": ": ",
    "。": ". ",
    "！": "! ",
    "？": "? ",
    "（": " (",
    "）": ") ",
    "【": " [",
    "】": "] ",
}
"""Signs that Chinese and Japanese write without a space."""
OTHER_SIGNS = {
    **SPACED,
    "،": ",",
    "؛": ";",
    "؟": "?",
    "।": ".",
    "٪": "%",
    "٫": ".",
    "\u3000": " ",
    "\u00a0": " ",
    "\u202f": " ",
    "\u2011": "-",
}
SIGNS: dict[int, int | str] = {**FULL_WIDTH, **{ord(sign): text for sign, text in OTHER_SIGNS.items()}}
RANK = re.compile(r"(?m)(^|\s)(\d{1,2})、")
LONGEST_ANSWER = 200_000
OTHER_DIGIT = re.compile(r"[^\D0-9]")
DECLINES = r"i apologi[sz]e|i (?:cannot|can't|can not|am (?:not able|unable))|i'm (?:not able|unable)|i won't"
REFUSAL = re.compile(rf"\b(?:i(?: a|')?m sorry|as an ai|{DECLINES})\b", re.I)
DECLINED_ABOVE = re.compile(rf"\b(?:i(?: a|')?m sorry,? but|{DECLINES})\b", re.I)
"""Words above a list of diagnoses that make it a refusal with a list: pity and what an AI is do not, nor does advice below it."""
NOT_KNOWN = re.compile(r"^[\s>*_#-]{0,20}ANSWER[*_]*\s*:[\s*_\"']*not known\b", re.IGNORECASE | re.MULTILINE)
"""What a model that asks for facts may answer instead of a letter (`ask_choice_form.j2`)."""


def parse_answer(text: str, item: Item, *, y_first: bool = False) -> Prediction:
    """Parse an answer.

    Parameters
    ----------
    text : str
        The model's answer; any text at all.
    item : Item
        Its runner, family, options and answer schema define the requested form.
    y_first : bool
        True if coordinates were asked for with y before x.

    Returns
    -------
    Prediction
        `strict` if the form is kept; `repaired` if it is recognisable, or if the answer commits itself in another usual form;
        `contradicted` if the letter of a choice stands before the words of another option; `failed` otherwise: then nothing is read from
        the text, so that a mention never counts as rank 1. Never raises.
    """
    raw, text = text, plain_text(text)
    if item.runner is Runner.STRUCTURED:
        prediction = _of_form(parse_structured(text, item.answer_schema), raw)
    elif item.runner is Runner.CHOICE:
        prediction = _of_form(_parse_choice(text, item.options), raw)
    elif item.family is Family.LESION_RECOGNITION:
        prediction = parse_checklist(text, item.family, numbered_images(item), y_first=y_first) or _parse_lesion(read_sections(text))
    elif item.family is Family.QUESTION_ANSWERING:
        prediction = _parse_open_answer(read_sections(text, FREE_ANSWER))
    else:
        prediction = parse_checklist(text, item.family, numbered_images(item), y_first=y_first) or _parse_differential(read_sections(text))
        prediction = _with_statement(prediction, text)
    if prediction.parse_status is ParseStatus.FAILED and item.runner in (Runner.OPEN, Runner.DIALOGUE):
        prediction = _parse_other_form(text, item.family) or prediction
    if prediction.parse_status is ParseStatus.FAILED:
        undecided = item.runner is Runner.CHOICE and NOT_KNOWN.search(text)
        return Prediction(parse_status=ParseStatus.FAILED, abstained=not raw.strip() or bool(undecided or REFUSAL.search(text)))
    return prediction


def _of_form(prediction: Prediction, text: str) -> Prediction:
    """Return a prediction as `repaired` where its letter or its JSON stands behind a thought: a recorded text that holds one is not in the form."""
    bare = prediction.parse_status is ParseStatus.STRICT and split_thoughts(text).end and not read_sections(plain_text(text)).lines
    return replace(prediction, parse_status=ParseStatus.REPAIRED) if bare else prediction


def parse_under(text: str, item: Item, arm: str, *, right: str = "", y_first: bool = False) -> Prediction:
    """Parse an answer to an item whose options the arm may show in another order, or without the right one.

    Parameters
    ----------
    text : str
        The model's answer.
    item : Item
        The item, with its options in their own order.
    arm : str
        The arm under which it was asked.
    right : str
        Letter of the right option, where it is known: of the arm `none_of_the_above` it says which option is not shown.
    y_first : bool
        True if coordinates were asked for with y before x.

    Returns
    -------
    Prediction
        As `parse_answer`; the letter and the text are those of the option in the item's own order.
    """
    item = in_form(item, arm)
    shown = as_asked(item, arm, right=right)
    prediction = parse_answer(text, shown, y_first=y_first)
    if shown is item or not prediction.choice:
        return prediction
    place = order_under(item, arm)[LETTERS.index(prediction.choice)]
    own = shown.options[place] if arm == NONE_ARM else item.options[place]
    return replace(prediction, choice=LETTERS[place], differential=(own,))


def plain_text(text: str) -> str:
    """Normalise a text for parsing.

    Without thoughts, at most `LONGEST_ANSWER` characters; straight apostrophes, no NUL, ASCII for full-width letters and the digits and
    signs of other scripts, and no action by which a viewer's answer begins.

    Examples
    --------
    >>> plain_text("ＡＮＳＷＥＲ：Ｂ"), plain_text("１、脑梗死，左侧"), plain_text("٠٫٧")
    ('ANSWER: B', '1. 脑梗死, 左侧', '0.7')
    """
    text = without_thoughts(text[:LONGEST_ANSWER])
    text = ANSWER_ACTION.sub("", text.replace("’", "'").replace("\x00", ""), count=1)
    if text.isascii():
        return text
    text = RANK.sub(r"\1\2. ", text).translate(SIGNS)
    return OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _parse_choice(text: str, options: tuple[str, ...]) -> Prediction:
    letter, contradicted = read_choice(text, [plain_text(option) for option in options])
    if not letter:
        return Prediction(parse_status=ParseStatus.FAILED)
    sections = read_sections(text)
    confidence, plain = _confidence_of(sections)
    asked = text.strip() == letter or (sections.strict and sections.text("ANSWER") == letter)
    return Prediction(
        parse_status=ParseStatus.CONTRADICTED if contradicted else _status_of(plain and asked),
        differential=(options[LETTERS.index(letter)],),
        choice=letter,
        confidence=confidence,
    )


def _confidence_of(sections: Sections) -> tuple[float | None, bool]:
    """Read the stated confidence (0 to 1, or None); the second value is True if it is written as requested."""
    text = sections.text("CONFIDENCE")
    match = CONFIDENCE.match(re.sub(r"[*_`]", "", text).strip())
    if match is None:
        return None, not text
    value = float(match.group(1)) / (100 if match.group(2) else 1)  # 0.7 or 70 %
    return (value, match.group(0) == match.group(1) == text) if 0 <= value <= 1 else (None, False)


def _status_of(strict: bool) -> ParseStatus:
    """Return the status of an answer that could be read."""
    return ParseStatus.STRICT if strict else ParseStatus.REPAIRED


def parse_checklist(text: str, family: Family, images: Sequence[ItemImage] = (), *, y_first: bool = False) -> Prediction | None:
    """Parse a checklist; None if the answer is not one. `images` are the pictures in the order of their numbers.

    `strict`: all sections as requested and in order, each candidate with its evidence; `failed`: it names nothing. Evidence is never a
    candidate.
    """
    sections = read_checklist(text, family)
    if sections is None:
        return None
    lesion = family is Family.LESION_RECOGNITION
    named, strict = _lesion(sections) if lesion else _differential(sections)
    names = tuple(name for name, _ in named)
    place = {name: clean(sections.text(name.upper())) for name in ("location", "side")}
    asked = SECTIONS.get(family, SECTIONS[Family.DIFFERENTIAL_DIAGNOSIS])
    has_places = not sections.lines.keys().isdisjoint(PLACES)
    asked = with_places(asked) if has_places else asked
    fields = {"lesion": names[0], **place} if lesion and names else {name: words for name, words in place.items() if words}
    prediction = _of_sections(sections, names, asked, strict=strict, lesion=lesion, fields=fields or None)
    if prediction.parse_status is ParseStatus.FAILED:
        return prediction
    return replace(
        prediction,
        seen=clean(sections.text("SEEN")),
        evidence=() if prediction.abstained else tuple(candidate.evidence for _, candidate in named),
        missing=clean(sections.text("MISSING")),
        place=read_place(sections.text("PICTURE"), sections.text("BOX"), images, y_first=y_first)
        if has_places and not prediction.abstained
        else None,
    )


def _of_sections(
    sections: Sections,
    names: tuple[str, ...],
    headers: Sequence[str],
    *,
    strict: bool = True,
    lesion: bool = False,
    fields: dict[str, str] | None = None,
) -> Prediction:
    """Return the prediction of an answer in sections: `failed` if it names nothing, and without its names if it abstains."""
    if not names or not normal_form(names[0]):
        return Prediction(parse_status=ParseStatus.FAILED)
    confidence, plain = _confidence_of(sections)
    abstained = abstains(names[0]) and not (lesion and normal_form(names[0]) == "none")  # `none` is an answer to a lesion item
    return Prediction(
        parse_status=_status_of(strict and plain and sections.strict and in_order(sections, *headers)),
        differential=() if abstained else names,
        findings=sections.text("FINDINGS"),
        rationale=sections.text("RATIONALE") or sections.text("REASONING"),
        fields=None if abstained else fields,
        confidence=None if abstained else confidence,
        abstained=abstained,
    )


def _lesion(sections: Sections) -> tuple[list[tuple[str, ChecklistCandidate]], bool]:
    row = read_candidate(sections.lines.get("LESION", []))
    name = clean(row.name)
    return [(name, row)] if normal_form(name) else [], row.as_requested


def _differential(sections: Sections) -> tuple[list[tuple[str, ChecklistCandidate]], bool]:
    candidates, strict = read_candidates(sections.lines.get("DIFFERENTIAL", [""]))
    named = [(diagnosis_of(row.name), row) for row in candidates if row.number or _is_short(row.name)]
    strict &= len(named) <= LONGEST_DIFFERENTIAL and all(name == row.name for name, row in named)
    return [(name, row) for name, row in named if normal_form(name)][:LONGEST_DIFFERENTIAL], strict


def _is_short(line: str) -> bool:
    return count_words(line) <= MAX_WORDS


def diagnosis_of(text: str) -> str:
    """Return the diagnosis that a line names, without its explanation."""
    return clean(EXPLANATION.split(clean(text), maxsplit=1)[0].rstrip())


def abstains(name: str) -> bool:
    """Return True if a line says that no diagnosis can be named."""
    return ABSTENTION.fullmatch(normal_form(name)) is not None


def in_order(sections: Sections, *headers: str) -> bool:
    """Return True if the sections are those requested, in order; some strategies request reasoning before them."""
    return tuple(sections.lines) in {headers, ("REASONING", *headers)}


def _parse_lesion(sections: Sections) -> Prediction:
    fields = {name: clean(sections.text(name.upper())) for name in ("lesion", "location", "side")}
    headers = ("LESION", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE")
    return replace(_of_sections(sections, (fields["lesion"],), headers, lesion=True, fields=fields), rationale="")


def _parse_open_answer(sections: Sections) -> Prediction:
    answer = clean(sections.text("ANSWER"))
    prediction = _of_sections(sections, (answer,), ("ANSWER", "CONFIDENCE"))
    return prediction if prediction.parse_status is ParseStatus.FAILED else replace(prediction, findings=answer)


def _parse_differential(sections: Sections) -> Prediction:
    candidates, strict = _candidates(sections.lines.get("DIFFERENTIAL", [""]))
    return _of_sections(sections, candidates, ("DIFFERENTIAL", "FINDINGS", "RATIONALE", "CONFIDENCE"), strict=strict)


def _with_statement(prediction: Prediction, text: str) -> Prediction:
    """Read a differential that is headed in another way than requested as an answer in another form."""
    if (
        prediction.parse_status is not ParseStatus.REPAIRED
        or not prediction.differential
        or "DIFFERENTIAL:" in text
        or may_be_checklist(text)
    ):
        return prediction
    names = stated_diagnoses(text, bare=False)
    return replace(prediction, differential=names, evidence=()) if names and not abstains(names[0]) else prediction


def _parse_other_form(text: str, family: Family) -> Prediction | None:
    """Parse an answer in one of the usual other forms; None if it is in none of them. A refusal is in none."""
    refused = bool(REFUSAL.search(text)) and not leading_statement(text)
    if family is Family.LESION_RECOGNITION:
        fields: dict[str, str] | None = dict(NO_LESION) if NONE_SEEN.match(text) else lesion_object(text) or None
        names: tuple[str, ...] = (fields["lesion"],) if fields else ()
    elif family is Family.QUESTION_ANSWERING:
        fields, answer = None, free_answer(text)
        names = (answer,) if normal_form(answer) else ()
    else:
        fields, names = None, stated_diagnoses(text, bare=family is Family.DIFFERENTIAL_DIAGNOSIS)
        refused = refused and bool(names) and bool(DECLINED_ABOVE.search(text[: text.find(names[0]) + len(names[0])]))
    if refused or not names:
        return None
    abstained = abstains(names[0]) and not (fields and normal_form(names[0]) == "none")
    return Prediction(
        parse_status=ParseStatus.REPAIRED,
        differential=() if abstained else names,
        findings=names[0] if family is Family.QUESTION_ANSWERING else "",
        fields=None if abstained else fields,
        abstained=abstained,
    )


def _candidates(lines: list[str]) -> tuple[tuple[str, ...], bool]:
    """Return the candidates by rank; True if they are written as requested: 1 to 5, numbered, one per line, without explanations."""
    # a numbered list has the candidates, else headings, bullets or short lines, whatever comes first; all else is explanation
    marks = [mark_of(line) for line in lines]
    short = [row for row, line in enumerate(lines) if line.strip() and _is_short(line)]
    first = next((row for row, mark in enumerate(marks) if mark.number), next(iter(short), None))
    if first is not None and marks[first].kind:
        texts = list_from(lines, marks, first).entries
    else:
        texts = [DECORATION.sub("", lines[row]) for row in short if not marks[row].kind]
    cleaned = [diagnosis_of(text) for text in texts]
    as_requested = [f"{rank}. {name}" for rank, name in enumerate(cleaned[:LONGEST_DIFFERENTIAL], start=1)]
    strict = [line.strip() for line in lines if line.strip()] == as_requested and not lines[0].strip()
    if cleaned and normal_form(cleaned[0]) and not LETTER.search(cleaned[0]):  # a number in the place of the first diagnosis
        return (), False
    return tuple(text for text in cleaned if normal_form(text))[:LONGEST_DIFFERENTIAL], strict


def in_stages(item: Item) -> bool:
    """Return True for a structured item that is asked in several turns, each for its own fields."""
    return item.runner is Runner.STRUCTURED and bool(item.turns)


def parse_stages(response: Response, item: Item) -> Prediction:
    """Parse every turn of an item that is asked in stages; fields of a turn that cannot be read are empty.

    `strict` if every turn kept its form, `failed` if none could be read. A refusal or a truncation is known of the last turn only, which is
    then not read; an earlier one has words that cannot be read, or none.
    """
    texts = response.turns or (response.text,)
    answered = texts if response.state is ResponseState.OK else texts[:-1]
    fields: dict[str, str] = {}
    states, stated = [], []
    for place, turn in enumerate(item.turns):
        text = answered[place] if place < len(answered) else ""
        read = _of_form(parse_structured(plain_text(text), part_of_schema(item.answer_schema, turn.asks)), text)
        states.append(read.parse_status)
        fields |= dict.fromkeys(turn.asks, "") if read.parse_status is ParseStatus.FAILED else read.fields or {}
        stated += [f"{name} {fields[name]}" for name in turn.asks if fields.get(name)]
    read_turns = [status for status in states if status is not ParseStatus.FAILED]
    return Prediction(
        parse_status=ParseStatus.FAILED
        if not read_turns
        else ParseStatus.STRICT
        if set(states) == {ParseStatus.STRICT}
        else ParseStatus.REPAIRED,
        differential=("; ".join(stated),) if stated else (),
        fields=fields if read_turns else None,
        abstained=not stated,
    )
