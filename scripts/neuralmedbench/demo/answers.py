"""The answers table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralmedbench.files.json_files import read_json


def gather_answers(answers: list[Path]) -> list[dict[str, Any]]:
    """Bring the cases' answers together.

    Parameters
    ----------
    answers : list of Path
        The answer of each case (JSON).

    Returns
    -------
    list of dict
        Rows of the answers table, sorted by case id.

    Raises
    ------
    DataError
        If a file is absent.
    """
    return sorted((read_json(path) for path in answers), key=lambda row: row["case_id"])
