"""Task `rubric`: each criterion of an item's rubric, met or not."""

from __future__ import annotations

from collections.abc import Mapping

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.scoring.llm.reading import has_exactly, is_one_of, read_object
from neuralmedbench.scoring.llm.task import GraderTask, Subject, Word, object_schema, schema_text

_JUDGED = object_schema({"met": {"enum": [0, 1]}, "explanation": {"type": "string"}})


def _applies(_item: Item, gold: Gold) -> bool:
    return bool(gold.rubric)


def _criteria(_item: Item, gold: Gold) -> Mapping[str, float]:
    return {criterion.criterion: criterion.points for criterion in gold.rubric}


def _schema(_item: Item, gold: Gold) -> str:
    return schema_text({criterion.criterion: _JUDGED for criterion in gold.rubric})


def _values(subject: Subject) -> Mapping[str, object]:
    # points are not shown: a grader that knows what a criterion is worth could be lenient where it costs
    return {"criteria": [(criterion.criterion, criterion.text) for criterion in subject.gold.rubric]}


def _read(text: str, subject: Subject) -> list[Word] | None:
    value, names = read_object(text), list(_criteria(subject.item, subject.gold))
    if value is None or not has_exactly(value, *names):
        return None
    for judged in value.values():
        if (
            not has_exactly(judged, "met", "explanation")
            or not is_one_of(judged["met"], 0, 1)
            or not isinstance(judged["explanation"], str)
        ):
            return None
    return [Word(name, float(value[name]["met"]), value[name]["explanation"]) for name in names]


TASK = GraderTask(applies=_applies, criteria=_criteria, schema=_schema, values=_values, read=_read)
