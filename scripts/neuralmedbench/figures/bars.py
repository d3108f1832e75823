"""Figures of shares: errors by class, pass@1 with and without findings in words, and the case flow."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, label_rows, names, panels
from neuralmedbench.figures.style import COLOURS, DARK, FAINT, GRID, INK, WIDTH_IN, drawn_for
from neuralmedbench.figures.table import (
    Row,
    first_sentences,
    groups,
    having,
    number,
    rate_words,
    title_of,
    value_of,
)
from neuralmedbench.records.results import SIMULATED, by_measure
from neuralmedbench.records.words import percent, spaced

CLASSES = {
    "perceptual_failure": ("#56b4e9", "////"),
    "visual_hallucination": ("#3f97cc", "++++"),
    "reasoning_failure": ("#e69f00", "\\\\\\\\"),
    "knowledge_gap": ("#009e73", "xxxx"),
    "grounding_error": ("#cc79a7", "----"),
    "communication": ("#9aa3ad", "||||"),
}
"""Colour and hatch of the classes of the paper, then of our group without a class, in the order of the bars."""

COMMUNICATION = "communication"
SIDES = {"per_response": "of all answers", "per_wrong": "of the wrong answers"}
FEW = {"per_response": "few_patients", "per_wrong": "few_wrong"}
"""Columns that mark a share of few patients."""

TICKS_IN_VIEW = 4
"""Intervals between ticks of the x axis, at most."""


def keep_errors(rows: list[Row]) -> list[Row]:
    """Return the shares of each class of the paper, and of the group without a class, as one row; add the columns `class` and `panel`."""
    kept = []
    for (*_, source, part, name), of_kind in by_measure(rows, "source", "slice", "value_of_slice").items():
        row = of_kind.get("per_response")
        if (part == "class" or (part, name) == ("group", COMMUNICATION)) and row and number(row["value"]) is not None:
            wrong, significant = of_kind["per_wrong"], of_kind["significant"]
            shares = {"per_response": row["value"], "per_wrong": wrong["value"], "significant": significant["value"]}
            ends = {"wrong_low": wrong["low"], "wrong_high": wrong["high"]}
            ends |= {"n_wrong": wrong["n_answers"], "few_wrong": wrong["few_patients"]}
            kept.append({**row, **shares, **ends, "class": name, "panel": _errors_title(row["benchmark"], source)})
    return kept


def _errors_title(benchmark: str, source: str) -> str:
    if source.startswith(SIMULATED):
        return f"{benchmark}: labelled by simulated raters"
    return f"{benchmark}: labelled by {'clinicians, ' if ' ' in source else 'the grader '}{source}"


def draw_errors(rows: list[Row]) -> Any:
    """Draw the share of each class of error among all answers and among the wrong ones (from measures.csv)."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    labels, lines = names(rows), {name: groups(part, "model") for name, part in groups(rows, "panel").items()}
    # bars have the same height in every panel, so panels grow with their number of models
    inches = [0.34 * len(part) for part in lines.values()]
    size = (WIDTH_IN, sum(inches) + 0.75 * len(lines) + 1.0)
    figure, grid = plt.subplots(
        len(lines), 2, figsize=size, squeeze=False, height_ratios=inches, sharey="row", sharex="col", layout="constrained"
    )
    for pair, (title, models) in zip(grid, lines.items(), strict=True):
        # the title may span both panels: an empty title reserves its height, and its width is left out of the layout
        pair[0].set_title("\u00a0")
        head = {"xycoords": "axes fraction", "textcoords": "offset points", "fontweight": "bold", "fontsize": 10.5}
        pair[0].annotate(title, (0, 1), xytext=(0, 6), **head).set_in_layout(False)
        for panel, column in zip(pair, SIDES, strict=True):
            panel.set_ylim(len(models) - 0.4, -0.6)
            label_rows(panel, [part[0] for part in models.values()], [_label(labels[model], part) for model, part in models.items()])
            panel.grid(axis="x", **GRID)
            panel.set_axisbelow(True)
            panel.tick_params(labelbottom=True)
            for y, part in enumerate(models.values()):
                with drawn_for(panel, part[0]["model"]):
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
    """Describe the most frequent class of each source, and its model."""
    return first_sentences(_commonest(name, part) for name, part in groups(rows, "panel").items())


