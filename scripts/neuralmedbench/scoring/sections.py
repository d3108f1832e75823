"""The labelled sections of a written answer: `DIFFERENTIAL:`, `FINDINGS:` and so on."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

HEADERS = ("REASONING", "DIFFERENTIAL", "FINDINGS", "RATIONALE", "CONFIDENCE", "LESION", "LOCATION", "SIDE", "ANSWER")
OTHER_NAMES = {"DIFFERENTIAL DIAGNOSIS": "DIFFERENTIAL", "DIFFERENTIAL DIAGNOSES": "DIFFERENTIAL"}
LEADING = frozenset({"DIFFERENTIAL", "LESION", "ANSWER"})
"""Sections with which an answer begins; when one comes again the answer begins again and only the last counts."""

STRICT = re.compile(rf"({'|'.join(HEADERS)}):[ \t]*(.*)")
LOOSE = re.compile(rf"({'|'.join((*OTHER_NAMES, *HEADERS))})\s*[*_`]*\s*:[ \t]*[*_`]*[ \t]*(.*)", re.IGNORECASE)
DECORATION = re.compile(r"^[\s>#*_`\-•]+")
THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
MAX_CHARACTERS = 200_000


@dataclass
class Sections:
    """Sections of one answer.

    Attributes
    ----------
    lines : dict of str to list of str
        Lines of each section, the one beside the header first.
    strict : bool
        Whether every header stands as asked, once, with nothing before the first.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    strict: bool = True

    def text(self, header: str) -> str:
        """Words of a section in one line; empty when it is absent."""
        return " ".join(" ".join(self.lines.get(header, [])).split())


def read_sections(text: str, headers: Collection[str] = HEADERS) -> Sections:
    """Cut an answer into its sections; text in front of the first one is passed over, thoughts between tags too.

    Parameters
    ----------
    text : str
        The answer.
    headers : collection of str
        Sections that were asked for: in a free answer a line that begins with `Findings:` is a line of the answer.

    Returns
    -------
    Sections
        By header.
    """
    sections = Sections()
    header = ""
    for line in THINKING.sub("", text[:MAX_CHARACTERS]).splitlines():
        plain = STRICT.fullmatch(line.rstrip())
        found = plain or LOOSE.fullmatch(DECORATION.sub("", line).rstrip(" \t*_`"))
        name = _header(found[1]) if found else ""
        if found is None or name not in headers:
            if header:
                sections.lines[header].append(line)
            elif line.strip():
                sections.strict = False
            continue
        header = name
        sections.strict &= plain is not None
        if header in sections.lines:
            sections.strict = False
        if header in LEADING and header in sections.lines:
            sections.lines = {}
        sections.lines[header] = [found.group(2)]
    return sections


def _header(words: str) -> str:
    name = " ".join(words.upper().split())
    return OTHER_NAMES.get(name, name)
