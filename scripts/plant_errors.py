"""Write answers with planted errors, made from the references of a benchmark, on which graders are tested."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_by_item, read_records, write_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.scores import PlantedAnswer
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.planted.planting import plant_errors


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=Path, required=True, help="items of the benchmark")
    parser.add_argument("--gold", type=Path, required=True, help="gold of the benchmark")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary; the list of time-critical diagnoses is beside it")
    parser.add_argument("--patients", type=int, required=True, help="answers per edit, each of another patient")
    parser.add_argument("--out", type=Path, required=True, help="table of planted answers to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    vocabulary = read_vocabulary(args.vocabulary)
    planted = plant_errors(
        read_records(args.items, Item),
        read_by_item(args.gold, Gold),
        vocabulary=vocabulary,
        urgency=read_urgency(urgency_path(args.vocabulary), vocabulary),
        patients=args.patients,
    )
    write_records(args.out, PlantedAnswer, planted, key=lambda row: (row.edit, row.number, row.item_id))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
