"""Rows of an Arrow table as dictionaries, made a column at a time: a gather reads hundreds of thousands, and value by value takes three times as long."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Give the rows of a table, as `table.to_pylist(maps_as_pydicts="strict")` does.

    Parameters
    ----------
    table : pyarrow.Table
        Columns of the types that `records.schema.arrow_type` gives.

    Returns
    -------
    list of dict
        One a row; equal texts of a column are one object.

    Raises
    ------
    KeyError
        If a map holds a key twice.
    """
    names = table.schema.names
    columns = [[value for chunk in column.chunks for value in _values(chunk)] for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(array: pa.Array) -> list[Any]:
    """Give the values of an array; a place without a value is None."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_string(kind):
        return _texts(array)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = (_values(part) for part in array.flatten())
        return _with_gaps(array, [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)])
    if pa.types.is_map(kind):
        keys, items = _values(array.keys), _values(array.items)
        return _with_gaps(array, [_map(keys[first:end], items[first:end]) for first, end in _ranges(array)])
    if pa.types.is_list(kind):
        inner = _values(array.values)
        return _with_gaps(array, [inner[first:end] for first, end in _ranges(array)])
    # a number has no None: its gaps are filled and emptied again
    filled = array.fill_null(pa.scalar(0).cast(kind)) if array.null_count else array
    return _with_gaps(array, filled.to_numpy(zero_copy_only=False).tolist())


def _texts(array: pa.StringArray) -> list[str | None]:
    encoded = array.dictionary_encode()
    words = np.append(encoded.dictionary.to_numpy(zero_copy_only=False), np.array([None], dtype=object))
    places = encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return list(words[places])


def _ranges(array: pa.ListArray) -> Iterator[tuple[int, int]]:
    return pairwise(array.offsets.to_numpy().tolist())


def _map(keys: list[Any], items: list[Any]) -> dict[Any, Any]:
    found = dict(zip(keys, items, strict=True))
    if len(found) < len(keys):
        message = "a key stands twice in a map"
        raise KeyError(message)
    return found


def _with_gaps(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    gaps = array.is_null().to_numpy(zero_copy_only=False).tolist()
    return [None if gap else value for gap, value in zip(gaps, values, strict=True)]
