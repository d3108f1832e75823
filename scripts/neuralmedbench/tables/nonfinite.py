"""Drop non-finite values (NaN, infinity) from records, and count what was dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from neuralmedbench.tables.study import Study

R = TypeVar("R")


@cache
def _floats(record: Any) -> tuple[tuple[str, bool], ...]:
    """Give the numbers of a record, and of each whether it may be absent."""
    return tuple((one.name, "None" in str(one.type)) for one in fields(record) if str(one.type) in ("float", "float | None"))


def drop_nonfinite(rows: Sequence[R]) -> tuple[list[R], int]:
    """Leave out what is no number.

    Parameters
    ----------
    rows : sequence of record
        Records of one kind.

    Returns
    -------
    rows : list of record
        The same with None in the place of a number that is NaN or infinite; rows that cannot be without it are left out.
    number : int
        How many numbers were left out.
    """
    if not rows:
        return [], 0
    record: Any = type(rows[0])
    names = _floats(record)
    kept, number = list[R](), 0
    for row in rows:
        odd = [(name, optional) for name, optional in names if (value := getattr(row, name)) is not None and not math.isfinite(value)]
        number += len(odd)
        if not odd:
            kept.append(row)
        elif all(optional for _, optional in odd):
            changes: dict[str, Any] = dict.fromkeys(name for name, _ in odd)
            kept.append(replace(row, **changes))  # type: ignore[type-var]
    return kept, number


def nonfinite_statements(study: Study) -> list[str]:
    """Say what was left out; nothing when every number is one."""
    told = [
        f"{benchmark.config.title} ({', '.join(f'{number:,} in {kind}' for kind, number in benchmark.odd_numbers.items())})"
        for benchmark in study.benchmarks.values()
        if benchmark.odd_numbers
    ]
    return [f"No numbers: values that are infinite or not a number count as absent: {'; '.join(told)}."] if told else []
