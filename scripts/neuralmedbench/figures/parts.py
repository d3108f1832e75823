"""Figures of parts: errors by class, case flow, calibration of confidence, and rates by group."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from neuralmedbench.figures.drawings import (
    Bar,
    BarRow,
    Cell,
    Dot,
    MatrixRow,
    add_legend,
    draw_bars,
    draw_curve,
    draw_matrix,
    line_handles,
    rate_colour,
    stacked,
    subplots,
)
from neuralmedbench.figures.style import COLOURS, DARK, FAINT, GRID, INK, WIDTH_IN, Look
from neuralmedbench.figures.table import (
    Row,
    clusters_of,
    dagger_note,
    fewest_of,
    groups,
    having,
    is_between,
    is_small,
    looks_of,
    models_of,
    names,
    number,
    rate_words,
    sample_size,
    short,
    title_of,
    value_of,
    whisker_of,
)
from neuralmedbench.records.results import (
    BOUNDS,
    FEWEST,
    HIDDEN,
    PRIOR,
    RANKED_DIFFERENTIAL,
    SIMULATED,
    by_measure,
    mark_of,
    with_board_names,
)
from neuralmedbench.records.words import counted, percent, spaced

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
    places = by_measure(rows, "source", "slice", "value_of_slice")
    for (*_, source, part, name), of_kind in places.items():
        row = of_kind.get("per_response", {})
        is_class = part == "class" or (part, name) == ("group", COMMUNICATION)
        if not is_class or number(row.get("value")) is None:
            continue
        wrong = of_kind["per_wrong"]
        shares = {"per_response": row["value"], "per_wrong": wrong["value"]}
        shares |= {"significant": of_kind["significant"]["value"]}
        shares |= {"wrong_low": wrong["low"], "wrong_high": wrong["high"]}
        shares |= {"n_wrong": wrong["n_answers"], "few_wrong": wrong["few_patients"]}
        panel = {"class": name, "panel": f"{row['benchmark']}: labelled by {_labeller(source)}"}
        kept.append(row | shares | panel)
    return kept


def _labeller(source: str) -> str:
    if source.startswith(SIMULATED):
        return "simulated raters"
    return f"{'clinicians, ' if ' ' in source else 'the grader '}{source}"


def draw_errors(rows: list[Row]) -> Any:
    """Draw the share of each class of error among all answers and among the wrong ones."""
    from matplotlib.ticker import MaxNLocator

    labels, panels = names(rows), groups(rows, "panel")
    lines = [list(groups(part, "model").values()) for part in panels.values()]
    # bars have the same height in every panel, so panels grow with their number of models
    inches = [0.34 * len(models) for models in lines]
    size = (WIDTH_IN, sum(inches) + 0.75 * len(lines) + 1.0)
    shared: dict[str, Any] = {"height_ratios": inches, "sharey": "row", "sharex": "col"}
    figure, grid = subplots(len(lines), 2, size, **shared)
    for pair, title, models in zip(grid, panels, lines, strict=True):
        # the title may span both panels: an empty title reserves its height
        pair[0].set_title("\u00a0")
        head: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "xytext": (0, 6)}
        head |= {"fontweight": "bold", "fontsize": 10.5}
        pair[0].annotate(title, (0, 1), **head).set_in_layout(False)
        for panel, side in zip(pair, SIDES, strict=True):
            draw_bars(panel, [_bars(part, side, labels) for part in models])
            panel.grid(axis="x", **GRID)
            panel.set_axisbelow(True)
            panel.tick_params(labelbottom=True)
    for panel, label in zip(grid[-1], SIDES.values(), strict=True):
        panel.set_xlabel(f"share {label}", fontsize=9)
        panel.set_xlim(left=0)
        panel.xaxis.set_major_locator(MaxNLocator(TICKS_IN_VIEW))
        panel.xaxis.set_major_formatter(lambda share, _: percent(share))
    note = f"Classes are added up: an answer may have errors of several.{dagger_note(rows)}"
    _legend(figure, {row["class"] for row in rows}, note)
    return figure


def _bars(rows: list[Row], side: str, labels: dict[str, str]) -> BarRow:
    parts, by_class = [], {row["class"]: row for row in rows}
    for name, (colour, hatch) in CLASSES.items():
        row = by_class.get(name)
        if row:
            shade = FAINT if row[FEW[side]] else colour
            # filled: the clinically significant part; the rest has the hatch only
            filled = number(row["significant"]) or 0.0
            parts.append(Bar(number(row[side]) or 0.0, shade, hatch, filled))
    answers = max(rows, key=lambda row: number(row["n_answers"]) or 0)["n_answers"]
    model = rows[0]["model"]
    return BarRow(f"{labels[model]}, n = {answers}", parts, model)


def _legend(figure: Any, classes: set[str], note: str) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=DARK, linewidth=0, label=spaced(name))
        for name, (colour, hatch) in CLASSES.items()
        if name in classes
    ]
    outline = "hatch alone: not clinically significant"
    handles.append(Patch(facecolor="none", edgecolor=INK, linewidth=0.9, label=outline))
    add_legend(figure, handles, 3, note)


def error_words(panel: str, rows: list[Row]) -> str:
    """Describe the most frequent class of a source, and its model."""
    wrong = having(rows, "per_wrong")
    if not wrong:
        none = all(row["n_wrong"] == "0" for row in rows)
        return f"{panel}: {'no wrong answer' if none else 'too few wrong answers to show'}."
    row = max(wrong, key=lambda row: value_of(row, "per_wrong"))
    significant = number(row["significant"])
    serious = "" if significant is None else f", {percent(significant)} of these labels significant"
    rate = rate_words(row, "per_wrong", ("wrong_low", "wrong_high"))
    return f"{panel}: most often {spaced(row['class'])} in {title_of(row)}, in {rate} of its {row['n_wrong']} wrong answers{serious}."


STEPS = {
    "refused_import": "refused by the import",
    "quarantined_picture": "picture quarantined",
    "example": "kept as example",
}
"""Labels of the steps of questions."""


def keep_case_flow(rows: list[Row]) -> list[Row]:
    """Keep cases, pictures and questions; add the column `panel`."""
    kept = []
    for row in rows:
        if row["unit"] not in ("file", "series"):
            questions = ": questions" if row["unit"] == "question" else ""
            kept.append(row | {"panel": f"{row['benchmark']}{questions}"})
    return kept


def draw_case_flow(rows: list[Row]) -> Any:
    """Draw the numbers of cases (or pictures, or questions) listed, excluded at each step, and used."""
    flows = {name: _totals(part) for name, part in groups(rows, "panel").items()}
    figure, axes = stacked([len(totals) for totals in flows.values()], around=0.55)
    for panel, (title, totals) in zip(axes, flows.items(), strict=True):
        panel.set_title(title)
        draw_bars(panel, _flow(totals))
        panel.set_xticks([])
        panel.spines["bottom"].set_visible(False)
        panel.set_xlim(0, 1.12)
    return figure


def _flow(totals: dict[str, int | None]) -> list[BarRow]:
    """Return a bar for each step; one that excludes cases ends where the cases before it end."""
    # a public table may hide how many were listed
    remaining = totals.get("listed") or max((total or 0 for total in totals.values()), default=0)
    listed, rows = max(remaining, 1), []
    for step, total in totals.items():
        if total is None:  # suppressed in a public run
            rows.append(BarRow(_step(step), [], note="not shown"))
        elif step in ("listed", "used"):
            part = Bar(total / listed, COLOURS[0])
            rows.append(BarRow(_step(step), [part], note=f"{total:,}"))
        else:
            remaining -= total
            part = Bar(total / listed, COLOURS[1], "////", filled=0.0)
            rows.append(BarRow(_step(step), [part], start=remaining / listed, note=f"{total:,}"))
    return rows


def flow_words(panel: str, rows: list[Row]) -> str:
    """Describe the numbers listed, excluded and used."""
    steps = [f"{'not shown:' if total is None else f'{total:,}'} {_step(step)}" for step, total in _totals(rows).items()]
    return f"{panel}: {', '.join(steps)}."


def _totals(rows: list[Row]) -> dict[str, int | None]:
    """Return the sum of each step; None if a public run suppresses a part of it."""
    totals: dict[str, int | None] = {}
    for step, part in groups(rows, "step").items():
        counts = [number(row["n"]) for row in part]
        totals[step] = None if None in counts else int(sum(count or 0 for count in counts))
    return totals


def _step(step: str) -> str:
    return STEPS.get(step, spaced(step).replace("quarantined ", "quarantined: "))


VALUE = ("value", "low", "high")

SOURCES: dict[str, tuple[str, str, Any]] = {
    "stated": ("stated by the model", "o", "-"),
    "agreement": ("agreement of its samples", "D", (0, (4, 2))),
    "tokens": ("probability of its tokens", "s", (0, (1, 1.5))),
}
"""Where a confidence comes from, with its label, marker and line."""

ACROSS, PANEL_IN = 5, 1.8


def keep_reliability(rows: list[Row]) -> list[Row]:
    """Keep the share right by bin of confidence; add the column `mean_confidence`."""
    bins = [row for row in having(rows, "value") if row["slice"] == "bin"]
    kept = []
    for of_bin in by_measure(bins, "source", "value_of_slice").values():
        mean = of_bin["mean_confidence"]["value"] if "mean_confidence" in of_bin else ""
        kept.append(of_bin["share_right"] | {"mean_confidence": mean})
    return kept


def draw_reliability(rows: list[Row]) -> Any:
    """Draw mean confidence against the share of right answers, one panel per model and benchmark."""
    style, labels = looks_of(rows), names(rows, 22)
    parts = [groups(part, "model").values() for part in groups(rows, "benchmark").values()]
    # no more columns than the largest part needs; a narrow grid gets half the width
    across = min(ACROSS, max(map(len, parts)))
    panels = [panel for part in parts for panel in part]
    lines = -(-len(panels) // across)
    width = WIDTH_IN if across * PANEL_IN > WIDTH_IN / 2 else WIDTH_IN / 2
    figure, grid = subplots(lines, across, (width, lines * (PANEL_IN + 0.4) + 0.7), sharey=True)
    for place, panel in enumerate(grid.flat):
        if place >= len(panels):
            panel.axis("off")
            continue
        row = panels[place][0]
        title = f"{labels[row['model']]}\n{short(row['benchmark'], 24)}"
        panel.set_title(title, fontsize=8.5, fontweight="normal")
        _calibration(panel, panels[place], style[row["model"]])
    figure.supylabel("share of the answers that is right, %", fontsize=9)
    _sources(figure, {row["source"] for row in rows}, f"mean confidence, %{dagger_note(rows)}")
    return figure


def _calibration(panel: Any, rows: list[Row], look: Look) -> None:
    panel.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    for label in (panel.set_xticks, panel.set_yticks):
        label((0, 0.5, 1), ("0", "50", "100"), fontsize=8)
    panel.grid(**GRID)
    panel.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 4)), alpha=0.35)
    for source, part in groups(rows, "source").items():
        _, marker, line = SOURCES[source]
        shape = Look(look.colour, marker, hollow=source != "stated")
        marks = []
        for row in part:
            mean, share = whisker_of(row, ("mean_confidence",)), whisker_of(row, VALUE)
            marks.append(Dot(row["model"], shape.of(row), mean, share))
        draw_curve(panel, marks, line)


def _sources(figure: Any, sources: set[str], label: str) -> None:
    entries = {}
    for source, (text, marker, line) in SOURCES.items():
        if source in sources:
            look = Look(INK, marker, hollow=source != "stated").point
            entries[text] = look | {"linewidth": 1, "linestyle": line, "markersize": 5}
    add_legend(figure, line_handles(entries), len(entries), label)


def calibration_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the worst calibrated bin of a benchmark."""
    row = max(rows, key=lambda row: abs(value_of(row, "mean_confidence") - value_of(row, "value")))
    return (
        f"{benchmark}: {counted(len(models_of(rows)), 'model')}; farthest from the truth is"
        f" {title_of(row)} ({SOURCES[row['source']][0]}): mean confidence"
        f" {percent(row['mean_confidence'])}, right {percent(row['value'])},"
        f" {row['n_answers']} answers."
    )


