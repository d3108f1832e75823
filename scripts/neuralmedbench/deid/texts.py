"""The notes and the record of a case, cleaned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.notes.records import clean_record, record_identity
from neuralmedbench.files.identity import fold, identity_pattern
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.files.words import word_set
from neuralmedbench.runtime.atomic_write import write_text

MAX_HEADING_WORDS, SHORT_HEADING = 5, 3
SECTION_CUT = "[SECTION CUT]"
_MARKS = r"(?:#{1,6}[ \t]*|>[ \t]*|[-•*+][ \t]+|\(?\d{1,2}[.)][ \t]*|\(?[A-Za-z][.)][ \t]+|[*_]{1,3})*"
_HEADING = r"[^\W\d_][^\n:：.;!?|]{0,60}?"
LINE_HEADING = re.compile(
    rf"^[ \t]*(?P<marks>{_MARKS})(?P<name>{_HEADING})[ \t]*[*_]{{0,3}}[ \t]*(?P<end>[:：][*_]{{0,3}}|[ \t][-–—]+(?=\s|$)|[-–—]+[ \t]*$|#*[ \t]*$)",
    re.MULTILINE,
)
INLINE_HEADING = re.compile(
    r"(?:(?<=[.;!?)\]][ \t])|(?<=[ \t]{2})|(?<=\|[ \t]))(?P<marks>[*_]{0,3}(?:\(?\d{1,2}[.)][ \t]*)?)(?P<name>[A-Z][^\n:：.;!?|]{0,40}?)[*_]{0,3}(?P<end>[:：])"
)
OTHER_HEADINGS = word_set("""
    history hpi hx pmh pmhx psh fh fhx sh shx presenting complaint complaints cc medications medication meds drugs allergies allergy examination exam
    physical neurological vitals observations obs labs laboratory bloods investigations results course subjective objective social family past medical
    surgical review systems ros background reason referral consultation technique comparison findings indication clinical information procedure disposition
    follow followup instructions recommendations addendum signed signature cc copies contact date addressee anamnese vorgeschichte medikation untersuchung
    voorgeschiedenis medicatie onderzoek antécédents traitement examen motif antecedentes tratamiento exploración anamnesi esame terapia
""")
"""Words of headings that end a part that is cut."""
REPORT_PARTS = word_set(
    "technique comparison findings indication procedure clinical information sequences protocol contrast dose limitations"
)
"""Headings inside the report of a scan: they do not end it."""
REPORT_WORDS = word_set("report radiology imaging neuroimaging mri mr ct scan befund verslag referto informe laudo compte")
SENTENCE_WORDS = word_set("a an he she they it we i his her our my has have had is was were there no to")
"""Words of sentences: `he has a plan:` is no heading."""
_ANSWER_WORDS = word_set(
    "impression diagnosis diagnoses assessment and plan conclusion conclusions opinion differential final discharge working clinical radiology report"
)


def clean_texts(cleaning: Cleaning) -> tuple[tuple[str, ...], str]:
    """Write the cleaned notes and the cleaned record of a case.

    Returns: Paths of the notes and of the record (empty without one) relative to `cleaning.out`; a text of which nothing may be shown is
    not among them.
    """
    case = cleaning.case
    record = _read(cleaning.source / case.record, cleaning.checks, "record") if case.record else ""
    listed = identity_pattern(record_identity(record)) if record else None
    notes = tuple(path for path in case.notes if _write_note(path, cleaning, listed))
    target = "text/record.tsv"
    return notes, target if record and _write_record(record, target, cleaning, listed) else ""


def cut_sections(text: str, headings: Sequence[str]) -> tuple[str, int]:
    """Cut the parts of a note that stand under some headings.

    `headings`: headings to cut, in any case; a heading of up to five words that begins or ends with one counts too (`Final diagnosis`).
    Returns: The note with `[SECTION CUT]` in place of these parts, and their number. A part goes to the next heading that is not to be cut:
    one in capitals, one of the same or a higher level of markdown, or one of the usual parts of a note; a colon alone ends nothing. A note
    that is the report of a scan as a whole (technique and findings have headings) is cut as a whole.
    """
    names = tuple(_heading_words(heading) for heading in headings if _heading_words(heading))
    places = sorted((*_headings(LINE_HEADING, text), *_headings(INLINE_HEADING, text)))
    if not names or not places:
        return text, 0
    if _is_report(places, names):
        return SECTION_CUT, 1
    parts, place, cut, report, level = [], 0, 0, False, 0
    inside = False
    for start, marks, name, has_line in places:
        if start < place:
            continue
        words = _heading_words(name)
        if _holds(words, names):
            if not inside:
                parts.append(text[place:start])
                cut, level = cut + 1, marks.count("#")
            inside, report = True, report or bool(REPORT_WORDS & set(words))
        elif inside and _ends(words, name, marks, level=level, report=report, has_line=has_line):
            parts.append(f"{SECTION_CUT}\n")
            inside, report, place = False, False, start
    parts.append(SECTION_CUT if inside else text[place:])
    return ("".join(parts), cut) if cut else (text, 0)


def _headings(pattern: re.Pattern[str], text: str) -> Iterable[tuple[int, str, str, bool]]:
    """Yield place, marks, name of each heading, and whether it has a line of its own."""
    for match in pattern.finditer(text):
        name, words = match["name"].strip(), _heading_words(match["name"])
        alone = not match["end"].strip()
        if not words or len(words) > MAX_HEADING_WORDS:
            continue
        if alone and not ("#" in match["marks"] or "*" in match["marks"] or name.isupper() or _is_known(words)):
            continue
        yield match.start("marks"), match["marks"], name, alone or text[match.end() :].partition("\n")[0].strip() == ""


def _is_known(words: tuple[str, ...]) -> bool:
    """Whether a line without any mark is a heading: each of its words is one of headings."""
    return all(word in OTHER_HEADINGS | _ANSWER_WORDS for word in words)


def _heading_words(heading: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+(?:[/&][^\W_]+)?", fold(heading).casefold()))


def _holds(words: tuple[str, ...], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether a heading is one of the names, or begins or ends with one that is long enough to mean nothing else."""
    if words in names:
        return True
    if SENTENCE_WORDS & set(words):
        return False
    telling = [name for name in names if len(name) > 1 or (len(name[0]) > SHORT_HEADING and name[0] not in REPORT_WORDS)]
    return any(words[: len(name)] == name or words[-len(name) :] == name for name in telling)


