"""Clean the value of one DICOM element, as encoded in the file."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any, NamedTuple

from neuralmedbench.deid.headers.rules import (
    BINARY_VRS,
    DATE_VRS,
    MANUFACTURERS,
    TEXT_VRS,
    Action,
    HeaderRules,
    Option,
    action_of,
    table_action,
)
from neuralmedbench.deid.values import (
    NAMELESS_AGENT,
    NO_TIMES,
    Times,
    clean_agent,
    clean_descriptor,
    clean_pulse_name,
    shift_date,
    shift_datetime,
    shift_time,
    top_code_age,
)
from neuralmedbench.files.pseudonyms import device_pseudonym, uid_pseudonym

PLAIN = re.compile(r"[A-Za-z0-9 ._+*/()-]{0,64}")
DEVICE_WORDS = re.compile(r"[A-Za-z0-9 ._+*/()=:,#&-]{0,64}")
_NUMBER = rb"(?: *[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)? *"
NUMBERS = re.compile(_NUMBER + rb"(?:\\" + _NUMBER + rb")*")
"""Values of DS and IS: numbers without inner spaces."""
LONG_NUMBER = re.compile(rb"(?<![\d.])\d{6}")
"""Numbers this long may identify a patient; settings of a scan are shorter."""
BINARY_NUMBERS = {"UL": "I", "SL": "i", "UV": "Q", "SV": "q", "FL": "f", "FD": "d"}
MAX_CHECKED, MIN_LONG, MAX_LONG = 64, 1e5, 1e16
AGE = re.compile(r"\d{3}[DWMY]")
REMOVED = b"REMOVED"
IMAGE_TYPE = 0x00080008
_PARTS = (
    "brain|head|skull|neck|headneck|orbits?|eyes?|ears?|iac|face|jaw|maxilla|mandible|nose|sinus(?:es)?|sella|pituitary|tmj|temporal ?bone|neuro"
    "|cerebrum|[ctls]?spine|[ct][tl]spine|lsspine|chest|abdomen|pelvis|whole ?body|extremity|head[ _-]?brain|head[ _-]?neck|brain[ _-]?stem"
)
_SETS = r"(?:ISO[ _]IR[ _]\d{1,3}|ISO 2022 IR \d{1,3}|GB18030|GBK)?"
CLOSED_LISTS = {
    0x00080005: re.compile(rf"{_SETS}(?: *\\ *{_SETS})*"),
    0x00180015: re.compile(rf"(?:{_PARTS})?", re.IGNORECASE),
}
"""SpecificCharacterSet and BodyPartExamined: closed lists of codes; people type into the second."""
MAX_MEASURE = 1000.0
"""Sizes in m and weights in kg are smaller."""
DUMMIES = {"DA": b"19000101", "TM": b"000000", "DT": b"19000101000000", "DS": b"0", "IS": b"0"}
CODE_MEANING, MANUFACTURER = 0x00080104, 0x00080070
PULSE_NAMES = frozenset({0x00180024, 0x00189005})
DESCRIPTION_TAGS = (0x0008103E, 0x00181030)
"""SeriesDescription and ProtocolName."""
TABLE, TEXT, DATES, UIDS, OWN, KEPT = "table", "text", "dates", "uids", "own_rules", "kept"
WITHOUT_VALUE = frozenset({Action.KEEP, Action.EMPTY, Action.EMPTY_OR_GONE, Action.DUMMY, Action.OPTIONAL, Action.OPTIONAL_VALUE})
CleanValue = tuple[bytes | None, str]
"""The new value (None if the element is removed) and the name of the check that changed it, or `kept`."""
RETIRED_SNOMED = frozenset({"SRT", "SNM3", "99SDM"})
"""Coding scheme designators in older headers for SNOMED codes such as T-A0100."""


class Element(NamedTuple):
    """A standard element that is not a sequence, as encoded in the file; equal ones are cleaned once.

    `tag`: group in the upper 16 bits. `value`: values separated by a backslash. `enhanced`: the image is of a kind that requires more
    elements than a plain MR or CT image. `meaning`: meaning of the code to which the element belongs, in a published coding scheme.
    `times`: reference for times of day.
    """

    tag: int
    vr: str
    value: bytes
    enhanced: bool = False
    meaning: str = ""
    times: Times = NO_TIMES


def clean_value(element: Element, rules: HeaderRules) -> CleanValue:
    """Clean the value of one element; returns the new value (None if the element is removed) and the check that changed it."""
    own = rules.elements.get(element.tag)
    if own is not None and element.value.rstrip(b"\0 "):
        stays = REMOVED if own == "replace" else kept_by_rule(action_of(element.tag), element.vr, element.value, rules)
        if stays is not None:  # a value that may not stay is cleaned like any other
            return stays, OWN
    return _clean_by_table(element, rules)


def _clean_by_table(element: Element, rules: HeaderRules) -> CleanValue:
    """Clean the value of one element by the table of PS3.15 and the options."""
    tag, vr, value = element.tag, element.vr, element.value
    action = action_of(tag)
    # removed: by the table, or because the value is not in the element's closed list
    bare = value.rstrip(b"\0 ")
    unlisted = tag in CLOSED_LISTS and not CLOSED_LISTS[tag].fullmatch(bare.decode("ascii", "replace"))
    if action is Action.REMOVE or unlisted:
        return None, TEXT if unlisted else TABLE
    # kept unchanged: empty values, pixels, the names of manufacturers, whoever the patient is, and safe values that the table keeps
    vendor = tag == MANUFACTURER and bare.decode("ascii", "replace").strip().casefold() in MANUFACTURERS
    safe = action is Action.KEEP and is_safe_value(vr, value if vr in BINARY_NUMBERS else bare, rules)
    if not bare or action is Action.PIXELS or vendor or safe:
        return value, KEPT
    # changed
    if action is Action.UID:
        return _clean_uids(bare, rules, value)
    if action is Action.DATE:
        return _clean_date(element, bare, rules), DATES
    if action in WITHOUT_VALUE:
        kept = action is Action.KEEP
        return (safe_parts(tag, vr, bare, rules), TEXT) if kept else (_without_value(action, vr, enhanced=element.enhanced), TABLE)
    return _clean_named(action, element, bare, rules)


def kept_by_rule(action: Action, vr: str, value: bytes, rules: HeaderRules) -> bytes | None:
    """Return the value that an own rule keeps; None if it may not stay: it names the patient or anybody, or holds a date or a long number.

    Ages are still at most 90.
    """
    if vr in BINARY_NUMBERS:
        return value if is_safe_value(vr, value, rules) else None
    text = value.rstrip(b"\0 ").decode("ascii", "replace")
    if action is Action.PATIENT:
        return _of_patient(text, vr, rules).encode() or None
    if not text.isascii() or LONG_NUMBER.search(text.encode()) or names_patient(text, rules):
        return None
    from neuralmedbench.deid.notes.clean import clean_note  # reads lists of names, which headers without own rules do not need

    return None if clean_note(text.replace("_", " "), rules.dates, rules.identifying).counts else value


def is_safe_value(vr: str, bare: bytes, rules: HeaderRules) -> bool:
    """Return True if a value fits its VR and does not identify the patient."""
    if vr in {"DS", "IS"}:
        return NUMBERS.fullmatch(bare) is not None and not (LONG_NUMBER.search(bare) and names_patient(bare.decode("ascii"), rules))
    if vr == "CS" or vr in TEXT_VRS:
        return is_plain(bare.decode("ascii", "replace"), PLAIN if vr == "CS" else DEVICE_WORDS, rules)
    if vr == "AS":
        return AGE.fullmatch(bare.decode("ascii", "replace")) is not None
    if vr in DATE_VRS or names_patient(bare.decode("latin-1").replace("\0", ""), rules):  # text, plain or UTF-16, in place of numbers
        return False
    return vr not in BINARY_NUMBERS or not any(names_patient(number, rules) for number in _long_numbers(vr, bare))


def _long_numbers(vr: str, value: bytes) -> list[str]:
    """Return integers of six and more digits, in either byte order: a patient's number may be hidden among settings."""
    kind = BINARY_NUMBERS[vr]
    count = len(value) // struct.calcsize(f"<{kind}")
    if not 0 < count <= MAX_CHECKED:
        return []
    numbers = [number for order in "<>" for number in struct.unpack_from(f"{order}{count}{kind}", value)]
    return [str(int(number)) for number in numbers if MIN_LONG <= abs(number) < MAX_LONG and number == int(number)]


