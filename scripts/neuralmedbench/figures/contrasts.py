"""Figures of contrasts: perception or reasoning, the arms, the two axes."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, empty_figure, legend, named, names, offset, panels, whisker, words
from neuralmedbench.figures.style import GRID, INK, WIDTH_IN, looks, percent_axis
from neuralmedbench.figures.table import Row, groups, number

PERCEPTION, REASONING, RIGHT = "#56b4e9", "#e69f00", "#9aa3ad"
ON_COLOUR = "#14171a"
"""Text on a coloured bar: dark under both themes."""


def draw_decomposition(rows: list[Row]) -> Any:
    """Draw what the findings repair and what they do not (from decomposition.csv)."""
    rows = [row for row in rows if row["f"]]
    if not rows:
        return empty_figure("No benchmark of this run has the arm that discloses the findings.")
    found = groups(rows, "benchmark")
    figure, axes = panels([len(part) for part in found.values()], around=0.85, entries=3)
    for panel, (benchmark, part) in zip(axes, found.items(), strict=True):
        panel.set_title(benchmark)
        percent_axis(panel)
        panel.set_yticks(range(len(part)), [named(row) for row in part])
        for y, row in enumerate(part):
            _bar(panel, row, y)
    axes[-1].set_xlabel("share of all answers; in the bars: share of the errors" + dagger_note(rows))
    _segments(figure)
    return figure


def _bar(panel: Any, row: Row, y: float) -> None:
    right, told = float(row["f"]), float(row["d"])
    panel.barh(y, right, height=0.62, color=RIGHT, alpha=0.55, linewidth=0)
    if row["drawn"] != "true":
        panel.barh(y, 1 - right, left=right, height=0.62, color="none", edgecolor=INK, linewidth=0.8, alpha=0.5)
        panel.text(right + (1 - right) / 2, y, "not divided", ha="center", va="center", fontsize=8)
        return
    panel.barh(y, told - right, left=right, height=0.62, color=PERCEPTION, linewidth=0)
    panel.barh(y, 1 - told, left=told, height=0.62, color=REASONING, hatch="////", edgecolor="#c98500", linewidth=0)
    for share, left, width in (("perception", right, told - right), ("reasoning", told, 1 - told)):
        if width > 0.07:
            label = f"{100 * float(row[share]):.0f} %"
            panel.text(left + width / 2, y, label, ha="center", va="center", fontsize=9, fontweight="bold", color=ON_COLOUR)


def _segments(figure: Any) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=RIGHT, alpha=0.55, label="right without help"),
        Patch(facecolor=PERCEPTION, label="perception: the findings repair it"),
        Patch(facecolor=REASONING, hatch="////", edgecolor="#c98500", linewidth=0, label="reasoning: they do not"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.6)


def draw_arms(rows: list[Row]) -> Any:
    """Draw each arm minus full, paired (from arms.csv)."""
    rows = [row for row in rows if row["difference"]]
    if not rows:
        return empty_figure("No benchmark of this run has an arm beside full.")
    style, found = looks(row["model"] for row in rows), groups(rows, "benchmark")
    lines = {name: groups(part, "arm") for name, part in found.items()}
    figure, axes = panels([len(part) for part in lines.values()], entries=len(style) - 1)
    reach = max(abs(float(cell)) for row in rows for cell in (row["difference"], row["low"], row["high"]) if cell)
    reach = min(1.0, 0.25 * (int(reach / 0.25) + 1))
    for panel, (benchmark, part) in zip(axes, lines.items(), strict=True):
        panel.set_title(benchmark)
        percent_axis(panel, low=-reach, high=reach)
        panel.axvline(0, color=INK, linewidth=1.2)
        panel.set_yticks(range(len(part)), [words(arm) for arm in part])
        for y, entries in enumerate(part.values()):
            for place, row in enumerate(sorted(entries, key=lambda row: row["model"])):
                whisker(panel, row, y + offset(place, len(entries)), style[row["model"]], ("difference", "low", "high"), size=6)
    axes[-1].set_xlabel("pass@1, difference to full (left of the line: worse than with everything shown)" + dagger_note(rows))
    legend(figure, style, names(rows), sorted({row["model"] for row in rows}))
    return figure


def draw_axes(rows: list[Row]) -> Any:
    """Draw breadth against depth with the intervals of both (from axes.csv)."""
    rows = [row for row in rows if row["breadth"] and row["depth"]]
    if not rows:
        return empty_figure("The two axes need one benchmark of each: breadth and depth.")
    import matplotlib.pyplot as plt

    style = looks(row["model"] for row in rows)
    found = groups([{**row, "pair": f"{row['breadth_benchmark']}\n{row['depth_benchmark']}"} for row in rows], "pair")
    across = 2 if len(found) > 1 else 1
    down = -(-len(found) // across)
    size = (WIDTH_IN, 3.6 * down + 0.5) if across == 2 else (5.4, 4.9)
    figure, grid = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    panels_ = [panel for line in grid for panel in line]
    for panel in panels_[len(found) :]:
        panel.axis("off")
    for panel, part in zip(panels_, found.values(), strict=False):
        _scatter(panel, part, style)
    if note := dagger_note(rows):
        figure.supxlabel(note.strip(), fontsize=8.5)
    legend(figure, style, names(rows, "title"), sorted({row["model"] for row in rows}))
    return figure


def _scatter(panel: Any, rows: list[Row], style: dict[str, Any]) -> None:
    ticks, labels = [0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"]
    panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    panel.set_xticks(ticks, labels)
    panel.set_yticks(ticks, labels)
    panel.grid(**GRID)
    panel.set_xlabel(f"breadth: {rows[0]['breadth_benchmark']}")
    panel.set_ylabel(f"depth: {rows[0]['depth_benchmark']}")
    panel.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.35)
    prior_x, prior_y = float(rows[0]["breadth_prior"]), float(rows[0]["depth_prior"])
    panel.plot([prior_x, prior_x, -0.02], [-0.02, prior_y, prior_y], color=INK, linewidth=1, linestyle=(0, (1, 2)), alpha=0.6)
    panel.annotate("prior", (prior_x, prior_y), xytext=(4, 4), textcoords="offset points", fontsize=8.5)
    for row in rows:
        look, x, y = style[row["model"]], float(row["breadth"]), float(row["depth"])
        for ends, line in ((("breadth_low", "breadth_high"), "x"), (("depth_low", "depth_high"), "y")):
            low, high = (number(row[end]) for end in ends)
            if low is not None and high is not None:
                points = ([low, high], [y, y]) if line == "x" else ([x, x], [low, high])
                panel.plot(*points, color=look.colour, linewidth=1.8, alpha=0.5, solid_capstyle="round")
        panel.plot([x], [y], markersize=9, linestyle="none", **look.point)
