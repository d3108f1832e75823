"""List the tables that lack answers or grades (a command for people: no rule calls it); `make retry` makes them again."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.recording.incomplete import incomplete_files, incomplete_line

    args = parse_args(argv)
    found = incomplete_files(read_run(args.configfiles))
    print(incomplete_line(found) or "nothing is missing", file=sys.stderr)
    for entry in found:
        print(entry.path)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
