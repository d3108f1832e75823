"""Figures of trust: reliability of repeats, calibration of the models' confidence, and agreement of graders with clinicians."""

from __future__ import annotations

from typing import Any

from neuralmedbench.figures.panels import dagger_note, grid_of, legend, looks_of, names, offset, panels, short
from neuralmedbench.figures.style import COLOURS, FAINT, GRID, INK, QUARTERS, WIDTH_IN, Look, drawn_for
from neuralmedbench.figures.table import (
    Row,
    difference_words,
    first_sentences,
    groups,
    having,
    models_of,
    number,
    sample_size,
    title_of,
    value_of,
)
from neuralmedbench.records.results import PASS1_PATIENTS, RANKED_DIFFERENTIAL, by_measure
from neuralmedbench.records.words import counted, percent, spaced

TICKS, LABELS = (0, 0.5, 1), ("0 %", "50 %", "100 %")
SOURCES = {"stated": "stated by the model", "agreement": "agreement of its samples", "tokens": "probability of its tokens"}
SHAPES = {"stated": "o", "agreement": "D", "tokens": "s"}
LINES: dict[str, Any] = {"stated": "-", "agreement": (0, (4, 2)), "tokens": (0, (1, 1.5))}
SIDES = ("left", "center", "right")
ACROSS, PANEL_IN = 5, 1.8


def draw_reliability(rows: list[Row]) -> Any:
    """Draw mean confidence against the share of right answers, one panel per model and benchmark, arm full (from reliability.csv)."""
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
        f" confidence {percent(far['mean_confidence'])}, right {percent(far['share_right'])}, {far['n']} answers."
        for name, part, far in ((name, part, max(part, key=_distance)) for name, part in grouped.items())
    )


def _distance(row: Row) -> float:
    return abs(value_of(row, "mean_confidence") - value_of(row, "share_right"))


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
    x, y = ([value_of(row, name) for row in rows] for name in ("mean_confidence", "share_right"))
    panel.plot(x, y, color=look.colour, linewidth=1, linestyle=LINES[source])
    for shade, part in groups([{**row, "shade": look.of(row).colour} for row in rows], "shade").items():
        x, y = ([value_of(row, name) for row in part] for name in ("mean_confidence", "share_right"))
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


def draw_risk_coverage(rows: list[Row]) -> Any:
    """Draw the share of right answers among the most confident ones, by coverage (from risk_coverage.csv)."""
    style = looks_of(rows)
    grouped = groups([{**row, "panel": f"{row['benchmark']}\n{SOURCES[row['source']]}"} for row in rows], "panel")
    figure, (panels,) = _grid([len(grouped)], 2, 2.0)
    for panel, (title, part) in zip(panels, grouped.items(), strict=True):
        panel.set_title(title, fontsize=8.5, fontweight="normal")
        for model, points in groups(part, "model").items():
            x, y = ([value_of(row, name) for row in points] for name in ("coverage", "value"))
            # markers only where the table has an interval, as the curve has many points
            marked = [place for place, row in enumerate(points) if row["interval"]]
            with drawn_for(panel, model):
                panel.plot(x, y, linewidth=1.5, markersize=6, markevery=marked, **style[model].of(points[0]).point)
    figure.supylabel("share of them that is right", fontsize=9)
    note = f"part of the answers that is kept, the surest first{dagger_note(rows)}"
    legend(figure, rows, note=note)
    return figure


def describe_risk_coverage(rows: list[Row]) -> str:
    """Describe the accuracy of the best model on the more confident half of its answers."""
    parts = groups([{**row, "panel": f"{row['benchmark']}, {SOURCES[row['source']]}"} for row in rows], "panel")
    return first_sentences(_half(name, part) for name, part in parts.items())


def _half(panel: str, rows: list[Row]) -> str:
    models = groups(rows, "model")
    at = {model: min(part, key=lambda row: abs(value_of(row, "coverage") - 0.5)) for model, part in models.items()}
    best = max(at, key=lambda model: value_of(at[model], "value"))
    # the largest coverage is that of all answers
    everything = max(models[best], key=lambda row: value_of(row, "coverage"))
    return (
        f"{panel}: {counted(len(models), 'model')}; {title_of(at[best])} is right in {percent(at[best]['value'])} of the surest half of its answers and in"
        f" {percent(everything['value'])} of all."
    )


