"""Requests that show the model's own earlier answer: asked after it, with it in its place, and not at all without one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fixtures.models import model_config, request
from neuralmedbench.errors import DataError, ProviderError
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.models import engine
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.imported_answers import check_import
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.replay import previous_responses, replay_requests
from neuralmedbench.models.retry import CallError
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.records.requests import EARLIER, Request, RequestTurn
from neuralmedbench.records.responses import Response

SHOWS = f"A colleague suggests this answer:\n{EARLIER}\nWhat do you say?"


def with_own(full: Request, *before: RequestTurn, arm: str = "own_answer-suggested") -> Request:
    """Give the request that shows the answer to another one."""
    return replace(full, arm=arm, turns=(*before, RequestTurn(text=SHOWS)), earlier=full.turns, request_id=f"own-{full.item_id}")


class Scripted:
    """A backend whose answers are written by a function of the last message and the sample; it notes what it was sent."""

    def __init__(self, write, *, several: bool = False) -> None:
        self.write, self.several, self.in_flight = write, several, 4
        self.calls: list[Call] = []

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        self.calls.append(call)
        await asyncio.sleep(0.001)
        found = [self.write(call.messages[-1].text, repeat) for repeat in call.repeats]
        return tuple(one if isinstance(one, Answer) else Answer(one, prompt_tokens=10, completion_tokens=2) for one in found)

    def stop(self) -> None:
        pass

    async def close(self) -> None:
        pass

    @property
    def sent(self) -> list[str]:
        """The last message of every call."""
        return [call.messages[-1].text for call in self.calls]


def says(text: str, repeat: int) -> str:
    """Say which message and sample an answer belongs to."""
    return f"answer {repeat} to <{text}>"


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """Return a function that asks a scripted model."""

    def asking(backend, requests, **changes) -> list[Response]:
        monkeypatch.setattr(engine, "open_backend", lambda *_: BackendHandle(backend))
        return answer_requests(requests, model_run(tmp_path, **changes))

    return asking


def model_run(folder, **changes) -> ModelRun:
    """Give the run of a model on this machine."""
    model = model_config(**{"backend": "transformers", "id": "data/weights/m"} | changes)
    return ModelRun(model, ledger=folder / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=folder)


@pytest.mark.parametrize("several", [False, True])
def test_the_answer_of_the_same_sample_stands_in_its_place_and_is_asked_for_once(ask, several):
    full = request("a", samples=3)
    backend = Scripted(says, several=several)
    rows = ask(backend, [with_own(full), full])
    question = full.turns[0].text
    own = [row for row in rows if row.arm == "own_answer-suggested"]
    assert [row.text for row in own] == [says(SHOWS.replace(EARLIER, says(question, repeat)), repeat) for repeat in range(3)]
    assert [row.turns for row in own] == [(row.text,) for row in own]
    # the full arm's answers are not asked for twice
    assert backend.sent.count(question) == (1 if several else 3)
    assert len(backend.calls) == (4 if several else 6)
    by_repeat = {row.repeat: row for row in rows if row.arm == "full"}
    assert all(row.call_keys == (*by_repeat[row.repeat].call_keys, row.call_keys[-1]) for row in own)
    assert all(row.prompt_tokens == 10 for row in own)


def test_the_key_of_a_call_is_over_what_is_really_sent(ask, tmp_path):
    full = request("a")
    shown = says(full.turns[0].text, 0)
    ask(Scripted(says), [full, with_own(full)])
    entries = read_ledger(tmp_path / "m.jsonl")
    # a request with the answer written out has the same key, whatever arm it belongs to
    written = replace(full, arm="other", turns=(RequestTurn(text=SHOWS.replace(EARLIER, shown)),))
    assert SampleWalk(written, model_run(tmp_path).model, 0).key in entries
    assert {entry.arm for entry in entries.values()} == {"full", "own_answer-suggested"}
    assert [entry.turn for entry in entries.values()] == [0, 0]


def test_thoughts_of_the_earlier_answer_are_not_shown(ask):
    full = request("a")
    backend = Scripted(lambda text, _: "<think>B or C?</think>\nANSWER: B" if text == full.turns[0].text else "ANSWER: C")
    ask(backend, [full, with_own(full)])
    assert SHOWS.replace(EARLIER, "ANSWER: B") in backend.sent


def test_a_place_of_the_earlier_answer_within_the_answer_is_not_filled_again(ask):
    full = request("a")
    backend = Scripted(lambda *_: f"I quote {EARLIER}")
    ask(backend, [full, with_own(full)])
    assert SHOWS.replace(EARLIER, f"I quote {EARLIER}") in backend.sent


def test_in_a_dialogue_the_final_answer_is_shown_in_the_last_round_and_the_first_rounds_are_shared(ask):
    rounds = (RequestTurn(text="Round 1"), RequestTurn(text="Round 2"))
    full = request("a", *rounds)
    backend = Scripted(says)
    rows = ask(backend, [full, with_own(full, rounds[0])])
    assert backend.sent == ["Round 1", "Round 2", SHOWS.replace(EARLIER, says("Round 2", 0))]
    last = backend.calls[-1].messages
    assert [message.text for message in last if message.role == "assistant"] == [says("Round 1", 0)]
    own = next(row for row in rows if row.arm != "full")
    assert own.turns == (says("Round 1", 0), own.text)


@pytest.mark.parametrize(
    ("earlier", "cause"),
    [
        (Answer("", state="refused"), "refused"),
        (Answer("half an ans", state="truncated"), "truncated"),
        (Answer("  "), "empty"),
        (Answer("<think>nothing but thoughts"), "empty"),
        (CallError("E", 400, final=True), "E (400)"),
    ],
)
def test_without_an_earlier_answer_the_sample_is_skipped_with_the_cause(ask, tmp_path, earlier, cause):
    full, other = request("a"), request("b")

    def write(text: str, repeat: int) -> str | Answer:
        if text != full.turns[0].text:
            return says(text, repeat)
        if isinstance(earlier, Exception):
            raise earlier
        return earlier

    requests = [full, other, with_own(full), with_own(other)]
    backend = Scripted(write)
    rows = {(row.item_id, row.arm): row for row in ask(backend, requests)}
    row = rows[full.item_id, "own_answer-suggested"]
    assert (row.state, row.error) == ("skipped", f"no earlier answer to show ({cause})")
    assert (row.text, row.turns, row.attempts, row.images_sent) == ("", (), 0, 0)
    assert rows[other.item_id, "own_answer-suggested"].state == "ok"
    assert rows[full.item_id, "full"].attempts >= 1
    assert len(backend.calls) == 3
    if not isinstance(earlier, Exception):  # a failed call is in no ledger
        model = model_run(tmp_path).model
        again = {(row.item_id, row.arm): row for row in replay_requests(requests, model, tmp_path / "m.jsonl", None)}
        assert again == rows
        assert f"not asked: {row.error}" in explain(with_own(full), model, read_ledger(tmp_path / "m.jsonl"))


def test_a_recorded_run_is_rebuilt_without_a_call_and_the_previous_revision_too(ask, tmp_path):
    full = request("a", samples=2)
    requests = [full, with_own(full)]
    rows = ask(Scripted(says), requests)
    model = model_run(tmp_path).model
    assert replay_requests(requests, model, tmp_path / "m.jsonl", None) == rows
    newer = model.model_copy(update={"revision": "2"})
    assert [replace(row, cost_usd=None) for row in previous_responses(requests, newer, tmp_path / "m.jsonl")] == rows


def test_a_replay_that_lacks_the_answer_says_which(ask, tmp_path):
    full = request("a")
    ask(Scripted(says), [full])
    with pytest.raises(ProviderError, match=r"1 of 2 answers are not in its ledger, the first is that to .*own_answer-suggested"):
        replay_requests([full, with_own(full)], model_run(tmp_path).model, tmp_path / "m.jsonl", None)


def test_the_plan_counts_the_earlier_call_once_and_what_shows_it_for_each_sample(ask, tmp_path):
    full = request("a", samples=2)
    requests = [full, with_own(full), with_own(full, arm="own_answer-doubted")]
    doubted = replace(requests[2], turns=(RequestTurn(text=SHOWS.replace("suggests", "doubts")),))
    requests[2] = doubted
    model = model_run(tmp_path).model
    before = forecast_calls(requests, model, {})
    assert (before.samples, before.calls, before.answered) == (6, 6, 0)
    ask(Scripted(says), [full])
    halfway = forecast_calls(requests, model, read_ledger(tmp_path / "m.jsonl"))
    assert (halfway.calls, halfway.answered) == (4, 2)
    backend = Scripted(says)
    ask(backend, requests)
    assert len(backend.calls) == halfway.calls
    after = forecast_calls(requests, model, read_ledger(tmp_path / "m.jsonl"))
    assert (after.calls, after.answered) == (0, 6)


def test_an_earlier_answer_that_is_still_unknown_is_in_the_forecast_of_the_prompt(tmp_path):
    full = request("a")
    model = model_run(tmp_path, max_tokens=500).model
    alone, both = forecast_calls([full], model, {}), forecast_calls([full, with_own(full)], model, {})
    assert both.most_prompt_tokens - alone.most_prompt_tokens > 500


def test_the_explanation_shows_the_earlier_call_and_the_message_with_the_answer(ask, tmp_path):
    full = request("a")
    ask(Scripted(says), [full, with_own(full)])
    text = explain(with_own(full), model_run(tmp_path).model, read_ledger(tmp_path / "m.jsonl"))
    assert SHOWS.replace(EARLIER, says(full.turns[0].text, 0)) in text
    assert "sample 0: 2 of 2 calls are in the ledger" in text
    assert "first asked for b/a, arm full, strategy direct, with the same prompt" in text
    assert EARLIER not in text


def test_an_answer_that_shows_an_earlier_one_cannot_be_imported(tmp_path):
    full = request("a")
    model = model_config(backend="imported", id="m")
    given = [GivenAnswer(where="line 1", item="a", arm="own_answer-suggested", strategy="direct", sample=0, turns=("ANSWER: B",))]
    with pytest.raises(DataError, match="arm own_answer-suggested shows the model's own earlier answer"):
        check_import([full, with_own(full)], model, given, ledger=tmp_path / "m.jsonl")
