"""Reporting guidelines and cards: every question is answered, every link has a target, every claim names its block."""

from __future__ import annotations

import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from fixtures.report import blocks_of, build
from fixtures.tables import BREADTH, DEPTH, write_study
from neuralmedbench.cards.card import read_card
from neuralmedbench.config.checklists import ANSWER_WORDS, ChecklistConfig
from neuralmedbench.config.load import load_checklists
from neuralmedbench.errors import ConfigError
from neuralmedbench.report.blocks import BLOCKS
from neuralmedbench.report.elements import answers_on_page, check_places, filled_elements
from neuralmedbench.report.page import elements_of
from neuralmedbench.tables.write import measures_of_topics

CARDS = sorted(path.stem for path in (ROOT / "config" / "cards").glob("*.yaml"))
ROW = '<tr><th scope="row">'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Render the report of a simulated run with the shipped guidelines and cards."""
    root = tmp_path_factory.mktemp("guidelines")
    write_study(root, models=("alpha",), patients=3)
    for name in ("checklists", "cards"):
        shutil.copytree(ROOT / "config" / name, root / "config" / name)
    (root / "results" / "croissant").mkdir(parents=True)
    (root / "results" / "croissant" / f"{DEPTH}.json").write_text('{"name": "a <described> benchmark"}', encoding="utf-8")
    return build(root, ("alpha",), figures=False)


def section(page: str, name: str) -> str:
    """Return the text of the guidelines or of the cards."""
    guidelines, _, rest = blocks_of(page)["checklists"].partition('data-part="cards"')
    cards, _, _ = rest.partition('data-part="readiness"')
    return {"checklists": guidelines, "cards": cards}[name]


def guidelines() -> dict[str, ChecklistConfig]:
    return {checklist.title: checklist for checklist in load_checklists(ROOT / "config")}


def test_the_guidelines_have_the_items_that_their_authors_give() -> None:
    found = {title: [item.id for item in checklist.items] for title, checklist in guidelines().items()}
    assert found["CLAIM 2024"] == [str(number) for number in range(1, 45)]
    assert len(found["TRIPOD-LLM"]) == 60  # 19 items; those with parts are counted by their parts, and the title
    assert {re.sub("[a-z]", "", name) for name in found["TRIPOD-LLM"]} == {str(number) for number in range(1, 20)}
    assert found["MI-CLEAR-LLM 2025"] == [str(number) for number in range(1, 9)]
    counts = {"1": 8, "2": 6, "3": 3, "4": 10, "5": 10, "6": 7}
    refine = [f"{part}.{number + 1}" for part, items in counts.items() for number in range(items)]
    assert found["REFINE"] == refine
    stard = found["STARD-AI"]
    numbers = dict.fromkeys(re.sub("[a-d]", "", name) for name in stard)
    assert list(numbers) == [str(number) for number in range(1, 41)]
    parts = "15a 15b 15c 15d 16a 16b 16c 17a 17b 26a 26b 40a 40b"
    assert [name for name in stard if not name.isdigit()] == parts.split()


def test_five_guidelines_are_here_with_all_their_items() -> None:
    titles = ["CLAIM 2024", "MI-CLEAR-LLM 2025", "REFINE", "STARD-AI", "TRIPOD-LLM"]
    assert list(guidelines()) == titles
    assert {checklist.missing for checklist in guidelines().values()} == {""}


def test_the_datasheet_asks_what_its_authors_ask() -> None:
    parts = {part: len(items) for part, items in read_card(ROOT / "config", DEPTH).forms[1].parts.items()}
    assert parts == {
        "Motivation": 3,
        "Composition": 16,
        "Collection": 12,
        "Preprocessing": 3,
        "Uses": 5,
        "Distribution": 6,
        "Maintenance": 7,
    }


def test_every_place_is_a_block_or_an_element_of_it() -> None:
    cards = {name: read_card(ROOT / "config", name).forms for name in CARDS}
    parts = {anchor: elements_of(block, anchor, measures_of_topics()) for block in BLOCKS for anchor in block.anchors}
    check_places({"guidelines": guidelines().values(), **cards}, parts)
    items = [item for forms in (guidelines().values(), *cards.values()) for form in forms for item in form.items]
    assert len({block for item in items for block in item.blocks}) > 15


@pytest.mark.parametrize("name", ["checklists", "cards"])
def test_no_link_of_the_page_leads_nowhere(page: str, name: str) -> None:
    links = set(re.findall(r'href="#([^"]+)"', section(page, name)))
    assert len(links) > 10
    assert [link for link in sorted(links) if f'id="{link}"' not in page] == []


def test_the_page_shows_every_item_and_counts_the_answers(page: str) -> None:
    cards = {name: read_card(ROOT / "config", name).forms for name in (DEPTH, BREADTH)}
    filled = filled_elements(blocks_of(page).values())
    titles = {DEPTH: "Depth, made up", BREADTH: "Breadth, made up"}
    answers = [answers_on_page(form, filled, {name: titles[name]}) for name, forms in cards.items() for form in forms]
    for name, forms in (("checklists", [answers_on_page(one, filled, titles) for one in guidelines().values()]), ("cards", answers)):
        block = section(page, name)
        table = len(forms) if name == "checklists" else 0  # the counts, one row a guideline
        assert block.count(ROW) == sum(len(form.items) for form in forms) + table
        for form in forms:
            counts = ", ".join(f"{n} {answer}" for answer, n in form.counts.items())
            assert f"<summary><b>{form.title}</b>: {counts}</summary>" in block
            for item in form.items:
                assert f'<td class="wrap">{escape(item.about, quote=False)}</td>'.replace("'", "&#39;") in block
    claim = answers_on_page(guidelines()["CLAIM 2024"], filled, titles)
    numbers = "".join(f'<td class="number">{claim.counts.get(label, 0)}</td>' for label in ANSWER_WORDS.values())
    assert f'<tr><th scope="row">CLAIM 2024</th>{numbers}<td class="number">44</td></tr>' in section(page, "checklists")
    assert re.search(r'ethics approval and consent</td><td><span class="tag none">left to the study team', section(page, "checklists"))


def test_a_croissant_description_stands_on_the_page_as_text(page: str) -> None:
    block = section(page, "cards")
    assert "a &lt;described&gt; benchmark" in block
    assert block.count("Croissant description:") == 1  # the other benchmark has none


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"id": "1", "about": "x", "answer": "yes", "note": "in words"}], "1 is answered `yes` and `where` names no element"),
        ([{"id": "1", "about": "x", "answer": "partly", "where": "#leaderboard"}], "1 is answered `partly` and `where` names no element"),
        ([{"id": "1", "about": "x", "answer": "no", "where": "leaderboard.pass1"}], "where"),
        ([{"id": "1", "about": "x", "answer": "no"}, {"id": "1", "about": "y", "answer": "no"}], "1 is repeated"),
        ([{"id": "1", "about": "x", "answer": "maybe"}], "answer"),
    ],
)
def test_a_guideline_that_claims_without_a_place_is_refused(tmp_path: Path, items: list[dict[str, str]], message: str) -> None:
    (tmp_path / "checklists").mkdir()
    (tmp_path / "checklists" / "own.yaml").write_text(yaml.safe_dump({"title": "T", "source": "S", "items": items}), encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as raised:
        load_checklists(tmp_path)
    assert "found {" not in str(raised.value), "the whole guideline is no part of a line"


def site(folder: Path, **cards: dict[str, Any]) -> Path:
    """Write a configuration with cards and one hospital benchmark."""
    shutil.copytree(ROOT / "config" / "cards" / "forms", folder / "cards" / "forms")
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "ward.yaml").write_text("title: Ward\nkind: scans\naxis: depth\nsource: /srv/ward\n", encoding="utf-8")
    for name, card in cards.items():
        (folder / "cards" / f"{name}.yaml").write_text(yaml.safe_dump(card), encoding="utf-8")
    return folder


def test_a_benchmark_without_a_card_answers_what_its_yaml_says_and_leaves_the_rest_to_the_study_team(tmp_path: Path) -> None:
    card = read_card(site(tmp_path), "ward")
    answered = {item.id: item.note for form in card.forms for item in form.items if item.answer != "study team"}
    assert sorted(answered) == ["asked", "axis", "deidentification", "destinations", "subjects"]
    assert answered["destinations"] == "Allowed: this machine."
    assert answered["subjects"] == "Patients of the site."
    assert card.rai == {}
    assert "/srv" not in str(card)


def test_a_site_fills_in_its_own_card_and_takes_answers_of_another(tmp_path: Path) -> None:
    base = {"answers": {"datasheet": {"funding": {"answer": "no", "text": "None."}, "raw": {"answer": "no", "text": "Deleted."}}}}
    own = {
        "like": "base",
        "answers": {"datasheet": {"raw": {"answer": "yes", "text": "Kept."}}},
        "croissant": {"license": "CC0-1.0", "creators": [{"name": "A ward", "kind": "organization"}]},
    }
    folder = site(tmp_path, base=base | {"croissant": {"version": "1.2.3"}}, ward=own)
    card = read_card(folder, "ward")
    answers = {item.id: (item.answer, item.note) for item in card.forms[1].items}
    assert answers["funding"] == ("no", "None.")
    assert answers["raw"] == ("yes", "Kept.")
    assert answers["purpose"] == ("study team", "")
    assert (card.croissant.license, card.croissant.version, card.croissant.creators[0].name) == ("CC0-1.0", "1.2.3", "A ward")


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"answers": {"data-sheet": {"purpose": {"answer": "yes", "text": "x"}}}}, "no form 'data-sheet'; did you mean 'datasheet'"),
        ({"answers": {"datasheet": {"purpos": {"answer": "yes", "text": "x"}}}}, "there is no question 'purpos'; did you mean 'purpose'"),
        ({"answers": {"datasheet": {"purpose": {"answer": "yes"}}}}, "without `text`, and `where` names no element"),
        ({"answers": {"datasheet": {"number": {"answer": "yes", "where": "#cohort"}}}}, "without `text`, and `where` names no element"),
        ({"answers": {"datasheet": {"purpose": {"answer": "perhaps"}}}}, "answer"),
        ({"like": "chain"}, "is itself like end; name end instead"),
        ({"like": "nowhere"}, "the file is not there"),
        ({"croissant": {"date_published": "last week"}}, "date_published"),
    ],
)
def test_a_card_that_does_not_fit_is_refused(tmp_path: Path, card: dict[str, Any], message: str) -> None:
    folder = site(tmp_path, ward=card, chain={"like": "end"}, end={})
    with pytest.raises(ConfigError, match=message):
        read_card(folder, "ward")
