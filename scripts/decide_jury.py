"""Let a jury of graders vote on the answers of one model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.jury import grade_with_jury
from neuralmedbench.scoring.planted.checks import asked_of_all


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grader", required=True, help="name of the jury")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--grades", type=Path, nargs="+", required=True, help="grades of its members: <member>.parquet")
    parser.add_argument("--out", type=Path, required=True, help="table of grades to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    jury = load_grader(args.config / "graders" / f"{args.grader}.yaml")
    files = {path.stem: path for path in args.grades}
    members = asked_of_all({name: read_records(files[name], Grade) for name in jury.members})
    grades = grade_with_jury(members, jury=args.grader, rule=jury.rule)
    write_records(args.out, Grade, grades, key=lambda row: (response_key(row), row.criterion))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
