"""Describe the de-identified cases of a benchmark as one BIDS data set, participants included."""

from pathlib import Path

from neuralmedbench.deid.dataset import write_dataset
from neuralmedbench.files.cases import case_files, read_case
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def describe(*, benchmark: str, table: Path, out: Path) -> None:
    folder = out.parent
    write_dataset(folder, benchmark, [(read_case(path), path.parent) for path in case_files(table, folder)])


main = Command(describe)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
