"""Print the files, hashes, requests and prompts behind one cell of a table (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence

from neuralmedbench.recording.table_lookup import look_up_cell
from neuralmedbench.recording.trace import trace
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="name of a table of results, for example leaderboard")
    parser.add_argument("row", help="number of the row (the first under the head is 1), or for example benchmark=demo,model=fusion")
    parser.add_argument("column", help="name of the column, for example pass1")
    parser.add_argument("--responses", type=int, default=10, help="items to list for each model; 0 lists all")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    print(trace(look_up_cell(args.table, args.row, args.column), responses=args.responses))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
