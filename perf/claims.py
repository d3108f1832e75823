"""Measure how often a run claims a difference that is not there, and how often it finds one that is.

Run on purpose (`python perf/claims.py`), never a test; cells and runs are those of `tests/fixtures/families.py`. It fails where the lower
99 % bound of the share of runs with a false claim lies above 5 %; where a stated difference of 20 points is found, by the upper bound, in
fewer than 95 % of runs with 30 patients; or where 8 patients never show that a model is far above the others. Killed, it goes on at the cell
where it was.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.families import Cell, broken, grid, measure
from fixtures.series import measured_cells


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)

    def measure_cell(cell: Cell) -> dict[str, float]:
        return measure(cell, args.studies, args.seed)

    failed = 0
    for cell, measured in measured_cells("claims", f"{args.studies} {args.seed}", grid(), measure_cell):
        breaks = broken(cell, measured)
        failed += bool(breaks)
        rounded = {key: round(value, 4) for key, value in measured.items()}
        print(json.dumps({"cell": cell._asdict(), **rounded, **({"breaks": breaks} if breaks else {})}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
