"""Reporting guidelines: every item is answered, every link leads somewhere, nothing is claimed without a place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from neuralmedbench.config.load import load_checklists
from neuralmedbench.errors import ConfigError
from report_fixtures import build
from tables_fixtures import write_study

ALWAYS = {"#changed"}
"""Blocks that a page has only when there is something to show."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the report of a made-up run, with the shipped guidelines."""
    root = tmp_path_factory.mktemp("guidelines")
    write_study(root, models=("alpha",), patients=3)
    folder = root / "config" / "checklists"
    folder.mkdir()
    for path in (ROOT / "config" / "checklists").glob("*.yaml"):
        (folder / path.name).write_bytes(path.read_bytes())
    return build(root, ("alpha",))


def test_the_guidelines_have_the_number_of_items_that_their_authors_give() -> None:
    found = {checklist.title: len(checklist.items) for checklist in load_checklists(ROOT / "config")}
    assert found["CLAIM"] == 42
    assert found["TRIPOD-LLM"] == 60  # 19 items; those with parts are counted by their parts, and the title
    assert len({re.sub("[a-z]", "", item.id) for item in load_checklists(ROOT / "config")[2].items}) == 19


def test_every_link_leads_to_a_block_of_the_page(page: str) -> None:
    places = {item.where for checklist in load_checklists(ROOT / "config") for item in checklist.items if item.where} - ALWAYS
    assert places
    for place in places:
        assert f'id="{place[1:]}"' in page, place


def test_the_page_shows_every_item_and_leaves_what_it_cannot_know_to_the_study_team(page: str) -> None:
    block = page[page.index('id="checklists"') :]
    assert block.count('<tr><th scope="row">') >= 108
    assert "ethics approval and consent" in block
    assert re.search(r"ethics approval and consent</td><td><span class=\"tag none\">left to the study team", block)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([{"id": "1", "about": "x", "answer": "yes"}], "answered `yes` and says neither where nor how"),
        ([{"id": "1", "about": "x", "answer": "no"}, {"id": "1", "about": "y", "answer": "no"}], "1 stands there twice"),
        ([{"id": "1", "about": "x", "answer": "maybe"}], "answer"),
    ],
)
def test_a_guideline_that_claims_without_a_place_is_refused(tmp_path: Path, items: list[dict[str, str]], told: str) -> None:
    (tmp_path / "checklists").mkdir()
    (tmp_path / "checklists" / "own.yaml").write_text(yaml.safe_dump({"title": "T", "source": "S", "items": items}), encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        load_checklists(tmp_path)
