"""The figure of the case flow."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import empty_figure, panels, words
from neuralmedbench.figures.style import COLOURS, INK
from neuralmedbench.figures.table import Row, groups

STEPS = {"refused_import": "refused by the import", "quarantined_picture": "picture quarantined", "example": "kept as example"}
"""Steps of questions in words."""


def draw_case_flow(rows: list[Row]) -> Any:
    """Draw how many cases (or pictures, or questions) were listed, left out at each step, and used (from case_flow.csv)."""
    if not rows:
        return empty_figure("No benchmark lists a case.")
    found = {name: groups(part, "step") for name, part in groups([{**row, "panel": _panel(row)} for row in rows], "panel").items()}
    figure, axes = panels([len(part) for part in found.values()], around=0.55)
    for panel, (benchmark, steps) in zip(axes, found.items(), strict=True):
        totals = {step: sum(int(row["n"]) for row in part) for step, part in steps.items()}
        left, listed = totals.get("listed", 0), max(totals.get("listed", 0), 1)
        panel.set_title(benchmark)
        panel.set_yticks(range(len(totals)), [STEPS.get(step, words(step).replace("quarantined ", "quarantined: ")) for step in totals])
        panel.set_xticks([])
        panel.spines["bottom"].set_visible(False)
        panel.set_xlim(0, 1.12)
        for y, (step, total) in enumerate(totals.items()):
            kept = step in ("listed", "used")
            start = 0 if kept else (left - total) / listed
            panel.barh(y, total / listed, left=start, height=0.6, color=COLOURS[0] if kept else COLOURS[1], alpha=0.75, linewidth=0)
            panel.text(start + total / listed + 0.012, y, f"{total:,}", va="center", color=INK, fontsize=9)
            left -= 0 if kept else total
    return figure


def _panel(row: Row) -> str:
    return f"{row['benchmark']}: questions" if row["unit"] == "question" else row["benchmark"]
