"""Building blocks of grader tasks: blinding an answer, the evidence of its case, and schema and parsing of the JSON reply."""

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
from neuralmedbench.records.json_objects import objects_in
from neuralmedbench.records.thoughts import without_thoughts
from neuralmedbench.scoring.structured_answer import read_json, valid_text

MAX_CHARACTERS = 12_000
"""An answer is cut to this many characters before grading."""
VERDICTS = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}
"""Words for a verdict."""
MOST_SHOWN = 1e6

_BRACKETS = str.maketrans(dict.fromkeys("＜﹤〈⟨❮❰‹", "<") | dict.fromkeys("＞﹥〉⟩❯❱›", ">"))
"""Look-alikes of the brackets of a tag; quotation marks of other languages («») stay."""

_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"') | dict.fromkeys("‘’‚", "'") | dict.fromkeys("–—−‐‑", "-"))
_WHITE_SPACE = frozenset("\n\t")

_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: they change how a character looks, and hundreds of them after one can encode a hidden sentence."""

_ANY_BRACKETS = str.maketrans(dict.fromkeys("＜﹤〈⟨❮❰‹❬〈⦑⧼ᐸ˂𝈶≺⟪《≪⪡", "<") | dict.fromkeys("＞﹥〉⟩❯❱›❭〉⦒⧽ᐳ˃𝈷≻⟫》≫⪢", ">"))
"""More look-alikes, in the scripts and symbols of Unicode."""

_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters, marks and blanks that show nothing: those that Unicode lets programs ignore, which are not of the categories C, and the empty
Braille pattern."""

_LINE_ENDS = str.maketrans(dict.fromkeys("\x0b\x0c\x85\u2028\u2029", "\n"))


@dataclass(frozen=True)
class GradingInput:
    """An answer to grade, with its item and gold; `blinded` is its text after blinding (`blind`) and before escaping."""

    item: Item
    gold: Gold
    text: str
    blinded: str


@dataclass(frozen=True)
class CriterionJudgement:
    """A grader's judgement of one criterion; value None: it failed on this criterion only."""

    criterion: str
    value: float | None
    explanation: str


class UnreadReplyError(ValueError):
    """A grader's reply that decides nothing; its words say what it has instead of its form, and nothing of its own text."""


@dataclass(frozen=True)
class GraderTask:
    """One task: the items it applies to, its criteria with points, the schema of the reply, extra values of its template, and its parser.

    `parse` raises UnreadReplyError for an invalid reply; a criterion that the reply does not decide has no judgement.
    """

    applies: Callable[[Item, Gold], bool]
    criteria: Callable[[Item, Gold], Mapping[str, float]]
    schema: Callable[[Item, Gold], str]
    values: Callable[[GradingInput], Mapping[str, object]]
    parse: Callable[[str, GradingInput], list[CriterionJudgement]]

    def read(self, text: str, subject: GradingInput) -> list[CriterionJudgement] | None:
        """Return the judgements of a reply; None for an invalid one."""
        try:
            return self.parse(text, subject)
        except UnreadReplyError:
            return None

    def fault(self, text: str, subject: GradingInput) -> str:
        """Say why a reply is invalid; empty if it is not."""
        try:
            self.parse(text, subject)
        except UnreadReplyError as error:
            return str(error)
        return ""


