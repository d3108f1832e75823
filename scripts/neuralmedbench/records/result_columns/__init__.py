"""Columns of every table of results, in order, with their types: `columns.json`, which `make docs` writes from `tables`."""

from __future__ import annotations

import json
from pathlib import Path

TABLES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("columns.json").read_text(encoding="utf-8"))
