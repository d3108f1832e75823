"""The report as a person uses it: keyboard and screen reader, sorting, filters, links, dark theme, a phone, on paper, and without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.conversations import add_conversations
from fixtures.hostile import ANSWERS, worsen
from fixtures.report import MODELS, build
from fixtures.tables import DEPTH, write_study

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

CASE = "case-demo-case00"
EVERYTHING: dict[str, object] = {"resultTypes": ["violations"]}
COLOURS = EVERYTHING | {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The rules of axe that see the theme: everything else is the same page again."""
FINDINGS = """axe.run(%s, %s).then((found) =>
  found.violations.map((one) => `${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" and ")}`))"""
TOO_WIDE = """[...document.querySelectorAll("main table")].filter((one) => one.offsetWidth && one.offsetWidth > one.parentElement.clientWidth + 1)
  .map((one) => `${one.caption?.textContent.slice(0, 60)}: ${one.offsetWidth} of ${one.parentElement.clientWidth}`)"""
UNREACHED = """[...document.querySelectorAll(".scroll, .answer pre")].filter((one) => !one.closest("details:not([open])") && one.tabIndex < 0
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)).length"""
LAY_OUT = """for (const one of document.querySelectorAll("main section, .case")) one.style.contentVisibility = "%s";
  requestAnimationFrame(() => requestAnimationFrame(() => dispatchEvent(new Event("resize"))))"""
"""What is far from the window is not laid out otherwise, so that a checker could not see it."""
WALK = """(async () => {
  const unreached = [];
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (const section of document.querySelectorAll("main section")) {
    section.scrollIntoView();
    for (let frames = 0; frames < 5; frames += 1) await drawn();
    const boxes = [...section.querySelectorAll(".scroll")].filter((one) => !one.closest("details:not([open])"));
    if (boxes.some((one) => one.tabIndex < 0 && one.scrollWidth > one.clientWidth + 1)) unreached.push(section.id);
  }
  return unreached;
})()"""
"""Sections that hold what is wider than its box and out of reach of the keyboard when they are in the window."""
HARM = r"""({
  title: document.title,
  elements: document.querySelectorAll("main script:not([type]), [onerror], [onload], main iframe, main object").length,
  links: [...document.links].map((one) => one.getAttribute("href")).filter((one) => !one.startsWith("#")),
  turned: [...document.body.innerText.matchAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g)].length,
  named: document.body.innerText.includes("⟨U+202E⟩"),
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Open the report of an invented run with hostile answers and titles in a browser."""
    folder = tmp_path_factory.mktemp("used")
    write_study(folder, models=MODELS, patients=12)
    worsen(folder, MODELS[0])
    add_conversations(folder, MODELS[1])
    build(folder)
    with browser(folder) as opened:
        opened.open(folder / "results" / "report.html")
        opened.run("new Promise((done) => setTimeout(done, 300))")
        yield opened


def column(page: Browser, number: int) -> list[str]:
    """Return the cells of a column of the first leaderboard table, in their sorted order."""
    script = f"[...document.querySelector('#leaderboard table.sortable').tBodies[0].rows].map((row) => row.cells[{number}].dataset.value ?? row.cells[{number}].textContent)"
    return list(page.run(script))


def open_work_up(page: Browser) -> None:
    """Show the answers under `workup` of the open case, and the first of them."""
    page.run(f"[...document.querySelectorAll('#{CASE} .strategies button')].find((one) => one.textContent.startsWith('workup')).click()")
    page.until(f"document.querySelector('#{CASE} .turns')")
    page.run(f"document.querySelector('#{CASE} .answer:has(.turns)').open = true")


def open_case(page: Browser) -> None:
    page.run(f"document.getElementById('{CASE}').open = true")
    page.until(f"document.querySelector('#{CASE} .answer')")
    page.run(f"document.getElementById('{CASE}').scrollIntoView()")


def size(page: Browser, width: int, height: int = 900) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def test_nothing_is_asked_of_a_network_and_nothing_is_complained_of(page: Browser) -> None:
    asked = page.asked
    assert asked[0].startswith("file:")
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert sum(url.startswith("file:") for url in asked) == 1
    assert page.complaints == []


