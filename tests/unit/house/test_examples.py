"""The examples in docstrings give the results that they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

from conftest import ROOT

SCRIPTS = ROOT / "scripts"
MODULES = [
    ".".join(path.relative_to(SCRIPTS).with_suffix("").parts)
    for path in sorted(SCRIPTS.rglob("*.py"))
    if "\n    >>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_every_example_in_a_docstring_gives_what_it_shows(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))  # prints what differs
    assert result.attempted > 0
    assert result.failed == 0
