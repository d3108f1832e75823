"""Keys of `config/readiness.yaml`: a site's conditions for trying a model."""

from __future__ import annotations

import datetime
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Section

Condition = Literal[
    "min_accuracy",
    "max_hallucinated_findings",
    "max_missed_lesions",
    "max_false_alarms",
    "max_wrong_side",
    "min_coverage",
    "max_confident_errors",
    "min_right_when_sure",
    "min_patients",
]
ALL = "all"


class DiseaseGroup(Section):
    """Patients grouped by disease."""

    title: str = Field(description="Name in the report.")
    diagnoses: tuple[str, ...] = Field((), description="Keys of the vocabulary, including narrower terms; empty: all patients.")
    prevalence: float | None = Field(None, gt=0, lt=1, description="Fraction of such patients at the site; absent: no predictive value.")


class IntendedUse(Section):
    """One intended use."""

    title: str = Field(description="Name in the report.")
    conditions: dict[str, dict[Condition, float | None]] = Field(description="Limits by group; `null`: no limit.")


class ReadinessConfig(Section):
    """`config/readiness.yaml`: conditions of a site per intended use and disease group, dated before the run."""

    stated_on: datetime.date | None = Field(None, description="Date on which the limits were written down; required if there is one.")
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="Confidence level of the one-sided bounds, jointly over all conditions of a model."
    )
    groups: dict[str, DiseaseGroup] = Field(description="Disease groups; `all` must be among them.")
    uses: dict[str, IntendedUse] = Field(description="Intended uses.")

    @model_validator(mode="after")
    def _fits(self) -> ReadinessConfig:
        if ALL not in self.groups:
            message = f"groups: `{ALL}` must be among them"
            raise ValueError(message)
        for name, disease in self.groups.items():
            if disease.prevalence is not None and not disease.diagnoses:
                message = f"groups.{name}.prevalence: a group of all patients has none; name its diagnoses"
                raise ValueError(message)
        # limits of known groups, in their range
        for name, use in self.uses.items():
            if unknown := sorted(set(use.conditions) - set(self.groups)):
                message = f"uses.{name}: {', '.join(unknown)} is not among the groups ({', '.join(self.groups)})"
                raise ValueError(message)
            for group, limits in use.conditions.items():
                for condition, limit in limits.items():
                    if limit is not None and not (limit >= 1 if condition == "min_patients" else 0 <= limit <= 1):
                        wanted = "a number of patients" if condition == "min_patients" else "a share, 0 to 1"
                        message = f"uses.{name}.conditions.{group}.{condition}: expected {wanted}, found {limit:g}"
                        raise ValueError(message)
        if self.stated_on is None and self.stated:
            message = "stated_on: a limit without the day on which it was written down proves nothing; add the date"
            raise ValueError(message)
        return self

    @property
    def stated(self) -> list[tuple[str, str, Condition, float]]:
        """Use, group, condition and limit of every limit that is set."""
        return [
            (name, group, condition, limit)
            for name, use in self.uses.items()
            for group, limits in use.conditions.items()
            for condition, limit in limits.items()
            if limit is not None
        ]
