"""Prompts that are too long for a model are found before a call is made: in the plan, before a run, and for graders."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.models import model_config, picture, request, running_server
from fixtures.scoring import GOLD, ITEM, answered, differential, grader_run
from neuralmedbench.config.load import load_grader
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.causes import TOO_LONG, next_step
from neuralmedbench.models.context_length import ContextLength, DueCall
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.forecast import forecast_calls
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.token_estimates import Estimator, least_text_tokens, likely_text_tokens, text_tokens_at_most
from neuralmedbench.records.requests import RequestTurn
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import GradeState
from neuralmedbench.scoring.llm.model_grading import grade_with_model

LONG = RequestTurn(text="The patient has had a headache for several days. " * 200)
"""About 2,000 tokens."""
SHORT = RequestTurn(text="What is it?")
LIMIT = {"context_tokens": 1500, "max_tokens": 200}
NAMED = "context_tokens 1500: the prompt and the longest answer are too long for the model"


@pytest.fixture
def server():
    with running_server() as running:
        yield running


@pytest.fixture
def ask(server, tmp_path):
    """Return a function that asks a model on the server."""

    def asking(requests, *, max_failed_fraction=None, replay=False, **changes):
        model = model_config(api_base=server.address, **{**LIMIT, **changes})
        run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=max_failed_fraction, root=tmp_path,
                       replay=replay)  # fmt: skip
        return answer_requests(requests, run)

    return asking


def test_a_call_that_is_surely_too_long_is_not_made_and_says_why(server, ask, capsys):
    rows = ask([request("long", LONG, samples=2), request("short", SHORT)])
    assert [(row.item_id, row.state) for row in rows] == [
        ("b/long", ResponseState.SKIPPED),
        ("b/long", ResponseState.SKIPPED),
        ("b/short", ResponseState.OK),
    ]
    assert [row.error for row in rows] == [NAMED, NAMED, ""]
    assert len(server.bodies) == 1
    said = capsys.readouterr().err
    assert "m: 1 request too long and not asked: prompt and longest answer take up to about 2,6" in said
    assert "tokens, context_tokens is 1,500; lower `max_images` or `max_tokens`" in said
    assert next_step(NAMED) == TOO_LONG.step


def test_a_request_that_fits_or_may_fit_is_asked_and_one_that_may_not_is_named(server, ask, capsys):
    rows = ask([request("long", LONG)], context_tokens=3000)
    assert [row.state for row in rows] == [ResponseState.OK]
    assert "m: 1 request may be too long: prompt and longest answer take up to about 2,6" in capsys.readouterr().err
    ask([request("long", LONG)], context_tokens=32_000)
    assert "too long" not in capsys.readouterr().err


def test_without_a_limit_nothing_is_checked(server, ask, capsys):
    assert ask([request("long", LONG)], context_tokens=None)[0].state is ResponseState.OK
    assert "too long" not in capsys.readouterr().err


def test_a_run_of_which_too_much_is_too_long_stops_before_anything_is_sent(server, ask):
    with pytest.raises(ConfigError) as refused:
        ask([request(f"long{number}", LONG) for number in range(3)] + [request("short", SHORT)], max_failed_fraction=0.05)
    for words in (
        "model m: 3 requests too long",
        "context_tokens is 1,500",
        "They are 3 of 4 answers, more than max_failed_fraction 0.05",
        "nothing was sent",
    ):
        assert words in str(refused.value)
    assert server.bodies == []


def test_a_dialogue_is_asked_until_its_history_is_too_long_and_a_replay_tells_the_same(server, ask):
    dialogue = request("d", SHORT, LONG, SHORT)
    (row,) = ask([dialogue])
    assert (row.state, row.error, len(row.turns), len(server.bodies)) == (ResponseState.SKIPPED, NAMED, 1, 1)
    (again,) = ask([dialogue], replay=True)
    assert again == row
    assert len(server.bodies) == 1


def test_pictures_count_as_many_tokens_as_the_yaml_says(tmp_path):
    turn = RequestTurn(text="Look.", images=tuple(picture(tmp_path, number) for number in range(10)))
    (message,) = (PromptMessage.of(turn),)
    for tokens, too_long in ((None, False), (100, False), (140, True)):
        length = ContextLength(model_config(**LIMIT, tokens_per_picture=tokens), tmp_path)
        assert bool(length.reason([message])) is too_long
    exact = Estimator(model_config(tokens_per_picture=256), tmp_path)
    text = likely_text_tokens("Look.") + sum(likely_text_tokens(image.label) for image in turn.images)
    assert exact.prompt_probably([message]) == text + 2560


def test_the_plan_counts_what_is_too_long_apart_and_no_call_of_it(tmp_path):
    requests = [request("long", LONG, samples=3), request("short", SHORT, samples=2), request("d", RequestTurn(text="Begin."), LONG, SHORT)]
    forecast = forecast_calls(requests, model_config(**LIMIT), {}, root=tmp_path)
    assert (forecast.calls, forecast.lengths.too_long, forecast.lengths.near_limit) == (3, 2, 0)
    assert forecast.lengths.longest_tokens > 2600
    free = forecast_calls(requests, model_config(max_tokens=200), {}, root=tmp_path)
    assert (free.calls, free.lengths.too_long, free.lengths.longest_tokens) == (8, 0, 0)


def test_the_calls_of_the_plan_are_those_that_are_made(server, ask, tmp_path):
    requests = [request("long", LONG, samples=3), request("short", SHORT, samples=2), request("d", RequestTurn(text="Begin."), LONG, SHORT)]
    model = model_config(**LIMIT)
    assert forecast_calls(requests, model, {}, root=tmp_path).calls == 3
    ask(requests)
    assert len(server.bodies) == 3
    after = forecast_calls(requests, model, read_ledger(tmp_path / "m.jsonl"), root=tmp_path)
    assert (after.calls, after.lengths.too_long) == (0, 2)


def test_a_conversation_that_may_turn_out_shorter_is_never_surely_too_long():
    length = ContextLength(model_config(**LIMIT))
    call = DueCall((PromptMessage("user", LONG.text),), certain=False)
    assert (length.count([call]).too_long, length.count([call]).near_limit) == (0, 1)
    assert length.count([replace(call, certain=True)]).too_long == 1


def test_an_answer_that_is_too_long_for_its_grader_is_skipped_with_the_reason_and_the_others_are_graded(server, tmp_path):
    config = load_grader(ROOT / "config" / "graders" / "llm.yaml")
    update = {
        "api_base": server.address,
        "id": "openai/m",
        "api_key_env": None,
        "context_tokens": 2200,
        "max_tokens": 200,
        "max_cost_usd": None,
        "prices": None,
    }
    config = config.model_copy(update={"prompt": str(ROOT / config.prompt), "model": config.model.model_copy(update=update)})
    rows = [answered(differential("glioma"), repeat=0), answered(differential("glioma", rationale=LONG.text * 2), repeat=1)]
    grading = grader_run("llm", config, ledger=tmp_path / "llm.jsonl", destinations=("local",))
    grades = grade_with_model(rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, grading)
    found = {row.repeat: (row.state, row.explanation) for row in grades}
    assert found[1] == (GradeState.SKIPPED, "context_tokens 2200: the prompt and the longest answer are too long for the model")
    assert found[0][0] is not GradeState.SKIPPED
    assert len(server.bodies) == 1


def texts() -> list[str]:
    """Return the project's prompts, vocabulary and guide: English prose, headings, lists and JSON."""
    return [
        path.read_text(encoding="utf-8")
        for folder in ("config/prompts", "config/vocabulary", "docs")
        for path in sorted((ROOT / folder).glob("*.*"))
        if path.suffix in (".j2", ".yaml", ".md")
    ]


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base", "p50k_base"])
def test_the_least_and_the_most_tokens_hold_for_the_tokenisers_that_are_here(encoding, monkeypatch):
    """The files of litellm; nothing is loaded from elsewhere."""
    tiktoken = pytest.importorskip("tiktoken")
    spec = find_spec("litellm")  # its folder alone: an import would ask the network
    assert spec is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", os.fspath(Path(str(spec.origin)).parent / "litellm_core_utils" / "tokenizers"))
    encoder = tiktoken.get_encoding(encoding)
    for text in texts():
        real = len(encoder.encode(text, disallowed_special=()))
        assert least_text_tokens(text) <= real <= text_tokens_at_most(text)
        assert 0.6 < real / likely_text_tokens(text) < 1.7
    other = "Женщина 61 года проснулась со слабостью в левой руке, речь не нарушена."
    assert least_text_tokens(other) <= len(encoder.encode(other))
