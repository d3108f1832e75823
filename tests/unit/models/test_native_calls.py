"""OpenAI's protocol is spoken without litellm: the same bodies are sent, and the same replies mean the same."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from conftest import ROOT
from fixtures.models import PNG, Server, model_config, reply, running_server
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.backend import CATALOGUED, NATIVE, NO_KEY, ApiBackend, check_parameters
from neuralmedbench.models.api.chat import NativeCalls
from neuralmedbench.models.api.through_litellm import LitellmCalls, import_litellm
from neuralmedbench.models.api.wire import OneHost
from neuralmedbench.models.protocol import Call, Message, MessageImage
from neuralmedbench.models.retry import CallError

FIRST, SECOND = MessageImage("Picture 1: FLAIR", PNG, "a"), MessageImage("", PNG + b"2", "b")
SYSTEM = Message("system", 'You are a neurologist. "Ünïcode" 脳 \\ \n\ttab')
CONVERSATIONS = {
    "text": (SYSTEM, Message("user", "What is it?")),
    "pictures": (SYSTEM, Message("user", "What is it?", (FIRST, SECOND, FIRST))),
    "labels after": (Message("user", "", (FIRST, SECOND), "What is it?", labels_after=True),),
    "text after": (Message("user", "Before", (FIRST,), "after"),),
    "dialogue": (SYSTEM, Message("user", "Look.", (FIRST,)), Message("assistant", "(no answer)"), Message("user", "And now?", (SECOND,))),
    "empty": (Message("system", ""), Message("user", "")),
    "half a pair": (Message("user", "half \ud83d"),),
}
SCHEMA = {"type": "object", "properties": {"side": {"enum": ["left", None]}, "n": {"type": "number", "minimum": 0}}, "required": ["side"]}
SETTINGS = {
    "defaults": {},
    "all": {"temperature": 0.7, "top_p": 0.9, "logprobs": True, "structured_output": "json_schema", "native_n": True, "seed": 3},
    "json_object": {"structured_output": "json_object", "temperature": 0.0},
    "max_completion_tokens": {"max_tokens_parameter": "max_completion_tokens"},
    "no limit": {"max_tokens": None},
    "parameters": {
        "parameters": {"top_k": 5, "repetition_penalty": 1.1, "stop": "END", "presence_penalty": 0.1, "reasoning_effort": "low"}
    },
}
SEVERAL = {"all", "parameters"}
"""Settings that are tried with each model in `make test`; the further ones change one thing that one of these changes, too."""
MODELS = ["openai/m", "openai//weights/m", "openai/Qwen/Qwen2.5-VL-7B", "openai/gpt-oss-20b", "hosted_vllm/m", "openai/gpt-4o"]


class Scripted(Server):
    """Answers every request with one reply, and counts nothing."""

    path = "/{path:.*}"


def both(server, model, *calls):
    """Make calls on both paths; return what each brought, an error as its words."""

    async def asked(make):
        backend = ApiBackend(model)
        host = OneHost(server.address, 20)
        backend._host, backend._calls = host, make(model, host, NO_KEY)
        found = []
        for call in calls:
            try:
                found.append(await backend.answer(call))
            except CallError as error:
                found.append((str(error), error.may_pass_later, error.perhaps_paid))
        await host.close()
        return found

    return [asyncio.run(asked(make)) for make in (NativeCalls, LitellmCalls)]


@pytest.fixture(scope="module")
def server():
    with running_server(Scripted()) as running:
        yield running


@pytest.mark.parametrize(
    ("model_id", "settings"),
    [
        pytest.param(model_id, settings, marks=() if model_id == "openai/m" or settings in SEVERAL else pytest.mark.long)
        for model_id in MODELS
        for settings in SETTINGS
    ],
)
def test_the_body_is_the_one_that_litellm_sends(server, model_id, settings):
    changes = SETTINGS[settings]
    model = model_config(id=model_id, api_base=server.address, **changes)
    try:
        native = check_parameters(model)
    except ConfigError:
        assert (model_id, settings) == ("openai/gpt-4o", "parameters"), "gpt-4o takes no reasoning_effort"
        return
    assert native
    schema = SCHEMA if "structured_output" in changes else None
    calls = [Call(messages, (1, 2) if model.native_n else (1,), model.seed, schema) for messages in CONVERSATIONS.values()]
    server.bodies.clear()
    server.headers.clear()
    both(server, model, *calls)
    own, of_litellm = server.bodies[: len(calls)], server.bodies[len(calls) :]
    assert own == of_litellm
    assert len({(head["Authorization"], head["Content-Type"], head["Accept-Encoding"]) for head in server.headers}) == 1


def said(message, reason="stop", **row):
    whole = reply("")
    whole["choices"][0] |= {"message": message, "finish_reason": reason, **row}
    return whole


TEXT = {"role": "assistant", "content": "Glioma"}
TOKENS = [{"token": "Gli", "logprob": -0.25, "top_logprobs": []}, {"token": "oma", "logprob": -1, "bytes": None, "top_logprobs": []}]
REPLIES = {
    "text": said(TEXT),
    "nothing": said({"role": "assistant", "content": None}),
    "blank": said({"role": "assistant", "content": " \n"}),
    "parts": said({"role": "assistant", "content": [{"type": "text", "text": "Gli"}, {"type": "text", "text": "oma"}]}),
    "other parts": said({"role": "assistant", "content": [{"type": "image", "text": "Gli"}]}),
    "a number": said({"role": "assistant", "content": 7}),
    "refusal": said({"role": "assistant", "content": None, "refusal": "I cannot."}),
    "reasoning": said({**TEXT, "reasoning_content": "An abscess?"}),
    "reasoning of vLLM": said({**TEXT, "reasoning": "An abscess?"}),
    "reasoning alone": said({"role": "assistant", "content": None, "reasoning_content": "An abscess?"}),
    "reasoning cut off": said({"role": "assistant", "content": "", "reasoning_content": "An abscess?"}, "length"),
    "tags": said({"role": "assistant", "content": "<think>An abscess?</think>\n\nGlioma"}),
    "tags alone": said({"role": "assistant", "content": "<think>An abscess?</think>\n"}),
    "open tag": said({"role": "assistant", "content": "<think>An abscess?"}),
    "a tag later": said({"role": "assistant", "content": "The tag <think> is no reasoning."}),
    "tool calls": said({"role": "assistant", "content": None, "tool_calls": []}),
    "an error of its own": said(TEXT, error={"message": "upstream"}),
    "an error": {**said(TEXT), "error": {"message": "upstream"}},
    "no error": {**said(TEXT), "error": None},
    "logprobs": said(TEXT, logprobs={"content": TOKENS}),
    "no logprobs": said(TEXT, logprobs=None),
    "impossible logprobs": said(TEXT, logprobs={"content": [*TOKENS, {"token": "x", "logprob": "x"}]}),
    "several": {
        **said(TEXT),
        "choices": [{**said({**TEXT, "content": text})["choices"][0], "index": at} for at, text in ((1, "b"), (0, "a"))],
    },
    "no usage": {name: value for name, value in said(TEXT).items() if name != "usage"},
    "odd usage": {**said(TEXT), "usage": {"input_tokens": 7, "output_tokens": 3}},
    "impossible usage": {**said(TEXT), "usage": {"prompt_tokens": -7, "completion_tokens": 3}},
    "no model": {
        name: value for name, value in said(TEXT).items() if name not in {"model", "system_fingerprint", "id", "created", "object"}
    },
    "no choices": {**said(TEXT), "choices": []},
    "null choices": {**said(TEXT), "choices": None},
    "a text as choices": {**said(TEXT), "choices": "none"},
    "error of vLLM": {"object": "error", "message": "upstream failed", "code": 50000},
    "detail": {"detail": "maintenance"},
    "a list": [said(TEXT)],
    "a page": "<html>gateway</html>",
    "half": '{"id": "1", "choices": [{"mess',
    "nothing at all": "",
    **{
        f"end {reason}": said(TEXT, reason)
        for reason in ("length", "max_tokens", "content_filter", "refusal", "SAFETY", "error", "abort", "eos", "unheard of")
    },
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_means_the_same_as_when_litellm_has_read_it(name):
    with running_server(Raw(REPLIES[name])) as server:
        model = model_config(api_base=server.address, native_n=True, logprobs=True)
        own, of_litellm = both(server, model, Call(CONVERSATIONS["text"], (0, 1), None))
    assert own == of_litellm


@pytest.mark.parametrize(("message", "reason"), [({"content": "Glioma"}, "stop"), (TEXT, None)])
def test_an_answer_is_kept_from_a_server_that_leaves_out_its_role_or_the_reason_of_its_end(message, reason):
    """Without the role litellm discards a paid answer; without the reason it writes `stop`."""
    with running_server(Raw(said(message, reason))) as server:
        (((answer,),), _) = both(server, model_config(api_base=server.address), Call(CONVERSATIONS["text"], (0,), None))
    assert (answer.text, answer.state, answer.finish_reason) == ("Glioma", "ok", reason or "")


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 405, 408, 409, 413, 422, 425, 429, 500, 501, 502, 503, 504, 529])
@pytest.mark.parametrize("message", ["no", "At most 4 image(s) may be provided in one request."])
def test_a_refusal_is_named_as_litellm_names_it(status, message):
    with running_server(Raw({"error": {"message": message, "code": "x"}}, status)) as server:
        own, of_litellm = both(server, model_config(api_base=server.address), Call(CONVERSATIONS["text"], (0,), None))
    assert own == of_litellm


@pytest.mark.parametrize(
    "error",
    [
        {"message": "The response was filtered", "code": "content_policy_violation", "type": "invalid_request_error"},
        {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "type": "invalid_prompt"},
        {"message": "Your request was rejected as a result of the safety system."},
        {"message": "content_policy_violation"},
    ],
)
def test_a_filter_refuses_in_the_same_words(error):
    with running_server(Raw({"error": error}, 400)) as server:
        own, of_litellm = both(server, model_config(api_base=server.address), Call(CONVERSATIONS["text"], (0,), None))
    assert own == of_litellm


class Raw(Server):
    """Answers every request with one body."""

    def __init__(self, body, status=200):
        super().__init__()
        self.body, self.status = body if isinstance(body, str) else json.dumps(body), status

    async def handle(self, asked):
        from aiohttp import web

        self.bodies.append(await asked.json())
        return web.Response(text=self.body, status=self.status, content_type="application/json")


def test_every_model_for_which_litellm_has_rules_is_known_by_its_name():
    """Of other names at an address of one's own litellm is not asked what they take."""
    catalogue = import_litellm().model_cost
    names = [name for name, entry in catalogue.items() if entry.get("litellm_provider") in {*NATIVE, "text-completion-openai"}]
    chats = [name for name in names if catalogue[name].get("mode") in {"chat", "responses", "completion"}]
    assert len(chats) > 50
    legacy = {name for name in chats if "babbage" in name or "davinci" in name}  # base models, which do not chat
    legacy.add("openai/container")  # no model
    assert [name for name in chats if not CATALOGUED.search(name) and name not in legacy] == []


