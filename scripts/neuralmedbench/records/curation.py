"""What a curation kept and removed, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1

KEPT, REMOVED, RECORD = "kept.csv", "removed.csv", "curation.json"
"""Files that a curation writes beside the questions that it looked at."""

DECISION_COLUMNS = ("case_id", "expert", "decision", "credibility", "complexity", "teaching_value")
"""Table of the experts' decisions; the three ratings (1 to 5) may be absent."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one expert decided about one case."""

    case_id: str
    expert: str
    keep: bool


@dataclass(frozen=True, kw_only=True)
class KeptQuestion:
    """A question that passed every stage, and how many models of the pool solved it."""

    question_id: str
    case_id: str
    solved_by: int
    pool: int


@dataclass(frozen=True, kw_only=True)
class RemovedQuestion:
    """A question that a stage removed, and why."""

    question_id: str
    case_id: str
    stage: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PoolModel:
    """A model of the reference pool: whoever is compared on the curated set must not be judged by these answers again."""

    model: str
    revision: str
    questions: int
    solved: int


@dataclass(frozen=True, kw_only=True)
class StageCount:
    """Questions that came into a stage, and that it removed."""

    stage: str
    entered: int
    removed: int


@dataclass(frozen=True, kw_only=True)
class CurationRecord:
    """The whole of a curation (`curation.json`).

    Attributes
    ----------
    benchmark, curated : str
        Name of the set, and of the curated one; empty when none was written.
    settings : dict of str to object
        Those of `CurationConfig`.
    sources : dict of str to str
        SHA-256 of the files that were read.
    stages : tuple of StageCount
        In their order.
    kept : int
        Questions left.
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
