"""Draw the answers of a round with known probabilities, assign them to raters and order them."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import TypeVar

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import StratumKey

T = TypeVar("T", bound=Hashable)

GAP = 10
"""Number of other answers between two answers to the same case, if there are enough."""


@dataclass(frozen=True)
class StratifiedDraw:
    """Result of a draw: positions of the drawn candidates, ascending within a stratum, and the sizes of each stratum."""

    places: tuple[int, ...]
    strata: dict[str, StratumKey]


def allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Allocate draws to strata as evenly as their sizes allow, at least 1 each; a remainder goes to the first ones by name.

    RatingError if there are fewer draws than strata: answers of a stratum without draws would have no weight.

    Examples
    --------
    >>> allocate({"a": 2, "b": 9, "c": 9}, 11)
    {'a': 2, 'b': 5, 'c': 4}
    """
    if total < len(sizes):
        message = (
            f"{total} are to be drawn from {len(sizes)} strata, each of which needs at least one; raise the number in config/rating.yaml"
        )
        raise RatingError(message)
    given = dict.fromkeys(sorted(sizes), 0)
    # in turns: share the rest equally among the strata that are not yet exhausted
    left = min(total, sum(sizes.values()))
    while left:
        room = [name for name in given if given[name] < sizes[name]]
        share = max(1, left // len(room))
        for name in room:
            step = min(share, sizes[name] - given[name], left)
            given[name] += step
            left -= step
    return given


def draw(strata: Sequence[str], total: int, seed: str) -> StratifiedDraw:
    """Draw without replacement within each stratum: if n of N responses are drawn, each has the probability n / N.

    `strata` gives the stratum of each candidate in the order of their keys; equal seeds and candidates give equal draws.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(strata):
        members[name].append(place)
    counts = allocate({name: len(places) for name, places in members.items()}, total)
    # each stratum has its own seed, so that a change in one does not change the draw in another
    chosen = [place for name in sorted(members) for place in sorted(Random(f"{seed}/{name}").sample(members[name], counts[name]))]
    keys = {
        name: StratumKey(frame=len(places), drawn=counts[name], probability=counts[name] / len(places)) for name, places in members.items()
    }
    return StratifiedDraw(tuple(chosen), keys)


def assign_raters(number: int, raters: int, per_response: int) -> list[tuple[int, ...]]:
    """Assign raters to each of `number` responses: all groups of `per_response` raters in turn, so that every pair shares equally many.

    Examples
    --------
    >>> assign_raters(4, 3, 2)
    [(0, 1), (0, 2), (1, 2), (0, 1)]
    """
    groups = list(combinations(range(raters), per_response))
    return [groups[place % len(groups)] for place in range(number)]


def presentation_order(entries: Iterable[T], cases: Mapping[T, str], again: Mapping[T, T], random: Random) -> list[T]:
    """Shuffle the answers of a packet, with at least `GAP` others between two of a case if possible, and second showings after the first."""
    left = sorted(entries, key=str)
    random.shuffle(left)
    to_come = Counter(cases[entry] for entry in left)
    order: list[T] = []
    last: dict[str, int] = {}
    placed: set[T] = set()
    while left:
        ready = [entry for entry in left if entry not in again or again[entry] in placed]
        # `far`: the last answer to the same case is more than GAP positions back
        far = [entry for entry in ready if len(order) - last.get(cases[entry], -GAP - 1) > GAP]
        # a case with so many answers left that they would end up close together takes precedence
        urgent = [entry for entry in far if (to_come[cases[entry]] - 1) * (GAP + 1) + 1 >= len(left)]
        if urgent:
            chosen = max(urgent, key=lambda entry: to_come[cases[entry]])
        else:
            # if no case is far enough away, take the one seen longest ago
            chosen = far[0] if far else min(ready, key=lambda entry: last.get(cases[entry], -1))
        left.remove(chosen)
        placed.add(chosen)
        to_come[cases[chosen]] -= 1
        last[cases[chosen]] = len(order)
        order.append(chosen)
    return order


def opaque_id(secret: str, rater: str, name: str) -> str:
    """Return an id that can neither be guessed nor linked with that of another rater."""
    return hmac.new(bytes.fromhex(secret), f"{rater}\n{name}".encode(), hashlib.sha256).hexdigest()[:16]
