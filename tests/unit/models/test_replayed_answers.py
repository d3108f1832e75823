"""Replay: answers and grades come from the ledger alone, and a missing one is an error."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from conftest import ROOT
from fixtures.models import model_config, picture, request, running_server
from fixtures.scoring import GOLD, ITEM, PICTURE_ITEM, answered, differential, grader_run, vocabulary
from neuralmedbench.config.load import load_grader, load_model
from neuralmedbench.config.model import Prices
from neuralmedbench.demo.baselines import baseline as build_module
from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.models import engine, retry
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import ANSWER_DIGEST, read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState, Score, response_key
from neuralmedbench.scoring.llm.model_grading import grade_with_model
from neuralmedbench.scoring.scores import score_responses

FREE = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 0, "dated": "x"}
PAID = {"api_key_env": "NMB_TEST_KEY", "prices": FREE, "max_cost_usd": 0}


def ask(ledger, requests, model, **changes):
    settings = {"ledger": ledger, "destinations": ("local",), "max_failed_fraction": 0.05, "root": ledger.parent}
    return answer_requests(requests, ModelRun(model, **{**settings, **changes}))


@pytest.fixture
def nothing_may_be_asked(monkeypatch):
    """Block every way to a model: no backend, no litellm, no built-in model, no key."""

    def forbidden(*_args, **_more):
        pytest.fail("a model was opened")

    monkeypatch.setattr(engine, "open_backend", forbidden)
    monkeypatch.setattr(build_module, "build", forbidden)
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.delenv("NMB_TEST_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example.org/v1")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return the run of a paid model, made while its server was up: ledger, requests, model and responses."""
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    ledger = tmp_path / "b" / "m.jsonl"
    ledger.parent.mkdir()
    turns = (RequestTurn(text="First."), RequestTurn(text="Second.", images=(picture(ledger.parent, 0),)))
    requests = [request("i1", samples=2), request("i2", *turns), request("i3", samples=3)]
    with running_server() as server:
        model = model_config(api_base=server.address, **PAID)
        rows = ask(ledger, requests, model)
    assert {row.state for row in rows} == {ResponseState.OK}
    return ledger, requests, model, rows


def test_a_replay_needs_neither_server_nor_key_nor_pictures_and_gives_the_recorded_rows(recorded, nothing_may_be_asked):
    ledger, requests, model, rows = recorded
    (ledger.parent / "p0.png").unlink()
    before = ledger.read_bytes()
    assert ask(ledger, requests, model, replay=True, destinations=()) == rows
    assert ledger.read_bytes() == before


def test_an_answer_that_is_not_in_the_ledger_is_one_clear_error(recorded, nothing_may_be_asked):
    ledger, requests, model, _ = recorded
    lines = [line for line in ledger.read_text().splitlines(keepends=True) if '"item_id": "b/i3"' not in line or '"repeat": 1' not in line]
    assert len(lines) == 6
    ledger.write_text("".join(lines))
    with pytest.raises(ProviderError) as error:
        ask(ledger, requests, model, replay=True)
    assert str(error.value) == (
        "model m: 1 of 6 answers are not in its ledger, the first is that to b/i3 (arm full, sample 1);"
        " `nmb run pull` brings the recorded ledger; to ask the model, take `replay` out of the configuration"
    )


def test_a_bumped_revision_is_missing_and_not_skipped(recorded, nothing_may_be_asked):
    ledger, requests, model, _ = recorded
    with pytest.raises(ProviderError, match="6 of 6 answers are not in its ledger"):
        ask(ledger, requests, model.model_copy(update={"revision": "2"}), replay=True)


def test_a_model_that_was_skipped_when_it_was_recorded_stays_skipped(tmp_path, monkeypatch):
    monkeypatch.delenv("NMB_TEST_KEY", raising=False)
    ledger, model = tmp_path / "m.jsonl", model_config(api_base="http://127.0.0.1:9/v1", **PAID)
    first = ask(ledger, [request("i1", samples=2)], model)
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    again = ask(ledger, [request("i1", samples=2)], model, replay=True)
    assert [row.state for row in again] == [row.state for row in first] == [ResponseState.SKIPPED] * 2