def safe_parts(tag: int, vr: str, bare: bytes, rules: HeaderRules) -> bytes | None:
    """Return the safe part of a value that is unsafe as a whole: of several codes, those that identify nobody."""
    if vr != "CS":
        return b"" if vr in TEXT_VRS else None
    parts = [part if is_safe_value("CS", part, rules) else b"" for part in bare.split(b"\\")]
    if tag == IMAGE_TYPE:  # the position of a value has a meaning, so none may be left out
        return b"\\".join(part or REMOVED for part in parts)
    return b"\\".join(part for part in parts if part) or None


def is_plain(text: str, words: re.Pattern[str], rules: HeaderRules) -> bool:
    """Return True if every value of a text matches a pattern and none identifies the patient."""
    return all(words.fullmatch(part) for part in text.split("\\")) and not names_patient(text, rules)


def names_patient(text: str, rules: HeaderRules) -> bool:
    """Return True if a text holds one of the patient's identifiers."""
    return rules.identifying is not None and rules.identifying.search(text.replace("_", " ")) is not None


def _clean_named(action: Action, element: Element, bare: bytes, rules: HeaderRules) -> CleanValue:
    """Clean elements that depend on an option: descriptions, agent, patient, device."""
    tag, vr, meaning = element.tag, element.vr, element.meaning
    text = bare.decode("ascii", "replace").strip()
    without = _without_value(table_action(tag) or Action.EMPTY, vr, enhanced=element.enhanced)
    if action in {Action.WORDS, Action.TEXT}:
        cleaned, check = _clean_text(tag, vr, text, rules, without)
        if tag == CODE_MEANING and text != meaning:  # a code without a meaning is not valid
            return meaning.encode() or cleaned or REMOVED, TEXT
        return (cleaned, check) if tag != CODE_MEANING else (text.encode(), KEPT)
    if action is Action.AGENT:
        agent = clean_agent(text) if Option.DESCRIPTORS in rules.applied else NAMELESS_AGENT
        return (NAMELESS_AGENT if agent != "NONE" and names_patient(agent, rules) else agent).encode(), TEXT
    if action is Action.PATIENT:
        kept = _of_patient(text, vr, rules) if Option.PATIENT in rules.applied else ""
        return (kept.encode(), KEPT if kept == text else TABLE) if kept else (without, TABLE)
    return _clean_device(action, text, rules, without if action is Action.DEVICE_ID else REMOVED if element.enhanced else None)


