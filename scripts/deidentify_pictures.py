"""De-identify the loose pictures of a benchmark: written anew without metadata, and searched for burned-in text."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.deid.pictures import deidentify_pictures
from neuralmedbench.io.cases import read_pictures, write_pictures
from neuralmedbench.io.commands import run_command
from neuralmedbench.io.files import sha256_of


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, required=True, help="pictures.json of the ingested pictures")
    parser.add_argument(
        "--burned-in", choices=("hide", "drop", "keep"), default="hide", help="what becomes of text that is burned into pixels"
    )
    parser.add_argument("--subjects", choices=("phantom", "public", "patient"), default="patient", help="whose pictures they are")
    parser.add_argument("--out", type=Path, required=True, help="pictures.json to write; pictures/ appears beside it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    folder: Path = args.out.parent / "pictures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = args.pictures
    how = {"burned_in": args.burned_in, "subjects": args.subjects}
    manifest = deidentify_pictures(read_pictures(source), source.parent, sha256_of(source), args.out.parent, **how)
    write_pictures(args.out, manifest)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
