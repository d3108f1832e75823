"""What every part of the configuration is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"
"""A wildcard: lower-case letters and digits, joined by single dots or hyphens."""
Name = Annotated[str, Field(pattern=f"^{NAME}$")]


class Section(BaseModel):
    """A part of the configuration; a key that is not listed is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