def draw_degradation(rows: list[Row]) -> Any:
    """Draw pass@1 by level of each artefact, one panel per artefact and benchmark (from measures.csv)."""
    style, order = looks_of(rows), models_of(rows)
    parts = {benchmark: groups(part, "slice") for benchmark, part in groups(rows, "benchmark").items()}
    figure, panels = _grid([len(artefacts) for artefacts in parts.values()], ACROSS, PANEL_IN)
    levels = sorted({int(row["value_of_slice"]) for row in rows})
    for line, (benchmark, artefacts) in zip(panels, parts.items(), strict=True):
        for panel, (operator, part) in zip(line, artefacts.items(), strict=True):
            panel.set_title(f"{spaced(operator)}\n{short(benchmark, 24)}", fontsize=8.5, fontweight="normal")
            for tick in panel.set_xticks(levels, [str(level) for level in levels], fontsize=8):
                tick.label1.set_horizontalalignment("center")
            panel.set_xlim(levels[0] - 0.5, levels[-1] + 0.5)
            for model, own in groups(part, "model").items():
                beside = offset(order.index(model), len(order))
                _steps(
                    panel,
                    having(own, "value"),
                    style[model],
                    [int(row["value_of_slice"]) + beside for row in having(own, "value")],
                    ("value", "low", "high"),
                )
    figure.supylabel("pass@1", fontsize=9)
    legend(figure, rows, note=f"level of the artefact: 0 as it is, 1 mild, 2 severe{dagger_note(rows)}")
    return figure


def _steps(panel: Any, rows: list[Row], look: Look, places: list[float], names: tuple[str, str, str]) -> None:
    """Draw the values of one model with their intervals from left to right; `names` are the columns of value, low and high."""
    with drawn_for(panel, rows[0]["model"]):
        values = [value_of(row, names[0]) for row in rows]
        panel.plot(places, values, color=look.colour, linewidth=0.8, alpha=0.6)
        for row, x, value in zip(rows, places, values, strict=True):
            own, ends = look.of(row), [number(row[end]) for end in names[1:]]
            if None not in ends:
                panel.plot([x, x], ends, color=own.colour, linewidth=1.2)
            panel.plot([x], [value], markersize=5, linestyle="none", **own.point)


def describe_degradation(rows: list[Row]) -> str:
    """Describe the largest fall of each benchmark from the pictures as they are."""
    return first_sentences(_fall(name, part) for name, part in groups(rows, "benchmark").items())


def keep_degradation(rows: list[Row]) -> list[Row]:
    """Keep pass@1 and its differences."""
    return [row for row in rows if row["measure"] == PASS1_PATIENTS and (row["value"] or row["difference"])]


def _fall(benchmark: str, rows: list[Row]) -> str:
    models, artefacts = (len({row[name] for row in rows}) for name in ("model", "slice"))
    text = f"{benchmark}: pass@1 of {counted(models, 'model')} by level of {counted(artefacts, 'artefact')}"
    levels = having(rows, "difference")
    if not levels:
        return f"{text}."
    most = min(levels, key=lambda row: value_of(row, "difference"))
    where = f"{title_of(most)}, level {most['value_of_slice']} of {spaced(most['slice'])}"
    return f"{text}; the lowest difference to level 0 is {difference_words(most)} ({where}); {sample_size(most)}."


STOPS = {"all_right": "all 5\nright", "pass1": "pass@1", "pass5": "pass@5", "candidates5": "five\ncandidates"}
"""Marks of a model by rate, with their labels; the first three are on one line."""


def keep_passk(rows: list[Row]) -> list[Row]:
    """Keep models with pass@1 and pass@5 of the items that ask for a ranked differential: all marks of a model are of the same items."""
    kept = []
    for rates in by_measure(row for row in rows if row["slice"] == RANKED_DIFFERENTIAL).values():
        values = {name: rates[name]["value"] if name in rates else "" for name in STOPS}
        kept.append(next(iter(rates.values())) | values)
    return having(kept, "pass1", "pass5")


