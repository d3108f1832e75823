"""Measure how often the perception-or-reasoning block says something false, on simulated studies with a known truth.

Run on purpose (`python perf/perception_split.py`), never a test; the studies are those of `tests/fixtures/perception.py`. Columns: how often a
share is headlined, how often the interval of d - f holds its true value, and how often that of the share does, in all studies and where it is
given.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.perception import CLOSING_SEED, EFFECTS, FULL, MENDING_SEED, PATIENTS, STUDIES, measure


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    for name, effect in EFFECTS.items():
        for full in FULL:
            for patients in PATIENTS:
                found = measure(patients, full, effect, args.studies, args.seed)
                cells = {key: None if value is None else round(value, 3) for key, value in found.items()}
                print(json.dumps({"effect": name, "f": full, "patients": patients, **cells}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
