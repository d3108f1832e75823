"""Measure how often the perception-or-reasoning block says something false, on simulated studies with a known truth.

Run on purpose (`python perf/perception_split.py`), never a test; the studies are those of `tests/fixtures/perception.py`. Columns: how often a
share is headlined, and told from one half; how often the interval of d - f holds its true value, and how often that of the share does, in all
studies and where it is given. It fails where chance does not explain that a share is headlined without an effect in more than 5 %, or that
d - f is held in less than 93 % of the studies.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.perception import CLOSING_SEED, EFFECTS, FULL, MENDING_SEED, PATIENTS, STUDIES, Effect, measure
from neuralmedbench.estimates.exact import clopper_pearson


def holds(found: Mapping[str, float | None], studies: int, effect: Effect) -> bool:
    """Whether the bounds hold: a bound is broken where the exact interval of a share of the studies excludes it."""
    headlined, covered = ((found[name] or 0.0) * studies for name in ("headlined", "difference_covered"))
    falsely = effect.share == 0 and clopper_pearson(headlined, studies, 0.95)[0] > 0.05
    return not falsely and clopper_pearson(covered, studies, 0.95)[1] >= 0.93


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--seed", type=int, default=MENDING_SEED, help=f"{MENDING_SEED} while mending, {CLOSING_SEED} once at closing")
    args = parser.parse_args(argv)
    broken = 0
    for name, effect in EFFECTS.items():
        for full in FULL:
            for patients in PATIENTS:
                found = measure(patients, full, effect, args.studies, args.seed)
                cells = {key: None if value is None else round(value, 3) for key, value in found.items()}
                broken += not holds(found, args.studies, effect)
                print(json.dumps({"effect": name, "f": full, "patients": patients, **cells}), flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
