"""Measure coverage, size and agreement of the engine of contrasts on simulated studies with a known truth.

Run on purpose (`python perf/contrast_coverage.py`), never a test; cells and studies are those of `tests/fixtures/contrast_studies.py`. It fails
where the upper 99 % bound of the coverage of a cell lies below 92 % (90 % with 6 or 8 patients), the lower bound of the size of its test above
6 %, or test and interval disagree once. Finished cells are kept in `--keep` and not run again.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.contrast_studies import broken, grid, measure


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of finished cells, a line each; removed by hand when the code has changed")
    args = parser.parse_args(argv)
    lines = args.keep.read_text(encoding="utf-8").splitlines() if args.keep and args.keep.is_file() else []
    done = {line.partition("\t")[0]: line.partition("\t")[2] for line in lines}
    failed = 0
    for cell in grid():
        name = json.dumps([*cell, args.studies, args.seed])
        measured = json.loads(done[name]) if name in done else measure(cell, args.studies, args.seed)
        if args.keep and name not in done:
            with args.keep.open("a", encoding="utf-8") as file:
                file.write(f"{name}\t{json.dumps(measured)}\n")
        breaks = broken(cell, measured)
        failed += bool(breaks)
        rounded = {key: round(value, 4) for key, value in measured.items()}
        print(json.dumps({"cell": cell._asdict(), **rounded, **({"breaks": breaks} if breaks else {})}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
