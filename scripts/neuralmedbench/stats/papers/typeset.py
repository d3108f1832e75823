"""Published and own numbers as the tables of a paper: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.config.published import PublishedConfig
from neuralmedbench.stats.papers.published import PLAN, wide_table

PLAN_HEADS = {"calls": "Calls", "prompt_tokens": "Prompt tokens, about", "most_usd": "USD at most, about"}
WORDS = (
    "Published numbers stand as they were published; lines of the source “ours” were measured by this pipeline. Percentages with their 95 %"
    " intervals where denominators are known."
)

Rows = Sequence[Mapping[str, Any]]


def markdown(published: PublishedConfig, rows: Rows) -> str:
    """Write all tables of a paper as one Markdown file; `rows` as `published.comparison_rows` gives them."""
    from tabulate import tabulate

    parts = [f"# {published.title}", WORDS, f"Source: {published.source.strip()}"]
    for caption, notes, header, lines, footnotes in _tables(published, rows):
        parts += [f"## {caption}", tabulate(lines, header, tablefmt="github", disable_numparse=True)]
        parts += ["\n".join(f"- {note}" for note in notes)] if notes else []
        parts += ["\n".join(f"[{number}] {text}" for number, text in enumerate(footnotes, start=1))] if footnotes else []
    return "\n\n".join(parts) + "\n"


def latex(published: PublishedConfig, rows: Rows) -> str:
    """Write all tables of a paper as LaTeX (packages booktabs and inputenc); `rows` as `published.comparison_rows` gives them."""
    from tabulate import tabulate

    parts = [f"% {published.title}. {WORDS}"]
    for caption, notes, header, lines, footnotes in _tables(published, rows):
        body = tabulate(lines, header, tablefmt="latex_booktabs", disable_numparse=True)
        told = [*notes, *(f"[{number}] {text}" for number, text in enumerate(footnotes, start=1))]
        parts.append("\n".join(["\\begin{table}", f"\\caption{{{_plain(caption)}}}", body, *map(_plain, told), "\\end{table}"]))
    return "\n\n".join(parts) + "\n"


def _tables(published: PublishedConfig, rows: Rows) -> list[tuple[str, tuple[str, ...], list[str], list[list[str]], list[str]]]:
    heads = {name: {key: column.label for key, column in table.columns.items()} for name, table in published.tables.items()}
    found = [
        (table.caption, table.notes, *wide_table([row for row in rows if row["table"] == name], heads[name]))
        for name, table in published.tables.items()
    ]
    plan = [row for row in rows if row["table"] == PLAN]
    if plan:
        found.append((f"What {published.title} would take", (published.size.basis.strip(),), *wide_table(plan, PLAN_HEADS)))
    return found


def _plain(text: str) -> str:
    """Escape what LaTeX reads as a command."""
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text
