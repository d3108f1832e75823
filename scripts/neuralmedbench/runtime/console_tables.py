"""Write a table for a person: wrapped to the width of a terminal; where the output goes elsewhere, one line a row."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

UNLIMITED = 10_000
"""Width in columns where nobody sees a terminal."""


def table_lines(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table, plain text without colours; `head` are the names of its columns, if they are shown."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(head))
    for row in rows:
        table.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=None if sys.stdout.isatty() else UNLIMITED, color_system=None).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]
