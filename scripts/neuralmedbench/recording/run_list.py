"""List the runs whose results lie here, from their own files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from neuralmedbench.config.load import nearest
from neuralmedbench.config.run_names import DEFAULT_RUN, results_folder
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.dvc_lock import DVC_LOCK, read_dvc_lock
from neuralmedbench.files.json_files import read_json
from neuralmedbench.recording.metadata import METADATA, record_name
from neuralmedbench.records.responses import MISSING_STATES
from neuralmedbench.records.words import counted


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
    folders = [root / "results", *sorted(path for path in (root / "results").glob("*") if path.is_dir())]
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
        made=_made(report, root),
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


def _made(report: str, root: Path) -> str:
    """Return when Snakemake made the report; a file restored from a record has its record's time, not that of the copy."""
    if not (root / report).is_file():
        return ""
    record = root / METADATA / record_name(report)
    ended = read_json(record).get("endtime") if record.is_file() else None
    return f"{datetime.fromtimestamp(ended or (root / report).stat().st_mtime, UTC):%Y-%m-%d %H:%M}"


def run_lines(runs: Sequence[RunSummary]) -> list[str]:
    """Return one line per run for a person."""
    width = max((len(run.name) for run in runs), default=0)
    return [
        "  ".join(
            [
                f"{run.name:{width}}",
                run.made or "no report       ",
                run.configfiles[-1] if run.configfiles else "config/config.yaml",
                f"{', '.join(run.benchmarks) or 'no benchmark'} by {', '.join(run.models) or 'no model'}",
                f"{counted(run.answers, 'answer')}, {run.missing or 'none'} missing",
                *(["limited, no rank"] if run.limited else []),
                "recorded" if run.recorded else "not recorded",
            ]
        )
        for run in runs
    ]
