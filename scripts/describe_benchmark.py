"""Describe a benchmark that may be shared as a Croissant file: its files, its columns and its origin."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.cards.card import read_card
from neuralmedbench.cards.croissant import describe, missing_properties
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Item
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark; a private one is refused")
    parser.add_argument("--items", type=Path, required=True, help="table of items, as a path relative to the project")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration, with its card")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    items = read_records(args.items, Item)
    description = describe(
        args.benchmark, load_benchmark(args.config, args.benchmark), read_card(args.config, args.benchmark), items, args.items
    )
    write_json(args.out, description)
    if missing := missing_properties(description):
        where = f"config/cards/{args.benchmark}.yaml, under croissant"
        print(f"{args.out.name}: not stated: {', '.join(missing)}; a published description needs them ({where})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
