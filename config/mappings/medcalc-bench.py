"""MedCalc-Bench: the calculator and its output decide how a value is compared."""

from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Question, Value
from neuralmedbench.errors import DataError

GESTATIONAL_AGE = "69"
RULES = {"decimal": "number", "integer": "whole_number", "date": "date"}


def question(row: SetRow) -> Question:
    """Add the value with its rule and, for a number, the authors' limits."""
    rule = "weeks_and_days" if str(row["Calculator ID"]) == GESTATIONAL_AGE else RULES.get(row["Output Type"])
    if rule is None:
        message = f"no rule for this output; expected {', '.join(RULES)}"
        raise DataError(message)
    low, high = (float(row[f"{end} Limit"]) for end in ("Lower", "Upper")) if rule == "number" else (None, None)
    value = Value(name="answer", rule=rule, reference=row["Ground Truth Answer"], low=low, high=high)
    return replace(row.by_columns(), values=(value,))
