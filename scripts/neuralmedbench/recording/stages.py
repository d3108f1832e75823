"""Write `dvc.yaml` from Snakemake's records of the recorded runs, list the rules that Snakemake would still run, and make files again."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.config.run_names import results_of
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.dvc_lock import read_dvc_lock
from neuralmedbench.recording.metadata import METADATA, OutputRecord, is_shown, upstream_records
from neuralmedbench.records.scores import PLANTED, SIMULATED_ROUND
from neuralmedbench.runtime.atomic_write import is_partial

HEADER = "# Written by `nmb run record`; do not edit by hand. Snakemake is the engine, this is its ledger.\n"
INPUTS = ["Snakefile", "rules", "scripts", "config"]
"""Dependencies of every run: what git holds. Snakemake decides what a change of them makes again."""
MADE_BY_RULES = re.compile(r"results/|data/(?:deidentified|normalised|slices|altered|views|items|gold|disclosures|prompts|leaks)/")
PLOT = {"template": "leaderboard", "x": "pass1", "y": "model", "x_label": "pass@1", "y_label": "model", "title": "pass@1 by benchmark"}


def dvc_yaml(runs: Sequence[Run], made: Iterable[OutputRecord]) -> str:
    """Return the text of `dvc.yaml` for the runs that are recorded.

    Parameters
    ----------
    runs : sequence of Run
        The runs. One with a private benchmark is left out. Data that several of them use are recorded once, with the first.
    made : iterable of OutputRecord
        Snakemake's records: the files that the rules made for the report of each run, and those that people wrote for it.

    Returns
    -------
    str
        One stage a run, which calls Snakemake for its report, so that there is one way to make a file; every out persists, so that Snakemake
        can resume from it. The files by people, the ledgers and Snakemake's own records are stages that DVC never runs.

    Raises
    ------
    DataError
        If Snakemake has no record of how a result was made.
    """
    records = list(made)
    shared = [run for run in runs if len(run.recorded()) == len(run.benchmarks)]
    by_hand: list[str] = []
    stages: dict[str, Any] = {}
    taken: set[str] = set()
    for run in sorted(shared, key=lambda run: (bool(run.configfiles), run.name)):
        outputs, written = files_of(run, records)
        outs = sorted({_place(path, run) for path in outputs} - taken)
        by_hand += [_place(path, run) for path in written]
        metrics = f"{run.results}/metrics.json"
        # DVC allows no dot in the name of a stage
        stages[f"report-{run.name.replace('.', '_')}" if run.configfiles else "report"] = {
            "cmd": shlex.join(["snakemake", "--cores", "8", *run.options("--configfile"), "--", run.report]),
            "deps": [*INPUTS],
            "outs": [_out(path) for path in outs if path != metrics],
            "metrics": [_out(metrics)],
        }
        taken.update(outs)
    frozen = {
        "by_hand": ("written by people", by_hand),
        "ledgers": ("appended to by models and graders", [path for run in shared for path in _ledgers(run)]),
        "records": ("written by Snakemake", [METADATA.as_posix()]),
    }
    for name, (who, paths) in frozen.items():
        unique = sorted({*paths} - taken)
        if unique:
            stages[name] = {"cmd": f"echo {who}", "frozen": True, "outs": [_out(path) for path in unique]}
    plots = [{f"{run.results}/tables/leaderboard.csv": {**PLOT}} for run in shared]
    return HEADER + yaml.safe_dump({"stages": stages, "plots": plots}, sort_keys=False, width=140)


def files_of(run: Run, records: Sequence[OutputRecord]) -> tuple[set[str], set[str]]:
    """Return the files that rules made for the report of a run, and those that people wrote; nothing of the private zone.

    Raises
    ------
    DataError
        If a result has no record.
    """
    chain = upstream_records(records, run.report)
    # a rule makes files that no other one reads, such as pages for people
    commands = {made.shellcmd for made in chain.values()}
    outputs = {made.path for made in records if made.shellcmd in commands}
    inputs = {path for made in chain.values() for path in made.inputs} - outputs
    if lost := sorted(path for path in inputs | ({run.report} - outputs) if MADE_BY_RULES.match(path)):
        message = f"Snakemake has no record of how {lost[0]} was made; delete it and run again"
        raise DataError(message)
    return set(filter(is_shown, outputs)), {path for path in inputs if path.startswith("data/") and is_shown(path)}


def leftovers(run: Run, records: Sequence[OutputRecord]) -> list[str]:
    """Find what lies in recorded folders and is not part of the run: withdrawn cases, tables of another version; sorted paths."""
    outputs, _ = files_of(run, records)
    parts = outputs | {parent.as_posix() for path in outputs for parent in Path(path).parents}
    folders = {Path(_place(path, run)) for path in outputs}
    inside = [path for folder in folders for pattern in ("*", "paper/*") for path in folder.glob(pattern)]
    # DVC leaves out what a killed process left behind, too
    return sorted({path.as_posix() for path in inside if not is_partial(path)} - parts)


def _place(path: str, run: Run) -> str:
    """Return the folder that is recorded in place of a file: of many files, one a case for example."""
    if path.startswith("data/"):
        return "/".join(path.split("/")[:3])
    folders = (f"{run.results}/tables", f"{run.results}/figures", run.round_folder(SIMULATED_ROUND))
    return next((folder for folder in folders if path.startswith(f"{folder}/")), path)


def _ledgers(run: Run) -> list[str]:
    """Return the ledgers of a run; runs share them, so that no answer is paid for twice."""
    asking = [name for name, grader in run.all_graders.items() if grader.kind == "llm"]
    names = [*run.models, *(f"graders/{model}/{grader}" for model in (PLANTED, *run.models) for grader in asking)]
    return [f"data/ledger/{benchmark}/{name}.jsonl" for benchmark in run.recorded() for name in names]


def _out(path: str) -> dict[str, dict[str, bool]]:
    return {path: {"persist": True}}


NOTHING_TO_DO = "Nothing to be done"


def recorded_runs(run: Run) -> list[Run]:
    """Read the other runs that `dvc.lock` records, from the commands of their reports; a run whose configfile is gone is left out.

    Raises
    ------
    ConfigError
        If the configuration of one cannot be read.
    """
    others = []
    for path, out in read_dvc_lock().items():
        words = [word for word in shlex.split(out.command) if word != "--"]
        if not path.endswith("/report.html") or words[-1:] != [path] or path == run.report:
            continue
        names = words[words.index("--configfile") + 1 : -1] if "--configfile" in words else []
        # before runs had names, the run of any configfile lay in results/
        if all(Path(name).is_file() for name in names) and path == f"{results_of(names)}/report.html":
            others.append(read_run([Path(name) for name in names], run.folder))
    return others


def planned_rules(run: Run) -> list[str]:
    """Return the rules that Snakemake would run for the report, with reasons, sorted; empty if the report is complete."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "--nolock", *run.options("--configfile"), "--", run.report]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    output = done.stdout + done.stderr
    if done.returncode != 0:
        message = (
            f"the run cannot be planned; `{shlex.join(['snakemake', '-n', *run.options('--configfile'), '--', run.report])}` shows why"
        )
        raise ConfigError(message)
    # Snakemake's dry run states this line if the target is complete
    return [] if NOTHING_TO_DO in output else sorted(set(_rules(output.splitlines())))


