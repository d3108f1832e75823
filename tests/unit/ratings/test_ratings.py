"""Import of clinicians' ratings: an invalid file is refused, and free text is not imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import import_ratings
from conftest import ROOT
from fixtures.scoring import RESPONSE, answered
from neuralmedbench.errors import RatingError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.exports import COLUMNS
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Rating, response_key, text_digest

FORM = read_form(ROOT / "config" / "rating.yaml")
PACKET = "a" * 64
TEXT = "DIFFERENTIAL: ..."
NOW = {response_key(RESPONSE): text_digest(TEXT)}


def key() -> dict[str, Any]:
    place = {name: getattr(RESPONSE, name) for name in ("item_id", "arm", "strategy", "model", "revision", "repeat")}
    item = {**place, "text_sha256": text_digest(TEXT)}
    items = {
        "k3f9": {**item, "stratum": "fusion", "probability": 0.25},
        "again": {**item, "part": "again", "again_of": "k3f9", "probability": 0.25},
        "right": {**item, "model": "", "revision": "", "text_sha256": text_digest("a control"), "part": "control_right"},
    }
    return {
        "schema": "neuralmedbench.rating_key/2",
        "round_id": "r1",
        "rubric": FORM.rubric,
        "seed": 1,
        "secret": "00",
        "first_judgement": ["dx_correct"],
        "strata": {"fusion": {"frame": 4, "drawn": 1, "probability": 0.25}},
        "packets": [{"packet_id": "p07", "packet_sha256": PACKET, "rater": "r03", "items": items}],
    }


def export(**changes: Any) -> dict[str, Any]:
    item = {
        "item_id": "k3f9",
        "position": 1,
        "status": "rated",
        "scores": {"dx_correct": 3, "finding_fidelity": 2},
        "errors": [{"code": "missed_lesion", "significant": True}],
        "seconds_active": 132.0,
        "revisions": 1,
        "comment": "Mrs Example from Berlin",
    }
    return {
        "schema": "neuralmedbench.rating/1",
        "packet_id": "p07",
        "packet_sha256": PACKET,
        "rubric": FORM.rubric,
        "rater": {"id": "r03", "role": "neuroradiologist", "years": 11},
        "started": "2026-01-01T10:00:00Z",
        "exported": "2026-01-01T12:00:00Z",
        "complete": True,
        "items": [item],
        **changes,
    }


@pytest.fixture
def round_of(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a round with the given exports."""

    def write(*exports: dict[str, Any], packet: dict[str, Any] | None = None) -> Path:
        folder = tmp_path / "r1"
        folder.mkdir(exist_ok=True)
        (folder / "key.json").write_text(json.dumps(packet or key()))
        for number, one in enumerate(exports):
            (folder / f"rating_{number}.json").write_text(json.dumps(one))
        return folder

    return write


def changed(**changes: Any) -> dict[str, Any]:
    whole = export()
    return {**whole, "items": [{**whole["items"][0], **changes}]}


def test_a_rating_comes_back_under_the_response_that_was_rated(round_of):
    rows = import_round(round_of(export()), FORM, NOW)
    assert {row.axis: row.value for row in rows} == {"dx_correct": 3.0, "finding_fidelity": 2.0, "error.missed_lesion": 2.0}
    assert {(row.round_id, row.rater_id, row.model, row.seconds) for row in rows} == {("r1", "r03", "fusion", 132.0)}
    assert {response_key(row) for row in rows} == {response_key(RESPONSE)}
    assert not any(row.stale or row.simulated for row in rows)


def test_a_comment_never_comes_through(round_of):
    assert "Berlin" not in str(import_round(round_of(export()), FORM, NOW))


def test_a_rating_of_a_text_that_has_changed_since_is_stale(round_of):
    other = {response_key(RESPONSE): text_digest("another answer")}
    assert all(row.stale for row in import_round(round_of(export()), FORM, other))
    assert all(row.stale for row in import_round(round_of(export()), FORM, {}))


