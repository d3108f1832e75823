"""The numbers of the small run are those that were written down before the tables began to move."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.one_value import second_values
from fixtures.reference import assert_as_written

pytestmark = pytest.mark.workflow


def test_every_number_of_the_small_run_is_the_one_that_was_written_down(finished_run: Path) -> None:
    assert_as_written("test", finished_run / "results/test")


def test_no_number_of_the_small_run_has_a_second_value_or_interval(finished_run: Path) -> None:
    assert second_values(finished_run / "results/test/tables") == []
