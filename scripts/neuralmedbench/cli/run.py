"""`nmb run`: record, audit, complete and trace a run."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.cli.verbs import CONFIGFILES, CORES, VerbGroup, argument, note, run_of
from neuralmedbench.errors import ConfigError

SHORTEST_S, LONGEST_S = 0.1, 3600.0
"""Between two looks at a run."""

INCOMPLETE = 3
"""Exit code where a run lacks answers that can be asked for."""

CHANGED = 3
"""Exit code of a probe that detected a change."""

RUN = VerbGroup("run", "record, audit, complete and compare runs, and trace numbers")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        message = f"{SHORTEST_S:g} to {LONGEST_S:g} seconds are possible, not {text}"
        raise ArgumentTypeError(message)
    return seconds


def _positive(text: str) -> int:
    if int(text) < 1:
        message = f"1 or more are possible, not {text}"
        raise ArgumentTypeError(message)
    return int(text)


@RUN.verb(
    "record",
    CONFIGFILES,
    argument("--overridden", action="store_true", help="settings were given on the command line (--config)"),
    example="--configfiles config/study.yaml",
)
def record_run(args: Namespace) -> None:
    """Record a complete run with DVC, or state why not; the workflow calls this at its end."""
    from neuralmedbench.recording.record import missing_lines, record_run

    run = run_of(args)
    try:
        # the line on missing answers is printed even if recording fails
        if line := record_run(run, overridden=args.overridden):
            note(line)
    finally:
        for line in missing_lines(run):
            note(line)


@RUN.verb("check", CONFIGFILES, example="--configfiles config/study.yaml")
def check_run(args: Namespace) -> None:
    """Check the configuration of a run: all mistakes at once, before anything is made or sent."""
    from neuralmedbench.files.case_flow import stopping_share
    from neuralmedbench.recording.run_mistakes import run_mistakes
    from neuralmedbench.records.items import Kind
    from neuralmedbench.records.words import counted

    run = run_of(args, run_mistakes)
    for notice in run.notices():
        note(notice)
    for name, benchmark in run.benchmarks.items():
        if benchmark.kind is Kind.SCANS and benchmark.subjects == "patient":
            cases = len(run.cases(name))
            note(f"{name}: {stopping_share(cases, run.config.max_quarantined_fraction)}")
    counts = ((run.benchmarks, "benchmark"), (run.models, "model"), (run.graders, "grader"))
    note(f"no mistakes: {', '.join(counted(len(names), noun) for names, noun in counts)}")


@RUN.verb("cores", example="")
def count_cores(_: Namespace) -> Iterator[int]:
    """Print the number of cores that jobs may use on this machine, by affinity and control groups."""
    from neuralmedbench.runtime.machine import usable_cores

    yield usable_cores()


@RUN.verb("audit", CONFIGFILES, example="--configfiles config/study.yaml")
def audit_run(args: Namespace) -> Iterator[str]:
    """Check that every result matches its current inputs, code and settings."""
    from neuralmedbench.recording.audit import audit_run

    yield from audit_run(run_of(args))


@RUN.verb("list", example="")
def list_all_runs(_: Namespace) -> Iterator[str]:
    """List the runs that are here: name, date, configfile, benchmarks, models, answers, recorded or not."""
    from neuralmedbench.recording.finished_runs import list_runs, run_lines

    yield from run_lines(list_runs()) or ["no run has been finished here"]


@RUN.verb(
    "compare",
    argument("a", nargs="?", help="name of the first run, as `nmb run list` prints it"),
    argument("b", nargs="?", help="name of the second run; differences are second minus first (default: the first one, with --pair)"),
    argument("--pair", action="append", default=[], help="OLD=NEW: a model of the first run and its partner; OLD@1=NEW@2 names revisions"),
    argument(
        "--despite", nargs="+", choices=("questions", "references"), default=[], help="pair items although these differ between the runs"
    ),
    argument("--probe", metavar="MODEL", help="ask this model some items again (paid calls), and compare with its ledger"),
    argument("--benchmark", default="demo", help="with --probe: name of the benchmark (default: demo)"),
    argument("--items", type=_positive, default=20, help="with --probe: most items that are asked again (default: 20)"),
    CONFIGFILES,
    example="study study-new --pair gpt-4o=gpt-4.1",
)
def compare_answers(args: Namespace) -> int:
    """Ask whether answers changed: between two runs, two revisions in one run, or a model before and now.

    Name two runs, one run with --pair MODEL@1=MODEL@2, or --probe MODEL. Runs and revisions are compared on one page, from the stored scores; nothing is asked. The page lists the items that changed sides.
    Answers to the same item are paired if question and reference are the same.

    A probe asks a model fixed items again, under the caps of the configuration. Exit code of a probe: 0: no change was shown; 3: a change was
    detected, or another model answered.
    """
    from neuralmedbench.config.run_names import results_folder
    from neuralmedbench.recording.finished_runs import finished_run
    from neuralmedbench.report.comparison import read_compared_run, write_comparison

    if args.probe:
        return _probe(args)
    if not args.a or not (args.b or args.pair):
        message = "nmb run compare: name two runs, or one run with --pair MODEL@1=MODEL@2, or a model with --probe"
        raise ConfigError(message)
    runs = map(finished_run, (args.a, args.b or args.a))
    a, b = (read_compared_run(Path(), run.name, Path(results_folder(run.name)), run.made) for run in runs)
    page, answer = write_comparison(Path(), a, b, pairs=args.pair, despite=args.despite)
    print(answer)
    print(page.absolute())
    return 0


def _probe(args: Namespace) -> int:
    from neuralmedbench.estimates.intervals import IntervalSettings
    from neuralmedbench.files.cases import read_audit
    from neuralmedbench.files.tables import read_by_item, read_records
    from neuralmedbench.files.vocabulary import read_vocabulary
    from neuralmedbench.models.model_run import RunLimits
    from neuralmedbench.prompts.coverage import check_asked
    from neuralmedbench.records.items import Gold, Item
    from neuralmedbench.records.requests import Request
    from neuralmedbench.tables.probe import ProbeTarget, probe_model

    config, name = run_of(args).config, args.benchmark
    if config.replay:
        message = "the configuration says `replay`, which allows no calls; use one that does not"
        raise ConfigError(message)
    # a probe makes paid calls, so the same gate applies as in a run
    requests = read_records(Path(f"data/prompts/{name}.parquet"), Request)
    check_asked(requests, read_audit(Path(f"data/deidentified/{name}/audit.json")))
    result = probe_model(
        requests,
        read_by_item(Path(f"data/items/{name}.parquet"), Item),
        read_by_item(Path(f"data/gold/{name}.parquet"), Gold),
        ProbeTarget.of(name, args.probe),
        vocabulary=read_vocabulary(Path(config.vocabulary)),
        settings=IntervalSettings(**config.statistics.model_dump()),
        count=args.items,
        control=RunLimits.of(config),
    )
    print("\n".join(result.lines))
    return CHANGED if result.changed else 0


@RUN.verb(
    "watch",
    argument("--once", action="store_true", help="print how the run is now, as plain lines, and end"),
    argument(
        "--every", type=_seconds, default=None, metavar="SECONDS", help="time between two looks (default: 2 on a terminal, otherwise 30)"
    ),
    example="--once",
)
def watch_run(args: Namespace) -> None:
    """Watch a run from another terminal: answers, rate, cost, time left, failures by kind, stages.

    Run it in the project folder, on any machine that sees it. It reads what the run and its jobs write there and changes nothing. It ends with
    the run, or with Ctrl-C, which leaves the run alone; where no run is in progress it shows how the last one ended and waits for the next.
    """
    from neuralmedbench.runtime.watch import watch

    try:
        watch(once=args.once, every_s=args.every)
    except KeyboardInterrupt:
        print()


@RUN.verb("report", CONFIGFILES, example="--configfiles config/study.yaml")
def print_report(args: Namespace) -> Iterator[Path]:
    """Print the path of the report of a run."""
    from neuralmedbench.config.run_names import results_of

    yield Path(results_of(args.configfiles), "report.html").absolute()


@RUN.verb("pull", example="")
def pull_recorded(_: Namespace) -> Iterator[str]:
    """Pull what others recorded and pushed; ledgers are merged, never shortened."""
    from neuralmedbench.recording.repository import pull

    pulled = pull()
    yield f"pulled: {pulled.files} files changed, the ledgers gained {pulled.answers} answers"


@RUN.verb("incomplete", CONFIGFILES, example="--configfiles config/study.yaml")
def list_incomplete(args: Namespace) -> int:
    """List the tables that lack answers or grades; `nmb run retry` requests these again.

    Exit code 0: nothing that can be asked for is missing; 3: something is.
    """
    from neuralmedbench.recording.record import incomplete_files, missing_lines

    run = run_of(args)
    note(*(missing_lines(run) or ["nothing is missing"]))
    files = incomplete_files(run)
    for path in files:
        print(path)
    return INCOMPLETE if files else 0


@RUN.verb(
    "retry",
    CONFIGFILES,
    CORES,
    example="--configfiles config/study.yaml",
)
def retry_run(args: Namespace) -> int:
    """Request again the answers and grades that are missing because a call failed or was skipped.

    Exit code 3: some of them are still missing afterwards.
    """
    from neuralmedbench.recording.record import incomplete_files, incomplete_line, missing_lines
    from neuralmedbench.recording.stages import run_again
    from neuralmedbench.runtime.machine import usable_cores

    run = run_of(args)
    files = incomplete_files(run)
    if not files:
        note(*(missing_lines(run) or ["nothing is missing"]))
        return 0
    note(incomplete_line(files, run).partition("; `nmb")[0])
    code = run_again(list(files), run, cores=args.cores or usable_cores())
    return code or (INCOMPLETE if incomplete_files(run) else 0)


@RUN.verb(
    "try",
    argument("--model", required=True, help="name of the model; it need not be in the run list"),
    argument("--benchmark", default="", help="name of the benchmark (default: the first of the run list)"),
    argument("--limit", type=int, default=20, help="most answers (default: 20)"),
    argument("--api-base", default="", help="address of a server with the OpenAI protocol; with --id it writes config/models/<model>.yaml"),
    argument("--id", default="", help="name under which this server offers the model"),
    CORES,
    CONFIGFILES,
    example="--model my-server --benchmark demo-words --limit 20",
)
def try_model(args: Namespace) -> int:
    """Ask a model few questions and show what came, before a whole run is paid for.

    One sample of the arm full, spread over patients and families; the plan and its cost are printed first, and nothing is asked if it is not
    allowed. The results lie in results/try-<model>/, without a rank, and are never recorded; the answers lie in the ledger, so that the whole
    run asks only the rest. Graders that ask a model are left out.
    """
    from neuralmedbench.models.model_run import spent_here
    from neuralmedbench.recording.limited_run import add_server_model, check_server, limited_lines, limited_run, refused_calls
    from neuralmedbench.recording.plan import plan_lines, plan_run
    from neuralmedbench.recording.stages import make_files
    from neuralmedbench.runtime.machine import usable_cores

    if written := add_server_model(args.model, args.api_base, args.id):
        note(f"wrote {written.as_posix()}; correct it there before a whole run")
    run = limited_run(args.model, args.benchmark, args.limit, args.configfiles)
    check_server(run)
    cores = args.cores or usable_cores()
    # the questions, and what of them gives an answer away; no model is asked
    inputs = [f"data/{kind}" for name in run.benchmarks for kind in (f"prompts/{name}.parquet", f"leaks/{name}.json")]
    if code := make_files(inputs, run, cores=cores):
        return code
    rows, gaps = plan_run(run)
    print("\n".join(plan_lines(rows, gaps, run, spent_here())), flush=True)
    refused_calls(rows)
    if code := make_files([run.report], run, cores=cores):
        return code
    print("\n".join(["", *limited_lines(run)]))
    return 0


@RUN.verb("export", CONFIGFILES, example="--configfiles config/study.yaml")
def export_run(args: Namespace) -> int:
    """Write the numbers of a run for other tools and archives: results/exports/.

    Every Eval Ever, logs of inspect_ai, a Workflow Run RO-Crate, Zenodo, the Hugging Face hub, and one tidy table with its codebook. Numbers
    about few patients and single answers of private benchmarks are held back, and a private id in any file stops it. What is not up to date is
    made first.
    """
    from neuralmedbench.recording.stages import make_files
    from neuralmedbench.runtime.machine import usable_cores

    run = run_of(args)
    folder = f"{run.results}/exports"
    code = make_files([folder], run, cores=usable_cores())
    if not code:
        print(Path(folder).absolute())
    return code


@RUN.verb(
    "trace",
    argument("table", help="name of a table of results, for example leaderboard"),
    argument("row", help="number of the row (the first below the header is 1), or for example benchmark=demo,model=fusion"),
    argument("column", help="name of the column, for example pass1"),
    argument("--responses", type=int, default=10, help="number of items to list per model; 0 lists all"),
    CONFIGFILES,
    example="leaderboard 1 pass1",
)
def trace_number(args: Namespace) -> Iterator[str]:
    """Print the files, hashes, requests and prompts behind one cell of a table."""
    from neuralmedbench.config.run_names import extra_configfiles, results_of
    from neuralmedbench.recording.finished_runs import look_up_cell
    from neuralmedbench.recording.trace import trace

    configfiles = extra_configfiles(args.configfiles)
    cell = look_up_cell(args.table, args.row, args.column, Path(results_of(configfiles), "tables"))
    yield trace(cell, responses=args.responses, configfiles=configfiles)


@RUN.verb("columns", argument("topic", nargs="?", default="", help="one topic (default: all)"), example="rates")
def list_measures(args: Namespace) -> int:
    """Print the definitions of the measures of results, by topic."""
    from neuralmedbench.tables.write import measures_of_topics

    for topic, measures in measures_of_topics().items():
        if args.topic in ("", topic):
            print(f"{topic}:", *(f"  {one['name']} ({one['title']}): {one['text']}" for one in measures), sep="\n")
    return 0


@RUN.verb("docs", argument("--check", action="store_true", help="write nothing; fail if a file is out of date"), example="--check")
def write_docs(args: Namespace) -> None:
    """Write the files that are generated from the configuration."""
    from neuralmedbench.cli.generated_docs import generated_files
    from neuralmedbench.runtime.atomic_write import write_text

    for name, text in generated_files().items():
        path = Path(name)
        if args.check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            message = f"{name}: does not match the configuration; run `make docs`"
            raise ConfigError(message)
        if not args.check:
            write_text(path, text)
