"""Why an element of a header is removed, changed or kept: the profile, the option or the own rule behind it."""

from __future__ import annotations

from neuralmedbench.config.element_rules import OURS
from neuralmedbench.deid.headers.diff import PRIVATE
from neuralmedbench.deid.headers.element_plan import GRAPHICS, MIN_GROUP, Action, action_of, table_action, vrs_of
from neuralmedbench.deid.headers.rules import BASIC, HeaderRules

PROFILE = f"basic profile ({BASIC})"
SETTING = "a number, a code, a setting or the vendor: conversion and reading need it"
OPTION_OF = {
    Action.WORDS: "113105", Action.TEXT: "113105", Action.AGENT: "113105", Action.DEVICE: "113109", Action.DEVICE_ID: "113109",
    Action.PATIENT: "113108", Action.CONTENT: "113104", Action.DATE: "113107",
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
    if keyword == PRIVATE:
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
    return f"{PROFILE}: private, and not among the numbers of 113111" if "113111" in rules.held else f"{PROFILE}: 113111 is not applied"


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
    if code in rules.held:
        gone = action in {"removed", "emptied"}
        return f"{code}: {WITH_OPTION[plan]}{'; no part of this value is such' if gone else ''}"
    if plan is Action.DATE and not rules.dates.emptied:
        return "profile safe_harbor: dates keep their year"
    return f"{PROFILE}: {code} is not applied"
