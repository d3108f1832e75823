"""A text being redacted: replaced parts are hidden from later patterns, and their positions are recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

COVER, COVER_NAME, COVER_ID = "\ue000", "\ue001", "\ue002"
"""Private-use characters that cover replaced letters one for one: positions stay valid, and later patterns can match next to a name or number."""

COVERS = COVER + COVER_NAME + COVER_ID
PLACEHOLDERS = (
    "[ADDRESS]", "[DATE]", "[EMAIL]", "[FILE]", "[HOSPITAL]", "[ID]", "[IP]", "[NAME]", "[PHONE]", "[PLACE]", "[SECTION CUT]", "[TEXT]",
    "[URL]",
)  # fmt: skip
"""Everything that cleaning writes in place of a value, except for shifted dates."""


@dataclass(frozen=True, order=True)
class Span:
    """A replaced part of a text: characters `start` to `end` (exclusive), its kind, and its replacement."""

    start: int
    end: int
    kind: str
    replacement: str


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
        Replaced parts in the order of detection; they do not overlap.
    """

    def __init__(self, text: str) -> None:
        self.source = self.text = re.sub(f"[{COVERS}]", " ", text)
        self.spans: list[Span] = []

    def cover(self, start: int, end: int, kind: str, replacement: str) -> None:
        """Replace a part, except for what is already covered in it."""
        cover = {"[NAME]": COVER_NAME, "[ID]": COVER_ID}.get(replacement, COVER)
        place = start
        while place < end:
            stop = next((at for at in range(place, end) if self.text[at] in COVERS), end)
            if any(letter.isalnum() for letter in self.text[place:stop]):
                self.spans.append(Span(place, stop, kind, replacement))
                self.text = self.text[:place] + cover * (stop - place) + self.text[stop:]
            place = stop + 1

    def replace(self, pattern: re.Pattern[str], kind: str, replacement: Callable[[re.Match[str]], str | None] | str) -> None:
        """Replace every match, or its group `value`, `also` or `last` where it has one; `replacement` may decline with None."""
        for match in list(pattern.finditer(self.text)):
            group: str | int = next((name for name in ("value", "also", "last") if name in pattern.groupindex and match[name]), 0)
            text = replacement if isinstance(replacement, str) else replacement(match)
            if text is not None:
                self.cover(*match.span(group), kind, text)

    def counts(self) -> Counter[str]:
        """Count the replacements by kind."""
        return Counter(span.kind for span in self.spans)

    def result(self) -> str:
        """Return the text with all replacements."""
        parts, place = [], 0
        for span in sorted(self.spans):
            parts += [self.source[place : span.start], span.replacement]
            place = span.end
        return "".join([*parts, self.source[place:]])
