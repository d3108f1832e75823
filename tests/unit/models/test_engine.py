from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

from conftest import ROOT
from fixtures.models import model_config, picture, redirecting_server, request, running_server
from neuralmedbench.errors import ConfigError, DataError, ProviderError
from neuralmedbench.models import engine, retry
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain
from neuralmedbench.models.ledger import LedgerEntry, open_ledger, read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import ResponseState

CANARY = "sk-canary-5417"


@pytest.fixture
def server(monkeypatch):
    """A server, with short waits between attempts."""
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    with running_server() as running:
        yield running


@pytest.fixture
def ask(server, tmp_path):
    """Return a function that asks the server, with one ledger for the whole test."""

    def asking(requests, *, max_failed_fraction=None, destinations=("local",), **changes):
        return answer_requests(
            requests,
            ModelRun(
                model_config(api_base=server.address, **changes),
                ledger=tmp_path / "ledger/m.jsonl",
                destinations=destinations,
                max_failed_fraction=max_failed_fraction,
                root=tmp_path,
            ),
        )

    return asking


def test_a_run_that_is_repeated_counts_and_asks_nothing_twice(server, ask, tmp_path):
    """The worst bug of this stage costs money: every answer is asked for once, whatever happens in between."""
    requests = [request(f"i{n}", samples=3) for n in range(4)]
    first = ask(requests[:2], seed=1)
    assert len(server.bodies) == 6
    again = ask(requests, seed=1)
    assert len(server.bodies) == 12
    assert [row for row in again if row.item_id in {"b/i0", "b/i1"}] == first
    assert ask(requests, seed=1) == again
    assert len(server.bodies) == 12
    lines = (tmp_path / "ledger/m.jsonl").read_text().splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == len(lines) == 12


def test_a_backend_is_opened_only_when_the_ledger_lacks_an_answer(server, ask, monkeypatch):
    """A refused parameter, a missing library or absent weights stop a run that has something to ask, and no other."""
    rows = ask([request("i1", samples=2)])

    def refuse(*_):
        message = "this backend cannot be opened"
        raise ConfigError(message)

    monkeypatch.setattr(engine, "open_backend", refuse)
    assert ask([request("i1", samples=2)]) == rows
    with pytest.raises(ConfigError, match="cannot be opened"):
        ask([request("i1", samples=3)])


ANSWERED_RUN = """
import sys
from pathlib import Path

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "litellm":
            print("litellm is imported")
            raise ImportError

sys.meta_path.insert(0, Finder)
sys.path[:0] = sys.argv[3:]
from fixtures.models import model_config, request
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun

run = ModelRun(model_config(api_base=sys.argv[1], id="openai/gpt-4o"), ledger=Path(sys.argv[2]), destinations=("local",), max_failed_fraction=None)
print(answer_requests([request("i1")], run)[0].state)
"""


def test_a_run_that_its_ledger_answers_does_not_import_litellm(server, ask, tmp_path):
    """Its import takes 3 to 4 s of CPU, in every job of every rule that asks a model; it is asked what models of OpenAI take."""
    ask([request("i1")], id="openai/gpt-4o")
    argv = [
        sys.executable,
        "-c",
        ANSWERED_RUN,
        server.address,
        str(tmp_path / "ledger/m.jsonl"),
        str(ROOT / "tests"),
        str(ROOT / "scripts"),
    ]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "ok\n"
    (tmp_path / "ledger/m.jsonl").unlink()
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "litellm is imported\n"


def test_two_requests_that_say_the_same_are_one_call(server, ask):
    turn = RequestTurn(text="What is it?")
    rows = ask([request("i1", turn), request("i2", turn), request("i2", turn, arm="no_image")])
    assert len(server.bodies) == 1
    assert len({row.text for row in rows}) == 1


def test_samples_are_separate_calls_with_their_own_seed(server, ask):
    rows = ask([request("i1", samples=3)], seed=7, temperature=1.0)
    assert sorted(body["seed"] for body in server.bodies) == [7, 8, 9]
    assert [row.repeat for row in rows] == [0, 1, 2]


