"""Matrices of coloured cells with numbers: pass@1 by group, and differences between all pairs of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from neuralmedbench.figures.panels import dagger_note, names, short
from neuralmedbench.figures.style import DARK, INK, LIGHT, WIDTH_IN, drawn_for, luminance, mark_model
from neuralmedbench.figures.table import (
    Row,
    clusters_of,
    fewest_of,
    first_sentences,
    groups,
    having,
    is_between,
    is_small,
    models_of,
    number,
    pass1_of_groups,
    sample_size,
    title_of,
    value_of,
)
from neuralmedbench.records.results import BOUNDS, FEWEST, HIDDEN, mark_of
from neuralmedbench.records.words import counted, percent, spaced

SEQUENTIAL = "cividis"

FAINT_CELL = "#c3c7cb"
"""Colour of a cell about fewer than five patients."""


def rate_colour(share: float) -> str:
    """Return the colour "#rrggbb" of a share between 0 and 1."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return str(to_hex(mpl.colormaps[SEQUENTIAL](min(1.0, max(0.0, share)))))


def text_on(colour: str) -> str:
    """Return the text colour, dark or light, with the higher contrast on a background (WCAG contrast ratio).

    Examples
    --------
    >>> text_on("#fde737") == DARK, text_on("#00224e") == LIGHT
    (True, True)
    """
    shade = luminance(colour)
    return DARK if (shade + 0.05) / (luminance(DARK) + 0.05) > (luminance(LIGHT) + 0.05) / (shade + 0.05) else LIGHT


def draw_cell(panel: Any, place: tuple[float, float], text: str, colour: str, *, mark: str = "", size: float = 8.5) -> None:
    """Draw one cell, 1 wide and 1 high, centred at `place`; `mark` is "few" (hatched: few patients), "frame" or empty; `size` is in points."""
    from matplotlib.patches import Rectangle

    x, y, on = *place, text_on(colour)
    parts = [Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, linewidth=0)]
    if mark == "few":  # below the number, which would be hard to read on a hatch
        parts.append(Rectangle((x - 0.48, y + 0.2), 0.96, 0.27, facecolor="none", edgecolor=on, hatch="//////", linewidth=0))
    if mark == "frame":
        parts.append(Rectangle((x - 0.46, y - 0.45), 0.92, 0.9, facecolor="none", edgecolor=INK, linewidth=1.3))
    for part in parts:
        part.set(in_layout=False, clip_on=False)  # a cell lies within its panel: skipping measuring and clipping saves time
        panel.add_artist(part)
    panel.text(x, y - (0.12 if mark == "few" else 0), text, ha="center", va="center_baseline", fontsize=size, color=on).set_in_layout(False)


def square_off(panel: Any, columns: int, rows: int, labels: Sequence[str]) -> None:
    """Set up a panel for `rows` x `columns` cells without axes, with row labels at the left."""
    panel.set(xlim=(-0.55, columns - 0.45), ylim=(rows - 0.4, -0.6))
    panel.set_yticks(range(rows), labels)
    panel.spines["bottom"].set_visible(False)
    panel.tick_params(bottom=False, top=False, labelbottom=False, labeltop=True, length=0)


ROW_IN, GAP, LETTER_IN, WIDEST_IN = 0.28, 0.9, 0.068, WIDTH_IN
CELL_WIDE_IN, LINES = 1.3, 3
"""Widest cell in inches, and most lines of a model's title above it."""
MOST = 8
"""Groups drawn per kind: those with the most patients; the table has the others."""

EVERYTHING = "all"


@dataclass(frozen=True)
class HeatmapRow:
    """One row of a panel: its label, position and table rows. Without table rows it is the heading of the rows below."""

    text: str
    y: float
    entries: tuple[Row, ...] = ()


def keep_heatmap(rows: list[Row]) -> list[Row]:
    """Keep rows of pass@1 under the full request, suppressed ones too; leave out groups that hold all items, have no value, or are single cases."""
    rows = [row for row in pass1_of_groups(rows) if number(row["value"]) is not None or is_between(row, "value") or mark_of(row)]
    whole = {(row["benchmark"], row["model"]): row["n_items"] for row in rows if row["slice"] == EVERYTHING}

    def is_informative(row: Row) -> bool:
        # a group of all items repeats the first line
        same = row["n_items"] == whole.get((row["benchmark"], row["model"]))
        return row["slice"] == EVERYTHING or (row["value_of_slice"] not in {"none", "unknown"} and not same)

    kept = [row for row in rows if is_informative(row)]
    # fewer than FEWEST patients: the table has them, with their number
    enough = {_group_of(row) for row in kept if not row.get("few_patients") or row["slice"] == EVERYTHING}
    return [row for row in kept if _group_of(row) in enough]


def _group_of(row: Row) -> tuple[str, str, str]:
    return row["benchmark"], row["slice"], row["value_of_slice"]


