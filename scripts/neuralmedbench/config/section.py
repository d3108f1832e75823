"""Base class of all sections of the configuration, and the type of names."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"
"""Pattern of wildcards: lower-case letters and digits, joined by single dots or hyphens."""
Name = Annotated[str, Field(pattern=f"^{NAME}$")]


class Section(BaseModel):
    """A section of the configuration; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