def test_an_absent_ledger_is_not_a_skipped_model(tmp_path):
    with pytest.raises(ProviderError, match=r"its ledger b/m\.jsonl is not there; `nmb run pull`"):
        ask(tmp_path / "b" / "m.jsonl", [request("i1")], model_config(), replay=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_ledger_in_the_place_of_a_recorded_one_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.jsonl").touch()
    lock = "stages:\n  infer@b-m:\n    outs:\n    - {path: m.jsonl, md5: 0123, size: 512}\n"
    (tmp_path / "dvc.lock").write_text(lock)
    with pytest.raises(ProviderError, match="is empty, and another one was recorded"):
        ask(tmp_path.relative_to(tmp_path) / "m.jsonl", [request("i1")], model_config(), replay=True)


def test_a_call_that_failed_when_it_was_recorded_is_in_no_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    requests = [request(f"i{number}") for number in range(4)]
    with running_server() as server:
        server.modes = ["ok", "ok", "ok", "400"]
        model = model_config(api_base=server.address, concurrency=1)
        rows = ask(tmp_path / "m.jsonl", requests, model, max_failed_fraction=0.5)
    assert sum(row.state is ResponseState.FAILED for row in rows) == 1
    with pytest.raises(ProviderError, match="1 of 4 answers are not in its ledger"):
        ask(tmp_path / "m.jsonl", requests, model, replay=True)


def test_a_built_in_model_is_replayed_without_being_built(tmp_path, monkeypatch):
    model = load_model(ROOT / "config" / "models" / "image.yaml")
    requests = [request("i1", samples=2)]
    rows = ask(tmp_path / "m.jsonl", requests, model, vocabulary=vocabulary())
    monkeypatch.setattr(build_module, "build", lambda *_: pytest.fail("the model was built"))
    assert ask(tmp_path / "m.jsonl", requests, model, vocabulary=vocabulary(), replay=True) == rows
    assert {row.state for row in rows} == {ResponseState.OK}
    with pytest.raises(ConfigError, match="needs the vocabulary"):
        ask(tmp_path / "m.jsonl", requests, model, replay=True)


def grade(ledger, address, **changes):
    config = load_grader(ROOT / "config" / "graders" / "llm.yaml")
    asked = config.model.model_copy(update={"api_base": address, "api_key_env": "NMB_TEST_KEY"})
    config = config.model_copy(update={"prompt": str(ROOT / "config" / "prompts" / "grader-v1.j2"), "model": asked})
    settings = {"ledger": ledger, "destinations": ("local",), "max_failed_fraction": None}
    rows = [answered(differential("glioma")), answered(differential("GBM"), repeat=1)]
    return grade_with_model(rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grader_run("llm", config, **{**settings, **changes}))


def test_grades_are_replayed_from_the_ledger_of_the_grader(tmp_path, monkeypatch):
    ledger = tmp_path / "llm.jsonl"
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    with running_server() as server:
        rows = grade(ledger, server.address)
        address = server.address
    assert len(read_ledger(ledger)) == 2
    monkeypatch.delenv("NMB_TEST_KEY")
    assert grade(ledger, address, destinations=(), replay=True) == rows
    ledger.write_text(ledger.read_text().splitlines(keepends=True)[0])
    with pytest.raises(ProviderError, match="model llm: 1 of 2 answers are not in its ledger"):
        grade(ledger, address, replay=True)


@pytest.mark.parametrize("destinations", [("local",), ("api.example.org",)])
def test_a_grader_that_was_skipped_when_it_was_recorded_stays_skipped(tmp_path, monkeypatch, destinations):
    ledger = tmp_path / "llm.jsonl"
    monkeypatch.delenv("NMB_TEST_KEY", raising=False)
    first = grade(ledger, "http://127.0.0.1:9/v1", destinations=destinations)
    assert ledger.read_bytes() == b""
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    again = grade(ledger, "http://127.0.0.1:9/v1", destinations=destinations, replay=True)
    assert [row.state for row in again] == [row.state for row in first] == [GradeState.SKIPPED] * 4


@pytest.mark.parametrize("count", [-5, 2**70, 10**30, 0.5, "12", [1]])
def test_a_ledger_that_holds_counts_which_nobody_can_have_counted_gives_its_answers_without_them(recorded, tmp_path, count):
    """Earlier versions stored a provider's counts unchecked: negative prices, or numbers too large for a table."""
    ledger, requests, model, rows = recorded
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    ledger.write_text("".join(json.dumps({**line, "prompt_tokens": count}) + "\n" for line in lines), encoding="utf-8")
    priced = model.model_copy(update={"prices": Prices(usd_per_million_prompt_tokens=1, usd_per_million_completion_tokens=1, dated="x")})
    again = ask(ledger, requests, priced, replay=True)
    unknown = {"prompt_tokens": None, "cost_usd": None}
    assert again == [replace(row, **unknown, calls=tuple(replace(call, **unknown) for call in row.calls)) for row in rows]
    write_records(tmp_path / "responses.parquet", Response, again, key=response_key)
    assert {row.completion_tokens for row in read_records(tmp_path / "responses.parquet", Response)} == {10, 20}


HALF = r"\ud83d"
"""Half of a surrogate pair as a JSON escape, as left by a cut-off emoji."""
FIELDS_ITEM, OPEN_ITEM = replace(PICTURE_ITEM, item_id="b/i1"), replace(ITEM, item_id="b/i1")
CHECKLIST = json.dumps({name.lower(): "x" for name in SECTIONS[ITEM.family]} | {"differential": [{"name": "glioma @", "for": "@"}]})


def put_text(ledger, text):
    """Replace the text of all lines of a ledger, in the form of versions that stored no digest."""
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    changed = [{name: value for name, value in line.items() if name != ANSWER_DIGEST} | {"text": text} for line in lines]
    ledger.write_text("".join(json.dumps(line) + "\n" for line in changed), encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "item", "read"),
    [
        ('{"class": "tumor @", "subtype": "@"}', FIELDS_ITEM, "tumor ?"),
        ('Here it is: {"class": "tumor @", "@": 1}', FIELDS_ITEM, "tumor ?"),
        ("Here it is: {'class': 'tumor @', 'subtype': None}", FIELDS_ITEM, "tumor ?"),
        (CHECKLIST, OPEN_ITEM, "glioma ?"),
    ],
    ids=["one object", "an object among words", "an object as Python writes it", "a checklist as JSON"],
)
def test_an_answer_whose_escapes_hold_half_a_surrogate_pair_is_scored_from_the_ledger_that_holds_it(tmp_path, text, item, read):
    """It would stop its model's job for good: the answer stays in the ledger, so every rerun would fail too."""
    with running_server() as server:
        model = model_config(api_base=server.address)
        ask(tmp_path / "m.jsonl", [request("i1")], model)
    put_text(tmp_path / "m.jsonl", text.replace("@", HALF))
    responses = ask(tmp_path / "m.jsonl", [request("i1")], model, replay=True)
    gold = replace(GOLD, item_id="b/i1")
    scores = score_responses(responses, {"b/i1": item}, {"b/i1": gold}, [], vocabulary=vocabulary())
    write_records(tmp_path / "scores.parquet", Score, scores, key=response_key)
    (score,) = read_records(tmp_path / "scores.parquet", Score)
    assert score.differential == (read,)
    assert score.parse_status != "failed"


def test_a_grade_whose_explanation_holds_half_a_surrogate_pair_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NMB_TEST_KEY", "k")
    with running_server() as server:
        grade(tmp_path / "llm.jsonl", server.address)
    put_text(tmp_path / "llm.jsonl", f'{{"main_condition": 1, "core_diagnosis": 0, "explanation": "good {HALF}"}}')
    grades = grade(tmp_path / "llm.jsonl", server.address, replay=True)
    assert {row.state for row in grades} == {GradeState.OK}
    write_records(tmp_path / "grades.parquet", Grade, grades, key=lambda row: (response_key(row), row.criterion))
    assert {row.explanation for row in read_records(tmp_path / "grades.parquet", Grade)} == {"good ?"}


def test_an_absent_ledger_is_not_a_skipped_grader(tmp_path):
    with pytest.raises(ProviderError, match=r"llm\.jsonl is not there"):
        grade(tmp_path / "llm.jsonl", "http://127.0.0.1:9/v1", replay=True)
