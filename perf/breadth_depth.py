"""Measure the floor (best constant answer) and the gap of breadth and depth on simulated studies with a known truth.

Run on purpose (`python perf/breadth_depth.py`), never a test; the studies are those of `tests/fixtures/floors.py`. It fails where chance does not
explain that an interval holds the truth in less than 93 % of the studies, or that one axis is called better in more than 5 % of those
without a difference.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.floors import (
    BREADTH,
    BREADTH_PATIENTS,
    CLOSING_SEED,
    DEPTH,
    DIAGNOSES,
    KNOWN,
    MENDING_SEED,
    STUDIES,
    measure_floor,
    measure_gap,
)
from neuralmedbench.estimates.exact import clopper_pearson


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    broken = 0

    def say(cell: dict[str, object], found: dict[str, float], null: bool) -> bool:
        print(json.dumps(cell | {name: round(value, 3) for name, value in found.items()}), flush=True)
        # a gap has an interval in some studies, a floor in all
        known = round(found.get("known", 1.0) * args.studies)
        missed = known > 0 and clopper_pearson(found["held"] * known, known, 0.95)[1] < 0.93
        return missed or (null and clopper_pearson(found["claimed"] * args.studies, args.studies, 0.95)[0] > 0.05)

    for diagnoses, patients in product(DIAGNOSES, BREADTH_PATIENTS):
        broken += say({"floor": diagnoses, "patients": patients}, measure_floor(patients, diagnoses, args.studies, args.seed), False)
    for (name, known), breadth, depth, patients in product(KNOWN.items(), BREADTH, DEPTH, BREADTH_PATIENTS):
        found = measure_gap(patients, (breadth, depth), known, args.studies, args.seed)
        broken += say({"model": name, "breadth": breadth, "depth": depth, "patients": patients}, found, known[0] == known[1])
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
