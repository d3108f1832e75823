"""Figures of rates: leaderboard, pass@1 to pass@5, slices, differences between arms, breadth and depth, and cost."""

from __future__ import annotations

import math
from typing import Any

from neuralmedbench.figures.panels import (
    FEW,
    NamedPoint,
    between,
    between_note,
    dagger_note,
    grid_of,
    label_points,
    label_rows,
    legend,
    looks_of,
    names,
    offset,
    panels,
    whisker,
)
from neuralmedbench.figures.style import GRID, INK, QUARTERS, WIDTH_IN, Look, drawn_for, percent_axis
from neuralmedbench.figures.table import (
    Row,
    difference_words,
    first_sentences,
    groups,
    having,
    is_between,
    models_of,
    number,
    rate_words,
    sample_size,
    title_of,
    value_of,
)
from neuralmedbench.records.results import PASS1, PASS1_PATIENTS, PRIOR, RANKING
from neuralmedbench.records.words import ONCE, counted, percent, percent_span, spaced


def draw_leaderboard(rows: list[Row]) -> Any:
    """Draw pass@1, patients alike, with intervals, the best model first, with a band behind every second tier (from leaderboard.csv)."""
    style, grouped = looks_of(rows), groups(rows, "benchmark")
    figure, axes = panels([len(part) for part in grouped.values()])
    for panel, (benchmark, part) in zip(axes, grouped.items(), strict=True):
        panel.set_title(f"{benchmark} ({part[0]['axis']}): {sample_size(part[0])}")
        percent_axis(panel)
        labels = names(part)
        label_rows(panel, part, [labels[row["model"]] for row in part])
        for y, row in enumerate(part):
            # every second tier has a grey band
            if row["tier"] and int(row["tier"]) % 2 == 0:
                panel.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.05, linewidth=0)
            whisker(panel, row, y, style[row["model"]], RANKING)
            if is_between(row, PASS1_PATIENTS):
                between(panel, row, y, style[row["model"]])
            place = f"tier {row['tier']}" if row["tier"] else "" if row["model"] == PRIOR else "no rank"
            with drawn_for(panel, row["model"]):
                panel.text(1.04, y, place, va="center", fontsize=8.5)
            if row["model"] == PRIOR:
                panel.axvline(value_of(row, PASS1_PATIENTS), color=INK, linewidth=1, linestyle=(0, (2, 3)), alpha=0.6)
    axes[-1].set_xlabel(f"pass@1{between_note(rows, PASS1_PATIENTS)}{dagger_note(rows)}")
    return figure


def describe_leaderboard(rows: list[Row]) -> str:
    """Describe the best model of each benchmark, its tier and the rate of guessing."""
    return first_sentences(_best(name, part) for name, part in groups(rows, "benchmark").items())


def _best(benchmark: str, rows: list[Row]) -> str:
    models = [row for row in rows if row["model"] != PRIOR]
    if not models:
        return f"{benchmark}: no model."
    first, guess = models[0], next((row for row in rows if row["model"] == PRIOR), None)
    tier = sum(row["tier"] == first["tier"] != "" for row in models)
    beside = f", tier 1 holds {counted(tier, 'model')}" if first["tier"] else ", no rank"
    chance = f", guessing reaches {percent(guess[PASS1_PATIENTS])}" if guess else ""
    place = f"is first of {counted(len(models), 'model')} with pass@1 {rate_words(first, PASS1_PATIENTS)}"
    if is_between(first, PASS1_PATIENTS):  # models with a rate come first
        bounds = percent_span(first["worst_case"], first["best_case"], ONCE)
        place, beside = f"has a pass@1 of {bounds}, by what its missing answers would have been", ", no rank"
    return f"{benchmark}: {first['title']} {place}{beside}{chance}; {sample_size(first)}."


