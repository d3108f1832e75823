"""Published numbers beside ours, cell by cell: what is not there says why, and the two are never averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.published import PublishedColumn, PublishedConfig, PublishedRow, PublishedTable
from neuralmedbench.io.tables import read_table

COLUMNS = ("table", "kind", "label", "group", "source", "conflict", "model", "column", "unit", "value", "low", "high", "n", "missing")
PUBLISHED, OURS, PLAN = "published", "ours", "plan"
SAMPLES = 5
"""Answers of the papers' pass@5."""
TOKENS_PER_WORD = 4 / 3

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Own:
    """What there is of ours.

    Attributes
    ----------
    models : mapping of str to ModelConfig
        Models of the run, in the order of the run list.
    folder : Path
        Folder of the tables of results.
    absent : str
        Why the benchmark has no result of ours; empty when it is in the run.
    """

    models: Mapping[str, ModelConfig]
    folder: Path
    absent: str
    _read: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def rows(self, table: str) -> list[dict[str, str]]:
        """Give the rows of a table of results; each is read once."""
        if table not in self._read:
            self._read[table] = read_table(self.folder / f"{table}.csv")
        return self._read[table]


def wilson(percent: float, n: int) -> tuple[float, float]:
    """Give the 95 % interval of a published percentage.

    Parameters
    ----------
    percent : float
        0 to 100, of `n` units.
    n : int
        Denominator.

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

    low, high = stats.binomtest(round(percent * n / 100), n).proportion_ci(method="wilson")
    return 100 * float(low), 100 * float(high)


def comparison_rows(published: PublishedConfig, own: Own) -> list[Row]:
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
        With the keys `COLUMNS`. `kind` is `published`, `ours` or `plan`. Percentages are 0 to 100. A cell of ours without a value says in
        `missing` what is missing.
    """
    rows: list[Row] = []
    for name, table in published.tables.items():
        told = set[str]()
        for line in table.rows:
            rows += [{"table": name, **cell} for cell in _published_cells(line, table)]
            if line.model and line.model not in told:
                told.add(line.model)
                rows += [{"table": name, **cell} for cell in _own_cells(line.model, table, own)]
        others = [model for model in own.models if model not in told]
        rows += [{"table": name, **cell} for model in others for cell in _own_cells(model, table, own)]
    return rows + list(_plan_rows(published, own))


def _published_cells(line: PublishedRow, table: PublishedTable) -> Iterator[Row]:
    for name, column in table.columns.items():
        if name in line.values:
            value, n = line.values[name], column.n if line.denominators else None
            low, high = wilson(value, n) if n and column.unit == "percent" else (None, None)
            head = {"kind": PUBLISHED, "label": line.label, "group": line.group, "source": line.source, "conflict": line.conflict}
            yield {**head, "column": name, "unit": column.unit, "value": value, "low": low, "high": high, "n": n}


def _own_cells(model: str, table: PublishedTable, own: Own) -> Iterator[Row]:
    for name, column in table.columns.items():
        if column.ours:
            title = own.models[model].title if model in own.models else model
            yield {"kind": OURS, "label": title, "model": model, "column": name, "unit": column.unit, **_own_value(model, column, own)}


def _own_value(model: str, column: PublishedColumn, own: Own) -> Row:
    assert column.ours
    if own.absent:
        return {"missing": own.absent}
    if model not in own.models:
        return {"missing": f"{model} is not among the models of this run"}
    wanted = {key: value.replace("{model}", model) for key, value in column.ours.where.items()}
    found = [row for row in own.rows(column.ours.table) if all(row[key] == value for key, value in wanted.items())]
    if not found or not found[0][column.ours.value]:
        return {"missing": f"{column.ours.table}.csv has no value for it"}
    scale = 100 if column.unit == "percent" else 1
    bounds = {name: scale * float(found[0][name]) for name in ("low", "high") if found[0].get(name)}
    return {"value": scale * float(found[0][column.ours.value]), **bounds, "n": int(found[0][column.ours.n])}


def _plan_rows(published: PublishedConfig, own: Own) -> Iterator[Row]:
    """Estimate by the published size what all of it would take; `make plan` counts once the data set is here."""
    size = published.size
    tokens = SAMPLES * (size.images * size.tokens_per_image + size.calls * round(size.words_per_call * TOKENS_PER_WORD))
    for name, model in own.models.items():
        if model.baseline:
            continue
        head = {"table": PLAN, "kind": PLAN, "label": model.title, "model": name, "source": size.basis}
        yield {**head, "column": "calls", "unit": "count", "value": SAMPLES * size.calls}
        yield {**head, "column": "prompt_tokens", "unit": "count", "value": tokens}
        cost = _most_usd(model, tokens, SAMPLES * size.calls)
        missing = "" if cost is not None else "its yaml has no prices, or no longest answer"
        yield {**head, "column": "most_usd", "unit": "usd", "value": cost, "missing": missing}


def _most_usd(model: ModelConfig, prompt_tokens: int, calls: int) -> float | None:
    """Cost when every answer is as long as it may be."""
    if model.prices is None or model.max_tokens is None:
        return None
    prompts, answers = model.prices.usd_per_million_prompt_tokens, model.prices.usd_per_million_completion_tokens
    return (prompt_tokens * prompts + calls * model.max_tokens * answers) / 1e6


def line_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Tell the line in which a cell stands: label, source (`ours` for what this run measured or would take), model of ours."""
    return row["label"], str(row["source"]) if row["kind"] == PUBLISHED else "ours", row.get("model") or ""


def wide_table(rows: Sequence[Mapping[str, Any]], heads: Mapping[str, str]) -> tuple[list[str], list[list[str]], list[str]]:
    """Put the rows of one table into the shape of a paper.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of one table, as `comparison_rows` gives them.
    heads : mapping of str to str
        Label of every column, in order.

    Returns
    -------
    header : list of str
        Model, source, then the columns.
    lines : list of list of str
        One a published row, and one a model of ours.
    footnotes : list of str
        What is missing, each said once; a cell without a value names its note by number.
    """
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    footnotes: list[str] = []
    for row in rows:
        line = lines.setdefault(line_of(row), {})
        line[row["column"]] = _cell(row, footnotes)
    header = ["Model", "Source", *heads.values()]
    return header, [[label, source, *(line.get(name, "") for name in heads)] for (label, source, _), line in lines.items()], footnotes


def _cell(row: Mapping[str, Any], footnotes: list[str]) -> str:
    value = row.get("value")
    if value in (None, ""):
        missing = str(row.get("missing") or "")
        if missing and missing not in footnotes:
            footnotes.append(missing)
        return f"[{footnotes.index(missing) + 1}]" if missing else ""
    digits = {"percent": 1, "score": 2, "count": 0, "usd": 2}[row["unit"]]
    text = f"{float(value):,.{digits}f}"
    low, high = row.get("low"), row.get("high")
    return text if low in (None, "") or high in (None, "") else f"{text} ({float(low):.{digits}f}–{float(high):.{digits}f})"