def test_what_the_provider_said_is_recorded(server, ask):
    (row,) = ask(
        [request("i1")], prices={"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2, "dated": "x"}, max_cost_usd=1
    )
    assert (row.state, row.served_model, row.fingerprint, row.finish_reason) == (ResponseState.OK, "m-2026-01", "fp-7", "stop")
    assert (row.prompt_tokens, row.completion_tokens, row.attempts) == (100, 10, 1)
    assert row.cost_usd == pytest.approx(120e-6)


def test_too_many_failures_are_an_error_after_the_answers_are_safe(server, ask):
    server.modes = ["ok", "400"]
    with pytest.raises(ProviderError, match=r"3 of 4 answers failed.*; the others are kept: run again to ask for the failed ones only$"):
        ask([request(f"i{n}") for n in range(4)], max_failed_fraction=0.05, concurrency=1)
    server.modes = ["ok"]
    ask([request(f"i{n}") for n in range(4)], max_failed_fraction=0.05)
    assert len(server.bodies) == 4 + 3


def test_pictures_are_sent_after_their_labels_and_spread_over_the_budget(server, ask, tmp_path):
    images = tuple(picture(tmp_path, n) for n in range(9))
    (row,) = ask([request("i1", RequestTurn(text="Look.", images=images))], max_images=3)
    content = server.bodies[0]["messages"][1]["content"]
    assert [part["text"] for part in content if part["type"] == "text"] == ["Look.", *(f"Picture {n}: FLAIR" for n in (1, 5, 9))]
    assert row.images_sent == 3


def test_a_picture_that_was_exchanged_after_the_audit_is_not_sent(server, ask, tmp_path):
    image = picture(tmp_path, 0)
    (tmp_path / image.path).write_bytes(b"another patient")
    with pytest.raises(DataError, match="not the picture"):
        ask([request("i1", RequestTurn(text="Look.", images=(image,)))])
    assert server.bodies == []


def test_a_dialogue_sends_the_answers_that_were_really_given(server, ask, tmp_path):
    turns = (RequestTurn(text="First."), RequestTurn(text="Second.", images=(picture(tmp_path, 0),)))
    (row,) = ask([request("i1", *turns)])
    history = server.bodies[1]["messages"]
    assert [message["role"] for message in history] == ["system", "user", "assistant", "user"]
    assert history[2]["content"] == row.turns[0]
    assert (len(row.turns), row.text, len(row.call_keys), row.prompt_tokens) == (2, row.turns[1], 2, 200)


def test_an_answer_that_is_no_valid_text_does_not_lose_the_run(server, ask):
    server.modes = ["surrogate"]
    (row,) = ask([request("i1", RequestTurn(text="First."), RequestTurn(text="Second."))])
    assert row.text == "half ?"


def test_a_dialogue_that_broke_off_goes_on_where_it_was(server, ask):
    turns = (RequestTurn(text="First."), RequestTurn(text="Second."))
    server.modes = ["ok", "400"]
    (row,) = ask([request("i1", *turns)])
    assert (row.state, row.text, len(row.turns)) == (ResponseState.FAILED, "", 1)
    server.modes = ["ok"]
    (row,) = ask([request("i1", *turns)])
    assert (row.state, len(server.bodies)) == (ResponseState.OK, 3)


def test_the_key_appears_nowhere_but_in_the_call(server, ask, tmp_path, monkeypatch, capfd):
    logging.getLogger().setLevel(logging.DEBUG)
    monkeypatch.setenv("NMB_TEST_KEY", CANARY)
    server.modes = ["ok", "401", "429", "400"]
    free = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 0, "dated": "x"}
    rows = ask([request(f"i{n}") for n in range(4)], api_key_env="NMB_TEST_KEY", prices=free, max_cost_usd=0, concurrency=1)
    assert server.headers[0]["Authorization"] == f"Bearer {CANARY}"
    out, err = capfd.readouterr()
    written = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert CANARY not in "".join([out, err, written, repr(rows)])


