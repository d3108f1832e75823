"""Why a server refused a call: recognised in messages that servers really sent, and never a word of them shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.models import model_config, request, running_server
from neuralmedbench.errors import ProviderError
from neuralmedbench.models import causes, retry
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.samples import MissingAnswer, SampleWalk, response_row
from neuralmedbench.records.responses import ResponseState

ROOT = Path(__file__).parents[3]
REFUSALS = [json.loads(line) for line in (ROOT / "tests/fixtures/refusals.jsonl").read_text(encoding="utf-8").splitlines()]
"""Replies that servers sent, as people published them in issues and vendors in their documentation, with what a person says their cause is."""
SECRET = "Mustermann-Zebra-77"
TOO_MANY = f"At most 10 image(s) may be provided in one request, got 12 by {SECRET}."
OTHER_LIMIT = f"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead. {SECRET}"


def words_of(cause: str) -> str:
    if cause == "RENAMED":
        return causes.RENAMED
    return getattr(causes, cause).words if cause.isupper() else causes.REFUSED.format(cause) if cause else ""


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal['cause'] or 'none'}-{refusal['source'][-24:]}")
def test_the_cause_of_a_refusal_is_recognised(refusal):
    assert causes.cause_of(refusal["status"], refusal["body"].encode()) == words_of(refusal["cause"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe not text",
        b"[" * 100_000,
        json.dumps({"error": {"message": "Internal error"}, "input": "too many images, invalid api key"}).encode(),
        json.dumps({"error": {"message": "Request contains an invalid argument."}}).encode(),
        json.dumps({"choices": [{"message": {"content": "The prompt is too long and the temperature must be lowered."}}]}).encode(),
        json.dumps(
            {"error": {"message": json.dumps({"messages": [{"content": "At 38 degrees"}], "temperature": 0.5, "seed": 1})}}
        ).encode(),
    ],
)
def test_what_says_nothing_or_repeats_the_request_has_no_cause(body):
    assert causes.cause_of(400, body) == ""


def test_every_cause_has_a_next_step():
    for cause in causes.CAUSES:
        assert causes.next_step(f"BadRequestError (400): {cause.words}") == cause.step
    for name in causes.PARAMETERS:
        assert causes.next_step(f"BadRequestError (400): {causes.REFUSED.format(name)}")
    assert "`max_tokens_parameter: max_completion_tokens`" in causes.next_step(f"X (400): {causes.RENAMED}")
    assert causes.next_step("BadRequestError (400)") == ""


def run_of(server, folder, fraction=0.05, **changes):
    model = model_config(**{"api_base": server.address, "max_attempts": 2, "concurrency": 8, "timeout_s": 30} | changes)
    return ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=fraction, root=folder)


@pytest.mark.parametrize(("message", "words"), [(TOO_MANY, causes.TOO_MANY_PICTURES.words), (OTHER_LIMIT, causes.RENAMED)])
def test_the_cause_and_the_next_step_are_shown_and_no_word_of_the_server(tmp_path, capsys, message, words):
    with running_server() as server:
        server.modes, server.message = ["400"], message
        run = run_of(server, tmp_path)
        with pytest.raises(ProviderError) as stopped:
            answer_requests([request(f"i{number}") for number in range(3)], run)
        rows = answer_requests([request(f"i{number}") for number in range(3)], run_of(server, tmp_path, None))
    line = str(stopped.value)
    assert f"3 of 3 answers failed (most often BadRequestError (400): {words})" in line
    assert causes.next_step(words) in line
    assert "kept" not in line, "none was answered"
    walk = SampleWalk(request("i0"), run.model, 0)
    shown = explain(request("i0"), run.model, {}, rows=rows)
    assert causes.next_step(words) in shown
    stored = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file())
    row = response_row(walk, MissingAnswer(ResponseState.FAILED, rows[0].error, 1, "local"))
    for text in (line, shown, stored, repr(rows), repr(row), *capsys.readouterr()):
        assert SECRET not in text


@pytest.mark.parametrize(("message", "words", "calls"), [("", causes.ERROR_REPLY.words, 2), (TOO_MANY, causes.TOO_MANY_PICTURES.words, 1)])
def test_an_error_as_the_reply_has_a_cause_and_is_tried_again_only_if_that_may_help(tmp_path, message, words, calls):
    with running_server() as server:
        server.modes, server.message = ["200"], message
        (row,) = answer_requests([request("i")], run_of(server, tmp_path, None))
        assert (row.state, row.error) == (ResponseState.FAILED, f"ErrorReply (200): {words}")
        assert len(server.bodies) == calls


def test_a_server_whose_first_replies_are_all_errors_is_not_asked_on(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    with running_server() as server:
        server.modes = ["200"]
        with pytest.raises(ProviderError, match="400 of 400 answers failed"):
            answer_requests([request(f"i{number}") for number in range(400)], run_of(server, tmp_path))
        assert len(server.bodies) <= 60, "of 800: two attempts for each of the first 21 answers, and those in flight"


@pytest.mark.parametrize(("message", "most"), [(OTHER_LIMIT, 20), (TOO_MANY, 30), ("", 30)])
def test_a_server_that_refuses_its_first_calls_for_one_reason_is_not_asked_on(tmp_path, message, most):
    """A reason that may depend on the request is waited for until the run has failed anyway: here after 20 of 400."""
    with running_server() as server:
        server.modes, server.message = ["400"], message or "no"
        with pytest.raises(ProviderError, match="400 of 400 answers failed"):
            answer_requests([request(f"i{number}") for number in range(400)], run_of(server, tmp_path))
        assert len(server.bodies) <= most
        server.modes = ["ok"]
        assert len(answer_requests([request(f"i{number}") for number in range(400)], run_of(server, tmp_path))) == 400
    assert len(server.answered) == 400


def test_a_server_that_has_answered_once_is_asked_on(tmp_path):
    with running_server() as server:
        server.modes, server.message = ["ok", "400"], OTHER_LIMIT
        with pytest.raises(ProviderError):
            answer_requests([request(f"i{number}") for number in range(60)], run_of(server, tmp_path, concurrency=1))
        assert len(server.bodies) == 60


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_the_limit_of_an_answer_is_sent_under_the_name_that_the_server_takes(tmp_path, name, provider):
    with running_server() as server:
        answer_requests([request("i")], run_of(server, tmp_path, id=f"{provider}/m", max_tokens=77, max_tokens_parameter=name))
    sent = server.bodies[0]
    assert {key: sent[key] for key in sent if key.startswith("max_")} == {name: 77}


def test_the_name_of_the_limit_changes_no_key(tmp_path):
    """It changes how the question is put, not what is asked: no answer is paid for twice."""
    with running_server() as server:
        rows = answer_requests([request("i")], run_of(server, tmp_path))
        assert answer_requests([request("i")], run_of(server, tmp_path, max_tokens_parameter="max_completion_tokens")) == rows
        assert len(server.bodies) == 1
