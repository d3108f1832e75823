"""The figure of paired differences between models."""

from __future__ import annotations

import math
from typing import Any

from neuralmedbench.figures.cells import difference_colour, draw_cell, square_off
from neuralmedbench.figures.panels import DAGGER, dagger_note, short
from neuralmedbench.figures.style import INK, WIDTH_IN
from neuralmedbench.figures.table import Row, difference_words, first_sentences, groups, number, sample_size, sample_size_range, value_of

ALPHA = 0.05
LABELS_IN, CELL_IN, TITLE_IN = 1.9, 0.5, 0.75
FEW = 5
"""Models up to which two triangles stand beside each other."""


def draw_pairwise(rows: list[Row]) -> Any:
    """Draw each model minus each better one, the best first, one triangle a benchmark (from pairwise.csv)."""
    import matplotlib.pyplot as plt

    found = groups(rows, "benchmark")
    orders = {name: order_of(part) for name, part in found.items()}
    most = max(len(order) for order in orders.values())
    across = 2 if most <= FEW and len(found) > 1 else 1
    down = -(-len(found) // across)
    cell = min(CELL_IN, (WIDTH_IN / across - LABELS_IN) / most)
    size = (WIDTH_IN, (cell * most + TITLE_IN) * down + 0.3)
    figure, grid = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    panels = [panel for line in grid for panel in line]
    for panel in panels[len(found) :]:
        panel.axis("off")
    reach = max(0.1, math.ceil(10 * max(abs(value_of(row, "difference")) for row in rows)) / 10)
    for panel, (benchmark, part) in zip(panels, found.items(), strict=False):
        _triangle(panel, benchmark, part, orders[benchmark], reach=reach, size=min(8.5, 26 * cell))
    note = f"points of pass@1, row minus column (by number); * and frame: p < {ALPHA:g} after Holm"
    figure.supxlabel(f"{note}{dagger_note(rows)}", fontsize=8.5)
    return figure


def describe_pairwise(rows: list[Row]) -> str:
    """Tell how many differences are significant, and the largest."""
    return first_sentences(_largest(name, part) for name, part in groups(rows, "benchmark").items())


def _largest(benchmark: str, rows: list[Row]) -> str:
    most = max(rows, key=lambda row: abs(value_of(row, "difference")))
    first, second = ("model_a", "model_b") if value_of(most, "difference") >= 0 else ("model_b", "model_a")
    if first == "model_b":
        most = most | {"difference": f"{-value_of(most, 'difference')}"} | dict(zip(("low", "high"), _turned(most), strict=True))
    sure = sum(_significant(row) for row in rows)
    return (
        f"{benchmark}: {sure} of {len(rows)} paired differences are significant after Holm; the largest is {most[first]} ahead of"
        f" {most[second]} by {difference_words(most)}; {sample_size(most)}."
    )


def _turned(row: Row) -> list[str]:
    ends = (number(row["high"]), number(row["low"]))
    return ["" if end is None else str(-end) for end in ends]


def _significant(row: Row) -> bool:
    p_value = number(row["p_holm"])
    return p_value is not None and p_value < ALPHA


def order_of(rows: list[Row]) -> list[str]:
    """Models of a benchmark, the one that is ahead of the others by most first."""
    ahead: dict[str, float] = {}
    for row in rows:
        for name, sign in ((row["model_a"], 1), (row["model_b"], -1)):
            ahead[name] = ahead.get(name, 0.0) + sign * value_of(row, "difference")
    return sorted(ahead, key=lambda name: (-round(ahead[name], 9), name))


def _triangle(panel: Any, benchmark: str, rows: list[Row], order: list[str], *, reach: float, size: float) -> None:
    place = {name: at for at, name in enumerate(order)}
    pool = {row[f"model_{side}"] for row in rows for side in "ab" if row[f"{side}_in_reference_pool"] == "true"}
    square_off(
        panel,
        len(order),
        len(order),
        [f"{short(name)}{DAGGER if name in pool else ''}\u00a0\u00a0\u00a0{at + 1}" for name, at in place.items()],
    )
    panel.set_xticks(range(len(order) - 1), [str(at + 1) for at in range(len(order) - 1)])
    panel.tick_params(labelsize=min(9.5, size + 1))
    panel.set_title(f"{short(benchmark)}: {sample_size_range(rows)}", fontsize=9.5)
    panel.set_aspect("equal", anchor="N")
    for at in range(len(order)):
        panel.text(at, at, "–", ha="center", va="center_baseline", fontsize=size, color=INK, alpha=0.5)
    for row in rows:
        value = value_of(row, "difference")
        across, down = place[row["model_b"]], place[row["model_a"]]
        if across > down:
            across, down, value = down, across, -value
        sure = _significant(row)
        text = f"{round(100 * value)}{'*' if sure else ''}".replace("-", "−")
        draw_cell(panel, (across, down), text, difference_colour(value, reach=reach), size=size, frame=sure)
