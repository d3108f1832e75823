"""All data sets that can be imported, by name."""

from __future__ import annotations

from neuralmedbench.benchmarks.adapters import mediconfusion
from neuralmedbench.benchmarks.adapters.entry import DataSet

DATA_SETS: dict[str, DataSet] = {one.name: one for module in (mediconfusion,) for one in module.DATA_SETS}


def table() -> str:
    """Say of every data set where it is to be had, under which licence, and what has to lie in the folder."""
    lines = []
    for one in DATA_SETS.values():
        number = f"{one.expected} questions" if one.expected else "number of questions not published"
        lines += [f"{one.name}: {one.title} ({one.axis}, {number})", f"    from     {one.home}", f"    licence  {one.licence}"]
        lines.append(f"    files    {one.files}")
    return "\n".join(lines)
