"""The shape of a paper's tables: one line a model, every number as text, once for Markdown, LaTeX and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuralmedbench.config.published import PublishedConfig, PublishedTable
from neuralmedbench.tables.papers.number import CENTS, DIGITS, Cell, digits_of, number

PUBLISHED, OURS, PLAN = "published", "ours", "plan"
PLAN_HEADS = {
    "calls": "Calls",
    "prompt_tokens": "Prompt tokens, about",
    "completion_tokens": "Answer tokens, at most",
    "usd": "USD, about",
    "most_usd": "USD, at most",
}

Cells = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: a published row, a model of ours, or a part of the plan."""

    label: str
    group: str
    source: str
    conflict: str
    ours: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One table in the shape of a paper.

    Attributes
    ----------
    name, title : str
        Name in the yaml, and the short caption.
    details : str
        Denominators, intervals and source: what follows in the long caption.
    heads : tuple of str
        Heads of the columns of numbers.
    lines : tuple of Line
        Lines in order.
    notes, footnotes : tuple of str
        What a reader has to know; what the marks in the cells say.
    """

    name: str
    title: str
    details: str
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    footnotes: tuple[str, ...] = field(default=())

    @property
    def caption(self) -> str:
        """The long caption."""
        return f"{self.title}. {self.details}"


def shapes(published: PublishedConfig, rows: Sequence[Cells]) -> list[Shape]:
    """Put the rows of `results/tables/paper/<paper>.csv` into the shape of a paper.

    Parameters
    ----------
    published : PublishedConfig
        What was published.
    rows : sequence of mapping
        Rows as `published.comparison_rows` gives them, or as they are read from the file.

    Returns
    -------
    list of Shape
        The published tables in order, and the plan where there is one.
    """
    found = [_shape(published, name, table, [row for row in rows if row["table"] == name]) for name, table in published.tables.items()]
    plan = [row for row in rows if row["table"] == PLAN]
    if plan:
        title = f"What asking all of {published.title} would take"
        lines, footnotes = _lines(plan, list(PLAN_HEADS))
        heads = tuple(PLAN_HEADS.values())
        found.append(Shape(name=PLAN, title=title, details=plan[0]["note"], heads=heads, lines=lines, notes=(), footnotes=footnotes))
    return found


def _shape(published: PublishedConfig, name: str, table: PublishedTable, rows: Sequence[Cells]) -> Shape:
    lines, footnotes = _lines(rows, list(table.columns))
    heads = tuple(f"{column.label}, %" if column.unit == "percent" else column.label for column in table.columns.values())
    kinds = {
        kind: _said_once(str(row["interval"]) for row in rows if row["kind"] == kind and row.get("interval")) for kind in (PUBLISHED, OURS)
    }
    parts = [
        *_denominators(table),
        *[f"Intervals, {kind}: {'; '.join(told)}." for kind, told in kinds.items() if told],
    ]
    ids = _said_once(f"{row['label']} is {row['model_id']}" for row in rows if row.get("model_id"))
    notes = (*table.notes, *([f"Ours: {', '.join(ids)}; a published row of the same name may be another version."] if ids else []))
    source = f"Source of the published numbers: {published.source.strip()}" if table.rows else "No published number stands here."
    details = " ".join([*parts, source])
    return Shape(name=name, title=table.caption, details=details, heads=heads, lines=lines, notes=notes, footnotes=footnotes)


def _denominators(table: PublishedTable) -> list[str]:
    """Say of how many units the published percentages are."""
    by_n: dict[int, list[str]] = {}
    for column in table.columns.values():
        if column.n:
            by_n.setdefault(column.n, []).append(column.label)
    told = [f"{n:,} ({', '.join(labels)})" if len(by_n) > 1 else f"{n:,}" for n, labels in by_n.items()]
    told += [f"{row.n:,} ({row.label})" for row in table.rows if row.n]
    known = f", {table.denominators}" if table.denominators else ""
    return [f"Published n: {'; '.join(told)}{known}. That of ours stands in its cells."] if told else []


def _said_once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _lines(rows: Sequence[Cells], names: Sequence[str]) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    by_line: dict[tuple[str, ...], list[Cells]] = {}
    for row in rows:
        source = row["source"] if row["kind"] == PUBLISHED else f"ours, {row['source']}" if row.get("source") else "ours"
        by_line.setdefault((row["kind"], row["label"], str(source), row.get("model") or ""), []).append(row)
    footnotes: list[str] = []
    lines = []
    for (kind, label, source, _), cells in by_line.items():
        texts = {row["column"]: _cell(row, footnotes) for row in cells}
        first = cells[0]
        lines.append(
            Line(
                label=label,
                group=first.get("group") or "",
                source=source if kind != PLAN else "estimate",
                conflict=first.get("conflict") or "",
                ours=kind == OURS,
                cells=tuple(texts.get(name, Cell()) for name in names),
            )
        )
    return tuple(lines), tuple(footnotes)


def _cell(row: Cells, footnotes: list[str]) -> Cell:
    told = str(row.get("missing") or (row.get("note") if row["kind"] == OURS else "") or "")
    if told and told not in footnotes:
        footnotes.append(told)
    mark = footnotes.index(told) + 1 if told else 0
    if row.get("value") in (None, ""):
        return Cell(mark=mark)
    value, low, high = (row.get(name) for name in ("value", "low", "high"))
    digits = digits_of(value, row["unit"]) if row["kind"] == PUBLISHED else DIGITS[row["unit"]]
    interval = "" if low in (None, "") or high in (None, "") else f"{number(low, digits)}–{number(high, digits)}"
    text = number(value, 4 if row["unit"] == "usd" and 0 < float(value or 0) < CENTS else digits)
    n = f"{int(float(row['n'])):,}" if row["kind"] == OURS and row.get("n") not in (None, "") else ""
    return Cell(raw=str(value), value=text, interval=interval, n=n, others=str(row.get("others") or ""), mark=mark)
