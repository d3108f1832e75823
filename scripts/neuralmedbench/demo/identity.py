"""The invented identity of a simulated patient, in every spelling that de-identification must find, and the notes that contain it."""

from __future__ import annotations

import datetime as dt
import re
import string
import unicodedata

from pydantic import BaseModel, ConfigDict

from neuralmedbench.files.words import word_set
from neuralmedbench.records.answer_key import NoteKey, NoteSpan


class Part(BaseModel):
    """Part of a patient's file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PhantomIdentity(Part):
    """Everything about an invented person that de-identification must find."""

    family: str
    given: str
    original_script: str = ""
    sex: str
    age: int
    mrn: str
    other_id: str
    phone: str
    email: str
    street: str
    town: str
    physician: str
    operator: str
    operator_script: str = ""
    colleague: str
    relative: str
    elsewhere: str
    hospital: str
    hospital_address: str
    station: str
    serial: str
    accession: str
    scanned: dt.date

    def born(self) -> dt.date:
        """Return the date of birth: the patient is `age` years old on the day of the scan."""
        return (self.scanned - dt.timedelta(days=int(self.age * 365.25) + 97 + int(self.mrn[-2:]))).replace(day=14)

    @property
    def initials(self) -> str:
        """Initials with full stops, as in `J.V.`."""
        return f"{self.given[0]}.{self.family[0]}."

    def values(self) -> dict[str, str]:
        """Return the values of the placeholders of notes and record."""
        day, born = self.scanned, self.born()
        return {
            "family": self.family,
            "given": self.given,
            "name": f"{self.given} {self.family}",
            "title": "Mr" if self.sex == "M" else "Ms",
            "age": str(self.age),
            "mrn": self.mrn,
            "phone": self.phone,
            "email": self.email,
            "address": f"{self.street}, {self.town}",
            "street": self.street,
            "physician": f"Dr {self.physician}",
            "operator": self.operator,
            "hospital": self.hospital,
            "accession": self.accession,
            "scanned": f"{day.day} {day:%B} {day.year}",
            "scanned_iso": day.isoformat(),
            "scanned_slash": f"{day:%d/%m/%Y}",
            "day_before": (day - dt.timedelta(days=1)).strftime("%d/%m/%Y"),
            "month_before": (day - dt.timedelta(days=30)).strftime("%d/%m/%Y"),
            "born": f"{born:%d/%m/%Y}",
        }

    def words(self) -> dict[str, str]:
        """Return all values of placeholders, derived ones too."""
        return self.values() | derived_values(self)

    def in_headers(self) -> set[str]:
        """Return the names, numbers and addresses that are in every header."""
        people, words = (self.physician, self.operator, self.colleague, self.relative), self.words()
        numbers = (
            self.mrn,
            self.other_id,
            self.phone,
            self.station,
            self.serial,
            self.accession,
            words["fax"],
            words["plan"],
            words["url"],
        )
        places = (self.street, self.town, self.hospital, self.hospital_address, self.elsewhere)
        return {self.family, self.given, *self.original_script.split(), *self.operator_script.split(), *people, *numbers, *places}


ORDINALS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
KINDS = {
    "name": (
        "family given name physician operator colleague relative relative_upper relative_lower initials initials_bare family_upper"
        " given_upper file_label family_broken given_possessive original_script"
    ),
    "place": "address street town zip hospital elsewhere",
    "date": (
        "scanned scanned_iso scanned_slash day_before month_before born weekday_ordinal dotted dotted_short dashed month_day_year"
        " slash_short the_ordinal iso_time compact"
    ),
    "phone": "phone",
    "fax": "fax",
    "email": "email second_email",
    "ssn": "ssn",
    "record_number": "mrn accession",
    "plan": "plan",
    "account": "account",
    "licence": "licence",
    "vehicle": "plate",
    "device": "implant",
    "url": "url",
    "ip": "ip",
    "biometric": "voiceprint",
    "photo": "photo",
    "other": "trial",
}
"""Placeholders of the notes by the 18 kinds of identifier of HIPAA Safe Harbor, where an age over 89 counts as a date."""
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}


def derived_numbers(identity: PhantomIdentity) -> dict[str, str]:
    """Return identifiers made out of the record number, so that no two patients share one; domains, IP addresses and phone lines are reserved for examples."""
    mrn, letters = identity.mrn, identity.given[0] + identity.family[0]
    family = ascii_lower(identity.family)
    return {
        "fax": f"+44 1632 960{mrn[-3:]}",
        "ssn": f"9{mrn[:2]}-5{mrn[2]}-{mrn[-4:]}",
        "plan": f"BCX{mrn[::-1]}",
        "account": f"{mrn[4:]}-{mrn[:4]}-07",
        "licence": f"D{mrn[1]}{mrn[3]}-{mrn[2:7]}-R",
        "plate": f"{ascii_lower(letters).upper()}-{mrn[2:5]}-Z{mrn[-1]}",
        "implant": f"PMK-{mrn[-5:]}Q",
        "url": f"https://portal.example.org/{family}/{mrn[:5]}",
        "ip": f"192.0.2.{int(mrn[-3:]) % 254 + 1}",
        "voiceprint": f"VPRINT-{mrn[1:6]}",
        "photo": f"{family}_face_{mrn[-4:]}.jpg",
        "trial": f"SUBJ-{mrn[3:8]}",
        "zip": f"9{mrn[-4:]}",
        "second_email": f"{family}{mrn[-3:]}@mail.example.com",
    }


def derived_dates(identity: PhantomIdentity) -> dict[str, str]:
    """Return dates in spellings that hospitals use, each on a different day around the scan."""
    days = [identity.scanned + dt.timedelta(days=shift) for shift in (12, -41, -6, 3, 9, 1, 19, -2, 26)]
    return {
        "weekday_ordinal": f"{days[0]:%A}, {days[0]:%b} {ordinal(days[0].day)}",
        "dotted": f"{days[1]:%d.%m.%Y}",
        "dotted_short": f"{days[2].day}.{days[2].month}.{days[2]:%y}",
        "dashed": f"{days[3]:%d-%b-%Y}",
        "month_day_year": f"{days[4]:%B} {ordinal(days[4].day)}, {days[4].year}",
        "slash_short": f"{days[5].day}/{days[5].month}/{days[5]:%y}",
        "the_ordinal": f"the {ordinal(days[6].day)} of {days[6]:%B}",
        "iso_time": f"{days[7].isoformat()}T09:12",
        "compact": f"{days[8]:%Y%m%d}",
    }


def derived_values(identity: PhantomIdentity) -> dict[str, str]:
    """Return the placeholders of the planted lines that are not in `PhantomIdentity.values`."""
    return {
        **derived_numbers(identity),
        **derived_dates(identity),
        "town": identity.town,
        "colleague": identity.colleague,
        "relative": identity.relative,
        "relative_upper": identity.relative.upper(),
        "relative_lower": identity.relative.lower(),
        "elsewhere": identity.elsewhere,
        "initials": identity.initials,
        "initials_bare": identity.initials.replace(".", ""),
        "family_upper": identity.family.upper(),
        "given_upper": identity.given.upper(),
        "family_broken": f"{identity.family[:4]}-\n{identity.family[4:]}",
        "given_possessive": f"{identity.given}'s",
        "original_script": identity.original_script,
        "file_label": f"{identity.family.upper()}-{identity.given.upper()}",
    }


def ordinal(day: int) -> str:
    """Write a day as `1st`, `2nd`, ..."""
    return f"{day}{ORDINALS.get(day, 'th')}"


def ascii_lower(text: str) -> str:
    """Return the letters of a name as written in an e-mail address."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text).casefold() if letter.isascii() and letter.isalnum())


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
"""One line of each group is appended to a patient's last note, chosen by the record number."""
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


