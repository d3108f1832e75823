"""The tasks `diagnosis`, `rubric` and `errors` of a model grader; `reasoning` stands beside them."""

from __future__ import annotations

from collections.abc import Mapping

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.taxonomy import ERROR_AXIS, TAXONOMY, ErrorCode, counts_under
from neuralmedbench.scoring.checklist import is_checklist
from neuralmedbench.scoring.llm.task import (
    CriterionJudgement,
    GraderTask,
    GradingInput,
    case_evidence,
    contains_quote,
    has_exactly,
    is_one_of,
    object_schema,
    read_json_object,
    schema_text,
)
from neuralmedbench.scoring.rubric import CORE_DIAGNOSIS, MAIN_CONDITION

_JUDGED = object_schema({"met": {"enum": [0, 1]}, "explanation": {"type": "string"}})


def _has_rubric(_item: Item, gold: Gold) -> bool:
    return bool(gold.rubric)


def _rubric_criteria(_item: Item, gold: Gold) -> Mapping[str, float]:
    return {criterion.criterion: criterion.points for criterion in gold.rubric}


def _rubric_schema(_item: Item, gold: Gold) -> str:
    return schema_text({criterion.criterion: _JUDGED for criterion in gold.rubric})


def _rubric_values(subject: GradingInput) -> Mapping[str, object]:
    # points are not shown: a grader that knows what a criterion is worth could be lenient where it costs
    return {"criteria": [(criterion.criterion, criterion.text) for criterion in subject.gold.rubric]}


def _read_rubric(text: str, subject: GradingInput) -> list[CriterionJudgement] | None:
    value, names = read_json_object(text), list(_rubric_criteria(subject.item, subject.gold))
    if value is None or not has_exactly(value, *names):
        return None
    for judged in value.values():
        if (
            not has_exactly(judged, "met", "explanation")
            or not is_one_of(judged["met"], 0, 1)
            or not isinstance(judged["explanation"], str)
        ):
            return None
    return [CriterionJudgement(name, float(value[name]["met"]), value[name]["explanation"]) for name in names]


RUBRIC_TASK = GraderTask(applies=_has_rubric, criteria=_rubric_criteria, schema=_rubric_schema, values=_rubric_values, read=_read_rubric)


CRITERIA = {MAIN_CONDITION: 1.0, CORE_DIAGNOSIS: 1.0}
SCHEMA = schema_text({**{name: {"enum": [0, 1]} for name in CRITERIA}, "explanation": {"type": "string"}})


def _diagnosis_values(subject: GradingInput) -> Mapping[str, object]:
    return {"checklist": is_checklist(subject.text)}


def _read_diagnosis(text: str, _subject: GradingInput) -> list[CriterionJudgement] | None:
    return read_verdict(text)


def read_verdict(text: str) -> list[CriterionJudgement] | None:
    """Read a grader's answer: one JSON object with exactly the keys that were asked for, or nothing."""
    value = read_json_object(text)
    if value is None or not has_exactly(value, *CRITERIA, "explanation") or not isinstance(value["explanation"], str):
        return None
    if not all(is_one_of(value[name], 0, 1) for name in CRITERIA):
        return None
    return [CriterionJudgement(name, float(value[name]), value["explanation"]) for name in CRITERIA]


def _always(_item: Item, _gold: Gold) -> bool:
    return True


DIAGNOSIS_TASK = GraderTask(
    applies=_always,
    criteria=lambda _item, _gold: CRITERIA,
    schema=lambda _item, _gold: SCHEMA,
    values=_diagnosis_values,
    read=_read_diagnosis,
)


ABSENT, MINOR, SIGNIFICANT = 0.0, 1.0, 2.0
NO_QUOTE = "the quoted words are not in the answer"


def applicable_errors(item: Item, gold: Gold) -> list[ErrorCode]:
    """Give the errors that can be told from an item: those whose condition it meets."""
    return [error for error in TAXONOMY if counts_under(error, lesion_shown=item.lesion_shown, findings_complete=gold.findings_complete)]


def _error_criteria(item: Item, gold: Gold) -> Mapping[str, float]:
    return {f"{ERROR_AXIS}{error.code}": 1.0 for error in applicable_errors(item, gold)}


def _error_schema(item: Item, gold: Gold) -> str:
    label = {
        "code": {"enum": [error.code for error in applicable_errors(item, gold)]},
        "significant": {"enum": [0, 1]},
        "quote": {"type": "string"},
        "explanation": {"type": "string"},
    }
    return schema_text({"errors": {"type": "array", "items": object_schema(label)}})


def _error_values(subject: GradingInput) -> Mapping[str, object]:
    return {"evidence": case_evidence(subject), "errors": applicable_errors(subject.item, subject.gold)}


def _read_errors(text: str, subject: GradingInput) -> list[CriterionJudgement] | None:
    value, known = read_json_object(text), {error.code: error for error in applicable_errors(subject.item, subject.gold)}
    if value is None or not has_exactly(value, "errors") or not isinstance(value["errors"], list):
        return None
    words = {code: CriterionJudgement(f"{ERROR_AXIS}{code}", ABSENT, "") for code in known}
    for label in value["errors"]:
        if not has_exactly(label, "code", "significant", "quote", "explanation") or not is_one_of(label["significant"], 0, 1):
            return None
        if not all(isinstance(label[name], str) for name in ("code", "quote", "explanation")) or label["code"] not in known:
            return None
        words[label["code"]] = _weightier(words[label["code"]], _judgement(label, known[label["code"]], subject.shown))
    return list(words.values())


def _judgement(label: Mapping[str, str], error: ErrorCode, shown: str) -> CriterionJudgement:
    """Judge one label: what was left out cannot be quoted, everything else must be."""
    quote, name = label["quote"].strip(), f"{ERROR_AXIS}{error.code}"
    if not (contains_quote(shown, quote) or (error.omission and not quote)):
        return CriterionJudgement(name, None, NO_QUOTE)
    explanation = f"“{quote}” {label['explanation']}" if quote else label["explanation"]
    return CriterionJudgement(name, SIGNIFICANT if label["significant"] else MINOR, explanation)


def _weightier(one: CriterionJudgement, other: CriterionJudgement) -> CriterionJudgement:
    """Of two labels of one code the weightier stands; one that failed stands only where no other shows the error."""
    rank = {ABSENT: 0, None: 1, MINOR: 2, SIGNIFICANT: 3}
    return max(one, other, key=lambda word: rank[word.value])


ERRORS_TASK = GraderTask(
    applies=lambda _item, _gold: True, criteria=_error_criteria, schema=_error_schema, values=_error_values, read=_read_errors
)
