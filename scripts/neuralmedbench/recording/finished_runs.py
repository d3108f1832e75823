"""Finished runs: list those whose results lie here, from their own files, and look up one cell of a table as typed by a person."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from neuralmedbench.config.load import nearest
from neuralmedbench.config.run_names import DEFAULT_RUN, RESULT_FOLDERS, results_folder
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.dvc_lock import DVC_LOCK, read_dvc_lock
from neuralmedbench.files.external_files import delimited_rows
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.tables import unguard_cell
from neuralmedbench.recording.metadata import METADATA, record_name
from neuralmedbench.records.items import Strategy
from neuralmedbench.records.responses import MISSING_STATES
from neuralmedbench.records.results import ALL_ARMS, COLUMNS
from neuralmedbench.records.words import counted
from neuralmedbench.runtime.console_tables import table_lines

OF_ALL_ARMS = frozenset({"destinations", "graders"})
"""Tables whose rows count the answers of all arms together."""


@dataclass(frozen=True)
class TableCell:
    """A cell: its table, row number (from 1) and column, and the texts of the whole row."""

    table: str
    number: int
    column: str
    row: dict[str, str]

    @property
    def value(self) -> str:
        """Text of the cell; empty if not available."""
        return self.row[self.column]

    @property
    def keys(self) -> dict[str, str]:
        """Columns that identify the row, with their values."""
        return {name: self.row[name] for name in _keys_of(self.table) if self.row.get(name)}

    @property
    def benchmarks(self) -> frozenset[str] | None:
        """Benchmarks that the row is about; None if the table is about all of them."""
        return self._named("benchmark")

    @property
    def models(self) -> frozenset[str] | None:
        """Models that the row is about, empty for a table without models or a row such as `prior`; None if it is about a grader of all models."""
        models = self._named("model", "other") or frozenset()
        return None if any(name.startswith("grader ") for name in models) else models

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms whose answers are in the row; empty for a row that counts all arms."""
        if self.table in OF_ALL_ARMS or self.row.get("arm") == ALL_ARMS:
            return ()
        named = [arm for name in ("arm", "arms", "reference_arm", "other_arm") for arm in (self.row.get(name) or "").split()]
        # measures of these tables compare one or several arms with full, or with each other
        beside = ["full"] if (self.row.get("topic") or self.table) in {"pressure", "decomposition", "degradation", "grounding"} else []
        return tuple(dict.fromkeys([*beside, *named])) or ("full",)

    @property
    def conditions(self) -> list[tuple[str, str]] | None:
        """Arms and strategies whose answers are in the row; None for a row that counts all arms."""
        if not self.arms:
            return None
        second = self.row.get("other_arm")
        if not second:
            return list(product(self.arms, self.strategies))
        first = [(arm, self.row["strategy"]) for arm in self.row["arm"].split()]
        return [*first, *((arm, self.row["other_strategy"]) for arm in second.split())]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies whose answers are in the row."""
        named = (self.row.get(name, "") for name in ("strategy", "other_strategy"))
        return tuple(dict.fromkeys(filter(None, named))) or (Strategy.DIRECT,)

    def _named(self, *columns: str) -> frozenset[str] | None:
        present = [name for name in columns if name in self.row]
        return frozenset(self.row[name] for name in present if self.row[name]) if present else None


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """What the files of a run say about it.

    Attributes
    ----------
    name : str
        Name of the run: that of its folder below `results/`, or `config`.
    configfiles : tuple of str
        Its configuration files; a run from before runs had names may be of another one than its folder says.
    made : str
        Day and time when its report was made, UTC; empty without a report.
    benchmarks, models : tuple of str
        What was run.
    answers, missing : int
        Answers, and those that are missing because a call failed, was skipped or was stopped by a cap.
    limited : bool
        True for a run of few answers (`limit`), which has no rank.
    recorded : bool
        True if `dvc.lock` names its report.
    """

    name: str
    configfiles: tuple[str, ...]
    made: str
    benchmarks: tuple[str, ...]
    models: tuple[str, ...]
    answers: int
    missing: int
    limited: bool
    recorded: bool


def list_runs(root: Path = Path()) -> list[RunSummary]:
    """List the runs with a `provenance.json` in `results/` or in a folder below it, that of config/config.yaml first, then by name.

    Raises
    ------
    ConfigError, DataError
        If `dvc.lock` or a `provenance.json` cannot be read.
    """
    recorded = set(read_dvc_lock(root / DVC_LOCK))
    # exports hold provenance too, and are no run
    named = [path for path in sorted((root / "results").glob("*")) if path.is_dir() and path.name not in RESULT_FOLDERS]
    folders = [root / "results", *named]
    return [_summary(folder, root, recorded) for folder in folders if (folder / "provenance.json").is_file()]


def finished_run(name: str, root: Path = Path()) -> RunSummary:
    """Return one run of `list_runs` by its name.

    Raises
    ------
    ConfigError
        If it is not here, or has no report yet.
    """
    runs = {run.name: run for run in list_runs(root)}
    run = runs.get(name)
    if run and run.made:
        return run
    files = () if name == DEFAULT_RUN else (run.configfiles if run else ()) or (f"config/{name}.yaml",)
    if run or name == DEFAULT_RUN or (root / results_folder(name)).is_dir() or (root / files[-1]).is_file():
        command = shlex.join(["snakemake", "--cores", "8", *(["--configfile", *files] if files else [])])
        message = f"{name}: this run has no report yet, so there is nothing to compare; finish it: {command}"
        raise ConfigError(message)
    message = f"{name}: no run of this name is here{nearest(name, list(runs)) or ', and no other one'} (`nmb run list`)"
    raise ConfigError(message)


def _summary(folder: Path, root: Path, recorded: set[str]) -> RunSummary:
    written: Mapping[str, Any] = read_json(folder / "provenance.json")
    report = (folder / "report.html").relative_to(root).as_posix()
    pairs = [(entry["benchmark"], entry["model"]) for entry in written.get("models", [])]
    states = Counter[str]()
    for benchmark, model in pairs:
        table = folder / "responses" / benchmark / f"{model}.parquet"
        if table.is_file():
            states.update(pq.read_table(table, columns=["state"])["state"].to_pylist())
    return RunSummary(
        name=folder.name if folder != root / "results" else DEFAULT_RUN,
        configfiles=tuple(written.get("configfiles") or _of_command(written.get("command", ""))),
        made=_time_made(report, root),
        benchmarks=tuple(dict.fromkeys(benchmark for benchmark, _ in pairs)),
        models=tuple(dict.fromkeys(model for _, model in pairs)),
        answers=states.total(),
        missing=sum(states[state] for state in MISSING_STATES),
        limited=bool(written.get("limited")),
        recorded=report in recorded,
    )


def _of_command(command: str) -> list[str]:
    """Return the configuration files in the command of a run from before `configfiles` was written."""
    words = command.split()
    return [after for word, after in pairwise(words) if word == "--configfile"]


def _time_made(report: str, root: Path) -> str:
    """Return when Snakemake made the report; a file restored from a record has its record's time, not that of the copy."""
    if not (root / report).is_file():
        return ""
    record = root / METADATA / record_name(report)
    ended = read_json(record).get("endtime") if record.is_file() else None
    return f"{datetime.fromtimestamp(ended or (root / report).stat().st_mtime, UTC):%Y-%m-%d %H:%M}"


