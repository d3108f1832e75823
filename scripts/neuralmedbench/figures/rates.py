"""Figures of rates by model: leaderboard, breadth and depth, differences between arms, cost."""

from __future__ import annotations

import math
from typing import Any

from neuralmedbench.figures.drawings import (
    Dot,
    DotRow,
    Whisker,
    draw_dots,
    draw_paired_dots,
    draw_scatter,
    legend_of_models,
    subplots,
)
from neuralmedbench.figures.style import WIDTH_IN, Look
from neuralmedbench.figures.table import (
    Row,
    between_note,
    dagger_note,
    difference_words,
    groups,
    having,
    is_between,
    looks_of,
    models_of,
    names,
    number,
    rate_words,
    sample_size,
    title_of,
    value_of,
    whisker_of,
    with_rate,
)
from neuralmedbench.records.results import PASS1, PASS1_PATIENTS, PRIOR, RANKING, by_measure
from neuralmedbench.records.words import ONCE, counted, percent, percent_span, spaced

DIFFERENCE = ("difference", "low", "high")
VALUE = ("value", "low", "high")


def keep_leaderboard(rows: list[Row]) -> list[Row]:
    """Keep models with a rate, or with its bounds."""
    return with_rate(rows, PASS1_PATIENTS)


def draw_leaderboard(rows: list[Row]) -> Any:
    """Draw pass@1, patients alike, the best model first, with a band behind every second tier."""
    style, panels = looks_of(rows), {}
    for benchmark, part in groups(rows, "benchmark").items():
        labels = names(part)
        title = f"{benchmark} ({part[0]['axis']}): {sample_size(part[0])}"
        panels[title] = [_place(row, labels[row["model"]], style[row["model"]]) for row in part]
    notes = between_note(rows, PASS1_PATIENTS) + dagger_note(rows)
    return draw_dots(panels, f"pass@1{notes}")


def _place(row: Row, label: str, look: Look) -> DotRow:
    model, tier = row["model"], row["tier"]
    note = f"tier {tier}" if tier else "" if model == PRIOR else "no rank"
    mark = Dot(model, look.of(row), whisker_of(row, RANKING))
    return DotRow(label, [mark], model, note, band=int(tier or 1) % 2 == 0)


def leader_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the best model of a benchmark, its tier and the rate of guessing."""
    models = [row for row in rows if row["model"] != PRIOR]
    if not models:
        return f"{benchmark}: no model."
    leader = models[0]
    tier = sum(row["tier"] == leader["tier"] for row in models)
    rank = f", tier 1 holds {counted(tier, 'model')}" if leader["tier"] else ", no rank"
    rate = rate_words(leader, PASS1_PATIENTS)
    text = f"is first of {counted(len(models), 'model')} with pass@1 {rate}{rank}"
    if is_between(leader, PASS1_PATIENTS):  # models with a rate come first
        bounds = percent_span(leader["worst_case"], leader["best_case"], ONCE)
        text = f"has a pass@1 of {bounds}, by what its missing answers would have been, no rank"
    guesses = [row for row in rows if row["model"] == PRIOR]
    guess = f", guessing reaches {percent(guesses[0][PASS1_PATIENTS])}" if guesses else ""
    return f"{benchmark}: {title_of(leader)} {text}{guess}; {sample_size(leader)}."


def keep_arms(rows: list[Row]) -> list[Row]:
    """Keep differences that are known."""
    return having(rows, "difference")


def draw_arms(rows: list[Row]) -> Any:
    """Draw the paired difference of each arm to full."""
    style, order, panels = looks_of(rows), models_of(rows), {}
    for benchmark, part in groups(rows, "benchmark").items():
        panels[benchmark] = [
            _arm(arm, entries, style, order, band=y % 2 == 1) for y, (arm, entries) in enumerate(groups(part, "arm").items())
        ]
    # symmetric, up to a multiple of 25 points that holds every interval
    most = max(abs(number(row[name]) or 0.0) for row in rows for name in DIFFERENCE)
    reach = min(1.0, 0.25 * (int(most / 0.25) + 1))
    label = "pass@1, difference to full (left of the line: worse than with everything shown)"
    label += dagger_note(rows)
    figure = draw_dots(panels, label, low=-reach, high=reach, entries=len(style) - 1, size=6)
    legend_of_models(figure, names(rows), style)
    return figure


def _arm(arm: str, rows: list[Row], style: dict[str, Look], order: list[str], *, band: bool) -> DotRow:
    marks = [
        Dot(row["model"], style[row["model"]].of(row), whisker_of(row, DIFFERENCE))
        for row in sorted(rows, key=lambda row: order.index(row["model"]))
    ]
    return DotRow(spaced(arm), marks, band=band)


def arm_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the largest change of a benchmark."""
    row = max(rows, key=lambda row: abs(value_of(row, "difference")))
    arms, models = (len({row[name] for row in rows}) for name in ("arm", "model"))
    return (
        f"{benchmark}: pass@1 under {counted(arms, 'arm')} compared with full, of"
        f" {counted(models, 'model')}; the largest change is {difference_words(row)}"
        f" ({title_of(row)}, {spaced(row['arm'])}); {sample_size(row)}."
    )


