"""Result tables, `results/tables/<name>.csv`: their columns, and the marks of suppressed cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from neuralmedbench.records.result_columns import TABLES, TOPICS

COLUMNS = {name: tuple(columns) for name, columns in TABLES.items()}
"""Columns of every file; an empty cell means not available."""

SHAPES = ("measures", "contrasts", "counts")
"""Files that hold the rows of all topics."""


SIDES = ("arm", "strategy", "source", "other", "other_arm", "other_strategy")
"""Columns of topics that tell apart rows about one model, beside the slice."""


def types_of_table(table: str) -> dict[str, str]:
    """Return the types of the columns of a table; a topic has those of all shapes."""
    return {name: kind for file in files_of(table) for name, kind in TABLES[file].items()}


def files_of(table: str) -> tuple[str, ...]:
    """Name the files that hold the rows of a table: its own, or those of a topic."""
    return SHAPES if table in TOPICS else (table,)


R = TypeVar("R", bound=Mapping[str, Any])


def by_measure(rows: Iterable[R], *columns: str) -> dict[tuple[Any, ...], dict[str, R]]:
    """Return the rows of a topic by measure, for every benchmark, model and value of further columns, in the order of the rows.

    Of two rows about the same the last one stays: give a column in which they differ, or a part of the rows.

    Examples
    --------
    >>> rows = [{"benchmark": "b", "model": "m", "measure": name, "value": value} for name, value in (("brier", 0.2), ("auroc", 0.7))]
    >>> by_measure(rows)["b", "m"]["auroc"]["value"]
    0.7
    """
    groups: dict[tuple[Any, ...], dict[str, R]] = {}
    for row in rows:
        place = tuple(row[name] for name in ("benchmark", "model", *columns))
        groups.setdefault(place, {})[row["measure"]] = row
    return groups


def with_board_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a topic with the names that the leaderboard has for its method, its counts of answers, and the bounds of a rate."""
    named = dict(row) | {"interval": row.get("method"), "expected": row.get("n_answers"), "missing": row.get("left_out")}
    if row.get("method") == LEFT_OPEN:
        named |= dict(zip(BOUNDS, (row["low"], row["high"]), strict=True)) | {"low": row["value"], "high": row["value"]}
    return named


SIMULATED = "simulated "
"""Begins the `source` or `value_of_slice` of rows of a topic that simulated raters, no clinicians, are behind."""


def is_simulated(row: Mapping[str, Any]) -> bool:
    """Return True for a row that simulated raters are behind."""
    named = (row.get(name) or "" for name in ("source", "value_of_slice"))
    return row.get("simulated") in (True, "true") or any(text.startswith(SIMULATED) for text in named)


POOL_MARKS = {
    "in_reference_pool": ("benchmark", "model"),
    "other_in_reference_pool": ("benchmark", "other"),
}
"""Columns that mark a model of the reference pool, whose answers selected the items, with the columns of benchmark and model."""

CLUSTER_MARKS = {"few_patients": "int", "cluster": "str"}
"""Columns of every table of rates: the number of patients if there are fewer than `FEWEST`, and what is counted as patients (`PATIENT`, or in
their place `case`, `pair` or `item` where an imported set names no patient)."""

FEWEST = 5
"""Rates of fewer patients are grey with their number on an internal page, and hidden in a public report. (Our rule.)"""

PATIENT = "patient"

PRIOR = "prior"
"""Name of the row of the best constant answer; it is computed with the tables (`tables.floors`) and is not a model."""

PASS1 = ("pass1", "pass1_low", "pass1_high")
"""Columns of pass@1 and its interval."""

PASS1_PATIENTS = "pass1_patients"
"""pass@1 with patients alike: the mean over patients of the mean of each one's items. It ranks."""

RANKING = (PASS1_PATIENTS, "pass1_patients_low", "pass1_patients_high")
"""Columns of the number that ranks and its interval."""

ALL_ARMS = "all"
"""In the column `arm` of `costs.csv`: all requests to a model, whatever their arm."""

BOUNDS = ("worst_case", "best_case")
"""Columns with the two rates if all missing answers had failed, and had passed: in place of a rate that missing answers leave open."""

LEFT_OPEN = "left open"
"""Method of a rate of a topic that missing answers leave open: it has no value, and its ends are the two rates of `BOUNDS`."""

RANKED_DIFFERENTIAL = "ranked_differential"
"""Slice of the items that ask for a ranked differential, over which both readings of pass@5 are counted."""

FAMILY_TITLES = {
    "differential_diagnosis": "Diagnosis",
    "lesion_recognition": "Localisation",
    "rationale_generation": "Rationale",
    "classification": "Classification",
    "question_answering": "Question answering",
}
"""Names of the task families on the page."""

HIDDEN, NOT_SHOWN = "(hidden)", "not shown"
"""Marks in a row under secondary suppression in a public run: in the cell of the number of patients, and in cells of text."""

MARK = re.compile(r"<\d+( patients)?|\(hidden\)")
"""Mark in the cell of the number of patients: `<10` for a small group, or `HIDDEN` (`docs/metrics.md`)."""


def mark_of(row: Mapping[str, str]) -> str:
    """Return the mark that explains the empty cells of a suppressed row; empty for any other row."""
    return next((cell for cell in row.values() if MARK.fullmatch(cell)), "")
