"""Contrasts corrected together: the largest statistic under joint flips of clusters, step by step.

A pattern of signs flips each cluster in all contrasts at once, so that contrasts of the same answers
stay as correlated as they are. The statistic of a contrast is its sum over the clusters, divided by
the root of its sum of squares, which no flip changes.

References
----------
Westfall and Young, Resampling-Based Multiple Testing (Wiley 1993): the step-down maximum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuralmedbench.estimates.contrasts import EXACT_FLIPS_UP_TO, NOTHING, signs
from neuralmedbench.estimates.intervals import Floats, IntervalSettings

FEWEST_DIFFERING = 6
"""A contrast with fewer clusters that differ is not tested: even alone it cannot reach 5 %."""


def corrected_together(groups: Sequence[Floats], settings: IntervalSettings, primary: float | None = None) -> list[Floats]:
    """Correct the p values of contrasts for their number.

    Parameters
    ----------
    groups : sequence of ndarray of float, shape (clusters, contrasts)
        What each cluster adds to each contrast (`Parts.values`), 0 where it has no part. A cluster has
        one sign in all contrasts of its group; the signs of two groups are independent.
    settings : IntervalSettings
        Patterns and their seed, and the error of all contrasts together (1 - `confidence`).
    primary : float, optional
        The p value of a contrast that was stated before and has the whole error. The others are
        tested only where it is significant.

    Returns
    -------
    list of ndarray of float, shape (contrasts,)
        Corrected p values; NaN of a contrast that is not tested.
    """
    corrected = [np.full(parts.shape[1], np.nan) for parts in groups]
    if primary is not None and primary >= 1 - settings.confidence:
        return corrected
    flipped = [_Flipped(parts, settings) for parts in groups]
    places = [(group, column) for group, own in enumerate(flipped) for column in own.order]
    places.sort(key=lambda place: -flipped[place[0]].observed[place[1]])
    done, running = [0] * len(groups), 0.0
    for group, column in places:
        least = flipped[group].observed[column]
        # groups are independent: the largest of all reaches a value unless that of no group does
        none = np.prod([1 - own.share_reaching(least, number) for own, number in zip(flipped, done, strict=True)])
        running = max(running, 1 - float(none))
        corrected[group][column] = running
        done[group] += 1
    return corrected


class _Flipped:
    """The statistics of one group: as observed, and by pattern the largest from a place on."""

    def __init__(self, parts: Floats, settings: IntervalSettings) -> None:
        scale = np.sqrt((parts**2).sum(axis=0))
        self.observed = np.abs(parts.sum(axis=0)) / np.maximum(scale, NOTHING)
        tested = np.flatnonzero((np.abs(parts) > NOTHING).sum(axis=0) >= FEWEST_DIFFERING)
        self.order = tested[np.argsort(-self.observed[tested], kind="stable")].tolist()
        patterns = signs(len(parts), settings.resamples, settings.seed)
        flipped = np.abs(patterns @ parts[:, self.order[::-1]]) / scale[self.order[::-1]]
        self._largest = np.maximum.accumulate(flipped, axis=1)[:, ::-1]
        self._exact = len(parts) <= EXACT_FLIPS_UP_TO

    def share_reaching(self, least: float, first: int) -> float:
        """Return the share of patterns in which a contrast from the place `first` on reaches a value."""
        if first == len(self.order):
            return 0.0
        hits = int((self._largest[:, first] >= least - NOTHING).sum())
        patterns = len(self._largest)
        return hits / patterns if self._exact else (hits + 1) / (patterns + 1)
