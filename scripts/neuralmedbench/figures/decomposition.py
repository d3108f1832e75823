"""The headline figure: perception or reasoning."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, named, panels
from neuralmedbench.figures.style import DARK, INK, percent_axis
from neuralmedbench.figures.table import Row, first_sentences, groups, number, rate_words, sample_size, sample_size_range, value_of
from neuralmedbench.records.words import counted, percent, percent_span

PERCEPTION, REASONING, RIGHT = "#56b4e9", "#e69f00", "#c9ced4"
"""Grounds of the bars: a hatch and a line between them tell them apart as well."""

WIDE = 0.09
"""Part of the axis that a percentage needs."""


def draw_decomposition(rows: list[Row]) -> Any:
    """Draw what the findings repair and what they do not, the model with most right first (from decomposition.csv)."""
    found = groups(rows, "benchmark")
    figure, axes = panels([len(part) for part in found.values()], around=0.75, entries=3)
    for panel, (benchmark, rows_) in zip(axes, found.items(), strict=True):
        part = sorted(rows_, key=lambda row: (-value_of(row, "f"), row["model"]))
        panel.set_title(f"{benchmark}: {sample_size_range(part)}")
        percent_axis(panel)
        panel.set_yticks(range(len(part)), [named(row) for row in part])
        for y, row in enumerate(part):
            _bar(panel, row, y)
    axes[0].text(1.04, -0.75, "reasoning,\ninterval", va="bottom", fontsize=8)
    axes[-1].set_xlabel("share of all answers; in the bars: share of the errors" + dagger_note(rows))
    _segments(figure)
    return figure


def describe_decomposition(rows: list[Row]) -> str:
    """Tell which share of the errors of the best model the findings repair."""
    return first_sentences(_shares(name, part) for name, part in groups(rows, "benchmark").items())


def _shares(benchmark: str, rows: list[Row]) -> str:
    drawn = sorted((row for row in rows if row["drawn"] == "true"), key=lambda row: (-value_of(row, "f"), row["model"]))
    if not drawn:
        return f"{benchmark}: the errors of no model can be divided; {sample_size(rows[0])}."
    best = drawn[0]
    rest = f", {len(rows) - len(drawn)} not divided" if len(drawn) < len(rows) else ""
    return (
        f"{benchmark}: of the errors of {best['model']}, right in {rate_words(best, 'f')} without help, the findings repair"
        f" {rate_words(best, 'perception')} and leave {rate_words(best, 'reasoning')}; {counted(len(rows), 'model')}{rest}; {sample_size(best)}."
    )


def _bar(panel: Any, row: Row, y: float) -> None:
    right, told_ = value_of(row, "f"), number(row["d"])
    panel.barh(y, right, height=0.62, color=RIGHT, linewidth=0)
    if row["drawn"] != "true" or told_ is None:
        panel.barh(y, 1 - right, left=right, height=0.62, color="none", edgecolor=INK, linewidth=0.8, alpha=0.5)
        if 1 - right > WIDE:
            panel.text(right + (1 - right) / 2, y, "not divided", ha="center", va="center", fontsize=8)
        return
    panel.barh(y, told_ - right, left=right, height=0.62, color=PERCEPTION, linewidth=0)
    panel.barh(y, 1 - told_, left=told_, height=0.62, color=REASONING, hatch="////", edgecolor="#a86f00", linewidth=0)
    panel.vlines([right, told_], y - 0.31, y + 0.31, color=INK, linewidth=1)
    if span := percent_span(row["reasoning_low"], row["reasoning_high"], "{}–{} %"):
        panel.text(1.04, y, span, va="center_baseline", fontsize=8.5)
    for share, left, width in (("perception", right, told_ - right), ("reasoning", told_, 1 - told_)):
        if width > WIDE and (value := number(row[share])) is not None:
            middle, ground = left + width / 2, min(width, 0.08)
            if share == "reasoning":  # a hatch behind a number would be hard to read
                panel.barh(y, ground, left=middle - ground / 2, height=0.44, color=REASONING, linewidth=0)
            panel.text(middle, y, percent(value), ha="center", va="center_baseline", fontsize=9, fontweight="bold", color=DARK)


def _segments(figure: Any) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=RIGHT, label="right without help"),
        Patch(facecolor=PERCEPTION, label="perception: the findings repair it"),
        Patch(facecolor=REASONING, hatch="////", edgecolor="#a86f00", linewidth=0, label="reasoning: they do not"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.6)
