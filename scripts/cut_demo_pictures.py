"""Collect single pictures of the simulated patients as a small data set of loose slices."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", type=Path, nargs="+", required=True, help="files.json of each case; its pictures are in slices/ next to it"
    )
    parser.add_argument("--key-file", type=Path, required=True, help="secret key of the pseudonyms: config/demo.key")
    parser.add_argument("--out-pictures", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--out", type=Path, required=True, help="images.csv that lists them")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.demo.pictures import collect_pictures
    from neuralmedbench.files.pseudonyms import read_key

    args = parse_args(argv)
    collect_pictures([case.parent / "slices" for case in args.cases], read_key(args.key_file), args.out_pictures, args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
