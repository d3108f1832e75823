"""Send one model the requests of a benchmark that the ledger has no answer to."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_informant, load_model_for
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.imaging.views import ViewService
from neuralmedbench.models.console import log_served_models
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun, add_call_arguments, call_arguments
from neuralmedbench.models.replay import previous_responses
from neuralmedbench.models.requests_of_model import limited_requests, requests_for
from neuralmedbench.prompts.coverage import check_asked, check_view
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.explain_reading import early_check


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--prompts", type=Path, required=True, help="table of requests")
    parser.add_argument("--items", type=Path, required=True, help="table of items, for a warning about unread answers and for --limit")
    parser.add_argument("--audit", type=Path, required=True, help="audit.json of the de-identification")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary, for built-in models")
    parser.add_argument("--limit", type=int, default=0, help="most answers of a limited run (default: 0, all)")
    add_call_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="table of responses to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    model = load_model_for(args.config, args.benchmark, args.model)
    requests = limited_requests(model, requests_for(model, read_records(args.prompts, Request)), args.limit, args.items)
    audit = read_audit(args.audit)
    check_asked(requests, audit)
    views = ViewService(lambda view: check_view(audit, view))
    allowed, informant = load_benchmark(args.config, args.benchmark).allowed_destinations, load_informant(args.config, args.benchmark)
    known = {"vocabulary": read_vocabulary(args.vocabulary), "why_unread": early_check(args.items)}
    responses = answer_requests(
        requests, ModelRun(model, destinations=allowed, views=views, informant=informant, **known, **call_arguments(args))
    )
    log_served_models(args.model, responses)
    responses += previous_responses(requests, model, args.ledger, views, informant)  # the current revision comes first (current_rows)
    write_records(args.out, Response, responses, key=lambda row: (row.revision != model.revision, response_key(row)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
