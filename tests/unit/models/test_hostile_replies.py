"""Replies that harm: bodies without end, errors in place of an answer, lines of a ledger that no reader survives."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib

import pytest
from aiohttp import web

from fixtures.models import Server, model_config, reply, request, running_server
from neuralmedbench.errors import ConfigError
from neuralmedbench.models import causes, retry
from neuralmedbench.models.api import replies, wire
from neuralmedbench.models.budget import read_spend_log
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun, RunLimits
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.runtime.append_log import read_log

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20
ONE_DOLLAR_A_CALL = {
    "prices": {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "x"},
    "max_tokens": 1000,
    "max_cost_usd": 100,
}


class Says(Server):
    """Answers every request with these bytes, or with the return value of a function."""

    def __init__(self, body, status=200, **headers):
        super().__init__()
        self.body, self.status, self.headers_of_reply = body, status, headers

    async def handle(self, asked):
        self.bodies.append(await asked.json())
        headers = {name.replace("_", "-"): value for name, value in self.headers_of_reply.items()}
        return web.Response(body=self.body, status=self.status, content_type="application/json", headers=headers)


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that asks a server once per item, and returns the rows and the server's count of requests."""
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)

    def asking(server, items=("i1",), **changes):
        with running_server(server) as running:
            model = model_config(**{"api_base": running.address, "max_attempts": 3, "concurrency": 1, **ONE_DOLLAR_A_CALL, **changes})
            control = RunLimits(folder=tmp_path / "spending")
            run = ModelRun(
                model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path, control=control
            )
            return answer_requests([request(item) for item in items], run), len(running.bodies)

    return asking


