"""Style of all figures: one colour and one marker per model, and one text colour that the page may replace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from neuralmedbench.records.results import PRIOR

INK = "#22262b"
"""Colour of text and lines; the report replaces it by that of its text, so that figures follow the dark theme."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c775a3", "#c48300", "#3f97cc", "#8c6bb1", "#7f7f7f")
"""Colours of Okabe and Ito without black and yellow, then two more; purple, orange and sky blue are darker than the originals, so that each
colour has a contrast of at least 3:1 on the light and on the dark page."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
ORDERS = ((0, 1, 2, 3, 4, 5, 6, 7), (4, 3, 6, 1, 0, 7, 2, 5), (7, 5, 4, 6, 2, 1, 3, 0))
"""Marker of each colour at its first, second and third use: colours that share a marker can be distinguished with any kind of colour
blindness (a test simulates them)."""


DARK, LIGHT = "#040506", "#ffffff"
"""Text colours on a coloured background, equal in both themes as the background is."""

FAINT = "#8b9299"
"""Colour of marks about fewer than five patients."""

QUARTERS = ((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))
"""Places and labels of the ticks of an axis of shares."""

GRID = {"color": INK, "alpha": 0.12, "linewidth": 0.8}
WIDTH_IN = 9.6
"""Width of a figure in inches: nearly that of the page's column, on which an inch has 100 px (`report.source.CSS_PX_PER_UNIT`)."""

PARAMETERS: dict[str, Any] = {
    "figure.constrained_layout.h_pad": 0.08,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a title with dollar signs is text
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
    "hatch.linewidth": 0.8,
}


@dataclass(frozen=True)
class Look:
    """Colour and marker of a model; hollow for the reference `prior`."""

    colour: str
    marker: str
    hollow: bool = False

    def of(self, row: Mapping[str, str]) -> Look:
        """Return the look of a row's mark: grey if it is about fewer than five patients."""
        return replace(self, colour=FAINT) if row.get("few_patients") else self

    @property
    def point(self) -> dict[str, Any]:
        """Arguments of a matplotlib line that draws a point."""
        face = "none" if self.hollow else self.colour
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": face, "markeredgewidth": 1.4}


def looks(models: Iterable[str]) -> dict[str, Look]:
    """Assign colours and markers to models in alphabetical order, so that they are the same in every figure and table.

    Examples
    --------
    >>> looks(["beta", "alpha", "prior"])["alpha"].marker
    'o'
    """
    assigned = {PRIOR: Look(INK, "o", hollow=True)}
    for place, name in enumerate(sorted(set(models) - {PRIOR})):
        # the first 8 models get one colour each, further ones the colours again with other markers
        turn, colour = divmod(place, len(COLOURS))
        again, turn = divmod(turn, len(ORDERS))
        shape = (ORDERS[turn][colour] + again) % len(MARKERS)  # a colour used again has another marker
        assigned[name] = Look(COLOURS[colour], MARKERS[shape])
    return assigned


MODEL_ID = "model:"
"""Start of the SVG id of what is drawn for one model; `gallery.plain_svg` turns it into a `data-model` attribute."""


@contextmanager
def drawn_for(axes: Any, model: str) -> Iterator[None]:
    """Mark everything that is added to `axes` as drawn for a model, so that the page can hide or highlight it."""
    before = set(axes.get_children())
    yield
    mark_model((artist for artist in axes.get_children() if artist not in before), model)


def mark_model(artists: Iterable[Any], model: str) -> None:
    """Mark artists, such as the label of a row, as drawn for a model; an empty name is none."""
    for artist in artists:
        artist.set_gid(f"{MODEL_ID}{model}" if model else None)


def luminance(colour: str) -> float:
    """Relative luminance of a colour "#rrggbb", 0 (black) to 1 (white), as WCAG 2.2 defines it.

    Examples
    --------
    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    # sRGB to linear light, then weighted by the sensitivity of the eye
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the parameters of this module instead of those of the machine."""
    import matplotlib as mpl

    # drawing to files needs no display
    mpl.use("Agg")
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(PARAMETERS)  # type: ignore[arg-type]
        yield


def percent_axis(axes: Any, *, low: float = 0.0, high: float = 1.0) -> None:
    """Set the x axis to percent, with light vertical grid lines."""
    import numpy as np

    ticks = np.arange(low, high + 0.125, 0.25)
    axes.set_xlim(low - 0.02, high + 0.02)
    axes.set_xticks(ticks, [f"{100 * tick:.0f} %".replace("-", "−") for tick in ticks])
    axes.grid(axis="x", **GRID)
    axes.set_axisbelow(True)
