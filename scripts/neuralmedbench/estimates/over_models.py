"""Statistics over models of single items: how far one separates strong models from weak ones, and whether guessing explains who solves it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints

FEWEST_MODELS = 8
"""With fewer models the discrimination of an item is not estimated: of eight, its interval still is about one wide. (Our rule.)"""


class Discrimination(NamedTuple):
    """Correlation of an item with the rest of its benchmark over models: below 0 where weak models solve it and strong ones do not."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_reversed(self) -> bool:
        """True if the interval lies below 0, without a correction for the number of items (our rule)."""
        return self.high is not None and self.high < 0


def item_discriminations(shares: Floats, patients: Ints, confidence: float) -> list[Discrimination]:
    """Correlate each item with the items of the other patients, over models.

    Parameters
    ----------
    shares : ndarray of float, shape (models, items)
        Share of right answers, NaN where a model has none.
    patients : ndarray of int, shape (items,)
        Patient of each item, from 0. Items of the same patient are left out of the rest, as they share more than what is to be measured.
    confidence : float
        Level of the intervals.

    Returns
    -------
    list of Discrimination
        Nothing where fewer than `FEWEST_MODELS` answered the item, or they do not differ. The interval is Fisher's, which takes models as
        drawn at random.
    """
    from scipy import special

    known, found = ~np.isnan(shares), list[Discrimination]()
    # sums over the items of each patient, shape (models, patients)
    own_sums, own_numbers = (_sums(values, patients) for values in (np.where(known, shares, 0.0), known.astype(np.float64)))
    quantile = float(special.ndtri(0.5 + confidence / 2))
    for item in range(shares.shape[1]):
        number = own_numbers.sum(axis=1) - own_numbers[:, patients[item]]
        used = known[:, item] & (number > 0)
        rest = (own_sums.sum(axis=1) - own_sums[:, patients[item]])[used] / number[used]
        own = shares[used, item]
        models = len(own)
        if models < FEWEST_MODELS or np.ptp(own) == 0 or np.ptp(rest) < 1e-12:
            found.append(Discrimination())
            continue
        value = float(np.clip(np.corrcoef(own, rest)[0, 1], -1 + 1e-12, 1 - 1e-12))
        reach = quantile / np.sqrt(models - 3)
        low, high = (float(np.tanh(np.arctanh(value) + side * reach)) for side in (-1, 1))
        found.append(Discrimination(value, low, high))
    return found


def _sums(values: Floats, patients: Ints) -> Floats:
    return np.stack([np.bincount(patients, weights=row) for row in values])


def is_shared(number: int, models: int) -> bool:
    """Return True if a wrong answer that so many models give is shared: by two thirds of at least `FEWEST_MODELS` (our rule)."""
    return models >= FEWEST_MODELS and 3 * number >= 2 * models


def guessing_p(solving: int, models: int, chance: float, samples: int = 1) -> float:
    """Return the chance that at least so many models solve an item if all of them guess independently.

    Parameters
    ----------
    solving, models : int
        Models that pass the item in more than half of their answers, and all that were asked.
    chance : float
        Chance of one guess.
    samples : int
        Answers of a model. They may be one guess repeated or a new one each time: the larger chance to be right in most of them counts.

    Examples
    --------
    >>> round(guessing_p(3, 3, 0.25), 4)
    0.0156
    """
    from scipy import stats

    most = float(stats.binom.sf(samples // 2, samples, chance))
    return float(stats.binom.sf(solving - 1, models, max(chance, most)))
