"""Show what a model is sent for one item, and why an answer to it is there or not (a command for people)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_asked
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models.explain import explain_stored
from neuralmedbench.models.picture_budget import too_many_options
from neuralmedbench.models.registry import code_of
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.grade_explanations import explain_stored_grades


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--item", required=True, help="item id, as in the report")
    parser.add_argument("--arm", default="full", help="arm")
    parser.add_argument("--strategy", help="strategy; all of them when absent")
    parser.add_argument("--grader", help="explain how the answers were graded by this grader instead")
    parser.add_argument("--vocabulary", type=Path, default=Path("config/vocabulary/neurology.yaml"), help="vocabulary of the run")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)

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


if __name__ == "__main__":
    raise SystemExit(run_command(main))
