"""Letters of options that an answer writes in Cyrillic, as those in which the options were asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neuralmedbench.records.questions import LETTERS

ORDER = "АБВГДЕЖЗИК"
"""The letters by which Russian lists are numbered."""
ALIKE = {"А": "A", "В": "B", "С": "C", "Е": "E"}
"""Cyrillic letters that look like one of the options."""

NOT_IN_WORD = r"(?<![\w'-])[*_`(\[\"«]{0,4}"
LETTER = re.compile(rf"(?P<before>{NOT_IN_WORD})(?P<letter>[{ORDER}С])(?=[*_`\"»]{{0,4}}\s*(?:[).:;,\]}}]|$|\n|\s[—–-]\s))", re.MULTILINE)
"""A capital that stands alone before a sign or the end of its line: `Б)`, `Ответ: Б.`; not a preposition (`В данном случае`)."""
TWO = re.compile(rf"(?<!\w)[{ORDER}С][*_`]{{0,3}}\s*(?:,\s*)?(?:\b(?:и|или|та|або|либо)\b|[,/&+])\s*[*_`]{{0,3}}[{ORDER}С](?!\w)")
"""Two letters that an answer names together."""


def latin_letters(text: str, options: Sequence[str]) -> str:
    """Write the Cyrillic letters of options in Latin, where it can be told which option they mean.

    Parameters
    ----------
    text : str
        An answer.
    options : sequence of str
        Texts of the options, which are asked for by Latin letters.

    Returns
    -------
    str
        The answer. A letter that looks like one option and stands for another by its order (В: B or C) is kept, and so not read, unless the
        words behind it are those of one of the two, or the answer uses letters that no Latin one looks like (Б, Г, Д), so that the order counts.

    Examples
    --------
    >>> latin_letters("Ответ: Г", "wxyz"), latin_letters("Ответ: В", "wxyz"), latin_letters("Б) нет. В) да", "wxyz")
    ('Ответ: D', 'Ответ: В', 'B) нет. C) да')
    """
    if not LETTER.search(text) or TWO.search(text):
        return text
    offered = LETTERS[: len(options)]
    by_order = any(match["letter"] not in ALIKE for match in LETTER.finditer(text))

    def written(match: re.Match[str]) -> str:
        letter = match["letter"]
        place = ORDER.find(letter)
        meant = {ALIKE.get(letter, ""), LETTERS[place] if place >= 0 else ""} & set(offered)
        if by_order and place >= 0:
            meant &= {LETTERS[place]}
        if len(meant) > 1:
            behind = text[match.end() :].lstrip(' *_`"».):;,').casefold()
            meant = {one for one in meant if behind.startswith(options[LETTERS.index(one)].casefold())}
        return match["before"] + (meant.pop() if len(meant) == 1 else letter)

    return LETTER.sub(written, text)
