"""Measure what the title's contrast says of models whose knowledge is known, and what can be guessed from options alone.

Run on purpose (`python perf/title_contrast.py`), never a test; cells, studies and sets are those of `tests/fixtures/title_contrast.py`. It
fails where the 98 % bounds of a share of the studies exclude a rule: at equal knowledge 0 lies within 95 % of the intervals and the test
rejects in at most 6 %; 25 points are shown in 80 % with 30 patients of five samples; a guesser is recognised in no more than chance explains.
It fails, too, where a guess from the options of 1,000 generated sets is on average more than 5 points away from chance. Killed, it goes on at
the cell where it was.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.series import measured_cells
from fixtures.title_contrast import SETS, Cell, Set, broken, broken_set, grid, measure, measure_sets


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)

    def measure_cell(cell: Cell | Set) -> dict[str, float]:
        return measure_sets(cell, args.sets, args.seed) if isinstance(cell, Set) else measure(cell, args.studies, args.seed)

    failed = 0
    cells: list[Cell | Set] = [*SETS, *grid()]
    for cell, measured in measured_cells("title_contrast", f"{args.studies} {args.sets} {args.seed}", cells, measure_cell):
        breaks = broken_set(measured) if isinstance(cell, Set) else broken(cell, measured)
        failed += bool(breaks)
        rounded = {key: round(value, 4) for key, value in measured.items()}
        print(json.dumps({"cell": cell._asdict(), **rounded, **({"breaks": breaks} if breaks else {})}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
