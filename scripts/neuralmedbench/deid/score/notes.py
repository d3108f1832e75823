"""Score cleaned notes and the cleaned record of a simulated patient against its answer key."""

from __future__ import annotations

import csv
import difflib
import io
import re

from neuralmedbench.deid.score.tally import NOTE, RECORD, WORDS_REMOVED, Tally
from neuralmedbench.files.answer_key import holds, plain
from neuralmedbench.records.answer_key import NoteKey, NoteSpan

WORD = re.compile(r"[\w@.+:/=-]*\w")


def score_note(raw: str, cleaned: str, key: NoteKey, tally: Tally) -> None:
    """Score one note.

    Parameters
    ----------
    raw, cleaned : str
        The note before and after cleaning; empty when it was withheld.
    key : NoteKey
        What had to go and to stay.
    tally : Tally
        `text_removed` by Safe Harbor kind, `text_retained` for phrases that had to stay, and `words_removed`: of all words that went,
        those that had to.
    """
    for span in key.spans:
        gone = not any(_is_left(part, span.kind, cleaned) for part in span.parts)
        tally.add((NOTE, "text_removed", span.kind), gone, where="note")
    shown = plain(cleaned)
    for phrase in key.stay:
        tally.add((NOTE, "text_retained", "research"), plain(phrase) in shown, where="phrase")
    due, removed = removed_words(raw, cleaned, key.spans)
    if removed:
        tally.add((NOTE, WORDS_REMOVED, "research"), due, removed)


def _is_left(part: str, kind: str, cleaned: str) -> bool:
    """Whether a planted word is left; a date by its own spelling, as its shifted digits may look alike."""
    if kind == "date":
        return re.search(rf"(?<!\d){re.escape(plain(part))}(?!\d)", plain(cleaned)) is not None
    return holds(cleaned, part)


def removed_words(raw: str, cleaned: str, spans: tuple[NoteSpan, ...]) -> tuple[int, int]:
    """Count the words of a note that cleaning took away.

    Returns
    -------
    tuple of int
        Those of them that lie in a planted span, and all.
    """
    before = [(match.group(), match.start(), match.end()) for match in WORD.finditer(raw)]
    after = [match.group() for match in WORD.finditer(cleaned)]
    matcher = difflib.SequenceMatcher(a=[word for word, _, _ in before], b=after, autojunk=False)
    due = removed = 0
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag in {"replace", "delete"}:
            for _, first, last in before[start:end]:
                removed += 1
                due += any(first < span.end and last > span.start for span in spans)
    return due, removed


def score_record(cleaned: str, go: tuple[str, ...], stay: tuple[str, ...], tally: Tally) -> None:
    """Score the record: no cell may hold what had to go, and the rows of measurements have to be there.

    Parameters
    ----------
    cleaned : str
        The cleaned table (TSV), empty when it was withheld.
    go, stay : tuple of str
        Strings, and rows as `variable=value`.
    tally : Tally
        Where the counts go.
    """
    rows = list(csv.DictReader(io.StringIO(cleaned), delimiter="\t"))
    cells = [cell for row in rows for cell in row.values() if cell]
    kept = {f"{row['variable']}={row['value']}" for row in rows}
    for value in go:
        tally.add((RECORD, "text_removed", "HIPAA"), not any(holds(cell, value) for cell in cells), where="record")
    for row in stay:
        tally.add((RECORD, "text_retained", "research"), row in kept, where="row")
