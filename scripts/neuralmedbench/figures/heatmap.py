"""The figure of rates by group of items and model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neuralmedbench.figures.cells import draw_cell, rate_colour, square_off
from neuralmedbench.figures.panels import dagger_note, named, short
from neuralmedbench.figures.table import Row, fewest_of, first_sentences, groups, having, is_small, number, sample_size, value_of
from neuralmedbench.records.results import HIDDEN, mark_of
from neuralmedbench.records.words import counted, percent, spaced

ROW_IN, GAP, LETTER_IN, WIDEST_IN = 0.28, 0.9, 0.068, 8.2
MOST = 12
"""Groups of one kind that are drawn, those of most patients; the others stand in the table."""

EVERYTHING = "all"


@dataclass(frozen=True)
class Line:
    """One row of a panel: the rows of the table that it is drawn from, and where it lies. Without rows it is the name of what follows."""

    text: str
    y: float
    entries: tuple[Row, ...] = ()


def keep_heatmap(rows: list[Row]) -> list[Row]:
    """Rows of pass@1 under the full request, hidden ones too; groups that are all items or say nothing are left out."""
    rows = [row for row in rows if row["metric"] == "pass1" and (row["arm"], row["strategy"]) == ("full", "direct")]
    rows = [row for row in rows if number(row["value"]) is not None or mark_of(row)]
    whole = {(row["benchmark"], row["model"]): row["n_items"] for row in rows if row["slice"] == EVERYTHING}

    def says(row: Row) -> bool:
        same = row["n_items"] == whole.get((row["benchmark"], row["model"]))
        return row["slice"] == EVERYTHING or (row["value_of_slice"] not in {"none", "unknown"} and not same)

    return [row for row in rows if says(row)]


def draw_heatmap(rows: list[Row]) -> Any:
    """Draw pass@1 of every model in every group, one panel a benchmark (from rates.csv)."""
    import matplotlib.pyplot as plt

    found = groups(rows, "benchmark")
    lines = {name: lines_of(part) for name, part in found.items()}
    inches = [ROW_IN * (part[-1].y + 1) for part in lines.values()]
    models = {name: models_of(part) for name, part in found.items()}
    across = max(len(one) for one in models.values())
    labels_in = LETTER_IN * max(len(line.text) for part in lines.values() for line in part) + 0.1
    wide = min(0.85, (WIDEST_IN - labels_in) / across)
    letters = max(len(label) for one in models.values() for label in one.values())
    turned = 1.4 * LETTER_IN * letters > wide
    head = 0.5 + (LETTER_IN * letters if turned else 0.15)
    size = (labels_in + wide * across, sum(inches) + head * len(found) + 0.5)
    figure, grid = plt.subplots(len(found), 1, figsize=size, squeeze=False, height_ratios=inches, layout="constrained")
    for (panel,), (benchmark, part) in zip(grid, lines.items(), strict=True):
        _panel(panel, part, models[benchmark], turned=turned, size=min(8.5, 27 * wide))
        panel.set_title(benchmark)
    note = f"pass@1 in %; n counts patients; hatched: fewer than {fewest_of(rows[0])} patients"
    hidden = "; – not shown" if any(number(row["value"]) is None for row in rows) else ""
    figure.supxlabel(f"{note}{hidden}{dagger_note(rows)}", fontsize=8.5)
    return figure


def describe_heatmap(rows: list[Row]) -> str:
    """Tell where the model that is best over all is best and worst among the groups that are not small."""
    return first_sentences(_ends(name, part) for name, part in groups(rows, "benchmark").items())


def _ends(benchmark: str, rows: list[Row]) -> str:
    best = next(iter(models_of(rows)))
    own = [row for row in rows if row["model"] == best and row["slice"] != EVERYTHING]
    shown = having(own, "value")
    large = [row for row in shown if not is_small(row)]
    counts = [f"{len(shown) - len(large)} of fewer than {fewest_of(rows[0])} patients"]
    counts += [f"{len(own) - len(shown)} not shown"] if len(shown) < len(own) else []
    head = f"{benchmark}: {counted(len(models_of(rows)), 'model')} in {counted(len(own), 'group')}, {', '.join(counts)}"
    if not large:
        return f"{head}."
    low, high = (one(large, key=lambda row: value_of(row, "value")) for one in (min, max))
    ends = " to ".join(f"{percent(row['value'])} ({spaced(row['value_of_slice'])}, {sample_size(row)})" for row in (low, high))
    return f"{head}; {best} is right in {ends} among the others."


def models_of(rows: list[Row]) -> dict[str, str]:
    """Models of a benchmark with their labels, the best over all items first."""
    whole = {row["model"]: value_of(row, "value") for row in rows if row["slice"] == EVERYTHING}
    labels = {row["model"]: named(row) for row in rows}
    return {name: labels[name] for name in sorted(labels, key=lambda name: (-whole.get(name, -1.0), name))}


def lines_of(rows: list[Row]) -> list[Line]:
    """Lines of a panel: all items, then every kind of group under its name."""
    found: list[Line] = []
    y = -1.0
    for part, entries in groups(rows, "slice").items():
        by_value = groups(entries, "value_of_slice")
        most = sorted(by_value, key=lambda value: -max(number(row["n_patients"]) or 0 for row in by_value[value]))[:MOST]
        if part != EVERYTHING:
            y += GAP + 0.1
            more = f" ({len(most)} of {len(by_value)})" if len(most) < len(by_value) else ""
            found.append(Line(f"{spaced(part)}{more}", y))
        for value in (value for value in by_value if value in most):
            y += 1
            found.append(Line(_label(part, value, by_value[value]), y, tuple(by_value[value])))
    return found


def _label(part: str, value: str, entries: list[Row]) -> str:
    patients = max(entries, key=lambda row: number(row["n_patients"]) or 0)["n_patients"]
    name = {"all": "all items", "true": "yes", "false": "no"}.get(value, spaced(value)) if part != EVERYTHING else "all items"
    return f"{short(name, 40)}, {'n not shown' if patients == HIDDEN else f'n = {patients}'}"


def _panel(panel: Any, lines: list[Line], models: dict[str, str], *, turned: bool, size: float) -> None:
    place = {name: x for x, name in enumerate(models)}
    drawn = [line for line in lines if line.entries]
    square_off(panel, len(models), 1, [""])
    panel.set_ylim(lines[-1].y + 0.6, -0.6)
    panel.set_yticks([line.y for line in lines], [line.text for line in lines], fontsize=9)
    for label, line in zip(panel.get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if line.entries else "bold")
    how = {"rotation": 90} if turned else {}
    panel.set_xticks(range(len(models)), list(models.values()), fontsize=9, **how)
    for line in drawn:
        for row in line.entries:
            share, at = number(row["value"]), (place[row["model"]], line.y)
            if share is None:  # what a public run hides
                panel.text(*at, "–", ha="center", va="center_baseline", fontsize=size)
            else:
                draw_cell(panel, at, f"{100 * share:.0f}", rate_colour(share), few=is_small(row), size=size)