def draw_arms(rows: list[Row]) -> Any:
    """Draw the paired difference of each arm to full (from contrasts.csv)."""
    style, grouped, order = looks_of(rows), groups(rows, "benchmark"), models_of(rows)
    lines = {name: groups(part, "arm") for name, part in grouped.items()}
    figure, axes = panels([len(part) for part in lines.values()], entries=len(style) - 1)
    for panel, (benchmark, part) in zip(axes, lines.items(), strict=True):
        panel.set_title(benchmark)
        _difference_axis(panel, rows)
        panel.set_yticks(range(len(part)), [spaced(arm) for arm in part])
        for y, entries in enumerate(part.values()):
            if y % 2:
                panel.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.04, linewidth=0)
            for place, row in enumerate(sorted(entries, key=lambda row: order.index(row["model"]))):
                whisker(panel, row, y + offset(place, len(entries)), style[row["model"]], ("difference", "low", "high"), size=6)
    axes[-1].set_xlabel("pass@1, difference to full (left of the line: worse than with everything shown)" + dagger_note(rows))
    legend(figure, rows)
    return figure


def _difference_axis(panel: Any, rows: list[Row]) -> None:
    """Set the x axis to differences: symmetric, with a line at 0, up to a multiple of 25 points that holds every interval of the rows."""
    most = max(abs(number(row[name]) or 0.0) for row in rows for name in ("difference", "low", "high"))
    reach = min(1.0, 0.25 * (int(most / 0.25) + 1))
    percent_axis(panel, low=-reach, high=reach)
    panel.axvline(0, color=INK, linewidth=1.2)


def describe_arms(rows: list[Row]) -> str:
    """Describe the largest change of each benchmark."""
    grouped = groups(rows, "benchmark")
    return first_sentences(
        f"{name}: {counted(len({row['arm'] for row in part}), 'arm')} beside full, {counted(len({row['model'] for row in part}), 'model')}; the largest"
        f" change of pass@1 is {difference_words(most)} ({title_of(most)}, {spaced(most['arm'])}); {sample_size(most)}."
        for name, part, most in (
            (name, part, max(part, key=lambda row: abs(value_of(row, "difference")))) for name, part in grouped.items()
        )
    )


def keep_both_axes(rows: list[Row]) -> list[Row]:
    """Keep the first set of breadth and of depth: two rows for each model with pass@1 on both."""
    breadth, depth = _first_of(rows, "breadth"), _first_of(rows, "depth")
    both = [model for model in breadth if model in depth]
    if both in ([], [PRIOR]):
        return []
    return [row for model in both for row in (breadth[model], depth[model])]


def _first_of(rows: list[Row], axis: str) -> dict[str, Row]:
    """Return the rows of the first benchmark of an axis, by model; readers answer a part of the items."""
    benchmark = next((row["benchmark"] for row in rows if row["axis"] == axis), "")
    known = [row for row in having(rows, PASS1_PATIENTS) if row["benchmark"] == benchmark]
    return {row["model"]: row for row in known if not row["reader"]}


def _by_model(rows: list[Row]) -> list[tuple[Row, Row]]:
    return list(zip(rows[::2], rows[1::2], strict=True))


def draw_axes(rows: list[Row]) -> Any:
    """Draw breadth and depth of each model, each with its interval (from leaderboard.csv)."""
    style, labels = looks_of(rows), names(rows, 28)
    figure, (panel,) = grid_of(1, 1, 4.2, wide=4.9)
    if note := dagger_note(rows).strip():
        figure.supxlabel(note, fontsize=8.5)
    panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    panel.set_xticks(*QUARTERS)
    panel.set_yticks(*QUARTERS)
    panel.grid(**GRID)
    panel.set_xlabel(f"breadth: {rows[0]['benchmark']}")
    panel.set_ylabel(f"depth, final answers: {rows[1]['benchmark']}")
    points, bars, few = [], [], len(rows) <= 2 * FEW
    for breadth, depth in _by_model(rows):
        name, x, y = breadth["model"], value_of(breadth, PASS1_PATIENTS), value_of(depth, PASS1_PATIENTS)
        if name == PRIOR:
            # the corner that the best constant answer reaches
            corner = [x, x, -0.02], [-0.02, y, y]
            panel.plot(*corner, color=INK, linewidth=1, linestyle=(0, (1, 2)), alpha=0.6)
            panel.annotate("best constant answer", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8.5)
            continue
        look = style[name].of(breadth if breadth["few_patients"] else depth)
        cross = _cross(breadth, depth)
        with drawn_for(panel, name):
            line = {"color": look.colour, "linewidth": 1.4, "alpha": 1.0 if few else 0.4}
            for bar in cross:
                panel.plot(*zip(*bar, strict=True), solid_capstyle="round", **line)
            panel.plot([x], [y], markersize=9 if few else 7, linestyle="none", **look.point)
        bars += cross
        points.append(NamedPoint(x, y, labels[name], name))
    label_points(panel, style, points, bars)
    return figure


