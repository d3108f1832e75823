"""Tables for a person: wrapped on a terminal, one line a row elsewhere, plain text always."""

from __future__ import annotations

import pytest

from neuralmedbench.runtime.console_tables import table_lines

ROWS = [("demo", "a model with a long name", "12 calls"), ("demo", "[bold]text[/bold]", "3 calls")]


def test_a_row_is_one_line_where_nobody_sees_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    monkeypatch.setenv("COLUMNS", "10")
    assert table_lines(ROWS, ("set", "asked", "to do")) == [
        "set   asked                     to do",
        "demo  a model with a long name  12 calls",
        "demo  [bold]text[/bold]         3 calls",
    ]


def test_on_a_terminal_of_30_columns_cells_are_wrapped_and_nothing_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = table_lines(ROWS, ("set", "asked", "to do"))
    assert max(map(len, lines)) <= 30
    assert "\x1b" not in "".join(lines)
    assert " ".join(line[6:20].strip() for line in lines[1:3]).startswith("a model with a")
