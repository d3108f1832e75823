"""Reading the tables of results, those of the shapes by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from neuralmedbench.files.tables import read_table
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import files_of, types_of_table


def read_results(folder: Path, tables: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """Read tables of results; of a topic its measures, then its contrasts, then its counts.

    Parameters
    ----------
    folder : Path
        Folder of the tables.
    tables : iterable of str
        Names of files without `.csv`, or topics.

    Returns
    -------
    dict of str to list of dict
        Cells by column. Rows of a topic have the columns of all shapes.

    Raises
    ------
    DataError
        If a file is absent.
    """
    wanted = list(tables)
    files = {file: read_table(folder / f"{file}.csv") for file in dict.fromkeys(file for table in wanted for file in files_of(table))}
    return {table: _topic(table, files) if table in TOPICS else files[table] for table in wanted}


def read_result(folder: Path, table: str) -> list[dict[str, str]]:
    """Read one table, as `read_results` does."""
    return read_results(folder, [table])[table]


def _topic(topic: str, files: Mapping[str, list[dict[str, str]]]) -> list[dict[str, str]]:
    columns = types_of_table(topic)
    rows = (row for file in files_of(topic) for row in files[file] if row["topic"] == topic)
    return [{column: row.get(column, "") for column in columns} for row in rows]
