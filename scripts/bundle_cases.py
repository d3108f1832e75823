"""Bundle the cases of one benchmark for the case browser of the report."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import gc_paused, read_records, write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.bundle import CaseBundle
from neuralmedbench.records.items import Gold, Item, ShownLesion
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import Grade, Score
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.bundle import AskedOf, bundle_cases


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--lesions", type=Path, help="table: the part of the known lesion on each picture")
    parser.add_argument("--prompts", type=Path, help="table of requests, for the messages of dialogues")
    parser.add_argument("--vocabulary", type=Path, help="the benchmark's vocabulary, for the candidates of work-ups")
    parser.add_argument("--responses", type=Path, nargs="*", default=[], help="one table per model")
    parser.add_argument("--scores", type=Path, nargs="*", default=[], help="one table per model")
    parser.add_argument("--grades", type=Path, nargs="*", default=[], help="one table per model and grader")
    parser.add_argument("--asked-alone", action="store_true", help="leave out the items that no model was asked (limited runs)")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with gc_paused():
        responses = [row for path in args.responses for row in current_rows(read_records(path, Response))]
        asked = {row.item_id for row in responses}
        cases = bundle_cases(
            [row for row in read_records(args.items, Item) if not args.asked_alone or row.item_id in asked],
            read_records(args.gold, Gold),
            responses,
            [row for path in args.scores for row in read_records(path, Score)],
            [row for path in args.grades for row in read_records(path, Grade)],
            known=AskedOf(
                lesions=read_records(args.lesions, ShownLesion) if args.lesions else [],
                requests=read_records(args.prompts, Request) if args.prompts else [],
                vocabulary=read_vocabulary(args.vocabulary) if args.vocabulary else None,
            ),
        )
        write_records(args.out, CaseBundle, cases, key=lambda case: case.item_id)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
