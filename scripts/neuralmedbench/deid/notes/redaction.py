"""A text whose replaced parts are out of reach of later patterns, and that knows where they stood."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

COVER, COVER_NAME, COVER_ID = "\ue000", "\ue001", "\ue002"
"""What replaced letters become until the end, one for one: places stay what they were, and later patterns can ask for a name or a number beside them."""

COVERS = COVER + COVER_NAME + COVER_ID


@dataclass(frozen=True, order=True)
class Span:
    """A part of a text that is replaced: from `start` to before `end` (characters), its kind, and what is shown instead."""

    start: int
    end: int
    kind: str
    shown: str


class Redaction:
    """The replaced parts of one text.

    Parameters
    ----------
    text : str
        The text.

    Attributes
    ----------
    text : str
        The text with replaced letters covered; as long as the given one.
    spans : list of Span
        What is replaced, in the order in which it was found; spans do not overlap.
    """

    def __init__(self, text: str) -> None:
        self.source = self.text = re.sub(f"[{COVERS}]", " ", text)
        self.spans: list[Span] = []

    def cover(self, start: int, end: int, kind: str, shown: str) -> None:
        """Replace a part; a part of it that is covered already stays as it is."""
        cover = {"[NAME]": COVER_NAME, "[ID]": COVER_ID}.get(shown, COVER)
        place = start
        while place < end:
            stop = next((at for at in range(place, end) if self.text[at] in COVERS), end)
            if any(letter.isalnum() for letter in self.text[place:stop]):
                self.spans.append(Span(place, stop, kind, shown))
                self.text = self.text[:place] + cover * (stop - place) + self.text[stop:]
            place = stop + 1

    def replace(self, pattern: re.Pattern[str], kind: str, shown: Callable[[re.Match[str]], str | None] | str) -> None:
        """Replace every match, or its group `value`, `also` or `last` where it has one; `shown` may decline with None."""
        for match in list(pattern.finditer(self.text)):
            group: str | int = next((name for name in ("value", "also", "last") if name in pattern.groupindex and match[name]), 0)
            text = shown if isinstance(shown, str) else shown(match)
            if text is not None:
                self.cover(*match.span(group), kind, text)

    def counts(self) -> Counter[str]:
        """How often each kind was replaced."""
        return Counter(span.kind for span in self.spans)

    def result(self) -> str:
        """Give the text with what is shown in place of the replaced parts."""
        parts, place = [], 0
        for span in sorted(self.spans):
            parts += [self.source[place : span.start], span.shown]
            place = span.end
        return "".join([*parts, self.source[place:]])
