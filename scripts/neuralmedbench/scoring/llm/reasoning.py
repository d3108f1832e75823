"""Task `reasoning`: a grader lists and labels the steps of an answer, and what they are worth is computed here.

Efficiency, factuality and completeness are those of MedR-Bench (Qiu et al., Quantifying the reasoning abilities of LLMs on clinical
cases, 2025), with one difference: whether a step is right is judged by the case's own evidence and not by a search of the web, so that
it can be judged again. What that evidence cannot decide counts neither as right nor as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.scoring.llm.task import (
    CriterionJudgement,
    GraderTask,
    GradingInput,
    case_evidence,
    contains_quote,
    has_exactly,
    object_schema,
    read_json_object,
    schema_text,
)

EFFICIENCY, FACTUALITY, COMPLETENESS = "reasoning.efficiency", "reasoning.factuality", "reasoning.completeness"


class StepKind(StrEnum):
    """What a step does; only `reasoning` is effective."""

    REASONING = "reasoning"
    CITATION = "citation"
    REPETITION = "repetition"
    REDUNDANCY = "redundancy"


class Support(StrEnum):
    """What the case's own evidence says of a step."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True)
class Step:
    """One step of an answer: its first words, what it does, and what the evidence says of it."""

    quote: str
    kind: StepKind
    support: Support


_STEP = object_schema(
    {"quote": {"type": "string"}, "kind": {"enum": [str(kind) for kind in StepKind]}, "evidence": {"enum": [str(one) for one in Support]}}
)
SCHEMA = schema_text(
    {
        "steps": {"type": "array", "items": _STEP},
        "covered": {"type": "array", "items": {"type": "integer"}},
        "explanation": {"type": "string"},
    }
)


def efficiency(steps: Sequence[Step]) -> float | None:
    """Give the share of the steps that are effective; None without a step."""
    return sum(step.kind is StepKind.REASONING for step in steps) / len(steps) if steps else None


def factuality(steps: Sequence[Step]) -> float | None:
    """Give the share of the effective steps that the evidence supports, of those that it decides; None when it decides none."""
    decided = [step for step in steps if step.kind is StepKind.REASONING and step.support is not Support.UNDECIDABLE]
    return sum(step.support is Support.SUPPORTED for step in decided) / len(decided) if decided else None


def completeness(covered: Sequence[int], reference_steps: int) -> float | None:
    """Give the share of the reference's arguments that an answer makes; None when the reference has none."""
    return len(set(covered)) / reference_steps if reference_steps else None


def _criteria(_item: Item, gold: Gold) -> Mapping[str, float]:
    names = (EFFICIENCY, FACTUALITY, *((COMPLETENESS,) if gold.rationale else ()))
    return dict.fromkeys(names, 1.0)


def _values(subject: GradingInput) -> Mapping[str, object]:
    return {"evidence": case_evidence(subject), "reference_steps": subject.gold.rationale}


def _read(text: str, subject: GradingInput) -> list[CriterionJudgement] | None:
    value, known = read_json_object(text), len(subject.gold.rationale)
    if value is None or not has_exactly(value, "steps", "covered", "explanation") or not isinstance(value["explanation"], str):
        return None
    steps, covered = _steps(value["steps"]), _numbers(value["covered"], known)
    if steps is None or covered is None:
        return None
    told, strange = (
        value["explanation"],
        [place for place, step in enumerate(steps, start=1) if not contains_quote(subject.shown, step.quote)],
    )
    words = [CriterionJudgement(COMPLETENESS, completeness(covered, known), f"{len(covered)} of {known} arguments. {told}")]
    if strange:
        why = f"step {strange[0]} of the grader's list is not in the answer"
        words += [CriterionJudgement(EFFICIENCY, None, why), CriterionJudgement(FACTUALITY, None, why)]
    else:
        why = f"{_counted(steps)}. {told}"
        words += [
            CriterionJudgement(name, worth, why) for name, worth in ((EFFICIENCY, efficiency(steps)), (FACTUALITY, factuality(steps)))
        ]
        words = [word for word in words if word.value is not None]  # without a step, or one that can be decided, there is nothing to grade
    return [word for word in words if word.criterion in _criteria(subject.item, subject.gold)]


def _counted(steps: Sequence[Step]) -> str:
    effective = [step for step in steps if step.kind is StepKind.REASONING]
    counts = ", ".join(f"{sum(step.support is one for step in effective)} {one}" for one in Support)
    return f"{len(effective)} of {len(steps)} steps reason: {counts}"


def _steps(value: object) -> list[Step] | None:
    """Read the list of steps; None when one of them is not in its form."""
    if not isinstance(value, list) or not all(_is_step(entry) for entry in value):
        return None
    return [Step(entry["quote"], StepKind(entry["kind"]), Support(entry["evidence"])) for entry in value]


def _is_step(entry: Any) -> bool:
    if not has_exactly(entry, "quote", "kind", "evidence") or not all(isinstance(part, str) for part in entry.values()):
        return False
    return entry["kind"] in list(StepKind) and entry["evidence"] in list(Support)


def _numbers(value: object, known: int) -> list[int] | None:
    """Read the numbers of the reference's arguments, from 1; None when one is not among them or stands twice."""
    if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, int) or not 1 <= one <= known for one in value):
        return None
    return value if len(set(value)) == len(value) else None


REASONING_TASK = GraderTask(
    applies=lambda _item, _gold: True,
    criteria=_criteria,
    schema=lambda _item, _gold: SCHEMA,
    values=_values,
    read=_read,
)
