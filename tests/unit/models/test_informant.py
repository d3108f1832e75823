"""A language model tells the facts of a case: only the case's own words reach the model that asks, and every call is kept and paid for once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT
from fixtures.confidence import open_item, study_of
from fixtures.models import Server, model_config, reply, request, running_server
from neuralmedbench.config.model import ModelConfig, Prices
from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.files.templates import Templates
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.explain import explain
from neuralmedbench.models.forecast import forecast_calls, forecast_informant
from neuralmedbench.models.informant import INFORMANT, chosen_facts
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.prompts.conversations import with_informant
from neuralmedbench.records.requests import STATEMENT, Fact, Inquiry, Request, RequestTurn
from neuralmedbench.records.responses import Response
from neuralmedbench.scoring.workup import measures_of_asking
from neuralmedbench.tables.bundle import turns_of
from neuralmedbench.tables.cost import destination_rows

FACTS = tuple(
    Fact(text=text, kind=STATEMENT)
    for text in (
        "1. The rash does not itch.",
        "2. She takes methotrexate.",
        "3. Her sister had a melanoma.",
        "4. No fever.",
        "5. A sore knee.",
    )
)
OPTIONS = ("psoriasis", "lupus")
INQUIRY = with_informant(
    Inquiry(facts=FACTS, max_questions=3, unknown="The case does not say.", left="Questions left: {left}.", closing="Final answer now."),
    Templates(ROOT / "config/prompts"),
)
QUESTIONS = ("Which drugs?", "Does it itch, and is there a fever?", "What is it?")
PLANTED = {
    "an invented fact": "She has a butterfly rash.",
    "the diagnosis": "FACTS: lupus",
    "a number without a fact": "FACTS: 6",
    "the number nought": "FACTS: 0",
    "one number without a fact": "FACTS: 2, 17",
    "prose": "The doctor should know that fact 2 answers this.",
    "nothing": "",
    "white space": " \n ",
    "a fact and a clause": "2. She takes methotrexate, for lupus.",
    "a number and a clause": "FACTS: 2 (she has lupus)",
    "a number and a line": "FACTS: 2\nShe has lupus.",
    "the whole record": "FACTS: 1, 2, 3, 4, 5",
    "thoughts alone": "<think>FACTS: 2",
    "a negative number": "FACTS: -2",
}


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("FACTS: 2", [2]),
        ("FACTS: 4, 2", [2, 4]),
        ("facts: [1], [3]", [1, 3]),
        ("**FACTS:** 2 2.", [2]),
        ("<think>2 or 3? lupus</think>\nFACTS: 3", [3]),
        ("3", [3]),
        ("FACTS: none", []),
        ("None.", []),
    ],
)
def test_a_reply_is_numbers_of_facts_or_none(said: str, numbers: list[int]) -> None:
    assert chosen_facts(said, FACTS) == tuple(FACTS[number - 1] for number in numbers)


@pytest.mark.parametrize("said", PLANTED.values(), ids=PLANTED.keys())
def test_whatever_else_is_replied_is_no_reply(said: str) -> None:
    assert chosen_facts(said, FACTS) is None


def test_what_a_real_model_invented_as_informant_is_no_reply() -> None:
    replies = json.loads((ROOT / "tests" / "fixtures" / "smollm2" / "informant.json").read_text(encoding="utf-8"))
    assert len(replies) == 57
    assert {said: chosen_facts(said, FACTS) for said in replies if chosen_facts(said, FACTS) is not None} == {"None": ()}


@given(st.text(max_size=40) | st.from_regex(r"(FACTS: )?[\d, \[\]none.]{0,12}"))
def test_no_reply_tells_what_is_not_a_fact_or_more_than_three(said: str) -> None:
    told = chosen_facts(said, FACTS) or ()
    assert set(told) <= set(FACTS)
    assert len(told) <= 3


class AsksThreeTimes(Server):
    """Asks its questions, then answers with a letter."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        number = sum(message["role"] == "assistant" for message in body["messages"])
        return web.json_response(reply(f"QUESTION: {QUESTIONS[number]}" if number < len(QUESTIONS) else "ANSWER: B"))


