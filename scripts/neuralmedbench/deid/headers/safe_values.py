"""Whether a value of a DICOM header, as it is encoded in the file, is what its VR says and names no patient."""

from __future__ import annotations

import re
import struct

from neuralmedbench.deid.headers.element_plan import DATE_VRS, TEXT_VRS
from neuralmedbench.deid.headers.rules import HeaderRules

PLAIN = re.compile(r"[A-Za-z0-9 ._+*/()-]{0,64}")
DEVICE_WORDS = re.compile(r"[A-Za-z0-9 ._+*/()=:,#&-]{0,64}")
_NUMBER = rb"(?: *[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)? *"
NUMBERS = re.compile(_NUMBER + rb"(?:\\" + _NUMBER + rb")*")
"""Values of DS and IS: numbers without spaces in them."""
LONG_NUMBER = re.compile(rb"(?<![\d.])\d{6}")
"""Settings of a scan are shorter than the numbers that name a patient."""
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
"""SpecificCharacterSet and BodyPartExamined: codes of which all that mean something here are known; people write into the second."""


def is_safe_value(vr: str, bare: bytes, rules: HeaderRules) -> bool:
    """Whether a value is what its VR says, and names no patient."""
    if vr in {"DS", "IS"}:
        return NUMBERS.fullmatch(bare) is not None and not (LONG_NUMBER.search(bare) and names_patient(bare.decode("ascii"), rules))
    if vr == "CS" or vr in TEXT_VRS:
        return is_plain(bare.decode("ascii", "replace"), PLAIN if vr == "CS" else DEVICE_WORDS, rules)
    if vr == "AS":
        return AGE.fullmatch(bare.decode("ascii", "replace")) is not None
    if vr in DATE_VRS or names_patient(bare.decode("latin-1").replace("\0", ""), rules):  # text, plain or UTF-16, in the place of numbers
        return False
    return vr not in BINARY_NUMBERS or not any(names_patient(number, rules) for number in _long_numbers(vr, bare))


def _long_numbers(vr: str, value: bytes) -> list[str]:
    """Whole numbers of six digits and more, in either byte order: a patient's number may stand among settings."""
    kind = BINARY_NUMBERS[vr]
    count = len(value) // struct.calcsize(f"<{kind}")
    if not 0 < count <= MAX_CHECKED:
        return []
    numbers = [number for order in "<>" for number in struct.unpack_from(f"{order}{count}{kind}", value)]
    return [str(int(number)) for number in numbers if MIN_LONG <= abs(number) < MAX_LONG and number == int(number)]


def safe_parts(tag: int, vr: str, bare: bytes, rules: HeaderRules) -> bytes | None:
    """Give what is left of a value that is not safe as a whole: of several codes, those that name nobody."""
    if vr != "CS":
        return b"" if vr in TEXT_VRS else None
    parts = [part if is_safe_value("CS", part, rules) else b"" for part in bare.split(b"\\")]
    if tag == IMAGE_TYPE:  # its values are known by their places
        return b"\\".join(part or REMOVED for part in parts)
    return b"\\".join(part for part in parts if part) or None


def is_plain(text: str, words: re.Pattern[str], rules: HeaderRules) -> bool:
    """Whether every value of a text is of a pattern, and none names the patient."""
    return all(words.fullmatch(part) for part in text.split("\\")) and not names_patient(text, rules)


def names_patient(text: str, rules: HeaderRules) -> bool:
    """Whether one of the patient's own values stands in a text."""
    return rules.identifying is not None and rules.identifying.search(text.replace("_", " ")) is not None