def _commonest(panel: str, rows: list[Row]) -> str:
    wrong = having(rows, "per_wrong")
    if not wrong:
        return f"{panel}: {'no wrong answer' if all(row['n_wrong'] == '0' for row in rows) else 'too few wrong answers to show'}."
    most = max(wrong, key=lambda row: value_of(row, "per_wrong"))
    serious = "" if number(most["significant"]) is None else f", {percent(most['significant'])} of these labels significant"
    return (
        f"{panel}: most often {spaced(most['class'])} in {title_of(most)}, in {rate_words(most, 'per_wrong', ('wrong_low', 'wrong_high'))} of its"
        f" {most['n_wrong']} wrong answers{serious}."
    )


def _label(title: str, part: list[Row]) -> str:
    return f"{title}, n = {max(part, key=lambda row: number(row['n_answers']) or 0)['n_answers']}"


def _bar(panel: Any, rows: list[Row], y: float, column: str) -> None:
    left, by_class = 0.0, {row["class"]: row for row in rows}
    for name, (own, hatch) in CLASSES.items():
        row = by_class.get(name)
        width = (number(row[column]) or 0.0) if row else 0.0
        if row is None or not width:
            continue
        # filled: the clinically significant part; the rest has the hatch only
        serious = width * (number(row["significant"]) or 0.0)
        colour = FAINT if row[FEW[column]] else own
        if serious:
            panel.barh(y, serious, left=left, height=0.62, facecolor=colour, edgecolor=DARK, hatch=hatch, linewidth=0)
        # outline only: the part that is not clinically significant
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


STEPS = {"refused_import": "refused by the import", "quarantined_picture": "picture quarantined", "example": "kept as example"}
"""Labels of the steps of questions."""


def keep_case_flow(rows: list[Row]) -> list[Row]:
    """Keep cases, pictures and questions."""
    return [row for row in rows if row["unit"] not in ("file", "series")]


def draw_case_flow(rows: list[Row]) -> Any:
    """Draw the numbers of cases (or pictures, or questions) listed, left out at each step, and used (from case_flow.csv)."""
    flows = {name: groups(part, "step") for name, part in groups([{**row, "panel": _flow_title(row)} for row in rows], "panel").items()}
    figure, axes = panels([len(part) for part in flows.values()], around=0.55)
    for panel, (benchmark, steps) in zip(axes, flows.items(), strict=True):
        totals = _totals(steps)
        shown = [total for total in totals.values() if total is not None]
        left = totals.get("listed") or max(shown, default=0)  # a public table may hide how many were listed
        listed = max(left, 1)
        panel.set_title(benchmark)
        panel.set_yticks(range(len(totals)), [_step(step) for step in totals])
        panel.set_xticks([])
        panel.spines["bottom"].set_visible(False)
        panel.set_xlim(0, 1.12)
        for y, (step, total) in enumerate(totals.items()):
            if total is None:  # suppressed in a public run
                panel.text(0.012, y, "not shown", va="center", color=INK, fontsize=9)
                continue
            # a step that leaves cases out hangs at the right end of what was left before it
            kept = step in ("listed", "used")
            start = 0 if kept else (left - total) / listed
            look = {"color": COLOURS[0]} if kept else {"color": "none", "edgecolor": COLOURS[1], "hatch": "////"}
            panel.barh(y, total / listed, left=start, height=0.6, linewidth=0, **look)
            panel.text(start + total / listed + 0.012, y, f"{total:,}", va="center", color=INK, fontsize=9)
            left -= 0 if kept else total
    return figure


def describe_case_flow(rows: list[Row]) -> str:
    """Describe the numbers listed, left out and used."""
    parts = {
        name: _totals(groups(part, "step")) for name, part in groups([{**row, "panel": _flow_title(row)} for row in rows], "panel").items()
    }
    return first_sentences(f"{name}: {', '.join(map(_step_count, totals.items()))}." for name, totals in parts.items())


def _step_count(entry: tuple[str, int | None]) -> str:
    step, total = entry
    return f"{'not shown:' if total is None else f'{total:,}'} {_step(step)}"


def _totals(steps: dict[str, list[Row]]) -> dict[str, int | None]:
    """Sum each step; None if a public run suppresses a part of it."""
    counts = {step: [number(row["n"]) for row in part] for step, part in steps.items()}
    return {step: None if None in known else int(sum(one or 0 for one in known)) for step, known in counts.items()}


def _step(step: str) -> str:
    return STEPS.get(step, spaced(step).replace("quarantined ", "quarantined: "))


def _flow_title(row: Row) -> str:
    return f"{row['benchmark']}: questions" if row["unit"] == "question" else row["benchmark"]
