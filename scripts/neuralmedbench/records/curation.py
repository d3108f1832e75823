"""Result of a curation: questions kept and removed, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1

KEPT, REMOVED, RECORD = "kept.csv", "removed.csv", "curation.json"
"""Files that a curation writes beside the questions."""

DECISION_COLUMNS = ("case_id", "expert", "decision", "credibility", "complexity", "teaching_value")
"""Columns of the table of expert decisions; the three ratings (1 to 5) are optional."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Decision of one expert on one case."""

    case_id: str
    expert: str
    keep: bool


@dataclass(frozen=True, kw_only=True)
class KeptQuestion:
    """A question that passed all stages, and the number of models in the pool that solved it."""

    question_id: str
    case_id: str
    solved_by: int
    pool: int


@dataclass(frozen=True, kw_only=True)
class RemovedQuestion:
    """A question removed by a stage, with the reason."""

    question_id: str
    case_id: str
    stage: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PoolModel:
    """A model of the reference pool, whose answers selected the questions and therefore must not be scored on the curated set."""

    model: str
    revision: str
    questions: int
    solved: int


@dataclass(frozen=True, kw_only=True)
class StageCount:
    """Number of questions that entered a stage, and that it removed."""

    stage: str
    entered: int
    removed: int


@dataclass(frozen=True, kw_only=True)
class CurationRecord:
    """Summary of a curation (`curation.json`).

    Attributes
    ----------
    benchmark, curated : str
        Names of the original and the curated set; the latter empty if none was written.
    settings : dict of str to object
        As in `CurationConfig`.
    sources : dict of str to str
        SHA-256 of the files that were read.
    stages : tuple of StageCount
        In order.
    kept : int
        Remaining questions.
    pool : tuple of PoolModel
        Empty without the stage `challenge`.
    """

    benchmark: str
    curated: str
    settings: dict[str, object]
    sources: dict[str, str]
    stages: tuple[StageCount, ...]
    kept: int
    pool: tuple[PoolModel, ...] = ()
