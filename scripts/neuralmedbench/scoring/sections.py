"""Split a written answer into its labelled sections: `DIFFERENTIAL:`, `FINDINGS:`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from neuralmedbench.records.checklist import ONLY_IN_CHECKLISTS, PLACES

HEADERS = ("REASONING", "DIFFERENTIAL", "FINDINGS", "RATIONALE", "CONFIDENCE", "LESION", "LOCATION", "SIDE", "ANSWER")
OTHER_NAMES = {"DIFFERENTIAL DIAGNOSIS": "DIFFERENTIAL", "DIFFERENTIAL DIAGNOSES": "DIFFERENTIAL"}
LEADING = frozenset({"DIFFERENTIAL", "LESION", "ANSWER", "SEEN"})
"""Sections that begin an answer: if one is repeated, the answer starts again and only the last one counts. Sections before the first of
them count only in a checklist, where the differential follows the findings."""
KNOWN = (*HEADERS, *ONLY_IN_CHECKLISTS)
STRICT = re.compile(rf"({'|'.join((*KNOWN, *PLACES))}):[ \t]*(.*)")
LOOSE = re.compile(rf"({'|'.join((*OTHER_NAMES, *KNOWN, *PLACES))})\s*[*_`]*\s*:[ \t]*[*_`]*[ \t]*(.*)", re.IGNORECASE)
DECORATION = re.compile(r"^[\s>#*_`\-•]+")
NUMBERED = re.compile(r"\s*(\d{1,2})[.)]\s*(.*)")
INLINE_NUMBER = re.compile(r"(?<!\S)(?=\d{1,2}[.)]\s)")
PLACEHOLDER = re.compile(r"<[^<>]*>|<?(?:the )?(?:most likely|next|first|second) diagnosis>?", re.IGNORECASE)


@dataclass
class Sections:
    """Lines of each section by header, beginning with the text on the header's own line.

    `strict`: every header is written as requested, once, with nothing before the first.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)
    strict: bool = True

    def text(self, header: str) -> str:
        """Return the text of a section in one line; empty if it is absent."""
        return " ".join(" ".join(self.lines.get(header, [])).split())


def read_sections(text: str, headers: Collection[str] = HEADERS) -> Sections:
    """Split an answer into the requested sections; text before the first one is ignored."""
    sections = Sections()
    header = ""
    checklist, as_requested = "SEEN" in headers, set[str]()
    for line in text.splitlines():
        plain = STRICT.fullmatch(line.rstrip())
        match = plain or LOOSE.fullmatch(DECORATION.sub("", line).rstrip(" \t*_`"))
        name = _header(match[1]) if match else ""
        # `Differential diagnosis: ...` in the rationale of a checklist is prose if DIFFERENTIAL came before as requested
        if match is None or name not in headers or (checklist and plain is None and name in as_requested):
            if header:
                sections.lines[header].append(line)
            elif line.strip():
                sections.strict = False
            continue
        header = name
        sections.strict &= plain is not None
        as_requested |= {name} if plain else set()
        if header in sections.lines:
            sections.strict = False
        if header in LEADING and header in sections.lines:  # the answer starts again: forget what it replaces
            before = list(sections.lines)[: list(sections.lines).index(header)] if checklist else ()
            sections.lines = {name: sections.lines[name] for name in before}
        sections.lines[header] = [match.group(2)]
    return sections


def header_of(line: str) -> str:
    """Return the header that a line begins with, also if it is written with decoration; empty if there is none."""
    match = STRICT.fullmatch(line.rstrip()) or LOOSE.fullmatch(DECORATION.sub("", line).rstrip(" \t*_`"))
    return _header(match[1]) if match else ""


def _header(words: str) -> str:
    name = " ".join(words.upper().split())
    return OTHER_NAMES.get(name, name)


def clean(text: str) -> str:
    """Strip decoration, quotation marks and the full stop; a placeholder of the form (`<diagnosis>`) counts as empty, also without its brackets."""
    plain = re.sub(r"[*_`]{1,3}", "", text).strip(" \t\"'.,;")
    return "" if PLACEHOLDER.fullmatch(plain) else plain