def _rules(lines: Sequence[str]) -> list[str]:
    """Read rules and their reasons from Snakemake's dry run: a line `rule NAME:`, below it a line `reason: ...`."""
    rules, rule = [], ""
    for line in lines:
        words = line.strip()
        if words.startswith(("rule ", "localrule ")):
            rule = words.split()[1].rstrip(":")
        elif words.startswith("reason:") and rule:
            rules.append(f"{rule} ({words.removeprefix('reason:').strip().split(':')[0]})")
    return rules


def run_again(files: Sequence[str], run: Run, *, cores: int = 1) -> int:
    """Run Snakemake to make some files and the report again; return its exit code."""
    return make_files([run.report], run, cores=cores, again=files)


def make_files(targets: Sequence[str], run: Run, *, cores: int = 1, again: Sequence[str] = ()) -> int:
    """Run Snakemake to make the targets of a run, and some files again even if they are up to date; return its exit code."""
    forced = ["--forcerun", *again] if again else []
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *run.options("--configfile"), *forced, "--", *targets]
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"  # rules call `python`
    # Snakemake answers Ctrl-C (`runtime.terminal`): here it is ignored, and there too until its rules are read, instead of a traceback
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(command, check=False, env={**os.environ, "PATH": path}).returncode
    finally:
        signal.signal(signal.SIGINT, handler)
