"""De-identify one case: headers, sidecars, file names, face, notes and record; anything that may be left quarantines the case."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.cleaning import add_cleaning_arguments, cleaning_policy
from neuralmedbench.deid.stage import deidentify_case, empty_outputs
from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_cleaning_arguments(parser, burned_in=("hide", "drop"), required=True)
    parser.add_argument("--case", type=Path, required=True, help="case.json of the ingested case")
    parser.add_argument("--planted", type=Path, nargs="*", help="answer_key.json of a phantom, to score its cleaning")
    parser.add_argument("--out", type=Path, required=True, help="case.json to write; BIDS folders and text/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder: Path = args.out.parent
    policy = cleaning_policy(args)
    planted = args.planted[0] if args.planted else None
    empty_outputs(folder)
    run_case_stage("deidentify", args.case, args.out, lambda case, source: deidentify_case(case, source, folder, policy, planted))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
