"""Clinicians work up cases: what a page holds, and what is refused of the files that come back."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.reader import ANSWER, ROUND, export_with, make_round, put_export, responses_of_reader, work_ups, write_asked
from neuralmedbench.config.load import load_model
from neuralmedbench.errors import RatingError
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.conversation import next_messages, released
from neuralmedbench.ratings.answering.answer_rounds import FrozenReaderRound, freeze_reader_round
from neuralmedbench.ratings.answering.work_ups import released_by
from neuralmedbench.ratings.form import AnswerSettings
from neuralmedbench.recording.reader_answers import import_readers
from neuralmedbench.records.examinations.inventory import RequestOutcome
from neuralmedbench.records.examinations.matching import match_request, offered_requests
from neuralmedbench.records.items import Strategy
from neuralmedbench.records.requests import Request

MODEL = f"reader-{ROUND}-1"
STATED = [{"name": "Glioma", "probability": 0.6}, {"name": "Acute ischaemic stroke", "probability": 0.2}]
NOTHING: dict[str, Any] = {"texts": {}, "candidates": [], "choice": "", "fields": {}, "confidence": None}
FINAL = NOTHING | {"candidates": [{"name": "Acute ischaemic stroke", "for": "", "against": ""}], "confidence": 0.7}


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, FrozenReaderRound]:
    """Give a run with a frozen round of work-ups of one reader."""
    write_asked(tmp_path, "workup")
    return tmp_path, make_round(tmp_path, Strategy.WORKUP)[1]


def requests(root: Path) -> dict[str, Request]:
    rows = read_records(root / "data/prompts/b.parquet", Request)
    return {row.item_id: row for row in rows if (row.arm, row.strategy) == ("full", "workup")}


def export_of(root: Path, frozen: FrozenReaderRound, *wishes: str) -> dict[str, Any]:
    """Give a complete export in which the reader asks the same of every case."""
    packet, asked_of = frozen.key.packets[0], requests(root)
    entries = []
    for place, name in enumerate(packet.order, start=1):
        inquiry = asked_of[packet.items[name].item_id].inquiry
        assert inquiry is not None
        common = {"stated": STATED, "seconds_active": 20}
        turns = [
            {"status": "asked", "locked": True, "answer": NOTHING, "asked": {"request": wish, "released": released_by(inquiry, wish)}}
            | common
            for wish in wishes
        ]
        turns.append({"status": "answered", "locked": False, "answer": FINAL, "asked": None} | common)
        entries.append({"item_id": name, "position": place, "turns": turns})
    return export_with(packet, entries, simulated=False)


def imported(root: Path, export: dict[str, Any]) -> list[Any]:
    put_export(root / "data" / "ratings" / ROUND, export)
    return import_readers(root / "data" / "ratings" / ROUND, config=root / "config", data=root / "data")


def test_every_case_offers_the_same_requests_and_each_releases_what_a_model_gets_for_it(run: tuple[Path, FrozenReaderRound]) -> None:
    root, frozen = run
    page = frozen.pages[f"{ROUND}-1"]
    data = json.loads(page.partition('id="packet">')[2].partition("</script>")[0])
    assert data["requests"] == list(offered_requests())
    assert not {"acute", ANSWER} & {word.casefold() for word in data["requests"]}
    asked_of = requests(root)
    for item in data["items"]:
        inquiry = asked_of[frozen.key.packets[0].items[item["item_id"]].item_id].inquiry
        assert inquiry is not None
        for request, place in zip(data["requests"], item["work_up"]["released"], strict=True):
            (step,) = released(inquiry, [f"REQUEST: {request}"])
            assert step.place == place, request
            assert step.outcome is not RequestOutcome.UNCLEAR, request
        assert {inquiry.facts[place].name for place in item["work_up"]["released"] if place is not None} == {
            "examination",
            "blood tests",
            "cerebrospinal fluid",
            "FLAIR, axial",
        }
    assert set(data["pictures"]) == {image.sha256 for row in asked_of.values() for fact in row.inquiry.facts for image in fact.images}  # type: ignore[union-attr]
    # nothing that identifies, and no essential examination
    assert "essential" not in page
    assert not any(f'"{row.item_id}"' in page or f'"{row.case_id}"' in page for row in work_ups(root))


def test_no_offered_request_is_too_vague_to_be_answered() -> None:
    assert [request for request in offered_requests() if match_request(request, ()).outcome is not RequestOutcome.ABSENT] == []
    assert len(set(offered_requests())) == len(offered_requests())


def test_a_work_up_becomes_the_answers_of_a_model_that_is_expected_to_do_nothing_else(run: tuple[Path, FrozenReaderRound]) -> None:
    root, frozen = run
    (found,) = imported(root, export_of(root, frozen, "FLAIR", "PET", "clotting"))
    assert (found.coverage.given, found.coverage.expected, found.coverage.missing) == (2, 2, 0)
    model = load_model(root / f"config/models/{MODEL}.yaml")
    assert (model.reader, model.reader_strategy, model.title) == ("clinician", Strategy.WORKUP, f"Reader {ROUND}-1 (clinician)")
    rows = responses_of_reader(root, MODEL)
    assert {(row.strategy, row.state, len(row.turns), row.latency_s) for row in rows} == {("workup", "ok", 4, 80.0)}
    assert rows[0].turns[2] == "CANDIDATES:\n1. Glioma | 0.6000\n2. Acute ischaemic stroke | 0.2000\nREQUEST: clotting"
    assert rows[0].turns[3].startswith("CANDIDATES:\n1. Glioma | 0.6000\n2. Acute ischaemic stroke | 0.2000\nSEEN: not stated")
    assert "DIFFERENTIAL:\n1. Acute ischaemic stroke | for: not stated" in rows[0].turns[3]
    request = requests(root)[rows[0].item_id]
    assert next_messages(request, rows[0].turns, None) is None


def change(export: dict[str, Any], turn: int, **changes: object) -> dict[str, Any]:
    changed = copy.deepcopy(export)
    changed["items"][0]["turns"][turn] |= changes
    return changed


@pytest.mark.parametrize(
    ("turn", "changes", "line"),
    [
        (
            0,
            {"asked": {"request": "FLAIR", "released": 0}},
            "message 1: the page showed another examination than this request releases now",
        ),
        (0, {"asked": None, "status": "answered", "answer": FINAL}, "message 1 is no request, although a message follows it"),
        (1, {"asked": {"request": "FLAIR", "released": 3}, "status": "asked"}, "message 2 is a request, and no message follows it"),
        (0, {"stated": []}, "message 1: no diagnosis with a probability"),
        (0, {"stated": [{"name": "x", "probability": 0.9}] * 2}, "message 1: the probabilities add up to more than 1"),
        (0, {"stated": [{"name": "x", "probability": 0.1}] * 5}, "message 1: 5 diagnoses with probabilities, at most 4 are asked for"),
        (0, {"stated": [{"name": " ", "probability": 0.1}]}, "message 1: a probability without a diagnosis"),
        (0, {"answer": FINAL}, "message 1: an answer beside a request"),
        (0, {"status": "answered"}, "message 1: a request that the question does not take, or a status that does not fit it"),
        (0, {"locked": False}, "message 2 is answered, although the answer to message 1 is not locked"),
        (1, {"answer": NOTHING}, "message 2: its status is answered, but it names nothing"),
    ],
)
def test_a_wrong_file_gets_one_clear_line_and_nothing_is_written(
    run: tuple[Path, FrozenReaderRound], turn: int, changes: dict[str, object], line: str
) -> None:
    root, frozen = run
    with pytest.raises(RatingError) as refused:
        imported(root, change(export_of(root, frozen, "FLAIR"), turn, **changes))
    assert str(refused.value).startswith(f"answers.json, entry 1: {line}")
    assert "\n" not in str(refused.value)
    assert not (root / "data/ledger").exists()
    assert not (root / f"config/models/{MODEL}.yaml").exists()


def test_more_requests_than_the_budget_are_refused_and_an_unfinished_work_up_is_left_out(run: tuple[Path, FrozenReaderRound]) -> None:
    root, frozen = run
    with pytest.raises(RatingError, match=r"entry 1: 8 messages, the work-up ends after 7$"):
        imported(root, export_of(root, frozen, *["PET"] * 7))
    unfinished = change(export_of(root, frozen, "FLAIR"), 1, status="open", answer=NOTHING) | {"complete": False}
    (found,) = imported(root, unfinished)
    assert (found.coverage.given, found.coverage.missing) == (1, 1)


def test_a_round_of_work_ups_needs_the_strategy(tmp_path: Path) -> None:
    with pytest.raises(RatingError, match=r"run the workflow first \(work-ups need `workup` among the strategies of a benchmark\)$"):
        freeze_reader_round(ROUND, AnswerSettings(), [], root=tmp_path)
