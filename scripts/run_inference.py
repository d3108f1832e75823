"""Ask one model everything that a benchmark asks and the ledger does not hold yet."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_model
from neuralmedbench.io.cases import read_audit
from neuralmedbench.io.commands import run_command
from neuralmedbench.io.tables import read_records, write_records
from neuralmedbench.io.vocabulary import read_vocabulary
from neuralmedbench.models.earlier import earlier_responses
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.prompts.coverage import check_passed
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--prompts", type=Path, required=True, help="table of requests")
    parser.add_argument("--audit", type=Path, required=True, help="audit.json of the de-identification")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, for built-in models")
    parser.add_argument("--ledger", type=Path, required=True, help="ledger (JSON lines, only ever appended to)")
    parser.add_argument("--max-failed-fraction", type=float, required=True, help="a larger share of failed answers is an error")
    parser.add_argument("--replay", action="store_true", help="take every answer from the ledger, ask for nothing")
    parser.add_argument("--out", type=Path, required=True, help="table of responses to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    check_passed(read_audit(args.audit))
    requests = read_records(args.prompts, Request)
    model = load_model(args.config / "models" / f"{args.model}.yaml")
    responses = answer_requests(
        requests,
        model,
        name=args.model,
        ledger=args.ledger,
        destinations=load_benchmark(args.config, args.benchmark).allowed_destinations,
        max_failed_fraction=args.max_failed_fraction,
        vocabulary=read_vocabulary(args.vocabulary),
        replay=args.replay,
    )
    responses += earlier_responses(requests, model, name=args.model, ledger=args.ledger)
    behind = {model.revision: 0}  # the present revision stands first: see records.responses.current_rows
    write_records(args.out, Response, responses, key=lambda row: (behind.get(row.revision, 1), response_key(row)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
