"""Tables and records of results as typed pandas data frames, for notebooks (`docs/results.md`)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from neuralmedbench.errors import DataError
from neuralmedbench.files.tables import read_records, read_table
from neuralmedbench.records.bundle import CaseBundle
from neuralmedbench.records.responses import Response
from neuralmedbench.records.result_columns import TABLES
from neuralmedbench.records.results import MARK, mark_of
from neuralmedbench.records.scores import Grade, PlantedAnswer, Rating, Score, SimilarityRow

if TYPE_CHECKING:
    import pandas as pd

RECORDS: dict[str, type[Any]] = {
    "responses": Response,
    "scores": Score,
    "grades": Grade,
    "similarity": SimilarityRow,
    "ratings": Rating,
    "planted": PlantedAnswer,
    "cases": CaseBundle,
}
"""Records of the Parquet files, by folder of results."""

CATEGORIES = frozenset(
    [
        "benchmark",
        "model",
        "other",
        "arm",
        "strategy",
        "grader",
        "family",
        "level",
        "axis",
        "kind",
        "measure",
        "metric",
    ]
)
"""Columns of few different texts, by which rows are selected and grouped."""

DTYPES = {"bool": "boolean", "int": "Int64", "float": "float64", "str": "string"}


def dtype_of(column: str, kind: str) -> str:
    """Return the pandas dtype of a column of a CSV table: `bool`, `int`, `float` or `str` as declared; money is written as text."""
    if kind == "str":
        return "category" if column in CATEGORIES else "float64" if "usd" in column else "string"
    return DTYPES[kind]


def table_frame(name: str, results: str | Path = "results") -> pd.DataFrame:
    """Read a table of results with its declared types.

    Parameters
    ----------
    name : str
        Table, for example `leaderboard` for `results/tables/leaderboard.csv`.
    results : str or Path
        Folder of the run's results.

    Returns
    -------
    DataFrame
        Columns in the order of the file: text as `string`, names by which rows are selected as `category`, counts as `Int64`, rates (0 to 1) and
        other numbers as `float64`, `true` and `false` as `boolean`; an empty cell is missing. In a public run the cells that are
        withheld are missing too: `attrs["suppressed"]` lists their rows.

    Raises
    ------
    DataError
        If there is no such table, its file is absent, or it has other columns than this version writes.
    """
    import pandas as pd

    if name not in TABLES:
        near = difflib.get_close_matches(name, TABLES, 1)
        message = f"{name}: no such table{f'; did you mean {near[0]!r}?' if near else ''} (docs/results.md lists all)"
        raise DataError(message)
    columns, rows = TABLES[name], read_table(Path(results) / "tables" / f"{name}.csv")
    if rows and list(rows[0]) != list(columns):
        message = f"{name}.csv: columns do not fit this version ({', '.join(sorted(set(rows[0]) ^ set(columns)))}); run build_tables again"
        raise DataError(message)
    cells = {
        column: pd.array([_value(row[column], dtype_of(column, kind)) for row in rows], dtype=dtype_of(column, kind))
        for column, kind in columns.items()
    }
    frame = pd.DataFrame(cells)
    frame.attrs["suppressed"] = [number for number, row in enumerate(rows) if mark_of(row)]
    return frame


def _value(cell: str, dtype: str) -> Any:
    if not cell or (dtype in {"Int64", "float64"} and MARK.fullmatch(cell)):
        return None
    return {"boolean": lambda: cell == "true", "Int64": lambda: int(cell), "float64": lambda: float(cell)}.get(dtype, lambda: cell)()


def record_frame(kind: str, results: str | Path = "results") -> pd.DataFrame:
    """Read all records of one kind.

    Parameters
    ----------
    kind : str
        Folder of the results: one of `RECORDS`, for example `scores`.
    results : str or Path
        Folder of the run's results.

    Returns
    -------
    DataFrame
        One row per record, files in the order of their names; types as in `table_frame`. Lists stay tuples, maps dicts, and parts of a record
        (the calls of an answer) records.

    Raises
    ------
    DataError
        If there are no such records, or a file does not fit them.
    """
    import pandas as pd

    if kind not in RECORDS:
        message = f"{kind}: no such records; there are {', '.join(RECORDS)}"
        raise DataError(message)
    paths = sorted((Path(results) / kind).rglob("*.parquet"))
    if not paths:
        message = f"{kind}: no file of this run; run its stage first"
        raise DataError(message)
    record = RECORDS[kind]
    rows: list[Any] = [row for path in paths for row in read_records(path, record)]
    dtypes = record_dtypes(record)
    return pd.DataFrame({name: _series([getattr(row, name) for row in rows], dtype) for name, dtype in dtypes.items()})


def _series(values: Sequence[Any], dtype: str) -> Any:
    import pandas as pd

    texts = [str(value) if isinstance(value, StrEnum) else value for value in values]
    return pd.Series(texts, dtype=dtype)


def record_dtypes(record: type) -> dict[str, str]:
    """Return the pandas dtype of every field of a record; `object` for lists, maps and parts."""
    hints = get_type_hints(record)
    return {entry.name: _dtype(entry.name, hints[entry.name]) for entry in fields(record)}


def _dtype(name: str, hint: Any) -> str:
    kind = next((part for part in get_args(hint) if part is not type(None)), hint) if type(None) in get_args(hint) else hint
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "category"
    return dtype_of(name, kind.__name__) if kind in {bool, int, float, str} else "object"