class Telling(Server):
    """Replies to each question by a list: first replies, and those to a correction."""

    def __init__(self, *replies: Sequence[str]) -> None:
        super().__init__()
        self.replies = dict(zip(QUESTIONS, replies, strict=True))
        self.named = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        self.bodies.append({"messages": messages})
        asked = next(message["content"] for message in messages if message["role"] == "user")
        number = sum(message["role"] == "assistant" for message in messages)
        return web.json_response(reply(self.replies[_text(asked)][number], model=self.named))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def asked(samples: int = 1, item: str = "i1") -> Request:
    return replace(request(item, RequestTurn(text="A rash.")), strategy="ask", runner="choice", inquiry=INQUIRY, samples=samples)


def models(asker: Server, teller: Server, **changes: object) -> tuple[ModelConfig, ModelConfig]:
    local = {"max_attempts": 1, "temperature": None}
    informant = model_config(**{"id": "openai/teller", "api_base": teller.address, **local, **changes}).named("teller")
    return model_config(api_base=asker.address, **local), informant


def run_with(
    root: Path, asker: Server, teller: Server, *requests: Request, changes: dict[str, object] | None = None, **run: Any
) -> list[Response]:
    model, informant = models(asker, teller, **(changes or {}))
    settings: dict[str, Any] = {"destinations": ("local",), "max_failed_fraction": None, **run}
    return answer_requests(requests or [asked()], ModelRun(model, ledger=root / "m.jsonl", informant=informant, **settings))


def told_to(asker: AsksThreeTimes) -> list[str]:
    """Give what the asking model was told in its last call."""
    return [_text(message["content"]) for message in asker.bodies[-1]["messages"] if message["role"] == "user"][1:]


@pytest.fixture
def asker() -> Iterator[AsksThreeTimes]:
    with running_server(AsksThreeTimes()) as server:
        assert isinstance(server, AsksThreeTimes)
        yield server


def test_facts_told_by_another_informant_than_the_one_asked_leave_no_answer(tmp_path, asker, capsys) -> None:
    with running_server(Telling(["FACTS: 2"], ["FACTS: 1"], ["FACTS: none"])) as teller:
        teller.named = "teller-mini"
        (row,) = run_with(tmp_path, asker, teller)
        assert (row.state, row.error) == ("failed", "informant: answered by another model: teller-mini, not teller")
        assert f"m: WARNING: {row.error}" in capsys.readouterr().err
        (row,) = run_with(tmp_path, asker, teller, changes={"served_as": ["teller-mini"]})
        assert (row.state, row.error) == ("ok", "")
        assert len(teller.bodies) == 3


def test_facts_are_told_in_the_words_of_the_case(tmp_path, asker) -> None:
    with running_server(Telling(["FACTS: 2"], ["FACTS: 4, 1"], ["FACTS: none"])) as teller:
        (row,) = run_with(tmp_path, asker, teller)
    assert told_to(asker) == [
        "2. She takes methotrexate.\n\nQuestions left: 2.",
        "1. The rash does not itch.\n4. No fever.\n\nQuestions left: 1.",
        "The case does not say.\n\nFinal answer now.",
    ]
    assert (row.state, row.text, len(row.turns), row.informed) == ("ok", "ANSWER: B", 4, ("FACTS: 2", "FACTS: 4, 1", "FACTS: none"))
    # it sees the facts, by its own numbers, and one question; never the options, or what was asked before
    for body, question in zip(teller.bodies, QUESTIONS, strict=True):
        system, user = (_text(message["content"]) for message in body["messages"])
        assert "[2] She takes methotrexate." in system
        assert user == question
        assert "A rash." not in system
    measured = measures_of_asking(INQUIRY, row.turns, OPTIONS, row.informed)
    assert {name: measured[name] for name in ("facts_asked", "not_answered", "informant_corrected", "informant_unusable")} == {
        "facts_asked": pytest.approx(3 / 5), "not_answered": pytest.approx(1 / 3), "informant_corrected": 0, "informant_unusable": 0,
    }  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
