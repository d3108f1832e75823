"""Marks by which models know a picture's place or a turn: inert in texts of others, where they would bind a picture or end the question."""

from __future__ import annotations

import re
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


def _is_of_pictures(line: str) -> bool:
    marks = list(MARK.finditer(line))
    return (
        bool(marks) and not MARK.sub("", line).strip() and all(IS_PICTURE.fullmatch(next(filter(None, match.groups()))) for match in marks)
    )


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
