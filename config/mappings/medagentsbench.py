"""MedAgentsBench: fewer options where the last is no option, and no row of an older form of MedQA."""

from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Question

OLDER = "medqa_5options"
NO_OPTION = "n/a"


def question(row: SetRow) -> Question | None:
    """Leave out what is no option at the end; one in the middle would move the letters of others."""
    if row["_folder"] == OLDER:
        return None
    asked = row.by_columns()
    options = list(asked.options)
    while options and options[-1].casefold() == NO_OPTION:
        options.pop()
    return replace(asked, options=tuple(options))
