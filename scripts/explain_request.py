"""Show what a model is sent for one item, and what the ledger holds of it (a command for people)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_model
from neuralmedbench.errors import ConfigError
from neuralmedbench.io.commands import run_command
from neuralmedbench.io.tables import read_records
from neuralmedbench.io.vocabulary import read_vocabulary
from neuralmedbench.models.explain import explain
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.registry import code_of
from neuralmedbench.records.requests import Request


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--item", required=True, help="item id, as in the report")
    parser.add_argument("--arm", default="full", help="arm")
    parser.add_argument("--vocabulary", type=Path, default=Path("config/vocabulary/neurology.yaml"), help="vocabulary of the run")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    model = load_model(Path(f"config/models/{args.model}.yaml"))
    requests = read_records(Path(f"data/prompts/{args.benchmark}.parquet"), Request)
    found = [request for request in requests if (request.item_id, request.arm) == (args.item, args.arm)]
    if not found:
        message = f"{args.benchmark}: no request for this item and arm; arms of the item: " + (
            ", ".join(request.arm for request in requests if request.item_id == args.item) or "none"
        )
        raise ConfigError(message)
    entries = read_ledger(Path(f"data/ledger/{args.benchmark}/{args.model}.jsonl"))
    code = code_of(model, read_vocabulary(args.vocabulary))
    print("\n\n".join(explain(request, model, entries, code=code) for request in found))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
