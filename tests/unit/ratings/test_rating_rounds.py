"""Rating rounds: a draw with known probabilities, packets that reveal no model, a key that stays here."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conftest import ROOT
from fixtures.rating import MODELS, form, write_prompts, write_rated_study
from fixtures.tables import DEPTH, HOSTILE
from neuralmedbench.cli.ratings import make_rating_round
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import DataError, DeidentificationError, RatingError
from neuralmedbench.files.cases import read_audit, write_audit
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.tables import read_records
from neuralmedbench.ratings.candidates import RatingCandidate, make_controls
from neuralmedbench.ratings.exports import PacketKey, RatedResponse, RoundKey, read_file
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.ratings.page import answer_data
from neuralmedbench.ratings.rounds import GAP, FrozenRound, RoundMaterial, allocate, assign_raters, draw, freeze_round, presentation_order
from neuralmedbench.recording.reader_answers import model_names, rated_answers
from neuralmedbench.records.blinding import hide_names
from neuralmedbench.records.items import Runner
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.scores import ParseStatus, RatingPart, text_digest
from neuralmedbench.scoring.parse import parse_answer

FORM = form(responses=24, raters=3, raters_per_response=2)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rated")
    write_rated_study(root)
    return root


@pytest.fixture(scope="module")
def candidates(study: Path) -> list[RatingCandidate]:
    return rated_answers(run_of(study), FORM.rounds.families, study)


@pytest.fixture(scope="module")
def frozen(study: Path, candidates: list[RatingCandidate]) -> FrozenRound:
    return freeze_round("r01", RoundMaterial(FORM, candidates, [*MODELS], root=study, secret="ab"))


def run_of(root: Path) -> Run:
    return read_run(folder=root / "config")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="packet">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def of_part(packet: PacketKey, *parts: RatingPart) -> list[RatedResponse]:
    return [rated for rated in packet.items.values() if rated.part in parts]


def test_draws_are_shared_evenly_and_a_stratum_that_nobody_sees_is_refused() -> None:
    assert allocate({"a": 2, "b": 9, "c": 9}, 11) == {"a": 2, "b": 5, "c": 4}
    assert allocate({"a": 2, "b": 3}, 99) == {"a": 2, "b": 3}
    with pytest.raises(RatingError, match="2 strata, each of which needs at least one"):
        allocate({"a": 2, "b": 3}, 1)


def test_every_response_of_a_stratum_is_drawn_with_the_stated_probability() -> None:
    strata = ["a"] * 3 + ["b"] * 12
    counts = Counter(place for seed in range(2000) for place in draw(strata, 6, str(seed)).places)
    stated = draw(strata, 6, "0").strata
    assert {name: (one.frame, one.drawn) for name, one in stated.items()} == {"a": (3, 3), "b": (12, 3)}
    # tolerance: four standard errors of a share of 2000 draws
    assert all(abs(counts[place] / 2000 - stated[name].probability) < 0.04 for place, name in enumerate(strata))
    assert draw(strata, 6, "0") == draw(strata, 6, "0") != draw(strata, 6, "1")


def test_every_pair_of_raters_shares_as_many_responses() -> None:
    assert set(Counter(assign_raters(30, 4, 2)).values()) == {5}


def test_answers_to_one_case_stand_apart_and_a_second_showing_comes_after_the_first() -> None:
    entries = [f"{case}{number}" for case in "abcdefghijklm" for number in range(4)]
    again = {f"again-{name}": name for name in entries[::9]}
    cases = {name: name.removeprefix("again-")[0] for name in [*entries, *again]}
    order = presentation_order([*entries, *again], cases, again, Random(1))
    assert sorted(order) == sorted([*entries, *again])
    assert all(order.index(first) < order.index(second) for second, first in again.items())
    gaps = [later - earlier for case in "abcdefghijklm" for earlier, later in pairs(order, cases, case)]
    assert sum(gap > GAP for gap in gaps) > 0.9 * len(gaps)


def pairs(order: list[str], cases: dict[str, str], case: str) -> list[tuple[int, int]]:
    places = [place for place, name in enumerate(order) if cases[name] == case]
    return list(pairwise(places))


def test_the_names_of_models_are_hidden_and_words_of_medicine_stay() -> None:
    text = "As GPT-4o, made by OpenAI, I am not Claude 3.5 Sonnet or my-vlm-7b. The image shows Claude's syndrome, no llamas."
    assert hide_names(text, ["image", "my-vlm-7b"]) == (
        "As [model], made by [model], I am not [model] or [model]. The image shows Claude's syndrome, no llamas.", 4
    )  # fmt: skip


def test_all_answers_under_full_are_the_frame_and_weights_of_the_sample_give_its_size(
    frozen: FrozenRound, candidates: list[RatingCandidate]
) -> None:
    assert len(candidates) == 2 * 4 * 2 * 5
    drawn = {(row.model, row.item_id, row.repeat): row for packet in frozen.key.packets for row in of_part(packet, RatingPart.SAMPLE)}
    assert len(drawn) == 24
    assert sum(1 / row.probability for row in drawn.values() if row.probability) == pytest.approx(len(candidates))
    assert {row.stratum for row in drawn.values()} == {one.stratum for one in candidates} == set(frozen.key.strata)
    texts = {(one.response.model, one.response.item_id, one.response.repeat): text_digest(one.response.text) for one in candidates}
    assert all(row.text_sha256 == texts[name] for name, row in drawn.items())


def test_each_rater_sees_their_share_with_controls_and_repeats(frozen: FrozenRound) -> None:
    shown = Counter((row.model, row.item_id, row.repeat) for packet in frozen.key.packets for row in of_part(packet, RatingPart.SAMPLE))
    assert set(shown.values()) == {2}
    for packet in frozen.key.packets:
        assert len(of_part(packet, RatingPart.SAMPLE)) == 16
        assert len(of_part(packet, RatingPart.CONTROL_RIGHT)) == len(of_part(packet, RatingPart.CONTROL_WRONG)) == 2
        again = of_part(packet, RatingPart.AGAIN)
        assert len(again) == 2
        assert all(packet.items[row.again_of].text_sha256 == row.text_sha256 for row in again)
        assert sorted(packet.order) == sorted(packet.items)


def test_a_packet_holds_nothing_of_the_key_and_no_model(frozen: FrozenRound, candidates: list[RatingCandidate]) -> None:
    secrets_of_key = {*MODELS, "control", "sample", "stratum", "probability", frozen.key.secret * 8, DEPTH + "/"}
    secrets_of_key |= {one.item.case_id for one in candidates} | {one.item.patient_id for one in candidates}
    ids: list[str] = []
    for packet in frozen.key.packets:
        data = data_of(frozen.pages[packet.rater])
        held = json.dumps(data | {"pictures": sorted(data["pictures"])})
        assert [word for word in secrets_of_key if word in held] == []
        assert set(data["items"][0]) == {"item_id", "group", "turns", "reference"}
        ids += [item["item_id"] for item in data["items"]]
    assert len(ids) == len(set(ids))


def test_a_packet_shows_what_was_sent_with_the_very_pictures(frozen: FrozenRound, candidates: list[RatingCandidate], study: Path) -> None:
    packet = frozen.key.packets[0]
    data = data_of(frozen.pages[packet.rater])
    by_item = {one.item.item_id: one for one in candidates}
    for item in data["items"]:
        sent = by_item[packet.items[item["item_id"]].item_id].sent[0]
        assert item["turns"][0]["text"] == sent.text
        assert item["turns"][0]["pictures"] == [[image.sha256, image.label] for image in sent.images]
        for image in sent.images:
            assert base64.b64decode(data["pictures"][image.sha256]) == (study / image.path).read_bytes()
    assert sha256_of_value({name: value for name, value in data.items() if name != "packet_sha256"}) == packet.packet_sha256


def test_the_reference_is_in_a_packet_only_when_the_form_says_so(study: Path, candidates: list[RatingCandidate]) -> None:
    told = data_of(freeze_round("r01", RoundMaterial(FORM, candidates, [], root=study)).pages["rater-1"])
    assert all(item["reference"][0].startswith("Reference: ") for item in told["items"])
    silent = form(responses=24, raters=3, reference="never", first_judgement=())
    data = data_of(freeze_round("r01", RoundMaterial(silent, candidates, [], root=study)).pages["rater-1"])
    assert all(item["reference"] == [] for item in data["items"])


def test_controls_are_right_and_wrong_by_the_reference(candidates: list[RatingCandidate]) -> None:
    by_id = {one.item.item_id: one.gold.answer for one in candidates if one.gold}
    controls = make_controls(candidates, 3, Random(1))
    assert Counter(str(control.part) for control in controls) == {"control_right": 3, "control_wrong": 3}
    for control in controls:
        right = by_id[control.candidate.item.item_id] in control.text
        assert right == (control.part is RatingPart.CONTROL_RIGHT)
    assert len({control.candidate.item.case_id for control in controls[:1] + controls[3:4]}) == 2
    options = [replace(one, item=replace(one.item, runner=Runner.CHOICE, options=("x", "y"))) for one in candidates]
    chosen = [replace(one, gold=replace(one.gold, choice="A")) for one in options if one.gold]
    assert {control.text[:9] for control in make_controls(chosen, 1, Random(1))} == {"ANSWER: A", "ANSWER: B"}


def test_a_control_has_the_form_in_which_its_question_asks_to_be_answered(candidates: list[RatingCandidate]) -> None:
    plain = make_controls(candidates, 1, Random(1))[0]
    assert parse_answer(plain.text, plain.candidate.item).parse_status is ParseStatus.STRICT
    form = "Answer in this form:\nSEEN: <what you were shown>"
    asked = [replace(one, sent=(replace(one.sent[0], text=form),)) for one in candidates]
    for control in make_controls(asked, 2, Random(1)):
        read = parse_answer(control.text, control.candidate.item)
        assert (read.parse_status, read.confidence, read.seen) == (ParseStatus.STRICT, 0.9, "FLAIR, T1w; axial")
        gold = control.candidate.gold
        assert gold
        assert (read.differential[0] == gold.answer) == (control.part is RatingPart.CONTROL_RIGHT)


def test_equal_secrets_give_equal_bytes_and_another_one_gives_other_ids_for_the_same_sample(
    study: Path, candidates: list[RatingCandidate], frozen: FrozenRound
) -> None:
    assert freeze_round("r01", RoundMaterial(FORM, candidates, [*MODELS], root=study, secret="ab")) == frozen
    other = freeze_round("r01", RoundMaterial(FORM, candidates, [*MODELS], root=study, secret="cd"))
    assert {row.text_sha256 for row in of_part(other.key.packets[0], RatingPart.SAMPLE)} == {
        row.text_sha256 for row in of_part(frozen.key.packets[0], RatingPart.SAMPLE)
    }
    assert not set(other.key.packets[0].items) & set(frozen.key.packets[0].items)


def test_hostile_answers_cannot_end_the_data_of_the_page(tmp_path: Path) -> None:
    write_rated_study(tmp_path, patients=1, hostile=True)
    made = freeze_round(
        "r01", RoundMaterial(form(responses=20), rated_answers(run_of(tmp_path), FORM.rounds.families, tmp_path), [], root=tmp_path)
    )
    page = made.pages["rater-1"]
    assert HOSTILE not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert any(HOSTILE in item["turns"][0]["answer"] for item in data_of(page)["items"])
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_a_rater_sees_the_invisible_characters_of_an_answer() -> None:
    """A direction mark turns "left" into "right" for the reader, and for no grader."""
    shown = answer_data("i", "g", [RequestTurn(text="Which side?")], ["the side is \u202etfel\x1b[2J\U000e0041"], [])
    assert shown["turns"][0]["answer"] == "the side is ⟨U+202E⟩tfel⟨U+001B⟩[2J⟨U+E0041⟩"


def test_a_round_is_written_whole_with_a_private_key_and_is_never_made_again(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(study)
    arguments = ["--round", "r01", "--form", str(ROOT / "config" / "rating.yaml")]
    assert make_rating_round.main(arguments) == 0
    folder = study / "data" / "ratings" / "r01"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "key.json", "packets/rater-1.html", "packets/rater-2.html",
    ]  # fmt: skip
    assert (folder / "key.json").stat().st_mode & 0o077 == 0
    assert "60 of 80 answers drawn from 8 strata" in capsys.readouterr().out
    before = (folder / "key.json").read_bytes()
    with pytest.raises(RatingError, match="r01: this round exists and is never replaced"):
        make_rating_round.main(arguments)
    assert (folder / "key.json").read_bytes() == before
    key = read_file(folder / "key.json", RoundKey)
    with pytest.raises(RatingError, match="never replaced"):
        write_round(folder, FrozenRound(key, {}))


def test_nothing_is_shown_that_a_passed_audit_does_not_cover(tmp_path: Path) -> None:
    write_rated_study(tmp_path, patients=1)
    path = tmp_path / "data" / "deidentified" / DEPTH / "audit.json"
    audit = read_audit(path)
    for one, words in ((replace(audit, state="pending"), "waits for a person"), (replace(audit, covered={}), "not covered by the audit")):
        write_audit(path, one)
        with pytest.raises(DeidentificationError, match=words):
            rated_answers(run_of(tmp_path), FORM.rounds.families, tmp_path)


def test_answers_to_other_questions_or_pictures_are_refused(tmp_path: Path) -> None:
    write_rated_study(tmp_path, patients=1)
    requests = read_records(tmp_path / "data" / "prompts" / f"{DEPTH}.parquet", Request)
    for changed in (
        [replace(row, request_id="1" * 64) for row in requests],
        [replace(row, turns=(replace(row.turns[0], images=()),)) for row in requests],
        [],
    ):
        write_prompts(tmp_path, changed)
        with pytest.raises(RatingError, match="to another version of the question than the current one"):
            rated_answers(run_of(tmp_path), FORM.rounds.families, tmp_path)
    write_prompts(tmp_path, requests)
    (tmp_path / requests[0].turns[0].images[0].path).write_bytes(b"another picture")
    found = rated_answers(run_of(tmp_path), FORM.rounds.families, tmp_path)
    with pytest.raises(DataError, match="not the one that was sent"):
        freeze_round("r01", RoundMaterial(form(responses=20), found, [], root=tmp_path))


def test_a_round_without_answers_is_refused(study: Path) -> None:
    with pytest.raises(RatingError, match="no answer to draw"):
        freeze_round("r01", RoundMaterial(FORM, [], [], root=study))


def test_the_names_of_a_run_are_those_of_its_models(study: Path) -> None:
    assert set(model_names(run_of(study).models)) == {"alpha", "beta", "Alpha VLM", "Beta VLM"}
