"""What a model grader is shown of an answer and its case, what it is asked for, and how its JSON reply is read."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from neuralmedbench.records.blinding import hide_names
from neuralmedbench.records.items import Gold, Item, Lesion
from neuralmedbench.scoring.structured_answer import read_json

MAX_CHARACTERS = 12_000
"""Longest candidate text that a grader is shown."""

_BRACKETS = str.maketrans(dict.fromkeys("＜﹤〈⟨❮❰‹", "<") | dict.fromkeys("＞﹥〉⟩❯❱›", ">"))
"""Signs that look like the brackets of a tag; quotation marks of other languages («») stay."""

_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"') | dict.fromkeys("‘’‚", "'") | dict.fromkeys("–—−‐‑", "-"))
_KEPT = frozenset("\n\t")

_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: they change the look of a sign, and hundreds of them behind one can spell a hidden sentence."""


@dataclass(frozen=True)
class GradingInput:
    """An answer to grade with its item and gold; `shown` is the text as a blind grader sees it (`blind`), before escaping."""

    item: Item
    gold: Gold
    text: str
    shown: str


@dataclass(frozen=True)
class CriterionJudgement:
    """A grader's judgement of one criterion; value None: it failed on this one alone."""

    criterion: str
    value: float | None
    explanation: str


@dataclass(frozen=True)
class GraderTask:
    """One task: which items it applies to, its criteria with points, the schema of the reply, extra values of its template, and its reader.

    `read` gives None when the reply is not in its form and never raises; a criterion that cannot be judged from the reply has no
    judgement.
    """

    applies: Callable[[Item, Gold], bool]
    criteria: Callable[[Item, Gold], Mapping[str, float]]
    schema: Callable[[Item, Gold], str]
    values: Callable[[GradingInput], Mapping[str, object]]
    read: Callable[[str, GradingInput], list[CriterionJudgement] | None]


def truncate(text: str) -> str:
    """Give the start of an answer, as long as a grader is shown; half a surrogate pair, which cannot be sent, becomes a question mark."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def blind(text: str, names: Iterable[str]) -> str:
    """Give the start of an answer without names of its model, invisible characters and look-alikes of brackets.

    Formatting, direction, private and control characters go because an answer could address the grader alone with them.
    """
    start = text[: 4 * MAX_CHARACTERS]  # far enough for what is taken out of it, and no longer: an answer may have a million signs
    return truncate(hide_names("".join(filter(_is_seen, start)).translate(_BRACKETS), names)[0])


def _is_seen(sign: str) -> bool:
    return sign in _KEPT or not (unicodedata.category(sign).startswith("C") or sign in _SELECTORS)


def escape_markup(text: str) -> str:
    """Make an answer unable to open or close a tag."""
    return escape(text, quote=False)


def contains_quote(text: str, quote: str) -> bool:
    """Whether an answer holds the quoted words; case, white space, kinds of quotation mark and dash, and escapes do not matter.

    Examples
    --------
    >>> contains_quote("There is a mass in the left insula.", "a mass in the Left insula")
    True
    >>> contains_quote("There is a mass in the left insula.", "a mass in the right insula")
    False
    """
    wanted = _plain(quote).strip(" .…\"'")
    return bool(re.search(r"\w", wanted)) and wanted in _plain(text)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", unescape(text)).translate(_QUOTES).casefold().split())


def case_evidence(subject: GradingInput) -> list[str]:
    """List what is known of a case: history, what a dialogue revealed, findings, lesion, arguments; the findings stand for the pictures."""
    item, gold = subject.item, subject.gold
    told = [item.record, item.notes, *(turn.reveal for turn in item.turns)]
    found = [f"Finding: {finding}" for finding in gold.findings]
    if gold.findings:
        found.append("The list of findings is complete." if gold.findings_complete else "The list of findings may be incomplete.")
    found += [_lesion_line(gold.lesion)] if gold.lesion else []
    found += [f"Argument for the reference: {statement}" for statement in gold.rationale]
    found += [f"To be considered: {term}" for term in gold.differentials]
    found += [f"Wrong or dangerous to say: {statement}" for statement in gold.must_not]
    return [entry for entry in (text.strip() for text in (*told, *found)) if entry]


def _lesion_line(lesion: Lesion) -> str:
    signals = "; ".join(f"{signal} on {sequence}" for sequence, signal in sorted(lesion.behaviour.items()))
    parts = [f"Lesion: {lesion.location}", f"side: {lesion.side or 'not stated'}", signals]
    return ", ".join(part for part in parts if part)


def object_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    """Give the schema of an object whose names are all required and the only ones."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def schema_text(properties: Mapping[str, object]) -> str:
    """Give such a schema as it is sent."""
    return json.dumps(object_schema(properties))


def read_json_object(text: str) -> dict[str, Any] | None:
    """Read a text that is one JSON object and nothing else; None for text around it, a fence, or a repeated key (which value counts?)."""
    value = read_json(text, _unique_names)
    return value if isinstance(value, dict) else None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        message = "a name stands twice"
        raise ValueError(message)
    return found


def has_exactly(value: object, *names: str) -> bool:
    """Whether a value is an object with these names and no others."""
    return isinstance(value, dict) and set(value) == set(names)


def is_one_of(value: object, *allowed: int) -> bool:
    """Whether a value is one of some whole numbers; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, int | float) and value in allowed
