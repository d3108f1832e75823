"""Write the case table of the demo (a command for people): every simulated patient is made once to know its digest."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key-file", type=Path, default=Path("config/demo.key"), help="secret of the pseudonyms")
    parser.add_argument("--tiny", action="store_true", help="only the patients of demo-tiny")
    parser.add_argument("--out", type=Path, required=True, help="config/benchmarks/demo.cases.tsv or demo-tiny.cases.tsv")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.demo.cohort import TINY, read_cohort
    from neuralmedbench.demo.generate import case_row
    from neuralmedbench.files.cases import write_case_table
    from neuralmedbench.files.pseudonyms import read_key

    args = parse_args(argv)
    key = read_key(args.key_file)
    patients = [patient for patient in read_cohort() if patient.key in TINY or not args.tiny]
    write_case_table(args.out, [case_row(patient, key) for patient in patients])
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
