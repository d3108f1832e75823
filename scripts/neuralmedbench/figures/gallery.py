"""All figures of the report with their tables, titles and descriptions, written as SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from neuralmedbench.figures.bars import (
    describe_case_flow,
    describe_errors,
    draw_case_flow,
    draw_errors,
    keep_case_flow,
    keep_errors,
)
from neuralmedbench.figures.matrices import describe_heatmap, draw_heatmap, keep_heatmap
from neuralmedbench.figures.panels import empty_figure
from neuralmedbench.figures.rates import (
    describe_arms,
    describe_axes,
    describe_cost,
    describe_leaderboard,
    draw_arms,
    draw_axes,
    draw_cost,
    draw_leaderboard,
    keep_both_axes,
    keep_cost,
)
from neuralmedbench.figures.style import MODEL_ID, styled
from neuralmedbench.figures.table import FEWEST_COLUMN, SMALL, Row, few_note, having, in_order, model_order, with_rate, with_titles
from neuralmedbench.figures.trust import (
    describe_reliability,
    draw_reliability,
    keep_reliability,
)
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_table
from neuralmedbench.records.results import FEWEST as FEWEST_PATIENTS
from neuralmedbench.records.results import PASS1_PATIENTS, files_of, mark_of, types_of_table
from neuralmedbench.runtime.atomic_write import write_text

FONT = re.compile(r"^(?:(?P<weight>bold|[0-9]{3}) )?(?P<size>[0-9.]+)px (?P<family>.+)$")


def save_figure(path: Path, figure: Any, *, title: str, description: str) -> None:
    """Write a matplotlib figure as SVG, with title and description for screen readers; the figure is closed."""
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    # without date and creator, equal figures have equal bytes
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.06)
    plt.close(figure)
    write_text(path, plain_svg(buffer.getvalue(), title, description))


def plain_svg(text: str, title: str, description: str) -> str:
    """Turn matplotlib's SVG into a self-contained element: attributes instead of styles, title and description first.

    The content policy of the page allows no inline styles.
    """
    body = text[text.index("<svg") :]
    # metadata, style sheets, empty definitions and comments
    body = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<defs>\s*</defs>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' style="([^"]*)"', lambda match: _attributes(match[1]), body)
    body = re.sub(rf' id="{MODEL_ID}([^"]*)"', r' data-model="\1"', body)
    # a hundredth of a pixel is enough, and turning by nothing is not needed
    body = re.sub(r"(\.\d\d)\d{3,}", r"\1", re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", body))
    body = re.sub(r"\n\s*\n+", "\n", body)
    head = f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>'
    # the page sets the size; the view box stays
    opening = re.sub(r' (?:width|height)="[^"]*pt"', "", body[: body.index(">")])
    opening = f'{opening} role="img" aria-labelledby="title desc" stroke-linejoin="round" stroke-linecap="butt"'
    return f"{opening}>\n{head}{body[body.index('>') + 1 :].rstrip()}\n"


def _attributes(style: str) -> str:
    attributes: dict[str, str] = {}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        # matplotlib writes `font: bold 10px 'DejaVu Sans'`; the page has its own font family
        font = FONT.match(value) if name == "font" else None
        if font:
            attributes |= {"font-size": font["size"], "font-family": "sans-serif"}
            if font["weight"]:
                attributes["font-weight"] = font["weight"]
        elif name:
            attributes[name] = value
    return "".join(f' {name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in attributes.items())


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
    describe : callable
        Describes them in at most three sentences.
    slice : str
        The one slice of the table that it is about; all rows if empty.
    """

    table: str
    title: str
    empty: str
    keep: Callable[[list[Row]], list[Row]]
    draw: Callable[[list[Row]], Any]
    describe: Callable[[list[Row]], str]
    slice: str = ""

    def description(self, rows: list[Row]) -> str:
        """Describe the figure of a table."""
        kept = self.keep(rows)
        return self.describe(kept) + few_note(kept) if kept else self._nothing(rows)

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
        rows = [row for row in rows if not self.slice or row["slice"] == self.slice]
        if any(mark_of(row) for row in rows):
            return FEW_PATIENTS
        numbers = [name for name, kind in types_of_table(self.table).items() if kind == "float"]
        # a public report has emptied the rows of few patients
        emptied = any(row.get("few_patients") and not any(row[name] for name in numbers) for row in rows)
        return f"Not shown: fewer than {FEWEST_PATIENTS} patients." if emptied else self.empty


def _with(*columns: str) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: having(rows, *columns)


def _with_pass1(rows: list[Row]) -> list[Row]:
    return with_rate(rows, PASS1_PATIENTS)


FEW_PATIENTS = "Not shown: too few patients who are not public."
NO_CONFIDENCE = "No answer of this run comes with a confidence."
FIGURES = {
    "leaderboard": Figure(
        "leaderboard", "Leaderboard", "No model has been scored yet.", _with_pass1, draw_leaderboard, describe_leaderboard
    ),
    "glance": Figure(
        "leaderboard",
        "Breadth and depth",
        "No model has pass@1 on a set of breadth and on one of depth.",
        keep_both_axes,
        draw_axes,
        describe_axes,
    ),
    "arms": Figure(
        "arms",
        "What pictures and text are worth",
        "No answer under an arm beside full is here.",
        _with("difference"),
        draw_arms,
        describe_arms,
    ),
    "reliability": Figure(
        "confidence",
        "Confidence and truth",
        NO_CONFIDENCE,
        keep_reliability,
        draw_reliability,
        describe_reliability,
    ),
    "heatmap": Figure("rates", "Rates by group", "There is nothing to slice yet.", keep_heatmap, draw_heatmap, describe_heatmap),
    "errors": Figure(
        "errors", "Errors by class", "No grader and no clinician has labelled errors.", keep_errors, draw_errors, describe_errors
    ),
    "cost": Figure(
        "costs",
        "Cost and pass@1",
        "No model of this run has a price in its yaml or reports its tokens, so there is no cost to weigh against pass@1.",
        keep_cost,
        draw_cost,
        describe_cost,
    ),
    "case_flow": Figure("case_flow", "Case flow", "No benchmark lists a case.", keep_case_flow, draw_case_flow, describe_case_flow),
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
