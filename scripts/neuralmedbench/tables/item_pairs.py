"""Items that belong together: one question about two pictures that look alike, with opposite answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.records.items import Item
from neuralmedbench.records.scores import Score

PAIR_RIGHT, PAIR_PART, PAIR_WRONG, PAIR_SAME = PAIR_METRICS = ("pair_right", "pair_part", "pair_wrong", "pair_same")
"""Share of the pairs with every member right, with some of them, with none; and with one and the same readable answer to all members."""


def pair_shares(items: Sequence[Item], rows: Iterable[tuple[int, Score]], samples: Ints) -> dict[str, Floats]:
    """Score pairs.

    Parameters
    ----------
    items : sequence of Item
        All items; those with one `pair_id` are a pair.
    rows : iterable of tuple of int and Score
        The scores of one model under one arm and strategy, with the places of their items.
    samples : ndarray of int, shape (items,)
        Answers expected of each item.

    Returns
    -------
    dict of str to ndarray of float
        By `PAIR_METRICS`, shape (items,): the value of a pair stands at its first item, NaN everywhere else. Samples are taken together in
        their order. A pair with a missing answer is none of the four: right, part and wrong sum to 1 only where no answer and no grade is missing.

    Notes
    -----
    Set accuracy and confusion of Sepehri et al., MediConfusion (2024). Who guesses among two options gets a quarter of the pairs right.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if item.pair_id:
            members[item.pair_id].append(place)
    given: dict[int, list[Score]] = defaultdict(list)
    for place, row in sorted(rows, key=lambda one: one[1].repeat):
        given[place].append(row)
    shares = {name: np.full(len(items), np.nan) for name in PAIR_METRICS}
    for places in members.values():
        expected = int(samples[places].min())
        if len(places) < 2 or not expected:
            continue
        together = list(zip(*(given[place] for place in places), strict=False))[:expected]
        answered = [rows for rows in together if not any(row.missing for row in rows)]
        right = [sum(bool(row.passed) for row in rows) for rows in answered if all(row.passed is not None for row in rows)]
        counts = {
            PAIR_RIGHT: sum(number == len(places) for number in right),
            PAIR_PART: sum(0 < number < len(places) for number in right),
            PAIR_WRONG: sum(number == 0 for number in right),
            PAIR_SAME: sum(_is_one_answer(rows) for rows in answered),
        }
        for name, number in counts.items():
            shares[name][places[0]] = number / expected
    return shares


def _is_one_answer(rows: Sequence[Score]) -> bool:
    answers = {row.differential[:1] if row.state == "ok" else () for row in rows}
    return len(answers) == 1 and answers != {()}