@pytest.mark.parametrize("corrected", [True, False])
def test_nothing_that_the_facts_do_not_hold_reaches_the_model_that_asks(tmp_path, asker, planted, corrected) -> None:
    again = "FACTS: 2" if corrected else planted
    with running_server(Telling([planted, again], ["FACTS: none"], [planted, planted])) as teller:
        (row,) = run_with(tmp_path, asker, teller)
    first = "2. She takes methotrexate." if corrected else "The case does not say."
    assert told_to(asker) == [
        f"{first}\n\nQuestions left: 2.",
        "The case does not say.\n\nQuestions left: 1.",
        "The case does not say.\n\nFinal answer now.",
    ]
    assert "from 1 to 5" in _text(teller.bodies[1]["messages"][-1]["content"])
    assert len(teller.bodies) == 5
    measured = measures_of_asking(INQUIRY, row.turns, OPTIONS, row.informed)
    assert measured["informant_corrected"] == pytest.approx(2 / 3)
    assert measured["informant_unusable"] == pytest.approx((1 if corrected else 2) / 3)


def test_a_reply_that_was_cut_off_counts_for_nothing(tmp_path, asker) -> None:
    class Cut(Telling):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            await super().handle(request)
            return web.json_response(reply("FACTS: 2", "length"))

    with running_server(Cut(*[["FACTS: 2"] * 2] * 3)) as teller:
        (row,) = run_with(tmp_path, asker, teller)
    assert row.informed == ("",) * 6
    assert {text.split("\n")[0] for text in told_to(asker)} == {"The case does not say."}


