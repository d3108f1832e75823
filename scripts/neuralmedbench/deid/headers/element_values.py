"""One value of a DICOM header, as it is encoded in the file, to the value that may be shown."""

from __future__ import annotations

from neuralmedbench.deid.headers.element_plan import BINARY_VRS, TEXT_VRS, Action, action_of, table_action
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.headers.safe_values import (
    BINARY_NUMBERS,
    CLOSED_LISTS,
    DEVICE_WORDS,
    REMOVED,
    is_plain,
    is_safe_value,
    names_patient,
    safe_parts,
)
from neuralmedbench.deid.headers.times import NO_TIMES, Times, moved_day, moved_moment, moved_time
from neuralmedbench.deid.values import clean_agent, clean_descriptor, clean_pulse_name, top_code_age
from neuralmedbench.files.pseudonyms import device_pseudonym, uid_pseudonym

MAX_MEASURE = 1000.0
"""Sizes in m and weights in kg are smaller."""
DUMMIES = {"DA": b"19000101", "TM": b"000000", "DT": b"19000101000000", "DS": b"0", "IS": b"0"}
CODE_MEANING = 0x00080104
PULSE_NAMES = frozenset({0x00180024, 0x00189005})
TABLE, TEXT, DATES, UIDS, KEPT = "table", "text", "dates", "uids", "kept"
WITHOUT_VALUE = frozenset({Action.KEEP, Action.EMPTY, Action.EMPTY_OR_GONE, Action.DUMMY, Action.OPTIONAL, Action.OPTIONAL_VALUE})


Cleaned = tuple[bytes | None, str]
"""The value (None: the element goes) and the name of the check that changed it, or `kept`."""


def clean_value(
    tag: int, vr: str, value: bytes, rules: HeaderRules, *, enhanced: bool = False, meaning: str = "", times: Times = NO_TIMES
) -> Cleaned:
    """Clean the value of one standard element that is no sequence.

    Parameters
    ----------
    tag : int
        Group in the upper 16 bits.
    vr : str
        Value representation.
    value : bytes
        As encoded in the file, values separated by a backslash.
    rules : HeaderRules
        Key, dates, the patient's own values, options.
    enhanced : bool
        Whether the image is of a kind that needs more elements than a plain MR or CT image.
    meaning : str
        What the code means that the element belongs to, in a published coding scheme.
    times : Times
        What times of day are counted from.

    Returns
    -------
    tuple of bytes or None, and str
        The value to show, and the check that changed it.
    """
    action = action_of(tag)
    bare = value.rstrip(b"\0 ")
    unlisted = tag in CLOSED_LISTS and not CLOSED_LISTS[tag].fullmatch(bare.decode("ascii", "replace"))
    if action is Action.REMOVE or unlisted:
        return None, TEXT if unlisted else TABLE
    if not bare or action is Action.PIXELS or (action is Action.KEEP and is_safe_value(vr, value if vr in BINARY_NUMBERS else bare, rules)):
        return value, KEPT
    if action is Action.UID:
        return _clean_uids(bare, rules, value)
    if action is Action.DATE:
        return _clean_date(tag, vr, bare, rules, enhanced=enhanced, times=times), DATES
    if action in WITHOUT_VALUE:
        return (safe_parts(tag, vr, bare, rules), TEXT) if action is Action.KEEP else (_without_value(action, vr, enhanced=enhanced), TABLE)
    return _clean_named(action, tag, vr, bare, rules, enhanced=enhanced, meaning=meaning)