def _ends(words: tuple[str, ...], name: str, marks: str, *, level: int, report: bool, has_line: bool) -> bool:
    if report and REPORT_PARTS & set(words):
        return False
    if "#" in marks:
        return level == 0 or marks.count("#") <= level
    letters = "".join(letter for letter in name if letter.isalpha())
    return bool(OTHER_HEADINGS & set(words)) or (letters.isupper() and len(letters) > 3 and (has_line or bool(marks) or len(words) > 1))


def _is_report(places: Sequence[tuple[int, str, str, bool]], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether a note is the report of a scan, and such reports are to be cut."""
    heads = [set(_heading_words(name)) for _, _, name, _ in places]
    wanted = any(REPORT_WORDS & set(name) for name in names)
    return wanted and any("technique" in words for words in heads) and any("findings" in words for words in heads)


def _read(path: Path, checks: Counter[str], what: str) -> str:
    """Read a text; empty when it is none that can be read, which is counted with the reason."""
    try:
        return decode_text(path.read_bytes())
    except UnreadableTextError as error:
        checks[f"{what}_unreadable_{error.reason}"] += 1
        return ""


def _write_note(path: str, cleaning: Cleaning, listed: re.Pattern[str] | None) -> bool:
    """Write one cleaned note; False when nothing of it may be shown. `listed` finds values of the patient's record."""
    text, cut = cut_sections(_read(cleaning.source / path, cleaning.checks, "notes"), cleaning.texts.cut)
    note = clean_note(
        text,
        cleaning.rules.dates,
        cleaning.rules.identifying,
        scan_day=cleaning.scan_day,
        listed=listed,
        model=cleaning.texts.model,
    )
    cleaning.checks.update({f"notes_{kind}": number for kind, number in note.counts.items()})
    if cut:
        cleaning.checks["notes_sections_cut"] += cut
    if not note.text.replace(SECTION_CUT, "").strip():
        return False
    write_text(cleaning.out / path, note.text)
    return True


def _write_record(text: str, target: str, cleaning: Cleaning, listed: re.Pattern[str] | None) -> bool:
    """Write the cleaned record; False when no row of it may be shown."""
    record = clean_record(text, cleaning.rules.dates, cleaning.rules.identifying, cleaning.scan_day, listed=listed)
    cleaning.checks.update(record.counts)
    if not record.text:
        return False
    write_text(cleaning.out / target, record.text)
    return True
