"""Write the normalised cases of a benchmark as a BIDS derivative (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.bids import write_description
from neuralmedbench.files.cases import case_files, read_case
from neuralmedbench.imaging.export import ABOUT, export_case
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark; its stages deidentify and normalise have run")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the stages' data")
    parser.add_argument("--out", type=Path, required=True, help="root of the derivative data set; files of the same name are replaced")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    table = args.config / "benchmarks" / f"{args.benchmark}.cases.tsv"
    written = 0
    for path in case_files(table, args.data / "normalised" / args.benchmark):
        raw = read_case(args.data / "deidentified" / args.benchmark / path.parent.name / "case.json")
        written += export_case(read_case(path), path.parent, raw, args.out)
    write_description(args.out, f"{args.benchmark}, normalised", "derivative", ABOUT.format(benchmark=args.benchmark))
    print(f"{written} volumes written to {args.out.as_posix()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
