"""Curation in four stages: complete cases, experts' decisions, structured ground truth, and no question that a pool of models solves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from neuralmedbench.config.curation import CurationConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.curation import Decision, KeptQuestion, PoolModel, RemovedQuestion, StageCount
from neuralmedbench.records.items import Arm, Gold, Runner, Strategy
from neuralmedbench.records.questions import Question
from neuralmedbench.records.scores import Score

Verdict = Callable[[Question], str]
"""Why a question is removed; empty when it stays."""


@dataclass(frozen=True, kw_only=True)
class CurationEvidence:
    """What the stages look at beside the questions: gold by question id, decisions of all experts, scores of every model of the pool.

    Scores are of the model's present revision and all arms; the question's id is `item_id` behind the last `/`.
    """

    gold: Mapping[str, Gold]
    decisions: Sequence[Decision] = ()
    scores: Mapping[str, Sequence[Score]] = field(default_factory=dict)


@dataclass(frozen=True)
class CurationResult:
    """What is left, what was removed, and what each stage did."""

    kept: tuple[KeptQuestion, ...]
    removed: tuple[RemovedQuestion, ...]
    stages: tuple[StageCount, ...]
    pool: tuple[PoolModel, ...]


def curate(questions: Iterable[Question], evidence: CurationEvidence, config: CurationConfig) -> CurationResult:
    """Put questions through the stages: each is kept, or removed by the first stage that objects; examples are left out.

    ConfigError if the stage `challenge` has no pool.
    """
    left = [question for question in questions if not question.exemplar]
    solved = solved_by_model(evidence.scores, config) if "challenge" in config.stages else {}
    removed: list[RemovedQuestion] = []
    stages = []
    for stage in config.stages:
        verdict = _verdict(stage, evidence, config, solved)
        reasons = {question.question_id: verdict(question) for question in left}
        gone = [question for question in left if reasons[question.question_id]]
        removed += [
            RemovedQuestion(question_id=one.question_id, case_id=case_of(one), stage=stage, reason=reasons[one.question_id]) for one in gone
        ]
        stages.append(StageCount(stage=stage, entered=len(left), removed=len(gone)))
        left = [question for question in left if not reasons[question.question_id]]
    kept = [
        KeptQuestion(
            question_id=one.question_id,
            case_id=case_of(one),
            solved_by=sum(bool(rows.get(one.question_id)) for rows in solved.values()),
            pool=len(solved),
        )
        for one in left
    ]
    return CurationResult(tuple(kept), tuple(removed), tuple(stages), _pool(solved, evidence))


def case_of(question: Question) -> str:
    """Name the case of a question; a question without one is a case of its own."""
    return question.case_id or question.question_id


def _verdict(stage: str, evidence: CurationEvidence, config: CurationConfig, solved: Mapping[str, Mapping[str, bool]]) -> Verdict:
    if stage == "completeness":
        return lambda question: _incomplete(question, evidence.gold.get(question.question_id), config)
    if stage == "experts":
        return lambda question: _rejected(case_of(question), evidence.decisions, config)
    if stage == "ground_truth":
        return lambda question: _unstructured(question, evidence.gold.get(question.question_id), config)
    return lambda question: _too_easy(question.question_id, solved, config)


def _incomplete(question: Question, gold: Gold | None, config: CurationConfig) -> str:
    has = {
        "text": bool(question.text or question.record or any(turn.reveal for turn in question.turns)),
        "images": bool(question.images),
        "answer": gold is not None and bool(gold.answer or gold.fields),
    }
    missing = [need for need in config.needs if not has[need]]
    return f"no {', no '.join(missing)}" if missing else ""


def _rejected(case_id: str, decisions: Iterable[Decision], config: CurationConfig) -> str:
    votes = [decision.keep for decision in decisions if decision.case_id == case_id]
    if len(votes) < config.min_experts:
        return f"{len(votes)} expert decisions, {config.min_experts} needed"
    drops = votes.count(False)
    return f"dropped by {drops} of {len(votes)} experts" if 2 * drops >= len(votes) else ""


def _unstructured(question: Question, gold: Gold | None, config: CurationConfig) -> str:
    if gold is None:
        return "no ground truth"
    has = {
        "answer": bool(gold.answer),
        "differentials": bool(gold.differentials),
        "findings": bool(gold.findings),
        "lesion": gold.lesion is not None,
        "findings_or_lesion": bool(gold.findings) or gold.lesion is not None,
        "rationale": bool(gold.rationale),
        "turn_leaders": question.runner is not Runner.DIALOGUE or len(gold.turn_leaders) == len(question.turns),
    }
    missing = [part for part in config.ground_truth if not has[part]]
    return f"ground truth without {', '.join(missing)}" if missing else ""


def _too_easy(question_id: str, solved: Mapping[str, Mapping[str, bool]], config: CurationConfig) -> str:
    # without an answer of every model of the pool nobody knows how hard a question is
    if missing := [model for model, rows in solved.items() if question_id not in rows]:
        return f"no scored answer of {', '.join(missing)}"
    models = [model for model, rows in solved.items() if rows[question_id]]
    return f"solved by {len(models)} of {len(solved)}: {', '.join(models)}" if len(models) >= config.max_solved * len(solved) else ""


def solved_by_model(scores: Mapping[str, Sequence[Score]], config: CurationConfig) -> dict[str, dict[str, bool]]:
    """Say by model and question whether the share of passed answers reaches `solved_from`, under arm `full` and strategy `direct`."""
    if not config.pool:
        message = "the stage challenge needs reference models; name them under `pool`, or take the stage out of `stages`"
        raise ConfigError(message)
    solved: dict[str, dict[str, bool]] = {}
    for model in config.pool:
        passes: dict[str, list[bool]] = {}
        for row in scores[model]:
            if row.arm == Arm.FULL and row.strategy == Strategy.DIRECT and row.passed is not None and not row.missing:
                passes.setdefault(row.item_id.rpartition("/")[2], []).append(row.passed)
        solved[model] = {question: sum(values) >= config.solved_from * len(values) for question, values in passes.items()}
    return solved


def _pool(solved: Mapping[str, Mapping[str, bool]], evidence: CurationEvidence) -> tuple[PoolModel, ...]:
    return tuple(
        PoolModel(
            model=model,
            revision=next((row.revision for row in evidence.scores[model]), ""),
            questions=len(rows),
            solved=sum(rows.values()),
        )
        for model, rows in solved.items()
    )
