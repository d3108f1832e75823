"""Adjudication: the queue, a packet that hides raters and models, and the effect of its export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from fixtures.agreement import filled, rating
from fixtures.rating import MODELS, form, write_rated_study
from neuralmedbench.cli.ratings import make_adjudication, make_rating_round
from neuralmedbench.config.workflow import read_run
from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.adjudication import AdjudicationReason, freeze_stored_adjudication, queue_of
from neuralmedbench.ratings.exports import RoundKey, read_file
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import AdjudicationKey, import_round
from neuralmedbench.ratings.rounds import RoundMaterial
from neuralmedbench.recording.reader_answers import rated_answers
from neuralmedbench.records.scores import Rating, RatingPart, response_key, text_digest
from neuralmedbench.tables.clinicians.opinions import clinician_verdicts

FORM_FILE = ROOT / "config" / "rating.yaml"
FORM = read_form(FORM_FILE)
SMALL = form(responses=8, repeats=0.25, controls=1)


def said(one: float | None, other: float | None, axis: str = "dx_correct", **changes: Any) -> list[Rating]:
    return [rating(1, "a", one, axis, **changes), rating(1, "b", other, axis, **changes)]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (said(1, 3), AdjudicationReason.APART),
        (said(2, 3), None),
        (said(0, 2, "finding_fidelity"), AdjudicationReason.APART),
        (said(0, 4, "localisation"), None),
        (said(1, 2, "harm_extent"), AdjudicationReason.ACROSS),
        (said(2, 3, "harm_extent"), None),
        (said(0, 1, "harm_extent"), None),
        (said(None, 3), AdjudicationReason.UNJUDGED),
        (said(None, 3, "uncertainty"), None),
        (said(None, None), None),
        (said(0, 4, part=RatingPart.CONTROL_WRONG), None),
        (said(0, 4, part=RatingPart.AGAIN), None),
        (said(0, 4, stale=True), None),
        ([rating(1, "a", 0)], None),
    ],
)
def test_the_queue_holds_what_the_form_calls_a_disagreement(rows: list[Rating], reason: AdjudicationReason | None) -> None:
    found = queue_of(rows, FORM.adjudication)
    assert found == ({response_key(rows[0]): {rows[0].axis: reason}} if reason else {})


FIRST = dict.fromkeys(FORM.axes, 2)
SECOND = FIRST | {"dx_correct": 0, "harm_extent": 1}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a study with a round of two raters whose exports disagree on the diagnosis and on harm."""
    root = tmp_path_factory.mktemp("adjudicated")
    write_rated_study(root, patients=2)
    (root / "rating.json").write_text(SMALL.model_dump_json(by_alias=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert make_rating_round.main(["--round", "r01", "--form", "rating.json"]) == 0
    return root


@pytest.fixture
def folder(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the round with two complete exports to a new folder."""
    monkeypatch.chdir(study)
    made = tmp_path / "r01"
    made.mkdir()
    (made / "key.json").write_bytes((study / "data" / "ratings" / "r01" / "key.json").read_bytes())
    for packet, values in zip(read_file(made / "key.json", RoundKey).packets, (FIRST, SECOND), strict=True):
        (made / f"rating_{packet.rater}.json").write_text(json.dumps(filled(packet, FORM.rubric, values)))
    return made


def adjudicate(folder: Path, *arguments: str) -> int:
    return make_adjudication.main(["--round", "r01", "--form", "rating.json", "--folder", str(folder.parent), *arguments])


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    return dict(json.loads(text.split('<script type="application/json" id="packet">')[1].split("</script>")[0]))


def imported(study: Path, folder: Path) -> list[Rating]:
    candidates = rated_answers(read_run(folder=study / "config"), SMALL.rounds.families, study)
    return import_round(folder, SMALL, {response_key(one.response): text_digest(one.response.text) for one in candidates})


def test_a_packet_shows_the_values_of_all_raters_and_names_none_of_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a fixed secret: of eight random orders, all are equal once in 128 runs
    monkeypatch.setattr("neuralmedbench.ratings.rounds.secrets.token_hex", lambda size: "5e" * size)
    assert adjudicate(folder) == 0
    told = capsys.readouterr().out
    assert "8 answers to decide (8 x values are on both sides of a bound, 8 x values differ)" in told
    key = read_file(folder / "adjudication" / "key.json", AdjudicationKey)
    assert (folder / "adjudication" / "key.json").stat().st_mode & 0o077 == 0
    data = data_of(folder / "adjudication" / "packets" / "adjudicator.html")
    assert len(data["items"]) == len(key.packet.items) == 8
    assert data["errors"] == []
    for item in data["items"]:
        assert item["axes"] == ["dx_correct", "harm_extent"] == key.axes[item["item_id"]]
        values = [{"dx_correct": one["dx_correct"], "harm_extent": one["harm_extent"]} for one in (FIRST, SECOND)]
        raters = key.shown[item["item_id"]]
        assert item["ratings"] == [values[int(rater[-1]) - 1] for rater in raters]
        assert item["turns"][0]["pictures"]
    assert {tuple(raters) for raters in key.shown.values()} == {("rater-1", "rater-2"), ("rater-2", "rater-1")}
    held = json.dumps(data | {"pictures": sorted(data["pictures"])})
    assert [word for word in (*MODELS, "rater-1", "rater-2", "probability", "control", key.secret) if word in held] == []
    assert {rated.part for rated in key.packet.items.values()} == {RatingPart.SAMPLE}


def test_what_is_decided_stands_for_the_mean_and_the_ratings_stay(study: Path, folder: Path) -> None:
    before = imported(study, folder)
    assert adjudicate(folder) == 0
    key = read_file(folder / "adjudication" / "key.json", AdjudicationKey)
    (folder / "rating_decided.json").write_text(json.dumps(filled(key.packet, FORM.rubric, {"dx_correct": 4})))
    rows = imported(study, folder)
    last = [row for row in rows if row.adjudicated]
    assert {(row.rater_id, row.axis, row.value, row.part, row.stale) for row in last} == {
        ("adjudicator", "dx_correct", 4.0, "sample", False)
    }
    assert [row for row in rows if not row.adjudicated] == before
    assert {word.value for word in clinician_verdicts(before, "dx_correct").values()} == {1.0}
    assert {word.value for word in clinician_verdicts(rows, "dx_correct").values()} == {4.0}
    assert {word.value for word in clinician_verdicts(rows, "harm_extent").values()} == {1.5}
    assert {row.probability for row in last} == {row.probability for row in before if row.part is RatingPart.SAMPLE}


def test_where_the_further_rater_cannot_judge_the_mean_stands() -> None:
    rows = [*said(1, 3), rating(1, "adjudicator", None, adjudicated=True)]
    word = next(iter(clinician_verdicts(rows, "dx_correct").values()))
    assert (word.value, word.adjudicated) == (2.0, False)


def test_an_answer_that_the_adjudicator_cannot_judge_at_all_has_rows_of_the_axes_in_question_alone(study: Path, folder: Path) -> None:
    assert adjudicate(folder) == 0
    whole = filled(read_file(folder / "adjudication" / "key.json", AdjudicationKey).packet, FORM.rubric, {})
    items = [item | {"status": "cannot_judge"} for item in whole["items"]]
    (folder / "rating_decided.json").write_text(json.dumps(whole | {"items": items}))
    last = [row for row in imported(study, folder) if row.adjudicated]
    assert {(row.axis, row.value) for row in last} == {("dx_correct", None), ("harm_extent", None)}


def test_an_export_that_decides_what_was_not_asked_is_refused(study: Path, folder: Path) -> None:
    assert adjudicate(folder) == 0
    packet = read_file(folder / "adjudication" / "key.json", AdjudicationKey).packet
    path = folder / "rating_decided.json"
    whole = filled(packet, FORM.rubric, {"dx_correct": 4, "reasoning": 1})
    error = filled(packet, FORM.rubric, {"dx_correct": 4})
    error["items"][0]["errors"] = [{"code": FORM.errors[0], "significant": False}]
    for wrong, words in (
        (whole, "it decides what was not asked"),
        (error, "it decides what was not asked"),
        (filled(packet, FORM.rubric, {"dx_correct": 9}), "dx_correct is 9"),
        (filled(packet, FORM.rubric, {"dx_correct": 4}, rater={"id": "rater-1"}), "another rater"),
        (filled(packet, FORM.rubric, {"dx_correct": 4}, packet_sha256="0" * 64), "another packet"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(RatingError, match=words):
            imported(study, folder)


def test_a_packet_is_never_made_again_and_a_later_one_asks_only_for_what_is_new(study: Path, folder: Path) -> None:
    exports = {path: json.loads(path.read_text()) for path in sorted(folder.glob("rating_*.json"))}
    first = next(iter(exports))
    early = exports[first] | {"complete": False, "items": exports[first]["items"][:3]}
    first.write_text(json.dumps(early))
    with pytest.raises(RatingError, match="r01: no complete export yet of rater-1; wait for it, or add --unfinished"):
        adjudicate(folder)
    assert adjudicate(folder, "--unfinished") == 0
    before = (folder / "adjudication" / "key.json").read_bytes()
    asked = set(read_file(folder / "adjudication" / "key.json", AdjudicationKey).packet.items)
    first.write_text(json.dumps(exports[first]))
    with pytest.raises(
        RatingError, match=r"r01/adjudication: it exists and is never replaced; use another name .* for example adjudication-2"
    ):
        adjudicate(folder)
    assert (folder / "adjudication" / "key.json").read_bytes() == before
    assert adjudicate(folder, "--name", "adjudication-2") == 0
    later = read_file(folder / "adjudication-2" / "key.json", AdjudicationKey)
    assert later.packet.rater == "adjudicator-2"
    assert len(asked) + len(later.packet.items) == 8
    with pytest.raises(RatingError, match="no disagreement to adjudicate beyond those in earlier packets"):
        adjudicate(folder, "--name", "adjudication-3")
    for name in ("../r02", "other", "adjudication-"):
        with pytest.raises(RatingError, match="NAME is not valid for an adjudication"):
            adjudicate(folder, "--name", name)


def test_a_round_without_disagreement_and_one_that_a_program_filled_in_with_people_are_refused(study: Path, folder: Path) -> None:
    packets = read_file(folder / "key.json", RoundKey).packets
    path = folder / "rating_rater-2.json"
    path.write_text(json.dumps(filled(packets[1], FORM.rubric, FIRST)))
    with pytest.raises(RatingError, match="no disagreement to adjudicate"):
        adjudicate(folder)
    path.write_text(json.dumps(filled(packets[1], FORM.rubric, SECOND, rater={"id": "rater-2", "simulated": True})))
    with pytest.raises(RatingError, match="do not mix"):
        adjudicate(folder)
    (folder.parent / "simulated").mkdir()
    with pytest.raises(RatingError, match="has no adjudication"):
        make_adjudication.main(["--round", "simulated", "--form", "rating.json", "--folder", str(folder.parent)])
    with pytest.raises(RatingError, match="there is no such round"):
        make_adjudication.main(["--round", "r09", "--form", "rating.json", "--folder", str(folder.parent)])


def test_what_is_decided_over_simulated_ratings_is_simulated(study: Path, folder: Path) -> None:
    for packet, values in zip(read_file(folder / "key.json", RoundKey).packets, (FIRST, SECOND), strict=True):
        (folder / f"rating_{packet.rater}.json").write_text(
            json.dumps(filled(packet, FORM.rubric, values, rater={"id": packet.rater, "simulated": True}))
        )
    assert adjudicate(folder) == 0
    packet = read_file(folder / "adjudication" / "key.json", AdjudicationKey).packet
    (folder / "rating_decided.json").write_text(json.dumps(filled(packet, FORM.rubric, {"dx_correct": 4})))
    assert {row.simulated for row in imported(study, folder)} == {True}


def test_answers_that_have_changed_are_left_out_and_counted(study: Path, folder: Path) -> None:
    candidates = rated_answers(read_run(folder=study / "config"), SMALL.rounds.families, study)
    drawn = [row for row in imported(study, folder) if row.part is RatingPart.SAMPLE]
    gone = response_key(drawn[0])
    kept = [one for one in candidates if response_key(one.response) != gone]
    assert len(freeze_stored_adjudication(folder, "adjudication", RoundMaterial(SMALL, kept, [])).key.axes) == 7
