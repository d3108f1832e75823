"""`nmb model`: plan calls, explain requests, judge an update and import answers."""

from __future__ import annotations

import datetime
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.cli.verbs import BENCHMARK, CONFIG, CONFIGFILES, DATA, VOCABULARY, VerbGroup, argument, run_of
from neuralmedbench.errors import ConfigError

MODEL = VerbGroup("model", "plan calls, explain requests, judge an update and import answers")
GATE_CODES = {"approve": 0, "conditional": 3, "review": 4, "reject": 5, "blocked": 6}
ALARM_CODE = 20
"""Added to the exit code of the gate when an alarm is raised."""


@MODEL.verb(
    "plan",
    CONFIGFILES,
    argument("--out", type=Path, help="also write the plan as CSV"),
    argument("--last-days", action="store_true", help="ask the providers' lists of models until when each is served; no data are sent"),
    example="--configfiles config/paper.yaml --out plan.csv",
)
def plan_calls(args: Namespace) -> Iterator[str]:
    """Show the requests of a run, the models that get them and the cost; nothing is sent.

    If the configuration has mistakes they are all printed, and the exit code is that of a run (11).
    """
    from neuralmedbench.models.model_run import spent_here
    from neuralmedbench.recording.plan import plan_lines, plan_run, write_plan
    from neuralmedbench.recording.run_mistakes import run_mistakes

    try:
        run = run_of(args)
    except ConfigError:  # nothing can be planned: print all mistakes together
        run = run_of(args, run_mistakes)
    rows, unplanned = plan_run(run)
    days = None
    if args.last_days:
        from neuralmedbench.models.api.model_list import listed_last_days

        days = listed_last_days(run.all_asked())
    yield from plan_lines(rows, unplanned, run, spent_here(), listed_days=days)
    if args.out:
        write_plan(args.out, rows)
    if mistakes := run_mistakes(run):
        raise ConfigError(*mistakes)


@MODEL.verb(
    "explain",
    BENCHMARK,
    argument("--model", required=True, help="name of the model"),
    argument("--item", required=True, help="item id, as in the report"),
    argument("--arm", default="full", help="arm (default: full)"),
    argument("--strategy", help="strategy (default: all)"),
    argument("--grader", help="explain how this grader graded the answers instead"),
    VOCABULARY,
    CONFIGFILES,
    example="--benchmark demo --model gpt-4o --item ITEM",
)
def explain_request(args: Namespace) -> Iterator[str]:
    """Show what a model is sent for one item, why its answer is present or missing, and how it was read."""
    from neuralmedbench.config.run_names import results_of
    from neuralmedbench.recording.record import not_graded_lines
    from neuralmedbench.scoring.explain_request import AskedRequest, explain_request
    from neuralmedbench.scoring.grade_explanations import explain_stored_grades

    results = results_of(args.configfiles)
    asked = AskedRequest(args.benchmark, args.model, args.item, args.arm, args.strategy)
    if args.grader:
        yield explain_stored_grades(args.benchmark, args.model, args.grader, asked.has, results=results)
        return
    text, ungraded = explain_request(asked, vocabulary=args.vocabulary, results=results)
    yield text
    if ungraded:
        yield from not_graded_lines(results, [args.benchmark])


@MODEL.verb(
    "batches",
    argument("--release", metavar="CHUNK", help="let the requests of this chunk be sent again: the provider does not have it"),
    example="",
)
def list_batches(args: Namespace) -> Iterator[str]:
    """List what was handed in as batches, and decide about what a provider cannot tell."""
    from neuralmedbench.models.batch.log import batch_lines, release_chunk

    ledgers = Path("data/ledger")
    if args.release:
        yield release_chunk(ledgers, args.release)
        return
    yield from batch_lines(ledgers) or ["nothing was handed in as a batch"]


@MODEL.verb(
    "gate",
    argument("model", help="name of the model; its present revision is judged"),
    argument("--plan", action="store_true", help="say how many patients the margins need; nothing is judged, and no look is counted"),
    argument(
        "--changes",
        type=float,
        default=0.1,
        help="with --plan: share of patients who change anyway, where repeats do not say (default: 0.1)",
    ),
    CONFIGFILES,
    example="my-model --configfiles config/study.yaml",
)
def judge_update(args: Namespace) -> int:
    """Judge a new revision of a model against the one in use, by the margins of a site.

    They stand in `update` of config/readiness.yaml. Nothing is asked: run the workflow first. Exit code 0: approve; 3: conditional; 4: review; 5: reject; 6: blocked, with the next step; 20 is
    added when an alarm is raised. Every verdict is a look that is paid for (docs/readiness.md); one at the same answers is free.
    """
    from neuralmedbench.recording.record import scored_files
    from neuralmedbench.report.gate import judge_run
    from neuralmedbench.tables.gate.plan import plan_update

    run, record = run_of(args), Path("data/gate")
    config = run.config
    if args.plan:
        places = {"vocabulary": Path(config.vocabulary), "results": Path(run.results), "record": record}
        today = datetime.datetime.now(datetime.UTC).date()
        print("\n".join(plan_update(Path(), args.model, **places, assumed=args.changes, today=today)))
        return 0
    if absent := next((path for path in scored_files(run) if not Path(path).is_file()), ""):
        print(f"{args.model}: blocked ({absent} is not there: the run is not finished; run the workflow, or wait for it to end)")
        return GATE_CODES["blocked"]
    found = judge_run(run, args.model, record)
    print("\n".join([*found.lines, str(found.page.absolute())]))
    return GATE_CODES[found.outcome] + (ALARM_CODE if found.alarmed else 0)


@MODEL.verb(
    "import",
    argument("file", type=Path, help="file with the answers"),
    argument("--benchmark", required=True, help="name of the benchmark"),
    argument("--model", required=True, help="name of the model: config/models/<model>.yaml with `backend: imported`"),
    argument("--form", choices=("table", "inspect", "lmms-eval"), default="table", help="format of the file (default: table)"),
    argument("--item-key", default="", help="lmms-eval: key in `doc` that holds the item id (default: doc_id)"),
    argument(
        "--fresh", action="store_true", help="for a model of the reference pool: these are not the answers that the items were chosen by"
    ),
    argument("--leave-unknown", action="store_true", help="leave out answers to items that the benchmark does not have, and count them"),
    CONFIG,
    DATA,
    example="answers.csv --benchmark exam --model their-model",
)
def import_responses(args: Namespace) -> Iterator[str]:
    """Import answers from another run or harness; they are scored like any others.

    A table (.csv, .jsonl) has the columns item and text, and optionally sample (from 0), arm, strategy and turns. Logs of inspect and samples
    of lmms-eval are read as they are. Make the prompts of the benchmark first:
    snakemake --cores 2 --config 'benchmarks=[<benchmark>]' -- data/prompts/<benchmark>.parquet
    """
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.files.external_files import read_given
    from neuralmedbench.models.imported_answers import import_given

    given = read_given(args.file, args.form, args.item_key)
    benchmark, model = wildcard(args.benchmark), wildcard(args.model)
    options = {"fresh": args.fresh, "leave_unknown": args.leave_unknown}
    yield from import_given(benchmark, model, given, config=args.config, data=args.data, **options)
