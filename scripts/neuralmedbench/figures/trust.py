"""The figure of graders beside clinicians."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import panels, short
from neuralmedbench.figures.style import COLOURS, GRID, INK
from neuralmedbench.figures.table import Row, first_sentences, groups, number, value_of
from neuralmedbench.records.words import spaced

KINDS = {"clinician": ("o", COLOURS[2]), "grader": ("s", COLOURS[0]), "similarity": ("^", COLOURS[1])}
"""Who is held against clinicians, in the order of the rows: marker and colour."""

NAMES = {"clinician": "raters among each other (the ceiling)", "grader": "a grader", "similarity": "similarity of words (a baseline)"}
MEASURES = {"clinician": "icc", "grader": "icc", "similarity": "pearson"}
"""Similarity has no scale of points: it can only be correlated."""

SHORT = {"icc": "ICC", "pearson": "r"}


def keep_trust(rows: list[Row]) -> list[Row]:
    """Rows over all models, by answer, with their coefficient; with a column `panel`."""
    over_all = [row for row in rows if row["level"] == "response" and not row["model"] and row["kind"] in KINDS]
    kept = [row for row in over_all if number(row[MEASURES[row["kind"]]]) is not None]
    kept.sort(key=lambda row: list(KINDS).index(row["kind"]))
    return [
        {**row, "panel": f"{row['benchmark']}: {'simulated raters, no clinicians' if row['simulated'] == 'true' else 'clinicians'}"}
        for row in kept
    ]


def draw_trust(rows: list[Row]) -> Any:
    """Draw how well each judge agrees with clinicians, beside how well they agree with each other (from grader_vs_clinician.csv)."""
    found = groups(rows, "panel")
    figure, axes = panels([len(part) for part in found.values()], entries=3)
    ends = [number(row[f"{MEASURES[row['kind']]}{end}"]) or 0.0 for row in rows for end in ("", "_low")]
    left = -0.02 if min(ends) >= 0 else -0.27 if min(ends) >= -0.25 else -1.02
    for panel, (title, part) in zip(axes, found.items(), strict=True):
        panel.set_title(title)
        panel.set_xlim(left, 1.02)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
        panel.grid(axis="x", **GRID)
        panel.set_axisbelow(True)
        if left < -0.1:
            panel.axvline(0, color=INK, linewidth=1)
        panel.set_yticks(range(len(part)), [_label(row) for row in part])
        for y, row in enumerate(part):
            _mark(panel, row, y)
    axes[-1].set_xlabel("agreement with one rater on single answers (ICC; r of similarity); 1 is perfect")
    _legend(figure, {row["kind"] for row in rows})
    return figure


def describe_trust(rows: list[Row]) -> str:
    """Tell the agreement of clinicians with each other, and of the best grader and the best similarity with them."""
    return first_sentences(f"{name}: {', '.join(_best(part))}." for name, part in groups(rows, "panel").items())


def _best(rows: list[Row]) -> list[str]:
    said = []
    for kind, part in groups(rows, "kind").items():
        measure = MEASURES[kind]
        most = max(part, key=lambda row: value_of(row, measure))
        low, high = number(most[f"{measure}_low"]), number(most[f"{measure}_high"])
        within = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
        who = {"clinician": "among each other", "grader": f"grader {most['judge']}"}.get(kind, spaced(most["judge"]))
        said.append(f"{who} {SHORT[measure]} {value_of(most, measure):.2f}{within}, {most['n']} answers")
    return said


def _mark(panel: Any, row: Row, y: float) -> None:
    measure, (marker, colour) = MEASURES[row["kind"]], KINDS[row["kind"]]
    value, low, high = (number(row[f"{measure}{end}"]) for end in ("", "_low", "_high"))
    if low is not None and high is not None:
        if row["kind"] == "clinician":
            panel.axvspan(low, high, color=colour, alpha=0.12, linewidth=0)
        panel.plot([low, high], [y, y], color=colour, linewidth=1.4, solid_capstyle="round")
    if row["kind"] == "clinician":
        panel.axvline(value, color=colour, linewidth=1, linestyle=(0, (4, 3)))
    panel.plot([value], [y], marker=marker, color=colour, linestyle="none", markersize=7.5)


def _label(row: Row) -> str:
    judge = (
        short(spaced(row["judge"])) if row["kind"] != "clinician" else f"another {'rater' if row['simulated'] == 'true' else 'clinician'}"
    )
    return f"{judge}\n{SHORT[MEASURES[row['kind']]]}, n = {row['n']}"


def _legend(figure: Any, kinds: set[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=7.5, label=NAMES[kind])
        for kind, (marker, colour) in KINDS.items()
        if kind in kinds
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handletextpad=0.3, columnspacing=1.6)
