"""Made-up studies whose true values are known: how often does an interval hold them? No number here is of a model or a patient.

Items of one patient go together (a random effect of 1 on the logit), items differ (1.5), an item has five samples, a patient one to three items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Settings, rate_interval
from neuralmedbench.estimates.pairs import paired_difference
from neuralmedbench.tables.axes import above_prior, breadth_depth_gap
from neuralmedbench.tables.contamination import Sides, contrast_of_sides
from neuralmedbench.tables.decomposition import decompose

SAMPLES, TRUTH = 5, 50_000
Bounds = tuple[float | None, float | None]


class Quantity(NamedTuple):
    """What is measured: draws a study of so many patients, tells its value, and its interval."""

    draw: Callable[[np.random.Generator, int], Any]
    value: Callable[[Any], float]
    interval: Callable[[Any, Settings], Bounds]


class Answers(NamedTuple):
    """Share of the samples of each item that pass, for each model or arm, and the patient of each item."""

    shares: tuple[np.ndarray, ...]
    patients: np.ndarray


def answers(rng: np.random.Generator, patients: int, shifts: tuple[float, ...]) -> Answers:
    """Draw the answers of models, or under arms, to the same items; a higher shift is easier."""
    codes = np.repeat(np.arange(patients), rng.integers(1, 4, patients))
    base = rng.normal(0, 1, patients)[codes] + rng.normal(0, 1.5, codes.size)
    return Answers(
        tuple(rng.binomial(SAMPLES, _chance(base + shift + rng.normal(0, 0.8, codes.size))) / SAMPLES for shift in shifts), codes
    )


def _chance(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))


def _mean(study: Answers) -> float:
    return float(study.shares[0].mean())


def _rate(shift: float, change: Callable[[np.ndarray], np.ndarray]) -> Quantity:
    def interval(study: Answers, settings: Settings) -> Bounds:
        return rate_interval(study.shares[0], study.patients, settings)[1:3]

    def draw(rng: np.random.Generator, patients: int) -> Answers:
        study = answers(rng, patients, (shift,))
        return Answers((change(study.shares[0]),), study.patients)

    return Quantity(draw, _mean, interval)


def _difference(first: float, second: float) -> Quantity:
    def interval(study: Answers, settings: Settings) -> Bounds:
        return paired_difference(*study.shares, study.patients, settings)[1:3]

    return Quantity(
        lambda rng, patients: answers(rng, patients, (first, second)),
        lambda study: float((study.shares[0] - study.shares[1]).mean()),
        interval,
    )


def _repaired(full: float, told: float) -> Quantity:
    def interval(study: Answers, settings: Settings) -> Bounds:
        found = decompose(*study.shares, study.patients, settings).perception
        return found.low, found.high

    def value(study: Answers) -> float:
        return 0.0 if full == told else float((study.shares[1] - study.shares[0]).mean() / (1 - study.shares[0]).mean())

    return Quantity(lambda rng, patients: answers(rng, patients, (full, told)), value, interval)


def _gap(breadth: float, depth: float) -> Quantity:
    def draw(rng: np.random.Generator, patients: int) -> tuple[Any, ...]:
        sides = []
        for name, shift in (("b", breadth), ("d", depth)):
            found = answers(rng, patients, (shift, shift - 1.5))
            prior = np.where(rng.random(found.patients.size) < found.shares[1], 0.6, 0.0)  # common answers are easier ones
            sides.append((found.shares[0], prior, [f"{name}{code}" for code in found.patients]))
        return tuple(sides)

    def value(study: tuple[Any, ...]) -> float:
        broad, deep = (above_prior(own[0].mean(), own[1].mean()) for own in study)
        return float(broad - deep)

    return Quantity(draw, value, lambda study, settings: breadth_depth_gap(*study, settings)[1:3])


def _cutoff(before: float, after: float, *, beyond: bool) -> Quantity:
    """So many patients on each side; the newer items are harder for the model and, by half of that, for another one."""

    def draw(rng: np.random.Generator, patients: int) -> tuple[Answers, Answers]:
        half = (before + after) / 2
        return answers(rng, patients, (before, before - 0.5)), answers(rng, patients, (after, half - 0.5))

    def value(study: tuple[Answers, Answers]) -> float:
        sides = [own.shares[0] - beyond * own.shares[1] for own in study]
        return float(sides[0].mean() - sides[1].mean())

    def interval(study: tuple[Answers, Answers], settings: Settings) -> Bounds:
        old, new = study
        late = np.repeat([False, True], [old.patients.size, new.patients.size])
        patients = np.concatenate([old.patients, new.patients + old.patients.max() + 1])
        own, other = (np.concatenate(pair) for pair in zip(old.shares, new.shares, strict=True))
        found = contrast_of_sides(own, Sides(~late, late), patients, beside=[other], settings=settings)
        return (found["beyond_low"], found["beyond_high"]) if beyond else (found["low"], found["high"])

    return Quantity(draw, value, interval)


def _one_sample(shares: np.ndarray) -> np.ndarray:
    """Keep one sample of each item: passed with the share of those that pass."""
    return (np.random.default_rng(int(shares.size)).random(shares.size) < shares).astype(np.float64)


QUANTITIES: dict[tuple[str, str], Quantity] = {
    **{
        ("pass@1, five samples", name): _rate(shift, lambda shares: shares) for name, shift in (("hard", -3), ("middle", -0.3), ("easy", 3))
    },
    **{("pass@1, one sample", name): _rate(shift, _one_sample) for name, shift in (("hard", -3), ("middle", -0.3), ("easy", 3))},
    **{
        ("pass@5", name): _rate(shift, lambda shares: (shares > 0).astype(np.float64))
        for name, shift in (("hard", -5), ("middle", -1.5), ("easy", 3))
    },
    ("difference of two models", "none"): _difference(-0.3, -0.3),
    ("difference of two models", "small"): _difference(0, -0.8),
    ("difference of two models", "large"): _difference(1.5, -1.5),
    ("difference of two models", "few items differ"): _difference(-4.5, -5),
    ("perception share", "none repaired"): _repaired(-0.3, -0.3),
    ("perception share", "few errors repaired"): _repaired(-0.3, 0.1),
    ("perception share", "some"): _repaired(-0.3, 1),
    ("perception share", "nearly all"): _repaired(-0.3, 6),
    ("gap of breadth and depth", "none"): _gap(0, 0),
    ("gap of breadth and depth", "large"): _gap(2, -1),
    ("before and after a cut-off", "none"): _cutoff(-0.3, -0.3, beyond=False),
    ("before and after a cut-off", "large"): _cutoff(2, -0.5, beyond=False),
    ("the same beyond other models", "none"): _cutoff(-0.3, -0.3, beyond=True),
    ("the same beyond other models", "large"): _cutoff(2, -0.5, beyond=True),
}
"""By what is measured and how."""


@cache
def truth(kind: tuple[str, str]) -> float:
    """Value of a study of 50,000 patients."""
    quantity = QUANTITIES[kind]
    return quantity.value(quantity.draw(np.random.default_rng(0), TRUTH))


def intervals(kind: tuple[str, str], patients: int, studies: int, settings: Settings) -> Iterator[tuple[float, float]]:
    """Give the intervals of some studies; those without one are left out."""
    quantity = QUANTITIES[kind]
    for seed in range(1, studies + 1):
        low, high = quantity.interval(quantity.draw(np.random.default_rng(seed), patients), settings)
        if low is not None and high is not None:
            yield low, high


def coverage(kind: tuple[str, str], patients: int, studies: int, settings: Settings) -> tuple[float, float, int]:
    """Give the share of the intervals that hold the truth, their mean width, and their number."""
    found = np.array(list(intervals(kind, patients, studies, settings)))
    held = (found[:, 0] - 1e-9 <= truth(kind)) & (truth(kind) <= found[:, 1] + 1e-9)
    return float(held.mean()), float((found[:, 1] - found[:, 0]).mean()), len(found)
