"""Measure the coverage of intervals on simulated studies with known true values.

Run on purpose (`python perf/confidence_intervals.py`), never a test. Rates, differences, shares and gaps: the studies of
`tests/fixtures/coverage.py`, 8, 30 and 120 patients. Patients with unequal numbers of items: 12, 30, 60 and 120 patients, true rates of 5, 10,
30, 60 and 90 %, and paired differences, and the measures of work-ups; it fails if the interval of a rate or of such a measure does not hold
the truth in 93 % (the Monte-Carlo interval of the coverage ends below that). Rates corrected by raters of unequal leniency: 12 and 120 patients. Seed 1; seed 2 is for closing.
Confidence: answers of one patient are correlated (a random effect of 0.8 on the logit), confidences are on a
grid of 0.05, and the model is overconfident by 0 to 0.3. The true value is that of 100,000 patients. The nominal coverage is 95 %; with
1,000 studies, 93.6 to 96.4 % is within chance.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fixtures.coverage import PAIRS, QUANTITIES, RATES, WORK_UPS, corrected_rates, coverage, truth
from neuralmedbench.estimates.calibration import auroc_interval, overconfidence
from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, IntervalSettings, rate_interval

ANSWERS, TRUTH = 4, 100_000
TOO_SURE, PATIENTS = (0.0, 0.07, 0.15, 0.3), (8, 30, 120)
UNEVEN_PATIENTS, RATED_PATIENTS, LEAST = (12, 30, 60, 120), (12, 120), 0.93
SETTINGS = IntervalSettings(resamples=1000)


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="simulated runs of each kind for the intervals of confidence; 0: none")
    parser.add_argument("--studies", type=int, default=1000, help="simulated studies of each kind for all other intervals; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of the studies; 1 was used while the intervals were made")
    return parser.parse_args(argv)


def simulated(seed: int, patients: int, too_sure: float) -> tuple[Floats, Floats, ByPatient]:
    """Return confidences, outcomes and patients of answers."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(patients), ANSWERS)
    value = np.clip(np.round(rng.beta(4, 2, codes.size) * 20) / 20, 0.05, 1)
    chance = np.clip(value - too_sure, 0.01, 0.99)
    logit = np.log(chance / (1 - chance)) + rng.normal(0, 0.8, patients)[codes]
    right = (rng.random(codes.size) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    return value, right, ByPatient(codes, SETTINGS)


def intervals(value: Floats, right: Floats, by: ByPatient) -> dict[str, Interval]:
    return {
        "overconfidence": overconfidence(value, right, by),
        "brier": rate_interval((value - right) ** 2, by),
        "auroc": auroc_interval(value, right, by),
    }


def print_coverage(kinds: Iterable[tuple[str, str]], numbers: Sequence[int], studies: int, seed: int) -> list[str]:
    """Print a table: coverage and mean width of the intervals, by number of patients. Return the cells that hold the truth too seldom."""
    seldom = []
    print(f"{'what':37} {'how':21} {'truth':>6}" + "".join(f"{f'{patients} patients':>19}" for patients in numbers))
    for kind in kinds:
        print(f"{kind[0]:37} {kind[1]:21} {truth(kind):6.3f}", end="", flush=True)
        for patients in numbers:
            held, width, number = coverage(kind, patients, studies, SETTINGS, seed)
            left_out = "" if number == studies else f" ({studies - number} without)"
            print(f"{f'{held:.3f} width {width:.3f}':>19}{left_out}", end="", flush=True)
            if clopper_pearson(held * number, number, 0.95)[1] < LEAST:
                seldom.append(f"{', '.join(kind)}, {patients} patients: {held:.3f}")
        print(flush=True)
    return seldom


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    failed: list[str] = []
    if args.studies:
        print_coverage(QUANTITIES, PATIENTS, args.studies, args.seed)
        failed = print_coverage(RATES, UNEVEN_PATIENTS, args.studies, args.seed)
        missed = failed + print_coverage(PAIRS, UNEVEN_PATIENTS, args.studies, args.seed)
        of_work_ups = print_coverage(WORK_UPS, UNEVEN_PATIENTS, args.studies, args.seed)
        failed, missed = failed + of_work_ups, missed + of_work_ups
        missed += print_coverage(corrected_rates(), RATED_PATIENTS, args.studies, args.seed)
        print("\n".join(["unequal numbers of items and unequal raters, below 93 %:", *(missed or ["none"])]))
    for too_sure in TOO_SURE if args.samples else ():
        sure = intervals(*simulated(1, TRUTH, too_sure))
        for patients in PATIENTS:
            covered: Counter[str] = Counter()
            for sample in range(args.samples):
                for name, interval in intervals(*simulated(1000 + sample, patients, too_sure)).items():
                    low, high = interval.low, interval.high
                    covered[name] += low is None or high is None or low <= (sure[name].value or 0.0) <= high
            shares = ", ".join(f"{name} {covered[name] / args.samples:.3f}" for name in sure)
            print(f"too sure by {too_sure:.2f}, {patients} patients: {shares}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