RECOGNISED, FOUND = "recognised", "found"


def keep_title(rows: list[Row]) -> list[Row]:
    """Keep what each model recognises and what it finds alone, where both are known."""
    sides = [row for row in having(rows, "value") if row["measure"] in (RECOGNISED, FOUND)]
    both = {place for place, by in by_measure(sides).items() if len(by) == 2}
    return [row for row in sides if (row["benchmark"], row["model"]) in both]


def draw_title(rows: list[Row]) -> Any:
    """Draw the two shares of each model, joined."""
    style, panels = looks_of(rows), {}
    for benchmark, part in groups(rows, "benchmark").items():
        panels[benchmark] = [_both_sides(model, sides, style) for model, sides in groups(part, "model").items()]
    label = "share of the cases whose diagnosis is recognised, and found"
    return draw_paired_dots(panels, ("recognised among five", "found alone"), label + dagger_note(rows))


def _both_sides(model: str, rows: list[Row], style: dict[str, Look]) -> DotRow:
    sides = {row["measure"]: row for row in rows}
    marks = [Dot(model, style[model].of(sides[name]), whisker_of(sides[name], VALUE)) for name in (RECOGNISED, FOUND)]
    return DotRow(title_of(rows[0]), marks)


def title_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the two shares of the first model of a benchmark."""
    sides = {row["measure"]: row for row in rows if row["model"] == rows[0]["model"]}
    recognised, alone = (percent(sides[name]["value"]) for name in (RECOGNISED, FOUND))
    return f"{benchmark}: {title_of(rows[0])} recognises {recognised} and finds {alone} alone; {sample_size(rows[0])}."


def keep_both_axes(rows: list[Row]) -> list[Row]:
    """Keep the first set of breadth and of depth: two rows for each model with pass@1 on both."""
    breadth, depth = _first_of(rows, "breadth"), _first_of(rows, "depth")
    both = [model for model in breadth if model in depth]
    if both in ([], [PRIOR]):
        return []
    return [row | {"panel": ""} for model in both for row in (breadth[model], depth[model])]


def _first_of(rows: list[Row], axis: str) -> dict[str, Row]:
    """Return the rows of the first set of an axis, by model; readers answer a part of the items."""
    of_axis = [row for row in rows if row["axis"] == axis]
    of_set = [row for row in of_axis if row["benchmark"] == of_axis[0]["benchmark"]]
    known = having(of_set, PASS1_PATIENTS)
    return {row["model"]: row for row in known if not row["reader"]}


def draw_axes(rows: list[Row]) -> Any:
    """Draw breadth and depth of each model, each with its interval."""
    style, marks = looks_of(rows), []
    for model, (breadth, depth) in groups(rows, "model").items():
        look = style[model].of(breadth if breadth["few_patients"] else depth)
        # the intervals of the best constant answer would cover those of the models
        columns = RANKING[:1] if model == PRIOR else RANKING
        marks.append(Dot(model, look, whisker_of(breadth, columns), whisker_of(depth, columns)))
    figure, ((panel,),) = subplots(1, 1, (4.9, 4.8))
    draw_scatter(panel, marks, size=8, alpha=0.6)
    panel.set_xlabel(f"breadth: {rows[0]['benchmark']}{dagger_note(rows)}")
    panel.set_ylabel(f"depth, final answers: {rows[1]['benchmark']}")
    legend_of_models(figure, names(rows, 28), style)
    return figure


def axes_words(_: str, rows: list[Row]) -> str:
    """Describe the model that is best in depth, and the best constant answer."""
    pairs = groups(rows, "model")
    constant = pairs.pop(PRIOR, [])
    best = max(pairs.values(), key=lambda pair: value_of(pair[1], PASS1_PATIENTS))
    sets = [f"{rate_words(row, PASS1_PATIENTS)} of {row['benchmark']} ({row['axis']})" for row in best]
    floor = " and ".join(percent(row[PASS1_PATIENTS]) for row in constant)
    end = f"; the best constant answer reaches {floor}" if floor else ""
    text = f"{title_of(best[0])}, the best in depth, passes {' and '.join(sets)}"
    return f"{counted(len(pairs), 'model')}; {text}{end}."


PRICE, TOKENS = "usd_per_item", "completion_tokens_per_item"
SPENT = {
    TOKENS: "tokens out for one answer, thoughts included, log scale",
    PRICE: "USD for one answer, log scale",
}
"""What an answer takes, by column of costs.csv, with the words of its axis."""


def keep_cost(rows: list[Row]) -> list[Row]:
    """Keep rows with pass@1, which are of the scored answers; none if no row has tokens or a price."""
    rows = having(rows, "pass1")
    return rows if any(spent(row, name) for row in rows for name in SPENT) else []


def spent(row: Row, name: str) -> float:
    """Return what one answer takes; 0 if it is not known."""
    return number(row[name]) or 0.0


def draw_cost(rows: list[Row]) -> Any:
    """Draw pass@1 over the tokens and over the price of one answer.

    Dashed: the Pareto frontier of prices. A line joins the settings of one id, such as efforts of thinking.
    """
    rows = [row for row in rows if any(spent(row, name) for name in SPENT)]
    style, grouped = looks_of(rows), groups(rows, "benchmark")
    known = [name for name in SPENT if any(spent(row, name) for row in rows)]
    size = (WIDTH_IN, 2.9 * len(grouped) + 0.8)
    figure, grid = subplots(len(grouped), len(known), size, sharey=True, sharex="col")
    for panels, name in zip(grid.T, known, strict=True):
        # whole decades around all values, the same on every panel
        ends = [math.log10(spent(row, name)) for row in rows if spent(row, name)]
        decades = math.floor(min(ends) - 0.05), math.ceil(max(ends) + 0.05)
        for panel, part in zip(panels, grouped.values(), strict=True):
            _over(panel, name, [row for row in part if spent(row, name)], style, decades)
        days = sorted({row["priced_on"] for row in rows} - {""}) if name == PRICE else []
        listed = f"; prices of {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
        panels[-1].set_xlabel(f"{SPENT[name]}{listed}{dagger_note(rows)}", fontsize=9)
    for (panel, *_), (benchmark, part) in zip(grid, grouped.items(), strict=True):
        panel.set_title(f"{benchmark}: {sample_size(part[0])}")
        panel.set_ylabel("pass@1")
    legend_of_models(figure, names(rows), style)
    return figure


def _over(panel: Any, name: str, rows: list[Row], style: dict[str, Look], decades: tuple[int, int]) -> None:
    """Draw pass@1 over what one answer takes."""
    lines: list[tuple[list[tuple[float, float]], dict[str, Any]]] = []
    front = _steps([row for row in rows if row["on_frontier"] == "true"], name)
    if front and name == PRICE:
        # a step line from the cheapest to the best model, and on to the edge
        front.append((10.0 ** decades[1], front[-1][1]))
        dashed = {"linewidth": 1.2, "linestyle": (0, (4, 3)), "drawstyle": "steps-post"}
        lines.append((front, dashed))
    for settings in groups([row for row in rows if row["shared_id"]], "shared_id").values():
        lines.append((_steps(settings, name), {"linewidth": 1, "alpha": 0.5, "zorder": 1}))
    marks = []
    for row in rows:
        look, x = style[row["model"]].of(row), Whisker(spent(row, name))
        marks.append(Dot(row["model"], look, x, whisker_of(row, PASS1)))
    draw_scatter(panel, marks, lines=lines, decades=decades)


def _steps(rows: list[Row], name: str) -> list[tuple[float, float]]:
    return sorted((spent(row, name), value_of(row, "pass1")) for row in rows)


def cost_words(benchmark: str, rows: list[Row]) -> str:
    """Describe the models on the frontier with price and pass@1, and the number without a price."""
    priced = sorted(having(rows, PRICE), key=lambda row: value_of(row, PRICE))
    front = [row for row in priced if row["on_frontier"] == "true"]
    listed = [f"{title_of(row)} ({_usd(row)}, {percent(row['pass1'])})" for row in front[:4]]
    frontier = ", ".join(listed) or "none"
    more = f" and {len(front) - 4} more" if len(front) > 4 else ""
    return (
        f"{benchmark}: of {counted(len(priced), 'model')} with a price nothing cheaper beats"
        f" {frontier}{more}; {counted(len(rows) - len(priced), 'model')} without a price;"
        f" {sample_size(rows[0])}."
    )


def _usd(row: Row) -> str:
    dollars = value_of(row, PRICE)
    digits = max(2, 1 - math.floor(math.log10(dollars)))
    return f"{dollars:.{digits}f} USD an answer"