def planted_templates(identity: PhantomIdentity, notes: tuple[str, ...]) -> list[str]:
    """Return the templates of a patient's notes, with the planted lines appended to the last."""
    # digits of the record number to base 7 choose one line per group
    number = int(identity.mrn)
    lines = [group[number // 7**place % len(group)] for place, group in enumerate(LINES)]
    if identity.original_script:
        lines.append(PASSPORT)
    return [*notes[:-1], notes[-1].rstrip() + "\n" + "\n".join([*lines, *STAY_LINES])]


def fill_note(identity: PhantomIdentity, template: str) -> tuple[str, NoteKey]:
    """Fill the identity into one note; return it with the spans of the values and the phrases that must be kept."""
    words = identity.words()
    text, spans = "", []
    for before, name, _, _ in string.Formatter().parse(template.strip() + "\n"):
        text += before
        if name is None:
            continue
        # Safe Harbor counts ages over 89 as dates
        kind = "date" if name == "age" and identity.age > 89 else KIND_OF.get(name, "")
        if kind:
            spans.append((len(text), len(text) + len(words[name]), kind))
        text += words[name]
    outside = _outside(text, spans)
    keys = tuple(NoteSpan(start=start, end=end, kind=kind, parts=_parts(text[start:end], kind, outside)) for start, end, kind in spans)
    stay = {phrase for phrase in STAY if phrase in outside} | set(VALUE.findall(outside))
    return text, NoteKey(spans=keys, stay=tuple(sorted(stay)))


def _outside(text: str, spans: list[tuple[int, int, str]]) -> str:
    """Return the text with each span replaced by a null character."""
    kept, place = "", 0
    for start, end, _ in spans:
        kept, place = kept + text[place:start] + "\0", end
    return kept + text[place:]


def _parts(value: str, kind: str, outside: str) -> tuple[str, ...]:
    """Return the words of a name or place that identify it on their own; not those that the note also uses as ordinary words."""
    if kind not in {"name", "place"}:
        return (value,)
    words = [word for word in re.findall(r"[^\W\d_]{3,}", value) if word.casefold() not in TITLES | PLACE_WORDS]
    named = [word for word in words if not re.search(rf"\b{re.escape(word)}\b", outside, re.IGNORECASE)]
    return tuple(dict.fromkeys([value, *named]))
