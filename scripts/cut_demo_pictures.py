"""Collect single pictures of the simulated patients as a small data set of loose slices."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.demo.pictures import collect_pictures
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def collect(*, cases: Sequence[Path], key_file: Path, out_pictures: Path, out: Path) -> None:
    collect_pictures([case.parent / "slices" for case in cases], read_key(key_file), out_pictures, out)


main = Command(collect)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
