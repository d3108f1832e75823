"""Figures of contrasts: the arms, and the two axes."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, legend, names, offset, panels, whisker
from neuralmedbench.figures.style import GRID, INK, WIDTH_IN, looks, percent_axis
from neuralmedbench.figures.table import Row, difference_words, first_sentences, groups, number, rate_words, sample_size, value_of
from neuralmedbench.records.words import counted, percent, spaced


def draw_arms(rows: list[Row]) -> Any:
    """Draw each arm minus full, paired (from arms.csv)."""
    style, found = looks(row["model"] for row in rows), groups(rows, "benchmark")
    lines = {name: groups(part, "arm") for name, part in found.items()}
    figure, axes = panels([len(part) for part in lines.values()], entries=len(style) - 1)
    reach = max(abs(number(row[name]) or 0.0) for row in rows for name in ("difference", "low", "high"))
    reach = min(1.0, 0.25 * (int(reach / 0.25) + 1))
    for panel, (benchmark, part) in zip(axes, lines.items(), strict=True):
        panel.set_title(benchmark)
        percent_axis(panel, low=-reach, high=reach)
        panel.axvline(0, color=INK, linewidth=1.2)
        panel.set_yticks(range(len(part)), [spaced(arm) for arm in part])
        for y, entries in enumerate(part.values()):
            if y % 2:
                panel.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.04, linewidth=0)
            for place, row in enumerate(sorted(entries, key=lambda row: row["model"])):
                whisker(panel, row, y + offset(place, len(entries)), style[row["model"]], ("difference", "low", "high"), size=6)
    axes[-1].set_xlabel("pass@1, difference to full (left of the line: worse than with everything shown)" + dagger_note(rows))
    legend(figure, style, names(rows), sorted({row["model"] for row in rows}))
    return figure


def describe_arms(rows: list[Row]) -> str:
    """Tell the largest change of each benchmark."""
    found = groups(rows, "benchmark")
    return first_sentences(
        f"{name}: {counted(len({row['arm'] for row in part}), 'arm')} beside full, {counted(len({row['model'] for row in part}), 'model')}; the largest"
        f" change of pass@1 is {difference_words(most)} ({most['model']}, {spaced(most['arm'])}); {sample_size(most)}."
        for name, part, most in ((name, part, max(part, key=lambda row: abs(value_of(row, "difference")))) for name, part in found.items())
    )


def draw_axes(rows: list[Row]) -> Any:
    """Draw breadth against depth with the intervals of both (from axes.csv)."""
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
    legend(figure, style, names(rows, "title"), sorted({row["model"] for row in rows}), note=dagger_note(rows))
    return figure


def describe_axes(rows: list[Row]) -> str:
    """Tell where the model that is best in depth stands in breadth."""
    found = groups(
        [{**row, "pair": f"{row['breadth_benchmark']} (breadth) against {row['depth_benchmark']} (depth)"} for row in rows], "pair"
    )
    return first_sentences(
        f"{name}: {counted(len(part), 'model')}; {best['title']}, the best in depth with {rate_words(best, 'depth')}, has {rate_words(best, 'breadth')} in"
        f" breadth; guessing reaches {percent(best['depth_prior'])} and {percent(best['breadth_prior'])}."
        for name, part, best in ((name, part, max(part, key=lambda row: value_of(row, "depth"))) for name, part in found.items())
    )


def _scatter(panel: Any, rows: list[Row], style: dict[str, Any]) -> None:
    ticks, labels = [0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"]
    panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    panel.set_xticks(ticks, labels)
    panel.set_yticks(ticks, labels)
    panel.grid(**GRID)
    panel.set_xlabel(f"breadth: {rows[0]['breadth_benchmark']}")
    panel.set_ylabel(f"depth: {rows[0]['depth_benchmark']}")
    panel.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.35)
    prior_x, prior_y = value_of(rows[0], "breadth_prior"), value_of(rows[0], "depth_prior")
    panel.plot([prior_x, prior_x, -0.02], [-0.02, prior_y, prior_y], color=INK, linewidth=1, linestyle=(0, (1, 2)), alpha=0.6)
    panel.annotate("prior", (prior_x, prior_y), xytext=(4, 4), textcoords="offset points", fontsize=8.5)
    for row in rows:
        look, x, y = style[row["model"]], value_of(row, "breadth"), value_of(row, "depth")
        for ends, line in ((("breadth_low", "breadth_high"), "x"), (("depth_low", "depth_high"), "y")):
            low, high = (number(row[end]) for end in ends)
            if low is not None and high is not None:
                points = ([low, high], [y, y]) if line == "x" else ([x, x], [low, high])
                panel.plot(*points, color=look.colour, linewidth=1.4, solid_capstyle="round")
        panel.plot([x], [y], markersize=9, linestyle="none", **look.point)
