"""What a grader is shown of an answer: its own words and nothing that could be taken for more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape, unescape

from neuralmedbench.records.blinding import hide_names

MAX_CHARACTERS = 12_000
"""Longest candidate text that a grader is shown."""

_BRACKETS = str.maketrans(dict.fromkeys("＜﹤〈⟨❮❰‹", "<") | dict.fromkeys("＞﹥〉⟩❯❱›", ">"))
"""Signs that look like the brackets of a tag; quotation marks of other languages («») stay."""
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"') | dict.fromkeys("‘’‚", "'") | dict.fromkeys("–—−‐‑", "-"))
_KEPT = frozenset("\n\t")
_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: they change the look of a sign, and hundreds of them behind one can spell a hidden sentence."""


def cut(text: str) -> str:
    """Give the start of an answer, as long as a grader is shown; half a sign, which cannot be sent, becomes a question mark."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def escaped(text: str) -> str:
    """Make an answer unable to open or close a tag."""
    return escape(text, quote=False)


def blinded(text: str, names: Iterable[str]) -> str:
    """Give an answer as a blind grader is shown it, before it is escaped.

    Parameters
    ----------
    text : str
        The answer.
    names : iterable of str
        Names, title and id of the model that answered.

    Returns
    -------
    str
        Its start, without names of models, without signs that nobody sees (formatting, direction, private and control characters, by
        which an answer could speak to the grader alone), and with plain brackets in the place of look-alikes.
    """
    start = text[: 4 * MAX_CHARACTERS]  # far enough for what is taken out of it, and no longer: an answer may have a million signs
    return cut(hide_names("".join(filter(_is_seen, start)).translate(_BRACKETS), names)[0])


def holds(text: str, quote: str) -> bool:
    """Whether an answer holds the words that a grader quotes.

    Parameters
    ----------
    text : str
        The answer as it was shown.
    quote : str
        The quoted words.

    Returns
    -------
    bool
        True when they stand there word for word; case, blank space, kinds of quotation marks and dashes, escapes and the dots of an
        ellipsis at the ends make no difference. Words without a letter or digit are no quote.

    Examples
    --------
    >>> holds("There is a mass in the left insula.", "a mass in the Left insula")
    True
    >>> holds("There is a mass in the left insula.", "a mass in the right insula")
    False
    """
    wanted = _plain(quote).strip(" .…\"'")
    return bool(re.search(r"\w", wanted)) and wanted in _plain(text)


def _is_seen(sign: str) -> bool:
    return sign in _KEPT or not (unicodedata.category(sign).startswith("C") or sign in _SELECTORS)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", unescape(text)).translate(_QUOTES).casefold().split())
