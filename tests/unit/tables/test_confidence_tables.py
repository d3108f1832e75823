"""Tables of confidence, from answers few enough to be counted by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fixtures.confidence import answer, open_item, study_of
from neuralmedbench.records.items import Family
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.confidence.reliability import confidence_sentence, confidence_tables

ITEMS = [open_item(number, f"p{number}") for number in range(4)]


def tables(rows: list[Score], **changes: Any) -> dict[str, list[dict[str, Any]]]:
    study = study_of(ITEMS, {"m": rows}, **changes)
    return dict(zip(("confidence", "reliability", "risk_coverage"), confidence_tables(study), strict=True))


def only(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return row


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
    row = only(tables(rows)["confidence"], source="stated")
    assert (row["answers"], row["with_confidence"], row["without_confidence"], row["missing"]) == (7, 3, 4, 1)
    reasons = {name: row[name] for name in ("refused", "truncated", "abstained", "unparsable", "unstated")}
    assert reasons == {"refused": 1, "truncated": 0, "abstained": 1, "unparsable": 1, "unstated": 1}
    assert row["mean_confidence"] == pytest.approx(0.8)
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["overconfidence"] == pytest.approx(0.8 - 1 / 3)
    assert row["brier"] == pytest.approx((0.01 + 0.49 + 0.64) / 3)


def test_who_abstains_with_no_confidence_does_not_look_calibrated() -> None:
    honest = [answer(one, 0.9, place < 2) for place, one in enumerate(ITEMS)]
    silent = [answer(one, 0.9, True) if place < 2 else answer(one, 0.0, False, abstained=True) for place, one in enumerate(ITEMS)]
    first, second = (only(tables(rows, sampled=False)["confidence"], source="stated") for rows in (honest, silent))
    assert (first["with_confidence"], second["with_confidence"]) == (4, 2)
    assert second["ece_pessimistic"] > first["ece_pessimistic"]


def test_agreement_is_the_share_of_samples_that_say_what_most_say() -> None:
    said = [["stroke", "stroke", "glioma"], ["glioma", "abscess", "glioma"], ["", "", ""]]
    rows = [
        answer(ITEMS[place], 0.5, name == "stroke", repeat=repeat, differential=(name,) if name else (), abstained=not name)
        for place, names in enumerate(said)
        for repeat, name in enumerate(names)
    ]
    found = tables(rows)
    row = only(found["confidence"], source="agreement")
    assert (row["with_confidence"], row["abstained"], row["missing"]) == (2, 1, 1)  # the fourth item was never answered
    assert row["mean_confidence"] == pytest.approx(2 / 3)
    assert row["accuracy"] == 0.5
    assert [row["source"] for row in tables(rows, sampled=False)["confidence"]] == ["stated"], "at temperature 0 agreement says nothing"


def test_a_missing_sample_that_could_turn_the_vote_leaves_the_item_missing() -> None:
    rows = [
        answer(ITEMS[0], 0.5, True, repeat=0),
        answer(ITEMS[0], None, None, repeat=1, missing=True, state="failed", differential=()),
        answer(ITEMS[1], 0.5, True, repeat=0),
        answer(ITEMS[1], 0.5, True, repeat=1),
    ]
    row = only(tables(rows)["confidence"], source="agreement")
    assert (row["with_confidence"], row["missing"], row["mean_confidence"]) == (1, 3, 1.0)


def test_free_answers_have_no_agreement() -> None:
    free = open_item(9, "p9", family=Family.QUESTION_ANSWERING)
    rows = [answer(free, 0.5, True, repeat=repeat) for repeat in range(3)]
    found = confidence_tables(study_of([free], {"m": rows}))[0]
    assert [row["source"] for row in found] == ["stated"]


def test_probabilities_of_tokens_are_a_source_of_readable_answers_alone() -> None:
    rows = [answer(one, None, place == 0, abstained=place == 3) for place, one in enumerate(ITEMS)]
    tokens = {one.item_id: -0.5 for one in ITEMS[:2]} | {ITEMS[3].item_id: -0.1}
    row = only(tables(rows, sampled=False, tokens=tokens)["confidence"], source="tokens")
    assert (row["with_confidence"], row["abstained"], row["unstated"]) == (2, 1, 1)
    assert row["mean_confidence"] == pytest.approx(math.exp(-0.5))


def test_a_model_that_states_no_confidence_has_a_row_that_says_so() -> None:
    found = tables([answer(one, None, True) for one in ITEMS], sampled=False)
    row = only(found["confidence"], source="stated")
    assert (row["note"], row.get("ece"), row["unstated"]) == ("none stated", None, 4)
    assert (found["reliability"], found["risk_coverage"]) == ([], [])
    study = study_of(ITEMS, {"m": []}, sampled=False)
    assert confidence_tables(study)[0][0]["note"] == "no answer"
    assert confidence_sentence(study, found["confidence"]) == "No model of this run states how sure it is."


def test_bins_hold_every_answer_once_and_rise_with_the_confidence() -> None:
    rows = [
        answer(one, 0.1 + 0.08 * (3 * place + repeat), repeat > 0, repeat=repeat) for place, one in enumerate(ITEMS) for repeat in range(3)
    ]
    bins = [row for row in tables(rows)["reliability"] if row["source"] == "stated"]
    assert [row["bin"] for row in bins] == [1, 2, 3, 4, 5]
    assert sum(row["n"] for row in bins) == 12
    means = [row["mean_confidence"] for row in bins]
    assert means == sorted(means)
    assert all(row["low"] <= row["share_right"] <= row["high"] for row in bins)


def test_without_pictures_the_shift_counts_the_same_items_alone() -> None:
    full = [answer(one, 0.8, True) for one in ITEMS]
    blind = [answer(one, 0.8, place > 1, arm="no_image") for place, one in enumerate(ITEMS[:3])]
    found = tables(full + blind, sampled=False)["confidence"]
    assert only(found, arm="full")["shift"] is None
    row = only(found, arm="no_image")
    assert row["shift"] == pytest.approx(2 / 3)
    assert row["shift_low"] <= row["shift"] <= row["shift_high"]


def test_answering_only_when_sure_counts_answers_without_a_confidence_last() -> None:
    rows = [
        answer(ITEMS[0], 0.9, True),
        answer(ITEMS[1], 0.4, False),
        answer(ITEMS[2], None, False, state="refused"),
        answer(ITEMS[3], 0.6, True),
    ]
    found = tables(rows, sampled=False)["risk_coverage"]
    curve = {row["coverage"]: row for row in found}
    assert [curve[coverage]["value"] for coverage in (0.25, 0.5, 0.75, 1.0)] == pytest.approx([1, 1, 2 / 3, 0.5])
    assert curve[0.5]["interval"] == "exact one-sided"
    assert curve[0.75]["interval"] is None


def test_the_line_names_the_model_whose_interval_says_too_sure() -> None:
    items = [open_item(number, f"p{number:02d}") for number in range(12)]
    for right in (3, 0):  # also with no right answer, where resamples never vary
        study = study_of(items, {"m": [answer(one, 0.9, place < right) for place, one in enumerate(items)]}, sampled=False)
        line = confidence_sentence(study, confidence_tables(study)[0])
        told = f"M is 90 % sure and {25 if right else 0} % right."
        said = "1 of 1 models that state how sure they are is too sure of itself beyond its interval"
        assert line == f"{said} (not corrected for the number of models): {told}"
    calm = study_of(ITEMS, {"m": [answer(one, 0.5, place % 2 == 0) for place, one in enumerate(ITEMS)]}, sampled=False)
    assert (
        confidence_sentence(calm, confidence_tables(calm)[0])
        == "None of 1 models that state how sure they are is too sure of itself beyond its interval."
    )
