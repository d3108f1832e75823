"""Figures of trust: reliability of repeats, calibration of the models' confidence, and agreement of graders with clinicians."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, looks_of, names, short
from neuralmedbench.figures.style import GRID, INK, WIDTH_IN, Look, drawn_for
from neuralmedbench.figures.table import (
    Row,
    first_sentences,
    groups,
    having,
    number,
    title_of,
    value_of,
)
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.words import counted, percent

TICKS, LABELS = (0, 0.5, 1), ("0 %", "50 %", "100 %")
SOURCES = {"stated": "stated by the model", "agreement": "agreement of its samples", "tokens": "probability of its tokens"}
SHAPES = {"stated": "o", "agreement": "D", "tokens": "s"}
LINES: dict[str, Any] = {"stated": "-", "agreement": (0, (4, 2)), "tokens": (0, (1, 1.5))}
SIDES = ("left", "center", "right")
ACROSS, PANEL_IN = 5, 1.8


def keep_reliability(rows: list[Row]) -> list[Row]:
    """Keep the bins of confidence: the share right, with the column `mean_confidence` unless it is there."""
    bins = by_measure((row for row in having(rows, "value") if row["slice"] == "bin"), "source", "value_of_slice").values()
    return [{"mean_confidence": of.get("mean_confidence", {}).get("value", ""), **of["share_right"]} for of in bins]


def draw_reliability(rows: list[Row]) -> Any:
    """Draw mean confidence against the share of right answers, one panel per model and benchmark, arm full (from measures.csv)."""
    style, grouped, labels = looks_of(rows), groups(rows, "benchmark"), names(rows, 22)
    parts = {benchmark: groups(part, "model") for benchmark, part in grouped.items()}
    figure, panels = _grid([len(models) for models in parts.values()], ACROSS, PANEL_IN)
    for line, (benchmark, models) in zip(panels, parts.items(), strict=True):
        for panel, (model, part) in zip(line, models.items(), strict=True):
            panel.set_title(
                f"{labels[model]}\n{short(benchmark, 24)}",
                fontsize=8.5,
                fontweight="normal",
            )
            panel.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.35)
            for source, points in groups(part, "source").items():
                with drawn_for(panel, model):
                    _curve(panel, points, source, style[model])
    figure.supylabel("share of the answers that is right", fontsize=9)
    _sources(figure, [source for source in SOURCES if any(row["source"] == source for row in rows)], f"mean confidence{dagger_note(rows)}")
    return figure


def describe_reliability(rows: list[Row]) -> str:
    """Describe the worst calibrated bin of each benchmark."""
    grouped = groups(rows, "benchmark")
    return first_sentences(
        f"{name}: {counted(len({row['model'] for row in part}), 'model')}; farthest from the truth is {title_of(far)} ({SOURCES[far['source']]}): mean"
        f" confidence {percent(far['mean_confidence'])}, right {percent(far['value'])}, {far['n_answers']} answers."
        for name, part, far in ((name, part, max(part, key=_distance)) for name, part in grouped.items())
    )


def _distance(row: Row) -> float:
    return abs(value_of(row, "mean_confidence") - value_of(row, "value"))


def _grid(counts: list[int], across: int, inches: float) -> tuple[Any, list[list[Any]]]:
    """Return a figure with square panels, `counts` of them per part; every part starts a new line."""
    import matplotlib.pyplot as plt

    # no more columns than the largest part needs; a narrow grid gets half the width
    across = min(across, max(counts))
    lines = [-(-count // across) for count in counts]
    width = WIDTH_IN if across * inches > WIDTH_IN / 2 else WIDTH_IN / 2
    size = (width, sum(lines) * (inches + 0.2) + 0.7)
    figure, grid = plt.subplots(sum(lines), across, figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained")
    panels, first = [], 0
    for count, down in zip(counts, lines, strict=True):
        cells = [panel for line in grid[first : first + down] for panel in line]
        for panel in cells[:count]:
            panel.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
            for label, side in zip(panel.set_xticks(TICKS, LABELS, fontsize=8), SIDES, strict=True):
                label.label1.set_horizontalalignment(side)  # keeps 100 % clear of the 0 % of the next panel
            panel.set_yticks(TICKS, LABELS, fontsize=8)
            panel.grid(**GRID)
        for panel in cells[count:]:
            panel.axis("off")
        # the lowest panel of each column shows the tick labels
        for panel in cells[max(0, count - across) : count]:
            panel.tick_params(labelbottom=True)
        panels.append(cells[:count])
        first += down
    return figure, panels


def _curve(panel: Any, rows: list[Row], source: str, look: Look) -> None:
    x, y = ([value_of(row, name) for row in rows] for name in ("mean_confidence", "value"))
    panel.plot(x, y, color=look.colour, linewidth=1, linestyle=LINES[source])
    for shade, part in groups([{**row, "shade": look.of(row).colour} for row in rows], "shade").items():
        x, y = ([value_of(row, name) for row in part] for name in ("mean_confidence", "value"))
        face = shade if source == "stated" else "none"
        panel.plot(x, y, linestyle="none", marker=SHAPES[source], markersize=5, color=shade, markerfacecolor=face)
        # bins without an interval get no whisker
        ends = [(number(row["low"]), number(row["high"])) for row in part]
        known = [(place, low, high) for place, (low, high) in zip(x, ends, strict=True) if low is not None and high is not None]
        if known:
            panel.vlines(*zip(*known, strict=True), color=shade, linewidth=1, alpha=0.75)


def _sources(figure: Any, sources: list[str], label: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=INK, linewidth=1, linestyle=LINES[one], marker=SHAPES[one], markersize=5, label=SOURCES[one])
        for one in sources
    ]
    for handle, source in zip(handles, sources, strict=True):
        handle.set_markerfacecolor(INK if source == "stated" else "none")
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.6, title=label, title_fontsize=9)
