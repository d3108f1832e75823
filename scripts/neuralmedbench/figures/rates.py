"""Figures of rates: the leaderboard, the slopes from pass@1 to pass@5, and the slices."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, empty_figure, legend, named, names, offset, panels, whisker, words
from neuralmedbench.figures.style import GRID, INK, PRIOR, WIDTH_IN, looks, percent_axis
from neuralmedbench.figures.table import Row, groups, number

PASS1 = ("pass1", "pass1_low", "pass1_high")
SLICES = ("family", "level", "sequence", "lesion_shown", "normal_control")
STOPS = ("all_right", "pass1", "pass5")


def draw_leaderboard(rows: list[Row]) -> Any:
    """Draw pass@1 with intervals, best first, a band for every second tier (from leaderboard.csv)."""
    rows = [row for row in rows if row["pass1"]]
    if not rows:
        return empty_figure("No model has been scored yet.")
    style, found = looks(row["model"] for row in rows), groups(rows, "benchmark")
    figure, axes = panels([len(part) for part in found.values()])
    for panel, (benchmark, part) in zip(axes, found.items(), strict=True):
        panel.set_title(f"{benchmark} ({part[0]['axis']})")
        percent_axis(panel)
        panel.set_yticks(range(len(part)), [named(row, "title") for row in part])
        for y, row in enumerate(part):
            if row["tier"] and int(row["tier"]) % 2 == 0:
                panel.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.05, linewidth=0)
            whisker(panel, row, y, style[row["model"]], PASS1)
            place = f"tier {row['tier']}" if row["tier"] else "" if row["model"] == PRIOR else "no rank"
            panel.text(1.04, y, place, va="center", fontsize=8.5)
            if row["model"] == PRIOR:
                panel.axvline(float(row["pass1"]), color=INK, linewidth=1, linestyle=(0, (2, 3)), alpha=0.6)
    axes[-1].set_xlabel(f"pass@1{dagger_note(rows)}")
    return figure


def draw_passk(rows: list[Row]) -> Any:
    """Draw how far apart reliability, pass@1 and pass@5 of each model are (from leaderboard.csv)."""
    rows = [row for row in rows if row["pass5"]]
    if not rows:
        return empty_figure("No model has five sampled answers to open items.")
    import matplotlib.pyplot as plt

    style, found = looks(row["model"] for row in rows), groups(rows, "benchmark")
    figure, grid = plt.subplots(1, len(found), figsize=(WIDTH_IN, 3.3), squeeze=False, sharey=True, layout="constrained")
    for panel, (benchmark, part) in zip(grid[0], found.items(), strict=True):
        panel.set_title(benchmark)
        for row in part:
            heights = [number(row[stop]) for stop in STOPS]
            panel.plot(range(3), heights, linewidth=1.6, markersize=7, **style[row["model"]].point)
            if row["candidates5"]:
                panel.plot([2.6], [float(row["candidates5"])], markersize=7, linestyle="none", **style[row["model"]].point, alpha=0.55)
        panel.set_xticks([0, 1, 2, 2.6], ["all 5\nright", "pass@1", "pass@5", "five\ncandidates"])
        panel.set_xlim(-0.15, 2.8)
        panel.set_ylim(-0.03, 1.03)
        panel.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        panel.grid(axis="y", **GRID)
    if note := dagger_note(rows):
        figure.supxlabel(note.strip(), fontsize=8.5)
    legend(figure, style, names(rows, "title"), sorted({row["model"] for row in rows}))
    return figure


def draw_slices(rows: list[Row]) -> Any:
    """Draw pass@1 by family, level, sequence and kind of case (from rates.csv)."""
    kept = [row for row in rows if row["slice"] in SLICES and row["metric"] == "pass1" and row["value_of_slice"] not in {"none", "unknown"}]
    kept = [row for row in kept if (row["arm"], row["strategy"]) == ("full", "direct")]
    if not kept:
        return empty_figure("There is nothing to slice yet.")
    style, found = looks(row["model"] for row in kept), groups(kept, "benchmark")
    lines = {name: list(groups([{**row, "line": _line(row)} for row in part], "line").items()) for name, part in found.items()}
    figure, axes = panels([len(part) for part in lines.values()], entries=len(style) - 1)
    for panel, (benchmark, part) in zip(axes, lines.items(), strict=True):
        panel.set_title(benchmark)
        percent_axis(panel)
        panel.set_yticks(range(len(part)), [line for line, _ in part])
        for y, (_, entries) in enumerate(part):
            for place, row in enumerate(sorted(entries, key=lambda row: row["model"])):
                whisker(panel, row, y + offset(place, len(entries)), style[row["model"]], ("value", "low", "high"), size=5.5)
    axes[-1].set_xlabel(f"pass@1{dagger_note(kept)}")
    legend(figure, style, names(kept), sorted({row["model"] for row in kept}))
    return figure


def _line(row: Row) -> str:
    names = {"lesion_shown": {"true": "lesion shown", "false": "lesion not shown"}, "normal_control": {"true": "normal controls"}}
    value = names.get(row["slice"], {}).get(row["value_of_slice"], words(row["value_of_slice"]))
    return f"{value} (n = {row['n_items']})"
