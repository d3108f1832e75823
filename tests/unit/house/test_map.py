"""The map names files that exist, and every room."""

from __future__ import annotations

import re

from conftest import ROOT

LIBRARY = ROOT / "scripts" / "neuralmedbench"
MAP = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")


def test_every_file_and_folder_that_the_map_names_exists() -> None:
    names = [name for name in re.findall(r"`([\w./-]+(?:\.py|\.md|/))`", MAP) if "<" not in name]
    houses = (LIBRARY, ROOT, ROOT / "tests" / "unit" / "house")
    assert len(names) > 40
    assert [name for name in names if not any((house / name).exists() for house in houses)] == []


def test_the_map_names_every_room() -> None:
    table = MAP.partition("## Three walks")[0]
    assert [path.name for path in LIBRARY.iterdir() if (path / "__init__.py").is_file() and f"`{path.name}`" not in table] == []


def test_the_map_fits_on_a_page() -> None:
    assert len(MAP.splitlines()) <= 60
