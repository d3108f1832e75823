"""The answers table and the list of planted identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.io.files import read_json


def gather_answers(answers: list[Path], planted: list[Path]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Bring the cases' answers and planted identifiers together.

    Parameters
    ----------
    answers, planted : list of Path
        `answer.json` and `planted.json` of each case, in the same order.

    Returns
    -------
    rows : list of dict
        Rows of the answers table, sorted by case id.
    identifiers : dict
        `values`: all planted strings, sorted; `by_case`: those of each case.

    Raises
    ------
    DataError
        If the lists differ in length or a file is absent.
    """
    if len(answers) != len(planted):
        message = f"{len(answers)} answers and {len(planted)} lists of planted identifiers: give one of each for every case"
        raise DataError(message)
    rows = [read_json(path) for path in answers]
    by_case = {row["case_id"]: read_json(path) for row, path in zip(rows, planted, strict=True)}
    values = sorted({value for case in by_case.values() for value in case})
    return sorted(rows, key=lambda row: row["case_id"]), {"values": values, "by_case": by_case}
