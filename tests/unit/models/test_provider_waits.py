"""A provider that says how long to wait is waited for; a quota of the day ends the run at once, and nobody is told to pay for a minute."""

from __future__ import annotations

import datetime
import json

import pytest

from fixtures.models import model_config, request, running_server
from fixtures.rule_server import RuleServer, exam_requests, given_inputs, rules_of
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.causes import DAY_LIMIT, MINUTE_LIMIT, NO_CREDIT, TOO_LONG
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.provider_waits import asked_wait_s, failed_call

NOW = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.UTC)
IN_30_S = "2026-11-22T12:00:30Z"


def google(quota: str, **details):
    said = "You exceeded your current quota, please check your plan and billing details."
    violations = [{"quotaMetric": "generate_requests", "quotaId": quota, "quotaValue": "15"}]
    return {"error": {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": [{"violations": violations}, details]}}


def openai(message: str, code: str = "rate_limit_exceeded"):
    return {"error": {"message": message, "type": "tokens", "param": None, "code": code}}


MINUTE = google("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", retryDelay="1s")
DAY = google("GenerateRequestsPerDayPerProjectPerModel", retryDelay="34s")
OF_TOKENS = "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000. Please try again in {}. See account/billing."
OF_DAY = "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200. Please try again in {}."


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (MINUTE, 1),
        (google("x", retryDelay="21.418234355s"), 21.418234355),
        ({"error": {"details": [{"retryDelay": {"seconds": 9}}]}}, 9),
        ({"error": {"message": "Please retry in 21.4s."}}, 21.4),
        (openai(OF_TOKENS.format("12s")), 12),
        (openai(OF_TOKENS.format("120ms")), 0.12),
        (openai(OF_TOKENS.format("6m0s")), 360),
        (openai(OF_TOKENS.format("1h2m3.5s")), 3723.5),
        ({"message": "Token limit exceeded. Please retry after 20 seconds."}, 20),
        ({"detail": "Please wait 1 minute and 30 seconds"}, 90),
        ({"error": {"message": "slow down", "metadata": {"retry_after_ms": 1500}}}, 1.5),
        ({"error": {"message": "The patient should try again in the morning, 12 s after the drip."}}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_in_the_body_is_read(body, seconds, status):
    assert asked_wait_s(status, {}, json.dumps(body).encode(), NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0"}, 1),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "9s"}, 360),
        ({"x-ratelimit-reset-requests": "23h", "x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"anthropic-ratelimit-requests-reset": IN_30_S, "anthropic-ratelimit-requests-remaining": "0"}, 30),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 20)}, 20),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() + 20) * 1000)}, 20),
        ({"ratelimit-reset": "45"}, 45),
        ({"x-ratelimit-limit-requests": "45"}, None),
        ({"x-ratelimit-reset-requests": "soon"}, None),
        ({"retry-after": "3", "x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 3),
    ],
)
def test_a_wait_in_the_headers_of_a_limit_is_read(headers, seconds):
    assert asked_wait_s(429, headers, b"", NOW) == seconds
    assert asked_wait_s(500, headers, b"", NOW) == (3 if "retry-after" in headers else None), "an error that is no limit names them, too"


@pytest.mark.parametrize(
    ("body", "cause", "may_pass"),
    [
        (MINUTE, MINUTE_LIMIT, True),
        (DAY, DAY_LIMIT, False),
        (google("GenerateRequestsPerDayPerProject"), DAY_LIMIT, False),
        (openai(OF_TOKENS.format("12s")), MINUTE_LIMIT, True),
        (openai(OF_DAY.format("8.64s")), DAY_LIMIT, True),
        (openai(OF_DAY.format("7m12s")), DAY_LIMIT, False),
        (openai("Rate limit exceeded: free-models-per-day"), DAY_LIMIT, False),
        (google("x", retryDelay="41000s"), DAY_LIMIT, False),
        (openai("You exceeded your current quota, please check your plan.", "insufficient_quota"), NO_CREDIT, False),
        ({"error": {"message": "Resource has been exhausted (e.g. check quota)."}}, MINUTE_LIMIT, True),
    ],
)
def test_a_limit_of_a_minute_of_the_day_and_credit_are_told_apart(body, cause, may_pass):
    error = failed_call("RateLimitError", 429, {}, json.dumps(body).encode())
    assert (error.cause, error.may_pass_later) == (cause.words, may_pass)
    assert ("top up" in cause.step) == (cause is NO_CREDIT)


def test_a_request_that_is_too_large_is_no_limit_of_a_minute():
    body = json.dumps(openai("The prompt is too long: reduce the length of the messages, tokens per minute do not matter")).encode()
    assert failed_call("BadRequestError", 400, {}, body).cause == TOO_LONG.words


def run_of(server: RuleServer, folder, **changes) -> ModelRun:
    model = model_config(**{"api_base": server.address, "max_attempts": 4, "concurrency": 1} | changes)
    return ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=0.05, root=folder)


@pytest.mark.parametrize("model_id", ["openai/m", "mistral/m"])
def test_a_limit_of_a_minute_is_waited_for_until_all_is_answered(tmp_path, model_id):
    rules = [{"times": 5, "status": 429, "body": MINUTE}, {"content": "ANSWER: A"}]
    with running_server(RuleServer(rules)) as server:
        rows = answer_requests([request(f"i{number}") for number in range(3)], run_of(server, tmp_path, id=model_id))
    assert [row.state for row in rows] == ["ok"] * 3
    assert len(server.bodies) == 8


@pytest.mark.parametrize(
    ("body", "cause"), [(DAY, DAY_LIMIT), (openai("You exceeded your current quota", "insufficient_quota"), NO_CREDIT)]
)
def test_what_is_used_up_for_the_day_ends_the_run_within_one_call(tmp_path, body, cause):
    rules = [{"times": 2, "content": "ANSWER: A"}, {"status": 429, "body": body}]
    with running_server(RuleServer(rules)) as server, pytest.raises(ProviderError, match=f"{cause.words}.*{cause.step}"):
        answer_requests([request(f"i{number}") for number in range(9)], run_of(server, tmp_path))
    assert len(server.bodies) == 3


@given_inputs
def test_the_published_refusals_of_a_minute_and_of_the_day(tmp_path):
    (refused, _) = rules_of("08-wait-in-the-body", "minute.json")
    error = failed_call("RateLimitError", refused["status"], {}, json.dumps(refused["body"]).encode())
    assert (error.retry_after_s, error.cause, error.may_pass_later) == (21, MINUTE_LIMIT.words, True)
    with running_server(RuleServer(rules_of("08-wait-in-the-body", "day.json"))) as server:
        with pytest.raises(ProviderError, match=f"5 of 8 answers failed .*{DAY_LIMIT.words}"):
            answer_requests(exam_requests("08-wait-in-the-body"), run_of(server, tmp_path))
        assert len(server.bodies) == 4
