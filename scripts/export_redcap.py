"""Write the form of a rating round for REDCap (a command for people: no rule calls it): a data dictionary, and one import file a rater."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", required=True, help="name of the round, as in r01")
    parser.add_argument("--form", type=Path, default=Path("config/rating.yaml"), help="axes and errors")
    parser.add_argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.files.tables import write_table
    from neuralmedbench.ratings.exports import RoundKey, read_file
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.imports import KEY_FILE
    from neuralmedbench.ratings.redcap import DICTIONARY, RECORD, data_dictionary, records_of

    args = parse_args(argv)
    folder = args.folder / wildcard(args.round)
    key, form = read_file(folder / KEY_FILE, RoundKey), read_form(args.form)
    write_table(folder / "redcap" / "dictionary.csv", data_dictionary(form, key), DICTIONARY)
    for packet in key.packets:
        write_table(folder / "redcap" / f"{packet.rater}.csv", records_of(packet, key.rubric), RECORD)
    print(f"{folder.as_posix()}/redcap: dictionary.csv, and {len(key.packets)} import files; each rater gets a project, and the page too")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
