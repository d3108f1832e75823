"""Keys of `config/checklists/<name>.yaml`: the items of a reporting guideline, and where a report of this pipeline answers them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.section import Section

Answer = Literal["yes", "no", "not applicable", "study team"]
BLOCK = r"^(#[a-z]+)?$"
"""Id of a block of the report, or empty."""


class ChecklistItem(Section):
    """One item of a guideline, or one question of a card."""

    id: str = Field(description="Number in the guideline.")
    part: str = Field("", description="Part of the guideline to which it belongs.")
    about: str = Field(min_length=1, description="Question, in short words of our own.")
    answer: Answer = Field(description="`yes`: a report answers it; `study team`: only the study's authors can.")
    where: str = Field("", pattern=BLOCK, description="Block of the report that answers it, fully or in part.")
    note: str = Field("", description="Further remarks.")


class ChecklistConfig(Section):
    """`config/checklists/<name>.yaml`: a reporting guideline, item by item."""

    title: str = Field(description="Name of the guideline.")
    source: str = Field(description="Where it was published, and which parts were read.")
    missing: str = Field("", description="Published items that are missing here, and why.")
    items: tuple[ChecklistItem, ...] = Field(min_length=1, description="Its items in order.")

    @model_validator(mode="after")
    def _answers_once(self) -> ChecklistConfig:
        ids = [item.id for item in self.items]
        if double := sorted({name for name in ids if ids.count(name) > 1}):
            message = f"items: {', '.join(double)} is repeated"
            raise ValueError(message)
        if silent := [item.id for item in self.items if item.answer == "yes" and not (item.where or item.note)]:
            message = f"items: {', '.join(silent)} is answered `yes` without `where` or `note`"
            raise ValueError(message)
        return self

    @property
    def counts(self) -> dict[str, int]:
        """Number of items per answer, without answers that do not occur."""
        answers = [item.answer for item in self.items]
        return {ANSWER_WORDS[answer]: answers.count(answer) for answer in ANSWER_WORDS if answer in answers}

    @property
    def parts(self) -> dict[str, list[ChecklistItem]]:
        """Items by part, in order."""
        found: dict[str, list[ChecklistItem]] = {}
        for item in self.items:
            found.setdefault(item.part, []).append(item)
        return found


ANSWER_WORDS: dict[Answer, str] = {"yes": "yes", "no": "no", "not applicable": "not applicable", "study team": "left to the study team"}
"""Wording of the answers."""
