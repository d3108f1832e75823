"""Score structured answers in the JSONL format of NeuroVLM-Bench (a command for people, called by no rule; the same as `nmb score structured`)."""

import argparse
from collections.abc import Sequence

from neuralmedbench.cli.score import score_structured
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
    return score_structured.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    return score_structured.main(argv)


if __name__ == "__main__":
    raise SystemExit(run_command(main))
