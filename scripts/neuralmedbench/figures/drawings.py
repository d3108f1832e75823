"""The six drawings: dots with intervals, paired dots, scatter, bars by part, curve, matrix.

Each takes typed values and knows no table; the figures (`rates.py`, `parts.py`) turn rows into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any, NamedTuple

from neuralmedbench.figures.style import (
    DARK,
    GRID,
    INK,
    LIGHT,
    QUARTERS,
    WIDTH_IN,
    Look,
    drawn_for,
    luminance,
    mark_model,
    percent_axis,
)
from neuralmedbench.records.results import PRIOR

ROW_IN = 0.3
"""Height of one row of a panel in inches."""

LETTERS_PER_IN = 13.8
"""Letters of a legend that fit side by side into an inch."""

LINE_IN = 0.2
"""Height of a line of the legend in inches."""

BELOW_IN = 0.5
"""Height in inches of the label of the last axis and of the legend."""

EDGE = 0.02
"""Space between the ends of an axis of shares and 0 and 100 %."""

SEQUENTIAL = "cividis"


class Whisker(NamedTuple):
    """A value and the ends of its interval; without a value, the ends between which it lies."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def has_ends(self) -> bool:
        """True if both ends are known."""
        return None not in self[1:]


class Dot(NamedTuple):
    """One mark of a model in a panel, with a horizontal and an upright interval."""

    model: str
    look: Look
    x: Whisker
    y: Whisker = Whisker(0.0)

    def hollow(self) -> Dot:
        """Return it hollow."""
        return self._replace(look=replace(self.look, hollow=True))


class DotRow(NamedTuple):
    """One row of dots: its label, marks from top to bottom, words at its end; `model` if it has one."""

    label: str
    marks: list[Dot]
    model: str = ""
    note: str = ""
    band: bool = False


class Bar(NamedTuple):
    """One part of a bar; `filled` is the share of it that is not only hatched."""

    width: float
    colour: str
    hatch: str = ""
    filled: float = 1.0


class BarRow(NamedTuple):
    """One row of bars: its label, its parts from left to right, the words behind them."""

    label: str
    parts: Sequence[Bar]
    model: str = ""
    start: float = 0.0
    note: str = ""


class Cell(NamedTuple):
    """One cell of a matrix; without a colour only its text; hatched if it is about few patients."""

    text: str
    colour: str = ""
    hatched: bool = False


class MatrixRow(NamedTuple):
    """One row of a matrix with its cells by column; without cells the heading of the rows below."""

    label: str
    y: float
    cells: Mapping[str, Cell]


def subplots(down: int, across: int, size: tuple[float, float], **shared: Any) -> tuple[Any, Any]:
    """Return a figure of `size` inches and its panels by line and column."""
    import matplotlib.pyplot as plt

    return plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained", **shared)


def stacked(rows: Sequence[int], *, around: float = 0.75, entries: int = 1) -> tuple[Any, list[Any]]:
    """Return a figure with stacked panels of `rows` rows each, at y = 0, 1, 2... from the top.

    `around` is the height in inches of title and axis of a panel; `entries` is the number of marks
    that share a row, which makes it higher.
    """
    # rows with more than two marks are higher
    inches = [ROW_IN * max(1.0, 0.5 * entries) * number for number in rows]
    size = (WIDTH_IN, sum(inches) + around * len(rows) + BELOW_IN)
    # the height ratios count the rows only, so that rows are equally high in every panel
    figure, grid = subplots(len(rows), 1, size, height_ratios=inches)
    return figure, list(grid[:, 0])


def empty_figure(message: str) -> Any:
    """Return a figure that states why it is empty."""
    figure, ((panel,),) = subplots(1, 1, (WIDTH_IN, 1.2))
    panel.axis("off")
    words = "\n".join(wrap(message, 84))
    panel.text(0.5, 0.5, words, ha="center", va="center", fontsize=10.5)
    return figure


def label_rows(panel: Any, rows: Sequence[DotRow | BarRow]) -> None:
    """Label the rows y = 0, 1, 2... of a panel from the top."""
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.set_yticks(range(len(rows)), [row.label for row in rows])
    # a panel that shares its axis with the one at its left has no labels of its own
    for row, label in zip(rows, panel.get_yticklabels(), strict=False):
        mark_model([label], row.model)


def offset(place: int, entries: int) -> float:
    """Return the vertical distance of a mark from the middle of its row, in rows."""
    return (place - (entries - 1) / 2) * min(0.24, 0.84 / entries)


def draw_mark(panel: Any, mark: Dot, *, size: float = 7.5, alpha: float = 1.0) -> None:
    """Draw a mark with its intervals; without a value a dashed line between its ends."""
    x, y = mark.x, mark.y
    line: dict[str, Any] = {"color": mark.look.colour, "linewidth": 1.4, "alpha": alpha}
    line |= {"linestyle": (0, (3, 2))} if x.value is None else {"solid_capstyle": "round"}
    with drawn_for(panel, mark.model):
        if x.has_ends:
            panel.plot(x[1:], [y.value, y.value], **line)
        if y.has_ends:
            panel.plot([x.value, x.value], y[1:], **line)
        if x.value is not None:
            look = {"markersize": size, "linestyle": "none"} | mark.look.point
            panel.plot([x.value], [y.value], **look)


