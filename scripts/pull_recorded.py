"""Bring here what others recorded and pushed (a command for people: no rule calls it); ledgers are united, never shortened."""

import argparse
from collections.abc import Sequence

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    return argparse.ArgumentParser(description=__doc__).parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.recording.repository import pull

    parse_args(argv)
    pulled = pull()
    print(f"pulled: {pulled.files} files changed, the ledgers gained {pulled.answers} answers")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
