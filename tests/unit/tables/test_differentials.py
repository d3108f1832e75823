"""The length of ranked differentials, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.confidence import FAST, answer, open_item, study_of
from neuralmedbench.estimates.intervals import ByPatient, rate_interval, rate_intervals
from neuralmedbench.records.items import Family, Level
from neuralmedbench.records.scores import ParseStatus, Score
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


def rows_of(scores: list[Score]) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["family"], row["level"]): row for row in differential_rows(study_of(ITEMS, {"m": scores}))}


def test_the_length_of_lists_is_a_mean_over_answers() -> None:
    found = rows_of(
        [listed(0, 1), listed(0, 4, repeat=1), listed(1, 2), listed(1, None, 1, repeat=1), listed(2, 3), listed(2, 5, repeat=1)]
    )
    row = found["all", "all"]
    assert row["mean_candidates"] == pytest.approx(26 / 6)
    assert row["full_lists"] == pytest.approx(5 / 6)
    assert (row["n_items"], row["answers"], row["missing"]) == (3, 6, 0), "a free answer ranks nothing"
    assert found["rationale_generation", "all"]["mean_candidates"] == 5.0
    assert found["all", "complex"]["n_items"] == 2
    assert set(found) == {(family, level) for family in ("all", "differential_diagnosis") for level in ("all", "complex", "direct")} | {
        ("rationale_generation", "all"), ("rationale_generation", "complex"),
    }  # fmt: skip


def test_refused_truncated_and_unread_answers_have_no_list_and_missing_ones_are_no_answers() -> None:
    row = rows_of(
        [
            listed(0, 1),
            listed(1, None, 0, state="refused"),
            listed(1, None, 0, state="truncated", repeat=1),
            listed(2, None, 0, parse_status=ParseStatus.FAILED),
            listed(2, None, 0, missing=True, state="failed", repeat=1),
        ]
    )["all", "all"]
    assert (row["answers"], row["without_list"], row["missing"]) == (4, 3, 2)  # the second sample of the first item was never made
    assert (row["mean_candidates"], row["full_lists"]) == (5.0, 1.0)


def test_no_answer_gives_empty_cells_and_no_ranked_item_no_row() -> None:
    row = rows_of([])["all", "all"]
    assert (row["mean_candidates"], row["full_lists"], row["missing"]) == (None, None, 3)
    assert differential_rows(study_of(ITEMS[3:], {"m": []})) == []


@pytest.mark.parametrize("patients", [12, 60])
def test_intervals_of_many_columns_are_those_of_each_alone(patients: int) -> None:
    rng = np.random.default_rng(4)
    values, codes = rng.integers(0, 2, (2 * patients, 3)).astype(np.float64), np.repeat(np.arange(patients), 2)
    values[:, 2] = 1.0
    together = rate_intervals(values, ByPatient(codes, FAST), jointly=True)
    for column, found in enumerate(together):
        alone = rate_interval(values[:, column], ByPatient(codes, FAST))
        assert found.method == alone.method
        assert found[:3] == pytest.approx(alone[:3], abs=1e-9)


def test_a_column_with_gaps_has_its_own_denominator() -> None:
    values = np.tile([[1.0], [0.0]], (40, 2))
    values[1::2, 1] = np.nan
    values[2::4, 1] = 0.0
    first, second = rate_intervals(values, ByPatient(np.arange(80), FAST), jointly=True)
    assert (first.value, second.value) == (0.5, 0.5)
    assert second.high - second.low > first.high - first.low
