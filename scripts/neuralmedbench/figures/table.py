"""Rows of a results table (cells as text), and the phrases that describe them below figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from neuralmedbench.figures.drawings import Whisker
from neuralmedbench.figures.style import Look, looks
from neuralmedbench.records.results import BOUNDS, FEWEST, PATIENT, PRIOR
from neuralmedbench.records.words import ONCE, counted, percent_with_span, plural, points, points_span

Row = dict[str, str]

FEWEST_COLUMN = "fewest"
"""Column that `draw_figures` adds to every row: a group of fewer patients is small."""

SMALL = 10
"""Default of that column (`report.min_patients_shown`)."""

ORDER_COLUMN = "order"
"""Column that `draw_figures` adds to every row: all models of the run in their order, apart by spaces."""


def model_order(leaderboard: Iterable[Row]) -> dict[str, str]:
    """Return the titles of all models by name, in the one order of every table and figure.

    Models first, then built-in baselines, readers, and the best constant answer; each by its place in the leaderboard of the first depth
    benchmark, which is that of its pass@1. (Without a depth benchmark: of the first one.)

    Examples
    --------
    >>> row = {"benchmark": "b", "axis": "depth", "reader": "", "baseline": "false"}
    >>> list(model_order([row | {"model": "prior", "title": "P"}, row | {"model": "x", "title": "X", "baseline": "true"}, row | {"model": "a", "title": "A"}]))
    ['a', 'x', 'prior']
    """
    by_axis = sorted(leaderboard, key=lambda row: row["axis"] != "depth")
    first = {row["model"]: row for row in reversed(by_axis)}  # a row of the first benchmark replaces those of later ones
    places = dict.fromkeys(row["model"] for row in by_axis)

    def kind(name: str) -> int:
        row = first[name]
        return 3 if name == PRIOR else 2 if row["reader"] else 1 if row["baseline"] == "true" else 0

    return {name: first[name]["title"] or name for name in sorted(places, key=kind)}


def in_order(rows: Sequence[Row], models: Iterable[str]) -> list[Row]:
    """Sort the rows of a table by model; rows of one benchmark stay together, in the order of first appearance."""
    if not rows or "model" not in rows[0]:
        return list(rows)
    benchmarks = list(dict.fromkeys(row.get("benchmark", "") for row in rows))
    place = {name: number for number, name in enumerate(models)}
    return sorted(rows, key=lambda row: (benchmarks.index(row.get("benchmark", "")), place.get(row["model"], -1)))


def with_titles(rows: Iterable[Row], models: Mapping[str, str]) -> list[Row]:
    """Add the title of the model of a row, and the order of all models."""
    order = {ORDER_COLUMN: " ".join(models)}
    return [row | {"title": models.get(row.get("model", ""), "")} | order for row in rows]


def title_of(row: Row) -> str:
    """Return the title of a row's model; its name in a table without titles."""
    return row.get("title") or row["model"]


def models_of(rows: Iterable[Row], *, everyone: bool = False) -> list[str]:
    """Return the models of some rows in their order; with `everyone` all models of the run."""
    rows = list(rows)
    order = rows[0].get(ORDER_COLUMN, "").split() if rows else []
    present = {row["model"] for row in rows}
    ordered = [name for name in order if everyone or name in present]
    return ordered + sorted(present - set(order))


def number(cell: str | None) -> float | None:
    """Read a cell as a number; None if it is empty or not a finite number (`<10` is a suppressed count).

    Examples
    --------
    >>> number("0.5"), number(""), number("<10"), number("nan")
    (0.5, None, None, None)
    """
    try:
        value = float(cell or "")
    except ValueError:
        return None
    # float() accepts nan and inf
    return value if math.isfinite(value) else None


def value_of(row: Row, column: str) -> float:
    """Read a cell that holds a number (see `having`); 0 if it does not."""
    return number(row[column]) or 0.0


