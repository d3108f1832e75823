"""Clinicians answer the questions themselves: draw, pages, and the import of their files."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
from fixtures.reader import ANSWER, DIALOGUE, ROUND, SECRET, export_of, make_round, put_export, questions, responses_of_reader, write_asked
from neuralmedbench.cli.ratings import import_reader, make_rating_round
from neuralmedbench.config.load import load_model
from neuralmedbench.errors import DataError, PipelineError, RatingError
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models.replay import replay_requests
from neuralmedbench.models.requests_of_model import requests_for
from neuralmedbench.ratings.answering.answer_rounds import FrozenReaderRound, freeze_reader_round
from neuralmedbench.ratings.answering.answers import ReaderRoundKey
from neuralmedbench.ratings.exports import read_file
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.ratings.form import AnswerSettings, read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.recording.reader_answers import import_readers, reader_lines
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import response_key

MODEL = f"reader-{ROUND}-1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FrozenReaderRound, list[Item]]:
    """Make a run with a frozen round of one reader, before any export."""
    root = tmp_path_factory.mktemp("run")
    rows = write_asked(root)
    _, frozen = make_round(root)
    return root, frozen, rows


@pytest.fixture
def run(finished, tmp_path: Path) -> tuple[Path, FrozenReaderRound, list[Item]]:
    """Copy that run, for tests that change it."""
    root, frozen, rows = finished
    shutil.copytree(root, tmp_path / "run")
    return tmp_path / "run", frozen, rows


def imported(root: Path, *exports: dict[str, Any]) -> list[Any]:
    """Put exports into the round and import it."""
    folder = root / "data" / "ratings" / ROUND
    for number, export in enumerate(exports, start=1):
        put_export(folder, export, f"answers_{number}.json")
    return import_readers(folder, config=root / "config", data=root / "data")


def of_page(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="packet">(.*?)</script>', text)
    assert found
    return json.loads(found[1])


def test_every_reader_gets_the_same_questions_in_an_order_of_their_own_with_the_very_pictures(finished) -> None:
    root, _, rows = finished
    frozen = freeze_reader_round(ROUND, AnswerSettings(items=20, readers=3, once_per_case=False), questions(root), root=root, secret=SECRET)
    asked = {
        row.item_id: row for row in read_records(root / "data/prompts/b.parquet", Request) if (row.arm, row.strategy) == ("full", "direct")
    }
    orders = []
    for packet in frozen.key.packets:
        shown = of_page(frozen.pages[packet.rater])
        orders.append([packet.items[item_id].item_id for item_id in packet.order])
        assert [item["item_id"] for item in shown["items"]] == packet.order
        for item in shown["items"]:
            request = asked[packet.items[item["item_id"]].item_id]
            assert [turn["text"] for turn in item["turns"]] == [turn.text.strip() for turn in request.turns]
            assert [turn["pictures"] for turn in item["turns"]] == [
                [[one.sha256, one.label] for one in turn.images] for turn in request.turns
            ]
            assert item["told"] == request.system
        assert set(shown["pictures"]) == {one.sha256 for request in asked.values() for turn in request.turns for one in turn.images}
    assert [sorted(order) for order in orders] == [sorted(row.item_id for row in rows)] * 3
    assert len({tuple(order) for order in orders}) == 3
    # the question that states the diagnosis comes after the other one on its case
    assert all(order.index("b/ddx") < order.index("b/ddx-2") for order in orders)
    again = freeze_reader_round(ROUND, AnswerSettings(items=20, readers=3, once_per_case=False), questions(root), root=root, secret=SECRET)
    assert again == frozen


def test_a_page_holds_no_answer_no_model_and_loads_nothing(finished) -> None:
    _, frozen, rows = finished
    page = frozen.pages[f"{ROUND}-1"]
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|<form""", page)
    data = of_page(page)
    del data["pictures"]
    for item in data["items"]:  # options, labels and stated diagnoses are those that models are shown too
        for turn in item["turns"]:
            turn.pop("form")
            turn["text"] = turn["text"].replace(f"The diagnosis is known: {ANSWER}", "")
    words = json.dumps(data)
    assert ANSWER not in words
    assert not re.search("zeta|fusion", page, re.IGNORECASE)
    for row in rows:
        assert row.item_id not in page
        assert not re.search(rf'"{row.case_id}"', words)


