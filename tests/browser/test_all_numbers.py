"""All numbers of a run, searched on the page, and the table of a topic: sorted, and without the models that a reader hides."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.report import MODELS, make_results
from fixtures.report import page as write_page
from fixtures.tables import BREADTH, DEPTH, HOSTILE, write_study
from neuralmedbench.records.results import SHAPES

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

NOTE = f'{HOSTILE}, "quoted"\nand a second line'
"""What a title or a note might hold: markup, quotes, a comma and a line break."""
SHOWN = """({
  count: document.getElementById("numbers-count").textContent,
  rows: [...document.querySelectorAll("#numbers-table tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
  heads: [...document.querySelectorAll("#numbers-table thead th")].map((head) => head.textContent),
  hidden: [...document.querySelectorAll("#numbers-table tr")].filter((row) => getComputedStyle(row).display === "none").length,
})"""
FUNNEL = "[data-part=funnel] table"


def rows_of(page: Browser, table: str) -> list[dict[str, str]]:
    path = page.downloads.parent / "results" / "tables" / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def choose(page: Browser, **values: str) -> None:
    """Set fields of the search as a person does, and wait until they are drawn."""
    for name, value in values.items():
        event = "input" if name == "words" else "change"
        field = f"numbers.elements.{name}"
        page.run(f"{field}.value = {json.dumps(value)}; {field}.dispatchEvent(new Event('{event}'))")
        page.run("new Promise((done) => setTimeout(done, 200))")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Open the report of 12 made-up patients, with hostile words in one row of a file."""
    folder = tmp_path_factory.mktemp("numbers")
    write_study(folder, models=MODELS, patients=12)
    make_results(folder, MODELS, figures=False)
    path = folder / "results" / "tables" / "measures.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["note"] = NOTE
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_page(folder, MODELS)
    with browser(folder) as opened:
        opened.open(folder / "results" / "report.html")
        opened.run("document.getElementById('numbers').scrollIntoView()")
        opened.until("document.querySelector('#numbers-table tbody tr')")
        yield opened


@pytest.mark.parametrize("table", SHAPES)
def test_every_row_of_a_file_is_counted_and_the_first_200_are_drawn(page: Browser, table: str) -> None:
    choose(page, table=table, words="")
    seen, rows = page.run(SHOWN), rows_of(page, table)
    whole = f"{len(rows):,} of {len(rows):,} rows"
    assert seen["count"] == (f"{whole}, the first 200 shown" if len(rows) > 200 else whole)
    assert len(seen["rows"]) == min(200, len(rows)) > 10


def test_a_topic_and_words_leave_the_rows_that_have_them_with_their_cells(page: Browser) -> None:
    choose(page, table="measures", topic="funnel", words=f"ALPHA {DEPTH}-")
    rows = [
        row for row in rows_of(page, "measures") if row["topic"] == "funnel" and row["model"] == "alpha" and row["benchmark"] == BREADTH
    ]
    seen = page.run(SHOWN)
    assert seen["count"].startswith(f"{len(rows)} of ")
    names = [head.replace(" ", "_") for head in seen["heads"]]
    assert {"benchmark", "model", "measure", "value", "n_items"} <= set(names)
    assert [dict(zip(names, cells, strict=True)) for cells in seen["rows"]] == [{name: row[name] for name in names} for row in rows]
    choose(page, words="no such words")
    assert page.run(SHOWN)["rows"] == []
    choose(page, table="contrasts", words="")
    assert page.run("[numbers.elements.topic.value, numbers.elements.topic.options.length]")[0] == ""
    topics = page.run("[...numbers.elements.topic.options].map((option) => option.value)")
    assert set(topics) == {"", *(row["topic"] for row in rows_of(page, "contrasts"))}


def test_hostile_words_of_a_file_stay_words(page: Browser) -> None:
    choose(page, table="measures", words="quoted")
    seen = page.run(SHOWN)
    assert [row[seen["heads"].index("note")] for row in seen["rows"]] == [NOTE]
    assert page.run("document.querySelectorAll('#numbers-table :is(img, script, svg, a, b)').length") == 0
    assert page.run("document.title") == "Neural-MedBench report"
    assert page.complaints == []


def test_a_model_that_is_hidden_has_no_line_in_the_table_of_a_topic_and_all_its_numbers(page: Browser) -> None:
    choose(page, table="measures", topic="funnel", words="")
    before = page.run(SHOWN)
    lines = f"[...document.querySelectorAll('{FUNNEL} tbody tr')].filter((row) => getComputedStyle(row).display !== 'none').map((row) => row.dataset.model)"
    assert set(page.run(lines)) == set(MODELS)
    page.run("document.querySelector('#models li[data-pick=beta] input[name=show]').click()")
    after, shown = page.run(SHOWN), page.run(lines)
    page.run("document.querySelector('[data-all-models]').click()")
    assert set(shown) == {"alpha", "gamma"}
    assert after == before
    assert before["hidden"] == 0
    assert any("beta" in row for row in after["rows"])


def test_the_table_of_a_topic_is_sorted_by_the_head_that_is_pressed(page: Browser) -> None:
    cells = f"[...document.querySelectorAll('{FUNNEL} tbody tr')].map((row) => row.querySelector('[data-element=right]').dataset.value)"
    heads = f"[...document.querySelectorAll('{FUNNEL} thead button')]"
    page.run(f"{heads}.find((head) => head.textContent === 'Right').click()")
    values = [float(value) for value in page.run(cells)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 3
    page.run(f"{heads}.find((head) => head.textContent === 'Model').click()")
    models = page.run(f"[...document.querySelectorAll('{FUNNEL} tbody tr')].map((row) => row.dataset.model)")
    assert models == sorted(models, reverse=True)


def test_what_is_wider_than_the_page_is_scrolled_with_the_keyboard(page: Browser) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=False)
    page.run("document.getElementById('numbers').scrollIntoView()")
    choose(page, table="measures", words="")
    box = page.run(
        "(({ tabIndex, scrollWidth, clientWidth }) => [tabIndex, scrollWidth > clientWidth])(document.getElementById('numbers-table'))"
    )
    wider = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    assert (box, wider) == ([0, True], 0)
