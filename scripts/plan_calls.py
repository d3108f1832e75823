"""Say what a run would ask, of whom, and what that would cost (a command for people: no rule calls it); nothing is sent."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    parser.add_argument("--out", type=Path, help="also write the plan as CSV")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.workflow import read_run
    from neuralmedbench.models.budget import read_spend_log
    from neuralmedbench.models.run_limits import MONEY, SPENDING
    from neuralmedbench.recording.plan import plan_run
    from neuralmedbench.recording.plan_page import plan_lines, write_plan

    args = parse_args(argv)
    run = read_run(args.configfiles)
    rows, unplanned = plan_run(run)
    print("\n".join(plan_lines(rows, unplanned, run, read_spend_log(SPENDING / MONEY))))
    if args.out:
        write_plan(args.out, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
