"""Classify the change of every element of a DICOM header and give the rule behind it, by name and never by value.

The header is compared before and after cleaning, independently of what the cleaner itself counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neuralmedbench.config.deidentification import OURS
from neuralmedbench.deid.headers.rules import BASIC, GRAPHICS, MIN_GROUP, Action, HeaderRules, Option, action_of, table_action, vrs_of
from neuralmedbench.deid.values import MIDNIGHT, parse_day
from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

ACTIONS = ("removed", "emptied", "replaced", "shifted", "cleaned", "added", "kept")
"""In the order shown to a reviewer."""
PRIVATE_ELEMENT = "private element"
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
    return PRIVATE_ELEMENT if tag >> 16 & 1 else outer + (keyword or UNKNOWN)


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


PROFILE = f"basic profile ({BASIC})"
SETTING = "a number, a code, a setting or the vendor: conversion and reading need it"
OPTION_OF = {
    Action.WORDS: Option.DESCRIPTORS, Action.TEXT: Option.DESCRIPTORS, Action.AGENT: Option.DESCRIPTORS, Action.DEVICE: Option.DEVICE,
    Action.DEVICE_ID: Option.DEVICE, Action.PATIENT: Option.PATIENT, Action.CONTENT: Option.CONTENT, Action.DATE: Option.DATES,
}  # fmt: skip
"""Option that decides about a kind of element."""
WITH_OPTION = {
    Action.WORDS: "descriptions keep words about scans and nothing else",
    Action.TEXT: "texts keep words about scans and nothing else",
    Action.AGENT: "the contrast agent stays by name",
    Action.DEVICE: "the device stays by model and software",
    Action.DEVICE_ID: "identifiers of the device become pseudonyms",
    Action.PATIENT: "age (at most 90), sex, size, weight and smoking stay",
    Action.CONTENT: "structured content stays as codes and numbers",
    Action.DATE: "dates move by the patient's number of days, times count from the start of the study",
}
ACTION_OF_RULE = {"remove": ("removed",), "replace": ("replaced", "cleaned"), "keep": ("kept",)}


def reason_of(name: str, action: str, rules: HeaderRules) -> str:
    """Return why an element is treated so.

    `name`, `action`: as `diff.changes` counts them. `rules`: those of the patient.
    """
    from pydicom.datadict import keyword_dict

    keyword = name.rpartition(" > ")[2]
    if keyword == PRIVATE_ELEMENT:
        return _of_private(action, rules)
    if keyword not in keyword_dict:
        return f"{PROFILE}: the standard does not know it"
    tag = int(keyword_dict[keyword])
    if own := rules.elements.get(tag):
        return (
            f"own rule ({own})" if action in ACTION_OF_RULE[own] else f"own rule ({own}) does not apply: {_of_standard(tag, action, rules)}"
        )
    if name.partition(" > ")[0] in OURS:
        return "pseudonym of the patient" if name in {"PatientID", "PatientName"} else "declares the de-identification"
    if action == "added":
        return "an image has to have it: added without a value"
    return _of_standard(tag, action, rules)


def _of_private(action: str, rules: HeaderRules) -> str:
    if action == "kept":
        return "113111: private numbers that conversion needs stay"
    why = "private, and not among the numbers of 113111" if Option.SAFE_PRIVATE in rules.applied else "113111 is not applied"
    return f"{PROFILE}: {why}"


def _of_standard(tag: int, action: str, rules: HeaderRules) -> str:
    plan, group, kept = action_of(tag), tag >> 16, action == "kept"
    if plan in OPTION_OF:
        return _of_option(plan, action, rules)
    # the first condition that holds decides
    cases = (
        (plan is Action.UID, "a UID of the standard" if kept else f"{PROFILE}: UIDs are replaced under the key"),
        (plan is Action.ITEMS, "a sequence: its elements are cleaned one by one"),
        (plan is Action.KEEP, SETTING if kept else "its value does not fit its kind, or names the patient"),
        (group & 0xFF00 in GRAPHICS, "113103: overlays and curves go"),
        (table_action(tag) is not None, PROFILE),
        (group < MIN_GROUP or not vrs_of(tag), "it has no place in an image"),
    )
    return next((reason for applies, reason in cases if applies), "its kind of value cannot be checked")


def _of_option(plan: Action, action: str, rules: HeaderRules) -> str:
    code = OPTION_OF[plan]
    if code in rules.applied:
        gone = action in {"removed", "emptied"}
        return f"{code}: {WITH_OPTION[plan]}{'; no part of this value is such' if gone else ''}"
    if plan is Action.DATE and not rules.dates.emptied:
        return "profile safe_harbor: dates keep their year"
    return f"{PROFILE}: {code} is not applied"
