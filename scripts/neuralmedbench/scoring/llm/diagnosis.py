"""Task `diagnosis`: main condition and core diagnosis, the two items of the paper."""

from __future__ import annotations

from collections.abc import Mapping

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.scoring.checklist import is_checklist
from neuralmedbench.scoring.llm.reading import has_exactly, is_one_of, read_object
from neuralmedbench.scoring.llm.task import GraderTask, Subject, Word, schema_text
from neuralmedbench.scoring.rubric import CORE_DIAGNOSIS, MAIN_CONDITION

CRITERIA = {MAIN_CONDITION: 1.0, CORE_DIAGNOSIS: 1.0}
SCHEMA = schema_text({**{name: {"enum": [0, 1]} for name in CRITERIA}, "explanation": {"type": "string"}})


def _values(subject: Subject) -> Mapping[str, object]:
    return {"checklist": is_checklist(subject.text)}


def _read(text: str, _subject: Subject) -> list[Word] | None:
    return read_verdict(text)


def read_verdict(text: str) -> list[Word] | None:
    """Read a grader's answer: one JSON object with exactly the keys that were asked for, or nothing."""
    value = read_object(text)
    if value is None or not has_exactly(value, *CRITERIA, "explanation") or not isinstance(value["explanation"], str):
        return None
    if not all(is_one_of(value[name], 0, 1) for name in CRITERIA):
        return None
    return [Word(name, float(value[name]), value["explanation"]) for name in CRITERIA]


def _always(_item: Item, _gold: Gold) -> bool:
    return True


TASK = GraderTask(
    applies=_always,
    criteria=lambda _item, _gold: CRITERIA,
    schema=lambda _item, _gold: SCHEMA,
    values=_values,
    read=_read,
)