def test_one_question_a_case_is_drawn_with_a_known_probability(finished) -> None:
    root, _, _ = finished
    drawn, asked_of_all = Counter(), questions(root)
    for seed in range(60):
        key = freeze_reader_round(ROUND, AnswerSettings(items=20, readers=1, seed=seed), asked_of_all, root=root, secret=SECRET).key
        items = key.packets[0].items.values()
        assert len(items) == 7
        assert {asked.probability for asked in items if asked.item_id.startswith("b/ddx")} == {0.5}
        drawn.update(asked.item_id for asked in items)
    assert drawn["b/ddx"] + drawn["b/ddx-2"] == 60
    assert 15 < drawn["b/ddx"] < 45
    assert drawn["b/fields"] == 60


def test_fewer_questions_than_strata_and_families_without_a_question_are_refused(finished) -> None:
    root, _, _ = finished
    with pytest.raises(RatingError, match="2 are to be drawn from 6 strata, each of which needs at least one"):
        freeze_reader_round(ROUND, AnswerSettings(items=2), questions(root), root=root)
    with pytest.raises(RatingError, match="h01: there is no question to draw"):
        freeze_reader_round(ROUND, AnswerSettings(), [], root=root)


def test_answers_become_a_model_with_time_and_what_was_not_shown_is_missing(run, capsys) -> None:
    root, _, rows = run
    folder = root / "data" / "ratings" / "h02"
    shutil.rmtree(folder.with_name(ROUND))
    frozen = freeze_reader_round("h02", AnswerSettings(items=20, readers=1), questions(root), root=root, secret=SECRET)
    write_round(folder, frozen)
    put_export(folder, export_of(frozen, rows))
    arguments = [
        "--round",
        "h02",
        *(f"--{name}={root / path}" for name, path in (("folder", "data/ratings"), ("config", "config"), ("data", "data"))),
    ]
    assert import_reader.main(arguments) == 0
    told = capsys.readouterr().out
    assert "reader-h02-1, b: 7 of 7 questions answered, 8 new answers; the benchmark has 8" in told
    model = load_model(root / "config/models/reader-h02-1.yaml")
    assert (model.title, model.reader) == ("Simulated reader h02-1", "simulated")
    responses = responses_of_reader(root, "reader-h02-1")
    assert Counter(row.state for row in responses) == {ResponseState.OK: 7, ResponseState.SKIPPED: 1}
    assert {(row.arm, row.strategy, row.repeat) for row in responses} == {("full", "direct", 0)}
    by_id = {row.item_id: row for row in responses}
    assert (by_id["b/choice"].text, by_id["b/choice"].latency_s) == ("ANSWER: A\nCONFIDENCE: 0.7", 30.0)
    talk = by_id[f"b/{DIALOGUE}"]
    assert (len(talk.turns), talk.latency_s, talk.images_sent) == (2, 61.0, 2)
    # a clone without the reader makes the same table from the ledger
    requests = requests_for(model, read_records(root / "data/prompts/b.parquet", Request))
    ledger = root / "data/ledger/b/reader-h02-1.jsonl"
    assert replay_requests(requests, model.named("reader-h02-1"), ledger, None) == responses
    # answers that arrive later need the table of responses to be made again
    put_table = root / "results/responses/b/reader-h02-1.parquet"
    assert "--forcerun" not in told
    write_records(put_table, Response, responses, key=response_key)
    late = import_readers(folder, config=root / "config", data=root / "data")
    assert [line for line in reader_lines([replace(late[0], coverage=replace(late[0].coverage, added=1))], root) if "--forcerun" in line]
    # the same import adds nothing
    assert import_reader.main(arguments) == 0
    assert "0 new answers" in capsys.readouterr().out


def test_a_progress_file_brings_what_is_finished_and_a_person_is_no_simulated_reader(run) -> None:
    root, frozen, rows = run
    export = export_of(frozen, rows)
    export["complete"], export["rater"]["simulated"] = False, False
    for entry in export["items"]:
        if frozen.key.packets[0].items[entry["item_id"]].item_id == f"b/{DIALOGUE}":
            entry["turns"][1] |= {"status": "open", "answer": {}}  # its first round is answered and locked
    export["items"][-1]["turns"][-1] |= {"status": "cannot_tell", "answer": {}}
    (found,) = imported(root, export)
    assert (found.shown, found.coverage.given, found.coverage.missing) == (8, 7, 1)
    assert load_model(root / f"config/models/{MODEL}.yaml").title == f"Reader {ROUND}-1 (clinician)"


