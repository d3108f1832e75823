"""Import the clinicians' ratings of all rounds of the run list."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import Rating, response_key, text_digest
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def import_ratings(*, rounds: Sequence[Path], form: Path, responses: Sequence[Path], out: Path) -> None:
    axes = read_form(form)
    # a rating of an answer of an earlier revision is stale, even if the table still holds that answer
    answers = [row for path in (responses if rounds else ()) for row in current_rows(read_records(path, Response))]
    texts = {response_key(row): text_digest(row.text) for row in answers}
    ratings = [rating for folder in rounds for rating in import_round(folder, axes, texts)]
    write_records(
        out, Rating, ratings, key=lambda row: (row.round_id, row.rater_id, response_key(row), row.part, row.text_sha256, row.axis)
    )


main = Command(import_ratings)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
