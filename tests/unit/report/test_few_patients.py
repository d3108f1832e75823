"""Rates of fewer than five patients: grey with their number on an internal page, hidden on a public one, marked in every file."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from fixtures.report import blocks_of, build, parts_of
from fixtures.tables import write_study
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.records.result_columns import TABLES
from neuralmedbench.records.results import CLUSTER_MARKS, FEWEST
from neuralmedbench.report.topics import SHOWN_FROM

NOT_ABOUT_PATIENTS = {"cost", "checklists", "methods", "cases", "privacy"}
"""Blocks whose tables hold calls, versions or questions."""

RATE = re.compile(r"\d %|\d\.\d\d|[−+]\d")
MARKED = {name: columns for name, columns in TABLES.items() if CLUSTER_MARKS.keys() <= columns.keys()}
COUNTS = ("n_patients", "n_patients_before", "n_patients_after")


def rows_of(root: Path, table: str) -> list[dict[str, str]]:
    return read_result(root / "results" / "tables", table)


def rates_of(row: dict[str, str], table: str) -> list[str]:
    return [row[name] for name, kind in TABLES[table].items() if kind == "float" and row[name]]


def cells_of(block: str) -> list[str]:
    return re.findall(r"<td[^>]*>.*?</td>", block, flags=re.DOTALL)


def text_of(cell: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", cell))


@pytest.fixture(scope="module", params=[4, 12])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path, str]:
    """Make an internal page of few patients, or of 12 with groups of few."""
    root = tmp_path_factory.mktemp("few")
    write_study(root, models=("alpha", "beta"), patients=request.param)
    return request.param, root, build(root, ("alpha", "beta"), figures=("heatmap", "reliability"))


def test_every_table_of_rates_has_the_mark() -> None:
    rates = {name for name, columns in TABLES.items() if "float" in columns.values()}
    assert rates - MARKED.keys() == {"deidentification", "destinations", "items"}


def test_files_mark_exactly_the_rates_of_few_patients(made: tuple[int, Path, str]) -> None:
    patients, root, _ = made
    few = 0
    for table in MARKED:
        for row in rows_of(root, table):
            counts = [int(row[name]) for name in COUNTS if row.get(name)]
            if rates_of(row, table) and any(counts):
                number = min(one for one in counts if one)
                assert row["few_patients"] == (str(number) if number < FEWEST else ""), (table, row)
                few += number < FEWEST
            elif rates_of(row, table) and not counts and patients < FEWEST and row.get("arm") != "all":
                # the row does not count its patients; rows about all requests are not about patients
                assert 1 <= int(row["few_patients"]) <= patients, (table, row)
    assert few > 40


def test_no_rate_of_few_patients_is_on_an_internal_page_without_its_mark(made: tuple[int, Path, str]) -> None:
    patients, _, text = made
    blocks = {name: block for name, block in blocks_of(text).items() if name not in NOT_ABOUT_PATIENTS}
    if patients < FEWEST:
        # every rate of the page
        cells = [
            cell for block in blocks.values() for cell in cells_of(block) if RATE.search(text_of(cell)) and 'data-value=""' not in cell
        ]
        cells = [cell for cell in cells if 'class="number stated"' not in cell]  # a prevalence is an assumption, not an estimate
        assert len(cells) > 60
        assert [cell for cell in cells if 'class="few"' not in cell] == []
        assert '<b><span class="few">' in blocks["glance"]
    # row by row, where the page shows the number of patients
    rows = re.findall(r"<tr[^>]*>.*?</tr>", parts_of(text)["groups"] + parts_of(text)["readiness"], flags=re.DOTALL)
    seen = set()
    for row in rows:
        cells = cells_of(row)
        if cells and re.fullmatch(r"\s*\d+\s*", text_of(cells[-1])):
            few = int(text_of(cells[-1])) < FEWEST
            rates = [cell for cell in cells[:-1] if RATE.search(text_of(cell))]
            assert all(('class="few"' in cell) is few for cell in rates), row
            assert not few or any(f"n\u00a0=\u00a0{text_of(cells[-1]).strip()}" in text_of(cell) for cell in rates)
            seen.add(few)
    assert True in seen
    assert "read them as single cases, not as rates" in text


def test_no_table_of_a_topic_has_a_line_of_fewer_than_ten_patients(made: tuple[int, Path, str]) -> None:
    patients, root, text = made
    numbers = [
        int(text_of(cells_of(row)[-1]))
        for name, part in parts_of(text).items()
        if name != "cohort"  # it describes the cases and has no rate
        for table in re.findall(r'<table class="sortable">\s*<caption class="hidden">.*?</table>', part, flags=re.DOTALL)
        for row in re.findall(r"<tr data-benchmark.*?</tr>", table, flags=re.DOTALL)
    ]
    assert len(numbers) > 100 if patients == 12 else numbers == []
    assert all(number >= SHOWN_FROM for number in numbers)
    groups = [row for row in rows_of(root, "rates") if row["n_patients"] and int(row["n_patients"]) < SHOWN_FROM]
    assert len(groups) > 10
    assert re.search(r"\d+ rows? with fewer than 10 patients appears? only in the files", parts_of(text)["groups"])


def test_figures_say_how_many_of_their_values_are_of_few_patients(made: tuple[int, Path, str]) -> None:
    patients, root, text = made
    heatmap, described = ((root / "results" / "figures" / f"{name}.svg").read_text(encoding="utf-8") for name in ("heatmap", "reliability"))
    assert "groups of fewer than 5 stand in the table" in heatmap
    assert re.search(r"Grey: \d+ of \d+ values, of fewer than 5 patients\.", described)
    # a figure is drawn beside a table
    assert ("Grey: of fewer than 5 patients." in blocks_of(text)["confidence"]) == (patients == 12)


def test_a_public_page_hides_them_whoever_the_patients_are(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=12, kind="phantom")
    text = build(tmp_path, ("alpha",), "public", figures=("reliability",))
    hidden = 0
    for table in MARKED:
        for row in rows_of(tmp_path, table):
            if row["few_patients"]:
                hidden += 1
                assert rates_of(row, table) == [], (table, row)
    assert hidden > 20
    assert 'class="few"' not in text
    assert "Numbers about fewer than 5 patients are not shown." in text
    assert "Grey" not in (tmp_path / "results" / "figures" / "reliability.svg").read_text(encoding="utf-8")


def test_a_public_page_of_four_phantoms_has_no_rate_and_says_why(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=4, kind="phantom")
    text = build(tmp_path, ("alpha",), "public", figures=False)
    blocks = {name: block for name, block in blocks_of(text).items() if name not in NOT_ABOUT_PATIENTS}
    assert [cell for block in blocks.values() for cell in cells_of(block) if RATE.search(text_of(cell))] == []
    assert "Fewer than 5 patients, so a public report shows no rate of it." in text
    assert "No model has been scored yet" not in text
