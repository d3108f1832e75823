"""Import the clinicians' ratings of all rounds of the run list."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import Rating, response_key, text_digest
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=Path, nargs="*", default=[], help="folders of the rounds, each with key.json and exports")
    parser.add_argument("--form", type=Path, required=True, help="axes and ranges (config/rating.yaml)")
    parser.add_argument("--responses", type=Path, nargs="*", default=[], help="responses, for detecting stale ratings")
    parser.add_argument("--out", type=Path, required=True, help="table of ratings to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    form = read_form(args.form)
    # a rating of an answer of an earlier revision is stale, even if the table still holds that answer
    responses = [row for path in (args.responses if args.rounds else []) for row in current_rows(read_records(path, Response))]
    texts = {response_key(row): text_digest(row.text) for row in responses}
    ratings = [rating for folder in args.rounds for rating in import_round(folder, form, texts)]
    write_records(
        args.out, Rating, ratings, key=lambda row: (row.round_id, row.rater_id, response_key(row), row.part, row.text_sha256, row.axis)
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