FAINT_CELL = "#c3c7cb"
"""Colour of a cell about fewer than five patients."""

ROW_IN, GAP, LETTER_IN = 0.28, 0.9, 0.068
CELL_WIDE_IN, LINES = 1.3, 3
"""Widest cell in inches, and most lines of a model's title above it."""
MOST = 8
"""Groups drawn per kind: those with the most patients; the table has the others."""

EVERYTHING = "all"


def keep_heatmap(rows: list[Row]) -> list[Row]:
    """Keep pass@1 under the full request, suppressed ones too, of all items and of groups."""
    kept = []
    rows = [with_board_names(row) for row in rows if _is_direct(row)]
    whole = {(row["benchmark"], row["model"]): row["n_items"] for row in rows if _is_whole(row)}
    for row in rows:
        is_known = number(row["value"]) is not None or is_between(row, "value") or mark_of(row)
        # a group of all items repeats the first line
        repeats = row["n_items"] == whole.get((row["benchmark"], row["model"]))
        is_group = not repeats and row["value_of_slice"] not in {"none", "unknown"}
        if is_known and (is_group or _is_whole(row)):
            kept.append(row)
    # fewer than FEWEST patients: the table has them, with their number
    enough = {_group_of(row) for row in kept if not row.get("few_patients") or _is_whole(row)}
    return [row for row in kept if _group_of(row) in enough]


