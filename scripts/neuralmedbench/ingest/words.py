"""The words of headers and file names, brought into one plain form."""

from __future__ import annotations

import re
import unicodedata

SPELLED_OUT = (
    (re.compile(r"\bw\s*/\s*wo\b|\bw\s*/?\s*(?:and|&|\+)\s*w\s*/?\s*o\b"), " with without "),
    (re.compile(r"\bw\s*/\s*o\b"), " without "),
    (re.compile(r"\bw\s*/(?=\s|[a-z])"), " with "),
    (re.compile(r"\bs\s*/\s*c\b"), " sin contraste "),
    (re.compile(r"\bc\s*/\s*c\b"), " con contraste "),
    (re.compile(r"(?<![a-z0-9])c\s*\+(?![a-z0-9])|\+\s*(?:c|k)(?![a-z0-9])"), " cplus "),
    (re.compile(r"(?<![a-z0-9])c\s*-(?![a-z0-9])|(?:(?<=\s)|^)-\s*c(?![a-z0-9])"), " cminus "),
)
"""Signs that carry meaning, before signs are taken out."""


def plain_words(*parts: str) -> str:
    """Lower-case words separated by single spaces, without accents; of the signs, `*`, `/` and `+` before a word are kept.

    Examples
    --------
    >>> plain_words("AX_T1-SE", "W/O", "+C")
    'ax t1 se without cplus'
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", " ".join(parts))
    text = unicodedata.normalize("NFKD", spaced.replace("_", " ")).lower()
    text = unicodedata.normalize("NFC", "".join(letter for letter in text if not unicodedata.combining(letter)))
    text = re.sub(r"т(?=\s?[12])", "t", text).translate({ord("ł"): "l", ord("ø"): "o", ord("ß"): "ss", ord("ı"): "i"})
    for signs, words in SPELLED_OUT:
        text = signs.sub(words, text)
    # a sign of another script beside a Latin word is a word of its own
    text = re.sub(r"(?<=[\x20-\x7e])(?=[\u3000-\uffff])|(?<=[\u3000-\uffff])(?=[\x21-\x7e])", " ", text)
    return re.sub(r" +", " ", re.sub(r"[^\w*+/ ]|_", " ", text)).strip()
