"""Measure how often the intervals of confidence hold the truth: made-up models whose true values are known.

Run on purpose (`python perf/confidence_intervals.py`), never a test. Answers of one patient go together (a random effect of 0.8 on the
logit), confidences lie on a grid of 0.05, and the model is too sure by 0 to 0.3. The truth is the value of 100,000 patients.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from neuralmedbench.stats.confidence.draws import Draws
from neuralmedbench.stats.confidence.measures import auroc, brier, calibration_error, width_bins
from neuralmedbench.stats.confidence.risk_coverage import tied_groups
from neuralmedbench.stats.confidence.selective import area_under_risk
from neuralmedbench.stats.confidence.sources import Confidences, Source
from neuralmedbench.stats.intervals import Settings, percentile_interval

ANSWERS, TRUTH = 4, 100_000
TOO_SURE, PATIENTS = (0.0, 0.07, 0.15, 0.3), (8, 30, 120)
SETTINGS = Settings(resamples=1000)


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="made-up runs of each kind")
    return parser.parse_args(argv)


def made_up(seed: int, patients: int, too_sure: float) -> Confidences:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(patients), ANSWERS)
    value = np.clip(np.round(rng.beta(4, 2, codes.size) * 20) / 20, 0.05, 1)
    chance = np.clip(value - too_sure, 0.01, 0.99)
    logit = np.log(chance / (1 - chance)) + rng.normal(0, 0.8, patients)[codes]
    right = (rng.random(codes.size) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    nothing = np.zeros(0)
    return Confidences(
        benchmark="", model="", arm="full", source=Source.STATED, value=value, right=right, items=np.arange(codes.size), patients=codes,
        rest_right=nothing, rest_patients=nothing.astype(np.int64), reasons={}, missing=0,
    )  # fmt: skip


def values(found: Confidences) -> dict[str, float | None]:
    value, right = found.value, found.right
    area = float(area_under_risk(*tied_groups(found, value)[1:]))
    error = calibration_error(value, right, width_bins(value))
    return {
        "overconfidence": float((value - right).mean()),
        "ece": error,
        "brier": brier(value, right),
        "auroc": auroc(value, right),
        "aurc": area,
    }


def intervals(found: Confidences, patients: int) -> dict[str, tuple[float | None, float | None]]:
    draws, known = Draws(found, patients, SETTINGS), values(found)
    groups = draws.groups.astype(np.float64)
    return {
        "overconfidence": percentile_interval(draws.overconfidence, draws.clusters, SETTINGS.confidence),
        "ece": draws.error_interval(known["ece"] or 0.0),
        "brier": draws.around(known["brier"], draws.brier),
        "auroc": draws.around(known["auroc"], draws.auroc, auroc(groups, found.right)),
        "aurc": draws.around(known["aurc"], draws.area, float(area_under_risk(*tied_groups(found, groups)[1:]))),
    }


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    for too_sure in TOO_SURE:
        truth = values(made_up(1, TRUTH, too_sure))
        for patients in PATIENTS:
            held: Counter[str] = Counter()
            told: Counter[str] = Counter()
            for sample in range(args.samples):
                for name, (low, high) in intervals(made_up(1000 + sample, patients, too_sure), patients).items():
                    if low is not None and high is not None:
                        told[name] += 1
                        held[name] += low <= (truth[name] or 0.0) <= high
            shares = ", ".join(f"{name} {held[name] / told[name]:.3f}" for name in truth)
            print(f"true ece {truth['ece']:.3f}, {patients} patients: {shares}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
