"""The figure of the errors by class."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, named
from neuralmedbench.figures.style import DARK, GRID, INK, WIDTH_IN
from neuralmedbench.figures.table import Row, first_sentences, groups, having, number, rate_words, value_of
from neuralmedbench.records.words import percent, spaced

CLASSES = {
    "perceptual_failure": ("#56b4e9", "////"),
    "visual_hallucination": ("#3f97cc", "++++"),
    "reasoning_failure": ("#e69f00", "\\\\\\\\"),
    "knowledge_gap": ("#009e73", "xxxx"),
    "grounding_error": ("#cc79a7", "----"),
    "communication": ("#9aa3ad", "||||"),
}
"""The paper's classes, then the group of ours that has none, in the order of the bars: colour, and hatch."""

COMMUNICATION = "communication"
SIDES = {"per_response": "of all answers", "per_wrong": "of the wrong answers"}
TICKS_IN_VIEW = 4


def keep_errors(rows: list[Row]) -> list[Row]:
    """Rows by class of the paper, and the group that has none; with a column `class` and a column `panel`."""
    kept = [
        row for row in having(rows, "per_response") if row["level"] == "class" or (row["level"], row["group"]) == ("group", COMMUNICATION)
    ]
    return [{**row, "class": row["paper_class"] or row["group"], "panel": _panel(row)} for row in kept]


def _panel(row: Row) -> str:
    if row["simulated"] == "true":
        return f"{row['benchmark']}: labelled by simulated raters"
    return f"{row['benchmark']}: labelled by {'clinicians, round ' if row['kind'] == 'round' else 'the grader '}{row['source']}"


def draw_errors(rows: list[Row]) -> Any:
    """Draw which errors the answers make, of all answers and of the wrong ones (from errors.csv)."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    lines = {name: groups(part, "model") for name, part in groups(rows, "panel").items()}
    inches = [0.34 * len(part) for part in lines.values()]
    size = (WIDTH_IN, sum(inches) + 0.75 * len(lines) + 1.0)
    figure, grid = plt.subplots(
        len(lines), 2, figsize=size, squeeze=False, height_ratios=inches, sharey="row", sharex="col", layout="constrained"
    )
    for panels, (title, models) in zip(grid, lines.items(), strict=True):
        # it may reach over both panels: an empty title keeps its height free, and its own width takes no part in the layout
        panels[0].set_title("\u00a0")
        head = {"xycoords": "axes fraction", "textcoords": "offset points", "fontweight": "bold", "fontsize": 10.5}
        panels[0].annotate(title, (0, 1), xytext=(0, 6), **head).set_in_layout(False)
        for panel, column in zip(panels, SIDES, strict=True):
            panel.set_ylim(len(models) - 0.4, -0.6)
            panel.set_yticks(range(len(models)), [_label(part) for part in models.values()])
            panel.grid(axis="x", **GRID)
            panel.set_axisbelow(True)
            panel.tick_params(labelbottom=True)
            for y, part in enumerate(models.values()):
                _bar(panel, part, y, column)
    for panel, label in zip(grid[-1], SIDES.values(), strict=True):
        panel.set_xlabel(f"share {label}", fontsize=9)
        panel.set_xlim(left=0)
        panel.xaxis.set_major_locator(MaxNLocator(TICKS_IN_VIEW))
        panel.xaxis.set_major_formatter(lambda share, _: percent(share))
    note = f"Classes are added up: an answer may have errors of several.{dagger_note(rows)}"
    _legend(figure, {row["class"] for row in rows}, note)
    return figure


def describe_errors(rows: list[Row]) -> str:
    """Tell the most frequent class of each source, and in which model."""
    return first_sentences(_commonest(name, part) for name, part in groups(rows, "panel").items())


def _commonest(panel: str, rows: list[Row]) -> str:
    wrong = having(rows, "per_wrong")
    if not wrong:
        return f"{panel}: no wrong answer."
    most = max(wrong, key=lambda row: value_of(row, "per_wrong"))
    serious = "" if number(most["significant"]) is None else f", {percent(most['significant'])} of these labels significant"
    return (
        f"{panel}: most often {spaced(most['class'])} in {most['model']}, in {rate_words(most, 'per_wrong', ('wrong_low', 'wrong_high'))} of its"
        f" {most['n_wrong']} wrong answers{serious}."
    )


def _label(part: list[Row]) -> str:
    return f"{named(part[0])}, n = {max(part, key=lambda row: number(row['n']) or 0)['n']}"


def _bar(panel: Any, rows: list[Row], y: float, column: str) -> None:
    left, by_class = 0.0, {row["class"]: row for row in rows}
    for name, (colour, hatch) in CLASSES.items():
        row = by_class.get(name)
        width = (number(row[column]) or 0.0) if row else 0.0
        if row is None or not width:
            continue
        serious = width * (number(row["significant"]) or 0.0)
        if serious:
            panel.barh(y, serious, left=left, height=0.62, facecolor=colour, edgecolor=DARK, hatch=hatch, linewidth=0)
        if width - serious > 1e-9:
            panel.barh(y, width - serious, left=left + serious, height=0.62, facecolor="none", edgecolor=colour, hatch=hatch, linewidth=0)
        panel.barh(y, width, left=left, height=0.62, facecolor="none", edgecolor=INK, linewidth=0.9)
        left += width


def _legend(figure: Any, names: set[str], note: str) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=DARK, linewidth=0, label=spaced(name))
        for name, (colour, hatch) in CLASSES.items()
        if name in names
    ]
    handles.append(Patch(facecolor="none", edgecolor=INK, linewidth=0.9, label="hatch alone: not clinically significant"))
    look = {"columnspacing": 1.6, "title": note, "title_fontsize": 9}
    figure.legend(handles=handles, loc="outside lower center", ncols=3, **look)
