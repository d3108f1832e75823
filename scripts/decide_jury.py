"""Let a jury of graders vote on the answers of one model."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.scores import Grade, response_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command
from neuralmedbench.scoring.jury import grade_with_jury
from neuralmedbench.scoring.planted.checks import asked_of_all


def decide(*, grader: str, grades: Sequence[Path], out: Path, config: Path = Path("config")) -> None:
    jury = load_grader(config / "graders" / f"{grader}.yaml")
    files = {path.stem: path for path in grades}
    members = asked_of_all({name: read_records(files[name], Grade) for name in jury.members})
    decided = grade_with_jury(members, jury=grader, rule=jury.rule)
    write_records(out, Grade, decided, key=lambda row: (response_key(row), row.criterion))


main = Command(decide)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