def _clean_named(
    action: Action, tag: int, vr: str, bare: bytes, rules: HeaderRules, *, enhanced: bool, meaning: str
) -> Cleaned:  # fmt: skip
    """Clean what an option decides about: descriptions, agent, patient, device."""
    text = bare.decode("ascii", "replace").strip()
    without = _without_value(table_action(tag) or Action.EMPTY, vr, enhanced=enhanced)
    if action in {Action.WORDS, Action.TEXT}:
        shown, check = _clean_text(tag, vr, text, rules, without)
        if tag == CODE_MEANING and text != meaning:  # a code without a meaning is not valid
            return meaning.encode() or shown or REMOVED, TEXT
        return (shown, check) if tag != CODE_MEANING else (text.encode(), KEPT)
    if action is Action.AGENT:
        return (clean_agent(text) if "113105" in rules.held else "contrast agent").encode(), TEXT
    if action is Action.PATIENT:
        kept = _of_patient(text, vr, rules) if "113108" in rules.held else ""
        return (kept.encode(), KEPT if kept == text else TABLE) if kept else (without, TABLE)
    return _clean_device(action, text, rules, without if action is Action.DEVICE_ID else REMOVED if enhanced else None)


def _clean_device(action: Action, text: str, rules: HeaderRules, without: bytes | None) -> Cleaned:
    """Keep a device's model and software; its numbers become pseudonyms, or go where only years are shown."""
    if "113109" not in rules.held:
        return without, TABLE
    if action is Action.DEVICE:
        return (text.encode(), KEPT) if is_plain(text, DEVICE_WORDS, rules) else (without, TEXT)
    safe_harbor = rules.dates.years_only and not rules.dates.emptied
    return (without if safe_harbor else device_pseudonym(rules.key, text).encode()), TABLE


def _clean_text(tag: int, vr: str, text: str, rules: HeaderRules, without: bytes | None) -> Cleaned:
    """Keep the words of a description that are about scans."""
    if vr not in TEXT_VRS or vr in {"PN", "AE", "UR"}:
        return b"", TEXT
    if "113105" not in rules.held:
        return without, TEXT
    cleaned = clean_pulse_name(text) if tag in PULSE_NAMES else clean_descriptor(text)
    words = " ".join(word for word in cleaned.split() if not names_patient(word, rules))
    if names_patient(words, rules):  # words that name the patient together
        words = ""
    return words.encode(), KEPT if words == text else TEXT


def _of_patient(text: str, vr: str, rules: HeaderRules) -> str:
    """Age, sex, size, weight or smoking of a patient; empty when it is none."""
    if vr == "AS":
        return top_code_age(text)
    if vr == "DS":
        try:
            return text if 0 < float(text) < MAX_MEASURE else ""
        except ValueError:
            return ""
    return text if text in {"M", "F", "O", "YES", "NO", "UNKNOWN"} and not names_patient(text, rules) else ""


def _clean_uids(bare: bytes, rules: HeaderRules, value: bytes) -> Cleaned:
    from pydicom._uid_dict import UID_dictionary  # what the standard gives; a number of a patient fits below its root too

    uids = bare.decode("ascii", "replace").split("\\")
    shown = [uid if not uid or uid in UID_dictionary else uid_pseudonym(rules.key, uid.strip("\0 ")) for uid in uids]
    return (value, KEPT) if shown == uids else ("\\".join(shown).encode(), UIDS)


def _clean_date(tag: int, vr: str, bare: bytes, rules: HeaderRules, *, enhanced: bool, times: Times) -> bytes | None:
    """Give valid dates and times in place of dates and times, or nothing where none was."""
    listed = table_action(tag)
    if rules.dates.emptied:
        return _without_value(listed or Action.REMOVE, vr, enhanced=enhanced)
    parts = bare.decode("ascii", "replace").split("\\")
    if vr == "TM":
        return "\\".join(moved_time(part, times) for part in parts).encode()
    if vr == "DT":
        moved = [moved_moment(part, rules.dates, times) for part in parts]
    else:
        clocks = times.beside.split("\\")
        moved = [moved_day(part, clocks[place] if place < len(clocks) else "", rules.dates, times) for place, part in enumerate(parts)]
    return "\\".join(moved).encode() if any(moved) else b""


def _without_value(action: Action, vr: str, *, enhanced: bool) -> bytes | None:
    """Give what stands in the place of a value that the table takes away."""
    if action is Action.DUMMY or (enhanced and action in {Action.OPTIONAL, Action.OPTIONAL_VALUE}):
        return DUMMIES.get(vr, REMOVED) if vr not in BINARY_VRS else None
    return None if action in {Action.REMOVE, Action.OPTIONAL} else b""