def test_a_key_of_the_environment_that_the_yaml_does_not_name_is_never_sent(server, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    ask([request("i1")])
    assert CANARY not in repr(server.headers)


def test_without_the_key_new_answers_are_skipped_and_known_ones_are_used(server, ask, monkeypatch, capsys):
    free = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 0, "dated": "x"}
    paid = {"api_key_env": "NMB_TEST_KEY", "prices": free, "max_cost_usd": 0}
    monkeypatch.setenv("NMB_TEST_KEY", CANARY)
    ask([request("i1")], **paid)
    monkeypatch.delenv("NMB_TEST_KEY")
    rows = ask([request("i1"), request("i2")], max_failed_fraction=0, **paid)
    assert [row.state for row in rows] == [ResponseState.OK, ResponseState.SKIPPED]
    assert "1 answers skipped: the environment variable NMB_TEST_KEY is not set" in capsys.readouterr().err


def test_a_paid_model_without_cap_or_prices_is_refused(ask):
    with pytest.raises(ConfigError, match="set max_cost_usd"):
        ask([request("i1")], api_key_env="NMB_TEST_KEY")
    with pytest.raises(ConfigError, match="without prices"):
        ask([request("i1")], api_key_env="NMB_TEST_KEY", max_cost_usd=1)


def test_calls_that_could_break_the_cap_are_not_made(server, ask):
    prices = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "x"}
    rows = ask([request(f"i{n}") for n in range(5)], prices=prices, max_cost_usd=0.125, max_tokens=100, concurrency=4)
    spent = sum(row.cost_usd or 0 for row in rows)
    assert {row.state for row in rows} == {ResponseState.OK, ResponseState.OVER_BUDGET}
    assert spent <= 0.125
    assert len(server.bodies) == sum(row.state is ResponseState.OK for row in rows)