def test_a_rating_of_the_revision_before_is_stale_although_its_answer_is_still_there(round_of, tmp_path):
    rated = answered(TEXT)
    newer = replace(rated, revision="2", text="DIFFERENTIAL: another one")
    arguments = ["--rounds", str(round_of(export())), "--form", str(ROOT / "config" / "rating.yaml"), "--out", str(tmp_path / "o.parquet")]
    for rows, stale in (([rated], False), ([newer, rated], True)):
        write_records(tmp_path / "m.parquet", Response, rows, key=lambda row: row.revision != rows[0].revision)
        assert import_ratings.main([*arguments, "--responses", str(tmp_path / "m.parquet")]) == 0
        assert {row.stale for row in read_records(tmp_path / "o.parquet", Rating)} == {stale}


def test_a_simulated_rater_is_marked(round_of):
    rows = import_round(round_of(export(rater={"id": "r03", "simulated": True})), FORM, NOW)
    assert all(row.simulated for row in rows)


def test_a_rater_who_cannot_judge_leaves_empty_values(round_of):
    rows = import_round(round_of(changed(status="cannot_judge", scores={}, errors=[])), FORM, NOW)
    assert {row.axis for row in rows} == set(FORM.axes)
    assert {row.value for row in rows} == {None}
    assert import_round(round_of(changed(status="not_rated", scores={}, errors=[])), FORM, NOW) == []


def test_an_axis_that_cannot_be_judged_is_empty_and_the_others_keep_their_values(round_of):
    rows = import_round(round_of(changed(scores={"dx_correct": 3}, cannot_judge=["reasoning"], errors=[])), FORM, NOW)
    assert {row.axis: row.value for row in rows} == {"dx_correct": 3.0, "reasoning": None}


def test_a_value_that_was_given_after_the_reference_was_seen_is_known_as_informed(round_of):
    shown = import_round(round_of(changed(reference_shown=True, errors=[])), FORM, NOW)
    assert {row.axis: row.informed for row in shown} == {"dx_correct": False, "finding_fidelity": True}
    seen = import_round(round_of(changed(reference_seen=True, errors=[])), FORM, NOW)
    assert {row.informed for row in seen} == {True}


def test_second_showings_and_controls_are_known_by_the_key_and_a_control_is_never_stale(round_of):
    one = export()["items"][0]
    whole = export(items=[one, {**one, "item_id": "again"}, {**one, "item_id": "right"}])
    rows = import_round(round_of(whole), FORM, {})
    told = {(str(row.part), row.model, row.probability, row.stale) for row in rows}
    assert told == {("sample", "fusion", 0.25, True), ("again", "fusion", 0.25, True), ("control_right", "", None, False)}


