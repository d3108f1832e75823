"""Record a complete run with DVC, and list the answers and grades that an incomplete one lacks."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.run_names import run_of
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DataError, PipelineError
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.packs import pack_absent, packed_outs, unpack_absent
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.causes import can_be_asked, next_step
from neuralmedbench.recording.audit import holds_any, stale_files
from neuralmedbench.recording.metadata import (
    METADATA,
    OutputRecord,
    is_running,
    make_again,
    read_metadata,
    record_name,
    repair_metadata,
    upstream_records,
)
from neuralmedbench.recording.repository import LEDGERS, open_repository, why_not_versioned
from neuralmedbench.recording.stages import dvc_yaml, leftovers, planned_rules, recorded_runs
from neuralmedbench.records.responses import MISSING_STATES, Response
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import PLANTED, Grade, GradeState
from neuralmedbench.records.words import counted, plural
from neuralmedbench.runtime.atomic_write import write_text

NOT_SET = re.compile(r"the environment variable (\w+) is not set")
"""Cause of an answer that was skipped (`models.registry.unavailable_reason`)."""
SET_BY_NOW = "was not set, and is now"


def record_run(run: Run, *, overridden: bool) -> str:
    """Record a complete run: put its files into DVC's cache and their digests into `dvc.lock`, beside those of the other recorded runs.

    Parameters
    ----------
    run : Run
        The run.
    overridden : bool
        True if settings were given on the command line: they are in no file, so the run could not be repeated.

    Returns
    -------
    str
        One line: what was recorded, or why nothing was.

    Raises
    ------
    DataError
        If the run is stale, a recorded folder holds files that are not part of it, or another recorded run is not here as recorded.
    ConfigError
        If DVC is installed but cannot be used.
    """
    for folder in packed_outs(run.recorded()):
        pack_absent(folder)
    if "DVC_STAGE" in os.environ:
        return ""  # DVC started this run: it holds its own lock and records by itself
    limited = f"this is a limited run of {run.config.limit} answers" if run.config.limit else ""
    reason = limited or why_not_versioned() or _why_not_recorded(run, overridden=overridden)
    if reason:
        return f"nothing was recorded: {reason}"
    # a run is recorded only if it is complete, holds nothing else, and every result matches its inputs
    if planned := planned_rules(run):  # also after a run that made only some of the files
        return f"the report is not up to date, so nothing was recorded; still to do: {', '.join(planned)}"
    records = list(read_metadata())
    if extra := leftovers(run, records):
        message = f"nothing was recorded: {len(extra)} files or folders here are not part of this run (first {extra[0]}); delete them and run again"
        raise DataError(message)
    if stale := stale_files(upstream_records(records, run.report)):
        message = f"nothing was recorded: {len(stale)} results are stale ({stale[0]}); `nmb run audit` lists them"
        raise DataError(message)
    others = recorded_runs(run)
    changed = _changed_beside(run, others)
    # the stages of all recorded runs, each with its configfiles
    before = Path("dvc.yaml").read_text(encoding="utf-8") if Path("dvc.yaml").is_file() else ""
    text = dvc_yaml([run, *others], records)
    if text != before:
        write_text(Path("dvc.yaml"), text)
    try:
        with open_repository() as repository:
            count = repository.commit()
    except PipelineError:
        write_text(Path("dvc.yaml"), before or text)
        raise
    beside = f" ({len(others) + 1} runs: {', '.join(sorted(one.name for one in [run, *others]))})" if others else ""
    line = f"recorded: {count} outs in dvc.lock{beside}; commit dvc.yaml and dvc.lock with git, `dvc push` shares them"
    return "; ".join([line, *_overtaken(others, changed, records)])


def _changed_beside(run: Run, others: Sequence[Run]) -> list[str]:
    """Return the recorded outs that have changed; the results of other recorded runs may not have: their record would be of half a run."""
    if not others:
        return []
    with open_repository() as repository:
        changed = repository.changed()
    for other in others:
        if found := [path for path in changed if other.owns(path)]:
            what = "is not" if not Path(found[0]).exists() else "has changed"
            message = (
                f"nothing was recorded: {found[0]} of the recorded run {other.name} {what} here; `nmb run pull` brings it back, or finish that"
                f" run: {shlex.join(['snakemake', '--cores', '8', *other.options('--configfile')])}"
            )
            raise DataError(message)
    return [path for path in changed if not run.owns(path)]


def _overtaken(others: Sequence[Run], changed: Sequence[str], records: Sequence[OutputRecord]) -> Iterator[str]:
    """Yield a remark for each run whose shared data this run has made again, with other settings for example."""
    for other in others:
        inputs = {path for made in upstream_records(records, other.report).values() for path in made.inputs}
        used = [path for path in changed if not path.startswith(LEDGERS) and holds_any(path, inputs)]
        if used:
            yield f"run {other.name} is out of date: {used[0]} has been made again since"


def _why_not_recorded(run: Run, *, overridden: bool) -> str:
    if overridden:
        return "settings given with --config are in no file; put them into a configfile"
    if any(Path(name).parts[0] == ".." for name in run.configfiles):
        return "the configfile is outside the project"
    recorded = set(run.recorded())
    private = [name for name in run.benchmarks if name not in recorded]
    if private:
        what = f"`private: true` keeps {plural(len(private), 'benchmark')} {', '.join(private)} out of what is recorded and shared"
        return f"{what} (`record: true` in its yaml records it, for your own DVC remote)"
    # Snakemake's records are part of the last stage, so they must not name a private benchmark
    others = sorted({name for name in _benchmarks_in_metadata() if name not in recorded and _is_private(run.folder, name)})
    if others:
        named = f"{plural(len(others), 'benchmark')} {', '.join(others)}, which `private: true` keeps out of what is recorded and shared"
        return f"Snakemake's records here also name {named}; keep such benchmarks in a separate clone"
    return ""


def _benchmarks_in_metadata() -> set[str]:
    """Return the benchmarks in the paths of Snakemake's records: `data/<stage>/<benchmark>...`, `results/<kind>/<benchmark>...`."""
    # folders of files that belong to no single benchmark
    shared = {"tables", "figures", "ratings"}
    paths = [_without_run(Path(made.path)) for made in read_metadata()]
    return {Path(parts[2]).stem if len(parts) == 3 else parts[2] for parts in paths if len(parts) > 2 and parts[1] not in shared}