def run_lines(runs: Sequence[RunSummary]) -> list[str]:
    """Return one line per run for a person."""
    rows = [
        (
            run.name,
            run.made or "no report",
            run.configfiles[-1] if run.configfiles else "config/config.yaml",
            f"{', '.join(run.benchmarks) or 'no benchmark'} by {', '.join(run.models) or 'no model'}",
            f"{counted(run.answers, 'answer')}, {run.missing or 'none'} missing",
            "limited, no rank" if run.limited else "recorded" if run.recorded else "not recorded",
        )
        for run in runs
    ]
    return table_lines(rows)


def look_up_cell(table: str, row: str, column: str, folder: Path = Path("results/tables")) -> TableCell:
    """Look up a cell.

    Parameters
    ----------
    table : str
        Name of a table, with or without folder and `.csv`.
    row : str
        Number (the first row below the header is 1), or enough `column=value` pairs to identify it, joined by commas.
    column : str
        Name of a column.
    folder : Path
        Folder of the tables.

    Returns
    -------
    TableCell
        The cell.

    Raises
    ------
    ConfigError
        If the table, row or column does not exist (with the nearest name), or several rows match.
    """
    name = Path(table).name.removesuffix(".csv")
    if name not in COLUMNS:
        message = f"{name}: no table has this name{nearest(name, list(COLUMNS))}"
        raise ConfigError(message)
    try:
        lines = [cells for _, cells in delimited_rows(folder / f"{name}.csv")]
    except OSError:
        message = f"{name}.csv: the table is missing; run the pipeline, or `nmb run pull`"
        raise ConfigError(message) from None
    rows = [{name: unguard_cell(cell or "") for name, cell in cells.items()} for cells in lines]
    head = list(rows[0]) if rows else list(COLUMNS[name])
    if column not in head:
        message = f"{name}: no column {column!r}{nearest(column, head)}"
        raise ConfigError(message)
    # digits are a row number, everything else is column=value pairs
    number = _by_number(name, row, len(rows)) if row.isdecimal() else _by_values(name, row, head, rows)
    return TableCell(name, number, column, rows[number - 1])


def _keys_of(table: str) -> tuple[str, ...]:
    from neuralmedbench.tables.declare import NUMBER
    from neuralmedbench.tables.write import TABLES

    return next((one.keys for one in TABLES if one.name == table), tuple(NUMBER.split()))


def _by_number(table: str, row: str, last: int) -> int:
    if not 1 <= int(row) <= last:
        has = f"{counted(last, 'row')}, the first is 1" if last else "none in this run"
        message = f"{table}: no row {row}; it has {has}"
        raise ConfigError(message)
    return int(row)


def _by_values(table: str, row: str, head: Sequence[str], rows: Sequence[dict[str, str]]) -> int:
    fitting = list(range(len(rows)))
    for words in row.split(","):
        column, equals, value = words.partition("=")
        if not equals:
            message = f"{table}: the row {words!r} is neither a number nor of the form column=value, as in benchmark=demo,model=fusion"
            raise ConfigError(message)
        if column not in head:
            message = f"{table}: no column {column!r}{nearest(column, head)}"
            raise ConfigError(message)
        # each pair narrows the rows; values still possible are suggested
        known = sorted({rows[place][column] for place in fitting})
        fitting = [place for place in fitting if rows[place][column] == value]
        if not fitting:
            message = f"{table}: no row with {words}{nearest(value, known)}"
            raise ConfigError(message)
    if len(fitting) > 1:
        differ = [name for name in _keys_of(table) if len({rows[place].get(name) for place in fitting}) > 1]
        message = f"{table}: {len(fitting)} rows match {row}; add {' or '.join(differ) or 'their number'}, or give the number of the row"
        raise ConfigError(message)
    return fitting[0] + 1
