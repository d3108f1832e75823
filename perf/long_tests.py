"""Run the long tests: those that make a run of their own, and those that show in many cases what `make test` shows in one.

Runs of their own: every arm, real scans, a cluster, replay, revisions, upgrades, kills. Where a folder of real scans (NMB_REAL_SCANS) or
Slurm is absent, their tests are skipped, which the output says.
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
    "long",
)


def main() -> int:
    done = subprocess.run([sys.executable, *COMMAND], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(*(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "SKIPPED")) or " passed" in line), sep="\n")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