def _without_run(path: Path) -> tuple[str, ...]:
    """Return the parts of a path without the folder of a named run."""
    found = run_of(path)
    return ("results", *found[1]) if found else path.parts


def _is_private(folder: Path, name: str) -> bool:
    try:
        benchmark = load_benchmark(folder, name)
    except ConfigError:  # without a valid YAML file, nothing states that it may be shared
        return True
    return benchmark.private and not benchmark.record


def repairs(run: Run) -> list[str]:
    """Have Snakemake make again what a power cut, a failed attempt or a person took away; return a line about each file.

    `dvc pull` brings packs alone: those without a folder are unpacked. DataError if one is damaged.
    """
    for folder in packed_outs(run.benchmarks):
        unpack_absent(folder)
    torn = [f"{path}: Snakemake's record of it is torn; it is made again" for path in repair_metadata()]
    return [*torn, *(f"{path} is gone; it is made again, and what is made from it" for path in restore_results(run))]


def restore_results(run: Run, root: Path = Path()) -> list[str]:
    """Have the files between the answers and the report of a finished run made again that were made and are gone; return their paths.

    Snakemake takes a report for up to date although such a file is gone: deleted by hand because it was damaged, or by Snakemake itself
    when a later attempt to make it failed. While a Snakemake runs here nothing is gone for good.
    """
    if not (root / run.report).is_file() or is_running(root):
        return []
    made = scored_files(run)
    made += [f"{run.results}/cases/{name}.parquet" for name in run.benchmarks]
    made += [f"{run.results}/tables/{table}.csv" for table in COLUMNS]
    made += [f"{run.results}/figures/{figure}.svg" for figure in FIGURES]
    lost = [path for path in made if not (root / path).exists() and (root / METADATA / record_name(path)).is_file()]
    if lost:
        # all that may have been made from them is made again: scores, tables, figures, and the page
        after = tuple(f"{run.results}/{part}/" for part in ("scores", "tables", "figures"))
        make_again([run.report, *(path for path in made if path.startswith(after))], root)
    return lost


def scored_files(run: Run) -> list[str]:
    """Return the paths of the answers, grades and scores from which the tables of a run are made."""
    judged = [f"grades/{{0}}/{model}/{grader}" for model in (*run.models, PLANTED) for grader in run.all_graders]
    answered = [f"{part}/{{0}}/{model}" for part in ("responses", "scores") for model in run.models]
    names = [*answered, *judged, "similarity/{0}", "planted/{0}"]
    return [f"{run.results}/{name.format(benchmark)}.parquet" for name in names for benchmark in run.benchmarks]


Causes = Counter[tuple[str, str]]
"""Number of missing answers or grades by state and cause."""


def incomplete_files(run: Run, root: Path = Path(), *, askable: bool = True) -> dict[str, Causes]:
    """Find the tables of responses and grades with missing rows: those that can be asked for again, or the others.

    Parameters
    ----------
    run : Run
        The run; tables that do not exist yet are skipped, because Snakemake makes them anyway.
    root : Path
        The repository root.
    askable : bool
        False: rows that stay missing until a configuration is changed.

    Returns
    -------
    dict of str to Counter
        What is missing of a table, by its path; responses first, in the order of the run lists.
    """
    imported = {name for name, model in run.models.items() if model.backend == "imported"}
    incomplete = {}
    for path in scored_files(run):
        # imported answers, those of readers too, are never requested
        if path.startswith(f"{run.results}/responses/") and Path(path).stem in imported:
            continue
        causes = Counter({key: number for key, number in _missing(root / path).items() if can_be_asked(key[1]) is askable})
        if causes:
            incomplete[path] = causes
    return incomplete


