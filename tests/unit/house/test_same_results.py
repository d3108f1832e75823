"""The check that refactoring changed no result finds every difference, and ignores only clocks and digests."""

from __future__ import annotations

import base64
import gzip
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from same_results import differences

pytestmark = pytest.mark.slow


def packed(name: str, rows: str) -> str:
    """Write the file of a table as the page holds it."""
    content = base64.b64encode(gzip.compress(rows.encode())).decode()
    return f'<script type="application/gzip;base64" id="csv-{name}">{content}</script>'


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Write two small folders with the same results."""
    before = tmp_path / "before"
    tables, responses, ledger = before / "results" / "tables", before / "results" / "responses", before / "data" / "ledger" / "demo"
    for folder in (tables, responses, ledger):
        folder.mkdir(parents=True)
    (tables / "rates.csv").write_text("model,value\ntext,0.5\n")
    (tables / "costs.csv").write_text("model,latency_median_s,first_called_on\ntext,0.000300,2026-01-01\n")
    (before / "results" / "report.html").write_text(
        '<li><span>Code</span> abc</li><td data-value="0.5">50 %</td><td data-value="0.000300">0.00</td>'
        '<section id="provenance">abc</section>' + packed("costs", "model,latency_median_s\ntext,0.000300\n")
    )
    pq.write_table(pa.table({"item_id": ["a"], "text": ["stroke"], "latency_s": [0.1], "call_keys": ["k"]}), responses / "text.parquet")
    (ledger / "text.jsonl").write_text('{"key": "k", "text": "stroke", "latency_s": 0.1}\n')
    after = tmp_path / "after"
    shutil.copytree(before, after)
    return before, after


def test_clocks_digests_and_provenance_are_no_difference(runs: tuple[Path, Path]) -> None:
    before, after = runs
    (after / "results" / "provenance.json").write_text("{}")
    (after / "results" / "tables" / "costs.csv").write_text("model,latency_median_s,first_called_on\ntext,0.7,2026-01-02\n")
    page = after / "results" / "report.html"
    text = page.read_text().partition("<script")[0].replace("abc", "def").replace('"0.000300">0.00', '"0.7">0.70')
    page.write_text(text + packed("costs", "model,latency_median_s\ntext,0.7\n"))
    pq.write_table(
        pa.table({"item_id": ["a"], "text": ["stroke"], "latency_s": [0.9], "call_keys": ["other"]}),
        after / "results/responses/text.parquet",
    )
    (after / "data/ledger/demo/text.jsonl").write_text('{"key": "other", "text": "stroke", "latency_s": 0.9}\n')
    assert differences(before, after) == []


def test_a_changed_value_in_a_table_that_the_page_holds_is_a_difference(runs: tuple[Path, Path]) -> None:
    before, after = runs
    page = after / "results" / "report.html"
    page.write_text(page.read_text().partition("<script")[0] + packed("costs", "model,latency_median_s\nfusion,0.000300\n"))
    assert differences(before, after) == ["differs: results/report.html"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("results/tables/rates.csv", "0.5", "0.6"),
        ("results/tables/rates.csv", "model,value", "model,rate"),
        ("results/report.html", "50 %", "51 %"),
        ("data/ledger/demo/text.jsonl", "stroke", "glioma"),
    ],
)
def test_a_changed_value_is_named(runs: tuple[Path, Path], name: str, old: str, new: str) -> None:
    path = runs[1] / name
    path.write_text(path.read_text().replace(old, new))
    assert differences(*runs) == [f"differs: {name}"]


def test_changed_rows_and_types_of_parquet_and_missing_files_are_named(runs: tuple[Path, Path]) -> None:
    before, after = runs
    pq.write_table(
        pa.table({"item_id": ["a"], "text": ["glioma"], "latency_s": [0.1], "call_keys": ["k"]}), after / "results/responses/text.parquet"
    )
    (after / "results" / "tables" / "rates.csv").unlink()
    assert differences(before, after) == ["only before: results/tables/rates.csv", "differs: results/responses/text.parquet"]
    assert differences(after, before) == ["only after: results/tables/rates.csv", "differs: results/responses/text.parquet"]
