"""Task `errors`: which errors of the taxonomy an answer makes, how much they weigh, and in which words."""

from __future__ import annotations

from collections.abc import Mapping

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.taxonomy import ERROR_AXIS, TAXONOMY, ErrorCode, counts_under
from neuralmedbench.scoring.llm.candidate import holds
from neuralmedbench.scoring.llm.evidence import case_evidence
from neuralmedbench.scoring.llm.reading import has_exactly, is_one_of, read_object
from neuralmedbench.scoring.llm.task import GraderTask, Subject, Word, object_schema, schema_text

ABSENT, MINOR, SIGNIFICANT = 0.0, 1.0, 2.0
NO_QUOTE = "the quoted words are not in the answer"


def told_errors(item: Item, gold: Gold) -> list[ErrorCode]:
    """Give the errors that can be told from an item: those whose condition it meets."""
    return [error for error in TAXONOMY if counts_under(error, lesion_shown=item.lesion_shown, findings_complete=gold.findings_complete)]


def _criteria(item: Item, gold: Gold) -> Mapping[str, float]:
    return {f"{ERROR_AXIS}{error.code}": 1.0 for error in told_errors(item, gold)}


def _schema(item: Item, gold: Gold) -> str:
    label = {
        "code": {"enum": [error.code for error in told_errors(item, gold)]},
        "significant": {"enum": [0, 1]},
        "quote": {"type": "string"},
        "explanation": {"type": "string"},
    }
    return schema_text({"errors": {"type": "array", "items": object_schema(label)}})


def _values(subject: Subject) -> Mapping[str, object]:
    return {"evidence": case_evidence(subject), "errors": told_errors(subject.item, subject.gold)}


def _read(text: str, subject: Subject) -> list[Word] | None:
    value, known = read_object(text), {error.code: error for error in told_errors(subject.item, subject.gold)}
    if value is None or not has_exactly(value, "errors") or not isinstance(value["errors"], list):
        return None
    words = {code: Word(f"{ERROR_AXIS}{code}", ABSENT, "") for code in known}
    for label in value["errors"]:
        if not has_exactly(label, "code", "significant", "quote", "explanation") or not is_one_of(label["significant"], 0, 1):
            return None
        if not all(isinstance(label[name], str) for name in ("code", "quote", "explanation")) or label["code"] not in known:
            return None
        words[label["code"]] = _weightier(words[label["code"]], _word(label, known[label["code"]], subject.shown))
    return list(words.values())


def _word(label: Mapping[str, str], error: ErrorCode, shown: str) -> Word:
    """Judge one label: what was left out cannot be quoted, everything else must be."""
    quote, name = label["quote"].strip(), f"{ERROR_AXIS}{error.code}"
    if not (holds(shown, quote) or (error.omission and not quote)):
        return Word(name, None, NO_QUOTE)
    explanation = f"“{quote}” {label['explanation']}" if quote else label["explanation"]
    return Word(name, SIGNIFICANT if label["significant"] else MINOR, explanation)


def _weightier(one: Word, other: Word) -> Word:
    """Of two labels of one code the weightier stands; one that failed stands only where no other shows the error."""
    rank = {ABSENT: 0, None: 1, MINOR: 2, SIGNIFICANT: 3}
    return max(one, other, key=lambda word: rank[word.value])


TASK = GraderTask(applies=lambda _item, _gold: True, criteria=_criteria, schema=_schema, values=_values, read=_read)
