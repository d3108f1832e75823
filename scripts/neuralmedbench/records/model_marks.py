"""Marks by which models know a picture's place or a turn: inert in texts of others, where they would bind a picture or end the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

R = TypeVar("R")

PICTURE_WORDS = (
    r"(?:image|img|picture|video|audio)(?:[ _-]?(?:\d{1,3}|placeholder|pad|token|soft_token|here|context|start|end|break))?|"
    r"(?:start|end)_of_(?:image|video|audio)|image_placeholder|boi_token|eoi_token|unused\d{1,3}"
)
TURN_WORDS = r"(?:start|end)_of_turn|bos|eos|pad|unk|sep|cls|mask"
MARK = re.compile(
    rf"<\|(?P<piped>/?[A-Za-z][\w ./-]{{0,40}})\|>|<\|(?P<open>[A-Za-z]\w{{0,20}})>|<(?P<closed>[A-Za-z]\w{{0,20}})\|>|"
    rf"</?(?P<tag>(?:{PICTURE_WORDS}|{TURN_WORDS}))\s*/?>|(?<!\w)<(?P<begin>s)>|<(?P<end>/s)>|"
    r"<<(?P<system>/?SYS)>>|\[(?P<bracket>/?INST|/?IMG(?:_BREAK|_END)?|/?SYSTEM_PROMPT|/?AVAILABLE_TOOLS|TOOL_CALLS)\]",
    re.IGNORECASE,
)
"""Angles and brackets of tokens, whichever family has them: `<0.5 cm`, `a<b>c` and `[1]` are none."""
IS_PICTURE = re.compile(rf"{PICTURE_WORDS}|vision_(?:start|end|pad)|/?IMG\w*", re.IGNORECASE)


IS_BEGIN, IS_END = re.compile("start|begin", re.IGNORECASE), re.compile("</|end|break", re.IGNORECASE)
"""Marks around a picture's place; the first is the place where nothing stands between them."""


def marks_in(text: str) -> list[str]:
    """Return the marks in a text, in their order."""
    return [match.group() for match in MARK.finditer(text)]


def without_marks(text: str) -> str:
    r"""Return a text with its marks as words in round brackets; of several lines those of picture marks alone are left out.

    The pictures are sent beside the text.

    Examples
    --------
    >>> without_marks("<image>\nIs <image 2> darker than <0.5 cm, a<b>c?<|im_end|>")
    'Is (image 2) darker than <0.5 cm, a<b>c?(im_end)'
    """
    if not MARK.search(text):
        return text
    lines = [line for line in text.split("\n") if not _is_of_pictures(line)]
    if not any(map(str.strip, lines)):  # an option that is a picture's mark
        lines = text.split("\n")
    while MARK.search(whole := "\n".join(lines)):  # what is left of `<<image>image>` may be one again
        lines = MARK.sub(lambda match: f"({next(filter(None, match.groups()))})", whole).split("\n")
    return whole


def with_picture_names(text: str, names: Sequence[str]) -> str:
    """Return a text with every picture mark of a sentence as the name of its picture, if it has as many such marks as there are pictures.

    Examples
    --------
    >>> with_picture_names("Is <image> darker than <|vision_start|><|image_pad|><|vision_end|>?", ["Picture 1", "Picture 2"])
    'Is Picture 1 darker than Picture 2?'
    """
    marks = [match for match in MARK.finditer(text) if _is_of_picture(match)]
    inner = [match for match in marks if not IS_BEGIN.search(match[0]) and not IS_END.search(match[0])]
    places = [match.start() for match in inner or marks if not IS_END.search(match[0])]
    if len(places) != len(names):
        return text
    for match in reversed(marks):
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        if not _is_of_pictures(line):
            name = _name_of(match[0], places.index(match.start()), names) if match.start() in places else ""
            text = text[: match.start()] + name + text[match.end() :]
    return text


def _name_of(mark: str, rank: int, names: Sequence[str]) -> str:
    """Return the name of a mark's picture: of its number if it has one, else of its rank."""
    number = re.search(r"\d+", mark)
    return names[int(number[0]) - 1] if number and 0 < int(number[0]) <= len(names) else names[rank]


def _is_of_picture(match: re.Match[str]) -> bool:
    return IS_PICTURE.fullmatch(next(filter(None, match.groups()))) is not None


def _is_of_pictures(line: str) -> bool:
    marks = list(MARK.finditer(line))
    return bool(marks) and not MARK.sub("", line).strip() and all(map(_is_of_picture, marks))


def with_inert_texts(value: R, marks: list[str]) -> R:
    """Return a record with all its texts as of `without_marks`; the marks that they held are added to a list."""
    if isinstance(value, str):
        marks += marks_in(value)
        return without_marks(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(with_inert_texts(part, marks) for part in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: with_inert_texts(getattr(value, field.name), marks) for field in fields(value)})
    return value
