"""Bring the scans of one case into one orientation and one space, with quality numbers."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.imaging.normalise import NormaliseSettings, normalise
from neuralmedbench.imaging.review_pieces import REVIEW, write_case_pieces
from neuralmedbench.imaging.scans import VOLUMES
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=Path, required=True, help="case.json of one de-identified case")
    parser.add_argument("--reference-order", nargs="+", required=True, help="sequences in order of preference as the reference")
    parser.add_argument("--bias-grid-mm", type=float, default=8.0, help="grid of the bias field")
    parser.add_argument("--registration-grid-mm", type=float, default=3.0, help="grid of the registration")
    parser.add_argument(
        "--out", type=Path, required=True, help="case.json of the normalised case; volumes/ and review/ are written next to it"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    settings = NormaliseSettings(
        reference_order=tuple(args.reference_order),
        bias_grid_mm=args.bias_grid_mm,
        registration_grid_mm=args.registration_grid_mm,
    )
    target = args.out.parent

    def step(case: CaseRecord, source: Path) -> CaseRecord:
        done = normalise(case, source, target, settings)
        write_case_pieces(done, target)
        return done

    run_case_stage("normalise", args.case, args.out, step, folders=(target / VOLUMES, target / REVIEW))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
