"""Run the tests that make a run of their own, minutes long each: every arm, real scans, a cluster, replay, revisions, upgrades, kills.

Run on purpose (`make validate SERIES=whole_runs`): `make test` leaves them out. Where a folder of real scans (NMB_REAL_SCANS) or Slurm is
absent, their tests are skipped, which the output says.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (
    "-m",
    "pytest",
    "-q",
    "-n",
    "3",
    "--dist",
    "loadfile",
    "--no-loadscope-reorder",
    "-m",
    "whole_run",
    "tests/slurm",
    "tests/upgrade",
    "tests/workflow",
)


def main() -> int:
    done = subprocess.run([sys.executable, *COMMAND], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(*(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "SKIPPED")) or " passed" in line), sep="\n")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
