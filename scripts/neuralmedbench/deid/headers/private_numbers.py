"""Private elements that hold nothing but numbers a conversion needs: named by their creator, kept only while they are numbers."""

from __future__ import annotations

import math
import re
import struct

SAFE = {
    ("SIEMENS MR HEADER", 0x0019, 0x0A): ("US", 1),  # images in a mosaic
    ("SIEMENS MR HEADER", 0x0019, 0x0B): ("DS", 1),  # duration of a slice
    ("SIEMENS MR HEADER", 0x0019, 0x0C): ("IS", 1),  # b-value
    ("SIEMENS MR HEADER", 0x0019, 0x0E): ("FD", 3),  # gradient direction
    ("SIEMENS MR HEADER", 0x0019, 0x27): ("FD", 6),  # b-matrix
    ("SIEMENS MR HEADER", 0x0019, 0x28): ("FD", 1),  # bandwidth per pixel, phase encoding
    ("Philips Imaging DD 001", 0x2001, 0x03): ("FL", 1),  # b-value
    ("Philips Imaging DD 001", 0x2001, 0x0A): ("IS", 1),  # slice number
    ("Philips Imaging DD 001", 0x2001, 0x18): ("SL", 1),  # number of slices
    ("Philips MR Imaging DD 001", 0x2005, 0x0D): ("FL", 1),  # scale intercept
    ("Philips MR Imaging DD 001", 0x2005, 0x0E): ("FL", 1),  # scale slope
    ("Philips MR Imaging DD 001", 0x2005, 0xB0): ("FL", 1),  # gradient direction, right to left
    ("Philips MR Imaging DD 001", 0x2005, 0xB1): ("FL", 1),  # front to back
    ("Philips MR Imaging DD 001", 0x2005, 0xB2): ("FL", 1),  # feet to head
    ("GEMS_PARM_01", 0x0043, 0x39): ("IS", 4),  # b-value
    ("GEMS_ACQU_01", 0x0019, 0xBB): ("DS", 1),  # gradient direction x
    ("GEMS_ACQU_01", 0x0019, 0xBC): ("DS", 1),  # y
    ("GEMS_ACQU_01", 0x0019, 0xBD): ("DS", 1),  # z
    ("GEMS_ACQU_01", 0x0019, 0xE0): ("DS", 1),  # number of directions
}
"""Creator, group and the element within its block, with the VR and the largest number of values; see PS3.15 Table E.3.10-1 and the vendors'
conformance statements."""
CREATORS = frozenset(creator for creator, _, _ in SAFE)

LEAST, MOST = 1e-9, 1e9
"""Settings lie between; letters that are read as numbers mostly do not."""
NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
MAX_DIGITS = 16
BINARY = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "FL": "f", "FD": "d"}


def vr_of(creator: str, tag: int) -> str:
    """VR of an element on the list, whatever a file says of it."""
    return SAFE[creator, tag >> 16, tag & 0xFF][0]


def is_safe(creator: str, tag: int, vr: str, value: bytes, *, little_endian: bool) -> bool:
    """Whether a private element is on the list and holds what the list says: numbers, no more of them than it has.

    Parameters
    ----------
    creator : str
        The private creator that reserved the element's block.
    tag : int
        Tag, group in the upper 16 bits.
    vr : str
        VR that the file gives, `UN` when it gives none.
    value : bytes
        As encoded in the file.
    little_endian : bool
        Byte order of binary numbers.
    """
    known = SAFE.get((creator, tag >> 16, tag & 0xFF))
    if known is None or vr not in {known[0], "UN"}:
        return False
    kind, most = known
    if kind in BINARY:
        size = struct.calcsize(f"<{BINARY[kind]}")
        count, rest = divmod(len(value), size)
        if rest or not 0 < count <= most:
            return False
        numbers = struct.unpack(f"{'<' if little_endian else '>'}{count}{BINARY[kind]}", value)
        return all(math.isfinite(number) and (number == 0 or LEAST <= abs(number) <= MOST) for number in numbers)
    parts = [part.strip() for part in value.rstrip(b"\0 ").split(b"\\")]
    return len(parts) <= most and all(len(part) <= MAX_DIGITS and NUMBER.fullmatch(part) for part in parts)
