"""Whether the places that a file of published numbers names for ours are there: a misspelt one would be an empty cell."""

from __future__ import annotations

import re

from neuralmedbench.config.published import Lookup, PublishedConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.results import COLUMNS


def check_places(published: PublishedConfig) -> None:
    """Check every place of ours.

    Parameters
    ----------
    published : PublishedConfig
        What was published.

    Raises
    ------
    ConfigError
        If a table or a column is none of the tables of results, or a file is named with an unknown placeholder.
    """
    for name, table in published.tables.items():
        for key, column in table.columns.items():
            if column.ours and (problem := _problem(column.ours)):
                message = f"{published.title}: tables.{name}.columns.{key}.ours: {problem}"
                raise ConfigError(message)


def _problem(lookup: Lookup) -> str:
    if lookup.table not in COLUMNS:
        return f"there is no table {lookup.table!r} of results; there are: {', '.join(COLUMNS)}"
    columns = COLUMNS[lookup.table]
    # low and high are where they usually stand, in the tables that have them
    named = {*lookup.where, lookup.value, lookup.n, lookup.per, lookup.low, lookup.high} - {"", "low", "high"}
    if unknown := sorted(named - set(columns)):
        return f"the table {lookup.table} of results has no column {unknown[0]!r}; it has: {', '.join(columns)}"
    odd = sorted(set(re.findall(r"{(.*?)}", lookup.made_from)) - {"benchmark", "model"})
    return f"made_from: {{{odd[0]}}} stands for nothing, {{benchmark}} and {{model}} do" if odd else ""