def body_of(text, reason="stop"):
    return json.dumps(reply(text, reason)).encode()


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "deflate-raw"])
def test_a_body_without_end_is_neither_held_nor_kept_and_not_asked_for_again(ask, monkeypatch, encoding):
    """Before and after it is inflated: 0.4 MB on the wire took 2.5 GB of memory, and a line of 400 MB in the ledger."""
    monkeypatch.setattr(wire, "LONGEST_REPLY", MEBIBYTE)
    body = [json.dumps(reply("")).encode().replace(b'"content": "', b'"content": "' + b"a" * MEBIBYTE), *[b"a" * MEBIBYTE] * 63]
    if encoding:
        packer = zlib.compressobj(wbits={"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS, "deflate-raw": -zlib.MAX_WBITS}[encoding])
        body = [*map(packer.compress, body), packer.flush()]
        assert sum(map(len, body)) < MEBIBYTE
    packed = b"".join(body if encoding else body[:2])
    tracemalloc.start()
    rows, calls = ask(Says(packed, **({"Content_Encoding": encoding.partition("-")[0]} if encoding else {})))
    most_held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(row.state, row.error) for row in rows] == [(ResponseState.FAILED, "TooLong (no status)")]
    assert calls == 1, "the same call would bring the same body, and each may be charged"
    assert most_held < 16 * MEBIBYTE


def test_a_compressed_answer_is_read_as_before(ask):
    for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        rows, _ = ask(Says(pack(body_of(f"infarct {encoding}")), Content_Encoding=encoding), items=[encoding])
        assert [(row.state, row.text) for row in rows] == [(ResponseState.OK, f"infarct {encoding}")]


def test_the_overlong_page_of_a_failing_server_is_a_failure_of_its_status(ask, monkeypatch):
    monkeypatch.setattr(wire, "LONGEST_REPLY", MEBIBYTE)
    rows, calls = ask(Says(b"<html>" + b"x" * 2 * MEBIBYTE, status=503))
    assert rows[0].error.endswith("(503)")
    assert calls == 3


def test_the_longest_kept_answer_is_cut_and_counts_as_cut_off(ask, monkeypatch, tmp_path):
    monkeypatch.setattr(replies, "LONGEST_ANSWER", 1000)
    rows, calls = ask(Says(body_of("a" * 5000)))
    assert [(row.state, len(row.text), row.finish_reason) for row in rows] == [(ResponseState.TRUNCATED, 1000, "length")]
    assert calls == 1
    assert len((tmp_path / "m.jsonl").read_bytes()) < 4000


ERRORS = [
    "Error: upstream rate limit",
    "error: the request timed out",
    "Error: Too Many Requests, please slow down.",
    "502 Bad Gateway",
    "HTTP/1.1 503 Service Unavailable",
    "Error: 500 Internal Server Error",
    "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center><hr>nginx</body>\n</html>\n",
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>504 Gateway Timeout</title></head><body>…</body></html>',
    '{"error": {"message": "Upstream idle timeout", "type": "upstream_error", "code": 504}}',
]


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_in_place_of_an_answer_is_a_failure_that_may_have_been_charged(ask, tmp_path, text):
    rows, calls = ask(Says(body_of(text)))
    assert [(row.state, row.error) for row in rows] == [(ResponseState.FAILED, f"BrokeOff (no status): {causes.ERROR_REPLY.words}")]
    assert calls == 3
    assert read_ledger(tmp_path / "m.jsonl") == {}


def test_a_choice_with_an_error_of_its_own_is_a_failure_though_it_says_stop(ask):
    whole = reply("The lesion is in the")
    whole["choices"][0]["error"] = {"code": 502, "message": "upstream"}
    rows, calls = ask(Says(json.dumps(whole).encode()))
    assert [(row.state, calls) for row in rows] == [(ResponseState.FAILED, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "Error: I cannot see a lesion on these pictures.",
        "Error in the previous reading: the connection of the thalamus",
        "500 ml",
        "404",
        "Bad gateway of the stroke: the internal capsule",
        "502 Bad Gateway is what the server said, but the diagnosis is glioblastoma",
        '{"error": "no lesion"}',
        '{"error": {"message": "x"}, "diagnosis": "glioma"}',
        "<html><title>Report</title>glioma</html>",
        "1. Error of neuronal migration\n2. Rate limit",
    ],
)
def test_what_may_be_an_answer_is_kept_as_one(ask, text):
    rows, calls = ask(Says(body_of(text)))
    assert [(row.state, row.text, calls) for row in rows] == [(ResponseState.OK, text, 1)]


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": 1.5, "completion_tokens": 0.5}',
        '{"prompt_tokens": NaN, "completion_tokens": Infinity}',
        '{"prompt_tokens": "many", "completion_tokens": {}}',
        '{"prompt_tokens": 1e308, "completion_tokens": -1e308, "total_tokens": 1e-308}',
        '{"prompt_tokens": [[]], "completion_tokens_details": {"reasoning_tokens": NaN}}',
    ],
)
def test_token_counts_that_are_none_keep_the_answer_and_the_reserved_amount(ask, usage):
    whole = body_of("glioma").replace(json.dumps(reply("")["usage"]).encode(), usage.encode())
    whole = whole.replace(b'"finish_reason"', b'"logprobs": {"content": [{"token": "g", "logprob": "NaN"}]}, "finish_reason"')
    rows, calls = ask(Says(whole), items=["i1", "i2", "i3"], max_cost_usd=2)
    assert [(row.state, row.cost_usd) for row in rows] == [(ResponseState.OK, None)] * 2 + [(ResponseState.OVER_BUDGET, None)]
    assert calls == 2


def test_brackets_without_end_in_a_ledger_or_a_spending_log_cost_their_line_only(ask, tmp_path):
    ask(Says(body_of("glioma")))
    ledger = tmp_path / "m.jsonl"
    deep = b"[" * 200_000 + b"\n"
    ledger.write_bytes(deep + ledger.read_bytes() + deep)
    assert [entry.text for entry in read_ledger(ledger).values()] == ["glioma"]
    rows, calls = ask(Says(body_of("another")))
    assert [(row.text, calls) for row in rows] == [("glioma", 0)]
    log = tmp_path / "money.jsonl"
    log.write_bytes(deep + b'{"usd": 1}\n')
    assert read_log(log) == [{"usd": 1}]


def test_a_key_with_a_line_end_sends_nothing_costs_nothing_and_is_not_shown(ask, tmp_path, monkeypatch):
    """Every attempt was booked as perhaps paid, with `NoReply` as the only word."""
    monkeypatch.setenv("NMB_TEST_KEY", "sk-canary\n")
    server = Says(body_of("glioma"))
    with pytest.raises(ConfigError, match="model m: HTTP does not allow its address or its key as they are, nothing was sent") as caught:
        ask(server, api_key_env="NMB_TEST_KEY")
    assert "canary" not in str(caught.value)
    assert server.bodies == []
    assert read_spend_log(tmp_path / "spending" / "money.jsonl").by_account.total() == 0
