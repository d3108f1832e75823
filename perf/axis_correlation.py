"""Measure how often the corrected correlation of breadth and depth is false, on simulated studies with a known truth.

Run on purpose (`python perf/axis_correlation.py`), never a test; the studies are those of `tests/fixtures/two_axes.py`. Columns: median
reliability of both scores; how often the interval of the uncorrected correlation lies below 0.9; how often a correlation is given; how often
its interval lies below 0.9 (of all studies, and of those with a correlation), holds the truth, and lies below 1; median value and width. It
fails where chance does not explain that the interval lies below 0.9 in more than 5 % of the studies although the truth is 1, or holds a truth
of 0.5 or 0 in less than 93 % of the studies with a correlation.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.two_axes import BREADTH, CLOSING_SEED, DEPTH, MENDING_SEED, MODELS, STUDIES, TRUTHS, WORLDS, Cell, measure
from neuralmedbench.estimates.exact import clopper_pearson


def holds(found: Mapping[str, float | None], studies: int, truth: float) -> bool:
    """Whether the bounds hold: a bound is broken where the exact interval of a share of the studies excludes it."""
    if truth == 1:
        return clopper_pearson((found["below"] or 0.0) * studies, studies, 0.95)[0] <= 0.05
    given = round((found["given"] or 0.0) * studies)
    return not given or clopper_pearson((found["covered"] or 0.0) * given, given, 0.95)[1] >= 0.93


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    broken = 0
    for name, truth, *sizes in itertools.product(WORLDS, TRUTHS, MODELS, DEPTH, BREADTH):
        found = measure(Cell(WORLDS[name], truth, *sizes), args.studies, args.seed)
        held = holds(found, args.studies, truth)
        broken += not held
        cells = {key: None if value is None else round(value, 3) for key, value in found.items()}
        grid = dict(zip(("models", "depth", "breadth"), sizes, strict=True))
        print(json.dumps({"world": name, "truth": truth, **grid, **cells, "held": held}), flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
