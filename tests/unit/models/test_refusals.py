"""A content filter's refusal is the model's behaviour, whatever its wording; a gateway's message is no answer, whatever its status."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fixtures.models import model_config, request, running_server
from fixtures.rule_server import RuleServer, exam_requests, given_inputs, rules_of
from fixtures.scoring import vocabulary
from neuralmedbench.models import causes, retry
from neuralmedbench.models.api.gateway_messages import is_gateway_message
from neuralmedbench.models.api.replies import refusal_of
from neuralmedbench.models.causes import cause_of
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.retry import CallError

REFUSALS = (
    (400, {"error": {"message": "The prompt triggers our content management policy.", "code": "content_filter"}}),
    (400, {"error": {"message": "Your request was rejected as a result of the safety system.", "type": "image_generation_user_error"}}),
    (400, {"error": {"message": "Invalid prompt: it may violate our usage policy.", "code": "invalid_prompt"}}),
    (400, {"code": "DataInspectionFailed", "message": "Output data may contain inappropriate content."}),
    (403, {"error": {"code": 403, "message": "Your input was flagged by moderation", "metadata": {"reasons": ["violence"]}}}),
    (400, {"error": {"code": 400, "message": "Blocked: PROHIBITED_CONTENT", "status": "INVALID_ARGUMENT"}}),
    (422, {"object": "error", "message": "This prompt violates our policies", "type": "invalid_request_error", "code": "3051"}),
    (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}),
    (400, {"message": "The request was blocked by a guardrail", "type": "guardrail_intervened"}),
    (200, {"error": {"message": "Output blocked by content filtering policy", "type": "invalid_request_error"}}),
)
NO_REFUSALS = (
    (400, {"error": {"message": "Your organization has been disabled for violating our usage policies."}}),
    (429, {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}),
    (503, {"error": {"message": "The content filter is overloaded.", "code": "content_filter_error"}}),
    (400, {"error": {"message": "The image is too large."}, "input": "flagged by moderation"}),
    (500, {"error": {"message": "Internal error"}}),
)


def rows_of(server: RuleServer, folder: Path, requests, **changes):
    model = model_config(**{"api_base": server.address, "max_attempts": 2, "concurrency": 4} | changes)
    return answer_requests(
        requests, ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=folder)
    )


@pytest.mark.parametrize(("status", "body"), REFUSALS)
@pytest.mark.parametrize("model_id", ["openai/m", "mistral/m"])
def test_a_filter_that_rejects_a_call_refuses_it_and_is_not_asked_again(tmp_path, status, body, model_id):
    with running_server(RuleServer([{"status": status, "body": body}])) as server:
        (row,) = rows_of(server, tmp_path, [request("i")], id=model_id)
        assert (row.state, row.text, row.error, len(server.bodies)) == ("refused", "", "", 1)
        assert row.finish_reason.partition(":")[0] == "content_filter"
        rows_of(server, tmp_path, [request("i")], id=model_id)
        assert len(server.bodies) == 1, "it is an answer, kept in the ledger"


@pytest.mark.parametrize(("status", "body"), NO_REFUSALS)
def test_what_another_call_may_pass_or_depends_on_the_account_is_no_refusal(status, body):
    content = json.dumps(body).encode()
    assert refusal_of(CallError("X", status, cause=cause_of(status, content)), content) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"code": "content_filter", "innererror": {"content_filter_result": {"hate": {"filtered": False}, "violence": {"filtered": True}}}}}, "violence"),
        ({"error": {"message": "flagged by moderation", "metadata": {"reasons": ["violence/graphic", "a whole sentence"]}}}, "violence/graphic"),
        ({"error": {"message": "PROHIBITED_CONTENT", "details": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}]}}, ""),
    ],
)  # fmt: skip
def test_the_categories_of_a_refusal_are_kept_and_no_sentence_of_it(body, reason):
    content = json.dumps(body).encode()
    refusal = refusal_of(CallError("X", 400, cause=cause_of(400, content)), content)
    assert refusal.finish_reason == f"content_filter{f': {reason}' if reason else ''}"


def test_the_category_of_a_refused_answer_is_kept(tmp_path):
    body = {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    body |= {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio", "explanation": "a sentence"}}
    server = RuleServer([{"body": body}])
    server.path = "/{path:.*}"
    with running_server(server):
        (row,) = rows_of(server, tmp_path, [request("i")], id="anthropic/m")
    assert (row.state, row.finish_reason) == ("refused", "refusal: bio")


@pytest.mark.skipif(not os.environ.get("NMB_FOUND_ANSWERS"), reason="NMB_FOUND_ANSWERS names no folder of published answers")
def test_the_published_wordings_are_all_refusals(tmp_path):
    cases = json.loads((Path(os.environ["NMB_FOUND_ANSWERS"]) / "policy-refusals" / "replies.json").read_text(encoding="utf-8"))
    for number, case in enumerate(cases):
        with running_server(RuleServer([{"status": case["status"], "body": case["body"]}])) as server:
            (row,) = rows_of(server, tmp_path, [request(f"i{number}")])
            assert (row.state, len(server.bodies)) == ("refused", 1), case["name"]


GATEWAYS = (
    "[ERROR] 503 upstream, retry 2 of 2",
    "upstream connect error or disconnect/reset before headers. reset reason: overflow",
    "upstream request timeout",
    "no healthy upstream",
    '{"detail":"Internal Server Error"}',
    '{"message": "Endpoint request timed out"}',
    '{"error": "Loading model", "code": 503}',
    "Service Unavailable",
    "The service is temporarily unavailable. Please try again later.",
    'API Error: 529 {"type":"overloaded_error"}',
    "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    "error code: 1015",
    "HTTP 502",
    "500: Internal Server Error",
    "504 Gateway Time-out",
    "litellm.Timeout: Connection timed out after 600 seconds",
    "openai.APIConnectionError: Connection error.",
    "RateLimitError: slow down",
    "An error occurred while processing your request. You can retry it.",
    "Sorry, something went wrong. Please try again later.",
    "The server is currently overloaded with other requests.",
    "Rate limit exceeded. Please try again in 20s",
    "Request failed with status code 503",
    "Connection error.",
    "The server had an error processing your request. Sorry about that!",
    "502 Server Error: Bad Gateway for url: https://example.org/v1/chat/completions",
    "Resource exhausted. Please try again later.",
    "We're experiencing high demand. Please try again.",
    '{"success": false, "error": "Internal error"}',
    '{"errors": [{"message": "Internal Server Error"}]}',
    "Post: context deadline exceeded",
    "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
)
ANSWERS = (
    "Timeout",
    "Overloaded",
    "Overload",
    "Iron overload",
    "Volume overload of the right ventricle",
    "Error",
    "Error in the urea cycle",
    "Inborn error of metabolism",
    "An error occurred during neuronal migration in the 12th week: lissencephaly",
    "Error: medication overdose",
    "Refractive error",
    "404",
    "500 ml of blood loss",
    "503 mg of carbamazepine",
    "Not found",
    "Gone",
    "Locked",
    "Locked-in syndrome",
    "Conflict",
    "Busy",
    "Unavailable",
    "The model is unavailable",
    "Rate-limiting enzyme deficiency",
    "The rate limit of conduction is lowered",
    "Connection lost between the hemispheres",
    "Disconnection syndrome",
    "Upstream stenosis of the carotid artery",
    "Something went wrong in the development of the corpus callosum: agenesis",
    "Time-out phenomenon",
    "System error: multiple system atrophy",
    "Quota",
    '{"diagnosis": "glioblastoma"}',
    '{"detail": "a ring-enhancing lesion"}',
    '{"type": "glioma", "status": "malignant"}',
    '{"errors": [{"code": "x", "significant": 1, "quote": "internal server error", "explanation": ""}]}',
    '{"main_condition": 0, "core_diagnosis": 0, "explanation": "The answer is an internal server error."}',
)


@pytest.mark.parametrize("text", GATEWAYS)
def test_a_message_of_a_gateway_is_no_answer(text):
    assert is_gateway_message(f"\n{text} ")


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_however_short_is_no_message_of_a_gateway(text):
    assert not is_gateway_message(text)


def test_no_name_of_the_vocabulary_is_a_message_of_a_gateway():
    names = [term for entry in vocabulary().diagnoses.values() for term in (entry.name, *entry.synonyms, *entry.abbreviations)]
    assert len(names) > 1000
    assert [name for name in names if is_gateway_message(name)] == []


def test_a_message_of_a_gateway_with_status_200_is_tried_again_and_then_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    rules = [{"if": "passes", "times": 1, "content": GATEWAYS[0]}, {"if": "stays", "content": GATEWAYS[1]}, {"content": "Glioma"}]
    with running_server(RuleServer(rules)) as server:
        rows = rows_of(server, tmp_path, [request("passes"), request("stays")])
    assert [(row.state, row.text, row.attempts) for row in rows] == [("ok", "Glioma", 2), ("failed", "", 2)]
    assert rows[1].error == f"BrokeOff (no status): {causes.ERROR_REPLY.words}"
    assert [entry.text for entry in read_ledger(tmp_path / "m.jsonl").values()] == ["Glioma"]


@given_inputs
def test_the_published_messages_of_gateways_are_failures(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    with running_server(RuleServer(rules_of("17-gateway-texts"))) as server:
        rows = rows_of(server, tmp_path, exam_requests("17-gateway-texts"))
    assert [row.state for row in rows] == ["failed"] * 5 + ["ok"] * 3
