"""Measure the statistics and flags of items on simulated benchmarks whose truth is known.

Run on purpose (`python perf/item_analysis.py`), never a test; grid and promises are those of `tests/fixtures/item_analysis.py`. It fails where
Monte Carlo error does not explain that a promise is broken; of cells that no rule reaches it prints the limit. Killed, it goes on at the cell
where it was.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.item_analysis import (
    BENCHMARKS,
    CLOSING_SEED,
    KEYED_BENCHMARKS,
    TUNING_SEED,
    BenchmarkCell,
    WrongKeyCell,
    benchmark_grid,
    broken_benchmark,
    broken_keys,
    is_limit,
    measure_benchmark,
    measure_keys,
    wrong_key_grid,
)
from fixtures.series import measured_cells


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", type=int, default=BENCHMARKS)
    parser.add_argument("--keyed-benchmarks", type=int, default=KEYED_BENCHMARKS)
    parser.add_argument("--seed", type=int, default=CLOSING_SEED, help=f"{TUNING_SEED} during the work, {CLOSING_SEED} at closing")
    args = parser.parse_args(argv)

    def measure(cell: BenchmarkCell | WrongKeyCell) -> dict[str, float]:
        if isinstance(cell, WrongKeyCell):
            return measure_keys(cell, args.keyed_benchmarks, args.seed)
        return measure_benchmark(cell, args.benchmarks, args.seed)

    failures = 0
    cells = [*benchmark_grid(), *wrong_key_grid()]
    settings = f"{args.benchmarks} {args.keyed_benchmarks} {args.seed}"
    for cell, measured in measured_cells("item_analysis", settings, cells, measure):
        if isinstance(cell, WrongKeyCell):
            failed = broken_keys(cell, measured)
            limits = [promise for promise in failed if is_limit(cell, promise)]
        else:
            failed, limits = broken_benchmark(measured, args.benchmarks), []
        broken = [promise for promise in failed if promise not in limits]
        row = cell._asdict() | {name: round(value, 4) for name, value in measured.items()}
        print(json.dumps(row | {"limits": limits, "broken": broken}), flush=True)
        failures += len(broken)
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