def draw_passk(rows: list[Row]) -> Any:
    """Draw reliability (all 5 right), pass@1 and both readings of pass@5 of each model, on the same items (from topic rates of measures.csv)."""
    style, grouped = looks_of(rows), groups(rows, "benchmark")
    across = min(2, len(grouped))
    figure, cells = grid_of(len(grouped), across, 2.8, more=0.6, sharey=True)
    for panel, (benchmark, part) in zip(cells, grouped.items(), strict=True):
        panel.set_title(f"{benchmark}: {sample_size(part[0])}" if across == 1 else benchmark)
        for place, row in enumerate(part):
            *heights, candidates = [number(row[stop]) for stop in STOPS]
            look = style[row["model"]].of(row)
            with drawn_for(panel, row["model"]):
                known = [float("nan") if height is None else height for height in heights]
                panel.plot(range(3), known, linewidth=1.4, markersize=7, **look.point)
                # hollow, at the right: the share with the answer among the five candidates of one response
                if candidates is not None:
                    x = 2.6 + (place - (len(part) - 1) / 2) * min(0.09, 0.6 / len(part))
                    panel.plot([x], [candidates], markersize=7, linestyle="none", **look.point | {"markerfacecolor": "none"})
        panel.set_xticks([0, 1, 2, 2.6], list(STOPS.values()), fontsize=9 if across == 1 else 8)
        panel.set_xlim(-0.15, 3.0)
        panel.set_ylim(-0.03, 1.03)
        panel.set_yticks(*QUARTERS)
        panel.grid(axis="y", **GRID)
    legend(figure, rows, note=dagger_note(rows))
    return figure


def describe_passk(rows: list[Row]) -> str:
    """Describe the model with the highest pass@5: both readings, its pass@1 and reliability, on the same items."""
    return first_sentences(_highest_pass5(name, part) for name, part in groups(rows, "benchmark").items())


def _highest_pass5(benchmark: str, rows: list[Row]) -> str:
    best = max(rows, key=lambda row: value_of(row, "pass5"))
    return (
        f"{benchmark}: {counted(len(rows), 'model')}; the highest pass@5 is {percent(best['pass5'])} ({title_of(best)}, any of five samples),"
        f" with {percent(best['candidates5'])} among five candidates, pass@1 {percent(best['pass1'])} and all five right"
        f" {percent(best['all_right'])}; all over the items that ask for a ranked differential: {sample_size(best)}."
    )


KINDS = {"clinician": ("o", COLOURS[2]), "grader": ("s", COLOURS[0]), "similarity": ("^", COLOURS[1])}
"""Marker and colour of the judges compared with clinicians, in the order of the rows."""

NAMES = {"clinician": "raters among each other (the ceiling)", "grader": "a grader", "similarity": "similarity of words (a baseline)"}
MEASURES = {"clinician": "icc", "grader": "icc", "similarity": "pearson"}
"""Coefficient of each judge; similarity is on another scale than ratings, so it can only be correlated."""

SHORT = {"icc": "ICC", "pearson": "r"}


def keep_trust(rows: list[Row]) -> list[Row]:
    """Keep rows over all models, by answer, that have a coefficient; add the column `panel`."""
    over_all = [row for row in rows if row["level"] == "response" and not row["model"] and row["kind"] in KINDS]
    kept = [row for row in over_all if number(row[MEASURES[row["kind"]]]) is not None]
    kept.sort(key=lambda row: list(KINDS).index(row["kind"]))
    return [
        {**row, "panel": f"{row['benchmark']}: {'simulated raters, no clinicians' if row['simulated'] == 'true' else 'clinicians'}"}
        for row in kept
    ]


def draw_trust(rows: list[Row]) -> Any:
    """Draw the agreement of each judge with clinicians, and that among clinicians (from grader_vs_clinician.csv)."""
    grouped = groups(rows, "panel")
    figure, axes = panels([len(part) for part in grouped.values()], entries=3)
    # the axis starts at 0, -0.25 or -1, whichever shows every value and interval
    ends = [number(row[f"{MEASURES[row['kind']]}{end}"]) or 0.0 for row in rows for end in ("", "_low")]
    left = -0.02 if min(ends) >= 0 else -0.27 if min(ends) >= -0.25 else -1.02
    for panel, (title, part) in zip(axes, grouped.items(), strict=True):
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
    """Describe the agreement among clinicians, and that of the best grader and the best similarity with them."""
    return first_sentences(f"{name}: {', '.join(_best(part))}." for name, part in groups(rows, "panel").items())


