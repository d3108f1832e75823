"""Cut the pictures that a model sees out of one normalised case."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.imaging.slices import POLICIES, SlicePolicy, cut_slices
from neuralmedbench.io.cases import run_case_stage
from neuralmedbench.io.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=Path, required=True, help="case.json of one normalised case")
    parser.add_argument("--policy", choices=POLICIES, default="uniform")
    parser.add_argument("--per-sequence", type=int, default=8, help="pictures per sequence")
    parser.add_argument("--field-of-view-mm", type=float, default=230.0, help="side of a picture")
    parser.add_argument("--out-pictures", type=Path, required=True, help="folder for the pictures, beside --out")
    parser.add_argument("--out", type=Path, required=True, help="case.json that lists them")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    policy = SlicePolicy(policy=args.policy, per_sequence=args.per_sequence, field_of_view_mm=args.field_of_view_mm)
    run_case_stage(
        "slices",
        args.case,
        args.out,
        lambda case, source: replace(case, slices=cut_slices(case, source, args.out_pictures, policy)),
        folders=(args.out_pictures,),
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
