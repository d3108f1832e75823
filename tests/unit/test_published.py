"""Published numbers: taken as they were published, beside ours, and a gap says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.config.load import load_model, load_published, read_yaml
from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.io.tables import write_table
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.stats.papers.published import Own, comparison_rows, wide_table, wilson
from neuralmedbench.stats.papers.typeset import latex, markdown

PAPERS = sorted((ROOT / "config" / "published").glob("*.yaml"))
GPT = {"gpt-4o": load_model(ROOT / "config" / "models" / "gpt-4o.yaml")}


@pytest.fixture
def medbench() -> PublishedConfig:
    """Give what was published about Neural-MedBench."""
    return load_published(ROOT / "config" / "published" / "neural-medbench.yaml")


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_percentage_with_a_small_denominator_is_a_count_of_it(path: Path) -> None:
    for table in load_published(path).tables.values():
        cells = [
            (row.values[name], column.n)
            for row in table.rows
            if row.denominators
            for name, column in table.columns.items()
            if name in row.values
        ]
        for percent, n in cells:
            if n and n <= 200:
                assert abs(100 * round(percent * n / 100) / n - percent) < 0.1, (percent, n)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_cell_of_ours_is_looked_for_where_a_table_has_it(path: Path) -> None:
    for table in load_published(path).tables.values():
        for column in table.columns.values():
            if column.ours:
                names = {*column.ours.where, column.ours.value, column.ours.n}
                assert names <= set(COLUMNS[column.ours.table].split()), column.label


def test_both_readings_of_a_contradiction_stand_there_and_are_marked(medbench: PublishedConfig) -> None:
    rows = [row for row in medbench.tables["main"].rows if row.label == "Claude 4 Sonnet"]
    assert [row.values["direct_pass1"] for row in rows] == [30.0, 16.7]
    assert all(row.conflict for row in rows)


def test_the_interval_of_a_published_rate_is_wilsons() -> None:
    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    low, high = statsmodels.proportion_confint(11, 30, method="wilson")
    assert wilson(36.7, 30) == pytest.approx((100 * low, 100 * high), abs=1e-6)


def test_ours_stands_below_the_published_row_with_its_interval_and_number(medbench: PublishedConfig, tmp_path: Path) -> None:
    for name, columns in COLUMNS.items():
        write_table(tmp_path / f"{name}.csv", [], columns.split())
    row = {
        "benchmark": "neural-medbench",
        "model": "gpt-4o",
        "arm": "full",
        "strategy": "direct",
        "slice": "level",
        "value_of_slice": "direct",
    }
    write_table(
        tmp_path / "rates.csv",
        [{**row, "metric": "pass1", "value": 0.25, "low": 0.1, "high": 0.5, "n_items": 15}],
        COLUMNS["rates"].split(),
    )
    rows = comparison_rows(medbench, Own(models=GPT, folder=tmp_path, absent=""))
    ours = {cell["column"]: cell for cell in rows if cell["table"] == "main" and cell["kind"] == "ours" and cell["model"] == "gpt-4o"}
    assert (ours["direct_pass1"]["value"], ours["direct_pass1"]["low"], ours["direct_pass1"]["high"], ours["direct_pass1"]["n"]) == (
        25,
        10,
        50,
        15,
    )
    assert ours["complex_pass1"]["missing"] == "rates.csv has no value for it"
    main = [row for row in rows if row["table"] == "main"]
    header, lines, footnotes = wide_table(main, {key: column.label for key, column in medbench.tables["main"].columns.items()})
    place = next(number for number, line in enumerate(lines) if line[:2] == ["GPT-4o (2025-03-26)", "R, P"])
    assert lines[place][2] == "20.0 (9.5–37.3)"
    assert lines[place + 1][:3] == ["GPT-4o", "ours", "25.0 (10.0–50.0)"]
    assert header[:3] == ["Model", "Source", "Direct pass@1"]
    assert "rates.csv has no value for it" in footnotes


def test_without_the_data_every_cell_of_ours_names_what_is_missing(medbench: PublishedConfig, tmp_path: Path) -> None:
    why = "config/benchmarks/neural-medbench.yaml is not there: import it"
    rows = comparison_rows(medbench, Own(models=GPT, folder=tmp_path, absent=why))
    ours = [row for row in rows if row["kind"] == "ours"]
    assert ours
    assert {row["missing"] for row in ours} == {why}
    assert all(row.get("value") is None for row in ours)
    for text in (markdown(medbench, rows), latex(medbench, rows)):
        assert "is not there: import it" in text
        assert "GPT-5" in text


def test_the_plan_counts_calls_and_money_by_the_published_size(medbench: PublishedConfig, tmp_path: Path) -> None:
    rows = comparison_rows(medbench, Own(models=GPT, folder=tmp_path, absent="not here"))
    plan = {row["column"]: row["value"] for row in rows if row["table"] == "plan"}
    assert plan["calls"] == 5 * 200
    assert plan["prompt_tokens"] == 5 * (1000 * 1000 + 200 * 533)
    assert plan["most_usd"] == pytest.approx(plan["prompt_tokens"] * 2.5e-6 + 1000 * 1024 * 10e-6)


def test_latex_has_no_character_that_latex_reads_as_a_command(medbench: PublishedConfig, tmp_path: Path) -> None:
    text = latex(medbench, comparison_rows(medbench, Own(models=GPT, folder=tmp_path, absent="a_b & 5 % of it")))
    assert r"a\_b \& 5 \% of it" in text


def test_a_run_leaves_out_what_is_not_there_only_when_it_is_told_to() -> None:
    config = read_yaml(ROOT / "config" / "paper.yaml")
    run = Run.read(config, ROOT / "config")
    assert run.absent["neurovlm"] == f"{(ROOT / 'config' / 'benchmarks' / 'neurovlm.yaml').as_posix()}"
    assert run.why_absent("neurovlm-bench").endswith("is not there: python scripts/import_benchmark.py neurovlm --from FOLDER")
    with pytest.raises(ConfigError, match=r"neural-medbench\.yaml: the file is not there"):
        Run.read({**config, "leave_out_absent": False}, ROOT / "config")


def test_a_value_of_a_column_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    text = PAPERS[0].read_text(encoding="utf-8").replace("values: {direct_pass1:", "values: {direct_pas1:", 1)
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="the row 'GPT-5' has values of columns that the table does not have: direct_pas1"):
        load_published(tmp_path / "x.yaml")
