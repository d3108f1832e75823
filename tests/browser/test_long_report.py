"""The report of 10 invented models (20 in the long tests) on 5 invented benchmarks: long tables are packed until they are opened, nothing is cut on paper, and axe finishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import tables
from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.report import build
from fixtures.tables import BREADTH, DEPTH, add_benchmark, write_study

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

OTHERS = {"breadth-2": BREADTH, "depth-3": DEPTH, "breadth-4": BREADTH}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
PACKED = "document.querySelectorAll('details.table > .packed').length"


@pytest.fixture(scope="module", params=[10, pytest.param(20, marks=pytest.mark.long)])
def models(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(f"model{number:02d}" for number in range(request.param))


@pytest.fixture(scope="module")
def page(models: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("long")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ARM_SHIFT", {"full": 0.0, "no_image": -0.25})
        write_study(folder, models=models, patients=10)
        for name, of in OTHERS.items():
            add_benchmark(folder, name, of, models, patients=10)
    build(folder, models, figures=False, benchmarks=(DEPTH, BREADTH, *OTHERS))
    with browser(folder) as opened:
        opened.open(folder / "results" / "report.html")
        yield opened


def size(page: Browser, width: int, height: int = 900) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def test_a_long_table_is_unpacked_when_it_is_opened_with_its_sorting_and_the_chosen_models(page: Browser) -> None:
    before = page.run(PACKED)
    page.run("document.querySelector('#models li[data-pick=model03] input[name=show]').click()")
    page.run("document.querySelector('#readiness details.table:has(> .packed) > summary').focus()")
    page.press("\r")
    page.until("document.querySelector('#readiness details.table[open] tbody tr.off')")
    table = "document.activeElement.parentElement.querySelector('table')"
    hidden = page.run(f"[...new Set([...{table}.querySelectorAll('tr.off')].map((row) => row.dataset.model))]")
    rows = page.run(f"{table}.tBodies[0].rows.length")
    page.run(f"{table}.querySelector('thead button').click()")
    cells = page.run(f"[...{table}.tBodies[0].rows].map((row) => row.cells[0].dataset.value ?? row.cells[0].textContent.trim())")
    page.run("document.activeElement.parentElement.open = false; document.querySelector('[data-all-models]').click()")
    assert before > 3
    assert page.run(PACKED) == before - 1
    assert hidden == ["model03"]
    assert rows > 200
    assert cells == sorted(cells, reverse=True)
    assert page.complaints == []


def test_two_models_are_compared_while_the_table_of_pairs_is_packed(page: Browser, models: tuple[str, ...]) -> None:
    assert page.run("document.querySelectorAll('#pairs tbody tr').length") == 0
    page.run(f"Object.assign(form.elements.a, {{ value: 'model00' }}); Object.assign(form.elements.b, {{ value: '{models[-1]}' }})")
    page.run("form.dispatchEvent(new Event('change'))")
    page.until("!document.getElementById('comparison').hidden")
    said = page.run("[...document.querySelectorAll('#comparison li')].map((one) => one.textContent)")
    page.run("document.getElementById('all-cases').click()")
    assert [line.partition(":")[0] for line in said] == [DEPTH, BREADTH, *OTHERS]
    assert all("Model00" in line and "points of pass@1" in line for line in said)


def test_the_answers_of_four_models_side_by_side_do_not_break_a_word(page: Browser) -> None:
    size(page, 1440)
    page.run("document.getElementById('case-demo-case01').open = true; document.getElementById('case-demo-case01').scrollIntoView()")
    page.until("document.querySelector('#case-demo-case01 .answer')")
    lines = page.run("""[...document.querySelectorAll("#case-demo-case01 .answer .first")].filter((one) => !one.textContent.includes(" "))
      .map((one) => Math.round(one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)))""")
    page.run("document.getElementById('case-demo-case01').open = false")
    size(page, 1280)
    assert set(lines) == {1}


def test_on_paper_the_first_screen_is_one_page_and_nothing_is_wider_than_the_page_and_heads_come_back(page: Browser) -> None:
    page.call("Emulation.setEmulatedMedia", media="print")
    size(page, 718, 1032)  # A4 with the margins of the page, at 96 pixels an inch
    page.run("dispatchEvent(new Event('beforeprint'))")
    seen = page.run("""({
      wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      screen: document.querySelector("#glance .screen").getBoundingClientRect().bottom,
      head: [...new Set([...document.querySelectorAll("thead button")].map((one) => getComputedStyle(one).display))],
      long: [...document.querySelectorAll("details.table[open] tbody")].filter((one) => one.rows.length > 60).length,
      tall: [...document.querySelectorAll("details:is(:not(.table), [open]) .drawing svg")].filter((one) => one.getBoundingClientRect().height > 1032).length,
    })""")
    page.run("dispatchEvent(new Event('afterprint'))")
    page.call("Emulation.setEmulatedMedia", media="screen")
    size(page, 1280)
    # Chromium leaves a button out of the head that it repeats on the next page
    assert seen == {"wider": 0, "screen": seen["screen"], "head": ["contents"], "long": 0, "tall": 0}
    assert seen["screen"] <= 1032


@pytest.mark.parametrize(("scheme", "width", "only"), [("light", 1440, None), pytest.param("dark", 390, COLOURS, marks=pytest.mark.long)])
def test_a_checker_of_accessibility_finishes_and_finds_nothing_in_any_block(
    page: Browser, scheme: str, width: int, only: dict[str, object] | None
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe is a package of the development environment: make setup")
    page.call("Page.reload")
    page.wait("Page.loadEventFired")
    size(page, width)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.run((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + "; undefined")
    rules: dict[str, object] = {"resultTypes": ["violations"]} | ({"runOnly": only} if only else {})
    assert page.findings(rules, rows=3) == []
    assert page.complaints == []
