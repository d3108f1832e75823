"""Base class of all sections of the configuration, and the type of names."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

NAME = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"
"""Pattern of wildcards: lower-case letters and digits, joined by single dots or hyphens."""
LONGEST_NAME = 40
"""Longest wrong name for which another one is suggested; longer ones may be something else."""
Name = Annotated[str, Field(pattern=f"^{NAME}$")]


def name_rule(name: str) -> str:
    """Say how a name is written, with the nearest one that can be used, if any; the end of a message.

    Examples
    --------
    >>> name_rule("My_Study")
    'lower-case letters and digits, joined by single dots or hyphens, such as my-study'
    """
    near = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip(".-")
    rule = "lower-case letters and digits, joined by single dots or hyphens"
    return f"{rule}, such as {near}" if re.fullmatch(NAME, near) and not looks_like_key(name) and len(name) < LONGEST_NAME else rule


API_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk-|xai-|pplx-|nvapi-|gsk_|hf_|r8_)(?=[\w-]*\d)[\w-]{16,}|AIza[\w-]{30,}|Bearer\s+\S{16,})", re.IGNORECASE
)
"""API keys of known providers, by their first letters."""
RANDOM_TEXT = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w+=.-]{28,}")
"""A text like the keys of other providers, but also like a digest: not printed, and refused where no such text belongs."""


def looks_like_key(value: object) -> bool:
    """Return True if a value is a text that holds an API key of a known form."""
    return isinstance(value, str) and bool(API_KEY.search(value))


class Section(BaseModel):
    """A section of the configuration; an unknown key is an error, and so are infinity, NaN and an API key in any place."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _holds_no_api_key(cls, value: object) -> object:
        """Refuse an API key before it is printed, or stored with the settings of an answer."""
        for name, entry in value.items() if isinstance(value, dict) else ():
            parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list | tuple) else (entry,)
            if looks_like_key(name) or any(map(looks_like_key, parts)):
                place = "a name" if looks_like_key(name) else f"`{name}`"
                message = (
                    f"{place} holds what looks like an API key, not shown here; export the key as an environment variable and give only the"
                    " name of that variable, in `api_key_env`"
                )
                raise ValueError(message)
        return value