def _is_direct(row: Row) -> bool:
    request = (row["measure"], row["arm"], row["strategy"]) == ("pass1", "full", "direct")
    return request and row["model"] != PRIOR and row["slice"] != RANKED_DIFFERENTIAL


def _is_whole(row: Row) -> bool:
    return row["slice"] == EVERYTHING


def _group_of(row: Row) -> tuple[str, str, str]:
    return row["benchmark"], row["slice"], row["value_of_slice"]


def draw_heatmap(rows: list[Row]) -> Any:
    """Draw pass@1 of every model in every group, one panel per benchmark."""
    grouped = groups(rows, "benchmark")
    lines = {name: lines_of(part) for name, part in grouped.items()}
    inches = [ROW_IN * (part[-1].y + 1) for part in lines.values()]
    columns = {name: names(part) for name, part in grouped.items()}
    labels = {label for heads in columns.values() for label in heads.values()}
    across = max(map(len, columns.values()))
    widest = max(len(line.label) for part in lines.values() for line in part)
    labels_in = LETTER_IN * widest + 0.1
    wide = min(CELL_WIDE_IN, (WIDTH_IN - labels_in) / across)
    # titles are broken into lines as wide as their cells, and turned where they need too many
    letters = wide / LETTER_IN / 1.2
    broken = {label: wrap(label, max(1, int(letters)), break_long_words=False) for label in labels}
    turned = any(len(part) > LINES or max(map(len, part)) > letters for part in broken.values())
    head = 0.5 + (LETTER_IN * max(map(len, labels)) if turned else 0.15 * max(map(len, broken.values())))
    size = (labels_in + wide * across, sum(inches) + head * len(grouped) + 0.5)
    figure, grid = subplots(len(grouped), 1, size, height_ratios=inches)
    for (panel,), (benchmark, part) in zip(grid, lines.items(), strict=True):
        heads = columns[benchmark]
        if not turned:
            heads = {model: "\n".join(broken[label]) for model, label in heads.items()}
        draw_matrix(panel, heads, part, turned=turned, size=min(9.5, 27 * wide))
        panel.set_title(benchmark)
    figure.supxlabel(_heatmap_note(rows), fontsize=8.5)
    return figure


