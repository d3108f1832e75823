"""`nmb model`: what models are asked, what they cost, what they said."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.cli.verbs import BENCHMARK, CONFIG, CONFIGFILES, DATA, VerbGroup, argument

if TYPE_CHECKING:
    from neuralmedbench.records.requests import Request
    from neuralmedbench.records.responses import Response

MODEL = VerbGroup("model", "what models are asked, what it costs, and what they answered")
CHANGED = 3


@MODEL.verb(
    "plan",
    CONFIGFILES,
    argument("--out", type=Path, help="also write the plan as CSV"),
    example="--configfiles config/paper.yaml --out plan.csv",
)
def plan_calls(args: Namespace) -> int:
    """Say what a run would ask, of whom, and what that would cost; nothing is sent."""
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.models.budget import read_spend_log
    from neuralmedbench.models.model_run import MONEY, SPENDING
    from neuralmedbench.recording.plan import plan_lines, plan_run, write_plan

    run = read_run(args.configfiles)
    rows, unplanned = plan_run(run)
    print("\n".join(plan_lines(rows, unplanned, run, read_spend_log(SPENDING / MONEY))))
    if args.out:
        write_plan(args.out, rows)
    return 0


@MODEL.verb(
    "explain",
    BENCHMARK,
    argument("--model", required=True, help="name of the model"),
    argument("--item", required=True, help="item id, as in the report"),
    argument("--arm", default="full", help="arm"),
    argument("--strategy", help="strategy; all of them when absent"),
    argument("--grader", help="explain how the answers were graded by this grader instead"),
    argument("--vocabulary", type=Path, default=Path("config/vocabulary/neurology.yaml"), help="vocabulary of the run"),
    example="--benchmark demo --model gpt-4o --item ITEM",
)
def explain_request(args: Namespace) -> int:
    """Show what a model is sent for one item, and why an answer to it is there or not."""
    from neuralmedbench.config.load import load_asked
    from neuralmedbench.errors import ConfigError
    from neuralmedbench.files.tables import read_records
    from neuralmedbench.files.vocabulary import read_vocabulary
    from neuralmedbench.models.explain import explain_stored
    from neuralmedbench.models.picture_budget import too_many_options
    from neuralmedbench.models.registry import code_of
    from neuralmedbench.records.requests import Request
    from neuralmedbench.scoring.grade_explanations import explain_stored_grades

    def wanted(row: Request | Response) -> bool:
        return (row.item_id, row.arm) == (args.item, args.arm) and args.strategy in (None, row.strategy)

    if args.grader:
        print(explain_stored_grades(args.benchmark, args.model, args.grader, wanted))
        return 0
    model = load_asked(Path("config"), args.benchmark, args.model)
    requests = read_records(Path(f"data/prompts/{args.benchmark}.parquet"), Request)
    found = [request for request in requests if wanted(request)]
    if said := [why for request in found if (why := too_many_options(request, model.max_images))]:
        message = f"it is not asked of {args.model}: {said[0]}"
        raise ConfigError(message)
    if not found:
        there = sorted({f"{request.arm}/{request.strategy}" for request in requests if request.item_id == args.item})
        message = f"{args.benchmark}: no request for this item, arm and strategy; those of the item: {', '.join(there) or 'none'}"
        raise ConfigError(message)
    place, code = f"{args.benchmark}/{args.model}", code_of(model, read_vocabulary(args.vocabulary))
    ledger, table = Path(f"data/ledger/{place}.jsonl"), Path(f"results/responses/{place}.parquet")
    print(explain_stored(found, model, code=code, ledger=ledger, table=table))
    return 0


@MODEL.verb(
    "drift",
    argument("--model", required=True, help="name of the model; it need not be in the run list"),
    argument("--benchmark", default="demo", help="name of the benchmark"),
    CONFIGFILES,
    example="--model my-model --benchmark demo",
)
def check_drift(args: Namespace) -> int:
    """Ask a model 20 fixed items again and test for a silent change.

    The answers are held against those in the model's ledger, of the same revision. Exit code 0: no sign of a change; 3: there is one.
    """
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.errors import ConfigError
    from neuralmedbench.estimates.intervals import IntervalSettings
    from neuralmedbench.files.cases import read_audit
    from neuralmedbench.files.json_files import write_json
    from neuralmedbench.files.tables import read_records
    from neuralmedbench.files.vocabulary import read_vocabulary
    from neuralmedbench.models.model_run import RunLimits
    from neuralmedbench.prompts.coverage import check_asked
    from neuralmedbench.records.items import Gold, Item
    from neuralmedbench.records.requests import Request
    from neuralmedbench.tables.drift import DriftTarget, check_drift

    config, name = read_run(args.configfiles).config, args.benchmark
    if config.replay:
        message = "the configuration says `replay`: nothing may be asked; give one that does not"
        raise ConfigError(message)
    requests = read_records(Path(f"data/prompts/{name}.parquet"), Request)
    check_asked(requests, read_audit(Path(f"data/deidentified/{name}/audit.json")))
    drift = check_drift(
        requests,
        {row.item_id: row for row in read_records(Path(f"data/items/{name}.parquet"), Item)},
        {row.item_id: row for row in read_records(Path(f"data/gold/{name}.parquet"), Gold)},
        DriftTarget.of(name, args.model),
        vocabulary=read_vocabulary(Path(config.vocabulary)),
        control=RunLimits.of(config),
        settings=IntervalSettings(config.statistics.resamples, config.statistics.seed, config.statistics.confidence),
    )
    write_json(Path(f"results/drift/{name}/{args.model}.json"), drift.found)
    print("\n".join(drift.lines))
    return CHANGED if drift.changed else 0


@MODEL.verb(
    "import",
    argument("file", type=Path, help="the answers"),
    argument("--benchmark", required=True, help="name of the benchmark that was answered"),
    argument("--model", required=True, help="name of the model: config/models/<model>.yaml, of backend: imported"),
    argument("--form", choices=("table", "inspect", "lmms-eval"), default="table", help="form of the file"),
    argument("--item-key", default="", help="lmms-eval: key in `doc` that holds the item's id; doc_id when absent"),
    argument("--fresh", action="store_true", help="for a model of the benchmark's reference pool: these are not the answers that chose"),
    CONFIG,
    DATA,
    example="answers.csv --benchmark exam --model their-model",
)
def import_responses(args: Namespace) -> int:
    """Import the answers of another run or harness; they are scored like any other.

    A table (.csv, .jsonl) has the columns item, text, and perhaps sample (from 0), arm, strategy, turns. Logs of inspect and samples of
    lmms-eval are read as they are. The prompts of the benchmark must be there: snakemake --cores 2 data/prompts/<benchmark>.parquet
    """
    from neuralmedbench.config.load import load_asked, load_benchmark, wildcard
    from neuralmedbench.errors import ConfigError
    from neuralmedbench.files.given_answers import read_given
    from neuralmedbench.files.tables import read_records
    from neuralmedbench.models.imported_answers import import_answers
    from neuralmedbench.records.requests import Request

    benchmark, name = wildcard(args.benchmark), wildcard(args.model)
    model = load_asked(args.config, benchmark, name)
    if name in load_benchmark(args.config, benchmark).reference_pool and not args.fresh:
        message = f"{name}: items of {benchmark} were chosen by its answers, which must not score it; say --fresh when these are others"
        raise ConfigError(message)
    requests = read_records(args.data / "prompts" / f"{benchmark}.parquet", Request)
    given = read_given(args.file, args.form, args.item_key)
    found = import_answers(requests, model, given, ledger=args.data / "ledger" / benchmark / f"{name}.jsonl")
    print(f"{name}: {found.expected} answers expected, {found.given} given, {found.added} new, {found.missing} missing")
    return 0
