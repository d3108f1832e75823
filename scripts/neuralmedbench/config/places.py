"""What of a configuration may be shown: everything but the places of the machine of the run."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

WITHHELD = "(withheld: a place on the machine of the run)"


def without_places(value: Any) -> Any:
    """Give a configuration value in which every path that leads out of the project is withheld: folder names can name a patient."""
    if isinstance(value, dict):
        return {key: without_places(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_places(entry) for entry in value]
    leads_out = isinstance(value, str) and (
        value.startswith(("/", "~", "\\")) or ".." in PurePath(value).parts or value[1:3] in {":/", ":\\"}
    )
    return WITHHELD if leads_out else value
