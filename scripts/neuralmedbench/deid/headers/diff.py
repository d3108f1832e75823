"""What became of every element of a DICOM header: by its name and never by its value.

The header is compared before and after cleaning; what the cleaner says of itself is not asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neuralmedbench.deid.values import MIDNIGHT, parse_day
from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

ACTIONS = ("removed", "emptied", "replaced", "shifted", "cleaned", "added", "kept")
"""In the order in which a reviewer wants to read them."""
PRIVATE = "private element"
UNKNOWN = "element without a name"
TEXTS = frozenset({"LO", "SH", "LT", "ST", "UT", "UC", "PN", "CS"})
PIXELS = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010})

Snapshot = dict[tuple[int, ...], tuple[str, str, str]]
"""By path (tags, with the numbers of nested items between them): name, kind (VR) and value as text."""


def snapshot(dataset: Dataset) -> Snapshot:
    """Note every element of a header, nested ones too.

    Returns: For `changes`; it holds values, and stays in memory.
    """
    return dict(_walk(dataset, (), ""))


def _walk(dataset: Dataset, path: tuple[int, ...], outer: str) -> Iterator[tuple[tuple[int, ...], tuple[str, str, str]]]:
    for tag in list(dataset.keys()):
        if tag in PIXELS:
            continue
        try:
            element = dataset[tag]
        except Exception:  # a malformed element counts as one without a value; its text may not be shown
            yield (*path, int(tag)), (_name(int(tag), "", outer), "", "malformed")
            continue
        name = _name(int(tag), element.keyword, outer)
        nested = element.VR == "SQ"
        yield (*path, int(tag)), (name, element.VR, "" if nested else _text(dataset, tag, element))
        for number, item in enumerate(element.value or () if nested else ()):
            yield from _walk(item, (*path, int(tag), number), f"{name} > ")


def _name(tag: int, keyword: str, outer: str) -> str:
    return PRIVATE if tag >> 16 & 1 else outer + (keyword or UNKNOWN)


def _text(dataset: Dataset, tag: Any, element: Any) -> str:
    value = element.value
    return str(hash(value)) if isinstance(value, bytes) else dicom.text(dataset, tag)


def changes(before: Snapshot, dataset: Dataset) -> Counter[tuple[str, str]]:
    """Tell what cleaning did to a header.

    `before`: `snapshot` of the header as it came. Returns: How many elements of a name (`StudyDate`, `RequestAttributesSequence >
    ScheduledProcedureStepID`, `private element`) had which of `ACTIONS`. What lies in a removed sequence counts with it. A date or a time
    that became another one is `shifted`, a text that lost words `cleaned`.
    """
    after = snapshot(dataset)
    counts = Counter((name, "added") for path, (name, _, _) in after.items() if path not in before and len(path) == 1)
    for path, (name, kind, text) in before.items():
        if path in after:
            counts[name, _action(kind, text, after[path][2])] += 1
        elif len(path) < 3 or path[:-2] in after:  # otherwise the sequence around it is gone, and was counted
            counts[name, "removed"] += 1
    return counts


def _action(kind: str, old: str, new: str) -> str:
    if old == new:
        return "kept"
    if not old:
        return "added"
    if not new:
        return "emptied"
    if kind in {"DA", "DT"} and parse_day(old[:8]) and parse_day(new[:8]):
        return "shifted"
    if kind == "TM" and new != MIDNIGHT:
        return "shifted"
    return "cleaned" if kind in TEXTS and _words(new) < _words(old) else "replaced"


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))
