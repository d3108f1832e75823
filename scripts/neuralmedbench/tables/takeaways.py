"""The line above a topic on the page, made from the definitions of its measures: the value of each model or their range, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from neuralmedbench.records.results import PRIOR, is_simulated
from neuralmedbench.records.words import are, decimal, percent, points, whole
from neuralmedbench.tables.declare import Cells, Measure, Takeaway
from neuralmedbench.tables.words import largest

FEWEST_PATIENTS = 8
"""Patients from which a row is in a sentence. (Our rule.)"""

MOST_LISTED = 4
"""Models that a sentence lists one by one; of more it gives the range."""


SIMULATED_ALONE = "These ratings come from a program that fills in the form; no clinician rated an answer."


def topic_takeaway(
    rows: Sequence[Cells], measures: Sequence[Measure], titles: Mapping[str, str], simulated: Set[str] = frozenset()
) -> Takeaway | None:
    """State the first main measure of a topic that has values; None for a topic without rows.

    Parameters
    ----------
    rows : sequence of dict
        The visible rows of the topic.
    measures : sequence of Measure
        Its measures in the order of the page.
    titles : mapping of str to str
        Titles of the models.
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
    sentences = [words for measure in measures if measure.main and (words := _sentence_of(measure, whole, titles))]
    if not of_models and any(map(is_simulated, rows)):
        return Takeaway(SIMULATED_ALONE, _sizes(rows))
    if not sentences:
        return Takeaway(f"Too few to report: no row is about {FEWEST_PATIENTS} or more.", _sizes(rows))
    return Takeaway(f"{sentences[0]}.", _sizes(whole))


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


def _sentence_of(measure: Measure, rows: Sequence[Cells], titles: Mapping[str, str]) -> str:
    """State a measure of every model, or the range over the rows; empty where none has it."""
    of_measure = [row for row in rows if row["measure"] == measure.name]
    for column, unit in (("value", measure.unit), ("difference", "points"), ("share", "share")):
        if known := [row for row in of_measure if row.get(column) is not None]:
            answers = _answers(known) if column == "difference" else ""
            return f"{measure.title}{_values(unit, known, column, titles)}{answers}"
    return ""


def _values(unit: str, rows: Sequence[Cells], column: str, titles: Mapping[str, str]) -> str:
    """Format one number with its interval, those of few models, or the least and the largest of several rows."""
    form, noun = FORMS.get(unit, decimal), " points" if unit == "points" else ""
    if len(rows) == 1:
        ends = [form(rows[0][end]) for end in ("low", "high") if rows[0].get(end) is not None]
        span = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
        return f": {form(rows[0][column])}{noun}{span}"
    ordered = sorted(rows, key=lambda row: float(row[column]))
    ends = [form(row[column]) for row in (ordered[0], ordered[-1])]
    if ends[0] == ends[1]:
        return f": {ends[0]}{noun} in every row"
    models = {row["model"] for row in rows if not row.get("other")}
    if len(models) == len(rows) <= MOST_LISTED:
        parts = [f"{titles.get(row['model'], row['model'])} {form(row[column])}{noun}" for row in reversed(ordered)]
        return f": {', '.join(parts)}"
    return f": {ends[0]} to {ends[1]}{noun}"


FORMS: dict[str, Callable[[float], str]] = {"share": percent, "points": points, "count": whole}
"""Formats of numbers by their unit; of others see `decimal`."""


def _answers(rows: Sequence[Cells]) -> str:
    """Count the differences whose interval excludes 0; where they are one family, those that are significant after correction."""
    tested = [row for row in rows if row.get("family")]
    if tested:
        significant = sum(row["answer"] in ("better", "worse") for row in tested)
        return f"; {significant} of {len(tested)} differences {are(significant)} significant"
    known = [row for row in rows if row.get("low") is not None]
    clear = sum(row["low"] > 0 or row["high"] < 0 for row in known)
    return f"; the interval excludes 0 in {clear} of {len(known)}" if known else ""
