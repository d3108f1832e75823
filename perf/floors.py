"""Measure the interval of the floor (best constant answer) on simulated studies with a known truth.

Run on purpose (`python perf/floors.py`), never a test; the studies are those of `tests/fixtures/floors.py`. It fails where chance does not
explain that the interval holds the truth in less than 93 % of the studies.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.floors import CLOSING_SEED, DIAGNOSES, MENDING_SEED, PATIENTS, STUDIES, measure_floor
from neuralmedbench.estimates.exact import clopper_pearson


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    broken = 0
    for diagnoses, patients in product(DIAGNOSES, PATIENTS):
        cell = measure_floor(patients, diagnoses, args.studies, args.seed)
        rounded = {name: round(value, 3) for name, value in cell.items()}
        print(json.dumps({"diagnoses": diagnoses, "patients": patients} | rounded), flush=True)
        broken += clopper_pearson(cell["held"] * args.studies, args.studies, 0.95)[1] < 0.93
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