def test_a_complete_export_supersedes_the_progress_files_of_its_rater(round_of):
    early = {**changed(scores={"dx_correct": 0}, errors=[]), "complete": False, "exported": "2026-02-01T00:00:00Z"}
    rows = import_round(round_of(early, export()), FORM, NOW)
    assert {row.value for row in rows if row.axis == "dx_correct"} == {3.0}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (export(packet_sha256="b" * 64), "another packet"),
        (export(packet_id="p08"), "another packet"),
        (export(rubric="0.9"), "do not mix"),
        (export(rater={"id": "r04"}), "another rater"),
        (changed(cannot_judge=["beauty"]), "an axis that the form does not have"),
        (changed(cannot_judge=["dx_correct"]), "it can be only one of them"),
        (changed(item_id="zzzz"), "not in the packet"),
        (export(items=export()["items"] * 2), "appears above"),
        (changed(scores={"dx_correct": 5}), "dx_correct is 5, expected 0 to 4"),
        (changed(scores={"beauty": 1}), "an axis that the form does not have"),
        (changed(errors=[{"code": "typo", "significant": False}]), "errors that the form does not have"),
        (changed(errors=[{"code": "missed_lesion", "significant": False}] * 2), "marked twice"),
        (changed(status="cannot_judge"), "its status is cannot_judge"),
        (changed(scores={}, errors=[]), "has no scores"),
        (changed(scores={"dx_correct": 3.5}), "refused at"),
        (changed(scores={"dx_correct": True}), "refused at"),
        (changed(seconds_active=-1), "refused at"),
        (changed(secret="x"), "refused at"),
        (export(schema="neuralmedbench.rating/2"), "refused at"),
        (export(rater={"id": "Dr. Real Name"}), "refused at"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_whole(round_of, one, words):
    with pytest.raises(RatingError, match=words) as error:
        import_round(round_of(one), FORM, NOW)
    assert "Berlin" not in str(error.value)
    assert "Real Name" not in str(error.value)


TABLE = (
    f"neuralmedbench.rating/1,p07,{PACKET},{FORM.rubric},r03,neuroradiologist,11,false,2026-01-01T10:00:00Z,2026-01-01T12:00:00Z,true"
    ",k3f9,1,rated,{axis},{value},132.0,1,false,false\n"
)


def table(*values: tuple[str, object]) -> str:
    return ",".join(COLUMNS) + "\n" + "".join(TABLE.format(axis=axis, value=value) for axis, value in values)


JUDGED = (("dx_correct", 3), ("finding_fidelity", 2), ("error.missed_lesion", 2))


def test_a_table_is_read_as_its_json_and_beside_it_once(round_of):
    folder = round_of(export())
    rows = import_round(folder, FORM, NOW)
    (folder / "rating.csv").write_text(table(*JUDGED))
    assert import_round(folder, FORM, NOW) == rows
    (folder / "rating_0.json").unlink()
    assert import_round(folder, FORM, NOW) == rows
    (folder / "rating.csv").write_text(table(("dx_correct", 3), ("reasoning", "")))
    assert {row.axis: row.value for row in import_round(folder, FORM, NOW)} == {"dx_correct": 3.0, "reasoning": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (table(*JUDGED[:2]), "two versions of one rater's export that differ"),
        (table(*JUDGED, JUDGED[0]), "line 5: its axis appears above"),
        (table(("error.missed_lesion", 3)), "line 2: an error has the value 2"),
        (table(("", 3)), "line 2: it has a value, but no axis"),
        (table(("dx_correct", "=1+1")), "refused at items.0.scores"),
        (table(("dx_correct", 2.5)), "refused at items.0.scores"),
        (table(("dx_correct", 9)), "dx_correct is 9, expected 0 to 4"),
        (
            table(*JUDGED) + TABLE.format(axis="reasoning", value=1).replace("r03", "r04"),
            "line 5: .* from another export than the first line",
        ),
        (table(*JUDGED) + TABLE.format(axis="reasoning", value=1).replace("132.0", "1"), "line 5: it contradicts an earlier line"),
        (table(*JUDGED).replace("false\n", "false,more\n"), "line 2: it has too few or too many cells"),
        (table(), "expected lines with the columns"),
        ("PK", "expected lines with the columns"),
        ("", "expected lines with the columns"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(round_of, text, words):
    folder = round_of(export())
    (folder / "rating.csv").write_text(text)
    with pytest.raises(RatingError, match=words):
        import_round(folder, FORM, NOW)


def test_two_complete_exports_of_one_rater_are_refused(round_of):
    with pytest.raises(RatingError, match="two complete exports"):
        import_round(round_of(export(), export()), FORM, NOW)


def test_a_round_without_its_key_and_a_file_that_is_not_json_are_refused(round_of, tmp_path):
    folder = round_of(export())
    (folder / "rating_0.json").write_text("{")
    with pytest.raises(RatingError, match="refused at"):
        import_round(folder, FORM, NOW)
    (tmp_path / "r2").mkdir()
    with pytest.raises(RatingError, match=r"^r2: there is no round of this name, or its key\.json is missing"):
        import_round(tmp_path / "r2", FORM, NOW)


def test_the_digest_of_an_answer_is_that_of_its_text():
    assert text_digest(answered(TEXT).text) == text_digest(TEXT)
