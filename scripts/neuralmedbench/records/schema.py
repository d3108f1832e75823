"""From a frozen dataclass to a pyarrow schema: a table has the columns of its record, neither more nor less."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import pyarrow as pa

SCALARS = {bool: "bool_", int: "int64", float: "float64", str: "string"}


def arrow_type(hint: Any) -> pa.DataType:
    """Arrow type of one annotation.

    Parameters
    ----------
    hint : type
        A scalar, a StrEnum, `X | None`, `tuple[X, ...]`, `tuple[X, Y, Z]` of equal types, `dict[str, X]` or a record.

    Returns
    -------
    pyarrow.DataType
        Every type is nullable; a tuple is a list, a dict is a map, a record is a struct.

    Raises
    ------
    TypeError
        If the annotation has no Arrow type.
    """
    import pyarrow as pa

    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return arrow_type(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return pa.list_(arrow_type(arguments[0]))
    if origin is dict:
        return pa.map_(pa.string(), arrow_type(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return pa.struct(list(arrow_schema(hint)))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    if hint in SCALARS:
        return getattr(pa, SCALARS[hint])()
    message = f"no Arrow type for {hint!r}"
    raise TypeError(message)


def arrow_schema(record: type) -> pa.Schema:
    """Arrow schema of a record, columns in the order of its fields."""
    import pyarrow as pa

    hints = get_type_hints(record)
    return pa.schema([pa.field(entry.name, arrow_type(hints[entry.name])) for entry in fields(record)])
