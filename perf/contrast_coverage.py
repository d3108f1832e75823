"""Measure coverage, size and agreement of the engine of contrasts on simulated studies with a known truth.

Run on purpose (`python perf/contrast_coverage.py`), never a test; cells and studies are those of `tests/fixtures/contrast_studies.py`. It fails
where the upper 99 % bound of the coverage of a cell lies below 92 % (90 % with 6 or 8 patients), the lower bound of the size of its test above
6 %, or test and interval disagree once. Killed, it goes on at the cell where it was.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.contrast_studies import Cell, broken, grid, measure
from fixtures.series import measured_cells


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)

    def measure_cell(cell: Cell) -> dict[str, float]:
        return measure(cell, args.studies, args.seed)

    failed = 0
    for cell, measured in measured_cells("contrast_coverage", f"{args.studies} {args.seed}", grid(), measure_cell):
        breaks = broken(cell, measured)
        failed += bool(breaks)
        rounded = {key: round(value, 4) for key, value in measured.items()}
        print(json.dumps({"cell": cell._asdict(), **rounded, **({"breaks": breaks} if breaks else {})}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
