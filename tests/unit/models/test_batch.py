"""Provider batch, against servers that another hand wrote from the providers' documentation: each request is answered once and paid for once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace

import pytest
from aiohttp import web

from fixtures.batch_kills import DIRECT, QUICK, Asking, kill_batches
from fixtures.batch_servers import AnthropicBatches, GeminiBatches, OpenAIBatches
from fixtures.models import model_config, picture, request, running_server
from fixtures.rule_server import FOUND, given_inputs
from neuralmedbench.cli.main import main
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.replies import refusal_of
from neuralmedbench.models.batch import collect
from neuralmedbench.models.batch.anthropic import AnthropicBatches as AnthropicClient
from neuralmedbench.models.batch.client import BATCH_ERROR, Reply
from neuralmedbench.models.batch.log import BatchLog, Chunk, ChunkState
from neuralmedbench.models.batch.openai import OpenAIBatches as OpenAIClient
from neuralmedbench.models.batch.openai import read_result as read_openai_line
from neuralmedbench.models.budget import NANO, account_of, check_paid, read_spend_log
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.retry import CallError
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import ResponseState

pytestmark = pytest.mark.slow

PROVIDERS = pytest.mark.parametrize("provider", [OpenAIBatches, AnthropicBatches, GeminiBatches], ids=lambda provider: provider.__name__)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("NMB_TEST_KEY", "sk-canary-batch")


class Asked(Asking):
    """What a run left of its money and its batches."""

    @property
    def states(self):
        return Counter(chunk.state for chunk in BatchLog(self.ledger).chunks.values())

    @property
    def spent(self):
        return read_spend_log(self.folder / "spending" / "money.jsonl").by_account[account_of(self.model)] / NANO


@pytest.fixture
def asking(tmp_path):
    return lambda server, **changes: Asked(type(server).__name__, server.address, tmp_path, **changes)


def items(number, **changes):
    return [request(f"i{place}", **changes) for place in range(number)]


def paid_once(server, rows):
    """Whether the server generated one answer for each call, by its own books, and nothing broke its protocol."""
    keys = {key for row in rows for key in row.call_keys}
    return server.violations == [] and set(server.paid) >= keys and all(server.paid[key] == 1 for key in keys)


def comparable(row):
    """Give a row without what may differ between a direct call and a batch: tier with its price, times, and how often was tried."""
    return replace(row, latency_s=None, cost_usd=None, called_on="", calls=())


@PROVIDERS
def test_answers_are_those_of_direct_calls_at_half_the_price(provider, asking, tmp_path):
    turns = (RequestTurn(text="What is it?", images=(picture(tmp_path, 1), picture(tmp_path, 2))), RequestTurn(text="And why?"))
    requests = [request("dialogue", *turns), *items(4, samples=2)]
    with running_server(provider()) as server:
        direct = asking(server, temperature=0.5, provider_downscale={"longest_side_px": 4})
        wanted = direct.run(requests, batch=None)
        direct.ledger.unlink()
        before, server.paid = dict(server.paid), Counter()
        found = direct.run(requests)
    assert before
    assert [comparable(row) for row in found] == [comparable(row) for row in wanted]
    assert [row.cost_usd for row in found] == pytest.approx([row.cost_usd / 2 for row in wanted])
    assert {call.service_tier for row in found for call in row.calls} == {"batch"}
    assert len(server.received_batches) == 2, "the second turn of the dialogue is a wave of its own"
    assert paid_once(server, found)
    # nothing stays at the provider
    assert server.files == {}
    assert "sk-canary" not in "".join(path.read_text() for path in direct.ledger.parent.iterdir() if path.is_file())


FAULTS = {
    "out of order": {"shuffled": True},
    "expired in part": {"expire_after": 4},
    "cancelled in part": {"cancel_after": 4},
    "busy when handed in": {"status_next": [429, 429]},
    "in progress": {"seconds_to_end": 0.3},
    "download breaks": {"cut_results": 1},
    "reply to the creation is lost": {"lose_reply_of": 1},
    "listed late": {"lose_reply_of": 1, "listing_hides_for_s": 0.5},
    "upload breaks": {"cut_upload": 1},
    "too many requests": {"max_requests": 3},
}


LOST = {"expired in part", "cancelled in part"}
"""Faults after which Google gives no results at all."""


@PROVIDERS
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_happens_each_request_is_answered_once_and_paid_for_once(provider, fault, asking):
    with running_server(provider()) as server:
        asks = asking(server, batch={**QUICK, "settle_after_s": 1.0 if fault == "listed late" else 0})
        for name, value in FAULTS[fault].items():
            setattr(server, name, value)
        rows = asks.run(items(10))
    if provider is GeminiBatches and fault in LOST:
        assert {row.state for row in rows} == {ResponseState.FAILED}
        assert asks.spent > 0, "what was perhaps charged stays spent"
        return
    assert [row.state for row in rows] == [ResponseState.OK] * 10, Counter(row.error for row in rows)
    assert paid_once(server, rows)
    assert asks.spent == pytest.approx(sum(row.cost_usd for row in rows), abs=1e-8)
    assert BatchLog(asks.ledger).open_chunks() == []
    assert server.files == {}


@PROVIDERS
def test_requests_that_the_provider_refuses_fail_and_the_others_are_answered(provider, asking):
    with running_server(provider()) as server:
        server.seconds_to_end = 0.5
        asks = asking(server)
        asks.run(items(6), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        (chunk,) = BatchLog(asks.ledger).open_chunks()
        bad = sorted(chunk.entries)
        server.fail_lines = {bad[0]: 400, bad[1]: 400, bad[2]: 500}
        rows = asks.run(items(6))
        assert Counter(row.state for row in rows) == {ResponseState.OK: 3, ResponseState.FAILED: 3}
        errors = Counter(row.error.removesuffix(" (500)").removesuffix(" (no status)") for row in rows if row.error)
        assert errors == {"BatchError (400)": 2, "BatchError": 1}
        assert len(server.received_batches) == 4, "an error of the provider is tried as often as a call, one of the request once"
        # the next run asks for what failed, and only for that
        server.fail_lines = 0.0
        rows = asks.run(items(6))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert paid_once(server, rows)
    assert asks.spent == pytest.approx(sum(row.cost_usd or 0 for row in rows), abs=1e-8)


@PROVIDERS
def test_a_filters_refusal_in_a_batch_is_the_one_of_a_direct_call(provider, asking):
    """Of all requests or of one: the state, the reason and the money are settled, and nothing is asked again."""
    words = "The prompt triggers our content management policy (content_filter)."
    with running_server(provider()) as server:
        server.seconds_to_end = 0.5
        asks = asking(server)
        asks.run(items(2), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        for line in server.received_batches[0].lines:
            line.wrong = words
        rows = asks.run(items(2))
        again = asks.run(items(2))
    assert [(row.state, row.error, row.finish_reason) for row in rows] == [(ResponseState.REFUSED, "", "content_filter")] * 2
    assert again == rows
    assert len(server.received_batches) == 1
    assert asks.spent == 0


@given_inputs
def test_the_published_error_file_is_read_as_refusals(tmp_path):
    for line in (FOUND / "15-filtered-in-a-batch" / "error_file.jsonl").read_text(encoding="utf-8").splitlines():
        result = read_openai_line(json.loads(line))
        refusal = refusal_of(result.error, result.body)
        assert (refusal.state, result.error.perhaps_paid) == ("refused", False)


def test_a_batch_that_its_provider_does_not_have_for_a_moment_is_looked_at_again(asking):
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.5
        asks = asking(server)
        asks.run(items(2), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        server.status_next = [404, 404]
        rows = asks.run(items(2))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert len(server.received_batches) == 1


def test_a_run_that_does_not_wait_hands_in_and_a_later_one_collects(asking, capfd):
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.5
        asks = asking(server)
        first = asks.run(items(5), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        assert {row.state for row in first} == {ResponseState.SKIPPED}
        assert all("which has not ended; the next run collects it" in row.error for row in first)
        assert "5 requests handed in and not collected; `nmb run retry` collects what has ended" in capfd.readouterr().err
        reserved = asks.spent
        assert reserved > 0
        rows = asks.run(items(5))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert len(server.received_batches) == 1
    assert asks.spent < reserved, "what was reserved is settled at the real price"


@PROVIDERS
def test_what_cannot_be_listed_stays_with_its_money_until_a_person_decides(provider, asking, monkeypatch, tmp_path, capsys):
    with running_server(provider()) as server:
        server.no_listing, server.lose_reply_of = True, 1
        asks = asking(server)
        rows = asks.run(items(4))
        assert {row.state for row in rows} == {ResponseState.SKIPPED}
        assert asks.states == {ChunkState.UNSETTLED: 1}
        reserved = asks.spent
        assert asks.run(items(4))[0].state is ResponseState.SKIPPED
        assert (len(server.received_batches), asks.spent) == (1, reserved)
        # the person looks
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "ledger").symlink_to(tmp_path / "ledger")
        monkeypatch.chdir(tmp_path)
        assert main(["model", "batches"]) == 0
        line = capsys.readouterr().out
        (chunk,) = BatchLog(asks.ledger).chunks
        assert f"b/m  {chunk}  -  unsettled  4 requests  {reserved:.2f} USD reserved" in line or "USD reserved" in line
        assert main(["model", "batches", "--release", chunk]) == 0
        assert "4 requests of" in capsys.readouterr().out
        rows = asks.run(items(4))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert asks.spent > reserved, "what was perhaps charged stays spent"


def test_a_state_that_nobody_knows_ends_with_a_person_and_not_with_a_job_that_waits_for_ever(asking, monkeypatch):
    monkeypatch.setattr(collect, "LONGEST_H", 0.0)
    with running_server(OpenAIBatches()) as server:
        server.states = ["daydreaming"]
        rows = asking(server).run(items(2))
    assert {row.state for row in rows} == {ResponseState.SKIPPED}
    assert asking(server).states == {ChunkState.UNSETTLED: 1}


def test_an_unsettled_batch_that_has_ended_after_all_is_collected(asking, monkeypatch):
    monkeypatch.setattr(collect, "LONGEST_H", 0.0)
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.3
        asks = asking(server)
        assert {row.state for row in asks.run(items(2))} == {ResponseState.SKIPPED}
        assert asks.states == {ChunkState.UNSETTLED: 1}
        time.sleep(0.4)
        rows = asks.run(items(2))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert len(server.received_batches) == 1


def test_a_key_that_is_refused_while_a_batch_goes_on_ends_the_wait_and_loses_nothing(asking):
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.3
        asks = asking(server)
        asks.run(items(2), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        server.status_next = [401]
        rows = asks.run(items(2))
        assert {row.state for row in rows} == {ResponseState.SKIPPED}
        assert all("could not be looked at (BatchError (401)" in row.error for row in rows)
        assert {row.state for row in asks.run(items(2))} == {ResponseState.OK}
    assert len(server.received_batches) == 1


def test_features_in_beta_that_a_direct_call_names_are_named_for_the_batch():
    class Http:
        async def once(self, method, url, **sent):
            self.sent = sent
            return Reply(200, {}, b'{"id": "msgbatch_1"}')

    http = Http()
    client = AnthropicClient(http, "https://api.anthropic.com")
    lines = [client.line(name, b"{}", {"anthropic-beta": betas}) for name, betas in (("a", "x,y"), ("b", "y"))]
    assert asyncio.run(client.submit(Chunk(id="c"), lines, print)) == "msgbatch_1"
    assert http.sent["headers"] == {"content-type": "application/json", "anthropic-beta": "x,y"}


def test_a_batch_that_fails_as_a_whole_is_tried_as_often_as_a_call_and_costs_nothing(asking):
    with running_server(OpenAIBatches()) as server:
        server.fail_validation = True
        asks = asking(server)
        rows = asks.run(items(3))
    assert {row.state for row in rows} == {ResponseState.FAILED}
    assert [len(batch.lines) for batch in server.received_batches] == [3] + [1] * 9, (
        "all together, then each by itself, until ten in a row have failed"
    )
    assert (asks.spent, sum(server.paid.values())) == (0, 0)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_hands_in_nothing_more_and_costs_nothing(asking, status):
    with running_server(OpenAIBatches()) as server:
        server.status_next = [status] * 20
        asks = asking(server, batch={**QUICK, "max_requests": 2})
        rows = asks.run(items(6))
    assert {row.state for row in rows} <= {ResponseState.FAILED, ResponseState.SKIPPED}
    assert any(f"({status})" in row.error for row in rows)
    assert (asks.spent, server.received_batches) == (0, [])


def test_a_cap_is_never_exceeded_and_the_rest_is_over_budget(asking):
    with running_server(OpenAIBatches()) as server:
        asks = asking(server)
        asks.run(items(1))
        one = asks.spent
        asks = asking(server, max_cost_usd=0.02)
        rows = asks.run(items(40))
        assert asks.spent <= 0.02
    states = Counter(row.state for row in rows)
    assert states[ResponseState.OVER_BUDGET] > 0
    assert states[ResponseState.OK] > 1
    assert {row.error for row in rows if row.state is ResponseState.OVER_BUDGET} == {"max_cost_usd"}
    assert one < 0.02


def test_batch_is_a_permission_of_its_own_and_needs_prices_of_its_own():
    model = model_config(
        api_base="https://host.example/v1", batch={}, prices={**DIRECT, "dated": "x"}, max_cost_usd=1, api_key_env="NMB_TEST_KEY"
    )
    with pytest.raises(ConfigError, match=r"`batch` needs a permission of its own.*write `batch://host\.example` in allowed_destinations"):
        check_destination(model, ["host.example"])
    assert check_destination(model, ["host.example", "batch://host.example"]) == "host.example"
    with pytest.raises(ConfigError, match="its requests would go to"):
        check_destination(model, ["batch://host.example"])
    other = model.model_copy(update={"id": "mistral/m"}).named("m")
    with pytest.raises(ConfigError, match=r"`batch` is spoken with openai/.*not with mistral/"):
        check_destination(other, ["host.example", "batch://host.example"])
    with pytest.raises(ConfigError, match="service tier `batch`, which has no prices"):
        check_paid(model)


def test_the_key_of_an_answer_is_that_of_a_direct_call(asking):
    with running_server(OpenAIBatches()) as server:
        asks = asking(server)
        rows = asks.run(items(2))
        again = asks.run(items(2), batch=None)
    assert [row.call_keys for row in again] == [row.call_keys for row in rows]
    assert sum(server.paid.values()) == 2


@PROVIDERS
def test_a_structured_answer_is_read_with_the_schema_that_was_sent(provider, asking):
    """litellm asks some models for it as a tool, and unwraps it only where the schema is given again."""
    schema = json.dumps({"type": "object", "properties": {"diagnosis": {"type": "string"}}, "required": ["diagnosis"]})
    asked = [replace(one, runner="structured", answer_schema=schema) for one in items(2)]
    with running_server(provider()) as server:
        asks = asking(server, structured_output="json_schema")
        wanted = asks.run(asked, batch=None)
        asks.ledger.unlink()
        found = asks.run(asked)
    assert [comparable(row) for row in found] == [comparable(row) for row in wanted]


def test_batch_taken_out_of_the_yaml_pays_for_nothing_again(asking):
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.3
        asks = asking(server)
        asks.run(items(2), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        rows = asks.run(items(3), batch=None)
        assert Counter(row.state for row in rows) == {ResponseState.SKIPPED: 2, ResponseState.OK: 1}
        assert any("put `batch` back into its yaml, and the next run collects it" in row.error for row in rows)
        assert {row.state for row in asks.run(items(3))} == {ResponseState.OK}
    assert set(server.paid.values()) == {1}


def test_copies_that_share_a_ledger_by_a_link_share_its_batches(asking, tmp_path):
    other = tmp_path / "copy" / "ledger" / "b" / "m.jsonl"
    other.parent.mkdir(parents=True)
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.3
        asks = asking(server)
        asks.run(items(2), batch=asks.model.batch.model_copy(update={"wait_hours": 0}))
        other.symlink_to(asks.ledger)
        copy = asking(server)
        copy.ledger = other
        assert {row.state for row in copy.run(items(2))} == {ResponseState.OK}
    assert len(server.received_batches) == 1


def test_what_a_kill_after_the_last_answer_left_is_collected_paid_and_deleted(asking, monkeypatch):
    with running_server(OpenAIBatches()) as server:
        asks = asking(server)
        with monkeypatch.context() as patched:
            patched.setattr(collect.BatchCollector, "_pay", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                asks.run(items(2))
        assert len(read_ledger(asks.ledger)) == 2
        assert server.files
        rows = asks.run(items(2))
    assert (server.files, asks.states) == ({}, {ChunkState.COLLECTED: 1})
    assert asks.spent == pytest.approx(sum(row.cost_usd for row in rows), abs=1e-8)


def test_files_that_could_not_be_deleted_are_deleted_by_the_next_run(asking, monkeypatch, capfd):
    async def refuses(*_):
        raise CallError(BATCH_ERROR, 500)

    with running_server(OpenAIBatches()) as server:
        asks = asking(server)
        with monkeypatch.context() as patched:
            patched.setattr(OpenAIClient, "delete", refuses)
            asks.run(items(2))
        assert len(server.files) == 2
        assert "could not be deleted (BatchError (500)); the next run tries again" in capfd.readouterr().err
        asks.run(items(3))
    assert server.files == {}


HOSTILE = [
    "[]", "null", "7", '"x"', '{"custom_id": 7}', '{"custom_id": "KEY", "response": []}', '{"custom_id": "KEY", "response": "x"}',
    '{"custom_id": "KEY", "response": {"status_code": "ok", "body": {}}}', '{"custom_id": "KEY", "response": {"status_code": 1e999}}',
    '{"custom_id": "KEY", "error": "x"}', '{"custom_id": "KEY", "response": {"status_code": 200, "body": null}}', f'{{"custom_id": {"9" * 5000}}}',
]  # fmt: skip


def test_results_of_another_form_than_the_documented_cost_their_request_alone(tmp_path):
    class Hostile(OpenAIBatches):
        async def content(self, request):
            file = self.stored(request.match_info["id"])
            whole = [json.loads(line) for line in file.content.splitlines()]
            lines = [one.replace("KEY", whole[place % 2]["custom_id"]) for place, one in enumerate(HOSTILE)]
            return web.Response(body="\n".join([*lines, *map(json.dumps, whole[2:])]).encode())

    with running_server(Hostile()) as server:
        asks = Asked("OpenAIBatches", server.address, tmp_path, max_attempts=1)
        rows = asks.run(items(5))
    assert Counter(row.state for row in rows) == {ResponseState.OK: 3, ResponseState.FAILED: 2}
    assert asks.spent > sum(row.cost_usd or 0 for row in rows), "what was perhaps charged stays spent"


def test_a_key_that_a_server_gives_as_a_name_reaches_no_log(tmp_path, capfd):
    class Repeats(OpenAIBatches):
        async def create(self, request):
            await super().create(request)
            return web.json_response({"id": "sk-canary-batch", "object": "batch"})

    with running_server(Repeats()) as server:
        asks = Asked("OpenAIBatches", server.address, tmp_path)
        assert {row.state for row in asks.run(items(2))} == {ResponseState.OK}, "the batch is found by its mark"
    log = (asks.ledger.parent / ".m.batches").read_text()
    assert "canary" not in log + capfd.readouterr().err + asks.ledger.read_text()


def test_killed_between_the_upload_and_its_note_nothing_is_paid_for_twice(tmp_path):
    with running_server(OpenAIBatches()) as server:
        server.seconds_to_end = 0.2
        found = kill_batches(server, tmp_path, number=20, chunk=10, kills=1, seed=1)
    assert (found.answers, found.kills, found.paid_twice, found.violations) == (20, 1, 0, 0)
