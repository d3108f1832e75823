"""Decode plain text files of unknown encoding, and refuse other files."""

from __future__ import annotations

import codecs
import re
from enum import StrEnum

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
DOCUMENTS = (b"%PDF", b"PK\x03\x04", b"{\\rtf", b"\xd0\xcf\x11\xe0", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x1f\x8b", b"<?xml")
"""First bytes of documents and pictures, which are not plain text."""
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
MAX_CONTROL_SHARE, MAX_FOREIGN_SHARE, ZEROS_OF_UTF16 = 0.01, 0.3, 0.3
TWICE = re.compile("Ã[\u0080-\u00bf]|â€|Â[\u00a0-\u00bf]")
"""Typical sequences of UTF-8 that was read as Windows-1252 and stored as UTF-8 again."""


class Unreadable(StrEnum):
    """Why bytes are not plain text; persisted in counts."""

    BINARY = "binary"
    DOCUMENT = "document"
    ENCODING = "encoding"


class UnreadableTextError(Exception):
    """Bytes are not plain text, with the `reason`."""

    def __init__(self, reason: Unreadable) -> None:
        super().__init__(reason)
        self.reason = reason


UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters except tab and line ends, direction marks, lone surrogates, and invisible tag characters."""


def visible(text: str) -> str:
    r"""Replace invisible characters by their code points.

    Examples
    --------
    >>> visible("left\u202ethgir")
    'left⟨U+202E⟩thgir'
    """
    return UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def for_terminal(text: str) -> str:
    r"""Return a text as a terminal may show it: terminal codes and direction marks are visible, and no line overwrites itself.

    Examples
    --------
    >>> for_terminal("all\x1b[2K\rnone")
    'all⟨U+001B⟩[2K\nnone'
    """
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def decode_text(content: bytes) -> str:
    """Read the bytes of a text file.

    Parameters
    ----------
    content : bytes
        UTF-8, UTF-16 or UTF-32 (with or without a mark at the start), Windows-1252 or Latin-1.

    Returns
    -------
    str
        The text, with line feeds only and without zero bytes at its end; empty for an empty file.

    Raises
    ------
    UnreadableTextError
        If it is a document, has control characters, or is in an encoding that cannot be determined.
    """
    if content.startswith(DOCUMENTS):
        raise UnreadableTextError(Unreadable.DOCUMENT)
    text, guessed = _decode(content)
    text = text.rstrip("\0")
    if len(CONTROL.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise UnreadableTextError(Unreadable.BINARY)
    letters = [letter for letter in text if letter.isalpha()]
    # a wrong guess shows as many letters beyond ASCII
    if guessed and sum(not letter.isascii() for letter in letters) > MAX_FOREIGN_SHARE * len(letters):
        raise UnreadableTextError(Unreadable.ENCODING)  # probably a single-byte encoding of another script
    if TWICE.search(text):
        text = _decoded_once_more(text)
    return CONTROL.sub(" ", text).replace("\r\n", "\n").replace("\r", "\n")


def _decode(content: bytes) -> tuple[str, bool]:
    """Return the text, and whether its encoding is a guess (one byte per letter)."""
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
    """Detect UTF-16 without a byte order mark: every second byte of Latin letters is zero. Empty for other encodings."""
    # little endian has zeros at odd offsets, big endian at even ones
    pairs = len(content) // 2
    if not pairs or b"\0" not in content or len(content) % 2:
        return ""
    even, odd = content[0::2].count(0), content[1::2].count(0)
    if odd > ZEROS_OF_UTF16 * pairs and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if even > ZEROS_OF_UTF16 * pairs and odd < even / 10 else ""


def _decoded_once_more(text: str) -> str:
    """Undo one wrong decoding as Windows-1252, if the whole text allows it."""
    try:
        return text.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return text


START_OF_TEXT, START_OF_LINE = 400_000, 300
"""Characters of a text and of a line that are judged: a protocol of a scanner repeats its form."""
VALUE_LINE = re.compile(r"[^=]{1,60}=\s*\S.{0,120}|\s*\"[^\"]+\"\s*:.*|\s*[]{}[(),]+\s*")
"""A name and its value, with an equals sign or as in JSON."""
PROGRAM_LINE = re.compile(
    r"""\W*[0-9a-f]{4},\ ?[0-9a-f]{4}\b.*                             # an element of a DICOM file
    |\s*\w*[a-z]\w*(?:_\w+|\[\d+\]|\w\.[a-z]\w+)\S*(?:[\s:].*)?         # a variable, its value behind it
    |.*\b\w+\[\d+\]:.*|.*(?<![\w<])(?:[a-z]:)?\.{0,2}(?:[\\/][\w.+-]+){2,}.*  # a process, a path
    |\W*(?:info|debug|trace|warning|warn|error|fatal)\b.*|.*\bdcm2niix?\b.*|.*\s--\w+[=\s].*
    |(?:found\ \d|convert\ \d|conversion\ required|compression\ will\ be).*
    |\#(?!\#{0,5}\ [\w\ ,:&/()-]{1,60}$).*|-{4,}.*|\+{4,}.*|<[^>]*>.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
PROGRAM = re.compile(
    r"\bdcm2niix?\b|\b(?:mri|fs|ants|afni)_?[a-z]+(?:\.bin)?\s+(?:-|/|\S+/)|#@#|\brecon-all\b|--\w+=\w|\bFREESURFER_HOME\b|\bFSLDIR\b",
    re.IGNORECASE,
)
"""What a program writes into its log: its name, its options."""
DAY_OR_TIME = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}|\d{1,2}:\d\d(?::\d\d)?|\d+/\d+")
NUMBER = re.compile(r"(?<![A-Za-z\d.])[+-]?\d[\d.]*(?:[eE][+-]?\d+)?")
WORD = re.compile(r"[^\W\d_]{2,}")
SHORT_VALUE = re.compile(r"\s*[^:\t]{2,50}?(?::|\t|\s{2,})\s*\S+(?:\s\S+){0,3}\s*")
CLINICAL = re.compile(
    r"(?:[mµu]?mol|[mµun]?g|[mk]?IU|U|mEq|cells?)\s?/\s?(?:d?L|ml)\b|\bmm\s?Hg\b|10\^?9/L|\b\d+\s?(?:mg|mcg|µg)\b"
    r"|\b(?:BP|HR|RR|SpO2|GCS|NIHSS|MMSE|MoCA|mRS|EDSS|WBC|RBC|CRP|INR|TSH|Hb)\b"
    r"|^\W*\d{1,4}([./-])\d{1,2}\1\d{1,4}\b(?!.{0,3}\d\d:\d\d:\d\d.*[]\[:=])"
)
"""Units of a laboratory, doses, vital signs, scores, and a day at the start of a line that is not a log's."""
SCANNER_WORD = re.compile(
    r"\b(?:T[REI]|FOV|SNR|SAR|PAT|SENSE|slab|voxel|matrix|bandwidth|gradient|kVp?|mAs|pitch|kernel|collimation|B0|B1|averages|GRAPPA|readout"
    r"|saturation|(?:acquisition|coil|echo|flip|magnetic|phase|recon|repetition|scan|sequence|shim|slice)\w*)\b",
    re.IGNORECASE,
)
MIN_LINES, MIN_NUMBERS, MIN_PROSE_WORDS = 15, 6, 6
MAX_PROSE, MAX_PROSE_OF_LOG, MAX_CLINICAL = 0.05, 0.3, 0.1