def test_a_tight_cap_buys_the_main_arm_first(server, ask):
    """Controls are cheaper, but it is the answers under `full` that are ranked."""
    prices = {"usd_per_million_prompt_tokens": 0, "usd_per_million_completion_tokens": 1000, "dated": "x"}
    arms = ("findings_only", "no_image", "full", "no_text")
    requests = [request(f"i{number}", RequestTurn(text=f"{number} {arm}"), arm=arm) for number in range(5) for arm in arms]
    requests.insert(0, replace(request("i0", RequestTurn(text="Think step by step.")), strategy="cot"))
    rows = ask(requests, max_cost_usd=0.065, max_tokens=10, prices=prices, concurrency=3)
    asked = Counter((row.arm, row.strategy) for row in rows if row.state is ResponseState.OK)
    assert asked == {("full", "direct"): 5, ("full", "cot"): 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"api_base": "https://example.org/v1"}, "would go to example.org"),
        ({"api_base": None}, r"would go to api\.openai\.com"),
        ({"api_base": None, "id": "nobody/m"}, "a provider of openai"),
        ({"api_base": "http://127.0.0.1.example.org/v1"}, r"would go to 127\.0\.0\.1\.example\.org"),
        ({"api_base": "http://gpu.example.org/v1"}, r"would go to gpu\.example\.org, allowed are: local"),
        ({"api_base": "http://local/v1"}, "not a full address"),
    ],
)
def test_a_destination_that_is_not_allowed_is_refused_before_anything_is_read(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        answer_requests(
            [request("i1")],
            ModelRun(model_config(**changes), ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None),
        )
    assert not (tmp_path / "m.jsonl").exists()


@pytest.mark.parametrize("listed", ["gpu.example.org", "GPU.example.org/"])
@pytest.mark.parametrize("address", ["http://gpu.example.org:8000/v1", "HTTP://GPU.example.org/v1"])
def test_plain_http_to_another_machine_is_refused_until_it_is_allowed_by_name(address, listed):
    """Pictures, notes and the key would cross the network readable for everyone on the way."""
    plain, encrypted = (model_config(api_base=way) for way in (address, "https://gpu.example.org/v1"))
    with pytest.raises(
        ConfigError, match=r"without encryption: use https://, or .* write `http://gpu\.example\.org` in allowed_destinations"
    ):
        check_destination(plain, ["local", listed])
    assert check_destination(plain, ["http://gpu.example.org"]) == "gpu.example.org"
    for allowed in ("gpu.example.org", "http://gpu.example.org", "http://GPU.example.org/"):
        assert check_destination(encrypted, [allowed]) == "gpu.example.org"
    assert check_destination(model_config(api_base="http://127.0.0.1:8000/v1"), ["local"]) == "local"
    with pytest.raises(ConfigError, match=r"allowed are: http://other\.example\.org"):
        check_destination(plain, ["http://other.example.org"])


def test_a_variable_of_the_environment_cannot_send_requests_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example.org/v1")
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        answer_requests(
            [], ModelRun(model_config(), ledger=tmp_path / "m.jsonl", destinations=("api.openai.com",), max_failed_fraction=None)
        )


@pytest.mark.parametrize(
    "model_id", ["openai/m", "hosted_vllm/m", "anthropic/m", "gemini/m", "mistral/m", "openrouter/a/m", "xai/m", "deepseek/m"]
)
def test_a_redirect_does_not_take_a_request_to_another_host(tmp_path, server, model_id):
    with running_server() as elsewhere, redirecting_server(elsewhere.address) as address:
        (row,) = answer_requests(
            [request("i1")],
            ModelRun(
                model_config(id=model_id, api_base=address, max_attempts=1),
                ledger=tmp_path / "m.jsonl",
                destinations=("local",),
                max_failed_fraction=None,
            ),
        )
        assert (row.state, elsewhere.bodies) == (ResponseState.FAILED, [])


def test_what_stays_on_this_machine_does_not_pass_a_proxy(server, ask, monkeypatch):
    with running_server() as proxy:
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        assert ask([request("i1")])[0].state is ResponseState.OK
        assert proxy.bodies == []


def test_a_person_can_see_what_was_sent_and_what_came_back(server, ask, tmp_path):
    asked = request(
        "i1", RequestTurn(text="First."), RequestTurn(text="Second.", images=(picture(tmp_path, 0), picture(tmp_path, 1))), samples=2
    )
    rows = ask([asked], max_images=1)
    ledger = tmp_path / "ledger/m.jsonl"
    text = explain(asked, model_config(max_images=1), read_ledger(ledger))
    assert text.count("[Picture ") == 1
    assert all(words in text for words in ("First.", "Second.", *rows[0].turns, "sample 1: 2 of 2 calls are in the ledger"))
    assert "sample 0: 0 of 2 calls" in explain(asked, model_config(revision="2"), read_ledger(ledger))


def entry(key, **changes):
    return LedgerEntry(key=key, state="ok", text="réponse", **changes)


def test_a_torn_last_line_costs_only_itself(tmp_path):
    path = tmp_path / "m.jsonl"
    with open_ledger(path) as book:
        for key in "abc":
            book.add(entry(key))
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with open_ledger(path) as book:
        assert (len(book), book.unreadable, book.get("c")) == (2, 1, None)
        book.add(entry("c"))
    with open_ledger(path) as book:
        assert len(book) == 3
    assert path.read_bytes().startswith(whole[:-10])


def test_columns_of_a_later_version_are_kept_and_the_first_of_two_entries_counts(tmp_path):
    path = tmp_path / "m.jsonl"
    lines = [{"key": "a", "state": "ok", "text": text, "colour": "red"} for text in ("first", "second")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with open_ledger(path) as book:
        assert book.get("a").text == "first"
        book.add(replace(entry("a"), text="third"))
    assert path.read_text().count("red") == 2
    assert "third" not in path.read_text()


def _hold(path, pipe):
    with open_ledger(path) as book:
        book.add(entry("paid"))
        pipe.send("ready")
        pipe.poll(20)


@contextmanager
def another_writer(path):
    """Yield a process that writes to a ledger until the block ends; a pipe, because a killed process never releases an Event."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    holder = context.Process(target=_hold, args=(path, there))
    holder.start()
    try:
        assert here.poll(30)
        assert here.recv() == "ready"
        yield holder
    finally:
        here.send("done")
        holder.join(20)


def test_a_killed_process_loses_no_answer_and_leaves_no_lock(tmp_path):
    with another_writer(tmp_path / "m.jsonl") as holder:
        holder.kill()
        holder.join(20)
    with open_ledger(tmp_path / "m.jsonl") as book:
        assert book.get("paid")


ADD_UNTIL_KILLED = """
import os, signal, sys
from neuralmedbench.models import ledger

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def half(descriptor, line):
    os.write(descriptor, line[: len(line) // 2])
    die()

with ledger.open_ledger(ledger.Path(sys.argv[1])) as book:
    for number in range(100):
        if number == 20:
            if sys.argv[2] == "fsync":
                os.fsync = die
            else:
                ledger.append = half
        book.add(ledger.LedgerEntry(key=str(number), state="ok", text="x" * 500))
        print(number, flush=True)
"""


@pytest.mark.parametrize("moment", ["fsync", "half a line"])
def test_a_process_that_is_killed_in_the_middle_of_an_append_loses_no_answer_that_was_kept(tmp_path, moment):
    path = tmp_path / "m.jsonl"
    command = [sys.executable, "-c", ADD_UNTIL_KILLED, str(path), moment]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    kept = done.stdout.split()
    assert len(kept) >= 20
    with open_ledger(path) as book:
        assert all(book.get(key) for key in kept)
        book.add(entry("later"))
    assert set(read_ledger(path)) >= {*kept, "later"}


def test_a_second_writer_is_refused_with_the_number_of_the_first(tmp_path):
    path = tmp_path / "m.jsonl"
    with another_writer(path) as holder, pytest.raises(ProviderError, match=f"process {holder.pid} writes"), open_ledger(path):
        pass
    with open_ledger(tmp_path / "m.jsonl"):
        pass


@pytest.mark.parametrize("begun", [True, False], ids=["the ledger is there", "the links lead to nothing yet"])
def test_two_clones_that_share_a_ledger_by_links_to_its_file_have_one_writer(tmp_path, begun):
    links = [tmp_path / clone / "ledger" / "m.jsonl" for clone in ("one", "two")]
    for link in links:
        link.parent.mkdir(parents=True)
        link.symlink_to(tmp_path / "shared" / "model.jsonl")
    if begun:
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared" / "model.jsonl").touch()
    with another_writer(links[0]) as holder:
        for path in (links[1], tmp_path / "shared" / "model.jsonl"):
            with pytest.raises(ProviderError, match=f"process {holder.pid} writes"), open_ledger(path):
                pass
    with open_ledger(links[1]) as book:
        book.add(entry("a"))
    assert links[0].is_symlink()
    assert "a" in read_ledger(links[0])


@pytest.mark.parametrize("mode", ["401", "402", "404"])
def test_what_one_call_is_told_about_key_credit_or_model_is_not_asked_a_hundred_times(server, ask, mode):
    server.modes = [mode]
    rows = ask([request(f"i{n}") for n in range(30)], concurrency=2)
    assert {row.state for row in rows} == {ResponseState.FAILED}
    assert len({row.error for row in rows}) == 1
    assert 1 <= len(server.bodies) <= 2
    server.modes = ["ok"]
    assert {row.state for row in ask([request(f"i{n}") for n in range(30)])} == {ResponseState.OK}


def test_a_line_that_says_that_a_call_failed_is_no_answer_whoever_wrote_it_and_the_log_counts_it(
    server, ask, tmp_path, capsys, monkeypatch
):
    ask([request("i")])
    shown = []
    monkeypatch.setattr("neuralmedbench.models.console.warn_run", lambda line: shown.append(line) or True)
    (line,) = (tmp_path / "ledger/m.jsonl").read_text().splitlines()
    (tmp_path / "ledger/m.jsonl").write_text(json.dumps(json.loads(line) | {"state": "failed"}) + "\n")
    assert ask([request("i")])[0].state is ResponseState.OK
    assert len(server.bodies) == 2
    assert "m: 1 lines of its ledger cannot be read" in capsys.readouterr().err
    assert any("m: 1 lines of its ledger cannot be read" in line for line in shown), "the terminal of the run says it too"
