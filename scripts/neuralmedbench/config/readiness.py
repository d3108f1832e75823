"""Keys of `config/readiness.yaml`: a site's conditions for trying a model."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from neuralmedbench.config.section import Name, Section

UpdateKind = Literal[
    "min_accuracy",
    "max_hallucinated_findings",
    "max_missed_lesions",
    "max_false_alarms",
    "max_wrong_side",
    "min_coverage",
    "max_confident_errors",
]
"""Kinds of error by which two revisions are compared: the conditions, without one that is about the answers that a revision is sure of."""
Condition = Literal[UpdateKind, "min_right_when_sure", "min_patients"]
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


class Margin(NamedTuple):
    """By how much a new revision may be worse than the one in use."""

    group: str
    kind: UpdateKind
    margin: float
    essential: bool


class UpdateConfig(Section):
    """When a new revision of a model may replace the one in use: `nmb model gate`."""

    benchmark: Name | None = Field(None, description="Benchmark on which the two are compared; required with a margin.")
    planned_looks: int = Field(
        1, ge=1, le=100, description="Most verdicts on updates of a model with these patients; each gets its part of the error."
    )
    essential: dict[str, dict[UpdateKind, float | None]] = Field(
        default_factory=dict,
        description="Margins by group without which there is no approval, not even a conditional one; `null`: no margin.",
    )
    other: dict[str, dict[UpdateKind, float | None]] = Field(
        default_factory=dict, description="Margins by group that an approval without conditions needs as well; `null`: no margin."
    )
    alarms: dict[str, dict[UpdateKind, int | None]] = Field(
        default_factory=dict,
        description="Alarm if more patients than this have an error that they did not have under the revision in use; `null`: no alarm.",
    )

    @property
    def margins(self) -> list[Margin]:
        """All margins that are set, essential ones first."""
        parts = ((self.essential, True), (self.other, False))
        return [
            Margin(group, kind, margin, essential)
            for part, essential in parts
            for group, kinds in part.items()
            for kind, margin in kinds.items()
            if margin is not None
        ]

    def mistakes(self, groups: Mapping[str, DiseaseGroup]) -> Iterator[str]:
        """Yield what does not fit."""
        for name in ("essential", "other", "alarms"):
            stated = [group for group, kinds in getattr(self, name).items() if any(value is not None for value in kinds.values())]
            if unknown := sorted(set(stated) - set(groups)):
                yield f"update.{name}: {', '.join(unknown)} is not among the groups ({', '.join(groups)})"
        for group, kind, margin, essential in self.margins:
            place = f"update.{'essential' if essential else 'other'}.{group}.{kind}"
            if not 0 < margin < 1:
                yield f"{place}: expected a fraction between 0 and 1, found {margin:g}"
            if not essential and self.essential.get(group, {}).get(kind) is not None:
                yield f"{place}: it is essential already; keep one of the two"
        for group, kinds in self.alarms.items():
            if wrong := [kind for kind, count in kinds.items() if count is not None and count < 0]:
                yield f"update.alarms.{group}.{wrong[0]}: expected a number of patients"
        if self.margins and self.benchmark is None:
            yield "update.benchmark: a margin is about a benchmark; name it"


class ReadinessConfig(Section):
    """`config/readiness.yaml`: conditions of a site per intended use and disease group, dated before the run."""

    stated_on: datetime.date | None = Field(None, description="Date on which the limits were written down; required if there is one.")
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="Confidence level of the one-sided bounds, jointly over all conditions of a model."
    )
    groups: dict[str, DiseaseGroup] = Field(description="Disease groups; `all` must be among them.")
    uses: dict[str, IntendedUse] = Field(description="Intended uses.")
    update: UpdateConfig = Field(default_factory=UpdateConfig, description="When a new revision may replace the one in use.")

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
        for mistake in self.update.mistakes(self.groups):
            raise ValueError(mistake)
        if self.stated_on is None and (self.stated or self.update.margins):
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
