"""Describe a benchmark that may be shared as a Croissant file: its files, its columns and its origin."""

import sys
from pathlib import Path

from neuralmedbench.cards.card import read_card
from neuralmedbench.cards.croissant import describe, missing_properties
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Item
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def describe_benchmark(*, benchmark: str, items: Path, out: Path, config: Path = Path("config")) -> None:
    own, card = load_benchmark(config, benchmark), read_card(config, benchmark)
    description = describe(benchmark, own, card, read_records(items, Item), items)
    write_json(out, description)
    if missing := missing_properties(description):
        where = f"config/cards/{benchmark}.yaml, under croissant"
        print(f"{out.name}: not stated: {', '.join(missing)}; a published description needs them ({where})", file=sys.stderr)


main = Command(describe_benchmark)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
