"""Gather the reference answers of the simulated patients in one table."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.tables import write_table
from neuralmedbench.records.columns import ANSWER_COLUMNS
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def gather(*, answers: Sequence[Path], out: Path) -> None:
    rows = sorted((read_json(path) for path in answers), key=lambda row: row["case_id"])
    write_table(out, rows, ANSWER_COLUMNS, guarded=False)


main = Command(gather)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
