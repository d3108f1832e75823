"""Measure how often the update gate approves an update that is worse by a margin, and one that changes nothing: 2,000 simulated updates a cell.

Run on purpose (`python perf/update_gate.py`), never a test; the grid is that of `tests/fixtures/updates.py`. It fails where Monte Carlo error does not
explain that more than 5 % of updates at a margin are approved in one look or in any of five, that more than 5 % of them are rejected, or that less than
80 % of those that change nothing are approved at the planned number of patients.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.updates import CLOSING_SEED, TUNING_SEED, UPDATES, broken, grid, measure


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument(
        "--seed", type=int, default=CLOSING_SEED, help=f"{TUNING_SEED} while the test was chosen, {CLOSING_SEED} at closing"
    )
    parser.add_argument("--patterns", nargs="*", help="only these patterns of the grid")
    args = parser.parse_args(argv)
    failures = 0
    for cell in grid():
        if args.patterns and cell.pattern not in args.patterns:
            continue
        found = measure(cell, args.updates, args.seed)
        failed = broken(cell, found, args.updates)
        row = cell._asdict() | {name: round(value, 4) for name, value in found.items()}
        print(json.dumps({name: value for name, value in row.items() if value != ""} | {"broken": failed}), flush=True)
        failures += len(failed)
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
