"""A call goes to the checked host, once, and its key nowhere else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from aiohttp import web

from conftest import ROOT
from fixtures.models import Server, model_config, reply, running_server
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.api.backend import ApiBackend
from neuralmedbench.models.destinations import HOSTS, destination_of
from neuralmedbench.models.protocol import Call, Message
from neuralmedbench.models.retry import CallError

pytestmark = pytest.mark.slow

CANARY = "sk-canary-9173-do-not-show"
MODELS = {
    "openai": "openai/gpt-4o",
    "hosted_vllm": "hosted_vllm/m",
    "anthropic": "anthropic/claude-sonnet-4-20250514",
    "gemini": "gemini/gemini-2.5-pro",
    "mistral": "mistral/pixtral-large-latest",
    "openrouter": "openrouter/qwen/qwen2.5-vl-72b-instruct",
    "xai": "xai/grok-4",
    "deepseek": "deepseek/deepseek-chat",
}
ELSEWHERE = "https://elsewhere.example.org/v1"
CALL = Call((Message("user", "What is it?"),), (0,), None)


def ask(model, call=CALL):
    """Make one call."""

    async def making():
        backend = ApiBackend(model)
        try:
            return await backend.answer(call)
        finally:
            await backend.close()

    return asyncio.run(making())


@pytest.fixture
def looked_up(monkeypatch):
    """Return the list of all hosts looked up in this process; every look-up fails, so that nothing leaves."""
    hosts = []

    def looking(host, *_, **__):
        hosts.append(host)
        message = "there is no network in a test"
        raise OSError(message)

    monkeypatch.setattr("socket.getaddrinfo", looking)
    return hosts


@pytest.mark.parametrize("provider", sorted(set(HOSTS) - {"hosted_vllm"}))
def test_the_host_that_is_called_is_the_one_that_was_checked(looked_up, provider):
    """Names are recorded at the system's resolver, below litellm and every transport."""
    model = model_config(id=MODELS[provider])
    with pytest.raises(CallError, match="UnknownHost"):
        ask(model)
    assert looked_up == [destination_of(model)] == [HOSTS[provider]]


@pytest.mark.parametrize("provider", sorted(HOSTS))
def test_an_address_in_the_yaml_is_the_only_one_that_is_called(looked_up, provider):
    model = model_config(id=MODELS[provider], api_base="https://gateway.example.org/v1")
    with pytest.raises(CallError, match="UnknownHost"):
        ask(model)
    assert looked_up == [destination_of(model)] == ["gateway.example.org"]


@pytest.mark.parametrize(
    ("provider", "variables"),
    [
        ("mistral", {"MISTRAL_AZURE_API_BASE": ELSEWHERE}),
        ("openai/o3", {"USE_LITELLM_PROXY": "True", "LITELLM_PROXY_API_BASE": ELSEWHERE}),
        ("gemini", {"USE_LITELLM_PROXY": "True", "LITELLM_PROXY_API_BASE": ELSEWHERE}),
    ],
)
def test_a_variable_that_nobody_thought_of_sends_nothing_elsewhere(looked_up, monkeypatch, provider, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"elsewhere\.example\.org, which is not the host that was checked"):
        ask(model_config(id=MODELS.get(provider, provider)))
    assert looked_up == []


def test_no_variable_of_litellm_reaches_a_call_that_is_made_without_it(looked_up, monkeypatch):
    for name in ("LITELLM_PROXY_API_BASE", "OPENAI_PROXY", "OPENAI_ORGANIZATION", "AZURE_API_BASE"):
        monkeypatch.setenv(name, ELSEWHERE)
    monkeypatch.setenv("USE_LITELLM_PROXY", "True")
    with pytest.raises(CallError, match="UnknownHost"):
        ask(model_config(id=MODELS["openai"]))
    assert looked_up == ["api.openai.com"]


def test_a_proxy_of_the_environment_is_not_used_and_said(looked_up, monkeypatch, capsys):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example.org:3128")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CallError, match="UnknownHost"):
        ask(model_config(id=MODELS["openai"]))
    assert looked_up == ["api.openai.com"]
    assert "the environment names a proxy; it is not used" in capsys.readouterr().err


@pytest.mark.parametrize("provider", sorted(HOSTS))
def test_one_call_is_one_request_whatever_the_provider_and_however_it_fails(provider):
    """litellm resends a request after a broken connection, although the first may have been charged."""
    with running_server(AnyPath()) as server:
        for number, mode in enumerate(("cut", "500", "422", "400", "html"), start=1):
            server.modes = [mode]
            with pytest.raises(CallError) as failure:
                ask(model_config(id=MODELS[provider], api_base=server.address))
            assert len(server.bodies) == number
            assert failure.value.status == (int(mode) if mode.isdigit() else None)


class AnyPath(Server):
    """Takes requests of any provider; their paths differ."""

    path = "/{path:.*}"


class Echo(Server):
    """Repeats the key wherever a reply has text; the part after `/v1/` in its address is the status."""

    path = "/v1/{status}/chat/completions"

    async def handle(self, request):
        self.bodies.append(await request.json())
        key, status = request.headers["Authorization"].removeprefix("Bearer "), int(request.match_info["status"])
        if status != 200:
            body = {"error": {"message": f"Incorrect API key provided: {key}", "code": key, "type": key, "param": key}, "key": key}
            return web.json_response(body, status=status, headers={"X-Key": key, "Retry-After": key}, reason=key)
        said = {**reply(f"Your key is {key}.", key), "model": key, "system_fingerprint": key, "id": key}
        return web.json_response(said, headers={"X-Key": key})


RUN = """
import logging, sys, traceback
from pathlib import Path
address, sys.path[:0] = sys.argv[1], sys.argv[2:]
logging.basicConfig(level=logging.DEBUG)
from fixtures.models import model_config, request
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun

def main(argv):
    free = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 0, "dated": "x"}
    model = model_config(api_base=f"{address}/{argv[0]}", api_key_env="NMB_TEST_KEY", prices=free, max_cost_usd=0, max_attempts=1)
    asking = {"ledger": Path(f"ledger/{argv[0]}.jsonl"), "destinations": ["local"], "max_failed_fraction": 0}
    Path(f"rows-{argv[0]}.txt").write_text(repr(answer_requests([request("i1")], ModelRun(model, **asking))))
    return 0

for status in ("200", "400", "401", "429", "500"):
    try:
        run_command(main, [status, "--debug"])
    except Exception:
        traceback.print_exc()
"""


def test_a_key_that_the_server_repeats_is_shown_nowhere(tmp_path):
    """With all logs and tracebacks on: the key is in the reply, in its headers and in litellm's exceptions."""
    with running_server(Echo()) as server:
        environment = {**os.environ, "NMB_TEST_KEY": CANARY, "LITELLM_LOG": "DEBUG", "OPENAI_LOG": "debug"}
        command = [sys.executable, "-c", RUN, server.address, str(ROOT / "tests"), str(ROOT / "scripts")]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert len(server.bodies) == 5, done.stderr
    assert done.stderr.count("ProviderError: model m: 1 of 1 answers failed") == 4
    assert [path.name for path in tmp_path.glob("rows-*")] == ["rows-200.txt"]
    written = {path: path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()}
    shown = [done.stdout, done.stderr, *written.values(), *(str(path) for path in written)]
    assert not [words for words in shown if CANARY in words]