def _clean_device(action: Action, text: str, rules: HeaderRules, without: bytes | None) -> CleanValue:
    """Keep a device's model and software; its identifiers become pseudonyms, or are removed under Safe Harbor."""
    if Option.DEVICE not in rules.applied:
        return without, TABLE
    if action is Action.DEVICE:
        return (text.encode(), KEPT) if is_plain(text, DEVICE_WORDS, rules) else (without, TEXT)
    safe_harbor = rules.dates.years_only and not rules.dates.emptied
    return (without if safe_harbor else device_pseudonym(rules.key, text).encode()), TABLE


def _clean_text(tag: int, vr: str, text: str, rules: HeaderRules, without: bytes | None) -> CleanValue:
    """Reduce a description to words about scans."""
    if vr not in TEXT_VRS or vr in {"PN", "AE", "UR"}:
        return b"", TEXT
    if Option.DESCRIPTORS not in rules.applied:
        return without, TEXT
    words = _without_names(clean_pulse_name(text) if tag in PULSE_NAMES else clean_descriptor(text), rules)
    return words.encode(), KEPT if words == text else TEXT


def clean_description(text: str, rules: HeaderRules) -> str:
    """Reduce a SeriesDescription or ProtocolName to words about scans; empty if options or own rules keep none."""
    removed = any(rules.elements.get(tag) in {"remove", "replace"} for tag in DESCRIPTION_TAGS)
    return _without_names(clean_descriptor(text), rules) if Option.DESCRIPTORS in rules.applied and not removed else ""