def test_the_complete_export_counts_and_answers_that_were_imported_do_not_change(run) -> None:
    root, frozen, rows = run
    whole = export_of(frozen, rows)
    begun = copy.deepcopy(whole) | {"complete": False, "exported": "2026-01-01T08:30:00Z"}
    choice = next(entry for entry in begun["items"] if entry["turns"][0]["answer"]["choice"])
    choice["turns"][0]["answer"]["choice"] = "B"
    assert imported(root, whole, begun)[0].coverage.given == 8
    (root / f"data/ratings/{ROUND}/answers_1.json").unlink()
    ledger = (root / f"data/ledger/b/{MODEL}.jsonl").read_bytes()
    with pytest.raises(
        DataError, match=r"1 answers differ from those that were imported before, the first is that to b/choice; raise `revision`"
    ):
        imported(root)
    assert (root / f"data/ledger/b/{MODEL}.jsonl").read_bytes() == ledger


def turn_of(export: dict[str, Any], place: int = 0, *, turns: int = 1) -> dict[str, Any]:
    """Return an answer of the first question with that many turns."""
    entry: dict[str, Any] = next(entry for entry in export["items"] if len(entry["turns"]) == turns)
    return entry["turns"][place]


def candidates(export: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in export["items"] if len(entry["turns"][0]["answer"]["candidates"]) == 2)
    return found["turns"][0]["answer"]


def option(export: dict[str, Any], letter: str) -> None:
    entry = next(entry for entry in export["items"] if entry["turns"][0]["answer"]["choice"])
    entry["turns"][0]["answer"]["choice"] = letter


