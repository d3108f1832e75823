"""Classify the change of every element of a DICOM header, by name and never by value.

The header is compared before and after cleaning, independently of what the cleaner itself counts.
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
"""In the order shown to a reviewer."""
PRIVATE = "private element"
UNKNOWN = "element without a name"
TEXTS = frozenset({"LO", "SH", "LT", "ST", "UT", "UC", "PN", "CS"})
PIXELS = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010})

Snapshot = dict[tuple[int, ...], tuple[str, str, str]]
"""Name, VR and value as text of each element by path (tags, with the indices of nested items between them)."""


def snapshot(dataset: Dataset) -> Snapshot:
    """Record every element of a header, including nested ones, for `changes`; the result holds values and must stay in memory."""
    return dict(_walk(dataset, (), ""))


def _walk(dataset: Dataset, path: tuple[int, ...], outer: str) -> Iterator[tuple[tuple[int, ...], tuple[str, str, str]]]:
    for tag in list(dataset.keys()):
        if tag in PIXELS:
            continue
        try:
            element = dataset[tag]
        except Exception:  # a malformed element counts as one without a value; the message may hold the value
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
    return str(hash(value)) if isinstance(value, bytes) else dicom.text(dataset, tag)  # only compared within one process


def changes(before: Snapshot, dataset: Dataset) -> Counter[tuple[str, str]]:
    """Count what cleaning did to a header.

    `before`: `snapshot` of the original header. Returns the number of elements by name (`StudyDate`, `RequestAttributesSequence >
    ScheduledProcedureStepID`, `private element`) and action (`ACTIONS`). Elements in a removed sequence are counted with it. A date or time
    that was replaced by another is `shifted`, a text that lost words `cleaned`.
    """
    after = snapshot(dataset)
    counts = Counter((name, "added") for path, (name, _, _) in after.items() if path not in before and len(path) == 1)
    for path, (name, kind, text) in before.items():
        if path in after:
            counts[name, _action(kind, text, after[path][2])] += 1
        elif len(path) < 3 or path[:-2] in after:  # otherwise its sequence is gone and already counted
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
