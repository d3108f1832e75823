"""Reading the tables of results, those of the two shapes by topic."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.files.tables import read_table
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import files_of, types_of_table


def read_result(folder: Path, table: str) -> list[dict[str, str]]:
    """Read a table of results; of a topic its measures, then its contrasts.

    Parameters
    ----------
    folder : Path
        Folder of the tables.
    table : str
        Name of a file without `.csv`, or a topic.

    Returns
    -------
    list of dict
        Cells by column. Rows of a topic have the columns of both shapes.

    Raises
    ------
    DataError
        If a file is absent.
    """
    if table not in TOPICS:
        return read_table(folder / f"{table}.csv")
    columns = types_of_table(table)
    rows = [row for file in files_of(table) for row in read_table(folder / f"{file}.csv") if row["topic"] == table]
    return [{column: row.get(column, "") for column in columns} for row in rows]
