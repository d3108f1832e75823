"""Make one simulated patient of the demo: scans, notes, record and answer; no real person is in it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", required=True, help="case id, as in the case table")
    parser.add_argument("--key-file", type=Path, required=True, help="secret key of the pseudonyms: config/demo.key")
    parser.add_argument("--answer", type=Path, required=True, help="answer to write (JSON)")
    parser.add_argument("--out", type=Path, required=True, help="files.json of the case; everything else is written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.demo.cohort import find_patient
    from neuralmedbench.demo.generate import generate_case
    from neuralmedbench.files.pseudonyms import read_key

    args = parse_args(argv)
    key = read_key(args.key_file)
    patient = find_patient(args.case, key)
    generate_case(patient, args.case, patient.patient_id(key), args.out.parent, answer=args.answer)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
