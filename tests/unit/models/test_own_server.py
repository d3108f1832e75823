"""A server that belongs to the job: it is started, waited for and ended; what a killed job leaves is ended too, and nothing is asked again."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fixtures.asking_process import work_up
from fixtures.models import request
from fixtures.own_servers import PlainClient, asked_in, kill_rounds, processes_of, program, served_model, start_asking
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError, InterruptedRunError, ProviderError
from neuralmedbench.models.api.backend import ApiBackend
from neuralmedbench.models.call_keys import request_key
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.destinations import destination_of, resources_of
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Backend
from neuralmedbench.models.registry import code_of, open_backend
from neuralmedbench.models.server import backend, llamacpp, process
from neuralmedbench.models.server.engines import command_of, environment_of, fingerprint_of, start_cause
from neuralmedbench.models.server.process import ServerLock
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.runtime import machine, supervisor

pytestmark = pytest.mark.slow

COUNT = 12
KILLS = 2
"""One of the job alone, one with its supervisor; `make validate` kills 20 times (`perf/server_kills.py`)."""


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test locks and records of its own, and a client that is quick to import."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(backend, "ApiBackend", PlainClient)
    monkeypatch.setattr(supervisor, "GRACE_S", 1.0)
    monkeypatch.setenv("NMB_SECRET_KEY", "sk-secret")


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    return program(folder)


def run_of(model: ModelConfig, folder: Path) -> ModelRun:
    return ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=0, root=folder)


def wait_until_gone(folder: Path) -> None:
    end = time.monotonic() + 30
    while left := processes_of(folder):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def test_a_server_is_started_asked_and_ended_with_a_child_that_ignores_the_end(stub, tmp_path, monkeypatch, capfd):
    model = served_model(stub, "--stub-load", 0.3, "--stub-asked", tmp_path / "asked", server={"arguments": ["--max-model-len", "4096"]})
    rows = answer_requests([request("i0"), request("i1")], run_of(model, tmp_path))
    assert [row.state for row in rows] == [ResponseState.OK] * 2
    assert asked_in(tmp_path / "asked") == ["What is it? (i0)", "What is it? (i1)"] or len(asked_in(tmp_path / "asked")) == 2
    assert {row.served_model for row in rows} == {"m"}
    (fingerprint,) = {row.fingerprint for row in rows}
    assert re.match(r"vllm 0\.11\.0, weights \w{8}, settings \w{8}: --max-model-len 4096 --stub-load 0\.3", fingerprint)
    assert {entry.destination for entry in read_ledger(tmp_path / "m.jsonl").values()} == {"local"}
    assert processes_of(stub.parent) == []
    assert list(tmp_path.rglob("*.processes.json")) == []
    assert "m: ready after" in capfd.readouterr().err
    # everything stands in the ledger: no server is started
    assert answer_requests([request("i0"), request("i1")], run_of(model, tmp_path)) == rows
    assert "starts" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stub-no-memory"], "its server (vllm) ended while it started: it lacks memory; end what else uses the GPU"),
        (["--stub-name", "other"], "its server (vllm) does not serve m, under which it was started, but 1 other models"),
        (["--unknown-flag"], "ended while it started: it does not take one of its arguments; compare `arguments`"),
        (
            ["--stub-signal", "4"],
            "ended while it started: it uses an instruction that this processor lacks; name a build for this processor",
        ),
        (["--stub-load", "60"], "its server has not answered after 0.8 s; raise `start_timeout_s`"),
    ],
    ids=["memory", "name", "argument", "instruction", "slow"],
)
def test_a_server_that_does_not_come_up_is_told_in_one_line_without_its_messages(stub, tmp_path, arguments, said):
    limit = {"start_timeout_s": 0.8} if "60" in arguments else {}
    with pytest.raises(ProviderError, match=re.escape(said)) as error:
        open_backend(served_model(stub, "--stub-child", *arguments, server=limit), None)
    assert "Mustermann" not in str(error.value)
    assert "\n" not in str(error.value)
    wait_until_gone(stub.parent)


def test_a_server_that_ends_while_it_answers_ends_the_run_and_keeps_what_had_come(stub, tmp_path):
    asked, requests = tmp_path / "asked", [request(f"i{number}") for number in range(COUNT)]
    model = served_model(stub, "--stub-child", "--stub-ends-after", 5, "--stub-answer", 0.02, "--stub-asked", asked)
    with pytest.raises(ProviderError, match=r"its server \(vllm\) ended while it answered: it lacks memory") as error:
        answer_requests(requests, run_of(model, tmp_path))
    assert "Mustermann" not in str(error.value)
    wait_until_gone(stub.parent)
    kept = len(read_ledger(tmp_path / "m.jsonl"))
    assert 0 < kept == len(asked_in(asked)) < COUNT
    rows = answer_requests(requests, run_of(served_model(stub, "--stub-asked", asked), tmp_path))
    assert {row.state for row in rows} == {ResponseState.OK}
    assert sorted(asked_in(asked)) == sorted(f"What is it? (i{number})" for number in range(COUNT))


def test_a_port_that_is_taken_is_told_before_a_start_and_another_free_one_is_tried(stub, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ProviderError, match=rf"its port is in use \({port}\) before its server was started"):
            open_backend(served_model(stub, server={"port": port}), None)
    handle = open_backend(served_model(stub, "--stub-first-port-taken", tmp_path / "taken"), None)
    assert handle.backend is not None
    asyncio.run(handle.backend.close())


def test_another_program_at_the_port_is_never_asked(stub, tmp_path, monkeypatch):
    """Somebody else's server may list the same name: what is asked would go to it."""
    asked = tmp_path / "asked"
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    words = [str(stub), "serve", "w", "--served-model-name", "m", "--host", "127.0.0.1", "--port", str(port), "--stub-asked", str(asked)]
    with subprocess.Popen(words) as stranger:
        while not process.listens(port):
            time.sleep(0.02)
        monkeypatch.setattr(process, "free_port", lambda: port)
        with pytest.raises(ProviderError, match=r"another program answers at port|its port is in use"):
            open_backend(served_model(stub, "--stub-load", 1), None)
        assert stranger.poll() is None
        stranger.kill()
    assert not asked.exists()