def truncate(text: str) -> str:
    """Cut an answer to `MAX_CHARACTERS`; half a surrogate pair, which cannot be sent, becomes a question mark."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def blind(text: str, names: Iterable[str]) -> str:
    """Cut an answer to `MAX_CHARACTERS`, without names of its model, invisible characters and look-alikes of brackets.

    Formatting, direction, private-use and control characters are removed because an answer could use them to address only the grader.
    """
    start = text[: 4 * MAX_CHARACTERS]  # enough even after removals; an answer may have a million characters
    return truncate(hide_names("".join(filter(_is_visible, start)).translate(_BRACKETS), names)[0])


def blind_thoroughly(text: str, names: Iterable[str]) -> str:
    """Blind an answer as `blind` does, also without letters that show nothing, and with every look-alike of a bracket as a bracket.

    For the prompts from `grader-v4`, `grader-rubric-v2`, `grader-reasoning-v2` and `grader-errors-v2` on: the requests of earlier ones stay
    as they were paid for.
    """
    start = text[: 4 * MAX_CHARACTERS].translate(_LINE_ENDS)
    seen = "".join(letter for letter in start if _is_visible(letter) and letter not in _UNSEEN_LETTERS)
    return truncate(hide_names(seen.translate(_ANY_BRACKETS), names)[0])


def _is_visible(character: str) -> bool:
    return character in _WHITE_SPACE or not (unicodedata.category(character).startswith("C") or character in _SELECTORS)


def escape_markup(text: str) -> str:
    """Escape an answer so that it cannot open or close a tag."""
    return escape(text, quote=False)


def contains_quote(text: str, quote: str) -> bool:
    """Return True if an answer contains a quote; case, white space, kinds of quotation mark and dash, and escapes do not matter.

    Examples
    --------
    >>> contains_quote("There is a mass in the left insula.", "a mass in the Left insula")
    True
    >>> contains_quote("There is a mass in the left insula.", "a mass in the right insula")
    False
    """
    # a quote without a letter or digit would be found anywhere
    wanted = _plain(quote).strip(" .…\"'")
    return bool(re.search(r"\w", wanted)) and wanted in _plain(text)


def _plain(text: str) -> str:
    # the grader saw the escaped text and may quote `&lt;`
    seen = "".join(letter for letter in unescape(text) if letter not in _UNSEEN_LETTERS).translate(_ANY_BRACKETS)
    return " ".join(unicodedata.normalize("NFKC", seen).translate(_QUOTES).casefold().split())


def case_evidence(subject: GradingInput) -> list[str]:
    """List what is known about a case: history, text revealed in a dialogue, findings (in place of the pictures), lesion, arguments."""
    item, gold = subject.item, subject.gold
    texts = [item.record, item.notes, *(turn.reveal for turn in item.turns)]
    facts = [f"Finding: {finding}" for finding in gold.findings]
    if gold.findings:
        facts.append("The list of findings is complete." if gold.findings_complete else "The list of findings may be incomplete.")
    facts += [_lesion_line(gold.lesion)] if gold.lesion else []
    facts += [f"Argument for the reference: {statement}" for statement in gold.rationale]
    facts += [f"To be considered: {term}" for term in gold.differentials]
    facts += [f"Wrong or dangerous to say: {statement}" for statement in gold.must_not]
    return [entry for entry in (text.strip() for text in (*texts, *facts)) if entry]


def _lesion_line(lesion: Lesion) -> str:
    signals = "; ".join(f"{signal} on {sequence}" for sequence, signal in sorted(lesion.behaviour.items()))
    parts = [f"Lesion: {lesion.location}", f"side: {lesion.side or 'not stated'}", signals]
    return ", ".join(part for part in parts if part)


def object_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties, all of them required."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def schema_text(properties: Mapping[str, object]) -> str:
    """Return such a schema as JSON, as it is sent."""
    return json.dumps(object_schema(properties))


def object_of(text: str, *names: str) -> dict[str, Any]:
    """Return the one JSON object with these names in a reply: alone, in a code fence, behind a thought or between words.

    UnreadReplyError if there is none, more than one, or a name in it is repeated, absent or another one.
    """
    plain = without_thoughts(text).strip()
    value = read_json(plain, _unique_names)
    if value is None:
        values = [value for value in objects_in(plain, _unique_names) if set(names) & set(value)]
        if len(values) != 1:
            message = "several JSON objects" if values else "no JSON object"
            raise UnreadReplyError(message)
        value = valid_text(values[0])
    return with_exactly(value, *names)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        message = "a name occurs twice"
        raise ValueError(message)
    return value


def with_exactly(value: object, *names: str) -> dict[str, Any]:
    """Return a value that is an object with exactly these names; UnreadReplyError for any other."""
    if not isinstance(value, dict):
        message = f"{_kind(value)} for an object"
        raise UnreadReplyError(message)
    if absent := [name for name in names if name not in value]:
        message = f"no `{absent[0]}`"
        raise UnreadReplyError(message)
    if len(value) > len(names):
        message = "a name that was not asked for"
        raise UnreadReplyError(message)
    return value


def list_of(value: object) -> list[Any]:
    """Return a value that is a list; UnreadReplyError for any other."""
    if not isinstance(value, list):
        message = f"{_kind(value)} for a list"
        raise UnreadReplyError(message)
    return value


def words_of(value: object, *allowed: str) -> str:
    """Return a value that is a text, one of the allowed ones if there are any; UnreadReplyError for any other."""
    if not isinstance(value, str) or (allowed and value not in allowed):
        message = f"{_kind(value)} for {'one of the names' if allowed else 'words'}"
        raise UnreadReplyError(message)
    return value


def one_or_zero(value: object) -> int:
    """Return a verdict, also one that is written as a truth value, or any of both as words; UnreadReplyError for any other.

    Examples
    --------
    >>> one_or_zero(1), one_or_zero(True), one_or_zero("false"), one_or_zero("0")
    (1, 1, 0, 0)
    """
    value = VERDICTS.get(value.strip().lower(), value) if isinstance(value, str) else value
    if not isinstance(value, int | float) or value not in (0, 1):
        message = f"{_kind(value)} for 0 or 1"
        raise UnreadReplyError(message)
    return int(value)


def _kind(value: object) -> str:
    """Return what a value is; of a grader's own text nothing."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}" if abs(value) < MOST_SHOWN else "another number"
    return {str: "other words", list: "a list", dict: "an object", bool: "a truth value"}.get(type(value), "null")
