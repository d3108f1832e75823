"""Draw every figure of the report from the tables of results."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.figures.gallery import draw_figures
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for the SVG files")
    parser.add_argument("--min-patients-shown", type=int, default=10, help="mark groups of fewer patients as small")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    draw_figures(args.tables, args.out, fewest=args.min_patients_shown)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
