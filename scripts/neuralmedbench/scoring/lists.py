"""Find the lists of an answer and their entries, and say whether the words before a list introduce it as one of diagnoses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

SIGNS = "-•*+–‣◦●▪"
BULLETS = tuple(SIGNS)
NUMBERED = re.compile(
    rf"(?:[{re.escape(SIGNS)}>]\s++)?(?P<heading>#{{1,6}}(?=[ \t*_]))?[ \t]*+[*_`]{{0,3}}(?i:(?:diagnosis|disease|condition|candidate|rank) (?=\d{{1,2}}:))?"
    r"(?:[(\[<]\+?(?P<inner>\d{1,2})[)\]>]|(?P<sign>[+#]?) ?(?P<number>\d{1,2})(?:[.)](?![\d,])|\ufe0f?\u20e3|:(?=\s)|[ \t]+[-–—](?=\s)|(?<=[+#]\d),?(?=\s|$)))"
    r"[*_`:]{0,3}[ \t]*(?P<words>.*)"
)
"""Marks of an entry or a heading: `1.`, `1)`, `(1)`, `#1`, `+1.`, `**1. X**`, `### 1. X`, `Disease 1:`."""
UNNUMBERED = re.compile(
    rf"(?:(?P<bullet>[{re.escape(SIGNS)}])\s+|(?P<heading>#{{1,6}})[ \t]*(?=\S)|(?P<bold>\*\*|__)(?=[^*_\n]{{2,120}}(?P=bold)))(?P<words>.*)"
)
BEFORE_A_NUMBER = r"(?<!\b[Tt]ype)(?<!\b[Gg]rade)(?<!\b[Ss]tage)(?<!\b[Cc]lass)"

NOUNS = re.compile(
    r"\b(?:(?P<diagnoses>diagnos[ei]s|d?dx|differentials?|conditions?|diseases?|disorders?|possibilit(?:y|ies)|causes?|candidates?"
    r"|(?:diagnostic|leading|main|possible|top)[ \t]+considerations?|a?etiolog(?:y|ies)|patholog(?:y|ies)|syndromes?|illness(?:es)?|explanations?|entit(?:y|ies))"
    r"|findings?|features?|symptoms?|signs?|facts?|reason\w*|rationale|evidence|support\w*|criteria|tests?|testing|exam\w*|investigations?"
    r"|stud(?:y|ies)|work-?ups?|imaging|labs?|laborator\w+|treatments?|manage\w*|therap\w+|medications?|steps?|questions?|points?"
    r"|observations?|considerations?|factors?|history|limitations?|references?|notes?|recommendations?|approach|epidemiology|pathophysiology|mechanisms?|prognosis|clues?|profile)\b",
    re.IGNORECASE,
)
"""The first of these nouns says what a list holds."""
RANKS = re.compile(
    r"\b(?:likel(?:y|ihood)|possib(?:le|ly)|probab\w+|top[ \t]+\w+|(?:patient|it|this)[ \t](?:may|might|could)[ \t](?:have|be)|suffering[ \t]from"
    r"|list(?=\W*$))\b",
    re.IGNORECASE,
)
"""Words that introduce diagnoses where no noun does."""
DENIES = re.compile(
    r"\b(?:exclu\w+|rul(?:ed?|ing)[ \t-]out|less|(?<!\bto[ \t])least|unlikely|not(?![ \t](?:just|only|an?|necessarily|limited|exhaustive))|cannot|against|other|alternativ\w+|additional|requir\w+|confirm\w*"
    r"|establish\w*|reject\w*|discard\w*|wrong|incorrect)\b|n't\b|\b(?:by|on|for|because|produce|explain)\W*$",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"\((?![^()]*(?:exclu|ruled|unlikely))[^()]*\)|[*_`#>]+|\b(?:my|these|the above)[ \t]+(?:findings|observations|notes)(?=\W*$)|\bpatient's[ \t]+(?:medical[ \t]+)?condition\b"
    r"|\b(?:in[ \t]+)?other[ \t]+words\b",
    re.IGNORECASE,
)
"""Brackets, decoration, and words that would be taken for the noun."""
OPENER = re.compile(
    r"^\W*(?:based|given|considering|with|in[ \t](?:view|light)|due|because|after|from|to|taking|looking|as|since|although|while|for|in|on|upon"
    r"|following|however|therefore|overall|if|when|once)\b",
    re.IGNORECASE,
)
"""A sentence that begins with a circumstance, up to a comma."""
LEADS_IN = re.compile(
    r"\b(?:here[ \t](?:are|is)|the[ \t]following|several|some|multiple|various|a[ \t](?:few|number[ \t]of))\b", re.IGNORECASE
)
HERE = re.compile(r"\bhere(?:'s|[ \t](?:are|is))\b", re.IGNORECASE)
"""Words from which a sentence says what follows, whatever comes before and behind it."""
ACCOMPANIED = re.compile(r",?[ \t](?:with|including|and[ \t]their)\b", re.IGNORECASE)
"""What a list has beside its diagnoses: `diseases with symptoms that match or do not match`."""
INCLUDING = re.compile(r"\b(?:including|such as|like)\W*$", re.IGNORECASE)
"""Behind these words the last noun says what a list holds, not the first."""
MAX_LINES = 12
"""Lines above a list that are looked at."""
PARAGRAPH_END = re.compile(r"\n\s*\n")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*])|\n")


class LineMark(NamedTuple):
    """The mark of a line: its kind (`1` with its sign, a bullet, `#`, `**`; empty: none), number, indent, and the words behind it."""

    kind: str
    number: int
    indent: int
    words: str


class AnswerList(NamedTuple):
    """Words of the entries of a list by rank, and the line behind it."""

    entries: list[str]
    end: int


def mark_of(line: str) -> LineMark:
    """Return the mark of a line.

    Examples
    --------
    >>> mark_of("**2) Glioma**: a mass").kind, mark_of("+1. Glioma").number, mark_of("  - Glioma").indent, mark_of("1.5 cm").kind
    ('1', 1, 2, '')
    """
    plain = line.lstrip()
    indent = len(line) - len(plain)
    if match := NUMBERED.fullmatch(plain):
        return LineMark(f"1{match['heading'] or ''}{match['sign'] or ''}", int(match["number"] or match["inner"]), indent, match["words"])
    if match := UNNUMBERED.fullmatch(plain):
        return LineMark(match["bullet"] or match["heading"] or "**", 0, indent, match["words"])
    return LineMark("", 0, indent, "")


def is_heading(mark: LineMark) -> bool:
    """Return True if a line is a heading, or begins in bold, and has no number."""
    return mark.kind.startswith(("#", "**"))


def list_from(lines: Sequence[str], marks: Sequence[LineMark], start: int) -> AnswerList:
    """Return the list that begins in a line: all lines with the same kind of mark, and no deeper one.

    A number that comes again begins another list, and so do words at the margin of bullets. Sub-bullets and explanations belong to the entry
    above them.
    """
    first = marks[start]
    entries = {first.number: _words_of(lines, marks, start)}
    last = start
    for row in range(start + 1, len(lines)):
        mark = marks[row]
        if mark.kind == first.kind and mark.indent <= first.indent:
            if first.number and mark.number in entries:
                break
            entries[mark.number or row] = _words_of(lines, marks, row)
            last = row
        elif first.kind in BULLETS and lines[row].strip() and mark.indent <= first.indent and mark.kind not in BULLETS:
            break
    if first.number and len(entries) == 1:
        entries = _in_one_line(first)
    end = last + 1
    in_paragraph = True
    while end < len(lines) and (_belongs(lines[end], marks[end], first) or (in_paragraph and not marks[end].kind)):
        in_paragraph &= bool(lines[end].strip())
        end += 1
    return AnswerList([words for _, words in sorted(entries.items())], end)


def _words_of(lines: Sequence[str], marks: Sequence[LineMark], row: int) -> str:
    """Return the words of an entry, or those of the next line if its mark stands alone."""
    return marks[row].words or (lines[row + 1] if row + 1 < len(lines) else "")


def _belongs(line: str, mark: LineMark, first: LineMark) -> bool:
    """Return True if a line behind the last entry is a part of it: empty, deeper, or a bullet below a number."""
    return not line.strip() or mark.indent > first.indent or (mark.kind in BULLETS and mark.kind != first.kind)


def _in_one_line(first: LineMark) -> dict[int, str]:
    """Return the entries of a list in one line: `1. Glioma 2. Abscess`."""
    entries, number, rest = {}, first.number, first.words
    sign = re.escape(first.kind.lstrip("1#"))
    while match := re.search(rf"{BEFORE_A_NUMBER}\s{sign}\(?{number + 1}[.)]\s+(?=\S)", rest):
        entries[number] = rest[: match.start()]
        number, rest = number + 1, rest[match.end() :]
    return {**entries, number: rest}


def introduces(above: Sequence[str]) -> bool | None:
    """Return True if the lines above a list introduce diagnoses, False if they introduce something else or deny them, None if neither.

    The last two sentences decide, and the heading above them if they say nothing.

    Examples
    --------
    >>> introduces(["Based on the imaging findings, the top differential diagnoses are:"])
    True
    >>> introduces(["Findings that support this diagnosis:"]), introduces(["Diagnoses that were excluded:"]), introduces(["Let me begin."])
    (False, False, None)
    """
    text = "\n".join(above[-MAX_LINES:])
    sentences = SENTENCE_END.split(PARAGRAPH_END.split(text.strip())[-1])[-2:]
    headings = [line for line in above[-MAX_LINES:] if is_heading(mark_of(line))][-1:]
    for place, sentence in enumerate(reversed([*headings, *sentences])):
        plain = " ".join(ASIDE.sub(" ", sentence).split())
        verdict = _names_diagnoses(plain)
        # what ends with a full stop says something of the diagnosis, unless it points ahead
        if verdict and not place and plain.endswith(".") and not LEADS_IN.search(plain):
            return None
        if verdict is not None:
            return verdict
    return None


def _names_diagnoses(sentence: str) -> bool | None:
    """Classify one sentence: its first noun decides, from where it says what follows."""
    starts = [sentence]
    if here := HERE.search(sentence):
        starts = [sentence[here.start() :]]
    elif OPENER.match(sentence):
        commas = [match.end() for match in re.finditer(r",\s", sentence)]
        starts = [sentence[end:] for end in reversed(commas)] or starts
    for start in starts:
        lead = LEADS_IN.search(start)
        noun = (NOUNS.search(start, lead.end()) if lead else None) or NOUNS.search(start)
        accompanied = ACCOMPANIED.search(start, noun.end()) if noun else None
        if DENIES.search(start[: accompanied.start()] if accompanied else start):
            return False
        if noun and INCLUDING.search(start):
            *_, noun = NOUNS.finditer(start)
        if noun:
            return noun["diagnoses"] is not None
    return True if RANKS.search(sentence) else None
