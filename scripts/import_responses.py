"""Import the answers of another run or harness (a command for people: no rule calls it); they are scored like any other.

A table (.csv, .jsonl) has the columns item, text, and perhaps sample (from 0), arm, strategy, turns. Logs of inspect and samples of
lmms-eval are read as they are. The prompts of the benchmark must be there: snakemake --cores 2 data/prompts/<benchmark>.parquet
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_asked, load_benchmark, wildcard
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.given_answers import read_given
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.imported_answers import import_answers
from neuralmedbench.records.requests import Request
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the answers")
    parser.add_argument("--benchmark", required=True, help="name of the benchmark that was answered")
    parser.add_argument("--model", required=True, help="name of the model: config/models/<model>.yaml, of backend: imported")
    parser.add_argument("--form", choices=("table", "inspect", "lmms-eval"), default="table", help="form of the file")
    parser.add_argument("--item-key", default="", help="lmms-eval: key in `doc` that holds the item's id; doc_id when absent")
    parser.add_argument(
        "--fresh", action="store_true", help="for a model of the benchmark's reference pool: these are not the answers that chose"
    )
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    benchmark, name = wildcard(args.benchmark), wildcard(args.model)
    model = load_asked(args.config, benchmark, name)
    if name in load_benchmark(args.config, benchmark).reference_pool and not args.fresh:
        message = f"{name}: items of {benchmark} were chosen by its answers, which must not score it; say --fresh when these are others"
        raise ConfigError(message)
    requests = read_records(args.data / "prompts" / f"{benchmark}.parquet", Request)
    given = read_given(args.file, args.form, args.item_key)
    found = import_answers(requests, model, given, name=name, ledger=args.data / "ledger" / benchmark / f"{name}.jsonl")
    print(f"{name}: {found.expected} answers expected, {found.given} given, {found.added} new, {found.missing} missing")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
