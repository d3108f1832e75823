"""The loopback servers of batch interfaces speak the real protocols: the providers' own SDKs work with them."""

from __future__ import annotations

import io
import json
import time
from collections import Counter

import httpx
import openai
import pytest

from fixtures.anthropic_batches import AnthropicBody
from fixtures.batch_server import digest
from fixtures.batch_servers import AnthropicBatches, GeminiBatches, OpenAIBatches
from fixtures.gemini_batches import GeminiBody
from fixtures.models import running_server
from neuralmedbench.models.api.through_litellm import import_litellm

SERVERS = [OpenAIBatches, AnthropicBatches, GeminiBatches]
KEYS = ["a", "b", "c", "d"]


def sdk(module):
    """Give a module of an SDK that is in no lock: `pip install anthropic google-genai` into an environment of your own runs these tests."""
    return pytest.importorskip(module, reason=f"the SDK with {module} is not installed")


def body_of(server, text):
    if isinstance(server, GeminiBatches):
        return {"contents": [{"role": "user", "parts": [{"text": text}]}], "generationConfig": {"maxOutputTokens": 50}}
    return {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}


class Raw:
    """What a client sends, without any SDK, to each of the servers."""

    def __init__(self, server):
        self.server = server
        self.kind = type(server).__name__
        headers = {
            "OpenAIBatches": {"Authorization": "Bearer k"},
            "AnthropicBatches": {"x-api-key": "k", "anthropic-version": "2023-06-01"},
            "GeminiBatches": {"x-goog-api-key": "k"},
        }[self.kind]
        self.http = httpx.Client(base_url=server.address, headers=headers)

    def direct(self, text):
        path = {"OpenAIBatches": "/chat/completions", "AnthropicBatches": "/v1/messages"}.get(self.kind, "/models/m:generateContent")
        return self.http.post(path, json=body_of(self.server, text)).json()

    def submit(self, keys=KEYS, **changes):
        bodies = {key: body_of(self.server, f"Question {key}") | changes for key in keys}
        if self.kind == "OpenAIBatches":
            rows = [{"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body} for key, body in bodies.items()]
            content = "\n".join(map(json.dumps, rows)).encode()
            made = self.http.post("/files", data={"purpose": "batch"}, files={"file": ("q.jsonl", content)})
            if made.is_error:
                return made
            form = {"input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
            return self.http.post("/batches", json=form)
        if self.kind == "AnthropicBatches":
            rows = [{"custom_id": key, "params": body} for key, body in bodies.items()]
            return self.http.post("/v1/messages/batches", json={"requests": rows})
        rows = [{"request": body, "metadata": {"key": key}} for key, body in bodies.items()]
        form = {"batch": {"display_name": "n", "input_config": {"requests": {"requests": rows}}}}
        return self.http.post("/models/m:batchGenerateContent", json=form)

    def place(self, name):
        return {"OpenAIBatches": f"/batches/{name}", "AnthropicBatches": f"/v1/messages/batches/{name}"}.get(self.kind, f"/{name}")

    def look(self, name):
        return self.http.get(self.place(name))

    def listing(self):
        return self.http.get({"OpenAIBatches": "/batches", "AnthropicBatches": "/v1/messages/batches"}.get(self.kind, "/batches"))

    def ended(self, name):
        """Wait for the end; give what a look shows then, and the outcome of every key."""
        until = time.monotonic() + 10
        while not self.server.batches[name].ended:
            assert time.monotonic() < until
            time.sleep(0.01)
        return self.look(name).json(), {line.key: outcome for line, outcome in self.server.batches[name].outcomes}

    def results(self, shown):
        """Give the reply to every key that has one, as the provider hands it out."""
        if self.kind == "OpenAIBatches":
            rows = map(json.loads, self.http.get(f"/files/{shown['output_file_id']}/content").text.splitlines())
            return {row["custom_id"]: row["response"]["body"] for row in rows}
        if self.kind == "AnthropicBatches":
            rows = map(json.loads, self.http.get(shown["results_url"]).text.splitlines())
            return {row["custom_id"]: row["result"]["message"] for row in rows if row["result"]["type"] == "succeeded"}
        rows = shown["response"]["inlinedResponses"]["inlinedResponses"]
        return {row["metadata"]["key"]: row["response"] for row in rows if "response" in row}


@pytest.fixture(params=SERVERS)
def raw(request):
    with running_server(request.param()) as server:
        yield Raw(server)


def name_of(reply):
    return reply.json().get("id") or reply.json()["name"]


def test_a_request_gets_the_same_reply_directly_and_in_a_batch_but_for_its_tier(raw):
    name = name_of(raw.submit())
    results = raw.results(raw.ended(name)[0])
    direct = raw.direct("Question a")
    if raw.kind == "AnthropicBatches":
        assert (direct["usage"].pop("service_tier"), results["a"]["usage"].pop("service_tier")) == ("standard", "batch")
    assert json.dumps(results["a"], sort_keys=True) == json.dumps(direct, sort_keys=True)
    assert results["a"] != results["b"]
    assert list(results) == (KEYS if raw.kind == "GeminiBatches" else KEYS[::-1])
    assert Counter(raw.server.paid.values()) == {1: 5}
    assert raw.server.violations == []


@pytest.mark.parametrize(("provider", "kind"), [*zip(["openai", "anthropic", "gemini"], SERVERS, strict=True)])
def test_litellm_asks_each_server_at_its_address(provider, kind):
    with running_server(kind()) as server:
        messages = [{"role": "system", "content": "You read."}, {"role": "user", "content": "What?"}]
        reply = import_litellm().completion(f"{provider}/m", messages, api_base=server.address, api_key="k", max_tokens=9, num_retries=0)
    assert reply.choices[0].message.content == f"The answer is {next(iter(server.paid))}."
    assert server.violations == []


def test_what_breaks_the_protocol_is_refused_and_written_down(raw):
    name = name_of(raw.submit(["a"], bogus=1))
    assert raw.ended(name)[1] == {"a": "400"}
    assert raw.http.get("/nowhere").status_code == 404
    raw.http.headers = {}
    assert raw.submit().status_code in {401, 403}
    assert len(raw.server.violations) == 3
    assert "bogus" in raw.server.violations[0]


def test_a_key_twice_or_in_another_form_is_refused():
    with running_server(AnthropicBatches()) as server:
        client, body = Raw(server), body_of(server, "x")
        for keys in (["a", "a"], ["a b"], ["x" * 65]):
            reply = client.http.post("/v1/messages/batches", json={"requests": [{"custom_id": key, "params": body} for key in keys]})
            assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert len(server.violations) == 3
    assert server.received_batches == []


@pytest.mark.parametrize(("version", "outcome"), [("2023-06-01", "succeeded"), ("2026-10-21", "400")])
def test_sampling_settings_are_taken_by_the_former_version_of_anthropic_alone(version, outcome):
    with running_server(AnthropicBatches()) as server:
        client = Raw(server)
        client.http.headers["anthropic-version"] = version
        assert client.ended(name_of(client.submit(["a"], temperature=0.5)))[1] == {"a": outcome}


@pytest.mark.parametrize(("setting", "rest"), [("expire_after", "expired"), ("cancel_after", "canceled")])
def test_only_the_first_requests_are_answered(raw, setting, rest):
    setattr(raw.server, setting, 1)
    shown, outcomes = raw.ended(name_of(raw.submit()))
    assert outcomes == {"a": "succeeded", "b": rest, "c": rest, "d": rest}
    assert raw.server.paid == {"a": 1}
    if raw.kind == "GeminiBatches":
        assert "response" not in shown
    else:
        assert list(raw.results(shown)) == ["a"]


def test_lines_fail_alone_by_share_by_key_or_with_a_named_status(raw):
    for setting, expected in [
        (1.0, {"400": 2, "500": 2}),
        ({"a", "b"}, {"400": 1, "500": 1, "succeeded": 2}),
        ({"c": 500}, {"500": 1, "succeeded": 3}),
    ]:
        raw.server.fail_lines = setting
        assert Counter(raw.ended(name_of(raw.submit()))[1].values()) == expected


def test_a_batch_fails_as_a_whole_and_says_why(raw):
    raw.server.fail_validation = True
    shown, outcomes = raw.ended(name_of(raw.submit()))
    if raw.kind == "AnthropicBatches":
        assert set(outcomes.values()) == {"400"}
    elif raw.kind == "OpenAIBatches":
        assert shown["status"] == "failed"
        assert shown["errors"]["data"][0]["message"]
    else:
        assert (shown["metadata"]["state"], shown["error"]["code"]) == ("BATCH_STATE_FAILED", 3)
    assert not raw.server.paid


def test_too_much_is_refused(raw):
    raw.server.max_bytes = 20
    assert raw.submit().status_code == (400 if raw.kind == "GeminiBatches" else 413)
    raw.server.max_bytes, raw.server.max_requests = None, 3
    reply = raw.submit()
    if raw.kind == "OpenAIBatches":
        assert raw.ended(name_of(reply))[0]["errors"]["data"][0]["code"] == "too_many_tasks"
    else:
        assert reply.status_code == 400
    assert raw.server.violations == []


def test_connections_break_where_the_test_wants(raw):
    raw.server.cut_upload = 1
    with pytest.raises(httpx.TransportError):
        raw.submit()
    assert raw.server.received_batches == []
    raw.server.lose_reply_of = 1
    with pytest.raises(httpx.TransportError):
        raw.submit()
    (batch,) = raw.server.received_batches
    raw.server.cut_results = 1
    with pytest.raises(httpx.TransportError):
        raw.results(raw.ended(batch.id)[0])
    assert set(raw.results(raw.look(batch.id).json())) == set(KEYS)
    assert raw.server.paid == dict.fromkeys(KEYS, 1)


def test_listings_statuses_and_states_are_what_the_test_sets(raw):
    raw.server.listing_hides_for_s, raw.server.states = 0.3, ["odd", "odder"]
    name = name_of(raw.submit())
    assert [json.dumps(raw.look(name).json()).count(state) for state in ("odd", "odder", "odder")] == [1, 1, 1]
    assert name not in raw.listing().text
    time.sleep(0.35)
    assert name in raw.listing().text
    raw.server.no_listing, raw.server.status_next = True, [503, 429]
    assert [raw.listing().status_code for _ in range(3)] == [503, 429, 404]
    assert raw.server.listing_calls == 3
    assert raw.server.violations == []


def test_the_sdk_of_openai_works_with_the_server():
    with running_server(OpenAIBatches()) as server:
        server.fail_lines, server.seconds_to_end = {"b": 500}, 0.2
        client = openai.OpenAI(api_key="k", base_url=server.address, max_retries=0)
        rows = [{"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body_of(server, key)} for key in KEYS]
        content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        file = client.files.create(file=("q.jsonl", io.BytesIO(content)), purpose="batch")
        assert client.files.retrieve(file.id).bytes == len(content)
        form = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        batch = client.batches.create(**form, metadata={"run": "r1"})
        assert batch.status == "validating"
        assert client.batches.retrieve(batch.id).status == "in_progress"
        Raw(server).ended(batch.id)
        batch = client.batches.retrieve(batch.id)
        assert (batch.status, batch.metadata, batch.request_counts.completed) == ("completed", {"run": "r1"}, 3)
        assert [json.loads(line)["custom_id"] for line in client.files.content(batch.output_file_id).text.splitlines()] == ["d", "c", "a"]
        (error,) = map(json.loads, client.files.content(batch.error_file_id).text.splitlines())
        assert (error["custom_id"], error["response"]["status_code"]) == ("b", 500)
        server.seconds_to_end = 60
        second = client.batches.create(**form)
        assert client.batches.cancel(second.id).status == "cancelling"
        assert [each.id for each in client.batches.list(limit=1)] == [second.id, batch.id]
        Raw(server).ended(second.id)
        second = client.batches.retrieve(second.id)
        assert (second.status, second.output_file_id) == ("cancelled", None)
        assert '"batch_cancelled"' in client.files.content(second.error_file_id).text
        assert client.files.delete(file.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(file.id)
    assert server.deleted == [file.id]
    assert server.violations == []


def test_the_sdk_of_anthropic_works_with_the_server():
    anthropic = sdk("anthropic")
    with running_server(AnthropicBatches()) as server:
        server.fail_lines, server.seconds_to_end = {"b": 500}, 0.2
        client = anthropic.Anthropic(api_key="k", base_url=server.address, max_retries=0)
        assert client.messages.create(**body_of(server, "a")).usage.service_tier == "standard"
        rows = [{"custom_id": key, "params": body_of(server, key)} for key in KEYS]
        batch = client.messages.batches.create(requests=rows)
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 4)
        with pytest.raises(anthropic.BadRequestError):
            client.messages.batches.delete(batch.id)
        Raw(server).ended(batch.id)
        results = {row.custom_id: row.result for row in client.messages.batches.results(batch.id)}
        assert [results[key].type for key in KEYS] == ["succeeded", "errored", "succeeded", "succeeded"]
        assert results["a"].message.content[0].text == f"The answer is {digest(body_of(server, 'a'))}."
        assert results["a"].message.usage.service_tier == "batch"
        assert results["b"].error.error.type == "api_error"
        server.seconds_to_end = 60
        second = client.messages.batches.create(requests=rows)
        assert client.messages.batches.cancel(second.id).processing_status == "canceling"
        assert [each.id for each in client.messages.batches.list(limit=1)] == [second.id, batch.id]
        Raw(server).ended(second.id)
        assert {row.result.type for row in client.messages.batches.results(second.id)} == {"canceled"}
        client.messages.batches.delete(batch.id)
    assert server.deleted == [batch.id]
    assert len(server.violations) == 1


@pytest.mark.parametrize("by_file", [False, True])
def test_the_sdk_of_google_works_with_the_server(by_file):
    genai = sdk("google.genai")
    with running_server(GeminiBatches()) as server:
        server.fail_lines, server.seconds_to_end = {"b": 500}, 0.2
        options = {"base_url": server.address.removesuffix("/v1beta")}
        client = genai.Client(api_key="k", http_options=options)
        direct = client.models.generate_content(model="m", contents="a", config={"max_output_tokens": 50})
        if by_file:
            rows = [{"key": key, "request": body_of(server, key)} for key in KEYS]
            content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            upload = client.files.upload(file=io.BytesIO(content), config={"display_name": "q", "mime_type": "jsonl"})
            assert (upload.size_bytes, client.files.get(name=upload.name).state.name) == (len(content), "ACTIVE")
            source = upload.name
        else:
            source = [{"contents": key, "config": {"max_output_tokens": 50}, "metadata": {"key": key}} for key in KEYS]
        batch = client.batches.create(model="m", src=source, config={"display_name": "run r1"})
        assert client.batches.get(name=batch.name).state.name == "JOB_STATE_RUNNING"
        Raw(server).ended(batch.name)
        batch = client.batches.get(name=batch.name)
        assert (batch.state.name, batch.display_name) == ("JOB_STATE_SUCCEEDED", "run r1")
        if by_file:
            rows = [json.loads(line) for line in client.files.download(file=batch.dest.file_name).splitlines()]
            first, second = rows[0]["response"]["candidates"][0]["content"]["parts"][0]["text"], rows[1]["error"]["code"]
        else:
            rows = batch.dest.inlined_responses
            first, second = rows[0].response.text, rows[1].error.code
        assert (first, second) == (direct.text, 13)
        server.seconds_to_end = 60
        last = client.batches.create(model="m", src=source, config={"display_name": "run r2"})
        client.batches.cancel(name=last.name)
        assert [each.name for each in client.batches.list(config={"page_size": 1})] == [last.name, batch.name]
        Raw(server).ended(last.name)
        assert client.batches.get(name=last.name).state.name == "JOB_STATE_CANCELLED"
        client.batches.delete(name=batch.name)
        if by_file:
            client.files.delete(name=upload.name)
    assert server.deleted == [batch.name, *([upload.name] if by_file else [])]
    assert server.violations == []


def test_the_fields_that_the_servers_take_are_those_of_the_sdks():
    """The SDK of Anthropic sends `workspace_id` as a header."""
    types = sdk("anthropic.types")
    google = sdk("google.genai.types")
    named = set(types.message_create_params.MessageCreateParamsNonStreaming.__annotations__) - {"workspace_id"}
    assert set(AnthropicBody.model_fields) == named
    settings = GeminiBody.model_fields["generation_config"].annotation.__args__[0]
    assert set(settings.model_fields) <= set(google.GenerationConfig.model_fields)
