"""Answers of checklists and cards hold only where the page has the elements that they name, with content."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from fixtures.report import blocks_of, build, full_page, opened
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.cards.card import read_card
from neuralmedbench.config.checklists import ANSWERED, AnswerSheet, ChecklistItem
from neuralmedbench.config.load import load_checklists
from neuralmedbench.errors import ConfigError
from neuralmedbench.report.blocks import BLOCKS
from neuralmedbench.report.elements import NOTHING, VOID, element_names, filled_elements, titles_of
from neuralmedbench.report.page import elements_of, render, with_answers_on_page
from neuralmedbench.report.source import PageSource, read_source

MODELS = ("alpha", "beta")
CARDS = sorted(path.stem for path in (ROOT / "config" / "cards").glob("*.yaml"))
HOME = {anchor: block.id for block in BLOCKS for anchor in block.anchors}
"""Block of every part."""
ONE_BENCHMARK = {
    "cohort.age",
    "cohort.field-strength",
    "cohort.scanner",
    "cohort.sex",
    "errors.per-response",
    "errors.per-wrong",
    "errors.significant",
    "grounding.visual-reliance",
    "trust.kappa",
}
"""Elements with content for the depth benchmark alone.

The other one has no records of patients, errors, exchanged pictures or raters.
"""


def write_run(root: Path, **changes: object) -> None:
    """Write a study with the shipped guidelines and cards."""
    write_study(root, models=MODELS, patients=24, **changes)  # type: ignore[arg-type]
    for name in ("checklists", "cards"):
        shutil.copytree(ROOT / "config" / name, root / "config" / name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[PageSource, str]:
    """Give the source and the page of a run that has something in every block, with every shipped card."""
    root = tmp_path_factory.mktemp("full")
    write_run(root)
    text = full_page(root, MODELS)
    lists = {"benchmarks": (DEPTH, BREADTH), "models": MODELS, "graders": GRADERS, "published": ()}
    source = read_source(root, root / "results", lists, profile="internal")
    cards = {BREADTH: read_card(ROOT / "config", BREADTH).forms}
    # cards of benchmarks that are not in the run stand beside that of one that is
    cards[DEPTH] = [form for name in CARDS if name != BREADTH for form in read_card(ROOT / "config", name).forms]
    return replace(source, cards=cards), text


def sheets_of(source: PageSource) -> dict[str, AnswerSheet]:
    """Return every guideline and every form of every card, by name."""
    cards = {f"{name}, form {number}": form for name, forms in source.cards.items() for number, form in enumerate(forms)}
    return {form.title: form for form in source.checklists} | cards


def claims(source: PageSource) -> dict[tuple[str, str], ChecklistItem]:
    """Return the answers that point to an element, by sheet and item."""
    return {
        (name, item.id): item
        for name, sheet in sheets_of(source).items()
        for item in sheet.items
        if item.answer in ANSWERED and item.elements
    }


class Copy(HTMLParser):
    """Copies HTML without the text of the elements of one name."""

    def __init__(self, name: str) -> None:
        super().__init__(convert_charrefs=False)
        self.name, self.text, self.open = name, list[str](), list[tuple[str, bool]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text.append(self.get_starttag_text() or "")
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("data-element") == self.name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.text.append(f"</{tag}>")
        while self.open and self.open.pop()[0] != tag:
            pass

    def write(self, text: str) -> None:
        if not any(named for _, named in self.open):
            self.text.append(text)

    def handle_data(self, data: str) -> None:
        self.write(data)

    def handle_entityref(self, name: str) -> None:
        self.write(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.write(f"&#{name};")


def emptied(html: str, name: str) -> str:
    copy = Copy(name)
    copy.feed(html)
    copy.close()
    return "".join(copy.text)


def removed(html: str, name: str) -> str:
    """Return the HTML without a trace of the element, as on a page of an older version."""
    return html.replace(f' data-element="{name}"', "")


def dashed(html: str, name: str) -> str:
    """Return the HTML with a dash in place of the content of the element."""
    return re.sub(rf'(data-element="{name}"[^>]*>)', r"\1–", emptied(html, name))


def test_on_a_full_page_no_claim_is_without_its_elements(run: tuple[PageSource, str]) -> None:
    source, text = run
    filled = filled_elements(blocks_of(opened(text)).values())
    written, shown = claims(source), claims(with_answers_on_page(source, filled))
    assert len(shown) > 100
    # the run asks with one strategy alone
    assert written.keys() - shown.keys() == {("REFINE", "5.7")}
    lowered = [key for key, item in shown.items() if written[key] != item]
    elements = {element for key in lowered for element in written[key].elements}
    assert {element for element in elements if filled[element] == {DEPTH}} == ONE_BENCHMARK
    reasons = {(shown[key].answer, shown[key].note.partition(";")[0]) for key in lowered}
    assert reasons == {("partly", "not for Breadth, made up")}


@pytest.mark.parametrize("spoil", [emptied, removed, dashed])
def test_an_answer_turns_to_no_with_each_element_that_is_emptied(run: tuple[PageSource, str], spoil: Callable[[str, str], str]) -> None:
    source, text = run
    blocks = blocks_of(text)
    everything = filled_elements(blocks.values())
    written, expected = claims(source), claims(with_answers_on_page(source, everything))
    elements = {element for item in expected.values() for element in item.elements}
    for element in sorted(elements):
        part, _, name = element.partition(".")
        block = HOME[part]
        others = (other for other in everything if HOME[other.partition(".")[0]] != block)
        rest = {other: everything[other] for other in others}
        filled = rest | filled_elements([spoil(blocks[block], name)])
        shown = with_answers_on_page(source, filled)
        turned = {key for key, item in expected.items() if element in item.elements}
        # an element may lie in another one: then more answers turn, never fewer
        nested = {key for key, item in expected.items() if not filled.keys() >= set(item.elements)}
        assert turned <= nested, element
        for key, item in expected.items():
            now = next(one for one in sheets_of(shown)[key[0]].items if one.id == key[1])
            if key in nested:
                assert (now.answer, NOTHING in now.note, written[key].note in now.note) == ("no", True, True), (key, element)
            else:
                assert now == item, (key, element)


def test_every_claim_of_a_guideline_names_an_element(run: tuple[PageSource, str]) -> None:
    for guideline in run[0].checklists:
        assert [item.id for item in guideline.items if item.answer in ANSWERED and not item.elements] == []


def test_the_names_found_in_the_templates_are_those_of_the_page(run: tuple[PageSource, str]) -> None:
    for name, html in blocks_of(run[1]).items():
        block = next(block for block in BLOCKS if block.id == name)
        # a line of a topic names its slice, which may be any
        names = set(re.findall(r'<(?!tr\b)[a-z]+\b[^>]* data-element="([^"]*)"', html))
        assert names <= set().union(*(elements_of(block, anchor, run[0].notes["measures"]) for anchor in block.anchors)), name
        # no reference of this run is time-critical
        assert element_names(block.template) - {"sources"} <= names, name


def test_a_link_has_the_heading_of_its_part_and_a_part_that_is_absent_has_none() -> None:
    html = '<section id="arms" data-part="arms">\n<header><h2 id="arms-title">Arms</h2></header>'
    html += '<div class="part" id="pressure">\n<h3>Order &amp; words</h3></div>'
    html += '<p class="empty" id="funnel"><b>Funnel: not measured.</b> Add an arm.</p></section>'
    assert titles_of([html]) == {"arms": "Arms", "pressure": "Order & words", "funnel": "Funnel"}


def test_a_run_without_results_claims_none(tmp_path: Path) -> None:
    write_run(tmp_path)
    text = build(tmp_path, (), figures=False)
    for item in ("28", "29", "35", "37"):
        row = re.search(rf'<tr><th scope="row">{item}</th>.*?</tr>', blocks_of(text)["checklists"])
        assert row
        expected = "yes" if item == "35" else NOTHING
        assert expected in row[0], item


def test_simulated_raters_are_no_evidence(run: tuple[PageSource, str]) -> None:
    source, _ = run
    tables = {name: [row | {"simulated": "true"} for row in rows] for name, rows in source.tables.items()}
    blocks = blocks_of(render(replace(source, tables=tables, cards={})))
    of_raters = {"trust.kappa", "ratings.agreement", "ratings.raters", "errors.per-response"}
    assert filled_elements(blocks.values()).keys().isdisjoint(of_raters)
    assert re.search(
        r'analysis of wrong results</td><td><span class="tag warn">no</span>.*?nothing to show in this run', blocks["checklists"]
    )


def test_an_answer_about_one_of_two_benchmarks_is_partly_one(run: tuple[PageSource, str]) -> None:
    source, text = run
    depth = re.sub(rf'(<div class="scroll" data-benchmark="{BREADTH}">).*?</table>', r"\1", blocks_of(text)["leaderboard"], flags=re.DOTALL)
    filled = filled_elements((blocks_of(text) | {"leaderboard": depth}).values())
    assert filled["leaderboard.pass1"] == {DEPTH}
    shown = with_answers_on_page(source, filled)
    claim = next(form for form in shown.checklists if form.title == "CLAIM 2024")
    (item,) = (item for item in claim.items if item.id == "37")
    assert (item.answer, item.note) == ("partly", "not for Breadth, made up")
    # a card is about its own benchmark
    own = {name: next(item for item in forms[0].items if item.id == "uncertainty").answer for name, forms in shown.cards.items()}
    assert own == {DEPTH: "yes", BREADTH: "no"}


def test_hidden_cells_are_no_content() -> None:
    html = '<td data-element="a"><b>&lt;5</b></td><td data-element="b">(hidden)</td><td data-element="c">unknown <br> –</td>'
    html += '<td data-element="f">&lt;10 patients</td>'
    assert filled_elements([f'<div data-part="x">{html}</div>']) == {}
    html = '<p data-element="d"><img alt="">0 %</p>'
    html += '<td data-element="e"><svg><text>1</text></svg></td>'
    assert filled_elements([f'<div data-part="x">{html}</div>']) == {"x.d": {""}}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("#leaderboard.pass2", r"T, item 1: where: the page has no #leaderboard.pass2; did you mean 'leaderboard.pass1'"),
        ("#leaderbord.pass1", r"T, item 1: where: the page has no #leaderbord.pass1"),
        ("#leaderboard.pass1 #flow.number", r"no #flow.number; did you mean 'flow.numbers'"),
    ],
)
def test_an_element_that_no_page_has_is_refused_in_one_line(run: tuple[PageSource, str], tmp_path: Path, where: str, message: str) -> None:
    (tmp_path / "checklists").mkdir()
    items = [{"id": "1", "about": "x", "answer": "yes", "where": where}]
    (tmp_path / "checklists" / "own.yaml").write_text(yaml.safe_dump({"title": "T", "source": "S", "items": items}), encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as raised:
        render(replace(run[0], checklists=load_checklists(tmp_path)))
    assert "\n" not in str(raised.value)
