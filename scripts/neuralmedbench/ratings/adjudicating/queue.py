"""Which answers a further rater has to decide, and on which axes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from neuralmedbench.ratings.adjudicating.settings import AdjudicationSettings
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Rating, RatingPart


class Reason(StrEnum):
    """Why an axis of an answer is in the queue."""

    APART = "values are apart"
    ACROSS = "values stand on both sides of a bound"
    UNJUDGED = "one rater could not judge where another could"


def queue_of(ratings: Iterable[Rating], rules: AdjudicationSettings) -> dict[Key, dict[str, Reason]]:
    """Find the disagreements of a round.

    Parameters
    ----------
    ratings : iterable of Rating
        Of one round; controls, second showings, stale ratings and earlier decisions are passed over.
    rules : AdjudicationSettings
        Of the form.

    Returns
    -------
    dict of Key to dict of str to Reason
        By response the axes to decide, in the order of the rules; sorted by response.
    """
    given: dict[Key, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for row in ratings:
        if row.part is RatingPart.SAMPLE and not (row.stale or row.adjudicated):
            given[response_key(row)][row.axis].append(row.value)
    queue = {}
    for key in sorted(given):
        reasons = {axis: reason for axis in (*rules.apart, *rules.across) if (reason := _reason(axis, given[key].get(axis, ()), rules))}
        if reasons:
            queue[key] = reasons
    return queue


def _reason(axis: str, values: Sequence[float | None], rules: AdjudicationSettings) -> Reason | None:
    known = [value for value in values if value is not None]
    if known and len(known) < len(values):
        return Reason.UNJUDGED
    if axis in rules.apart and known and max(known) - min(known) >= rules.apart[axis]:
        return Reason.APART
    if axis in rules.across and known and min(known) < rules.across[axis] <= max(known):
        return Reason.ACROSS
    return None
