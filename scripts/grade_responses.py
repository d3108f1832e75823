"""Grade the open answers and dialogues of one model with one grader."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_grader
from neuralmedbench.io.commands import run_command
from neuralmedbench.io.tables import read_records, write_records
from neuralmedbench.io.vocabulary import read_vocabulary
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Grade
from neuralmedbench.scoring.llm import grade_with_model
from neuralmedbench.scoring.rubric import grade_with_rubric


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--grader", required=True, help="name of the grader")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--responses", type=Path, required=True, help="responses of one model")
    parser.add_argument("--items", type=Path, required=True, help="items of the benchmark")
    parser.add_argument("--gold", type=Path, required=True, help="gold of the benchmark")
    parser.add_argument("--vocabulary", type=Path, required=True, help="vocabulary of diagnoses and anatomy")
    parser.add_argument("--ledger", type=Path, required=True, help="ledger of the grader's calls (only ever appended to)")
    parser.add_argument("--max-failed-fraction", type=float, required=True, help="a larger share of failed calls is an error")
    parser.add_argument("--replay", action="store_true", help="take every answer from the ledger, ask for nothing")
    parser.add_argument("--out", type=Path, required=True, help="table of grades to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    grader = load_grader(args.config / "graders" / f"{args.grader}.yaml")
    responses = read_records(args.responses, Response)
    items = {row.item_id: row for row in read_records(args.items, Item)}
    gold = {row.item_id: row for row in read_records(args.gold, Gold)}
    if grader.kind == "rubric":
        grades = grade_with_rubric(responses, items, gold, read_vocabulary(args.vocabulary), grader=args.grader)
    else:
        grades = grade_with_model(
            responses,
            items,
            gold,
            grader,
            grader=args.grader,
            ledger=args.ledger,
            destinations=load_benchmark(args.config, args.benchmark).allowed_destinations,
            max_failed_fraction=args.max_failed_fraction,
            replay=args.replay,
        )
    write_records(args.out, Grade, grades, key=lambda row: (response_key(row), row.criterion))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
