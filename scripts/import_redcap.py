"""Turn REDCap's raw export into tables of a round (a command for people: no rule calls it), which the workflow then imports strictly."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", required=True, help="name of the round, as in r01")
    parser.add_argument("--export", type=Path, required=True, help="CSV of REDCap: raw data, no labels")
    parser.add_argument("--form", type=Path, default=Path("config/rating.yaml"), help="axes and errors")
    parser.add_argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from datetime import UTC, datetime

    from neuralmedbench.config.load import wildcard
    from neuralmedbench.files.tables import write_table
    from neuralmedbench.ratings.export_table import COLUMNS
    from neuralmedbench.ratings.exports import RoundKey, read_file
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.imports import KEY_FILE
    from neuralmedbench.ratings.redcap import read_export

    args = parse_args(argv)
    folder = args.folder / wildcard(args.round)
    key = read_file(folder / KEY_FILE, RoundKey)
    now = datetime.now(UTC)
    for rater, lines in read_export(args.export, read_form(args.form), key, f"{now:%Y-%m-%dT%H:%M:%SZ}").items():
        path = folder / f"rating_redcap_{rater}_{now:%Y%m%dT%H%M%SZ}.csv"
        write_table(path, lines, COLUMNS)
        print(f"{path.as_posix()}: {'complete' if lines[0]['complete'] == 'true' else 'progress, not complete'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