def test_after_a_kill_at_any_call_nothing_is_asked_again_and_a_replay_asks_nothing(tmp_path, asker) -> None:
    with running_server(Telling(["prose", "FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        (whole,) = run_with(tmp_path, asker, teller)
        ledger = tmp_path / "m.jsonl"
        lines = ledger.read_bytes().splitlines(keepends=True)
        assert len(lines) == len(whole.call_keys) == 4 + 4
        assert [entry.strategy for entry in read_ledger(ledger).values()].count(INFORMANT) == 4
        for kept in range(len(lines) + 1):
            # the state that a kill leaves after so many calls, the last line torn
            ledger.write_bytes(b"".join(lines[:kept]) + (lines[kept][:40] if kept < len(lines) else b""))
            before = len(asker.bodies) + len(teller.bodies)
            (row,) = run_with(tmp_path, asker, teller)
            assert len(asker.bodies) + len(teller.bodies) - before == len(lines) - kept
            assert (row.turns, row.informed, row.call_keys, row.text) == (whole.turns, whole.informed, whole.call_keys, whole.text)
        before = len(asker.bodies) + len(teller.bodies)
        (again,) = run_with(tmp_path, asker, teller, replay=True)
        assert again == row
        assert len(asker.bodies) + len(teller.bodies) == before
        # without a reply of the informant the conversation cannot be replayed
        ledger.write_bytes(b"".join(line for line in lines if b'"strategy": "informant"' not in line))
        with pytest.raises(ProviderError, match="1 of 1 answers are not in its ledger"):
            run_with(tmp_path, asker, teller, replay=True)


def test_an_equal_question_about_a_case_is_asked_once_for_all_samples(tmp_path, asker) -> None:
    with running_server(Telling(["FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        rows = run_with(tmp_path, asker, teller, asked(samples=3), first_repeat=5)
    assert (len(rows), len(asker.bodies), len(teller.bodies)) == (3, 12, 3)
    study = study_of([open_item(1, "p1")], {"m": []}, sampled=False)
    (benchmark,) = study.benchmarks.values()
    benchmark.earlier_responses = {}
    study.models, study.all_graders, benchmark.responses = {"m": models(asker, teller)[0]}, {}, {"m": rows}
    found = {row.model: (row.destination, row.requests, row.calls) for row in destination_rows(study)}
    assert found == {"m": ("local", 12, 12), "informant of m": ("local", 3, 3)}


def test_what_the_case_browser_shows_is_what_was_told(tmp_path, asker) -> None:
    with running_server(Telling(["FACTS: 3"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        (row,) = run_with(tmp_path, asker, teller)
        model, informant = models(asker, teller)
    turns = turns_of(row, asked())
    assert [turn.told.split("\n")[0] for turn in turns] == ["3. Her sister had a melanoma.", "4. No fever.", "The case does not say."]
    said = explain(asked(), model, read_ledger(tmp_path / "m.jsonl"), informant=informant)
    assert "7 of 7 calls are in the ledger" in said
    assert said.count("informant openai/teller, key") == 3


def test_a_call_that_fails_is_a_missing_answer_and_what_was_told_before_is_kept(tmp_path, asker) -> None:
    class Failing(Telling):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            answer = await super().handle(request)
            return answer if len(self.bodies) == 1 else web.json_response({"error": {"message": "no"}}, status=500)

    with running_server(Failing(["FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        (row,) = run_with(tmp_path, asker, teller)
    assert (row.state, row.error.split()[0], row.informed, len(row.turns)) == ("failed", "informant:", ("FACTS: 2",), 2)
    assert [(call.answered, call.requests) for call in row.informant_calls] == [(True, 1), (False, 1)]
    assert [turn.told.split("\n")[0] for turn in turns_of(row, asked())] == ["2. She takes methotrexate.", ""]
    with running_server(Telling(["FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        (row,) = run_with(tmp_path, asker, teller)
        assert (row.state, len(teller.bodies), len(asker.bodies)) == ("ok", 2, 4)


def test_it_passes_the_same_gates_as_any_model(tmp_path, asker, monkeypatch) -> None:
    monkeypatch.delenv("TELLER_KEY", raising=False)
    prices = Prices(usd_per_million_prompt_tokens=1, usd_per_million_completion_tokens=1, dated="2026-01-01")
    with running_server(Telling(["FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        with pytest.raises(ConfigError, match=r"teller.*api\.example\.org"):
            run_with(tmp_path, asker, teller, changes={"api_base": "https://api.example.org/v1"})
        (row,) = run_with(tmp_path, asker, teller, changes={"api_key_env": "TELLER_KEY", "max_cost_usd": 1, "prices": prices})
        assert (row.state, row.error) == ("skipped", "informant teller: the environment variable TELLER_KEY is not set")
        assert not asker.bodies, "nothing is paid for where nobody would tell the facts"
        (row,) = run_with(tmp_path, asker, teller, changes={"prices": prices, "max_cost_usd": 0})
        assert (row.state, len(asker.bodies)) == ("over_budget", 1)
        assert not teller.bodies


def test_a_plan_counts_its_calls_at_most_and_none_that_are_made(tmp_path, asker) -> None:
    with running_server(Telling(["prose", "FACTS: 2"], ["FACTS: 4"], ["FACTS: none"])) as teller:
        model, informant = models(asker, teller)
        before = forecast_informant([asked()], model, informant, {})
        assert (before.calls, before.answered) == (6, 0)
        run_with(tmp_path, asker, teller)
        entries = read_ledger(tmp_path / "m.jsonl")
        assert len(teller.bodies) <= before.calls
        after = forecast_informant([asked()], model, informant, entries)
        assert (after.calls, after.answered) == (0, 4)
        own = forecast_calls([asked()], model, entries, informant=informant)
        assert (own.calls, own.answered) == (0, 4)
        # in mid-case: the reply to the second question is due
        some = dict(list(entries.items())[:4])
        assert forecast_informant([asked()], model, informant, some).calls == 4
        assert forecast_calls([asked()], model, some, informant=informant).calls == 2


def test_answers_that_were_imported_are_told_by_words() -> None:
    shown = next_messages(asked(), ["QUESTION: Does she take methotrexate?"], None)
    assert shown is not None
    assert shown[-1].text.startswith("2. She takes methotrexate.")


def test_facts_in_any_order_of_replies_are_read_as_they_were_told() -> None:
    rng = random.Random(3)
    for _ in range(50):
        replies = [rng.choice(["FACTS: 1", "FACTS: 5, 2", "FACTS: none", *PLANTED.values()]) for _ in range(6)]
        shown = next_messages(asked(), [f"QUESTION: {question}" for question in QUESTIONS[:2]], None, replies=replies)
        assert shown is not None
        texts = [line for message in shown[1:] if message.role == "user" for line in message.text.split("\n")]
        assert set(texts) <= {fact.text for fact in FACTS} | {
            "",
            "A rash.",
            "The case does not say.",
            "Questions left: 2.",
            "Questions left: 1.",
        }