def _heatmap_note(rows: list[Row]) -> str:
    note = f"pass@1 in %; n counts {clusters_of(rows)}; hatched: fewer than {fewest_of(rows[0])}"
    note += f"; groups of fewer than {FEWEST} stand in the table"
    unknown = [row for row in rows if number(row["value"]) is None]
    between = [row for row in unknown if is_between(row, "value")]
    if len(between) < len(unknown):
        note += "; – not shown"
    if between:
        note += "\ntwo numbers: from the worst to the best case, too many answers are missing"
    return note + dagger_note(rows)


def lines_of(rows: list[Row]) -> list[MatrixRow]:
    """Return the lines of a panel: all items, then every kind of group under its heading."""
    lines: list[MatrixRow] = []
    y = -1.0
    for part, entries in groups(rows, "slice").items():
        by_value = groups(entries, "value_of_slice")
        # the largest groups by patients, drawn in their own order
        largest = sorted(by_value, key=lambda value: -max(map(_patients, by_value[value])))[:MOST]
        if part != EVERYTHING:
            y += GAP + 0.1
            some = f" ({MOST} of {len(by_value)})" if len(by_value) > MOST else ""
            lines.append(MatrixRow(f"{spaced(part)}{some}", y, {}))
        for value, of_group in by_value.items():
            if value in largest:
                y += 1
                cells = {row["model"]: _cell(row) for row in of_group}
                lines.append(MatrixRow(_label(of_group), y, cells))
    return lines


