"""List what still holds a withdrawn patient (a command for people: no rule calls it): the cases that a case table excludes.

Each line is a folder, or a file with the number of its rows or lines. Run the workflow first: it makes the tables again without them.
What is left then can be deleted. Remotes and other clones are not seen from here.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.cases import read_case_table
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.recording.patient_traces import find_traces, withdrawn_ids

    args = parse_args(argv)
    table = read_case_table(args.config / "benchmarks" / f"{args.benchmark}.cases.tsv")
    excluded = sum(bool(row.exclude) for row in table)
    held = find_traces(Path(), withdrawn_ids(table))
    print(f"{args.benchmark}: {excluded} of {len(table)} cases are excluded; {len(held)} places still hold them", file=sys.stderr)
    for entry in held:
        print(f"{entry.path}\t{entry.what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