def is_scanner_text(text: str) -> bool:
    """Return whether a text was written by a scanner or a program: a protocol, a log, a page of numbers; never a letter or laboratory sheet.

    Judged by form: most lines give a value, a path or numbers, nearly none is a sentence, and few have a day, a dose, a vital sign or a unit
    of a laboratory. Names with short values count only in a text about a scan.

    Examples
    --------
    >>> is_scanner_text("0 1000 1000 1000 1000 1000 1000"), is_scanner_text("Sodium 138 mmol/L, potassium 4.1 mmol/L. Walks with a stick.")
    (True, False)
    """
    lines = [line[:START_OF_LINE] for line in text[:START_OF_TEXT].splitlines() if line.strip()]
    prose = {line for line in lines if _is_prose(line) and not PROGRAM_LINE.fullmatch(line)}
    clinical = sum(CLINICAL.search(line) is not None for line in lines)
    of_program = any(PROGRAM.search(line) for line in lines)
    most_prose = MAX_PROSE_OF_LOG if of_program else MAX_PROSE
    if sum(line in prose for line in lines) > most_prose * len(lines) or clinical > MAX_CLINICAL * len(lines):
        return False
    numbers, words = map(sum, zip(*map(_numbers_and_words, lines), strict=True)) if lines else (0, 0)
    if numbers >= MIN_NUMBERS and words <= numbers / 10:
        return True
    of_scan = of_program or sum(SCANNER_WORD.search(line) is not None for line in lines) > MAX_CLINICAL * len(lines)
    values = sum(_gives_value(line, of_scan=of_scan) for line in lines if line not in prose)
    return values > len(lines) / 2 and (of_program or len(lines) >= MIN_LINES)


def _numbers_and_words(line: str) -> tuple[int, int]:
    """Count the numbers and the words of a line; days, times and fractions are neither."""
    bare = DAY_OR_TIME.sub(" ", line)
    return len(NUMBER.findall(bare)), len(WORD.findall(bare))


def _gives_value(line: str, *, of_scan: bool) -> bool:
    """Return whether a line has the form of a program's: numbers, a variable, a path; `of_scan`: or a name and a short value."""
    numbers, words = _numbers_and_words(line)
    if numbers > max(3, 2 * words) or PROGRAM_LINE.fullmatch(line):
        return True
    return of_scan and (VALUE_LINE.fullmatch(line) or SHORT_VALUE.fullmatch(line)) is not None


def _is_prose(line: str) -> bool:
    """Return whether a line is part of a sentence, in any script."""
    letters = sum(letter.isalpha() for letter in line)
    marks = sum(not letter.isspace() for letter in line)
    many = (
        len(WORD.findall(line)) >= MIN_PROSE_WORDS or sum(letter > "\u0370" and letter.isalpha() for letter in line) >= 2 * MIN_PROSE_WORDS
    )
    return many and letters > marks * 3 / 4