def _cross(breadth: Row, depth: Row) -> list[list[tuple[float, float]]]:
    """Return the ends of the two intervals of a model, each as two points."""
    x, y = value_of(breadth, PASS1_PATIENTS), value_of(depth, PASS1_PATIENTS)
    across = [number(breadth[name]) for name in RANKING[1:]]
    upwards = [number(depth[name]) for name in RANKING[1:]]
    bars = [[(end, y) for end in across if end is not None], [(x, end) for end in upwards if end is not None]]
    return [bar for bar in bars if len(bar) == 2]


def describe_axes(rows: list[Row]) -> str:
    """Describe the model that is best in depth, and the best constant answer."""
    models = {breadth["model"]: (breadth, depth) for breadth, depth in _by_model(rows)}
    constant = models.pop(PRIOR, ())
    best = max(models.values(), key=lambda pair: value_of(pair[1], PASS1_PATIENTS))
    rates = [f"{rate_words(row, PASS1_PATIENTS)} of {row['benchmark']} ({row['axis']})" for row in best]
    head = f"{counted(len(models), 'model')}; {best[0]['title']}, the best in depth, passes {' and '.join(rates)}"
    floor = " and ".join(percent(row[PASS1_PATIENTS]) for row in constant)
    return f"{head}; the best constant answer reaches {floor}." if floor else f"{head}."


PRICE, TOKENS = "usd_per_item", "completion_tokens_per_item"
SPENT = {TOKENS: "tokens out for one answer, thoughts included, log scale", PRICE: "USD for one answer, log scale"}
"""What an answer takes, by column of costs.csv, with the words of its axis."""


def keep_cost(rows: list[Row]) -> list[Row]:
    """Keep rows with pass@1, which are of the scored answers; none if no row has tokens or a price."""
    rows = having(rows, "pass1")
    return rows if _drawn(rows) else []


def _drawn(rows: list[Row]) -> list[Row]:
    return [row for row in rows if any(_spent(row, name) for name in SPENT)]


def _spent(row: Row, name: str) -> float:
    return number(row[name]) or 0.0


def draw_cost(rows: list[Row]) -> Any:
    """Draw pass@1 over the tokens and over the price of one answer (from costs.csv).

    Dashed: the Pareto frontier of prices. A line joins the settings of one id, such as efforts of thinking.
    """
    import matplotlib.pyplot as plt

    rows = _drawn(rows)
    style, grouped = looks_of(rows), groups(rows, "benchmark")
    known = [name for name in SPENT if any(_spent(row, name) for row in rows)]
    size = (WIDTH_IN, 2.9 * len(grouped) + 0.8)
    figure, grid = plt.subplots(len(grouped), len(known), figsize=size, squeeze=False, sharey=True, sharex="col", layout="constrained")
    for column, name in enumerate(known):
        # whole decades around all values, the same on every panel
        ends = [math.log10(_spent(row, name)) for row in rows if _spent(row, name)]
        decades = math.floor(min(ends) - 0.05), math.ceil(max(ends) + 0.05)
        for panel, part in zip(grid[:, column], grouped.values(), strict=True):
            _over(panel, name, [row for row in part if _spent(row, name)], style, decades)
        days = sorted({row["priced_on"] for row in rows} - {""}) if name == PRICE else []
        listed = f"; prices of {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}" if days else ""
        grid[-1][column].set_xlabel(f"{SPENT[name]}{listed}{dagger_note(rows)}", fontsize=9)
    for (panel, *_), (benchmark, part) in zip(grid, grouped.items(), strict=True):
        panel.set_title(f"{benchmark}: {sample_size(part[0])}")
        panel.set_ylabel("pass@1")
    legend(figure, rows)
    return figure


