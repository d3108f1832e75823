"""The guide as a site: strict, made and read without a network, in the order of the guide's first page."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

from conftest import ROOT
from fixtures.chromium import CHROMIUM, browser

pytestmark = pytest.mark.slow

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|embed|object|audio|video)\b[^>]*?(?:src|srcset|data)=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*?href=["']?(?:https?:)?//[^"'\s>]+|url\(["']?(?:https?:)?//[^)]+|@import\s+["'](?:https?:)?//[^"']+"""
)
"""Another host in what a browser loads by itself; addresses that a reader may follow are none of it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a connection to anywhere fails."""
    folder = tmp_path_factory.mktemp("site")

    def refuse(*_: object) -> None:
        message = "the site is built without a network"
        raise AssertionError(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.setattr(socket.socket, "connect", refuse)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    names = {path.with_name("index.html") if path.stem == "README" else path for path in pages}
    assert sorted(str(name) for name in names if not (site / name).is_file()) == []
    loaded = {
        (path.name, found)
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"}
        for found in LOADED.findall(path.read_text(encoding="utf-8"))
    }
    assert sorted(loaded) == []


def test_the_test_sees_what_a_browser_would_load() -> None:
    loaded = (
        '<script src="https://unpkg.com/shim">',
        '<link rel="stylesheet" href="//fonts.googleapis.com/css">',
        "src: url(https://host/font.woff2)",
        '<img alt="a" src="http://host/a.png">',
    )
    assert [text for text in loaded if not LOADED.search(text)] == []
    assert not LOADED.search('<a href="https://mlcommons.org/croissant">')


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_a_word_is_found_without_a_server_or_a_network(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as chromium:
        chromium.open(site / "index.html")
        chromium.run("document.querySelector('[data-md-component=search-query]').focus()")
        chromium.run("document.querySelector('[data-md-toggle=search]').click()")
        chromium.press("quarantined")
        chromium.until("document.querySelectorAll('.md-search-result__item').length > 3")
        assert [address for address in chromium.asked if not address.startswith(("file:", "data:", "blob:", "about:"))] == []


def test_the_site_has_the_order_of_the_guide() -> None:
    text = re.sub(r"!!python/\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    sections = [next(iter(entry.values())) for entry in yaml.safe_load(text)["nav"]]
    listed = [page for section in sections[1:] for page in section]
    guide = re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    assert [page for page in listed if page in guide] == list(dict.fromkeys(guide))
    assert [page for page in listed if "/" not in page and page not in guide] == []


def test_pictures_are_small_used_and_described() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    shown = [pair for text in texts for pair in re.findall(r"!\[([^\]]*)\]\((?:docs/)?pictures/([\w-]+\.png)\)", text)]
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert {path.name for path in pictures} == {name for _, name in shown}
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []
    assert [name for words, name in shown if len(words) < 20] == []