@pytest.mark.parametrize(("scheme", "width", "rules"), [("dark", 1440, COLOURS), ("light", 390, EVERYTHING)])
def test_a_checker_of_accessibility_finds_nothing_with_everything_unfolded(
    page: Browser, scheme: str, width: int, rules: dict[str, object]
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe is a package of the development environment: make setup")
    size(page, width)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.run((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + "; undefined")
    open_case(page)
    page.run("document.getElementById('models').showPopover()")
    page.run("document.querySelectorAll('#models input')[1].click()")
    page.run("for (const one of document.querySelectorAll('main details:not(.case)')) one.open = true")
    page.run(LAY_OUT % "visible")
    page.until(f"{UNREACHED} === 0")
    found = page.run(FINDINGS % ("document", json.dumps(rules)))
    # from here on what has opened: all else is the same page again
    page.run("document.getElementById('models').hidePopover()")
    if width == 390:
        page.run("contents.showPopover()")
        found += page.run(FINDINGS % ("contents", json.dumps(rules)))
        page.run("contents.hidePopover()")
    page.run("enlarge([['0', 'T2w, axial, -5 mm'], ['0', 'T2w, axial, +9 mm']], 1)")
    found += page.run(FINDINGS % ("viewer", json.dumps(rules)))
    page.run("viewer.close()")
    open_work_up(page)
    found += page.run(FINDINGS % (f"document.getElementById('{CASE}')", json.dumps(rules)))
    page.run("document.getElementById('filters').elements.strategy.value = 'direct'")
    page.run("document.getElementById('filters').dispatchEvent(new Event('change'))")
    page.run("document.querySelectorAll('#models input')[1].click()")
    page.run("for (const one of document.querySelectorAll('main details')) one.open = false")
    page.run(LAY_OUT % "")
    size(page, 1280)
    assert found == []


def test_no_two_elements_have_one_id(page: Browser) -> None:
    ids = page.run("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert {"viewer", "enlarged", "workup"} <= set(ids)
    assert len(ids) == len(set(ids))


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
    choose = (
        "{{ const form = document.getElementById('filters'); form.elements.level.value = '{}'; form.dispatchEvent(new Event('change')); }}"
    )
    page.run(choose.format("complex"))
    assert 0 < page.run(shown) < before
    page.run(choose.format(""))
    assert page.run(shown) == before


def test_a_case_is_opened_and_closed_by_click_and_by_key_and_stands_in_the_address(page: Browser) -> None:
    summary, is_open = f"document.querySelector('#{CASE} > summary')", f"document.getElementById('{CASE}').open"
    page.run(f"{summary}.click()")
    page.until(f"document.querySelector('#{CASE} .answer')")
    assert page.run("location.hash") == f"#{CASE}"
    page.run(f"{summary}.focus()")
    page.press("\r")
    assert page.run(is_open) is False
    page.press("\r")
    assert page.run(is_open) is True
    page.run(f"{summary}.click()")
    assert page.run(is_open) is False


def test_a_link_to_a_case_opens_it_even_when_a_filter_hides_it(page: Browser) -> None:
    page.run("location.hash = ''")
    page.run("document.getElementById('case-demo-case01').hidden = true")
    page.run("location.hash = '#case-demo-case01'")
    page.until("document.querySelector('#case-demo-case01 .answer')")
    assert page.run("document.getElementById('case-demo-case01').hidden") is False
    page.run("document.getElementById('case-demo-case01').open = false")


def test_the_contents_open_close_with_escape_and_say_where_the_reader_is_and_where_a_warning_is(page: Browser) -> None:
    is_open = "document.getElementById('contents').matches(':popover-open')"
    page.run("document.querySelector('.bar .open').focus()")
    page.press("\r")
    assert page.run(is_open) is True
    page.key("Escape", 27)
    assert page.run(is_open) is False
    assert page.run("document.activeElement.className") == "open"
    page.run("document.querySelector('.bar .open').click(); document.querySelector('#contents a[href=\"#methods\"]').click()")
    page.until("document.querySelector('#contents a[aria-current]')?.hash === '#methods'")
    assert page.run(is_open) is False
    assert page.run("document.getElementById('here').textContent") == "Methods and provenance"
    warned = "[...document.querySelectorAll('#contents .sign.warn')].map((one) => one.closest('a').hash.slice(1))"
    signs = "[...document.querySelectorAll('main section')].filter((one) => one.querySelector('.warned, .tag.warn, .badge.warn')).map((one) => one.id)"
    assert page.run(warned) == page.run(signs) != []
    size(page, 1440)
    seen = page.run("(({ left, height }) => [left, height > 500])(document.getElementById('contents').getBoundingClientRect())")
    size(page, 1280)
    assert seen == [0, True]


HIDDEN = "[...document.querySelectorAll('main tr[data-model], main svg [data-model]')].filter((one) => one.classList.contains('off'))"


def test_one_choice_of_models_holds_for_tables_figures_and_cases_and_stands_in_the_address(page: Browser) -> None:
    page.run("document.querySelector('#models li[data-pick=beta] input[name=show]').click()")
    page.run("document.querySelector('#models li[data-pick=gamma] input[name=mark]').click()")
    assert set(page.run("location.hash").partition("?")[2].split("&")) >= {"mark=gamma"}
    assert "beta" not in re.search(r"show=([^&]*)", page.run("location.hash"))[1].split(",")  # type: ignore[index]
    hidden = page.run(f"[...new Set({HIDDEN}.map((one) => one.dataset.model.split(' ').includes('beta')))]")
    shown = page.run(
        "[...document.querySelectorAll('main tr.marked, main svg .marked')].every((one) => one.dataset.model.split(' ').includes('gamma'))"
    )
    kinds = page.run(f"[...new Set({HIDDEN}.map((one) => one.tagName))].sort()")
    note = page.run("document.getElementById('hidden-models').innerText")
    open_case(page)
    heads = page.run(f"[...document.querySelectorAll('#{CASE} .item:first-of-type > .answers h5')].map((one) => one.textContent)")
    assert (hidden, shown, kinds, len(heads)) == ([True], True, ["TR", "g"], 1)
    assert note.startswith("1 of 3 models are hidden on this page.")
    address = page.run("location.href")
    page.run("document.querySelector('#hidden-models button').click()")
    assert page.run(f"{HIDDEN}.length") == 0
    page.run(f"location.href = {json.dumps(address)}")
    page.until(f"{HIDDEN}.length > 0")
    page.run("document.querySelector('[data-all-models]').click()")
    assert "show=" not in page.run("location.hash")
    page.run(f"document.getElementById('{CASE}').open = false")


LISTED = "[...document.querySelectorAll('details.case')].filter((one) => !one.hidden).map((one) => one.id)"
CHOOSE = "(async () => { for (const [name, value] of Object.entries(%s)) form.elements[name].value = value; await choose(); })()"


def test_the_best_constant_answer_is_in_the_picker_and_counts_as_no_model(page: Browser) -> None:
    page.run("document.querySelector('#models li[data-pick=prior] input[name=show]').click()")
    seen = page.run("[document.getElementById('pick').textContent, document.querySelector('#hidden-models span').textContent]")
    page.run("document.querySelector('#hidden-models button').click()")
    assert seen[0] == "Models: all"
    assert seen[1].startswith("The best constant answer is hidden on this page.")
    assert page.run("document.querySelector('#models li[data-pick=prior]').textContent.trim()").startswith("Best constant answer")


def test_columns_of_a_case_and_its_summary_have_the_order_of_the_picker(page: Browser) -> None:
    open_case(page)
    page.until(f"document.querySelector('#{CASE} .case-results .result')")
    order = page.run("[...document.querySelectorAll('#models li .title')].map((one) => one.textContent)")
    heads = page.run(f"[...document.querySelectorAll('#{CASE} .item:first-of-type > .answers h5')].map((one) => one.textContent)")
    marks = page.run(f"[...document.querySelectorAll('#{CASE} .case-results .result')].map((one) => one.title)")
    page.run(f"document.getElementById('{CASE}').open = false")
    assert heads == marks == [name for name in order if name in heads]
    assert len(heads) == len(MODELS)
    assert order[-1] == "Best constant answer"


def test_two_models_are_compared_by_the_cases_that_one_gets_right_and_the_other_wrong(page: Browser) -> None:
    page.run(CHOOSE % json.dumps({"benchmark": DEPTH, "a": MODELS[0], "b": MODELS[1]}))
    page.until("!document.getElementById('comparison').hidden")
    page.run("document.querySelector('#comparison button').click()")
    page.until("document.querySelector('#comparison button').ariaPressed === 'true'")
    seen = page.run("""({
      counts: [...document.querySelectorAll("#comparison button")].map((one) => Number(one.textContent.match(/\\d+$/)[0])),
      pressed: [...document.querySelectorAll("#comparison button")].map((one) => one.ariaPressed),
      difference: document.querySelector("#comparison li").textContent,
      cell: document.querySelector("#pairs tr[data-model='alpha beta'] [data-element=pass1-patients] b").textContent,
      pair: document.querySelector("#pairs tr[data-model='alpha beta']").dataset.model.split(" "),
      marks: cases.filter((entry) => entry.benchmark === wants("benchmark")).map((entry) => [entry.element.id, entry.items.map((item) => item.results)]),
      models: index.models,
      titles: ["only A right", "only B right"].map((label) => pairTitle(label, "Big B $&", "A $' B")),
      unread: [[], ["a", "b"]].map((options) => answerName({ differential: [], state: "ok" }, { options })),
    })""")
    assert seen["unread"] == ["no diagnosis read", "no choice read"]
    assert seen["titles"] == ["only Big B $& right", "only A $' B right"]
    places = [seen["models"].index(name) for name in seen["pair"]]
    right = {
        case: tuple(
            2 * sum(item[place][0] for item in items if item[place]) > sum(item[place][1] for item in items if item[place])
            for place in places
        )
        for case, items in seen["marks"]
    }
    kinds = [(True, False), (False, True), (True, True), (False, False)]
    assert seen["counts"] == [list(right.values()).count(kind) for kind in kinds]
    assert seen["pressed"] == ["true", "false", "false", "false"]
    assert seen["cell"] in seen["difference"]
    assert set(page.run(LISTED)) == {case for case, kind in right.items() if kind == (True, False)}
    assert {"pair=a", f"a={seen['pair'][0]}", f"b={seen['pair'][1]}"} <= set(page.run("location.hash").partition("?")[2].split("&"))
    page.run("document.getElementById('all-cases').click()")
    assert page.run("document.getElementById('comparison').hidden") is True
    assert "pair" not in page.run("location.hash")


def test_a_pair_without_a_shared_item_says_so_and_prints_no_empty_number(page: Browser) -> None:
    said = page.run("""(() => {
      const cell = document.querySelector("#pairs tr[data-model] [data-element=pass1-patients]");
      const [kept, value] = [cell.innerHTML, cell.dataset.value];
      const [a, b] = cell.closest("tr").dataset.model.split(" ");
      const told = () => { form.elements.a.value = a; form.elements.b.value = b; compare(cases); return document.querySelector("#comparison li").textContent; };
      cell.innerHTML = "<b>+5</b><small></small>";
      const alone = told();
      [cell.innerHTML, cell.dataset.value] = ["<b>–</b><small></small>", ""];
      const none = told();
      [cell.innerHTML, cell.dataset.value] = [kept, value];
      document.getElementById("all-cases").click();
      return [alone, none];
    })()""")
    assert said[0].endswith("+5 points of pass@1 (no interval)")
    assert said[1].endswith(": no difference is known, as no item has graded answers of both")


def test_a_picture_without_a_known_sequence_has_no_caption_that_says_unknown(page: Browser) -> None:
    labels = page.run("""["unknown", "unknown, axial", "FLAIR, axial"].map((label) =>
      pictureElement(["none", label], 0, [["none", label]]).querySelector("figcaption")?.textContent ?? null)""")
    assert labels == [None, "axial", "FLAIR, axial"]


def test_cases_are_searched_sorted_and_stepped_through_with_keys(page: Browser) -> None:
    everything = page.run(LISTED)
    page.run(CHOOSE % json.dumps({"q": "no such words anywhere"}))
    assert page.run(LISTED) == []
    page.run(CHOOSE % json.dumps({"q": ANSWERS[0][:12].upper()}))
    assert len(page.run(LISTED)) > 0
    assert "q=" in page.run("location.hash")
    page.run(CHOOSE % json.dumps({"q": "", "sort": "hardest"}))
    hard = page.run(LISTED)
    shares = page.run(
        "cases.map((entry) => index.models.map((model) => isRight(entry, model)).filter((one) => one !== undefined)).map((one) => one.filter(Boolean).length / one.length)"
    )
    assert shares == sorted(shares)
    assert sorted(hard) == sorted(everything)
    page.run("document.activeElement.blur()")
    page.press("j")
    page.press("j")
    opened = "[...document.querySelectorAll('details.case')].filter((one) => one.open).map((one) => one.id)"
    assert page.run(opened) == [hard[1]]
    assert page.run("location.hash") == f"#{hard[1]}?sort=hardest"
    page.press("k")
    assert page.run(opened) == [hard[0]]
    page.key("Escape", 27)
    assert page.run(opened) == []
    assert page.run("document.activeElement.parentElement.id") == hard[0]
    page.press("/")
    assert page.run("document.activeElement.name") == "q"
    page.run("document.getElementById('all-cases').click(); document.activeElement.blur(); form.elements.shortcuts.click()")
    page.press("j")
    assert page.run(opened) == []
    page.run("form.elements.shortcuts.click()")
    assert page.run(LISTED) == everything


def test_a_picture_is_enlarged_and_arrows_go_through_slices_and_sequences(page: Browser) -> None:
    open_case(page)
    page.run(f"document.querySelector('#{CASE} .picture').focus()")
    page.press("\r")
    assert page.run("[viewer.open, viewer.querySelector('img').alt, viewer.querySelector('img').src.slice(0, 15)]")[::2] == [
        True,
        "data:image/webp;"[:15],
    ]
    page.until("viewer.querySelector('figcaption span').textContent.includes('pixels on this page')")
    stacks = [["0", "T1w, axial, -5 mm"], ["0", "T1w, axial, +9 mm, lesion 3 px"], ["0", "T2w, axial, -5 mm"]]
    page.run(f"enlarge({json.dumps(stacks)}, 0)")
    seen = []
    for name, code in (("ArrowRight", 39), ("ArrowRight", 39), ("ArrowDown", 40), ("ArrowUp", 38), ("ArrowLeft", 37)):
        page.key(name, code)
        seen.append(page.run("viewer.querySelector('img').alt"))
    assert [one.partition(", picture ")[2][0] for one in seen] == ["2", "1", "3", "1", "2"]
    assert seen[0] == "T1w, axial, +9 mm, lesion 3 px, picture 2 of 3"
    page.key("Escape", 27)
    assert page.run("[viewer.open, document.activeElement.className]") == [False, "picture"]
    page.run(f"document.getElementById('{CASE}').open = false")


def test_a_word_of_the_glossary_shows_its_meaning_where_it_stands(page: Browser) -> None:
    page.run("document.querySelector('.bar .open').focus()")
    page.run("document.querySelector('#leaderboard thead button.term').focus()")
    word = page.run("document.activeElement.textContent")
    assert (
        page.run("document.getElementById('tip').matches(':popover-open') && document.activeElement.getAttribute('aria-describedby')")
        == "tip"
    )
    meaning = page.run(
        f"[...document.querySelectorAll('.glossary dt')].find((one) => one.dataset.forms.split('|').includes({json.dumps(word)})).nextElementSibling.textContent"
    )
    assert page.run("document.getElementById('tip').textContent") == meaning
    page.key("Escape", 27)
    assert page.run("document.getElementById('tip').matches(':popover-open')") is False
    assert page.run("document.querySelectorAll('main a.term').length") > 20
    assert page.run("[...document.querySelectorAll('a.term')].every((one) => document.getElementById(one.hash.slice(1))?.tagName === 'DT')")


def test_every_table_is_saved_byte_for_byte_from_the_page_itself(page: Browser) -> None:
    saved = page.take("#leaderboard button[data-csv=leaderboard]")
    assert saved.read_bytes() == (page.downloads.parent / "results" / "tables" / "leaderboard.csv").read_bytes()
    drawn = page.take("#glance button[data-svg=glance]")
    assert drawn.read_text(encoding="utf-8").startswith("<svg ")
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_button_is_pressed(page: Browser, scheme: str) -> None:
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Page.reload")
    page.wait("Page.loadEventFired")
    seen = "getComputedStyle(document.body).backgroundColor + ' ' + document.getElementById('theme').textContent"
    shades = {"light": "rgb(251, 250, 248) Dark", "dark": "rgb(20, 23, 27) Light"}
    other = "dark" if scheme == "light" else "light"
    assert page.run(seen) == shades[scheme]
    page.run("document.getElementById('theme').click()")
    assert page.run(seen) == shades[other]
    page.run("document.getElementById('theme').click()")
    assert page.run(seen) == shades[scheme]


def test_hostile_words_of_models_graders_and_titles_stay_words(page: Browser) -> None:
    open_case(page)
    page.run(f"for (const one of document.querySelectorAll('#{CASE} details')) one.open = true")
    seen: dict[str, Any] = page.run(HARM)
    assert seen == {"title": "Neural-MedBench report", "elements": 0, "links": [], "turned": 0, "named": True}
    texts = page.run(f"[...document.querySelectorAll('#{CASE} .answer pre')].map((one) => one.textContent)")
    assert {ANSWERS[0], ANSWERS[1], ANSWERS[2], ANSWERS[4]} <= set(texts)
    assert "safe⟨U+202E⟩enil siht snrut⟨U+2066⟩⟨U+200F⟩⟨U+0007⟩⟨U+001B⟩[31m⟨U+0085⟩" in texts
    assert page.run("make('p', {}, 'a\\ud800b\\u0000').textContent") == "a⟨U+D800⟩b⟨U+0000⟩"
    assert page.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_no_answer_leaves_its_box_however_long_it_is(page: Browser, width: int) -> None:
    size(page, width)
    open_case(page)
    page.run(f"for (const one of document.querySelectorAll('#{CASE} details')) one.open = true")
    page.until(f"[...document.querySelectorAll('#{CASE} .answer pre')].some((one) => one.tabIndex === 0)")
    seen = page.run(f"""({{
      page: document.documentElement.scrollWidth - innerWidth,
      long: [...document.querySelectorAll('#{CASE} .answer pre')].filter((one) => one.textContent.length > 1e6)
        .map((one) => [one.clientHeight < 600, one.scrollHeight > 5000, one.tabIndex, getComputedStyle(one).unicodeBidi]),
      clipped: [...document.querySelectorAll('#{CASE} .answer')].every((one) => getComputedStyle(one).overflowY === 'clip'),
      clip: [...document.querySelectorAll('#{CASE} .first')].every((one) => one.clientHeight < 200),
    }})""")
    size(page, 1280)
    assert seen == {"page": seen["page"], "long": [[True, True, 0, "isolate"]], "clipped": True, "clip": True}
    assert seen["page"] <= 0


def test_what_is_far_from_the_window_is_laid_out_when_it_is_reached_and_a_link_leads_to_it(page: Browser) -> None:
    laid_out = "document.querySelector('#methods h2').checkVisibility({ contentVisibilityAuto: true })"
    page.run("location.hash = '#glance'; document.getElementById('glance').scrollIntoView()")
    page.until(f"!{laid_out}")
    page.run("location.hash = '#methods'")
    page.until(laid_out)
    page.until("document.getElementById('here').textContent === 'Methods and provenance'")
    assert page.run("Math.round(document.getElementById('methods').getBoundingClientRect().top)") in range(100)


def test_what_is_wider_than_the_page_can_be_scrolled_with_the_keyboard(page: Browser) -> None:
    page.run("for (const one of document.querySelectorAll('main details:not(.case, .answer)')) one.open = true")
    assert page.run(WALK) == []
    assert page.run("[...document.querySelectorAll('.scroll')].some((one) => one.tabIndex === 0)")


def test_on_paper_folds_are_open_tables_fit_and_cases_wait_to_be_asked_for(page: Browser) -> None:
    page.run("for (const one of document.querySelectorAll('details')) one.open = false")
    open_case(page)
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    size(page, 718)
    page.run("dispatchEvent(new Event('beforeprint'))")
    seen = page.run("""(() => {
      const shown = (selector) => getComputedStyle(document.querySelector(selector)).display;
      const before = { nav: shown("nav"), cases: shown("#cases"), ground: getComputedStyle(document.body).backgroundColor,
        folded: document.querySelectorAll("details[data-print]:not([open])").length };
      document.getElementById("print-cases").checked = true;
      const after = [shown("#cases"), [...document.querySelectorAll(".case")].filter((one) => getComputedStyle(one).display !== "none").length];
      document.getElementById("print-cases").checked = false;
      return { ...before, after };
    })()""")
    wide = page.run(TOO_WIDE)
    page.run("dispatchEvent(new Event('afterprint'))")
    folded = page.run("document.querySelectorAll('details.how[open]').length")
    pages = page.call("Page.printToPDF")["data"]
    page.call("Emulation.setEmulatedMedia", media="screen")
    size(page, 1280)
    assert seen == {"nav": "none", "cases": "none", "ground": "rgb(255, 255, 255)", "folded": 0, "after": ["block", 1]}
    assert (wide, folded) == ([], 0)
    assert len(pages) > 10_000


def test_a_summary_counts_the_answers_of_every_model_and_a_case_that_was_left_out_says_so(page: Browser) -> None:
    page.run(f"document.getElementById('{CASE}').scrollIntoView()")
    page.until(f"document.querySelector('#{CASE} .case-results .result')")
    counts = page.run(f"[...document.querySelectorAll('#{CASE} .case-results .result')].map((one) => one.textContent.trim())")
    assert len(counts) == len(MODELS)
    assert all(re.fullmatch(r"[✓✗]\d+/10", count) for count in counts)
    assert all((sign == "✓") == (int(passes) > 5) for sign, passes in (re.match(r"(.)(\d+)", count).groups() for count in counts))  # type: ignore[union-attr]
    other = "document.getElementById('case-demo-case05')"
    page.run(f"{other}.querySelector('.case-data').textContent = ''; {other}.open = true")
    page.until(f"{other}.querySelector('.case-body .empty')")
    assert "left out of this page" in page.run(f"{other}.querySelector('.case-body').textContent")
    assert page.complaints == []


def tab_to(page: Browser, selector: str, most: int = 80) -> bool:
    """Press Tab until an element that fits has the focus; false if none of the next ones does."""
    for _ in range(most):
        page.key("Tab", 9)
        if page.run(f"document.activeElement.matches({json.dumps(selector)})"):
            return True
    return False


def test_the_page_is_walked_with_tab_enter_arrows_and_escape_alone(page: Browser) -> None:
    size(page, 1280)
    page.run("location.hash = ''")
    page.call("Page.reload")
    page.wait("Page.loadEventFired")
    assert tab_to(page, ".skip", 3)
    assert tab_to(page, ".bar .open", 5)
    page.press("\r")
    assert tab_to(page, "#contents a[href='#cases']")
    page.press("\r")
    page.until("!document.getElementById('contents').matches(':popover-open') && location.hash === '#cases'")
    assert tab_to(page, "#cases input[name=q]", 10)
    assert tab_to(page, "details.case > summary", 20)
    page.press("\r")
    page.until("document.querySelector('details.case[open] .answer')")
    assert tab_to(page, "details.case[open] .picture", 5)
    page.press("\r")
    first = page.run("[viewer.open, viewer.querySelector('img').alt]")
    page.key("ArrowDown", 40)
    assert page.run("viewer.querySelector('img').alt") != first[1]
    page.key("Tab", 9)
    assert page.run("viewer.contains(document.activeElement)") is first[0] is True
    page.key("Escape", 27)
    assert page.run("[viewer.open, document.activeElement.className]") == [False, "picture"]
    page.key("Escape", 27)
    assert page.run("document.querySelectorAll('details.case[open]').length") == 0
    assert page.run("document.activeElement.matches('details.case > summary')") is True
    page.run("document.getElementById('pick').focus()")
    page.press("\r")
    assert tab_to(page, "#models input[name=show]", 5)
    page.press(" ")
    assert page.run("document.getElementById('pick').textContent") == "Models: 2 of 3"
    page.press(" ")
    page.key("Escape", 27)
    assert page.run("[document.querySelector('#models').matches(':popover-open'), document.activeElement.id]") == [False, "pick"]
    assert page.complaints == []
