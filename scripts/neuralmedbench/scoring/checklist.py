"""Read a checklist: its sections, and its candidates with the evidence for and against each; evidence is never a candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuralmedbench.records.checklist import ONLY_IN_CHECKLISTS, PLACES, SECTIONS, with_places
from neuralmedbench.records.items import Family
from neuralmedbench.records.scores import Evidence
from neuralmedbench.scoring.sections import DECORATION, INLINE_NUMBER, NUMBERED, Sections, clean, read_sections
from neuralmedbench.scoring.structured_answer import read_json

REASONING = "REASONING"
BAR = re.compile(r"\s*[|｜]\s*")
LABEL = r"[*_]{0,3}(?:for|against)[*_]{0,3}\s{0,3}[:：]"
"""Repeats in these patterns are bounded: a hostile answer of 200,000 blanks must not take minutes."""
MARK, PLACE = (
    re.compile(rf"^[ \t>#*_`\-•]*({'|'.join(names)})\s{{0,3}}[*_`]{{0,3}}\s{{0,3}}:", re.MULTILINE | re.IGNORECASE)
    for names in (ONLY_IN_CHECKLISTS, PLACES)
)
LABELLED_BAR = re.compile(rf"[|｜]\s*{LABEL}", re.IGNORECASE)
NAME_ENDS = re.compile(rf"\s*[|｜]\s*|(?:^|[\s(\[,;.–—-]{{1,4}})(?={LABEL})", re.IGNORECASE)
PART_ENDS = re.compile(rf"\s*[|｜]\s*|[\s;,.]{{1,4}}(?={LABEL})", re.IGNORECASE)
PART = re.compile(r"[*_]{0,3}(for|against)[*_]{0,3}\s{0,3}[:：](.*)", re.IGNORECASE)
AS_REQUESTED = re.compile(r"[^|｜]+ \| for: [^|｜]+ \| against: [^|｜]+")


@dataclass
class ChecklistCandidate:
    """One line of a differential: its number (0: none), the name as written, the text after it, and True if written as requested."""

    number: int
    name: str
    rest: list[str] = field(default_factory=list)
    as_requested: bool = False

    @property
    def evidence(self) -> Evidence:
        """Evidence for and against it; unlabelled parts count as for, then against, by their order."""
        by_label: dict[str, list[str]] = {"for": [], "against": []}
        labels = iter(("for", "against"))
        for part in (part for rest in self.rest for part in PART_ENDS.split(rest)):
            labelled = PART.fullmatch(part.strip())
            label = labelled[1].lower() if labelled else next(labels, "against") if part.strip() else ""
            words = clean(labelled[2] if labelled else part)
            if label and words:
                by_label[label].append(words)
        return Evidence("; ".join(by_label["for"]), "; ".join(by_label["against"]))


def is_checklist(text: str) -> bool:
    """Return True if an answer contains a section that only checklists have, both sections of places, or labelled evidence after a bar.

    A single such header in lower case is not enough: `Seen:` may begin a sentence of findings.
    """
    both = {match[1].upper() for match in PLACE.finditer(text)} == set(PLACES)
    return _has(MARK, text) or both or bool(LABELLED_BAR.search(text))


def _has(marks: re.Pattern[str], text: str) -> bool:
    names = {match[1] for match in marks.finditer(text)}
    return any(name.isupper() for name in names) or len({name.upper() for name in names}) > 1


def may_be_checklist(text: str) -> bool:
    """Return True if `read_checklist` might find a checklist; much cheaper."""
    return is_checklist(text) or text.lstrip().startswith("{")


def read_checklist(text: str, family: Family) -> Sections | None:
    """Split a checklist into the sections of its family; None if the answer is not a checklist and is read in the short form.

    A JSON object with exactly the keys of the answer schema is a checklist too. A line with any other header belongs to the section above.
    The sections of places count if one of them is there as a header: in capitals, or both.
    """
    names = SECTIONS.get(family, SECTIONS[Family.DIFFERENTIAL_DIAGNOSIS])
    if (value := _object(text, names)) is not None:
        return Sections({key.upper(): list(_lines(key.upper(), entry)) for key, entry in value.items()})
    if not is_checklist(text):
        return None
    return read_sections(text, (REASONING, *(with_places(names) if _has(PLACE, text) else names)))


def read_candidates(lines: Sequence[str]) -> tuple[list[ChecklistCandidate], bool]:
    """Read the candidates of a differential by rank; True if all are as requested: numbered, one per line, each with evidence.

    Evidence is text after a bar or a label, unnumbered lines below a numbered one, and lines with deeper indented or repeated numbers.
    """
    rows = list(_rows(lines))
    # the first real candidate decides whether this list is numbered
    first = next((row for row in rows if row.number or (row.name and row.rest)), None)
    numbered = first is not None and first.number > 0
    candidates: list[ChecklistCandidate] = []
    known = {0}
    for row in rows:
        if row.number not in known if numbered else row.name:
            candidates.append(row)
            known.add(row.number)
        elif candidates:  # evidence of the candidate above
            candidates[-1].rest += [part for part in (row.name, *row.rest) if part]
            candidates[-1].as_requested = False
    if not numbered:
        return candidates, False
    as_requested = not lines[0].strip() and all(candidate.as_requested for candidate in candidates)
    as_requested &= [row.number for row in rows] == list(range(1, len(rows) + 1))  # numbered 1, 2, 3 without gaps
    return sorted(candidates, key=lambda candidate: candidate.number), as_requested


def read_candidate(lines: Sequence[str]) -> ChecklistCandidate:
    """Read the single candidate of a section; every line below its name is evidence."""
    text = " | ".join(" ".join(line.split()) for line in lines if line.strip())
    name, *rest = NAME_ENDS.split(text, maxsplit=1)
    return ChecklistCandidate(0, name, rest, AS_REQUESTED.fullmatch(text) is not None)


def _rows(lines: Sequence[str]) -> Iterator[ChecklistCandidate]:
    """Cut lines into possible candidates; number 0 means unnumbered, or numbered but indented further than the first."""
    margin: int | None = None
    for place, line in enumerate(lines):
        plain = " ".join(DECORATION.sub("", line).split())
        # a name and its evidence; several numbered names may share a line, and the evidence then belongs to the last
        head, *rest = NAME_ENDS.split(plain, maxsplit=1)
        pieces = [piece for piece in INLINE_NUMBER.split(head) if piece.strip()] or [""] * bool(rest)
        as_requested = line == plain and len(pieces) == 1 and AS_REQUESTED.fullmatch(plain) is not None
        indent = len(line) - len(line.lstrip())
        for count, piece in enumerate(pieces, start=1):
            match = NUMBERED.fullmatch(piece)
            if match and place:  # text on the header's own line has no indent
                margin = indent if margin is None else margin
                match = match if indent <= margin else None
            number, name = (int(match[1]), match[2]) if match else (0, piece)
            yield ChecklistCandidate(number, name.strip(), rest if count == len(pieces) else [], as_requested)


def _object(text: str, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the checklist that is written as one JSON object; None if the text is not one."""
    plain = text.strip()
    if not plain.startswith("{"):
        return None
    value = read_json(plain)
    keys = [{name.lower() for name in form} for form in (names, with_places(names))]
    return value if isinstance(value, dict) and set(value) - {REASONING.lower()} in keys else None


def _lines(section: str, value: Any) -> Iterator[str]:
    """Write a value of a JSON checklist as the lines of its section, in the form of a written checklist."""
    if section == "DIFFERENTIAL":
        yield ""
        for rank, entry in enumerate(value if isinstance(value, list) else [value], start=1):
            yield f"{rank}. {_candidate(entry)}"
    else:
        yield _candidate(value) if section == "LESION" else _flat(value)


def _candidate(value: Any) -> str:
    if not isinstance(value, dict):
        return _flat(value)
    name, speaks_for, against = (BAR.sub("/", _flat(value.get(key))) for key in ("name", "for", "against"))
    return f"{name} | for: {speaks_for} | against: {against}"


def _flat(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())