def _best(rows: list[Row]) -> list[str]:
    parts = []
    for kind, part in groups(rows, "kind").items():
        measure = MEASURES[kind]
        most = max(part, key=lambda row: value_of(row, measure))
        low, high = number(most[f"{measure}_low"]), number(most[f"{measure}_high"])
        within = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
        who = {"clinician": "among each other", "grader": f"grader {most['judge']}"}.get(kind, spaced(most["judge"]))
        parts.append(f"{who} {SHORT[measure]} {value_of(most, measure):.2f}{within}, {most['n']} answers")
    return parts


def _mark(panel: Any, row: Row, y: float) -> None:
    measure, (marker, colour) = MEASURES[row["kind"]], KINDS[row["kind"]]
    colour = FAINT if row.get("few_patients") else colour
    value, low, high = (number(row[f"{measure}{end}"]) for end in ("", "_low", "_high"))
    if low is not None and high is not None:
        if row["kind"] == "clinician":
            # the agreement among clinicians is the ceiling, drawn as a band across the panel
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


def keep_mass(rows: list[Row]) -> list[Row]:
    """Keep the probability of the reference by message."""
    return [row for row in having(rows, "value") if (row["measure"], row["slice"]) == ("mass", "turn")]


def draw_mass(rows: list[Row]) -> Any:
    """Draw the probability of the reference by message of a work-up, one panel per arm and benchmark (from measures.csv)."""
    style, order = looks_of(rows), models_of(rows)
    parts = {benchmark: groups(part, "arm") for benchmark, part in groups(rows, "benchmark").items()}
    figure, panels = _grid([len(arms) for arms in parts.values()], 3, 2.8)
    last = max(int(row["value_of_slice"]) for row in rows)
    for line, (benchmark, arms) in zip(panels, parts.items(), strict=True):
        for panel, (arm, part) in zip(line, arms.items(), strict=True):
            panel.set_title(f"{ASKED if arm == 'full' else spaced(arm)}\n{short(benchmark, 30)}", fontsize=8.5, fontweight="normal")
            panel.set(xlim=(0.4, last + 0.6), ylim=(-0.16, 1.04))
            for tick in panel.set_xticks(range(1, last + 1), [str(turn) for turn in range(1, last + 1)], fontsize=8):
                tick.label1.set_horizontalalignment("center")
            for model, own in groups(part, "model").items():
                beside = offset(order.index(model), len(order))
                _steps(panel, own, style[model], [int(row["value_of_slice"]) + beside for row in own], ("value", "low", "high"))
            for turn, at in groups(part, "value_of_slice").items():
                sizes = sorted({int(row["n_items"]) for row in at})
                words = "–".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
                panel.text(int(turn), -0.11, words, fontsize=7, ha="center", va="center", color=INK)
    figure.supylabel("probability of the reference", fontsize=9)
    legend(figure, rows, note=f"message of the work-up; below, the number of items{dagger_note(rows)}")
    return figure


ASKED = "the model asks"


def describe_mass(rows: list[Row]) -> str:
    """Describe the highest probability of the reference in the last message of each benchmark's work-ups."""
    return first_sentences(_last_mass(name, part) for name, part in groups(rows, "benchmark").items())


def _last_mass(benchmark: str, rows: list[Row]) -> str:
    ends = [
        max(part, key=lambda row: int(row["value_of_slice"]))
        for own in groups(rows, "model").values()
        for part in groups(own, "arm").values()
    ]
    most = max(ends, key=lambda row: value_of(row, "value"))
    models, arms = (len({row[name] for row in rows}) for name in ("model", "arm"))
    where = f"{title_of(most)}, {ASKED if most['arm'] == 'full' else 'arm ' + spaced(most['arm'])}, message {most['value_of_slice']}"
    return (
        f"{benchmark}: probability of the reference of {counted(models, 'model')} by message under {counted(arms, 'arm')}; the highest at the end is"
        f" {percent(most['value'])} ({where}); {sample_size(most)}."
    )
