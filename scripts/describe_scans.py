"""Describe the de-identified cases of a benchmark as one BIDS data set, participants included."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.dataset import write_dataset
from neuralmedbench.files.cases import case_files, read_case
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--table", type=Path, required=True, help="case table of the benchmark")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="dataset_description.json to write, next to the folders of the cases, as are the other files",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder: Path = args.out.parent
    write_dataset(folder, args.benchmark, [(read_case(path), path.parent) for path in case_files(args.table, folder)])
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
