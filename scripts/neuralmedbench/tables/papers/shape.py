"""The layout of a published table: its lines, columns and cells, and the format of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuralmedbench.config.published import PublishedConfig, PublishedTable
from neuralmedbench.tables.declare import Cells

DIGITS = {"percent": 1, "score": 2, "count": 0, "usd": 2, "seconds": 2}
CENTS = 0.1
"""Prices below this, in USD, are written with four decimals."""


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """One cell as text.

    Attributes
    ----------
    raw : str
        The unformatted number, for sorting; empty without one.
    value, interval, n : str
        As text; `n` only for ours, the published ones are in the caption.
    others : str
        Values of other sources for the same cell.
    mark : int
        Number of its footnote, 0 without one.
    """

    raw: str = ""
    value: str = ""
    interval: str = ""
    n: str = ""
    others: str = ""
    mark: int = 0

    @property
    def text(self) -> str:
        """The whole cell."""
        parts = [self.value, f"({self.interval})" if self.interval else "", f"n={self.n}" if self.n else ""]
        parts += [f"[{self.others}]" if self.others else "", f"[{self.mark}]" if self.mark else ""]
        return " ".join(part for part in parts if part)


def digits_of(value: Any, unit: str) -> int:
    """Return the decimals of a published number: as many as were published, and no fewer than ours have.

    Examples
    --------
    >>> digits_of("53.960000", "percent"), digits_of(30.0, "percent")
    (2, 1)
    """
    return max(DIGITS[unit], len(f"{float(value):.6f}".rstrip("0").partition(".")[2]))


def number(value: Any, digits: int) -> str:
    """Format a number with thousands separators.

    Examples
    --------
    >>> number("5533000.000000", 0), number(0.725, 2)
    ('5,533,000', '0.72')
    """
    return f"{float(value):,.{digits}f}"


PUBLISHED, OURS, PLAN = "published", "ours", "plan"
PLAN_HEADS = {
    "calls": "Calls",
    "prompt_tokens": "Prompt tokens, about",
    "completion_tokens": "Answer tokens, at most",
    "usd": "USD, about",
    "most_usd": "USD, at most",
}


@dataclass(frozen=True, kw_only=True)
class PaperLine:
    """One line: a published row, one of our models, or a part of the plan."""

    label: str
    group: str
    source: str
    conflict: str
    ours: bool
    cells: tuple[PaperCell, ...]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One table in the layout of a paper.

    Attributes
    ----------
    name, title : str
        Name in the YAML file, and the short caption.
    details : str
        Denominators, intervals and source: the rest of the long caption.
    heads : tuple of str
        Headings of the number columns.
    lines : tuple of PaperLine
        Lines in order.
    notes, footnotes : tuple of str
        Notes below the table; footnotes of the marks in the cells.
    """

    name: str
    title: str
    details: str
    heads: tuple[str, ...]
    lines: tuple[PaperLine, ...]
    notes: tuple[str, ...]
    footnotes: tuple[str, ...] = field(default=())

    @property
    def caption(self) -> str:
        """The long caption."""
        return f"{self.title}. {self.details}"


def shapes(published: PublishedConfig, rows: Sequence[Cells]) -> list[Shape]:
    """Arrange the rows of `results/tables/paper/<paper>.csv` in the layout of a paper.

    Parameters
    ----------
    published : PublishedConfig
        The published tables.
    rows : sequence of mapping
        Rows of `comparison.comparison_rows`, or as they are read from the file.

    Returns
    -------
    list of Shape
        The published tables in order, then the plan if there is one.
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
        kind: _unique(str(row["interval"]) for row in rows if row["kind"] == kind and row.get("interval")) for kind in (PUBLISHED, OURS)
    }
    parts = [
        *_denominators(table),
        *[f"Intervals, {kind}: {'; '.join(texts)}." for kind, texts in kinds.items() if texts],
    ]
    ids = _unique(f"{row['label']} is {row['model_id']}" for row in rows if row.get("model_id"))
    notes = (*table.notes, *([f"Ours: {', '.join(ids)}; a published row of the same name may be another version."] if ids else []))
    source = f"Source of the published numbers: {published.source.strip()}" if table.rows else "No published number stands here."
    details = " ".join([*parts, source])
    return Shape(name=name, title=table.caption, details=details, heads=heads, lines=lines, notes=notes, footnotes=footnotes)


def _denominators(table: PublishedTable) -> list[str]:
    """State the denominators of the published percentages."""
    by_n: dict[int, list[str]] = {}
    for column in table.columns.values():
        if column.n:
            by_n.setdefault(column.n, []).append(column.label)
    parts = [f"{n:,} ({', '.join(labels)})" if len(by_n) > 1 else f"{n:,}" for n, labels in by_n.items()]
    parts += [f"{row.n:,} ({row.label})" for row in table.rows if row.n]
    known = f", {table.denominators}" if table.denominators else ""
    return [f"Published n: {'; '.join(parts)}{known}. That of ours stands in its cells."] if parts else []


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _lines(rows: Sequence[Cells], names: Sequence[str]) -> tuple[tuple[PaperLine, ...], tuple[str, ...]]:
    # cells of one line have the same kind, label, source and model
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
            PaperLine(
                label=label,
                group=first.get("group") or "",
                source=source if kind != PLAN else "estimate",
                conflict=first.get("conflict") or "",
                ours=kind == OURS,
                cells=tuple(texts.get(name, PaperCell()) for name in names),
            )
        )
    return tuple(lines), tuple(footnotes)


def _cell(row: Cells, footnotes: list[str]) -> PaperCell:
    footnote = str(row.get("missing") or (row.get("note") if row["kind"] == OURS else "") or "")
    if footnote and footnote not in footnotes:
        footnotes.append(footnote)
    # equal footnotes share a number
    mark = footnotes.index(footnote) + 1 if footnote else 0
    if row.get("value") in (None, ""):
        return PaperCell(mark=mark)
    value, low, high = (row.get(name) for name in ("value", "low", "high"))
    # published numbers keep their published decimals
    digits = digits_of(value, row["unit"]) if row["kind"] == PUBLISHED else DIGITS[row["unit"]]
    interval = "" if low in (None, "") or high in (None, "") else f"{number(low, digits)}–{number(high, digits)}"
    text = number(value, 4 if row["unit"] == "usd" and 0 < float(value or 0) < CENTS else digits)
    n = f"{int(float(row['n'])):,}" if row["kind"] == OURS and row.get("n") not in (None, "") else ""
    return PaperCell(raw=str(value), value=text, interval=interval, n=n, others=str(row.get("others") or ""), mark=mark)
