"""Which rows of a table are hidden: about few patients, or because of such a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from neuralmedbench.records.results import HIDDEN
from neuralmedbench.tables.disclosure.guards import Guard, RoundGuard
from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.suppression import Suppression


def row_marks(
    rule: Suppression, rows: Sequence[Cells], own: Sequence[Sequence[Guard | RoundGuard]], guards: Mapping[str, Guard]
) -> list[str]:
    """Mark the hidden rows of one table.

    Parameters
    ----------
    rule : Rule
        Of the table.
    rows : sequence of dict
        Its rows.
    own : sequence of sequence of Guard or RoundGuard
        What guards each row.
    guards : mapping of str to Guard
        By benchmark.

    Returns
    -------
    list of str
        `<10` (or another limit) where few patients are behind a row, `(hidden)` where it goes with such a row, empty where it is shown.
    """
    marks = [next((mark for guard in found if (mark := guard.mark(rule, row))), "") for row, found in zip(rows, own, strict=True)]
    _mark_companions(rule, rows, marks, guards)
    if rule.surest:
        _mark_coverages(rows, marks, guards)
    return marks


def _mark_companions(rule: Suppression, rows: Sequence[Cells], marks: list[str], guards: Mapping[str, Guard]) -> None:
    """Hide another row of a group whose only hidden rows are about few patients: the total, where it is in the group, else the smallest."""
    groups: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.get("benchmark") in guards and (group := rule.group(row)) is not None:
            groups[group].append(place)

    def count(place: int) -> int:
        return int(rows[place].get(rule.patients) or 0)

    for places in groups.values():
        guard = guards[rows[places[0]]["benchmark"]]
        hidden, left = ([place for place in places if bool(marks[place]) is wanted and count(place)] for wanted in (True, False))
        if hidden and left and not any(count(place) >= guard.least(rule, rows[place]) for place in hidden):
            marks[min(left, key=lambda place: (rows[place].get("step") != "listed", count(place), place))] = HIDDEN


def _mark_coverages(rows: Sequence[Cells], marks: list[str], guards: Mapping[str, Guard]) -> None:
    """Hide coverages that follow each other so closely that few patients may lie between them; all answers together stay."""
    curves: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row["benchmark"] in guards and row["measure"] == "accuracy" and not marks[place]:
            curves[row["benchmark"], row["model"], row["source"]].append(place)
    for (benchmark, *_), places in curves.items():
        step = guards[benchmark].fewest * guards[benchmark].answers_of_a_patient
        end = max(rows[places[0]]["n"], 1) * 1.0
        for place in sorted(places, key=lambda place: -rows[place]["coverage"]):
            kept = rows[place]["coverage"] * rows[place]["n"]
            if kept < step or (rows[place]["coverage"] < 1 and end - kept < step):
                marks[place] = f"<{guards[benchmark].fewest}"
            else:
                end = kept
