"""Import what clinicians answered themselves in a round of answers (a command for people: no rule calls it): each becomes a model.

The folder of the round holds its key and the JSON files that readers sent back. Nothing is written unless everything fits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import wildcard
from neuralmedbench.recording.reader_answers import import_readers, reader_lines
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round", required=True, help="name of the round, as in h01")
    parser.add_argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    found = import_readers(args.folder / wildcard(args.round), config=args.config, data=args.data)
    print("\n".join(reader_lines(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
