"""The page of metrics names every table."""

from __future__ import annotations

import pytest

from conftest import ROOT
from neuralmedbench.records.results import COLUMNS

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_stands_on_the_page_of_metrics(table: str) -> None:
    assert f"`{table}.csv`" in PAGE