def having(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Return the rows that hold a number in each of the columns."""
    return [row for row in rows if all(number(row[column]) is not None for column in columns)]


def is_between(row: Row, value: str) -> bool:
    """Return True if missing answers leave a rate open: there is no value, but its bounds are known.

    Examples
    --------
    >>> is_between({"pass1": "", "worst_case": "0.1", "best_case": "0.7"}, "pass1"), is_between({"pass1": ""}, "pass1")
    (True, False)
    """
    return number(row[value]) is None and all(number(row.get(name)) is not None for name in BOUNDS)


def with_rate(rows: Iterable[Row], value: str) -> list[Row]:
    """Return the rows that hold a rate, or its bounds where missing answers leave it open."""
    return [row for row in rows if number(row[value]) is not None or is_between(row, value)]


def whisker_of(row: Row, columns: Sequence[str]) -> Whisker:
    """Return a value with its interval, or the ends between which missing answers leave it."""
    if is_between(row, columns[0]):
        return Whisker(None, *(number(row[name]) for name in BOUNDS))
    return Whisker(*(number(row[name]) for name in columns))


def is_small(row: Row) -> bool:
    """Return True if a row is about few patients, or their number is unknown."""
    patients = number(row["n_patients"])
    return patients is None or patients < fewest_of(row)


GREY = " Grey: "
"""Beginning of the sentence on grey marks."""


def few_note(rows: Iterable[Row]) -> str:
    """Return the sentence that ends a description if marks are grey; empty if none is.

    Examples
    --------
    >>> few_note([{"few_patients": "3"}, {"few_patients": ""}])
    ' Grey: 1 of 2 values, of fewer than 5 patients.'
    """
    rows = list(rows)
    marks = [row.get("few_patients", "") for row in rows]
    few = sum(bool(mark) for mark in marks)
    return f"{GREY}{few} of {counted(len(marks), 'value')}, of fewer than {FEWEST} {clusters_of(rows)}." if few else ""


def fewest_of(row: Row) -> int:
    """Return the number of patients below which a group is small."""
    return int(row.get(FEWEST_COLUMN) or SMALL)


def groups(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Group rows by the value of a column, in order of first appearance."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row[column], []).append(row)
    return grouped


def rate_words(row: Row, value: str, ends: tuple[str, str] | None = None) -> str:
    """Format a share of a row with its interval.

    Examples
    --------
    >>> rate_words({"pass1": "0.5", "pass1_low": "0.2", "pass1_high": "0.8"}, "pass1")
    '50 % (20 to 80 %)'
    """
    low, high = (row[name] for name in ends or (f"{value}_low", f"{value}_high"))
    return percent_with_span(row[value], low, high, ONCE)


def difference_words(row: Row) -> str:
    """Format a difference of a row with its interval, in percentage points.

    Examples
    --------
    >>> difference_words({"difference": "-0.25", "low": "-0.4", "high": ""})
    '−25 points'
    """
    span = points_span(row["low"], row["high"], signed_zero=True)
    return f"{points(row['difference'] or 0.0, signed_zero=True)} points{f' ({span})' if span else ''}"


def clusters_of(rows: Iterable[Row]) -> str:
    """Return what the rows count as patients, in the plural; patients if they differ or do not say.

    Examples
    --------
    >>> clusters_of([{"cluster": "item"}]), clusters_of([{"cluster": "item"}, {"cluster": "patient"}]), clusters_of([{}])
    ('items', 'patients', 'patients')
    """
    nouns = {row.get("cluster") or PATIENT for row in rows}
    return plural(2, nouns.pop() if len(nouns) == 1 else PATIENT)


def sample_size(row: Row) -> str:
    """Format the numbers of items and patients of a row.

    Examples
    --------
    >>> sample_size({"n_items": "32", "n_patients": "12"})
    '32 items, 12 patients'
    """
    nouns = {"items": row["n_items"], clusters_of([row]): row["n_patients"]}
    return ", ".join(f"{count} {noun}" for noun, count in nouns.items() if count) or "n not known"


def first_sentences(sentences: Iterable[str]) -> str:
    """Join the first two sentences, each of a panel, and add how many more there are.

    Examples
    --------
    >>> first_sentences(["A.", "B.", "C.", "D."])
    'A. B. And 2 panels more.'
    """
    every = list(sentences)
    more = [f"And {counted(len(every) - 2, 'panel')} more."] if len(every) > 2 else []
    return " ".join([*every[:2], *more])


DAGGER = " †"
"""Marks the name of a model by whose answers items were chosen."""


def short(name: str, most: int = 34) -> str:
    """Shorten a long name in the middle: models differ in the beginning and the end of their names.

    Examples
    --------
    >>> short("A model with a very long name, thinking switched on", 26)
    'A model with a…witched on'
    """
    # three fifths of the letters from the beginning, two fifths from the end
    end = most * 2 // 5
    return name if len(name) <= most else f"{name[: most - end - 1].rstrip()}…{name[-end:].lstrip()}"


def in_reference_pool(row: Row) -> bool:
    """Return True if the answers of a row's model chose the items of its benchmark."""
    return row.get("in_reference_pool") == "true"


def looks_of(rows: Iterable[Row]) -> dict[str, Look]:
    """Return the colour and marker of every model, the same in every figure of a run."""
    return looks(models_of(rows, everyone=True))


def names(rows: Iterable[Row], most: int = 34) -> dict[str, str]:
    """Return titles by model in the order of models, with a dagger if any row of the model has one.

    Titles that become equal when shortened are replaced by names.
    """
    rows = list(rows)
    shorts = {row["model"]: short(title_of(row), most) for row in rows}
    alike = {model for model, text in shorts.items() if list(shorts.values()).count(text) > 1}
    marked = {row["model"] for row in rows if in_reference_pool(row)}
    titles = {}
    for model in models_of(rows):
        title = short(model, most) if model in alike else shorts[model]
        titles[model] = title + (DAGGER if model in marked else "")
    return titles


def dagger_note(rows: Iterable[Row]) -> str:
    """Return the line below a figure that explains its daggers; empty if it has none."""
    pools = ", ".join(sorted({row["benchmark"] for row in rows if in_reference_pool(row)}))
    note = f"\n{DAGGER.strip()} of the reference pool of {pools}: what it solved was taken out"
    return note if pools else ""


def between_note(rows: Iterable[Row], value: str) -> str:
    """Return the line below a figure that explains its dashed lines; empty if it has none."""
    return "\ndashed: from the worst to the best case, too many answers are missing" if any(is_between(row, value) for row in rows) else ""
