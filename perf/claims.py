"""Measure how often a sentence at a glance names a difference that is not there: three equal models on two benchmarks.

Run on purpose (`python perf/claims.py`), never a test; the studies are those of `tests/fixtures/claims.py`. It fails where chance does not explain
that any comparison is significant in more than 5 % of the studies.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.claims import CLOSING_SEED, KNOWN, MENDING_SEED, PATIENTS, STUDIES, measure_claims
from neuralmedbench.estimates.exact import clopper_pearson


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    broken = 0
    for known, patients in product(KNOWN, PATIENTS):
        found = measure_claims(patients, known, args.studies, args.seed)
        print(json.dumps({"known": known, "patients": patients} | {name: round(value, 3) for name, value in found.items()}), flush=True)
        broken += clopper_pearson(found["any"] * args.studies, args.studies, 0.95)[0] > 0.05
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
