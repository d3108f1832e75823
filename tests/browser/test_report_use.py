"""The report as a person uses it: keyboard and screen reader, sorting, filters, dark, on paper, and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium_fixtures import CHROMIUM, Browser, browser
from report_fixtures import MODELS, build
from tables_fixtures import write_study

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

FINDINGS = """axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map((one) => `${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" and ")}`))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Give the report of a made-up run in a browser."""
    folder = tmp_path_factory.mktemp("used")
    write_study(folder, models=MODELS, patients=6)
    build(folder)
    with browser(folder) as opened:
        opened.open(folder / "results" / "report.html")
        opened.run("new Promise((done) => setTimeout(done, 300))")
        yield opened


def column(page: Browser, number: int) -> list[str]:
    """Cells of a column of the leaderboard's first table, as they are sorted."""
    script = f"[...document.querySelector('#leaderboard table.sortable').tBodies[0].rows].map((row) => row.cells[{number}].dataset.value ?? row.cells[{number}].textContent)"
    return list(page.run(script))


def test_nothing_is_asked_of_a_network_and_nothing_is_complained_of(page: Browser) -> None:
    asked = page.asked
    assert asked[0].startswith("file:")
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert sum(url.startswith("file:") for url in asked) == 1
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_checker_of_accessibility_finds_nothing_with_a_case_open(page: Browser, scheme: str) -> None:
    axe = pytest.importorskip("axe_core_python")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.run((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + "; undefined")
    page.run("document.querySelector('details.case').open = true")
    page.until("document.querySelector('details.case .answer')")
    assert page.run(FINDINGS) == []


def test_a_click_on_a_head_sorts_and_another_one_turns_the_order(page: Browser) -> None:
    number = page.run(
        "[...document.querySelectorAll('#leaderboard table.sortable thead th')].findIndex((head) => head.textContent.includes('pass@1'))"
    )
    click = f"document.querySelectorAll('#leaderboard table.sortable thead th')[{number}].querySelector('button').click()"
    page.run(click)
    down = [float(cell) for cell in column(page, number) if cell]
    page.run(click)
    up = [float(cell) for cell in column(page, number) if cell]
    assert len(down) > 2
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)


def test_a_filter_leaves_the_cases_that_fit(page: Browser) -> None:
    shown = "[...document.querySelectorAll('details.case')].filter((one) => !one.hidden).length"
    before = page.run(shown)
    page.run(
        "{ const form = document.getElementById('filters'); form.elements.level.value = 'complex'; form.dispatchEvent(new Event('input', {bubbles: true})); form.elements.level.dispatchEvent(new Event('change', {bubbles: true})); }"
    )
    assert 0 < page.run(shown) < before
    page.run("{ const form = document.getElementById('filters'); form.reset(); form.dispatchEvent(new Event('input', {bubbles: true})); }")


def test_what_is_wider_than_the_page_can_be_scrolled_with_the_keyboard(page: Browser) -> None:
    unreachable = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth && one.tabIndex < 0).length"
    assert page.run(unreachable) == 0


def test_on_paper_the_tables_stay_and_what_is_for_the_screen_goes(page: Browser) -> None:
    page.call("Emulation.setEmulatedMedia", media="print")
    seen: dict[str, Any] = page.run(
        "({nav: getComputedStyle(document.querySelector('nav')).display, table: getComputedStyle(document.querySelector('#leaderboard table')).display})"
    )
    pages = page.call("Page.printToPDF")["data"]
    page.call("Emulation.setEmulatedMedia", media="screen")
    assert seen["nav"] == "none"
    assert seen["table"] != "none"
    assert len(pages) > 10_000
