"""Shared parts of the figures: stacked panels, dots with whiskers, legends, and a figure that states why it is empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from neuralmedbench.figures.style import WIDTH_IN, Look, drawn_for, looks, mark_model
from neuralmedbench.figures.table import Row, is_between, models_of, title_of
from neuralmedbench.figures.table import number as cell_number
from neuralmedbench.records.results import BOUNDS, POOL_MARKS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

DAGGER = " †"
"""Marks the name of a model by whose answers items were chosen."""

ROW_IN = 0.3
"""Height of one row of a panel in inches."""

LEGEND_LETTERS = 133
"""Letters that fit side by side into the width of a figure."""

LINE_IN = 0.2
"""Height of a line of the legend in inches."""

BELOW_IN = 0.5
"""Height in inches of the label of the last axis and of the legend."""


def short(name: str, most: int = 34) -> str:
    """Shorten a long name in the middle: models differ in the beginning and the end of their names.

    Examples
    --------
    >>> short("A model with a very long name, thinking switched on", 26)
    'A model with a…witched on'
    """
    # three fifths of the letters from the beginning, two fifths from the end
    end = most * 2 // 5
    return name if len(name) <= most else f"{name[: most - end - 1].rstrip()}…{name[-end:].lstrip()}"


def in_reference_pool(row: Row) -> bool:
    """Return True if the answers of a row's model chose the items of its benchmark."""
    return any(mark in row and row[mark] == "true" for mark in POOL_MARKS)


def looks_of(rows: Iterable[Row]) -> dict[str, Look]:
    """Return the colour and marker of every model, the same in every figure of a run."""
    return looks(models_of(rows, everyone=True))


def names(rows: Iterable[Row], most: int = 34) -> dict[str, str]:
    """Return titles by model, with a dagger if any row of the model has one; titles that become equal when shortened are replaced by names."""
    rows = list(rows)
    shorts = {row["model"]: short(title_of(row), most) for row in rows}
    alike = {model for model, text in shorts.items() if list(shorts.values()).count(text) > 1}
    marked = {row["model"] for row in rows if in_reference_pool(row)}
    return {model: (short(model, most) if model in alike else text) + (DAGGER if model in marked else "") for model, text in shorts.items()}


def dagger_note(rows: Iterable[Row]) -> str:
    """Return the line below a figure that explains its daggers; empty if it has none."""
    benchmarks = {row[benchmark] for row in rows for mark, (benchmark, _) in POOL_MARKS.items() if mark in row and row[mark] == "true"}
    return (
        f"\n{DAGGER.strip()} of the reference pool of {', '.join(sorted(benchmarks))}: what it solved was taken out" if benchmarks else ""
    )


def panels(rows: Sequence[int], *, around: float = 0.75, entries: int = 1) -> tuple[Any, list[Any]]:
    """Return a figure with stacked panels of `rows` rows each, at y = 0, 1, 2... from the top.

    `around` is the height in inches of title and axis of a panel; `entries` is the number of marks that share a row, which makes it higher.
    """
    import matplotlib.pyplot as plt

    # rows with more than two marks are higher
    inches = [ROW_IN * max(1.0, 0.5 * entries) * number for number in rows]
    size = (WIDTH_IN, sum(inches) + around * len(rows) + BELOW_IN)
    # the height ratios count the rows only, so that rows are equally high in every panel
    figure, grid = plt.subplots(len(rows), 1, figsize=size, squeeze=False, height_ratios=inches, layout="constrained")
    axes = [line[0] for line in grid]
    for panel, number in zip(axes, rows, strict=True):
        panel.set_ylim(number - 0.4, -0.6)
    return figure, axes


