"""Set accuracy and confusion of pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.tables import item, score
from neuralmedbench.records.items import Axis, Family, Gold, Level, Runner
from neuralmedbench.tables.outcomes import PAIR_METRICS, Key, gather_outcomes

ITEMS = [
    replace(
        item("pairs", f"{pair}{side}", pair, Family.QUESTION_ANSWERING, level=Level.NONE, runner=Runner.CHOICE),
        item_id=f"pairs/{pair}-{side}",
        pair_id=pair if pair != "alone" else "",
        options=("left", "right"),
    )
    for pair, side in (("p", "1"), ("p", "2"), ("q", "1"), ("q", "2"), ("alone", "1"))
]
GOLD = [Gold(item_id=one.item_id, answer="left", choice="A") for one in ITEMS]


def shares(*told: tuple[str, str, bool], missing: tuple[str, ...] = ()) -> dict[str, list[float]]:
    """Return the pair metrics of a model with these answers: item, text, right or wrong."""
    rows = []
    for name, words, passed in told:
        one = next(one for one in ITEMS if one.item_id == f"pairs/{name}")
        rows.append(score(one, "m", passed=passed, differential=(words,) if words else (), missing=name in missing))
    outcomes = gather_outcomes("pairs", Axis.CONTROL, ITEMS, GOLD, scores={"m": rows}, sampled={"m": False})
    return {name: [value for value in outcomes.metric(name, Key("m")) if not np.isnan(value)] for name in PAIR_METRICS}


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ((("p-1", "left", True), ("p-2", "right", True)), (1.0, 0.0, 0.0, 0.0)),
        ((("p-1", "left", True), ("p-2", "left", False)), (0.0, 1.0, 0.0, 1.0)),
        ((("p-1", "right", False), ("p-2", "left", False)), (0.0, 0.0, 1.0, 0.0)),
        ((("p-1", "", False), ("p-2", "", False)), (0.0, 0.0, 1.0, 0.0)),
        ((("p-1", "left", True),), (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_pair_is_right_with_both_members_and_confused_with_one_readable_answer_to_both(p, expected):
    told = shares(*p, ("q-1", "left", True), ("q-2", "right", True), ("alone-1", "left", True))
    other = (1.0, 0.0, 0.0, 0.0)
    assert told == {name: [expected[place], other[place]] for place, name in enumerate(PAIR_METRICS)}, (
        "an item without a partner is no pair"
    )


def test_missing_answers_are_neither_right_nor_the_same():
    lost = ("p-1", "left", True), ("p-2", "left", True)
    assert shares(*lost, ("alone-1", "left", True), missing=("p-1", "p-2")) == {name: [0.0, 0.0] for name in PAIR_METRICS}
    assert shares(*lost, missing=("p-1", "p-2")) == {name: [] for name in PAIR_METRICS}, "no answer is there, so nothing is known"
