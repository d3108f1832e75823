"""The numbers of the small run are those that were written down before the tables began to move."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.reference import differences, read_rows, rows_of

pytestmark = pytest.mark.workflow


def test_every_number_of_the_small_run_is_the_one_that_was_written_down(finished_run: Path) -> None:
    """`python tests/fixtures/reference.py results/test tests/reference/test.csv.xz` writes them anew where a difference is intended."""
    written = read_rows(ROOT / "tests/reference/test.csv.xz")
    assert len(written) > 5000
    assert differences(written, rows_of(finished_run / "results/test/tables")) == []