@pytest.mark.parametrize(
    ("model_id", "native"), [("openai/gpt-4.1", True), ("openai/o3", False), ("openai/gpt-5", False), ("mistral/m", False)]
)
def test_a_model_whose_body_litellm_rewrites_is_left_to_it(model_id, native):
    assert check_parameters(model_config(id=model_id, api_base="http://127.0.0.1:9/v1")) is native


ALONE = """
import sys, asyncio
sys.path[:0] = sys.argv[2:]
from fixtures.models import model_config
from neuralmedbench.models.protocol import Call, Message
from neuralmedbench.models.api.backend import ApiBackend

async def main():
    backend = ApiBackend(model_config(api_base=sys.argv[1]))
    answers = await backend.answer(Call((Message("user", "What is it?"),), (0,), None))
    await backend.close()
    print(answers[0].state, sorted({"litellm", "httpx", "openai", "torch"} & set(sys.modules)))

asyncio.run(main())
"""


def test_a_server_of_ones_own_is_asked_without_importing_litellm(server):
    command = [sys.executable, "-c", ALONE, server.address, str(ROOT / "tests"), str(ROOT / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ok []"


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("v1", "/v1/chat/completions"),
        ("v1/", "/v1/chat/completions"),
        ("v1/chat/completions", "/v1/chat/completions"),
        ("api/x%20y", "/api/x y/chat/completions"),
    ],
)
def test_the_address_is_the_one_that_litellm_makes(base, path):
    class Paths(Raw):
        path = "/{path:.*}"

        async def handle(self, asked):
            paths.append(asked.path)
            return await super().handle(asked)

    paths: list[str] = []
    with running_server(Paths(reply("a"))) as server:
        server.address = server.address.removesuffix("v1") + base
        both(server, model_config(api_base=server.address), Call(CONVERSATIONS["text"], (0,), None))
    assert paths == [path, path]
