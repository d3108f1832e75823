"""Check that every result is what its inputs and settings of today give (a command for people: no rule calls it)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.workflow import own_configfiles
    from neuralmedbench.recording.audit import audit_run

    args = parse_args(argv)
    for line in audit_run(own_configfiles(args.configfiles)):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
