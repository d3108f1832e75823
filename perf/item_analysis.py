"""Measure the statistics of items on simulated benchmarks whose truth is known.

Run on purpose (`python perf/item_analysis.py`), never a test; grid and promises are those of `tests/fixtures/item_analysis.py`. It fails where Monte
Carlo error does not explain that a promise is broken.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.item_analysis import BENCHMARKS, CLOSING_SEED, TUNING_SEED, benchmark_grid, broken_benchmark, measure_benchmark


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", type=int, default=BENCHMARKS)
    parser.add_argument("--seed", type=int, default=CLOSING_SEED, help=f"{TUNING_SEED} during the work, {CLOSING_SEED} at closing")
    args = parser.parse_args(argv)
    failures = 0
    for cell in benchmark_grid():
        found = measure_benchmark(cell, args.benchmarks, args.seed)
        failed = broken_benchmark(cell, found, args.benchmarks)
        print(json.dumps(cell._asdict() | {name: round(value, 4) for name, value in found.items()} | {"broken": failed}), flush=True)
        failures += len(failed)
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
