"""What a model recognises among rivals and what it finds alone, by item: the two sides of the title's contrast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.estimates.contrasts import Difference, paired_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Ints
from neuralmedbench.records.arm_changes import ROTATIONS, in_form
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.tables.answers import Samples
from neuralmedbench.tables.outcomes import Key, Outcomes

CHOICE_ARMS = tuple(f"choice-{rotation}" for rotation in ROTATIONS)
"""Arms that ask for a diagnosis as a choice."""

BLIND_ARMS = tuple(f"choice_no_image-{rotation}" for rotation in ROTATIONS)
"""The same without the pictures."""

NONE, MISSING = -1, -2
"""Instead of an option: an answer that names none, and an answer that is missing."""


class Recognised(NamedTuple):
    """Shares of the repeats by item, shape (items,); NaN where no repeat has an answer in every rotation.

    `in_all` names the right option in all rotations. `value` is less by what a guess gets right: one that names the same option wherever it
    stands is right in one of k cases, and names the same wrong option in the others; so a (k - 1)th of these is taken off.
    """

    in_all: Floats
    value: Floats


class Found(NamedTuple):
    """Passes of open answers by item, shape (items,): `value` over those that were read and graded, NaN where none was.

    `left_out` is the share of the others; `least` and `most` are the passes if these had failed, and passed.
    """

    value: Floats
    left_out: Floats
    least: Floats
    most: Floats


def asks_choice(outcomes: Outcomes, model: str, arms: Sequence[str] = CHOICE_ARMS) -> bool:
    """Return True if a model was asked under all of these arms."""
    return all(Key(model, arm) in outcomes.counts for arm in arms)


def recognised(outcomes: Outcomes, model: str, arms: Sequence[str] = CHOICE_ARMS) -> Recognised:
    """Return what a model recognises, strategy direct."""
    shown = [in_form(item, arms[0]) for item in outcomes.items]
    options = np.array([len(item.options) for item in shown], dtype=np.int64)
    places = [{text: place for place, text in enumerate(item.options)} for item in shown]
    samples = [outcomes.answers.of(Key(model, arm)) for arm in arms]
    repeats = max((int(one["repeat"].max()) + 1 for one in samples if len(one.scores)), default=0)
    chosen = np.full((len(shown), repeats, len(arms)), MISSING, dtype=np.int64)
    right = np.zeros(chosen.shape, dtype=bool)
    for rotation, one in enumerate(samples):
        rows = one["place"], one["repeat"]
        right[(*rows, rotation)] = one["passed"]
        chosen[(*rows, rotation)] = _options_named(one, places)
    return recognised_of(chosen, right, options)


def _options_named(samples: Samples, places: Sequence[dict[str, int]]) -> Ints:
    """Return the place of the option that each answer names, among those of its item."""
    named = []
    for item, graded, score in zip(samples["place"].tolist(), samples["graded"].tolist(), samples.scores, strict=True):
        if score is None or not graded:
            named.append(MISSING)
        else:
            named.append(places[item].get(score.differential[0], NONE) if score.differential else NONE)
    return np.array(named, dtype=np.int64)


def recognised_of(chosen: Ints, right: npt.NDArray[np.bool_], options: Ints) -> Recognised:
    """Judge the answers to a choice that was asked in several rotations.

    Parameters
    ----------
    chosen : ndarray of int, shape (items, repeats, rotations)
        The option that was named, numbered in one order for all rotations; `NONE` or `MISSING` where none was.
    right : ndarray of bool, shape (items, repeats, rotations)
        True where it is the reference.
    options : ndarray of int, shape (items,)
        Number of options.

    Examples
    --------
    >>> chosen = np.array([[[2, 2, 2, 2]], [[1, 1, 1, 1]], [[2, 1, 0, 2]]])
    >>> recognised_of(chosen, chosen == 2, np.array([5, 5, 5])).value.tolist()
    [1.0, -0.25, 0.0]
    """
    known = (chosen != MISSING).all(axis=2)
    in_all = right.all(axis=2)
    same = (chosen == chosen[:, :, :1]).all(axis=2) & (chosen[:, :, :1] >= 0).all(axis=2)
    guess = (same & ~in_all) / np.maximum(options - 1, 1)[:, None]
    number = known.sum(axis=1)
    shares = [np.where(number > 0, (values * known).sum(axis=1) / np.maximum(number, 1), np.nan) for values in (in_all, in_all - guess)]
    return Recognised(*shares)


def found(outcomes: Outcomes, model: str, arm: str = Arm.FULL, strategy: str = Strategy.DIRECT) -> Found:
    """Return what a model finds of the items that are also asked as a choice."""
    counts = outcomes.counts[Key(model, arm, strategy)]
    unread = counts.missing + counts.unread
    asked = np.array([bool(item.rivals) for item in outcomes.items], dtype=bool) & (counts.samples > 0)
    read = counts.samples - unread

    def share(amount: Ints, of: Ints) -> Floats:
        return np.where(asked & (of > 0), amount / np.maximum(of, 1), np.nan)

    return Found(
        value=share(counts.passes, read),
        left_out=share(unread, counts.samples),
        least=share(counts.passes, counts.samples),
        most=share(counts.passes + unread, counts.samples),
    )


def title_sides(outcomes: Outcomes, model: str) -> tuple[Floats, Floats]:
    """Return the two sides of the title's contrast by item: recognised, and found."""
    return recognised(outcomes, model).value, found(outcomes, model).value


def least_of(outcomes: Outcomes) -> float:
    """Return the least value of what is recognised: of the item with the fewest options, where a guess is taken off and nothing is right."""
    return -1 / (min(len(item.rivals) for item in outcomes.items if item.rivals) - 1)


def scaled_difference(first: Floats, second: Floats, by: ByPatient, least: float) -> Difference:
    """Mean of `first` minus mean of `second` as `paired_difference`, of values between `least` and 1.

    Parameters
    ----------
    first, second : ndarray of float, shape (items,)
        Item values; NaN where a side has none.
    by : ByPatient
        Patients of the items.
    least : float
        At most 0. The values are moved to between 0 and 1, where few events are known to be few, and the difference back.
    """
    width = 1 - least
    moved = ByPatient(by.patients, replace(by.settings, margin=by.settings.margin / width), by.codes)
    difference = paired_difference((first - least) / width, (second - least) / width, moved)
    if difference.value is None or difference.low is None or difference.high is None:
        return difference
    low, high = difference.low * width, difference.high * width
    return difference._replace(value=difference.value * width, low=low, high=high, error=difference.error * width)
