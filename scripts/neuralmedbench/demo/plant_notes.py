"""Notes of a simulated patient with every kind of identifier in many spellings, and the key that says what has to go and to stay."""

from __future__ import annotations

import re
import string

from neuralmedbench.demo.identity import PhantomIdentity
from neuralmedbench.demo.invented import KIND_OF, further_words
from neuralmedbench.files.words import word_set
from neuralmedbench.records.answer_key import NoteKey, NoteSpan

LINES: tuple[tuple[str, ...], ...] = (
    (
        "Came with {relative}, who signed as {relative_upper}.",
        "Next of kin {relative}; letters also to {relative_lower}.",
        "Consent was read to {relative} and to {given_upper} {family_upper}.",
        "Label on the file {file_label}; a friend, {relative}, waits outside.",
        "Consent of {family_broken} is filed; {relative} drove {given_possessive} car.",
    ),
    (
        "cc: Dr {colleague}. Dictated by {initials}",
        "Discussed with Prof. {colleague}; typed {initials_bare}/sec.",
        "Second reader {colleague}, MD. Chart signed {initials}",
        "Case shown to {colleague} (neuroradiology) by {initials_bare}.",
    ),
    (
        "Transferred from {elsewhere} in {town}, ZIP {zip}.",
        "Earlier films are at {elsewhere}; family doctor in {town}.",
        "Home care by {elsewhere}, postcode {zip}, {town}.",
    ),
    (
        "First seen {weekday_ordinal}; back on {dotted}, film of {dashed}.",
        "Ward round {month_day_year}; sample {slash_short}; next visit {weekday_ordinal}.",
        "Logged {iso_time} and again on {the_ordinal}; label of the tube {compact}.",
        "Booked for {weekday_ordinal}, letter of {month_day_year}, copy of {dotted_short}.",
    ),
    (
        "Fax {fax}; portal {url}.",
        "Telefax: {fax}. Last login from {ip}.",
        "Results by mail to {second_email}, seen on {url} from {ip}.",
    ),
    (
        "Insurance {plan}, account {account}.",
        "Social security {ssn}; member no. {plan}; account {account}.",
        "Driving licence {licence}; car {plate}.",
        "Account no. {account}; number plate {plate}.",
        "SSN {ssn}, licence no. {licence}, plate {plate}.",
    ),
    (
        "Shunt valve serial {implant}; voice print {voiceprint}.",
        "Pacemaker s/n {implant}, photograph {photo} in the file.",
        "Fingerprint file {voiceprint}; study code {trial}.",
        "Trial subject {trial}; face photograph {photo}.",
    ),
)
"""One line of each group stands below a patient's last note; which one hangs on the record number."""
PASSPORT = "The passport says {original_script}."
STAY_LINES = (
    "Form fields left open: Parkinson rating, Broca area, Wilson test, Glasgow scale.",
    "Forms: NIHSS 12 items, GCS 15 points. Protocol b=1000, TE 110, TR 5000, slices of 5 mm.",
    "Na 139 mmol/L, CRP 3 mg/L, HbA1c 5.6 %, paracetamol 500 mg at 20:00.",
)
STAY = (
    "Parkinson rating", "Broca area", "Wilson test", "Glasgow scale", "NIHSS 12", "GCS 15", "b=1000", "TE 110", "TR 5000", "5 mm",
    "139 mmol/L", "3 mg/L", "5.6 %", "500 mg", "20:00",
)  # fmt: skip
VALUE = re.compile(r"(?:NIHSS|MMSE|MoCA|Glasgow Coma Scale) \d+(?:/\d+)?|\d+/\d+ mmHg|\d+/min|\d+(?:\.\d+)? (?:mg|mL|g/L|cmH2O|mmol/L)\b")
TITLES = word_set("dr prof mr ms miss")
PLACE_WORDS = word_set(
    "hospital general medical center centre regional university teaching municipal infirmary clinic clinica clinique nursing home saint college",
    "hospitalier road street lane avenue crescent terrace house de des du la of the rehabilitation odos calle rue sygehus",
)


def planted_templates(who: PhantomIdentity, notes: tuple[str, ...]) -> list[str]:
    """Give the templates of a patient's notes, the last with the planted lines below it."""
    number = int(who.mrn)
    lines = [group[number // 7**place % len(group)] for place, group in enumerate(LINES)]
    if who.original_script:
        lines.append(PASSPORT)
    return [*notes[:-1], notes[-1].rstrip() + "\n" + "\n".join([*lines, *STAY_LINES])]


def fill_note(who: PhantomIdentity, template: str) -> tuple[str, NoteKey]:
    """Fill the identity into one note."""
    words = who.words() | further_words(who)
    text, found = "", []
    for before, name, _, _ in string.Formatter().parse(template.strip() + "\n"):
        text += before
        if name is None:
            continue
        kind = "date" if name == "age" and who.age > 89 else KIND_OF.get(name, "")
        if kind:
            found.append((len(text), len(text) + len(words[name]), kind))
        text += words[name]
    outside = _outside(text, found)
    spans = tuple(NoteSpan(start=start, end=end, kind=kind, parts=_parts(text[start:end], kind, outside)) for start, end, kind in found)
    stay = {phrase for phrase in STAY if phrase in outside} | set(VALUE.findall(outside))
    return text, NoteKey(spans=spans, stay=tuple(sorted(stay)))


def _outside(text: str, spans: list[tuple[int, int, str]]) -> str:
    kept, place = "", 0
    for start, end, _ in spans:
        kept, place = kept + text[place:start] + "\0", end
    return kept + text[place:]


def _parts(value: str, kind: str, outside: str) -> tuple[str, ...]:
    """Words of a name or a place that name it by themselves; one that the note uses as an ordinary word as well does not."""
    if kind not in {"name", "place"}:
        return (value,)
    words = [word for word in re.findall(r"[^\W\d_]{3,}", value) if word.casefold() not in TITLES | PLACE_WORDS]
    named = [word for word in words if not re.search(rf"\b{re.escape(word)}\b", outside, re.IGNORECASE)]
    return tuple(dict.fromkeys([value, *named]))
