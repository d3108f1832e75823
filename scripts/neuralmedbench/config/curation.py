"""`config/curation.yaml`: which questions a curation keeps."""

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
        ("completeness", "experts", "ground_truth", "challenge"), min_length=1, description="Stages, in the order in which they are done."
    )
    needs: tuple[Need, ...] = Field(("text", "images", "answer"), description="`completeness`: what every question must have.")
    min_experts: int = Field(1, ge=1, description="`experts`: decisions that a case needs; it is kept when more than half say keep.")
    ground_truth: tuple[Part, ...] = Field(
        ("answer", "differentials", "findings_or_lesion", "rationale"),
        description="`ground_truth`: the schema of what is known to be right, parts that must be filled; `turn_leaders` counts for dialogues.",
    )
    pool: tuple[Name, ...] = Field((), description="`challenge`: reference models whose scores decide, files in `config/models/`.")
    solved_from: float = Field(
        0.5, gt=0, le=1, description="`challenge`: share of its answers that must pass for a model to have solved it."
    )
    max_solved: float = Field(
        0.5, gt=0, le=1, description="`challenge`: a question that this share of the pool, or a larger one, solves is removed."
    )


def load_curation(path: Path) -> CurationConfig:
    """Read the settings of a curation; ConfigError as in `config.load`."""
    return check(CurationConfig, read_yaml(path), path.as_posix())
