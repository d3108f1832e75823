"""The answer key of a simulated patient: read and write it, and search texts for its planted strings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from neuralmedbench.files.json_files import read_json_record, write_json
from neuralmedbench.records.answer_key import AnswerKey

NAME = "answer_key.json"
SEPARATORS = re.compile(r"[\W_]+")
DIGEST = re.compile(rb"(?<![0-9A-Za-z])(?=[0-9]{0,63}[a-f])(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{30})(?![0-9A-Za-z])")
"""A hexadecimal digest (also without the two digits of its folder): removed, because some contain a short number by chance."""
LONG = 5
"""A string of at least so many letters and digits is found with any separators between them."""


def read_answer_key(path: Path) -> AnswerKey:
    """Read an answer key; DataError if it is absent or invalid (its values are not repeated)."""
    return read_json_record(path, AnswerKey, remedy="make the phantom again")


def write_answer_key(path: Path, key: AnswerKey) -> None:
    """Write an answer key that only its owner can read."""
    from dataclasses import asdict

    write_json(path, asdict(key), private=True)


def plain(text: str) -> str:
    """Return text in lower case without accents, combining marks and full-width forms; the length may change."""
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _combining().sub("", spread)


@cache
def _combining() -> re.Pattern[str]:
    """Return a pattern of all combining marks of the basic multilingual plane."""
    return re.compile(f"[{''.join(chr(code) for code in range(0x10000) if unicodedata.combining(chr(code)))}]")


def letters_and_digits(text: str) -> str:
    """Return only the letters and digits of `plain` text."""
    return SEPARATORS.sub("", plain(text))


@lru_cache(maxsize=1 << 16)
def contains_planted(text: str, planted: str) -> bool:
    """Return whether a text contains a planted string, regardless of case, accents and separators.

    Examples
    --------
    >>> contains_planted("t2_flair_VANDER-MEER4821", "Vandermeer"), contains_planted("ADVISED", "J.V."), contains_planted("typed by JV", "J.V.")
    (True, False, True)
    """
    wanted = letters_and_digits(planted)
    if not wanted:
        return False
    if len(wanted) >= LONG or not wanted.isascii():
        return wanted in letters_and_digits(text)
    spelled = r"[\W_]{0,2}".join(map(re.escape, wanted))
    return re.search(rf"(?<![^\W_]){spelled}(?![^\W_])", plain(text)) is not None


def find_planted(text: str, strings: Iterable[str]) -> list[str]:
    """Return the planted strings that a text contains.

    Parameters
    ----------
    text : str
        Text from `searchable`.
    strings : iterable of str
        The planted strings; case, accents and up to three separators between words are ignored.

    Returns
    -------
    list of str
        Those in the text. Numbers are found as whole numbers, words anywhere.

    Examples
    --------
    >>> find_planted(plain("call 555.010.4482"), ["(555) 010-4482", "0104"])
    ['(555) 010-4482']
    """
    letters = SEPARATORS.sub("", text)
    # a plain search first: the pattern is slow on megabytes
    return [
        value for value in strings if (wanted := letters_and_digits(value)) and wanted in letters and planted_pattern(value).search(text)
    ]


@lru_cache(maxsize=4096)
def planted_pattern(value: str) -> re.Pattern[str]:
    """Return the pattern of a planted string in `plain` text: joined words anywhere, or spaced letters as a separate word."""
    words = re.findall(r"[^\W_]+", plain(value))
    # a number must not be part of a longer one
    before, after = (r"(?<!\d)" if words[0][0].isdigit() else ""), (r"(?!\d)" if words[-1][-1].isdigit() else "")
    joined = before + r"[\W_]{0,3}".join(map(re.escape, words)) + after
    letters = "".join(words)
    if len(letters) < LONG or not letters.isalpha():
        return re.compile(joined)
    apart = r"[\W_]{0,2}".join(map(re.escape, letters))
    return re.compile(rf"{joined}|(?<![^\W_]){apart}(?![^\W_])")


def searchable(content: bytes) -> str:
    r"""Decode bytes to `plain` text in every encoding of headers and tables: UTF-8, Latin-1, UTF-16, and JSON with \u escapes.

    Parameters
    ----------
    content : bytes
        Any file, uncompressed.

    Returns
    -------
    str
        All decodings, one after another, without digests.
    """
    content = DIGEST.sub(b" ", content)
    texts = [content.decode("utf-8", "replace"), content.decode("latin-1")]
    if b"\0" in content:  # UTF-16, from an even or an odd offset
        texts += [content[start:].decode("utf-16-le", "replace") for start in (0, 1)]
        texts += [content[start:].decode("utf-16-be", "replace") for start in (0, 1)]
    if b"\\u" in content:
        texts.append(re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), texts[0]))
    return plain("\n".join(dict.fromkeys(texts)))
