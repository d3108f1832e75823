"""The line above a topic on the page, made from the definitions of its measures: the range of each over the models, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from neuralmedbench.records.results import PRIOR, is_simulated
from neuralmedbench.records.words import counted, decimal, percent, points, whole
from neuralmedbench.tables.declare import Cells, Measure, Takeaway
from neuralmedbench.tables.words import largest

FEWEST_PATIENTS = 8
"""Patients from which a row is in a sentence. (Our rule.)"""

MOST_MEASURES = 2
"""Measures of a topic in its sentence."""


SIMULATED_ALONE = "These ratings come from a program that fills in the form; no clinician rated an answer."


def topic_takeaway(rows: Sequence[Cells], measures: Sequence[Measure], simulated: Set[str] = frozenset()) -> Takeaway | None:
    """State the range of the first measures of a topic over the models; None for a topic without rows.

    Parameters
    ----------
    rows : sequence of dict
        The visible rows of the topic.
    measures : sequence of Measure
        Its measures in the order of the page.
    simulated : set of str
        Readers that are programs: no sentence is about their answers.

    Returns
    -------
    Takeaway or None
        No number is of fewer than `FEWEST_PATIENTS` patients.
    """
    if not rows:
        return None
    of_models = [row for row in rows if _is_measured(row, simulated)]
    enough = [row for row in of_models if _has_enough_patients(row)]
    whole = [row for row in enough if not row.get("slice")] or enough
    sentences = [words for measure in measures if measure.main and (words := _range_of(measure, whole))]
    if not of_models and any(map(is_simulated, rows)):
        return Takeaway(SIMULATED_ALONE, _sizes(rows))
    if not sentences:
        return Takeaway(f"Every n is below {FEWEST_PATIENTS}.", _sizes(rows))
    return Takeaway(f"{'; '.join(sentences[:MOST_MEASURES])}.", _sizes(whole))


def _is_measured(row: Cells, simulated: Set[str]) -> bool:
    """Return True for a row of answers of models or people: no constant answer, no simulated rater or reader."""
    if row["model"] == PRIOR or is_simulated(row):
        return False
    return simulated.isdisjoint((row["model"], row.get("other")))


def _sizes(rows: Sequence[Cells]) -> str:
    """Count items and patients by benchmark, of the rows that have both; empty where none has."""
    counted_rows = [row for row in rows if isinstance(row.get("n_items"), int) and isinstance(row.get("n_patients"), int)]
    return largest(counted_rows) if counted_rows else ""


def _has_enough_patients(row: Cells) -> bool:
    number = row.get("n_patients")
    return number is None or (isinstance(number, int) and number >= FEWEST_PATIENTS)


def _range_of(measure: Measure, rows: Sequence[Cells]) -> str:
    """Say between which values a measure lies over the rows; empty where none has it."""
    of_measure = [row for row in rows if row["measure"] == measure.name]
    differences = [row for row in of_measure if row.get("difference") is not None]
    values = [row for row in of_measure if row.get("value") is not None]
    shares = [row for row in of_measure if row.get("share") is not None]
    if values:
        return f"{measure.title}: {_span(measure.unit, values, 'value')}"
    if differences:
        return f"{measure.title}: {_span('points', differences, 'difference')}{_answers(differences)}"
    if shares:
        return f"{measure.title}: {_span('share', shares, 'share')}"
    return ""


def _span(unit: str, rows: Sequence[Cells], column: str) -> str:
    """Format one number with its interval, or the least and the largest of several."""
    form, noun = FORMS.get(unit, decimal), " points" if unit == "points" else ""
    ordered = sorted(rows, key=lambda row: float(row[column]))
    if len(rows) == 1:
        ends = [form(rows[0][end]) for end in ("low", "high") if rows[0].get(end) is not None]
        span = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
        return f"{form(rows[0][column])}{noun}{span}"
    models = len({row["model"] for row in rows if row["model"]})
    over = f" over {counted(models, 'model')}" if models else ""
    extremes = dict.fromkeys(form(row[column]) for row in (ordered[0], ordered[-1]))
    return f"{' to '.join(extremes)}{noun}{over}"


FORMS: dict[str, Callable[[float], str]] = {"share": percent, "points": points, "count": whole}
"""Formats of numbers by their unit; of others see `decimal`."""


def _answers(rows: Sequence[Cells]) -> str:
    """Count the differences whose interval excludes 0; where they are one family, those that are significant after correction."""
    tested = [row for row in rows if row.get("family")]
    if tested:
        significant = sum(row["answer"] in ("better", "worse") for row in tested)
        return f", {significant} of {len(tested)} significant"
    known = [row for row in rows if row.get("low") is not None]
    clear = sum(row["low"] > 0 or row["high"] < 0 for row in known)
    return f", the interval excludes 0 in {clear} of {len(known)}" if known else ""
