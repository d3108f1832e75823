"""What a further rater is asked to decide: the section `adjudication` of `config/rating.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from neuralmedbench.config.section import Section


class AdjudicationSettings(Section):
    """By axis: how many points apart values have to be, and the bound on both sides of which they stand."""

    apart: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    across: dict[str, int] = Field(default_factory=dict)
