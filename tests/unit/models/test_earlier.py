"""Two revisions in one ledger: the earlier responses are rebuilt without a call."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fixtures.models import model_config, picture, request, running_server
from neuralmedbench.models import engine, retry
from neuralmedbench.models.call_keys import call_key
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.replay import previous_responses
from neuralmedbench.records.requests import RequestTurn

NEW_FIELDS = ("model", "revision", "temperature", "top_p", "seed", "max_tokens", "code")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    with running_server() as running:
        yield running


@pytest.fixture
def ask(server, tmp_path):
    """Return a function that asks the server, with one ledger for the whole test."""

    def asking(requests, *, first_repeat=0, **changes):
        return answer_requests(
            requests,
            ModelRun(
                model_config(api_base=server.address, **changes),
                ledger=tmp_path / "m.jsonl",
                destinations=("local",),
                max_failed_fraction=None,
                root=tmp_path,
                first_repeat=first_repeat,
            ),
        )

    return asking


@pytest.fixture
def earlier(tmp_path):
    """Return a function that rebuilds the answers of the previous revision."""

    def rebuilding(requests, **changes):
        return previous_responses(requests, model_config(**changes), tmp_path / "m.jsonl")

    return rebuilding


def test_the_revision_before_is_rebuilt_without_a_call(server, ask, earlier, tmp_path):
    turns = (RequestTurn(text="First."), RequestTurn(text="Second.", images=(picture(tmp_path, 0), picture(tmp_path, 1))))
    requests = [request("i1", samples=2), request("i2", *turns), request("i3", samples=3)]
    old = ask(requests, revision="1", seed=5, temperature=1.0)
    new = ask(requests, revision="2", seed=5, temperature=1.0)
    assert len(server.bodies) == 2 * 7
    assert {row.revision for row in new} == {"2"}
    assert earlier(requests, revision="2", seed=5, temperature=1.0) == old
    assert len(server.bodies) == 2 * 7
    assert {entry.revision for entry in read_ledger(tmp_path / "m.jsonl").values()} == {"1", "2"}


def test_what_was_set_then_is_taken_from_the_ledger_and_not_from_the_yaml(ask, earlier):
    requests = [request("i1", samples=2)]
    old = ask(requests, id="openai/m-may", revision="1", seed=5, temperature=1.0, top_p=0.9, max_tokens=200)
    ask(requests, id="openai/m-june", revision="2", temperature=0)
    assert earlier(requests, id="openai/m-june", revision="2", temperature=0) == old


def test_the_most_recent_other_revision_counts_with_the_settings_it_had_last(ask, earlier):
    requests = [request("i1")]
    ask(requests, revision="1")
    ask(requests, revision="2", temperature=1.0)
    last = ask(requests, revision="2", temperature=0.5)
    ask(requests, revision="3")
    assert earlier(requests, revision="3") == last
    assert {row.revision for row in earlier(requests, revision="2")} == {"3"}
    assert earlier(requests, revision="4")[0].revision == "3"


def test_an_answer_that_was_never_asked_for_is_left_out_and_not_missing(ask, earlier):
    first = request("i1", samples=2)
    ask([first], revision="1")
    both = [replace(first, samples=3), request("i2")]
    ask(both, revision="2")
    assert [(row.item_id, row.repeat, str(row.state)) for row in earlier(both, revision="2")] == [("b/i1", 0, "ok"), ("b/i1", 1, "ok")]
    changed = replace(first, turns=(RequestTurn(text="What is it, please?"),))
    assert earlier([changed], revision="2") == []


def test_a_dialogue_of_which_a_turn_is_absent_is_left_out(server, ask, earlier):
    turns = (RequestTurn(text="First."), RequestTurn(text="Second."))
    server.modes = ["ok", "400"]
    ask([request("i1", *turns)], revision="1")
    server.modes = ["ok"]
    ask([request("i1", *turns)], revision="2")
    assert earlier([request("i1", *turns)], revision="2") == []


def test_earlier_answers_have_no_price_of_today(ask, earlier):
    prices = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 1, "dated": "x"}
    paid = {"prices": prices, "max_cost_usd": 1}
    assert ask([request("i1")], revision="1", **paid)[0].cost_usd
    (row,) = earlier([request("i1")], revision="2", **paid)
    assert (row.cost_usd, row.prompt_tokens, row.served_model) == (None, 100, "m-2026-01")


def test_lines_of_before_are_read_and_used_but_belong_to_no_known_revision(server, ask, earlier, tmp_path):
    requests = [request("i1", samples=2)]
    rows = ask(requests, revision="1")
    path = tmp_path / "m.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {name for line in lines for name in line} >= set(NEW_FIELDS)
    path.write_text("".join(json.dumps({name: line[name] for name in line if name not in NEW_FIELDS}) + "\n" for line in lines))
    assert ask(requests, revision="1") == rows
    assert len(server.bodies) == 2
    ask(requests, revision="2")
    assert earlier(requests, revision="2") == []


def test_a_ledger_of_one_revision_or_none_has_no_earlier_one(ask, earlier):
    assert earlier([request("i1")], revision="1") == []
    ask([request("i1")], revision="1")
    assert earlier([request("i1")], revision="1") == []


class Weights:
    """A backend in this process that records its calls."""

    in_flight = 4
    several = True

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self.calls.append(call)
        return tuple(Answer("answer") for _ in call.repeats)

    def stop(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture
def weights(monkeypatch):
    backend = Weights()
    monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
    return backend


def test_a_folder_with_weights_outside_of_the_project_is_not_written_down(weights, ask, earlier, tmp_path):
    local = {"backend": "transformers", "id": "/home/somebody/weights"}
    old = ask([request("i1")], revision="1", **local)
    assert "somebody" not in (tmp_path / "m.jsonl").read_text()
    assert earlier([request("i1")], revision="2", **local) == old
    assert earlier([request("i1")], revision="2", **{**local, "id": "/home/somebody/moved"}) == []


def test_samples_that_start_at_another_number_are_asked_afresh_with_seeds_of_their_own(server, ask, tmp_path):
    asked = request("i1", samples=2)
    ask([asked], seed=5)
    rows = ask([asked], seed=5, first_repeat=1000)
    assert [row.repeat for row in rows] == [1000, 1001]
    assert sorted(body["seed"] for body in server.bodies) == [5, 6, 1005, 1006]
    said = next_messages(asked, [], None)
    assert said is not None
    assert set(read_ledger(tmp_path / "m.jsonl")) == {call_key(model_config(seed=5), said, repeat) for repeat in (0, 1, 1000, 1001)}


def test_a_backend_that_makes_all_samples_together_still_counts_them_from_0(weights, ask):
    ask([request("i1", samples=2)], seed=5, first_repeat=1000, backend="transformers", id="data/weights/m")
    assert [(call.repeats, call.seed, call.seed_of(1)) for call in weights.calls] == [((0, 1), 1005, 1006)]
