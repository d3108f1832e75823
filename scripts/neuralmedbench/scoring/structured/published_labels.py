"""Labels as the published evaluator makes them: wrong spellings that it forgives are forgiven, and no other."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from neuralmedbench.files.yaml_text import load_yaml

UNDETERMINED = "undetermined"
"""Label of an answer that is null."""
TABLE = Path(__file__).with_name("published_labels.yaml")
NO_REFERENCE = (None, "", "null", "nan")
"""Values of the reference, compared as they stand, that take a row out of the series of a field."""

Rule = tuple[frozenset[str], tuple[str, ...], tuple[str, ...], str]


@cache
def _rules(series: str) -> tuple[Rule, ...]:
    """Rules of one series in their order: texts, parts of which one is enough, parts that all have to be there, label."""
    table: dict[str, list[dict[str, Any]]] = load_yaml(TABLE.read_text(encoding="utf-8"))
    return tuple(
        (frozenset(rule.get("is", ())), tuple(rule.get("has", ())), tuple(rule.get("has_all", ())), rule["label"]) for rule in table[series]
    )


def published_label(series: str, value: object) -> str:
    """Give the published evaluator's label of a value, of an answer and of the reference alike.

    Parameters
    ----------
    series : str
        `class`, `sub`, `mod`, `mod_sub` or `pl`, as in its names of metrics.
    value : object
        Any value of JSON; what is no text is spelled as Python does.

    Returns
    -------
    str
        The label; `undetermined` for null.

    Examples
    --------
    >>> published_label("class", "Pituitary_Tumor"), published_label("sub", "papilloma"), published_label("mod", "fMRI")
    ('tumor', 'papiloma', 'mri')
    """
    if value is None:
        return UNDETERMINED
    return _label(series, _spelled(value).strip().lower().replace("_", " "))


def has_reference(value: object) -> bool:
    """Tell whether a value of the reference puts its row into the series of the field; a list or an object is none."""
    return not isinstance(value, list | dict) and value not in NO_REFERENCE


def published_confidence(value: Any) -> float:
    """Give the published evaluator's number of a stated confidence: 0 for one that is missing or no number, not clipped, NaN for NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


@lru_cache(maxsize=10_000)
def _label(series: str, text: str) -> str:
    for texts, parts, together, label in _rules(series):
        if text in texts or any(part in text for part in parts) or (together and all(part in text for part in together)):
            return label
    return text


def _spelled(value: object) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError):  # nested too deep to be written out, or a number of thousands of digits
        return "unreadable"