def draw_heatmap(rows: list[Row]) -> Any:
    """Draw pass@1 of every model in every group, one panel per benchmark (from topic rates of measures.csv)."""
    import matplotlib.pyplot as plt

    grouped = groups(rows, "benchmark")
    lines = {name: lines_of(part) for name, part in grouped.items()}
    inches = [ROW_IN * (part[-1].y + 1) for part in lines.values()]
    models = {name: {model: names(part)[model] for model in models_of(part)} for name, part in grouped.items()}
    labels = {label for one in models.values() for label in one.values()}
    across = max(len(one) for one in models.values())
    labels_in = LETTER_IN * max(len(line.text) for part in lines.values() for line in part) + 0.1
    wide = min(CELL_WIDE_IN, (WIDEST_IN - labels_in) / across)
    # titles are broken into lines as wide as their cells, and turned by 90 degrees where they need too many
    broken = {label: wrap(label, max(1, int(wide / LETTER_IN / 1.2)), break_long_words=False) for label in labels}
    turned = any(len(lines) > LINES or LETTER_IN * 1.2 * max(map(len, lines)) > wide for lines in broken.values())
    head = 0.5 + (LETTER_IN * max(map(len, labels)) if turned else 0.15 * max(map(len, broken.values())))
    size = (labels_in + wide * across, sum(inches) + head * len(grouped) + 0.5)
    figure, grid = plt.subplots(len(grouped), 1, figsize=size, squeeze=False, height_ratios=inches, layout="constrained")
    for (panel,), (benchmark, part) in zip(grid, lines.items(), strict=True):
        _panel(
            panel,
            part,
            {model: label if turned else "\n".join(broken[label]) for model, label in models[benchmark].items()},
            turned=turned,
            size=min(9.5, 27 * wide),
        )
        panel.set_title(benchmark)
    note = f"pass@1 in %; n counts {clusters_of(rows)}; hatched: fewer than {fewest_of(rows[0])}; groups of fewer than {FEWEST} stand in the table"
    hidden = "; – not shown" if any(number(row["value"]) is None and not is_between(row, "value") for row in rows) else ""
    open_ends = (
        "\ntwo numbers: from the worst to the best case, too many answers are missing"
        if any(is_between(row, "value") for row in rows)
        else ""
    )
    figure.supxlabel(f"{note}{hidden}{open_ends}{dagger_note(rows)}", fontsize=8.5)
    return figure


def describe_heatmap(rows: list[Row]) -> str:
    """Describe the best and the worst group of the best model overall, among the groups that are not small."""
    return first_sentences(_ends(name, part) for name, part in groups(rows, "benchmark").items())


def _ends(benchmark: str, rows: list[Row]) -> str:
    whole = [row for row in rows if row["slice"] == EVERYTHING]
    best = max(whole or rows, key=lambda row: value_of(row, "value"))["model"]
    of_best = [row for row in rows if row["model"] == best and row["slice"] != EVERYTHING]
    shown = having(of_best, "value")
    large = [row for row in shown if not is_small(row)]
    counts = [f"{len(shown) - len(large)} of fewer than {fewest_of(rows[0])} {clusters_of(rows)}"]
    left = sum(is_between(row, "value") for row in of_best)
    counts += [f"{left} left open by missing answers"] if left else []
    counts += [f"{len(of_best) - len(shown) - left} not shown"] if len(shown) + left < len(of_best) else []
    head = f"{benchmark}: {counted(len(models_of(rows)), 'model')} in {counted(len(of_best), 'group')}, {', '.join(counts)}"
    if not large:
        return f"{head}."
    low, high = (one(large, key=lambda row: value_of(row, "value")) for one in (min, max))
    ends = " to ".join(f"{percent(row['value'])} ({spaced(row['value_of_slice'])}, {sample_size(row)})" for row in (low, high))
    return f"{head}; {title_of(of_best[0])} is right in {ends} among the others."


def lines_of(rows: list[Row]) -> list[HeatmapRow]:
    """Return the lines of a panel: all items, then every kind of group under its heading."""
    lines: list[HeatmapRow] = []
    y = -1.0
    for part, entries in groups(rows, "slice").items():
        by_value = groups(entries, "value_of_slice")
        # the largest groups by patients, drawn in their own order
        most = sorted(by_value, key=lambda value: -max(number(row["n_patients"]) or 0 for row in by_value[value]))[:MOST]
        if part != EVERYTHING:
            y += GAP + 0.1
            more = f" ({len(most)} of {len(by_value)})" if len(most) < len(by_value) else ""
            lines.append(HeatmapRow(f"{spaced(part)}{more}", y))
        for value in (value for value in by_value if value in most):
            y += 1
            lines.append(HeatmapRow(_label(part, value, by_value[value]), y, tuple(by_value[value])))
    return lines


def _label(part: str, value: str, entries: list[Row]) -> str:
    patients = max(entries, key=lambda row: number(row["n_patients"]) or 0)["n_patients"]
    name = {"all": "all items", "true": "yes", "false": "no"}.get(value, spaced(value)) if part != EVERYTHING else "all items"
    return f"{short(name, 40)}, {'n not shown' if patients == HIDDEN else f'n = {patients}'}"


def _panel(panel: Any, lines: list[HeatmapRow], models: dict[str, str], *, turned: bool, size: float) -> None:
    place = {name: x for x, name in enumerate(models)}
    drawn = [line for line in lines if line.entries]
    square_off(panel, len(models), 1, [""])
    panel.set_ylim(lines[-1].y + 0.6, -0.6)
    panel.set_yticks([line.y for line in lines], [line.text for line in lines], fontsize=9)
    for label, line in zip(panel.get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if line.entries else "bold")
    how = {"rotation": 90} if turned else {}
    panel.set_xticks(range(len(models)), list(models.values()), fontsize=9, **how)
    for model, label in zip(models, panel.get_xticklabels(), strict=True):
        mark_model([label], model)
    for line in drawn:
        for row in line.entries:
            share, at = number(row["value"]), (place[row["model"]], line.y)
            with drawn_for(panel, row["model"]):
                if is_between(row, "value"):
                    ends = "–".join(f"{100 * value_of(row, name):.0f}" for name in BOUNDS)
                    draw_cell(panel, at, ends, FAINT_CELL, mark="few" if is_small(row) else "", size=size)
                elif share is None:  # suppressed in a public run
                    panel.text(*at, "–", ha="center", va="center_baseline", fontsize=size)
                else:
                    colour = FAINT_CELL if row.get("few_patients") else rate_colour(share)
                    draw_cell(panel, at, f"{100 * share:.0f}", colour, mark="few" if is_small(row) else "", size=size)
