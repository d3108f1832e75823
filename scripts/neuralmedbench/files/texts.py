"""Bytes of a plain text file to its letters, whatever wrote it; what is no text is said to be none."""

from __future__ import annotations

import codecs
import re
from enum import StrEnum

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
DOCUMENTS = (b"%PDF", b"PK\x03\x04", b"{\\rtf", b"\xd0\xcf\x11\xe0", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x1f\x8b", b"<?xml")
"""How files begin that hold letters, but not as plain text."""
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
MAX_CONTROL_SHARE, MAX_FOREIGN_SHARE, ZEROS_OF_UTF16 = 0.01, 0.3, 0.3
TWICE = re.compile("Ã[\u0080-\u00bf]|â€|Â[\u00a0-\u00bf]")
"""What UTF-8 looks like that was taken for Windows-1252 and stored as UTF-8 again."""


class Unreadable(StrEnum):
    """Why bytes are no plain text; stands in counts."""

    BINARY = "binary"
    DOCUMENT = "document"
    ENCODING = "encoding"


class UnreadableTextError(Exception):
    """Bytes are no plain text, for one `reason`."""

    def __init__(self, reason: Unreadable) -> None:
        super().__init__(reason)
        self.reason = reason


def decode_text(content: bytes) -> str:
    """Read the bytes of a text file.

    Parameters
    ----------
    content : bytes
        UTF-8, UTF-16 or UTF-32 (with or without a mark at the start), Windows-1252 or Latin-1.

    Returns
    -------
    str
        The text, with line feeds only; empty for an empty file. Zero bytes at its end are no part of it.

    Raises
    ------
    UnreadableTextError
        If it is a document of a program, holds control characters, or is in an encoding that cannot be told.
    """
    if content.startswith(DOCUMENTS):
        raise UnreadableTextError(Unreadable.DOCUMENT)
    text, guessed = _decode(content)
    text = text.rstrip("\0")
    if len(CONTROL.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise UnreadableTextError(Unreadable.BINARY)
    letters = [letter for letter in text if letter.isalpha()]
    if guessed and sum(not letter.isascii() for letter in letters) > MAX_FOREIGN_SHARE * len(letters):
        raise UnreadableTextError(Unreadable.ENCODING)  # letters of another script that were stored one byte each look like this
    if TWICE.search(text):
        text = _decoded_once_more(text)
    return CONTROL.sub(" ", text).replace("\r\n", "\n").replace("\r", "\n")


def _decode(content: bytes) -> tuple[str, bool]:
    """Give the text, and whether its encoding of one byte a letter is a guess."""
    encoding = next((name for mark, name in BOMS if content.startswith(mark)), "") or _utf16_by_zeros(content)
    try:
        return content.decode(encoding or "utf-8"), False
    except UnicodeDecodeError:
        if encoding:
            raise UnreadableTextError(Unreadable.ENCODING) from None
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text, True


def _utf16_by_zeros(content: bytes) -> str:
    """Tell UTF-16 without a mark: every second byte of Latin letters is zero."""
    pairs = len(content) // 2
    if not pairs or b"\0" not in content or len(content) % 2:
        return ""
    even, odd = content[0::2].count(0), content[1::2].count(0)
    if odd > ZEROS_OF_UTF16 * pairs and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if even > ZEROS_OF_UTF16 * pairs and odd < even / 10 else ""


def _decoded_once_more(text: str) -> str:
    try:
        return text.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return text