def test_two_models_are_served_one_after_the_other(stub, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(process, "ANNOUNCE_AFTER_S", 0.0)
    monkeypatch.setattr(process, "POLL_S", 0.05)
    first = open_backend(served_model(stub), None).backend
    assert first is not None
    second = start_asking(tmp_path, stub, COUNT, "--stub-asked", tmp_path / "asked")
    end = time.monotonic() + 30
    while "serves m on this machine" not in (tmp_path / "log").read_text(encoding="utf-8"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len([pid for pid in processes_of(stub.parent) if b"supervisor" not in Path(f"/proc/{pid}/cmdline").read_bytes()]) == 1
    asyncio.run(first.close())
    assert second.wait(30) == 0, (tmp_path / "log").read_text(encoding="utf-8")
    assert len(asked_in(tmp_path / "asked")) == COUNT


def test_a_killed_job_leaves_no_process_and_nothing_in_its_ledger_is_asked_again(tmp_path):
    found = kill_rounds(tmp_path, KILLS, seed=1)
    assert found.asked_again == 0, found
    assert found.orphans == 0, found
    assert found.answers == found.questions, found


@pytest.mark.parametrize(
    ("number", "load", "code"),
    [
        pytest.param(signal.SIGTERM, 0, InterruptedRunError.exit_code, id="while it answers"),
        pytest.param(signal.SIGINT, 60, 130, id="while it starts, by Ctrl-C"),
        pytest.param(signal.SIGTERM, 60, -signal.SIGTERM, id="while it starts", marks=pytest.mark.long),
    ],
)
def test_a_job_that_is_asked_to_end_ends_its_server(stub, tmp_path, number, load, code):
    asked = tmp_path / "asked"
    job = start_asking(tmp_path, stub, 200, "--stub-load", load, "--stub-answer", 0.1, "--stub-asked", asked)
    end = time.monotonic() + 30
    while not (processes_of(stub.parent) if load else asked_in(asked)):
        assert time.monotonic() < end
        time.sleep(0.05)
    job.send_signal(number)
    assert job.wait(30) == code
    wait_until_gone(stub.parent)
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")
    assert len(read_ledger(tmp_path / "m.jsonl")) == len(asked_in(asked)) < 200


def test_a_process_that_is_not_the_recorded_one_is_never_ended(tmp_path):
    """A number is given to another process once its own has ended; start time and command tell them apart."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        while b"sleep" not in Path(f"/proc/{stranger.pid}/cmdline").read_bytes():  # a new program has its command a moment after its start
            time.sleep(0.001)
        mark = supervisor.mark_of(stranger.pid)
        assert mark is not None
        for number, wrong in enumerate(({"start": mark.start - 1}, {"command": "0" * 16}, {"boot": "another"})):
            value = {"owners": [], "processes": [{**asdict(mark), **wrong}]}
            (tmp_path / f"{number}.processes.json").write_text(json.dumps(value), encoding="utf-8")
        (tmp_path / "torn.processes.json").write_text("{", encoding="utf-8")
        assert supervisor.end_recorded(tmp_path) == 0
        assert stranger.poll() is None
        # that of a living job is left alone, that of a dead one is ended
        value = {"owners": [asdict(mark)], "processes": [asdict(mark)]}
        (tmp_path / "7.processes.json").write_text(json.dumps(value), encoding="utf-8")
        assert supervisor.end_recorded(tmp_path) == 0
        assert stranger.poll() is None
        (tmp_path / "7.processes.json").write_text(json.dumps(value | {"owners": []}), encoding="utf-8")
        threading.Thread(target=stranger.wait).start()  # reaps it, as the first process of the machine would
        assert supervisor.end_recorded(tmp_path) == 1
        assert stranger.wait(5) == -signal.SIGTERM
    assert list(tmp_path.glob("*.json")) == []


def test_the_environment_of_a_server_has_no_keys_and_no_way_out(stub):
    given = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk-1",
        "HF_TOKEN": "hf",
        "https_proxy": "http://p",
        "CUDA_VISIBLE_DEVICES": "1",
        "PYTHONPATH": "x",
    }
    model = served_model(stub, server={"environment": {"VLLM_USE_V1": "1"}})
    assert model.server is not None
    made = environment_of(model.server, given)
    assert {name: made[name] for name in ("PATH", "CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "VLLM_USE_V1")} == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_USE_V1": "1",
    }
    assert {"OPENAI_API_KEY", "HF_TOKEN", "https_proxy", "PYTHONPATH"}.isdisjoint(made)


@pytest.mark.parametrize(
    ("engine", "weights", "words"),
    [
        ("vllm", "w", "serve {w} --served-model-name m --host 127.0.0.1 --port 9 --max-model-len 8 -tp 2"),
        ("sglang", "w", "serve --model-path {w} --served-model-name m --host 127.0.0.1 --port 9 --max-model-len 8 -tp 2"),
        ("llamacpp", "w.gguf", "--model {w} --alias m --host 127.0.0.1 --port 9 --max-model-len 8 -tp 2"),
        ("transformers", "w", "serve w --host 127.0.0.1 --port 9 --max-model-len 8 -tp 2"),
    ],
)
def test_each_engine_is_told_weights_name_and_port(stub, tmp_path, engine, weights, words):
    place = tmp_path / weights
    place.touch() if "." in weights else place.mkdir()
    section = {"engine": engine, "arguments": ["--max-model-len", "8"], "machine_arguments": ["-tp", "2"]}
    command = command_of(served_model(stub, id=str(place), server=section), 9)
    assert command == [str(stub), *words.format(w=place).split()]


def test_llamacpp_is_started_from_its_package_unless_a_program_is_named(stub, tmp_path, monkeypatch):
    (tmp_path / "w.gguf").touch()
    model = served_model(stub, id=str(tmp_path / "w.gguf"), server={"engine": "llamacpp", "program": None})
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"not installed here: xllamacpp; `make setup EXTRAS=llamacpp` adds them"):
        command_of(model, 9)
    monkeypatch.setattr(machine, "find_spec", lambda _: object())
    assert command_of(model, 9)[:5] == [sys.executable, "-P", llamacpp.__file__, "--model", str(tmp_path / "w.gguf")]


def test_transformers_serve_is_refused_where_it_would_ignore_a_setting(stub, tmp_path):
    section = {"engine": "transformers"}
    with pytest.raises(ValueError, match="`transformers serve` ignores `structured_output` and `native_n`"):
        served_model(stub, server=section, structured_output="json_schema", native_n=True)
    model = served_model(stub, server=section, temperature=0.7)
    with pytest.raises(ConfigError, match=r'ignores its temperature 0\.7: write `"do_sample": true`'):
        command_of(model, 9)
    (stub.parent / "generation_config.json").write_text('{"do_sample": tr', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"generation_config\.json of its folder is not JSON"):
        command_of(model, 9)
    (stub.parent / "generation_config.json").write_text('{"do_sample": true}', encoding="utf-8")
    assert command_of(model, 9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"server": None}, "go together"),
        ({"api_base": "http://127.0.0.1:1/v1"}, "has no `api_base`"),
        ({"server": {"engine": "vllm", "arguments": ["--served_model_name=x"]}}, "`--served-model-name` is set by the job itself"),
        ({"server": {"engine": "vllm", "arguments": ["--enable-log-requests"]}}, "would write into a log what is asked"),
        ({"server": {"engine": "vllm", "environment": {"K": "a1b2c3d4e5f6a7b8c9d0e1f2a3b4"}}}, "may be an API key"),
    ],
)
def test_a_section_that_cannot_be_right_is_refused(changes, said):
    value = {"title": "T", "backend": "server", "id": "w", "revision": "1", "server": {"engine": "vllm"}, **changes}
    with pytest.raises(ValueError, match=re.escape(said)):
        ModelConfig.model_validate(value)


def test_a_fingerprint_has_what_a_named_file_holds_and_no_path_of_the_machine(stub, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text("one", encoding="utf-8")
    model = served_model(stub, "--chat-template", template, f"--lora={tmp_path}/x", server={"arguments": ["--dtype", "float16"]})
    before = fingerprint_of(model, "0.11.0")
    assert str(tmp_path) not in before
    assert ": --dtype float16 --chat-template " in before
    template.write_text("two", encoding="utf-8")
    assert fingerprint_of(model, "0.11.0") != before
    (stub.parent / "config.json").write_text("{}", encoding="utf-8")
    assert fingerprint_of(model, "0.11.0").split(", ")[1] != before.split(", ")[1]


@pytest.mark.parametrize(("gpus", "together"), [(("0", "1"), True), (("0", "0,1"), False), (("", "1"), False), (("1", ""), False)])
def test_servers_run_at_the_same_time_on_gpus_of_their_own_alone(stub, tmp_path, monkeypatch, gpus, together):
    first, second = gpus

    def wait(_seconds: float) -> None:
        raise InterruptedError

    monkeypatch.setattr(process.time, "sleep", wait)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    held = ServerLock(served_model(stub, server={"environment": {"CUDA_VISIBLE_DEVICES": first} if first else {}}), tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", second)
    with nullcontext() if together else pytest.raises(InterruptedError):
        ServerLock(served_model(stub), tmp_path).end()
    held.end()
    ServerLock(served_model(stub), tmp_path).end()


def test_a_model_and_its_informant_cannot_both_have_a_server(stub, tmp_path):
    run = replace(run_of(served_model(stub), tmp_path), informant=served_model(stub, name="teller"))
    with pytest.raises(ConfigError, match="it and teller, which tells the facts, would each need a server of this job at the same time"):
        answer_requests([replace(request("i0"), inquiry=replace(work_up("i0").inquiry, informant="prompt"))], run)


def test_a_key_holds_what_answers_depend_on_and_nothing_of_the_machine(stub):
    def key(**server: object) -> str:
        model = served_model(stub, server=server)
        return request_key(asked, model, next_messages(asked, (), None), 0, code=code_of(model, None))

    asked = request("i0")
    same = key(machine_arguments=["--tensor-parallel-size", "2"], port=4000, start_timeout_s=5, environment={"A": "b"})
    assert key() == same
    assert key(engine="llamacpp") == key(engine="llama_cpp") != same, "its former name asks nothing again"
    assert len({same, key(engine="sglang"), key(arguments=["--dtype", "float16"]), key(arguments=["--max-model-len", "8"])}) == 4


def test_a_model_with_its_own_server_stays_on_this_machine_and_takes_its_gpu(stub):
    assert destination_of(served_model(stub)) == "local"
    assert resources_of(served_model(stub)) == {"gpu": 1}


def test_picture_and_schema_are_asked_for_before_the_first_patient_is(stub, tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "ApiBackend", ApiBackend)
    asked = tmp_path / "asked"
    settings = {"max_images": None, "structured_output": "json_schema"}
    handle = open_backend(served_model(stub, "--stub-asked", asked, **settings), None)
    assert handle.backend is not None
    asyncio.run(closing(handle.backend))
    (probe,) = map(json.loads, asked.read_text(encoding="utf-8").splitlines())
    assert (probe["pictures"], probe["format"]["type"]) == (1, "json_schema")
    with pytest.raises(
        ProviderError, match=r"refuses a first question: \w+ \(400\): the server does not take parameter `response_format`"
    ) as error:
        open_backend(served_model(stub, "--stub-refuses-schema", **settings), None)
    assert "JSON object" not in str(error.value)


async def closing(opened: Backend) -> None:
    await opened.close()


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "it lacks memory"),
        ("ValueError: Free memory on device (3.1/23.6 GiB) on startup is less than desired GPU memory utilization", "it lacks memory"),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000 MiB on device 0: cudaMalloc failed: out of memory",
            "it lacks memory",
        ),
        ("ImportError: Missing dependencies for serving. Install with `pip install transformers[serving]`", "packages that it needs"),
        ("OSError: [Errno 98] Address already in use", "its port is in use"),
        ("main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 9", "its port is in use"),
        ("vllm: error: unrecognized arguments: --max-model-length 8", "it does not take one of its arguments"),
        ("RuntimeError: Failed to infer device type", "it finds no GPU"),
        ("error loading model: unknown model architecture: 'x'", "it does not know this kind of model"),
        ("the patient said so", None),
    ],
)
def test_the_cause_of_an_early_end_is_found_in_its_messages(messages, words):
    found = start_cause(f"INFO ready\n{messages}\n", 1)
    assert (found is None) if words is None else (found is not None and found.words.startswith(words))
    assert start_cause("", 137) is not None
