"""The figure of what an answer costs and how often it is right."""

from __future__ import annotations

import math
from typing import Any

from neuralmedbench.figures.panels import dagger_note, legend, names
from neuralmedbench.figures.style import GRID, INK, WIDTH_IN, Look, looks
from neuralmedbench.figures.table import Row, first_sentences, groups, having, number, sample_size, value_of
from neuralmedbench.records.words import counted, percent

TICKS, LABELS = (0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %")
PRICE = "usd_per_item"


def keep_cost(rows: list[Row]) -> list[Row]:
    """Rows with pass@1, if any of them has a price: else there is nothing to weigh."""
    rows = having(rows, "pass1")
    return rows if having(rows, PRICE) else []


def draw_cost(rows: list[Row]) -> Any:
    """Draw pass@1 over the price of one answer, with the line of those that nothing cheaper beats (from cost.csv)."""
    import matplotlib.pyplot as plt

    style, found = looks(row["model"] for row in rows), groups(rows, "benchmark")
    free = max(sum(number(row[PRICE]) is None for row in part) for part in found.values())
    ratio = (min(1.6, 0.5 + 0.12 * free), 3.4) if free else (0.001, 3.4)
    size = (WIDTH_IN, 2.9 * len(found) + 0.8)
    figure, grid = plt.subplots(
        len(found), 2, figsize=size, squeeze=False, sharey=True, sharex="col", width_ratios=ratio, layout="constrained"
    )
    ends = [math.log10(value_of(row, PRICE)) for row in having(rows, PRICE)]
    for (strip, paid), (benchmark, part) in zip(grid, found.items(), strict=True):
        for panel in (strip, paid):
            panel.set_ylim(-0.03, 1.03)
            panel.set_yticks(TICKS, LABELS)
            panel.grid(axis="y", **GRID)
        (strip if free else paid).set_title(f"{benchmark}: {sample_size(part[0])}")
        _unpriced(strip, [row for row in part if number(row[PRICE]) is None], style)
        _priced(paid, having(part, PRICE), style, (math.floor(min(ends) - 0.05), math.ceil(max(ends) + 0.05)))
        if not free:
            strip.axis("off")
    if free:
        grid[-1][0].set_xlabel("no price", fontsize=9)
    days = sorted({row["priced_on"] for row in having(rows, PRICE)} - {""})
    listed = f"; prices of {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}" if days else ""
    grid[-1][1].set_xlabel(f"USD for one answer, log scale{listed}{dagger_note(rows)}", fontsize=9)
    grid[0][0 if free else 1].set_ylabel("pass@1")
    legend(figure, style, names(rows), sorted({row["model"] for row in rows}))
    return figure


def describe_cost(rows: list[Row]) -> str:
    """Tell the models of the frontier with price and pass@1, and how many have no price."""
    return first_sentences(_frontier(name, part) for name, part in groups(rows, "benchmark").items())


def _frontier(benchmark: str, rows: list[Row]) -> str:
    front = sorted((row for row in having(rows, PRICE) if row["on_frontier"] == "true"), key=lambda row: value_of(row, PRICE))
    frontier = ", ".join(f"{row['model']} ({_usd(row)}, {percent(row['pass1'])})" for row in front[:4])
    more = f" and {len(front) - 4} more" if len(front) > 4 else ""
    free = sum(number(row[PRICE]) is None for row in rows)
    return (
        f"{benchmark}: of {counted(len(rows) - free, 'model')} with a price nothing cheaper beats {frontier or 'none'}{more};"
        f" {counted(free, 'model')} without a price; {sample_size(rows[0])}."
    )


def _usd(row: Row) -> str:
    dollars = value_of(row, PRICE)
    digits = max(2, 1 - math.floor(math.log10(dollars)))
    return f"{dollars:.{digits}f} USD an answer"


def _mark(panel: Any, row: Row, x: float, look: Look) -> None:
    value, low, high = (number(row[name]) for name in ("pass1", "pass1_low", "pass1_high"))
    if low is not None and high is not None:
        panel.plot([x, x], [low, high], color=look.colour, linewidth=1.4, solid_capstyle="round")
    panel.plot([x], [value], markersize=7.5, linestyle="none", **look.point)


def _unpriced(panel: Any, rows: list[Row], style: dict[str, Look]) -> None:
    panel.set_xlim(-0.7, max(len(rows), 1) - 0.3)
    panel.set_xticks([])
    for x, row in enumerate(rows):
        _mark(panel, row, x, style[row["model"]])


def _priced(panel: Any, rows: list[Row], style: dict[str, Look], decades: tuple[int, int]) -> None:
    panel.set_xscale("log")
    panel.set_xlim(10.0 ** decades[0], 10.0 ** decades[1])
    ticks = [10.0**power for power in range(decades[0], decades[1] + 1)]
    panel.set_xticks(ticks, [f"{tick:.10f}".rstrip("0").rstrip(".") for tick in ticks])
    panel.tick_params(axis="x", which="minor", bottom=True, labelbottom=False, length=2)
    panel.tick_params(labelbottom=True)
    panel.grid(axis="x", **GRID)
    front = sorted((value_of(row, PRICE), value_of(row, "pass1")) for row in rows if row["on_frontier"] == "true")
    if front:
        (*_, (_, best)) = front
        panel.step(*zip(*front, (10.0 ** decades[1], best), strict=True), where="post", color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    for row in rows:
        _mark(panel, row, value_of(row, PRICE), style[row["model"]])
