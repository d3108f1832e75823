"""How every figure looks: one colour and one marker a model, one ink that the page may replace, no clock in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

INK = "#22262b"
"""Colour of text and lines; the report replaces it by its own, so that figures follow the dark theme."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
"""Okabe and Ito's colours without black and yellow, then two more; shape tells models apart as well."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
PRIOR = "prior"
GRID = {"color": INK, "alpha": 0.12, "linewidth": 0.8}
WIDTH_IN = 7.2
"""Width of a figure in inches: the page's text column at 100 px an inch."""

PARAMETERS: dict[str, Any] = {
    "figure.constrained_layout.h_pad": 0.08,
    "svg.fonttype": "none",
    "svg.hashsalt": "neuralmedbench",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.left": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Look:
    """Colour and marker of a model; hollow for the reference `prior`."""

    colour: str
    marker: str
    hollow: bool = False

    @property
    def point(self) -> dict[str, Any]:
        """Arguments of a matplotlib line that draws a point."""
        face = "none" if self.hollow else self.colour
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": face, "markeredgewidth": 1.4}


def looks(models: Iterable[str]) -> dict[str, Look]:
    """Give every model a look by its place among the names in order, so that it is the same in every figure and table.

    Examples
    --------
    >>> looks(["beta", "alpha", "prior"])["alpha"].marker
    'o'
    """
    found = {PRIOR: Look(INK, "o", hollow=True)}
    for place, name in enumerate(sorted(set(models) - {PRIOR})):
        colour, turn = place % len(COLOURS), place // len(COLOURS)
        found[name] = Look(COLOURS[colour], MARKERS[(colour + 3 * turn) % len(MARKERS)])  # a colour comes back with another shape
    return found


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the parameters of this module, whatever the machine's own are."""
    import matplotlib as mpl

    mpl.use("Agg")
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(PARAMETERS)  # type: ignore[arg-type]
        yield


def percent_axis(axes: Any, *, low: float = 0.0, high: float = 1.0, step: float = 0.25) -> None:
    """Make the x axis run in percent, with light vertical lines."""
    import numpy as np

    ticks = np.arange(low, high + step / 2, step)
    axes.set_xlim(low - 0.02, high + 0.02)
    axes.set_xticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.grid(axis="x", **GRID)
    axes.set_axisbelow(True)
