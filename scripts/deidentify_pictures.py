"""De-identify the loose pictures of a benchmark: rewrite them without metadata, search for burned-in text, and clean the texts of own cases."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.cleaning import add_cleaning_arguments, cleaning_policy
from neuralmedbench.deid.pictures import deidentify_picture_cases, deidentify_pictures
from neuralmedbench.files.cases import read_pictures, write_pictures
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_cleaning_arguments(parser, burned_in=("hide", "drop", "keep"), required=False)
    parser.add_argument("--pictures", type=Path, required=True, help="pictures.json of the ingested pictures")
    parser.add_argument("--out", type=Path, required=True, help="pictures.json to write; pictures/ and sub-<case>/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    source, out = args.pictures.parent, args.out.parent
    shutil.rmtree(out / "pictures", ignore_errors=True)
    (out / "pictures").mkdir(parents=True)
    ingested = read_pictures(args.pictures)
    if ingested.cases:
        manifest = deidentify_picture_cases(ingested, source, out, cleaning_policy(args))
    else:
        digest = sha256_of(args.pictures)
        manifest = deidentify_pictures(ingested, source, digest, out, burned_in=args.burned_in, subjects=args.subjects)
    write_pictures(args.out, manifest)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
