"""How a round of answers is drawn: the section `answers` of `config/rating.yaml`."""

from __future__ import annotations

from pydantic import Field

from neuralmedbench.config.section import Section
from neuralmedbench.records.items import Family


class AnswerSettings(Section):
    """What each key means stands in `config/rating.yaml`."""

    items: int = Field(40, ge=1)
    readers: int = Field(2, ge=1, le=50)
    once_per_case: bool = True
    families: tuple[Family, ...] = tuple(Family)
    seed: int = 1