def draw_dots(
    panels: Mapping[str, Sequence[DotRow]],
    label: str,
    *,
    low: float = 0.0,
    high: float = 1.0,
    entries: int = 1,
    joined: bool = False,
    size: float = 7.5,
) -> Any:
    """Draw dots with intervals: a panel a title, an axis of percent from `low` to `high`.

    `entries` is the number of marks that share a row; `joined` draws a line through them.
    """
    figure, axes = stacked([len(rows) for rows in panels.values()], entries=entries)
    for panel, (title, rows) in zip(axes, panels.items(), strict=True):
        panel.set_title(title)
        percent_axis(panel, low=low, high=high)
        if low < 0:
            panel.axvline(0, color=INK, linewidth=1.2)
        label_rows(panel, rows)
        for y, row in enumerate(rows):
            _dot_row(panel, row, y, size, joined)
    axes[-1].set_xlabel(label)
    return figure


def _dot_row(panel: Any, row: DotRow, y: int, size: float, joined: bool) -> None:
    if row.band:
        panel.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.05, linewidth=0)
    heights = [y + offset(place, len(row.marks)) for place in range(len(row.marks))]
    for mark, height in zip(row.marks, heights, strict=True):
        draw_mark(panel, mark._replace(y=Whisker(height)), size=size)
    with drawn_for(panel, row.model):
        if joined:
            look = {"color": row.marks[0].look.colour, "linewidth": 0.7, "alpha": 0.5}
            panel.plot([mark.x.value for mark in row.marks], heights, **look)
        panel.text(1.04, y, row.note, va="center", fontsize=8.5)
    if row.model == PRIOR:
        look = {"linewidth": 1, "linestyle": (0, (2, 3)), "alpha": 0.6}
        panel.axvline(row.marks[0].x.value, color=INK, **look)


def draw_paired_dots(panels: Mapping[str, Sequence[DotRow]], sides: tuple[str, str], label: str) -> Any:
    """Draw rows of two joined marks: the first side is hollow, the second as its model is drawn."""
    for rows in panels.values():
        for row in rows:
            row.marks[0] = row.marks[0].hollow()
    figure = draw_dots(panels, label, entries=3, joined=True)
    looks = [Look(INK, "o", hollow=hollow).point for hollow in (True, False)]
    add_legend(figure, line_handles(dict(zip(sides, looks, strict=True))), 2)
    return figure


def draw_scatter(
    panel: Any,
    marks: Iterable[Dot],
    *,
    lines: Iterable[tuple[Sequence[tuple[float, float]], Mapping[str, Any]]] = (),
    decades: tuple[int, int] | None = None,
    size: float = 7.5,
    alpha: float = 1.0,
) -> None:
    """Draw marks over an axis of shares, or over a logarithmic one of whole decades, and lines."""
    panel.set_ylim(-EDGE, 1 + EDGE)
    panel.set_yticks(*QUARTERS)
    panel.grid(**GRID)
    if decades:
        _log_axis(panel, *decades)
    else:
        panel.set_xlim(-EDGE, 1 + EDGE)
        panel.set_xticks(*QUARTERS)
    for points, look in lines:
        panel.plot(*zip(*points, strict=True), color=INK, **look)
    for mark in marks:
        draw_mark(panel, mark, size=size, alpha=alpha)


def _log_axis(panel: Any, first: int, last: int) -> None:
    ticks = [10.0**power for power in range(first, last + 1)]
    panel.set_xscale("log")
    panel.set_xlim(ticks[0], ticks[-1])
    panel.set_xticks(ticks, [f"{tick:.10f}".rstrip("0").rstrip(".") for tick in ticks])
    panel.tick_params(axis="x", which="minor", bottom=True, labelbottom=False, length=2)
    panel.tick_params(labelbottom=True)


def draw_bars(panel: Any, rows: Sequence[BarRow]) -> None:
    """Draw one bar a row, its parts from left to right."""
    label_rows(panel, rows)
    for y, row in enumerate(rows):
        end = row.start
        with drawn_for(panel, row.model):
            for part in row.parts:
                _bar(panel, part, end, y)
                end += part.width
            panel.text(end + 0.012, y, row.note, va="center", color=INK, fontsize=9)


def _bar(panel: Any, part: Bar, start: float, y: int) -> None:
    filled, none = part.width * part.filled, {"facecolor": "none", "linewidth": 0}
    if filled:
        look = {"facecolor": part.colour, "edgecolor": DARK, "hatch": part.hatch, "linewidth": 0}
        panel.barh(y, filled, left=start, height=0.62, **look)
    if part.width - filled > 1e-9:
        look = none | {"edgecolor": part.colour, "hatch": part.hatch}
        panel.barh(y, part.width - filled, left=start + filled, height=0.62, **look)
    if part.width:
        look = none | {"edgecolor": INK, "linewidth": 0.9}
        panel.barh(y, part.width, left=start, height=0.62, **look)


