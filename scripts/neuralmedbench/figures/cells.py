"""Coloured cells with a number in each: which colour, which text on it, and the hatch that says that few patients stand behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuralmedbench.figures.style import DARK, DIVERGING, INK, LIGHT, luminance

SEQUENTIAL = "cividis"


def rate_colour(share: float) -> str:
    """Colour of a share between 0 and 1, "#rrggbb"."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return str(to_hex(mpl.colormaps[SEQUENTIAL](min(1.0, max(0.0, share)))))


def difference_colour(difference: float, *, reach: float) -> str:
    """Colour of a difference, "#rrggbb": neutral at 0, one colour for more and another for less, full at `reach`."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    scale = LinearSegmentedColormap.from_list("difference", DIVERGING)
    return str(to_hex(scale(0.5 + 0.5 * max(-1.0, min(1.0, difference / reach)))))


def text_on(colour: str) -> str:
    """Give the one of the two text colours that is easier to read on a colour.

    Examples
    --------
    >>> text_on("#fde737") == DARK, text_on("#00224e") == LIGHT
    (True, True)
    """
    shade = luminance(colour)
    return DARK if (shade + 0.05) / (luminance(DARK) + 0.05) > (luminance(LIGHT) + 0.05) / (shade + 0.05) else LIGHT


def draw_cell(
    panel: Any, place: tuple[float, float], text: str, colour: str, *, few: bool = False, frame: bool = False, size: float = 8.5
) -> None:
    """Draw one cell.

    Parameters
    ----------
    panel : matplotlib Axes
        Where; a cell is 1 wide and 1 high.
    place : tuple of float
        Its middle, x and y.
    text : str
        What stands in it.
    colour : str
        Its colour, "#rrggbb".
    few : bool
        Whether few patients stand behind it: then it is hatched.
    frame : bool
        Whether it has a frame.
    size : float
        Size of the text in points.
    """
    from matplotlib.patches import Rectangle

    x, y, on = *place, text_on(colour)
    parts = [Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, linewidth=0)]
    if few:  # under the number: a hatch behind it would be hard to read
        parts.append(Rectangle((x - 0.48, y + 0.2), 0.96, 0.27, facecolor="none", edgecolor=on, hatch="//////", linewidth=0))
    if frame:
        parts.append(Rectangle((x - 0.46, y - 0.45), 0.92, 0.9, facecolor="none", edgecolor=INK, linewidth=1.3))
    for part in parts:
        part.set(in_layout=False, clip_on=False)  # a cell lies within its panel: nothing needs to be measured or cut
        panel.add_artist(part)
    panel.text(x, y - (0.12 if few else 0), text, ha="center", va="center_baseline", fontsize=size, color=on).set_in_layout(False)


def square_off(panel: Any, columns: int, rows: int, labels: Sequence[str]) -> None:
    """Make a panel hold `rows` x `columns` cells without axes, with the row labels at the left."""
    panel.set(xlim=(-0.55, columns - 0.45), ylim=(rows - 0.4, -0.6))
    panel.set_yticks(range(rows), labels)
    panel.spines["bottom"].set_visible(False)
    panel.tick_params(bottom=False, top=False, labelbottom=False, labeltop=True, length=0)
