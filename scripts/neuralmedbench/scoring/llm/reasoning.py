"""Task `reasoning`: a grader lists and labels the steps of an answer, and its scores are computed here.

Efficiency, factuality and completeness are those of MedR-Bench (Qiu et al., Quantifying the reasoning abilities of LLMs on clinical
cases, 2025), with one difference: a step is checked against the case's own evidence and not by web search, so that the judgement can be
repeated. Steps that this evidence cannot decide count neither as right nor as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neuralmedbench.records.items import Gold, Item
from neuralmedbench.scoring.llm.task import (
    CriterionJudgement,
    GraderTask,
    GradingInput,
    UnreadReplyError,
    case_evidence,
    contains_quote,
    list_of,
    object_of,
    object_schema,
    schema_text,
    with_exactly,
    words_of,
)

EFFICIENCY, FACTUALITY, COMPLETENESS = "reasoning.efficiency", "reasoning.factuality", "reasoning.completeness"


class StepKind(StrEnum):
    """The function of a step; only `reasoning` is effective."""

    REASONING = "reasoning"
    CITATION = "citation"
    REPETITION = "repetition"
    REDUNDANCY = "redundancy"


class Support(StrEnum):
    """How the case's own evidence relates to a step."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True)
class Step:
    """One step of an answer: its first words, its function, and its support by the evidence."""

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
    """Return the share of the steps that are effective; None without steps."""
    return sum(step.kind is StepKind.REASONING for step in steps) / len(steps) if steps else None


def factuality(steps: Sequence[Step]) -> float | None:
    """Return the share of supported steps among the effective steps that the evidence decides; None if it decides none."""
    decided = [step for step in steps if step.kind is StepKind.REASONING and step.support is not Support.UNDECIDABLE]
    return sum(step.support is Support.SUPPORTED for step in decided) / len(decided) if decided else None


def completeness(covered: Sequence[int], reference_steps: int) -> float | None:
    """Return the share of the reference's arguments that an answer makes; None if the reference has none."""
    return len(set(covered)) / reference_steps if reference_steps else None


def _criteria(_item: Item, gold: Gold) -> Mapping[str, float]:
    names = (EFFICIENCY, FACTUALITY, *((COMPLETENESS,) if gold.rationale else ()))
    return dict.fromkeys(names, 1.0)


def _values(subject: GradingInput) -> Mapping[str, object]:
    return {"evidence": case_evidence(subject), "reference_steps": subject.gold.rationale}


def _parse(text: str, subject: GradingInput) -> list[CriterionJudgement]:
    value, known = object_of(text, "steps", "covered", "explanation"), len(subject.gold.rationale)
    words_of(value["explanation"])
    steps, covered = [_step(entry) for entry in list_of(value["steps"])], _numbers(value["covered"], known)
    # a step that is not in the answer makes the whole list unreliable, but not the reference's arguments
    explanation = value["explanation"]
    invented = [number for number, step in enumerate(steps, start=1) if not contains_quote(subject.blinded, step.quote)]
    judgements = [CriterionJudgement(COMPLETENESS, completeness(covered, known), f"{len(covered)} of {known} arguments. {explanation}")]
    if invented:
        why = f"step {invented[0]} of the grader's list is not in the answer"
        judgements += [CriterionJudgement(EFFICIENCY, None, why), CriterionJudgement(FACTUALITY, None, why)]
    else:
        why = f"{_counted(steps)}. {explanation}"
        judgements += [
            CriterionJudgement(name, score, why) for name, score in ((EFFICIENCY, efficiency(steps)), (FACTUALITY, factuality(steps)))
        ]
        judgements = [row for row in judgements if row.value is not None]  # a score without steps or decided steps is absent, not failed
    return [row for row in judgements if row.criterion in _criteria(subject.item, subject.gold)]


def _counted(steps: Sequence[Step]) -> str:
    effective = [step for step in steps if step.kind is StepKind.REASONING]
    counts = ", ".join(f"{sum(step.support is one for step in effective)} {one}" for one in Support)
    return f"{len(effective)} of {len(steps)} steps reason: {counts}"


def _step(entry: object) -> Step:
    step = with_exactly(entry, "quote", "kind", "evidence")
    kind, support = words_of(step["kind"], *StepKind), words_of(step["evidence"], *Support)
    return Step(words_of(step["quote"]), StepKind(kind), Support(support))


def _numbers(value: object, known: int) -> list[int]:
    """Return the numbers of the reference's arguments, from 1; UnreadReplyError if one is out of range or occurs twice."""
    numbers = list_of(value)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= known or numbers.count(number) > 1:
            message = "no list of different numbers of arguments"
            raise UnreadReplyError(message)
    return numbers


REASONING_TASK = GraderTask(
    applies=lambda _item, _gold: True,
    criteria=_criteria,
    schema=lambda _item, _gold: SCHEMA,
    values=_values,
    parse=_parse,
)
