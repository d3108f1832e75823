"""Record a complete run with DVC (called after every run; a command for people: no rule calls it)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    parser.add_argument("--overridden", action="store_true", help="settings came from the command line itself")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.workflow import own_configfiles, read_run
    from neuralmedbench.recording.incomplete import incomplete_files, incomplete_line
    from neuralmedbench.recording.record import record_run

    args = parse_args(argv)
    run = read_run(args.configfiles)
    try:
        if line := record_run(run, own_configfiles(args.configfiles), overridden=args.overridden):
            print(line, file=sys.stderr)
    finally:
        if line := incomplete_line(incomplete_files(run)):
            print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
