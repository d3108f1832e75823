"""Confidence, from answers few enough to be counted by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fixtures.confidence import answer, open_item, study_of
from neuralmedbench.records.items import Family
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.confidence import REASONS, Row, confidence_rows

ITEMS = [open_item(number, f"p{number}") for number in range(4)]


def rows_of(rows: list[Score], **changes: Any) -> list[Row]:
    return confidence_rows(study_of(ITEMS, {"m": rows}, **changes))


def measures(rows: list[Row], source: str = "stated", arm: str = "full") -> dict[str, Any]:
    """Give the measures of all answers with a confidence, and the counts of those without, by name."""
    whole = [row for row in rows if (row.slice == "" and row.source == source) or (row.slice, row.value_of_slice) == ("source", source)]
    (named,) = by_measure(row for row in whole if row.arm == arm and not row.get("other_arm")).values()
    return named


def counts(rows: list[Row], source: str = "stated") -> dict[str, int]:
    return {name: row.count for name, row in measures(rows, source).items() if name in (*REASONS, "missing") and row.count}


def values(rows: list[Row], source: str = "stated") -> dict[str, float | None]:
    return {name: row.value for name, row in measures(rows, source).items() if "value" in row}


def slices(rows: list[Row], name: str, source: str = "stated", measure: str = "share_right") -> dict[str, Any]:
    """Give the rows of bins, or of coverages."""
    return {row.value_of_slice: row for row in rows if row.slice == name and (row.source, row.measure) == (source, measure)}


def test_every_answer_has_a_confidence_or_one_reason_why_not() -> None:
    rows = [
        answer(ITEMS[0], 0.9, True),
        answer(ITEMS[0], 0.7, False, repeat=1),
        answer(ITEMS[1], None, False, state="refused"),
        answer(ITEMS[1], 0.8, False, state="truncated", repeat=1),
        answer(ITEMS[2], 0.0, False, abstained=True),
        answer(ITEMS[2], None, False, parse_status=ParseStatus.FAILED, repeat=1),
        answer(ITEMS[3], None, True),
        answer(ITEMS[3], None, None, missing=True, state="failed", repeat=1),
    ]
    made = rows_of(rows)
    named = measures(made)
    assert counts(made) == {"refused": 1, "abstained": 1, "unparsable": 1, "unstated": 1, "missing": 1}
    assert (named["refused"].of, named["missing"].of, named["brier"].n_answers, named["brier"].left_out) == (7, 8, 3, 5)
    assert {(row.n_items, row.n_patients) for row in named.values()} == {(2, 2)}, "all rows count those with a confidence"
    expected = {"mean_confidence": 0.8, "share_right": 1 / 3, "overconfidence": 0.8 - 1 / 3, "brier": (0.01 + 0.49 + 0.64) / 3, "auroc": 1}
    # each answer has a bin of its own; four without a confidence count as wrong ones of confidence 1
    errors = {"ece": (0.1 + 0.7 + 0.8) / 3, "ece_pessimistic": (0.1 + 0.7 + 0.8 + 4) / 7}
    assert values(made) == pytest.approx(expected | errors)
    assert all(row.low <= row.value <= row.high for row in named.values() if "value" in row and row.low is not None)


def test_agreement_is_the_share_of_samples_that_say_what_most_say() -> None:
    said = [["stroke", "stroke", "glioma"], ["glioma", "abscess", "glioma"], ["", "", ""]]
    rows = [
        answer(ITEMS[place], 0.5, name == "stroke", repeat=repeat, differential=(name,) if name else (), abstained=not name)
        for place, names in enumerate(said)
        for repeat, name in enumerate(names)
    ]
    made = rows_of(rows)
    assert measures(made, "agreement")["brier"].n_answers == 2
    assert counts(made, "agreement") == {"abstained": 1, "missing": 1}  # the fourth item was never answered
    assert values(made, "agreement")["mean_confidence"] == pytest.approx(2 / 3)
    assert values(made, "agreement")["share_right"] == 0.5
    sources = {row.get("source") for row in rows_of(rows, sampled=False)}
    assert sources == {"stated", None}, "at temperature 0 agreement says nothing"


def test_a_missing_sample_that_could_turn_the_vote_leaves_the_item_missing() -> None:
    rows = [
        answer(ITEMS[0], 0.5, True, repeat=0),
        answer(ITEMS[0], None, None, repeat=1, missing=True, state="failed", differential=()),
        answer(ITEMS[1], 0.5, True, repeat=0),
        answer(ITEMS[1], 0.5, True, repeat=1),
    ]
    made = rows_of(rows)
    assert (measures(made, "agreement")["brier"].n_answers, counts(made, "agreement")) == (1, {"missing": 3})
    assert values(made, "agreement")["mean_confidence"] == 1.0


def test_free_answers_have_no_agreement() -> None:
    free = open_item(9, "p9", family=Family.QUESTION_ANSWERING)
    rows = [answer(free, 0.5, True, repeat=repeat) for repeat in range(3)]
    assert {row.get("source") for row in confidence_rows(study_of([free], {"m": rows}))} == {"stated", None}


def test_probabilities_of_tokens_are_a_source_of_readable_answers_alone() -> None:
    rows = [answer(one, None, place == 0, abstained=place == 3) for place, one in enumerate(ITEMS)]
    tokens = {one.item_id: -0.5 for one in ITEMS[:2]} | {ITEMS[3].item_id: -0.1}
    made = rows_of(rows, sampled=False, tokens=tokens)
    assert (measures(made, "tokens")["brier"].n_answers, counts(made, "tokens")) == (2, {"abstained": 1, "unstated": 1})
    assert values(made, "tokens")["mean_confidence"] == pytest.approx(math.exp(-0.5))


def test_a_model_that_states_no_confidence_has_a_row_that_says_so() -> None:
    made = rows_of([answer(one, None, True) for one in ITEMS], sampled=False)
    row = measures(made)["overconfidence"]
    assert (row.note, row.value, row.n_answers, row.left_out) == ("none stated", None, 0, 4)
    assert counts(made) == {"unstated": 4}
    assert {row.slice for row in made} == {"", "source"}
    study = study_of(ITEMS, {"m": []}, sampled=False)
    assert measures(confidence_rows(study))["overconfidence"].note == "no answer"


def test_bins_hold_every_answer_once_and_rise_with_the_confidence() -> None:
    rows = [
        answer(one, 0.1 + 0.08 * (3 * place + repeat), repeat > 0, repeat=repeat) for place, one in enumerate(ITEMS) for repeat in range(3)
    ]
    made = rows_of(rows)
    bins, means = slices(made, "bin"), slices(made, "bin", measure="mean_confidence")
    assert list(bins) == list(means) == ["1", "2", "3", "4", "5"]
    assert sum(row.n_answers for row in bins.values()) == 12
    known = [row.value for row in means.values()]
    assert known == sorted(known)
    assert all(row.low <= row.value <= row.high for row in bins.values())


def test_without_pictures_the_shift_counts_the_same_items_alone() -> None:
    full = [answer(one, 0.8, True) for one in ITEMS]
    blind = [answer(one, 0.8, place > 1, arm="no_image") for place, one in enumerate(ITEMS[:3])]
    (shift,) = (row for row in rows_of(full + blind, sampled=False) if row.get("other_arm"))
    assert (shift.arm, shift.other_arm, shift.value_of_slice, shift.n_items) == ("no_image", "full", "stated", 3)
    assert shift.value == pytest.approx(2 / 3)
    assert shift.low <= shift.value <= shift.high


def test_answering_only_when_sure_counts_answers_without_a_confidence_last() -> None:
    rows = [
        answer(ITEMS[0], 0.9, True),
        answer(ITEMS[1], 0.4, False),
        answer(ITEMS[2], None, False, state="refused"),
        answer(ITEMS[3], 0.6, True),
    ]
    curve = slices(rows_of(rows, sampled=False), "coverage")
    assert [curve[coverage].value for coverage in ("0.25", "0.50", "0.75", "1.00")] == pytest.approx([1, 1, 2 / 3, 0.5])
    assert (curve["0.50"].method, curve["0.75"].low) == ("exact one-sided", None)
    assert {(row.n_answers, row.n_patients) for row in curve.values()} == {(4, 4)}, "every row counts all answers"