def grid_of(
    number: int, across: int, high: float, *, more: float = 0.3, wide: float = WIDTH_IN, sharey: bool = False
) -> tuple[Any, list[Any]]:
    """Return a figure with `number` panels, `across` of them side by side.

    A panel is `high` inches high, the figure `wide` inches wide; `more` is the height of what stands above and below the panels.
    """
    import matplotlib.pyplot as plt

    down = -(-number // across)
    figure, grid = plt.subplots(down, across, figsize=(wide, high * down + more), squeeze=False, sharey=sharey, layout="constrained")
    cells = [panel for line in grid for panel in line]
    for panel in cells[number:]:
        panel.axis("off")
    return figure, cells[:number]


def empty_figure(message: str) -> Any:
    """Return a figure that states why it is empty."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH_IN, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, "\n".join(wrap(message, 84)), ha="center", va="center", fontsize=10.5, transform=axes.transAxes)
    return figure


def whisker(axes: Any, row: Row, y: float, look: Look, names: tuple[str, str, str], *, size: float = 7.5) -> None:
    """Draw one value with its interval, if there is a value; `names` are the columns of value, low and high; `size` is in points."""
    value, low, high = (cell_number(row[name]) for name in names)
    if value is None:
        return
    look = look.of(row)
    with drawn_for(axes, row["model"]):
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], color=look.colour, linewidth=1.4, solid_capstyle="round")
        axes.plot([value], [y], markersize=size, linestyle="none", **look.point)


def between(axes: Any, row: Row, y: float, look: Look) -> None:
    """Draw a rate that missing answers leave open: a dashed line from the worst to the best case, without a mark."""
    ends = [cell_number(row.get(name)) for name in BOUNDS]
    if None not in ends:
        with drawn_for(axes, row["model"]):
            axes.plot(ends, [y, y], color=look.of(row).colour, linewidth=1.4, linestyle=(0, (3, 2)))


def between_note(rows: Iterable[Row], value: str) -> str:
    """Return the line below a figure that explains its dashed lines; empty if it has none."""
    return "\ndashed: from the worst to the best case, too many answers are missing" if any(is_between(row, value) for row in rows) else ""


def label_rows(axes: Any, rows: Sequence[Row], labels: Sequence[str]) -> None:
    """Label the rows y = 0, 1, 2... of a panel, each row that of a model."""
    axes.set_yticks(range(len(rows)), labels)
    # a panel that shares its axis with the one at its left has no labels of its own
    for row, label in zip(rows, axes.get_yticklabels(), strict=False):
        mark_model([label], row["model"])


def offset(place: int, entries: int) -> float:
    """Return the vertical distance of a mark from the middle of its row, in rows."""
    return (place - (entries - 1) / 2) * min(0.24, 0.84 / entries)


def legend(figure: Any, rows: Iterable[Row], *, note: str = "") -> None:
    """Add a legend of the models of the rows below the figure, with a note or the label of the axis above it."""
    from matplotlib.lines import Line2D

    rows = list(rows)
    style, titles, models = looks_of(rows), names(rows), models_of(rows)
    handles = [Line2D([], [], linestyle="none", markersize=7, label=titles[model], **style[model].point) for model in models]
    if handles:
        # as many columns as the longest label allows; 5 letters for marker and gap
        wide = max(len(str(handle.get_label())) for handle in handles) + 5
        across = max(1, min(6, len(handles), LEGEND_LETTERS // wide))
        look = {"handletextpad": 0.3, "columnspacing": 1.6, "title": note.strip() or None, "title_fontsize": 9}
        drawn = figure.legend(handles=handles, loc="outside lower center", ncols=across, **look)
        for model, *entry in zip(models, drawn.legend_handles, drawn.get_texts(), strict=True):
            mark_model(entry, model)
        lines = -(-len(handles) // across) - 1 + len(note.strip().splitlines())
        figure.set_figheight(figure.get_figheight() + LINE_IN * lines)  # a long legend makes the figure higher, not the panels smaller


LINES_AWAY = 9
"""Lines of text above and below a mark in which its label is tried."""

ASIDE = (0.0, 14.0, 30.0, 60.0, 100.0)
"""Distances in points to the left and right at which it is tried."""

SWEEPS = 3
"""How often every label is placed anew, beside where the others are by then."""

FEW = 8
"""More marks than these are drawn smaller, and their intervals faintly."""

MARK = 6.0
"""Half the width in points of a mark that a label must not cover."""


def label_places(marks: Floats, sizes: Floats, inside: Floats, held: Floats, lines: Floats) -> Floats:
    """Choose a box for the label of each mark: inside the panel, on no other label and no mark, on few lines, and near its mark.

    Parameters
    ----------
    marks : ndarray of float, shape (labels, 2)
        Their places in points.
    sizes : ndarray of float, shape (labels, 2)
        Width and height of the labels in points.
    inside : ndarray of float, shape (2, 2)
        Lower left and upper right corner of the panel.
    held : ndarray of float, shape (boxes, 2, 2)
        Boxes that are taken already, by their corners.
    lines : ndarray of float, shape (points, 2)
        Points on lines that a label should not cover.

    Returns
    -------
    ndarray of float, shape (labels, 2, 2)
        Corners of the boxes; equal marks give equal boxes.
    """
    import numpy as np

    def overlaps(low: Floats, high: Floats, boxes: Floats) -> Floats:
        return ((low[:, None] < boxes[None, :, 1]) & (high[:, None] > boxes[None, :, 0])).all(axis=2).sum(axis=1)

    covered = np.stack([marks - MARK, marks + MARK], axis=1)
    per_line = 6.0 if len(marks) <= FEW else 1.0  # among many lines a label cannot avoid them, and should be near its mark
    tried = []
    for mark, size in zip(marks, sizes, strict=True):
        half = size / 2
        # left of the mark, above or below it, or right of it, in its line and those above and below
        across = np.unique([sign * (half[0] * part + MARK + 1 + more) for sign in (-1, 1) for part in (0, 1) for more in ASIDE])
        down = np.arange(-LINES_AWAY, LINES_AWAY + 1) * (half[1] + MARK)
        middle = mark + np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
        low, high = middle - half, middle + half
        far = np.linalg.norm(np.clip(mark, low, high) - mark, axis=1)
        outside = (low < inside[0]).any(axis=1) | (high > inside[1]).any(axis=1)
        crossed = overlaps(low, high, np.stack([lines, lines], axis=1))
        tried.append((low, high, 1e6 * outside + 1e3 * overlaps(low, high, covered) + per_line * crossed + far**1.3))
    # where many marks are near, the choice is small: these come first
    near = (np.abs(marks[:, None] - marks[None]) < (90, 30)).all(axis=2).sum(axis=1)
    order = sorted(range(len(marks)), key=lambda one: (-near[one], -marks[one][1], one))
    boxes: dict[int, Floats] = {}
    for number in order * SWEEPS:
        low, high, cost = tried[number]
        others = np.array([*held, *(box for other, box in boxes.items() if other != number)]).reshape(-1, 2, 2)
        best = int(np.argmin(cost + 1e4 * overlaps(low, high, others)))
        boxes[number] = np.stack([low[best], high[best]])
    return np.array([boxes[number] for number in range(len(marks))])


class NamedPoint(NamedTuple):
    """A mark in the units of the axes, the name to write beside it, and its model."""

    x: float
    y: float
    name: str
    model: str


def label_points(
    panel: Any, style: Mapping[str, Look], points: Sequence[NamedPoint], bars: Sequence[Sequence[tuple[float, float]]]
) -> None:
    """Write names beside marks, with a line to a name that is not near; `bars` are both ends of lines to keep clear.

    The rest of the figure must be complete: names stand where the layout has put the marks.
    """
    import numpy as np

    panel.figure.draw_without_rendering()  # settles the layout
    unit = panel.figure.dpi / 72
    to_points = panel.transData
    marks = np.array([to_points.transform((point.x, point.y)) for point in points]) / unit
    lines = [np.linspace(ends[0], ends[1], 40) for ends in (to_points.transform(bar) / unit for bar in bars)]
    held = [text.get_window_extent().get_points() for text in panel.texts]
    look = {"fontsize": 8.5, "ha": "center", "va": "center", "annotation_clip": False}
    texts = [panel.annotate(point.name, (point.x, point.y), **look) for point in points]
    sizes = np.array([text.get_window_extent().size for text in texts]) / unit + 2
    inside = panel.get_window_extent().get_points() / unit
    boxes = label_places(marks, sizes, inside, np.array(held).reshape(-1, 2, 2) / unit, np.concatenate([np.empty((0, 2)), *lines]))
    for point, text, mark, (low, high) in zip(points, texts, marks, boxes, strict=True):
        text.set(anncoords="offset points", position=tuple((low + high) / 2 - mark), in_layout=False)
        mark_model([text], point.model)
        near = np.clip(mark, low, high)
        if np.linalg.norm(near - mark) > 2 * MARK:
            ends = to_points.inverted().transform(np.stack([mark, near]) * unit)
            with drawn_for(panel, point.model):
                panel.plot(*ends.T, color=style[point.model].colour, linewidth=0.9, zorder=1.5)[0].set_in_layout(False)
