"""Put every name of the vocabulary into every phrase and spelling of the property tests, which put a share into each.

Run on purpose (`python perf/names_in_phrases.py`), never a test: it takes some minutes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = "tests/property/test_vocabulary_property.py"


def main() -> int:
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", TESTS]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NMB_ALL_NAMES": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print("\n".join(line for line in done.stdout.splitlines() if re.match(r"FAILED|E  |\d+ (passed|failed)", line)))
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
