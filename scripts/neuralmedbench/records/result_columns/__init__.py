"""Columns of every table of results with their types, and the topics: `columns.json`, which `make docs` writes from `tables`."""

from __future__ import annotations

import json
from pathlib import Path

_CONTENT = json.loads(Path(__file__).with_name("columns.json").read_text(encoding="utf-8"))

TABLES: dict[str, dict[str, str]] = _CONTENT["files"]
"""Types of the columns by file."""

TOPICS: tuple[str, ...] = tuple(_CONTENT["topics"])
"""Values of the column `topic` of `measures.csv`, `contrasts.csv` and `counts.csv`."""