def _patients(row: Row) -> float:
    return number(row["n_patients"]) or 0


def _label(rows: list[Row]) -> str:
    value, patients = rows[0]["value_of_slice"], max(rows, key=_patients)["n_patients"]
    name = "all items" if _is_whole(rows[0]) else value
    name = {"true": "yes", "false": "no"}.get(name, spaced(name))
    return f"{short(name, 40)}, {'n not shown' if patients == HIDDEN else f'n = {patients}'}"


def _cell(row: Row) -> Cell:
    share = number(row["value"])
    if is_between(row, "value"):
        ends = "–".join(f"{100 * value_of(row, name):.0f}" for name in BOUNDS)
        return Cell(ends, FAINT_CELL, is_small(row))
    if share is None:  # suppressed in a public run
        return Cell("–")
    colour = FAINT_CELL if row.get("few_patients") else rate_colour(share)
    return Cell(f"{100 * share:.0f}", colour, is_small(row))


def group_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the best and the worst group of the best model overall, among the groups that are not small."""
    best = max(filter(_is_whole, rows), key=lambda row: value_of(row, "value"), default=rows[0])
    of_best = [row for row in rows if row["model"] == best["model"] and not _is_whole(row)]
    shown = having(of_best, "value")
    large = [row for row in shown if not is_small(row)]
    counts = [f"{len(shown) - len(large)} of fewer than {fewest_of(best)} {clusters_of(rows)}"]
    unknown = len(of_best) - len(shown)
    counts += [f"{unknown} without a rate"] if unknown else []
    models = counted(len(models_of(rows)), "model")
    text = f"{benchmark}: {models} in {counted(len(of_best), 'group')}, {', '.join(counts)}"
    if not large:
        return f"{text}."
    large.sort(key=lambda row: value_of(row, "value"))
    ends = " to ".join(f"{percent(row['value'])} ({spaced(row['value_of_slice'])}, {sample_size(row)})" for row in (large[0], large[-1]))
    return f"{text}; {title_of(best)} is right in {ends} among the others."
