"""The length of ranked differentials, computed by hand."""

from __future__ import annotations

import pytest

from fixtures.confidence import answer, open_item, study_of
from neuralmedbench.records.items import Family, Level
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.declare import MeasureRow
from neuralmedbench.tables.reasoning import differential_rows

ITEMS = [
    open_item(0, "p0"),
    open_item(1, "p1", level=Level.COMPLEX),
    open_item(2, "p2", family=Family.RATIONALE_GENERATION, level=Level.COMPLEX),
    open_item(3, "p3", family=Family.QUESTION_ANSWERING),
]


def listed(place: int, rank: int | None, size: int = 5, **changes: object) -> Score:
    """Return an answer whose list of `size` candidates holds the reference at `rank`."""
    names = tuple(f"disease {number}" for number in range(size))
    given = {"differential": names, "reference_rank": rank, "in_candidates": rank is not None, **changes}
    return answer(ITEMS[place], 0.5, rank == 1, **given)


def rows_of(scores: list[Score]) -> dict[tuple[str, str], MeasureRow]:
    return {(row.measure, row.value_of_slice): row for row in differential_rows(study_of(ITEMS, {"m": scores}))}


def test_the_length_of_lists_is_a_mean_over_answers() -> None:
    found = rows_of(
        [listed(0, 1), listed(0, 4, repeat=1), listed(1, 2), listed(1, None, 1, repeat=1), listed(2, 3), listed(2, 5, repeat=1)]
    )
    row = found["candidates", "all"]
    assert row.value == pytest.approx(26 / 6)
    assert found["full_lists", "all"].value == pytest.approx(5 / 6)
    assert (row.n_items, row.n_answers, row.left_out) == (3, 6, 0), "a free answer ranks nothing"
    assert found["candidates", "complex"].n_items == 2
    assert set(found) == {(name, level) for name in ("candidates", "full_lists", "no_list") for level in ("all", "complex", "direct")}


def test_refused_truncated_and_unread_answers_have_no_list_and_missing_ones_are_no_answers() -> None:
    found = rows_of(
        [
            listed(0, 1),
            listed(1, None, 0, state="refused"),
            listed(1, None, 0, state="truncated", repeat=1),
            listed(2, None, 0, parse_status=ParseStatus.FAILED),
            listed(2, None, 0, missing=True, state="failed", repeat=1),
        ]
    )
    row = found["no_list", "all"]
    assert (row.n_answers, row.value, row.left_out) == (4, 0.75, 2)  # the second sample of the first item was never made
    assert (found["candidates", "all"].value, found["full_lists", "all"].value) == (5.0, 1.0)


def test_no_answer_gives_empty_cells_and_no_ranked_item_no_row() -> None:
    row = rows_of([])["candidates", "all"]
    assert (row.value, row.left_out) == (None, 3)
    assert differential_rows(study_of(ITEMS[3:], {"m": []})) == []
