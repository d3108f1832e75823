"""What the figures share: panels under each other, dots with whiskers, a legend, and an honest empty figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neuralmedbench.figures.style import WIDTH_IN, Look
from neuralmedbench.figures.table import Row
from neuralmedbench.figures.table import number as cell_number
from neuralmedbench.records.results import POOL_MARKS

DAGGER = " †"
"""Behind the name of a model by whose answers items were chosen."""

ROW_IN = 0.3
"""Height of one row of a panel in inches."""

BELOW_IN = 0.5
"""Height of the label of the last axis and of the legend."""


def words(name: str) -> str:
    """Write a name of the tables as words: `no_image` is `no image`."""
    return name.replace("_", " ")


def chose(row: Row) -> bool:
    """Whether a row is of a model by whose answers the items of its benchmark (of either, for two axes) were chosen."""
    return any(mark in row and row[mark] == "true" for mark in POOL_MARKS)


def named(row: Row, column: str = "model") -> str:
    """Name of a row's model, with a dagger when its answers chose the items."""
    return row[column] + (DAGGER if chose(row) else "")


def names(rows: Iterable[Row], column: str = "model") -> dict[str, str]:
    """Names for a legend: with a dagger when any row of the model has one."""
    found: dict[str, str] = {}
    for row in rows:
        found[row["model"]] = named(row, column) if chose(row) else found.get(row["model"], row[column])
    return found


def dagger_note(rows: Iterable[Row]) -> str:
    """Give the line below a figure that explains its daggers; empty when it has none."""
    found = {row[benchmark] for row in rows for mark, (benchmark, _) in POOL_MARKS.items() if mark in row and row[mark] == "true"}
    return f"\n{DAGGER.strip()} of the reference pool of {', '.join(sorted(found))}: what it solved was taken out" if found else ""


def panels(rows: Sequence[int], *, around: float = 0.75, entries: int = 1) -> tuple[Any, list[Any]]:
    """Give a figure with one panel under the other.

    Parameters
    ----------
    rows : sequence of int
        Number of rows of each panel.
    around : float
        Inches of each panel for its title and its axis.
    entries : int
        Marks that share a row: more of them need a higher row.

    Returns
    -------
    tuple of matplotlib Figure and list of Axes
        The rows of a panel lie at y = 0, 1, 2... from above.
    """
    import matplotlib.pyplot as plt

    inches = [around + ROW_IN * max(1.0, 0.5 * entries) * number for number in rows]
    figure, grid = plt.subplots(
        len(rows), 1, figsize=(WIDTH_IN, sum(inches) + BELOW_IN), squeeze=False, height_ratios=inches, layout="constrained"
    )
    axes = [line[0] for line in grid]
    for panel, number in zip(axes, rows, strict=True):
        panel.set_ylim(number - 0.4, -0.6)
    return figure, axes


def empty_figure(message: str) -> Any:
    """Give a figure that says why there is nothing to see."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH_IN, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, message, ha="center", va="center", fontsize=10.5, transform=axes.transAxes)
    return figure


def whisker(axes: Any, row: Row, y: float, look: Look, names: tuple[str, str, str], *, size: float = 7.5) -> None:
    """Draw one value with its interval, if there is a value.

    Parameters
    ----------
    axes : matplotlib Axes
        Where.
    row : Row
        Row of a table.
    y : float
        Height.
    look : Look
        Colour and marker.
    names : tuple of str
        Columns of value, low and high.
    size : float
        Size of the marker in points.
    """
    value, low, high = (cell_number(row[name]) for name in names)
    if value is None:
        return
    if low is not None and high is not None:
        axes.plot([low, high], [y, y], color=look.colour, linewidth=2, alpha=0.55, solid_capstyle="round")
    axes.plot([value], [y], markersize=size, linestyle="none", **look.point)


def offset(place: int, entries: int) -> float:
    """How far from the middle of its row the mark at a place stands."""
    return (place - (entries - 1) / 2) * min(0.24, 0.72 / entries)


def legend(figure: Any, looks: Mapping[str, Look], titles: Mapping[str, str], models: Iterable[str]) -> None:
    """Put one legend of models under the figure."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="none", markersize=7, label=titles.get(model, model), **looks[model].point) for model in models]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), handletextpad=0.3, columnspacing=1.6)