def draw_curve(panel: Any, marks: Sequence[Dot], line: Any) -> None:
    """Draw one curve through marks with intervals; `line` is its style."""
    x, y = [mark.x.value for mark in marks], [mark.y.value for mark in marks]
    with drawn_for(panel, marks[0].model):
        panel.plot(x, y, color=marks[0].look.colour, linewidth=1, linestyle=line)
    for mark in marks:
        draw_mark(panel, mark, size=5, alpha=0.75)


def rate_colour(share: float) -> str:
    """Return the colour "#rrggbb" of a share between 0 and 1."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return str(to_hex(mpl.colormaps[SEQUENTIAL](min(1.0, max(0.0, share)))))


def text_on(colour: str) -> str:
    """Return the text colour, dark or light, with the higher WCAG contrast on a background.

    Examples
    --------
    >>> text_on("#fde737") == DARK, text_on("#00224e") == LIGHT
    (True, True)
    """
    shade, dark, light = (luminance(part) + 0.05 for part in (colour, DARK, LIGHT))
    return DARK if shade / dark > light / shade else LIGHT


def draw_matrix(panel: Any, columns: Mapping[str, str], rows: Sequence[MatrixRow], *, turned: bool, size: float) -> None:
    """Draw cells of a row and a column each; `turned` turns the heads of columns, `size` is in points."""
    panel.set(xlim=(-0.55, len(columns) - 0.45), ylim=(rows[-1].y + 0.6, -0.6))
    panel.spines["bottom"].set_visible(False)
    panel.tick_params(bottom=False, top=False, labelbottom=False, labeltop=True, length=0)
    panel.set_yticks([row.y for row in rows], [row.label for row in rows], fontsize=9)
    for label, row in zip(panel.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if row.cells else "bold")
    look = {"rotation": 90} if turned else {}
    panel.set_xticks(range(len(columns)), list(columns.values()), fontsize=9, **look)
    for model, label in zip(columns, panel.get_xticklabels(), strict=True):
        mark_model([label], model)
    for row in rows:
        for x, model in enumerate(columns):
            if model in row.cells:
                with drawn_for(panel, model):
                    _cell(panel, (x, row.y), row.cells[model], size)


def _cell(panel: Any, place: tuple[float, float], cell: Cell, size: float) -> None:
    """Draw one cell, 1 wide and 1 high, centred at `place`."""
    from matplotlib.patches import Rectangle

    x, y = place
    look = {"ha": "center", "va": "center_baseline", "fontsize": size}
    if not cell.colour:
        panel.text(x, y, cell.text, **look)
        return
    ink = text_on(cell.colour)
    area: dict[str, Any] = {"facecolor": cell.colour, "linewidth": 0}
    parts = [Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, **area)]
    if cell.hatched:  # below the number, which would be hard to read on a hatch
        area |= {"facecolor": "none", "edgecolor": ink, "hatch": "//////"}
        parts.append(Rectangle((x - 0.48, y + 0.2), 0.96, 0.27, **area))
    for part in parts:
        # a cell lies within its panel: skipping measuring and clipping saves time
        part.set(in_layout=False, clip_on=False)
        panel.add_artist(part)
    height = y - (0.12 if cell.hatched else 0)
    panel.text(x, height, cell.text, color=ink, **look).set_in_layout(False)


def line_handles(entries: Mapping[str, dict[str, Any]]) -> list[Any]:
    """Return the handles of a legend by label; markers without a line unless an entry has one."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    return [Line2D([], [], label=label, **(look | entry)) for label, entry in entries.items()]


def add_legend(figure: Any, handles: Sequence[Any], columns: int, note: str = "") -> Any:
    """Add a legend below a figure, with a note or the label of the axis above it."""
    look = {"title": note.strip() or None, "title_fontsize": 9, "columnspacing": 1.6}
    return figure.legend(handles=handles, loc="outside lower center", ncols=columns, **look)


def legend_of_models(figure: Any, titles: Mapping[str, str], style: Mapping[str, Look]) -> None:
    """Add a legend of models by title below a figure, which becomes higher by its further lines."""
    handles = line_handles({title: style[model].point for model, title in titles.items()})
    # as many columns as the longest label allows; 5 letters for marker and gap
    letters = LETTERS_PER_IN * figure.get_figwidth() // (max(map(len, titles.values())) + 5)
    across = max(1, min(6, len(handles), int(letters)))
    drawn = add_legend(figure, handles, across)
    for model, *entry in zip(titles, drawn.legend_handles, drawn.get_texts(), strict=True):
        mark_model(entry, model)
    lines = -(-len(handles) // across) - 1
    figure.set_figheight(figure.get_figheight() + LINE_IN * lines)
