"""The numbers of the small run are those that were written down before the tables began to move."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.one_value import second_values
from fixtures.reference import assert_as_written

pytestmark = pytest.mark.workflow

CHANGED = {
    ("leaderboard", "pass1_patients"): "new: the mean over patients of the mean of each one's items ranks",
    ("pairwise", "difference"): "patients alike: of the 11 pictures one of the two patients has 6",
    ("arms", "difference"): "patients alike, as above: -0.227273 of 11 pictures is -0.225000 of two patients",
    ("claims", "difference"): "that of pairwise.csv",
    ("evidence", "value"): "its ends stood in columns of their own",
    ("evidence", "difference"): "turned: the share of answers that lose their credit",
    ("confidence", "shift"): "the interval is that of the flips, and of two patients none is known",
}
"""Numbers that are new or differ since, each with its reason."""


def test_every_number_of_the_small_run_is_the_one_that_was_written_down(finished_run: Path) -> None:
    assert_as_written("test", finished_run / "results/test", changed=CHANGED)


def test_no_number_of_the_small_run_has_a_second_value_or_interval(finished_run: Path) -> None:
    assert second_values(finished_run / "results/test/tables") == []
