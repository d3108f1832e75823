"""Our values for the cells of a published table, or the reason why there is none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.published import Lookup, PublishedConfig, PublishedRow, PublishedTable
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import ALL_ARMS, COLUMNS, SIMULATED, files_of, is_simulated, types_of_table, with_board_names
from neuralmedbench.records.words import ONCE, percent_span
from neuralmedbench.tables.declare import Cells
from neuralmedbench.tables.papers.shape import OURS

SIMULATED_LABELS = "labels of simulated raters say nothing about a model and are not shown here; a round of clinicians fills it (results/ratings/ratings.parquet)"


@dataclass(frozen=True)
class Labeller:
    """A source of labels.

    Attributes
    ----------
    words : str
        Description; empty where a table has no labels.
    source : str
        Its column `source`; empty where a table has no labels.
    simulated : bool
        True for a program in place of a rater: it fills no cell.
    nobody : bool
        True if nobody labelled this model's answers.
    """

    words: str = ""
    source: str = ""
    simulated: bool = False
    nobody: bool = False


def labellers_of(rows: Iterable[Mapping[str, str]]) -> list[Labeller]:
    """Return the sources of labels, in the order of the rows of topic `errors` about one model; at least one."""
    found = dict[Labeller, None]()
    for row in rows:
        source, simulated = row["source"], is_simulated(row)
        people = f"{'simulated raters' if simulated else 'clinicians'}, {source.removeprefix(SIMULATED)}"
        found[Labeller(people if " " in source else f"grader {source}", source, simulated)] = None
    return list(found) or [Labeller(nobody=True)]


SIMULATED_READER = "a simulated reader is no person, and no model"
IN_POOL = "by its answers the items were chosen (reference pool)"
KINDS = {
    "exact": "exact, on the effective number of patients",
    "exact one-sided": "exact one-sided, over patients",
    "bootstrap": "bootstrap over patients",
}
BY_PATIENT = "by patient (docs/metrics.md)"

CsvRow = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class OwnResults:
    """Our results.

    Attributes
    ----------
    benchmark : str
        Our benchmark of the same items.
    models, graders : mapping
        Models and graders of the run, in the order of the run lists.
    folder : Path
        Folder of the tables of results.
    results : str
        Folder of the results as messages name it.
    absent : str
        Reason why we have no result on the benchmark; empty if it is in the run.
    confidence : float
        Level of all intervals.
    """

    benchmark: str
    models: Mapping[str, ModelConfig]
    graders: Mapping[str, GraderConfig] = field(default_factory=dict)
    folder: Path
    absent: str
    confidence: float = 0.95
    results: str = "results"
    _read: dict[str, dict[str, list[dict[str, str]]]] = field(default_factory=dict)

    def rows(self, table: str, model: str) -> list[dict[str, str]]:
        """Return the rows of a results table about a model on our benchmark; each table is read once."""
        if table not in self._read:
            by_model = self._read[table] = defaultdict(list)
            for row in read_result(self.folder, table):
                if row["benchmark"] == self.benchmark:
                    by_model[row["model"]].append(with_board_names(row) if table in TOPICS else row)
        return self._read[table].get(model, [])

    def meant_by(self, line: PublishedRow) -> list[str]:
        """Return the models of the run that match a published row, by file name or by model id."""
        return [name for name, model in self.models.items() if name == line.model or _matches(model, line.ids)]


def model_id(model: ModelConfig) -> str:
    """Return the id of a model after its last `/`: the folder of weights is a path on this machine."""
    return model.id.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _matches(model: ModelConfig, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(model_id(model).lower(), pattern.lower()) for pattern in patterns)


def own_cells(model: str, table: PublishedTable, ours: OwnResults) -> Iterator[Cells]:
    """Yield the cells of one of our models in one table of a paper: rows of `results/tables/paper/<paper>.csv`.

    In a row without a value `missing` names the file that would fill it.

    Raises
    ------
    DataError
        If more than one row of a table of results fits a cell.
    """
    config = ours.models.get(model)
    head: Cells = {
        "kind": OURS,
        "label": config.title if config else model,
        "model": model,
        "group": "human" if config and config.reader else "",
    }
    head |= {"model_id": model_id(config)} if config and not config.reader else {}
    for labeller in _labellers(model, table, ours):
        for name, column in table.columns.items():
            if column.ours:
                cell = head | {"source": labeller.words, "column": name, "unit": column.unit}
                yield cell | _own_value(model, column.ours, ours, labeller, scale=100 if column.unit == "percent" else 1)


def _labellers(model: str, table: PublishedTable, ours: OwnResults) -> list[Labeller]:
    places = [column.ours.table for column in table.columns.values() if column.ours]
    if ours.absent or not (table.by_labeller and places):
        return [Labeller()]
    return labellers_of(ours.rows(places[0], model))


def _own_value(model: str, lookup: Lookup, ours: OwnResults, labeller: Labeller, *, scale: int) -> Cells:
    topic = f"topic {lookup.table} of " if lookup.table in TOPICS else ""
    place = f"{topic}{ours.results}/tables/{files_of(lookup.table)[0]}.csv"
    source = lookup.made_from.format(benchmark=ours.benchmark, model=model)
    source = source.replace("results/", f"{ours.results}/")
    if reason := _reason_without(model, ours, labeller, source):
        return {"missing": reason}
    # select the rows of the cell
    wanted = {name: (value,) if isinstance(value, str) else value for name, value in lookup.where.items()}
    wanted |= {"source": (labeller.source,)} if labeller.source else {}
    found = [row for row in ours.rows(lookup.table, model) if all(row[name] in values for name, values in wanted.items())]
    if len(found) > max(map(len, wanted.values()), default=1):
        message = f"{place}: {len(found)} rows fit one cell of a paper's table ({ours.benchmark}, {model}); name more columns in `where`"
        raise DataError(message)
    if not found:
        board = ours.rows("leaderboard", model)
        lost = _count(board[0]["missing"]) if board else None
        if lost and lost == _count(board[0]["expected"]):  # then no table has a rate of it
            return {"missing": _all_missing(lost, source)}
        text = ", ".join(f"{name} {' or '.join(values)}" for name, values in wanted.items())
        return {"missing": f"no row{f' with {text}' if text else ''} in {place}, which is made from {source}"}
    if any(not row[lookup.value] or (lookup.per and not float(row[lookup.per] or 0)) for row in found):
        return {"missing": f"no {lookup.value} in its row of {place}: {_why_no_value(found[0], lookup, source)}"}
    lost, expected = (max(_count(row.get(name, "")) or 0 for row in found) for name in ("missing", "expected"))
    if lost and lost == expected:
        return {"missing": _all_missing(expected, source)}
    # a value, with notes on what it lacks
    cell = _value_cells(found, lookup, ours, scale * lookup.times)
    notes = [f"{lost:,} of {expected:,} answers or grades are missing and count as wrong"] if lost and expected else []
    without = [value for name, values in wanted.items() for value in values if not any(row[name] == value for row in found)]
    notes += [f"without {', '.join(without)}, of which nothing could be told"] if without else []
    notes += [IN_POOL] if any(row.get("in_reference_pool") == "true" for row in found) else []
    return cell | ({"note": "; ".join(notes)} if notes else {})


def _why_no_value(row: CsvRow, lookup: Lookup, source: str) -> str:
    """Say why a row has no value: missing answers leave it open, it is hidden in a public report, or its note says it."""
    between = percent_span(row.get("worst_case"), row.get("best_case"), ONCE)
    lost, expected = _count(row.get("missing", "")), _count(row.get("expected", ""))
    if between and lost and expected and lookup.value in ("value", "pass1"):  # the bounds are those of this column
        return f"{lost:,} of {expected:,} answers or grades are missing, so it would be {between}"
    # in a public report the count of a hidden row holds its mark
    hidden = row[lookup.n]
    return row.get("note") or (hidden if _count(hidden) is None and hidden else f"made from {source}")


def _all_missing(number: int, source: str) -> str:
    return f"all {number:,} answers or grades of it are missing ({source})"


def _reason_without(model: str, ours: OwnResults, labeller: Labeller, source: str) -> str:
    """Return the reason not to look for a value; empty if there is none."""
    if ours.absent:
        return f"{ours.absent}; then {source} fills it"
    if model not in ours.models:
        return f"config/models/{model}.yaml is not among the `models` of this run"
    if ours.models[model].reader == "simulated":
        return SIMULATED_READER
    if labeller.simulated:
        return SIMULATED_LABELS
    return _why_unanswered(model, ours) or (f"nobody labelled its answers; {source} fills it" if labeller.nobody else "")


def _count(text: str) -> int | None:
    """Read a whole number; None for anything else, such as the mark of a hidden row in a public report."""
    return int(float(text)) if text.replace(".", "", 1).isdecimal() else None


def _value_cells(found: Sequence[CsvRow], lookup: Lookup, ours: OwnResults, factor: float) -> Cells:
    """Return value, interval and n; for several rows the sum, without an interval."""

    def one(row: CsvRow, column: str) -> float:
        return factor * float(row[column]) / (float(row[lookup.per]) if lookup.per else 1.0)

    first = found[0]
    cell: Cells = {
        "value": sum(one(row, lookup.value) for row in found),
        "n": max((n for row in found if (n := _count(row[lookup.n])) is not None), default=None),
    }
    if len(found) == 1 and first.get(lookup.low) and first.get(lookup.high):
        # tables without this column hold intervals by patient
        kind = KINDS.get(first.get("interval", ""), BY_PATIENT)
        cell |= {"low": one(first, lookup.low), "high": one(first, lookup.high), "interval": f"{100 * ours.confidence:g} % {kind}"}
    return cell


def _why_unanswered(model: str, ours: OwnResults) -> str:
    """Return the reason if a model answered nothing, which empties all its cells; else an empty string."""
    asked = [row for row in ours.rows("costs", model) if row["arm"] == ALL_ARMS]
    if not asked or any(int(row["answered"]) for row in asked):
        return ""
    number = sum(int(row["requests"]) for row in asked)
    return f"{model} answered none of {number:,} requests ({ours.results}/responses/{ours.benchmark}/{model}.parquet): the last lines of the run say why, and what to do"


def check_places(published: PublishedConfig) -> None:
    """Check the lookups of all columns.

    Raises
    ------
    ConfigError
        If a lookup names no table or column of results, or a file name has an unknown placeholder.
    """
    for name, table in published.tables.items():
        for key, column in table.columns.items():
            if column.ours and (problem := _problem(column.ours)):
                message = f"{published.title}: tables.{name}.columns.{key}.ours: {problem}"
                raise ConfigError(message)


def _problem(lookup: Lookup) -> str:
    known = [*COLUMNS, *TOPICS]
    if lookup.table not in known:
        return f"there is no table {lookup.table!r} of results; there are: {', '.join(known)}"
    columns = tuple(types_of_table(lookup.table))
    # low and high are defaults, which some tables lack
    named = {*lookup.where, lookup.value, lookup.n, lookup.per, lookup.low, lookup.high} - {"", "low", "high"}
    if unknown := sorted(named - set(columns)):
        return f"the table {lookup.table} of results has no column {unknown[0]!r}; it has: {', '.join(columns)}"
    placeholders = sorted(set(re.findall(r"{(.*?)}", lookup.made_from)) - {"benchmark", "model"})
    return f"made_from: unknown placeholder {{{placeholders[0]}}}; use {{benchmark}} and {{model}}" if placeholders else ""
