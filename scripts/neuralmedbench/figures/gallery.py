"""All figures of the report with their tables, titles and descriptions, written as SVG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.figures import parts, rates
from neuralmedbench.figures.drawings import empty_figure
from neuralmedbench.figures.style import styled
from neuralmedbench.figures.svg import save_figure
from neuralmedbench.figures.table import (
    FEWEST_COLUMN,
    SMALL,
    Row,
    few_note,
    first_sentences,
    groups,
    in_order,
    model_order,
    with_titles,
)
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_table
from neuralmedbench.records.results import FEWEST as FEWEST_PATIENTS
from neuralmedbench.records.results import files_of, mark_of, types_of_table

FEW_PATIENTS = "Not shown: too few patients who are not public."


@dataclass(frozen=True)
class Figure:
    """One figure, drawn from one table, with title and description for people who cannot see it.

    Attributes
    ----------
    table : str
        Name of the table.
    title : str
        Title of the figure.
    empty : str
        Sentence shown in its place if no row of the table can be drawn.
    keep : callable
        Selects the rows to draw.
    draw : callable
        Draws these rows, at least one.
    sentence : callable
        Describes the rows of one panel, after the name of the panel.
    panel : str
        Column of the kept rows with the name of their panel.
    """

    table: str
    title: str
    empty: str
    keep: Callable[[list[Row]], list[Row]]
    draw: Callable[[list[Row]], Any]
    sentence: Callable[[str, list[Row]], str]
    panel: str = "benchmark"

    def description(self, rows: list[Row]) -> str:
        """Describe the figure of a table in at most three sentences, and its grey marks."""
        kept = self.keep(rows)
        panels = groups(kept, self.panel).items()
        sentences = [self.sentence(name, part) for name, part in panels]
        return first_sentences(sentences) + few_note(kept) if kept else self._nothing(rows)

    @property
    def files(self) -> tuple[str, ...]:
        """Files of its table."""
        return files_of(self.table)

    def save(self, path: Path, rows: list[Row]) -> None:
        """Draw a table into an SVG file; equal rows give equal bytes."""
        kept = self.keep(rows)
        with styled():
            figure = self.draw(kept) if kept else empty_figure(self._nothing(rows))
            save_figure(path, figure, title=self.title, description=self.description(rows))

    def _nothing(self, rows: list[Row]) -> str:
        """Return why nothing is drawn: patients who are not public, few patients, or no row."""
        if any(mark_of(row) for row in rows):
            return FEW_PATIENTS
        kinds = types_of_table(self.table)
        numbers = [name for name, kind in kinds.items() if kind == "float"]
        # a public report has emptied the rows of few patients
        for row in rows:
            if row.get("few_patients") and not any(row[name] for name in numbers):
                return f"Not shown: fewer than {FEWEST_PATIENTS} patients."
        return self.empty


FIGURES = {
    "leaderboard": Figure(
        "leaderboard",
        "Leaderboard",
        "No model has been scored yet.",
        rates.keep_leaderboard,
        rates.draw_leaderboard,
        rates.leader_words,
    ),
    "glance": Figure(
        "leaderboard",
        "Breadth and depth",
        "No model has pass@1 on a set of breadth and on one of depth.",
        rates.keep_both_axes,
        rates.draw_axes,
        rates.axes_words,
        "panel",
    ),
    "arms": Figure(
        "arms",
        "What pictures and text are worth",
        "No answer under an arm other than full.",
        rates.keep_arms,
        rates.draw_arms,
        rates.arm_words,
    ),
    "title": Figure(
        "title",
        "Recognised or found",
        "No model was asked the same cases as a choice and openly.",
        rates.keep_title,
        rates.draw_title,
        rates.title_words,
    ),
    "reliability": Figure(
        "confidence",
        "Confidence and truth",
        "No answer of this run comes with a confidence.",
        parts.keep_reliability,
        parts.draw_reliability,
        parts.calibration_words,
    ),
    "heatmap": Figure(
        "rates",
        "Rates by group",
        "No model has been scored yet.",
        parts.keep_heatmap,
        parts.draw_heatmap,
        parts.group_words,
    ),
    "errors": Figure(
        "errors",
        "Errors by class",
        "No grader and no clinician has labelled errors.",
        parts.keep_errors,
        parts.draw_errors,
        parts.error_words,
        "panel",
    ),
    "cost": Figure(
        "costs",
        "Cost and pass@1",
        "No model of this run has a price in its yaml or reports its tokens.",
        rates.keep_cost,
        rates.draw_cost,
        rates.cost_words,
    ),
    "case_flow": Figure(
        "case_flow",
        "Case flow",
        "No benchmark lists a case.",
        parts.keep_case_flow,
        parts.draw_case_flow,
        parts.flow_words,
        "panel",
    ),
}


def draw_figures(tables: Path, folder: Path, *, fewest: int = SMALL) -> None:
    """Draw every figure.

    Parameters
    ----------
    tables : Path
        Folder of the tables of results.
    folder : Path
        Output folder of `<name>.svg`; equal tables give equal bytes.
    fewest : int
        Groups of fewer patients are marked as small.

    Raises
    ------
    DataError
        If a table is missing.
    """
    models = model_order(read_table(tables / "leaderboard.csv"))
    for name, figure in FIGURES.items():
        rows = read_result(tables, figure.table)
        if figure.table != "leaderboard":  # in the order of its ranks
            rows = in_order(rows, models)
        rows = [row | {FEWEST_COLUMN: str(fewest)} for row in with_titles(rows, models)]
        figure.save(folder / f"{name}.svg", rows)