BAD: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another packet": (lambda e: e.update(packet_sha256="1" * 64), "made with another packet"),
    "another reader": (lambda e: e["rater"].update(id="h01-2"), "it names another rater"),
    "an item id that was edited": (lambda e: e["items"][2].update(item_id="x"), "entry 3: an item that is not in the packet"),
    "an item twice": (lambda e: e["items"].append(e["items"][0]), "entry 9: an item that appears above"),
    "a letter that is not there": (lambda e: option(e, "D"), "an option that is not there; the options are A B C"),
    "six diagnoses": (lambda e: candidates(e)["candidates"].extend([{"name": "x"}] * 4), "6 diagnoses, at most 5 are asked for"),
    "a turn too many": (lambda e: e["items"][0]["turns"].append(turn_of(e)), r"entry 1: \d answers, the question has \d messages"),
    "a later answer before the first": (lambda e: turn_of(e, turns=2).update(locked=False), "message 2 is answered, although"),
    "a lock without an answer": (lambda e: turn_of(e).update(status="open", locked=True, answer={}), "is locked without an answer"),
    "complete with holes": (lambda e: turn_of(e).update(status="open", answer={}), "complete, but 1 questions are not answered"),
    "another form": (lambda e: e.update(rubric="1.0"), "refused at rubric: extra_forbidden"),
    "a confidence above 1": (lambda e: candidates(e).update(confidence=70), r"confidence: less_than_equal; ask"),
    "a hostile key": (lambda e: e.update({"=cmd()": 1}), "extra_forbidden"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_does_not_fit_is_one_line_and_nothing_is_written(run, name: str) -> None:
    root, frozen, rows = run
    export = export_of(frozen, rows)
    spoil, line = BAD[name]
    spoil(export)
    with pytest.raises(RatingError, match=line) as told:
        imported(root, export)
    assert "\n" not in str(told.value)
    assert not (root / "data" / "ledger").exists()
    assert not (root / f"config/models/{MODEL}.yaml").exists()


def test_an_answer_that_was_locked_stays_as_it_was(run) -> None:
    root, frozen, rows = run
    begun = export_of(frozen, rows) | {"complete": False, "exported": "2026-01-01T08:30:00Z"}
    whole = export_of(frozen, rows)
    turn_of(whole, turns=2)["answer"]["candidates"][0]["name"] = "Abscess"
    with pytest.raises(
        RatingError, match=r"answers_2.json, entry \d: the answer to message 1 was locked in answers_1.json and has changed since"
    ):
        imported(root, begun, whole)
    assert not (root / "data" / "ledger").exists()


def test_progress_of_the_same_second_came_before_the_end(run) -> None:
    root, frozen, rows = run
    whole = export_of(frozen, rows)
    begun = copy.deepcopy(whole) | {"complete": False}
    turn_of(begun, turns=2).update(status="open", answer={}, locked=False)
    turn_of(begun, 1, turns=2).update(status="open", answer={}, locked=False)
    assert imported(root, whole, begun)[0].coverage.given == 8


def test_one_reader_is_one_export_and_one_yaml(run) -> None:
    root, frozen, rows = run
    whole = export_of(frozen, rows)
    with pytest.raises(RatingError, match=r"answers_1.json and answers_2.json: two complete exports of one reader"):
        imported(root, whole, whole)
    (root / f"data/ratings/{ROUND}/answers_2.json").unlink()
    values = {"title": "T", "backend": "imported", "id": f"reader/{ROUND}-1", "revision": "1", "reader": "clinician"}
    (root / f"config/models/{MODEL}.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(RatingError, match=rf"{MODEL}.yaml: it exists and is not of this reader .*reader: simulated"):
        imported(root)
    with pytest.raises(RatingError, match=r"key\.json: the file is missing"):
        import_readers(root / "data/ratings/h09", config=root / "config", data=root / "data")


def test_a_question_that_is_asked_in_other_words_now_is_not_imported(run) -> None:
    root, frozen, rows = run
    requests = read_records(root / "data/prompts/b.parquet", Request)
    changed = [row for row in requests if row.item_id != "b/free"]
    write_records(root / "data/prompts/b.parquet", Request, changed, key=lambda row: (row.item_id, row.arm, row.strategy))
    with pytest.raises(RatingError, match="1 of 8 questions have changed since the readers saw them, the first is b/free"):
        imported(root, export_of(frozen, rows))


def test_the_command_freezes_a_round_of_answers_once(run, monkeypatch, capsys) -> None:
    root, _, _ = run
    monkeypatch.chdir(root)
    form = root / "config" / "rating.yaml"
    form.write_text(yaml.safe_dump({"rubric": "1", "axes": {"a": {"question": "q", "lowest": 0, "highest": 1, "anchors": ["x", "y"]}}}))
    arguments = ["--round", "h03", "--mode", "answer"]
    assert make_rating_round.main(arguments) == 0
    told = capsys.readouterr().out
    assert "h03: 7 of 7 questions drawn from" in told
    assert "packets/h03-2.html: 7 to answer" in told
    folder = root / "data/ratings/h03"
    assert read_file(folder / "key.json", ReaderRoundKey).round_id == "h03"
    assert (folder / "key.json").stat().st_mode & 0o077 == 0
    assert read_json(folder / "key.json")["schema"] == "neuralmedbench.answers_key/1"
    with pytest.raises(PipelineError, match="this round exists"):
        make_rating_round.main(arguments)


def test_what_one_reader_changed_leaves_the_other_unwritten(run) -> None:
    root, _, rows = run
    shutil.rmtree(root / "data/ratings" / ROUND)
    _, frozen = make_round(root, readers=2)
    second = export_of(frozen, rows, reader=1)
    imported(root, second)
    option(second, "B")
    with pytest.raises(DataError, match=f"model reader-{ROUND}-2: 1 answers differ"):
        imported(root, second, export_of(frozen, rows))
    assert not (root / f"data/ledger/b/{MODEL}.jsonl").exists()
    assert not (root / f"config/models/{MODEL}.yaml").exists()


def test_a_round_of_the_other_kind_says_where_it_belongs(run) -> None:
    root, frozen, rows = run
    folder = root / "data/ratings" / ROUND
    put_export(folder, export_of(frozen, rows))
    with pytest.raises(RatingError, match=r"h01: a round in which questions were answered, not rated; .* use nmb ratings import-readers"):
        import_round(folder, read_form(ROOT / "config" / "rating.yaml"), {})
    (folder / "key.json").write_text('{"schema": "neuralmedbench.rating_key/2"}')
    with pytest.raises(RatingError, match="h01: a round in which answers were rated; add it to `rating_rounds`"):
        imported(root)
