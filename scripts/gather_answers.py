"""Gather the answers of the simulated patients, and the list of what was planted in them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.io.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path, nargs="+", required=True, help="answer.json of each case")
    parser.add_argument("--planted", type=Path, nargs="+", required=True, help="planted.json of each case, in the same order")
    parser.add_argument("--out-answers", type=Path, required=True, help="answers table (CSV)")
    parser.add_argument("--out-planted", type=Path, required=True, help="planted identifiers of all cases (JSON)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.demo.answers import gather_answers
    from neuralmedbench.io.files import write_json
    from neuralmedbench.io.tables import write_table
    from neuralmedbench.records.columns import ANSWER_COLUMNS

    args = parse_args(argv)
    rows, planted = gather_answers(args.answers, args.planted)
    write_table(args.out_answers, rows, ANSWER_COLUMNS)
    write_json(args.out_planted, planted)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
