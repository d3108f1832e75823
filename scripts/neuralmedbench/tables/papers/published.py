"""Published numbers beside ours, cell by cell: what is not there says why, and the two are never averaged."""

from __future__ import annotations

from collections.abc import Iterator

from neuralmedbench.config.published import PublishedConfig, PublishedRow, PublishedTable
from neuralmedbench.tables.papers.number import digits_of, number
from neuralmedbench.tables.papers.own import Own, own_cells
from neuralmedbench.tables.papers.places import check_places
from neuralmedbench.tables.papers.shape import PLAN, PUBLISHED
from neuralmedbench.tables.papers.size import by_published_size, size_words
from neuralmedbench.tables.rows import Cells

COLUMNS = (
    "table", "kind", "label", "group", "source", "conflict", "model", "model_id", "column", "unit", "value", "others", "low", "high",
    "interval", "n", "missing", "note",
)  # fmt: skip


def wilson(percent: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Give the interval of a published percentage.

    Parameters
    ----------
    percent : float
        0 to 100, of `n` units.
    n : int
        Denominator.
    confidence : float
        Confidence level.

    Returns
    -------
    low, high : float
        In percent.

    References
    ----------
    Wilson, Journal of the American Statistical Association 22 (1927) 209.

    Examples
    --------
    >>> [round(bound, 1) for bound in wilson(36.7, 30)]
    [21.9, 54.5]
    """
    from scipy import stats

    low, high = stats.binomtest(round(percent * n / 100), n).proportion_ci(confidence, method="wilson")
    return 100 * float(low), 100 * float(high)


def comparison_rows(published: PublishedConfig, own: Own) -> list[Cells]:
    """Rows of `results/tables/paper/<paper>.csv`: every cell of every published table, ours below each published row, and the plan.

    Parameters
    ----------
    published : PublishedConfig
        What was published.
    own : Own
        What there is of ours.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`. `kind` is `published`, `ours` or `plan`. Percentages are 0 to 100. `others` is what other sources say of a
        published cell. A cell of ours without a value says in `missing` which file would fill it. The plan is there only while the
        benchmark is not: then `make plan` counts.

    Raises
    ------
    ConfigError
        If a place of ours is in none of the tables of results.
    DataError
        If more than one row of a table of results fits a cell.
    """
    check_places(published)
    rows: list[Cells] = []
    for name, table in published.tables.items():
        rows += [{"table": name, **cell} for cell in _table_cells(table, own)]
    return rows + (list(_plan_rows(published, own)) if own.absent else [])


def _table_cells(table: PublishedTable, own: Own) -> Iterator[Cells]:
    """Cells line by line: ours stand below the last published row of their model, the others at the end."""
    left, told = list(own.models), set[str]()
    for place, line in enumerate(table.rows):
        yield from _published_cells(line, table, own.confidence)
        if any(later.label == line.label for later in table.rows[place + 1 :]):
            continue  # the readings of several sources stay together
        meant = [name for name in own.meant_by(line) if name in left] or (
            [line.model] if line.model and line.model not in own.models else []
        )
        for model in meant:
            if model not in told:
                yield from own_cells(model, table, own)
        told |= set(meant)
        left = [name for name in left if name not in told]
    for model in left:
        yield from own_cells(model, table, own)


def _published_cells(line: PublishedRow, table: PublishedTable, confidence: float) -> Iterator[Cells]:
    others = [row for row in table.rows if row.label == line.label and row is not line]
    head = {"kind": PUBLISHED, "label": line.label, "group": line.group, "source": line.source, "conflict": line.conflict}
    for name, column in table.columns.items():
        if name not in line.values:
            continue
        value, n = line.values[name], (line.n or column.n) if line.denominators and column.unit == "percent" else None
        cell = head | {"column": name, "unit": column.unit, "value": value, "n": n}
        if n:
            low, high = wilson(value, n, confidence)
            cell |= {"low": low, "high": high, "interval": f"{100 * confidence:g} % Wilson"}
        told = [
            f"{row.source}: {number(row.values[name], digits_of(row.values[name], column.unit))}"
            for row in others
            if name in row.values and row.values[name] != value
        ]
        yield cell | {"others": "; ".join(told)}


def _plan_rows(published: PublishedConfig, own: Own) -> Iterator[Cells]:
    """Give what all of it would take, by the published size; `make plan` prints the same."""
    for row in by_published_size(published, own.models, own.graders):
        head = {"table": PLAN, "kind": PLAN, "label": row.title, "model": row.model, "note": size_words(published.size)}
        yield {**head, "column": "calls", "unit": "count", "value": row.calls}
        yield {**head, "column": "prompt_tokens", "unit": "count", "value": row.prompt_tokens}
        for name, unit in (("completion_tokens", "count"), ("usd", "usd"), ("most_usd", "usd")):
            value = getattr(row, name)
            yield {**head, "column": name, "unit": unit, "value": value, "missing": "" if value is not None else row.unknown}
