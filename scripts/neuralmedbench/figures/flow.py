"""The figure of the case flow."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import panels
from neuralmedbench.figures.style import COLOURS, INK
from neuralmedbench.figures.table import Row, first_sentences, groups, number
from neuralmedbench.records.words import spaced

STEPS = {"refused_import": "refused by the import", "quarantined_picture": "picture quarantined", "example": "kept as example"}
"""Steps of questions in words."""


def draw_case_flow(rows: list[Row]) -> Any:
    """Draw how many cases (or pictures, or questions) were listed, left out at each step, and used (from case_flow.csv)."""
    found = {name: groups(part, "step") for name, part in groups([{**row, "panel": _panel(row)} for row in rows], "panel").items()}
    figure, axes = panels([len(part) for part in found.values()], around=0.55)
    for panel, (benchmark, steps) in zip(axes, found.items(), strict=True):
        totals = _totals(steps)
        shown = [total for total in totals.values() if total is not None]
        left = totals.get("listed") or max(shown, default=0)  # a public table may hide how many were listed
        listed = max(left, 1)
        panel.set_title(benchmark)
        panel.set_yticks(range(len(totals)), [_step(step) for step in totals])
        panel.set_xticks([])
        panel.spines["bottom"].set_visible(False)
        panel.set_xlim(0, 1.12)
        for y, (step, total) in enumerate(totals.items()):
            if total is None:  # what a public run hides
                panel.text(0.012, y, "not shown", va="center", color=INK, fontsize=9)
                continue
            kept = step in ("listed", "used")
            start = 0 if kept else (left - total) / listed
            look = {"color": COLOURS[0]} if kept else {"color": "none", "edgecolor": COLOURS[1], "hatch": "////"}
            panel.barh(y, total / listed, left=start, height=0.6, linewidth=0, **look)
            panel.text(start + total / listed + 0.012, y, f"{total:,}", va="center", color=INK, fontsize=9)
            left -= 0 if kept else total
    return figure


def describe_case_flow(rows: list[Row]) -> str:
    """Tell how many were listed, left out and used."""
    parts = {name: _totals(groups(part, "step")) for name, part in groups([{**row, "panel": _panel(row)} for row in rows], "panel").items()}
    return first_sentences(f"{name}: {', '.join(map(_told, totals.items()))}." for name, totals in parts.items())


def _told(entry: tuple[str, int | None]) -> str:
    step, total = entry
    return f"{'not shown:' if total is None else f'{total:,}'} {_step(step)}"


def _totals(steps: dict[str, list[Row]]) -> dict[str, int | None]:
    """Sum each step; None when a public run hides a part of it."""
    counts = {step: [number(row["n"]) for row in part] for step, part in steps.items()}
    return {step: None if None in known else int(sum(one or 0 for one in known)) for step, known in counts.items()}


def _step(step: str) -> str:
    return STEPS.get(step, spaced(step).replace("quarantined ", "quarantined: "))


def _panel(row: Row) -> str:
    return f"{row['benchmark']}: questions" if row["unit"] == "question" else row["benchmark"]
