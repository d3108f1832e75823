"""De-identify a folder of scans without the workflow (a command for people, called by no rule; the same as `nmb deid folder`)."""

import argparse
from collections.abc import Sequence

from neuralmedbench.cli.deid import deidentify_folder
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
    return deidentify_folder.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    return deidentify_folder.main(argv)


if __name__ == "__main__":
    raise SystemExit(run_command(main))