def _without_names(cleaned: str, rules: HeaderRules) -> str:
    words = " ".join(word for word in cleaned.split() if not names_patient(word, rules))
    return "" if names_patient(words, rules) else words  # several words together can identify the patient


def _of_patient(text: str, vr: str, rules: HeaderRules) -> str:
    """Clean age, sex, size, weight or smoking status; empty if the value is not valid."""
    if vr == "AS":
        return top_code_age(text)
    if vr == "DS":
        try:
            return text if 0 < float(text) < MAX_MEASURE else ""
        except ValueError:
            return ""
    return text if text in {"M", "F", "O", "YES", "NO", "UNKNOWN"} and not names_patient(text, rules) else ""


def _clean_uids(bare: bytes, rules: HeaderRules, value: bytes) -> CleanValue:
    """Replace UIDs by pseudonyms, except those that the standard defines."""
    from pydicom._uid_dict import UID_dictionary  # the complete list: a patient's number could be appended to the standard's root

    uids = bare.decode("ascii", "replace").split("\\")
    cleaned = [uid if not uid or uid in UID_dictionary else uid_pseudonym(rules.key, uid.strip("\0 ")) for uid in uids]
    return (value, KEPT) if cleaned == uids else ("\\".join(cleaned).encode(), UIDS)


def _clean_date(element: Element, bare: bytes, rules: HeaderRules) -> bytes | None:
    """Replace dates and times by valid ones; anything else becomes empty."""
    vr, times = element.vr, element.times
    listed = table_action(element.tag)
    if rules.dates.emptied:
        return _without_value(listed or Action.REMOVE, vr, enhanced=element.enhanced)
    parts = bare.decode("ascii", "replace").split("\\")
    if vr == "TM":
        return "\\".join(shift_time(part, times) for part in parts).encode()
    if vr == "DT":
        moved = [shift_datetime(part, rules.dates, times) for part in parts]
    else:
        clocks = times.paired_time.split("\\")
        moved = [shift_date(part, clocks[place] if place < len(clocks) else "", rules.dates, times) for place, part in enumerate(parts)]
    return "\\".join(moved).encode() if any(moved) else b""


def _without_value(action: Action, vr: str, *, enhanced: bool) -> bytes | None:
    """Return the replacement of a value that the table removes or empties; None if the element is removed."""
    if action is Action.DUMMY or (enhanced and action in {Action.OPTIONAL, Action.OPTIONAL_VALUE}):
        return DUMMIES.get(vr, REMOVED) if vr not in BINARY_VRS else None
    return None if action in {Action.REMOVE, Action.OPTIONAL} else b""


def standard_meaning(scheme: str, code: str) -> str:
    """Look up the meaning of a code in the coding schemes that DICOM lists; empty if unknown. The file's own text could say anything.

    Examples
    --------
    >>> standard_meaning("DCM", "113100")
    'Basic Application Confidentiality Profile'
    >>> standard_meaning("99HOSPITAL", "113100")
    ''
    """
    if not scheme or not code or (scheme.startswith("99") and scheme not in RETIRED_SNOMED):
        return ""
    if scheme in RETIRED_SNOMED:
        scheme, code = "SCT", _new_snomed().get(code, "")
    return _meanings().get((scheme, code), "")


@cache
def _meanings() -> dict[tuple[str, str], str]:
    from pydicom.sr._concepts_dict import concepts  # pydicom's public interface looks up by keyword only

    schemes: dict[str, Any] = concepts
    listed = ((scheme, code, meaning) for scheme, words in schemes.items() for one in words.values() for code, (meaning, _) in one.items())
    # headers use the shortest of several meanings of a code
    ordered = sorted((entry for entry in listed if entry[2].isascii()), key=lambda entry: (-len(entry[2]), entry))
    return {(scheme, code): meaning for scheme, code, meaning in ordered}


@cache
def _new_snomed() -> dict[str, str]:
    from pydicom.sr._snomed_dict import mapping

    return dict(mapping["SRT"])