def _missing(path: Path) -> Causes:
    """Count what is missing of a table of answers or grades; nothing of another table, or of one that is not there."""
    kind = path.parts[-4:-2]
    if not path.is_file():
        return Counter()
    if kind[0] != "grades":
        rows = read_records(path, Response) if kind[-1] == "responses" else []
        return Counter((str(row.state), row.error) for row in rows if row.state in MISSING_STATES)
    # a grader that was not asked about planted errors is complete, and an answer stays in its language
    lost = {GradeState.FAILED} if path.parent.name == PLANTED else set(GradeState) - {GradeState.OK, GradeState.NOT_GRADED}
    return Counter((str(row.state), row.explanation) for row in read_records(path, Grade) if row.state in lost)


def missing_lines(run: Run, root: Path = Path()) -> list[str]:
    """Return what is missing in a finished run, why, and what to do; none if nothing is.

    Parameters
    ----------
    run : Run
        The run.
    root : Path
        The repository root.
    """
    asked = incomplete_line(incomplete_files(run, root), run)
    final = incomplete_line(incomplete_files(run, root, askable=False), run, askable=False)
    return [*filter(None, [asked, final]), *_not_handed_in(run, root), *not_graded_lines(run.results, run.benchmarks, root)]


def _not_handed_in(run: Run, root: Path) -> Iterator[str]:
    """Yield a line for each benchmark and model whose imported answers are not complete; a reader answers only the questions of a round."""
    for benchmark in run.benchmarks:
        for model, config in run.models.items():
            path = root / f"{run.results}/responses/{benchmark}/{model}.parquet"
            if config.backend == "imported" and not config.reader and (number := _missing(path).total()):
                command = f"nmb model import FILE --benchmark {benchmark} --model {model}"
                yield f"missing: {counted(number, 'imported answer')} of {model} to {benchmark}; hand in the rest with `{command}`, and run again"


def incomplete_line(files: Mapping[str, Causes], run: Run, *, askable: bool = True) -> str:
    """Summarise in one line how many answers and grades are missing and why, with what to do about it; empty if none is.

    Parameters
    ----------
    files : mapping of str to Counter
        The tables with missing rows, as of `incomplete_files`.
    run : Run
        Their run.
    askable : bool
        As in `incomplete_files`.
    """
    words, in_batches = [], set[bool]()
    for kind, folder in (("answers", f"{run.results}/responses/"), ("grades", f"{run.results}/grades/")):
        causes: Causes = Counter()
        for path, missing in files.items():
            if path.startswith(folder):
                causes.update({(state, _as_of_now(why, Path(path).stem)): number for (state, why), number in missing.items()})
        in_batches |= {"handed in with" in why for _, why in causes}  # with a batch that had not ended
        if causes:
            words.append(f"{causes.total()} {kind} ({'; '.join(_by_state(causes))})")
    if words and not askable:
        steps = dict.fromkeys(step for missing in files.values() for _, why in missing if (step := next_step(why)))
        return "; ".join([f"missing: {' and '.join(words)}, which asking again does not bring", *steps])
    command = shlex.join(["nmb", "run", "retry", *run.options("--configfiles")])
    verb = "collects those of a batch and requests the rest again" if len(in_batches) > 1 else "requests them again"
    return f"missing: {' and '.join(words)}; `{command}` {'collects them' if in_batches == {True} else verb}" if words else ""


def _as_of_now(why: str, whose: str) -> str:
    """Return a recorded cause as it stands, a key with the model or grader that needs it: one that was not set then may be set now."""
    found = NOT_SET.fullmatch(why)
    if not found:
        return why
    return f"{found[1]} {SET_BY_NOW} (the key of {whose})" if os.environ.get(found[1]) else f"{why} (the key of {whose})"


def not_graded_lines(results: str, benchmarks: Iterable[str], root: Path = Path()) -> list[str]:
    """Return what the tables of a run say of answers that came and have no grade: how many, why, and what to do; none before they are made.

    Parameters
    ----------
    results : str
        Folder of the results, relative to the root.
    benchmarks : iterable of str
        Benchmarks of the run.
    root : Path
        The repository root.
    """
    path = root / results / "tables" / "notes.json"
    found = read_json(path).get("not_graded", {}) if path.is_file() else {}
    return [f"not graded, {name}: {found[name]}" for name in benchmarks if name in found]


def _by_state(causes: Causes) -> Iterator[str]:
    """Yield for each state its number, its commonest cause, and every key that is not set."""
    for state in sorted({state for state, _ in causes}):
        of_state = Counter({why: number for (one, why), number in causes.items() if one == state})
        first, *others = [why for why, _ in of_state.most_common()]
        mostly = "most often " if others and first else ""
        # a key that is not set is the cause that a person can mend at once
        keys = [f"{why} ({of_state[why]})" for why in others if NOT_SET.search(why) or SET_BY_NOW in why]
        yield ", ".join(filter(None, [f"{of_state.total()} {state}", f"{mostly}{first}" if first else "", *keys]))
