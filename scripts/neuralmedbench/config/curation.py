"""Keys of `config/curation.yaml`: which questions a curation keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from neuralmedbench.config.load import check, read_yaml
from neuralmedbench.config.section import Name, Section

Stage = Literal["completeness", "experts", "ground_truth", "challenge"]
Need = Literal["text", "images", "answer"]
Part = Literal["answer", "differentials", "findings", "lesion", "findings_or_lesion", "rationale", "turn_leaders"]


class CurationConfig(Section):
    """`config/curation.yaml`: the four stages of a curation, in the order of Neural-MedBench; the thresholds are ours."""

    stages: tuple[Stage, ...] = Field(
        ("completeness", "experts", "ground_truth", "challenge"), min_length=1, description="Stages, in order."
    )
    needs: tuple[Need, ...] = Field(("text", "images", "answer"), description="`completeness`: fields that every question must have.")
    min_experts: int = Field(1, ge=1, description="`experts`: decisions that a case needs; it is kept if more than half are keep.")
    ground_truth: tuple[Part, ...] = Field(
        ("answer", "differentials", "findings_or_lesion", "rationale"),
        description="`ground_truth`: parts of the gold that must be filled; `turn_leaders` applies to dialogues.",
    )
    pool: tuple[Name, ...] = Field((), description="`challenge`: reference models whose scores decide, files in `config/models/`.")
    solved_from: float = Field(
        0.5, gt=0, le=1, description="`challenge`: fraction of a model's answers that must pass for a question to count as solved by it."
    )
    max_solved: float = Field(
        0.5, gt=0, le=1, description="`challenge`: questions that at least this fraction of the pool solves are removed."
    )


def load_curation(path: Path) -> CurationConfig:
    """Read the settings of a curation; ConfigError as in `config.load`."""
    return check(CurationConfig, read_yaml(path), path.as_posix())
