"""Forms of readers are converted to texts that the strict parsers of answers accept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.reader import filled, items, requests_of
from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.answering.answers import AnswerForm, FilledForm, answer_text, forms_of, problem_of
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.scores import Evidence, ParseStatus, Prediction, StatedPlace
from neuralmedbench.scoring.parse import parse_answer

NOTHING = FilledForm()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[Item, tuple[AnswerForm, ...]]]]:
    """Return every item with its forms, under the checklist and under the short form."""
    rows = items(tmp_path_factory.mktemp("pictures"))
    by_id = {row.item_id: row for row in rows}
    return {
        kind: {
            row.item_id.removeprefix("b/"): (by_id[row.item_id], forms_of(by_id[row.item_id], row))
            for row in requests_of(rows, kind)
            if (row.arm, row.strategy) == ("full", "direct")
        }
        for kind in ("checklist", "evidence", "short")
    }


def form(value: dict[str, object], **changes: object) -> FilledForm:
    return FilledForm.model_validate_json(json.dumps({**value, **changes}))


def without_evidence(value: dict[str, object]) -> dict[str, object]:
    return {**value, "candidates": [{"name": one["name"]} for one in value["candidates"]]}  # type: ignore[attr-defined]


NAMES = ("ddx", "lesion", "why", "talk", "choice", "free", "fields", "ddx-2")


@pytest.mark.parametrize("kind", ["checklist", "evidence", "short"])
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_to_each_family_is_read_strictly(asked, kind: str, name: str) -> None:
    item, forms = asked[kind][name]
    read: list[Prediction] = []
    for turn, one in enumerate(forms):
        value = (
            filled(item, turn)
            if one.evidence or item.runner in (Runner.CHOICE, Runner.STRUCTURED)
            else without_evidence(filled(item, turn))
        )
        value["texts"] = {section: text for section, text in value["texts"].items() if section in one.sections}
        answer = form(value)
        assert problem_of(one, answer, answered=True) == ""
        read.append(parse_answer(answer_text(one, answer, answered=True), item))
    assert {row.parse_status for row in read} == {ParseStatus.STRICT}
    last = read[-1]
    assert (last.confidence, last.abstained) == (0.7, False)
    if item.runner is Runner.CHOICE:
        assert last.choice == "A"
    elif item.runner is Runner.STRUCTURED:
        assert last.fields == {"modality": "MRI", "plane": "axial", "class": "stroke"}
    elif item.family is Family.QUESTION_ANSWERING:
        assert last.differential == ("A stroke of the left insula",)
    elif item.family is Family.LESION_RECOGNITION:
        assert last.fields == {"lesion": "Acute ischaemic stroke", "location": "insula", "side": "left"}
    else:
        # no part of a named diagnosis is parsed as an explanation
        assert last.differential == ("Acute ischaemic stroke", "Glioma, high grade, left")
        assert last.rationale == "It fits."
    if kind == "checklist" and item.runner is Runner.OPEN and item.family is not Family.QUESTION_ANSWERING:
        assert last.evidence[0] == Evidence("bright / on DWI", "no: history")


@pytest.mark.parametrize("kind", ["checklist", "evidence", "short"])
@pytest.mark.parametrize("name", NAMES)
def test_a_reader_who_cannot_tell_abstains(asked, kind: str, name: str) -> None:
    item, forms = asked[kind][name]
    assert problem_of(forms[-1], NOTHING, answered=False) == ""
    read = parse_answer(answer_text(forms[-1], NOTHING, answered=False), item)
    assert (read.abstained, read.differential) == (True, ())
    # a choice question has no letter for an abstention
    assert read.parse_status is (ParseStatus.FAILED if item.runner is Runner.CHOICE else ParseStatus.STRICT)


def test_a_reader_states_picture_and_box_where_they_are_asked_for_and_nothing_where_they_are_left_empty(asked) -> None:
    item, (one,) = asked["evidence"]["ddx"]
    assert one.sections[3:5] == ("PICTURE", "BOX")
    value = filled(item)
    empty = parse_answer(answer_text(one, form(value), answered=True), item)
    assert (empty.parse_status, empty.place) == (ParseStatus.STRICT, StatedPlace())
    texts = {**value["texts"], "PICTURE": "1", "BOX": "[100, 200, 300, 400]"}
    told = form(value, texts=texts)
    assert problem_of(one, told, answered=True) == ""
    assert parse_answer(answer_text(one, told, answered=True), item).place == StatedPlace(1, None, (100.0, 200.0, 300.0, 400.0))


def test_what_is_left_empty_is_not_stated_and_says_nothing(asked) -> None:
    item, (one,) = asked["checklist"]["ddx"]
    text = answer_text(one, form(filled(item), texts={}, candidates=[{"name": "stroke"}]), answered=True)
    assert text.splitlines()[:4] == ["SEEN: not stated", "LOCATION: not stated", "SIDE: not stated", "FINDINGS: not stated"]
    assert "1. stroke | for: not stated | against: not stated" in text


def test_a_prompt_that_asks_for_another_form_is_not_put_on_a_page(asked, tmp_path: Path) -> None:
    rows = items(tmp_path)
    request = next(row for row in requests_of(rows) if row.item_id == "b/ddx")
    with pytest.raises(RatingError, match="b/ddx: its prompt does not ask for DIFFERENTIAL"):
        forms_of(rows[0], replace(request, answer_schema=""))


SIX = [{"name": f"diagnosis {number}"} for number in range(6)]


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("ddx", {"candidates": SIX}, "6 diagnoses, at most 5"),
        ("lesion", {"candidates": SIX[:2]}, "2 diagnoses, at most 1"),
        ("ddx", {"candidates": []}, "it names nothing"),
        ("ddx", {"texts": {"LESION": "a"}}, "a section that the question does not ask for"),
        ("ddx", {"texts": {"SIDE": "up"}}, "a side that is none of left"),
        ("ddx", {"choice": "A"}, "an option that is not there; the options are none"),
        ("choice", {"choice": "D"}, "an option that is not there; the options are A B C"),
        ("choice", {"choice": "AB"}, "an option that is not there"),
        ("choice", {"texts": {"ANSWER": "B"}}, "a section that the question does not ask for"),
        ("fields", {"fields": {"colour": "red"}}, "a field that the question does not ask for"),
        ("fields", {"fields": {"class": "broken"}}, "a label that the field does not offer"),
        ("free", {"texts": {"ANSWER": " "}}, "it names nothing"),
    ],
)
def test_a_form_that_was_not_offered_is_named_without_its_words(asked, name: str, changes: dict[str, object], problem: str) -> None:
    item, forms = asked["checklist"][name]
    said = problem_of(forms[-1], form(filled(item), **changes), answered=True)
    assert problem in said
    assert "broken" not in said


def test_who_cannot_tell_names_nothing(asked) -> None:
    item, (one,) = asked["checklist"]["ddx"]
    assert "diagnoses" in problem_of(one, form(filled(item)), answered=False)
    assert "a confidence" in problem_of(one, form(filled(item), candidates=[]), answered=False)
