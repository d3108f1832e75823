"""Every figure of the report: its table, its title, and the words that stand in for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.figures.confidence import draw_reliability, draw_risk_coverage
from neuralmedbench.figures.contrasts import draw_arms, draw_axes, draw_decomposition
from neuralmedbench.figures.flow import draw_case_flow
from neuralmedbench.figures.rates import draw_leaderboard, draw_passk, draw_slices
from neuralmedbench.figures.style import styled
from neuralmedbench.figures.svg import save_figure
from neuralmedbench.figures.table import Row
from neuralmedbench.io.tables import read_table


@dataclass(frozen=True)
class Figure:
    """One figure: drawn from one table, named and described for those who cannot see it."""

    table: str
    draw: Callable[[list[Row]], Any]
    title: str
    description: str


FIGURES = {
    "leaderboard": Figure(
        "leaderboard", draw_leaderboard, "Leaderboard", "pass@1 of every model with its interval, best first, by benchmark."
    ),
    "decomposition": Figure(
        "decomposition",
        draw_decomposition,
        "Perception or reasoning",
        "Share of the errors that disappear when the findings are told in words.",
    ),
    "axes": Figure("axes", draw_axes, "Breadth against depth", "Every model's pass@1 on breadth and on depth, with the intervals of both."),
    "arms": Figure("arms", draw_arms, "What pictures and text are worth", "Paired difference of pass@1 of each arm to the full request."),
    "passk": Figure(
        "leaderboard", draw_passk, "Capability and reliability", "All five right, pass@1, pass@5 and five candidates of every model."
    ),
    "reliability": Figure(
        "reliability",
        draw_reliability,
        "Confidence and truth",
        "Mean confidence against the share of answers that is right, by model and benchmark, in bins of about equally many answers.",
    ),
    "risk_coverage": Figure(
        "risk_coverage", draw_risk_coverage, "Answering only when sure", "Share right among the surest part of the answers of every model."
    ),
    "slices": Figure("rates", draw_slices, "Slices", "pass@1 of every model by family, level, sequence and kind of case."),
    "case_flow": Figure("case_flow", draw_case_flow, "Case flow", "Cases listed, left out with the step, and used."),
}


def draw_figures(tables: Path, folder: Path) -> None:
    """Draw every figure.

    Parameters
    ----------
    tables : Path
        Folder of the tables of results.
    folder : Path
        Where `<name>.svg` goes; equal tables give equal bytes.

    Raises
    ------
    DataError
        If a table is absent.
    """
    for name, figure in FIGURES.items():
        rows = read_table(tables / f"{figure.table}.csv")
        with styled():
            save_figure(folder / f"{name}.svg", figure.draw(rows), title=figure.title, description=figure.description)