def describe_cost(rows: list[Row]) -> str:
    """Describe the settings of one id, the models on the frontier with price and pass@1, and the number without a price."""
    sentences = []
    for benchmark, part in groups(rows, "benchmark").items():
        alike = groups([row for row in part if row["shared_id"]], "shared_id")
        listed = "".join(f" {name}: {_settings(settings)}." for name, settings in alike.items())
        sentences.append(f"{_frontier(benchmark, part)}{listed}")
    return first_sentences(sentences)


def _settings(rows: list[Row]) -> str:
    """List the settings of one id by the tokens of an answer."""
    parts = []
    for row in sorted(rows, key=lambda row: _spent(row, TOKENS)):
        tokens = f"{_spent(row, TOKENS):.0f} tokens out, " if _spent(row, TOKENS) else ""
        parts.append(f"{title_of(row)} ({tokens}{percent(row['pass1'])})")
    return ", ".join(parts)


def _frontier(benchmark: str, rows: list[Row]) -> str:
    front = sorted((row for row in having(rows, PRICE) if row["on_frontier"] == "true"), key=lambda row: value_of(row, PRICE))
    frontier = ", ".join(f"{title_of(row)} ({_usd(row)}, {percent(row['pass1'])})" for row in front[:4])
    more = f" and {len(front) - 4} more" if len(front) > 4 else ""
    free = sum(number(row[PRICE]) is None for row in rows)
    return (
        f"{benchmark}: of {counted(len(rows) - free, 'model')} with a price nothing cheaper beats {frontier or 'none'}{more};"
        f" {counted(free, 'model')} without a price; {sample_size(rows[0])}."
    )


def _usd(row: Row) -> str:
    dollars = value_of(row, PRICE)
    digits = max(2, 1 - math.floor(math.log10(dollars)))
    return f"{dollars:.{digits}f} USD an answer"


def _mark(panel: Any, row: Row, x: float, look: Look) -> None:
    value, low, high = (number(row[name]) for name in PASS1)
    look = look.of(row)
    with drawn_for(panel, row["model"]):
        if low is not None and high is not None:
            panel.plot([x, x], [low, high], color=look.colour, linewidth=1.4, solid_capstyle="round")
        panel.plot([x], [value], markersize=7.5, linestyle="none", **look.point)


def _over(panel: Any, name: str, rows: list[Row], style: dict[str, Look], decades: tuple[int, int]) -> None:
    """Draw pass@1 over what one answer takes."""
    panel.set_ylim(-0.03, 1.03)
    panel.set_yticks(*QUARTERS)
    panel.grid(**GRID)
    panel.set_xscale("log")
    panel.set_xlim(10.0 ** decades[0], 10.0 ** decades[1])
    ticks = [10.0**power for power in range(decades[0], decades[1] + 1)]
    panel.set_xticks(ticks, [f"{tick:.10f}".rstrip("0").rstrip(".") for tick in ticks])
    panel.tick_params(axis="x", which="minor", bottom=True, labelbottom=False, length=2)
    panel.tick_params(labelbottom=True)
    front = sorted((_spent(row, name), value_of(row, "pass1")) for row in rows if row["on_frontier"] == "true")
    if front and name == PRICE:
        # a step line from the cheapest to the best model, and on to the edge
        (*_, (_, best)) = front
        panel.step(*zip(*front, (10.0 ** decades[1], best), strict=True), where="post", color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    for alike in groups([row for row in rows if row["shared_id"]], "shared_id").values():
        steps = sorted((_spent(row, name), value_of(row, "pass1")) for row in alike)
        panel.plot(*zip(*steps, strict=True), color=INK, linewidth=1, alpha=0.5, zorder=1)
    for row in rows:
        _mark(panel, row, _spent(row, name), style[row["model"]])
