"""Needs transformers: batches of tiny models with random weights (LLaVA and Gemma 3); their answers are gibberish."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
import torch

from conftest import ROOT
from fixtures.weights import BUILDERS, picture_bytes
from neuralmedbench.models.local.backend import BatchingBackend
from neuralmedbench.models.local.generation import GenerationSettings, WaitingSample, Weights
from neuralmedbench.models.protocol import Call, Message, MessageImage
from neuralmedbench.models.retry import CallError

pytestmark = pytest.mark.slow

built = cache(lambda kind: BUILDERS[kind]())
DRAWN = {"temperature": 0.7, "top_p": 0.95}


def talk(text, *pictures):
    """Return a conversation with pictures, made from their seeds."""
    shown = tuple(MessageImage(f"Picture {seed}.", picture_bytes(seed), hashlib.sha256(bytes([seed])).hexdigest()) for seed in pictures)
    return (Message("system", "You look."), Message("user", text, shown))


TALKS = [
    talk("What is it?", 1),
    talk("Nothing is shown, and many words are said about it."),
    talk("And now?", 2, 3),
    talk("Last.", 3, 2, 4),
]


def make(kind="llava", **settings):
    """Yield a backend over a tiny model."""
    chosen = GenerationSettings(**{"max_tokens": 10, "logprobs": True, **settings})
    return BatchingBackend("m", Weights(*built(kind), chosen), chosen)


def sizes_of(backend, monkeypatch, refuse=lambda batch: None):
    """Record how many samples are generated together; `refuse` may raise before."""
    sizes, real = [], backend._weights.generate

    def generate(batch):
        sizes.append(len(batch.samples))
        refuse(batch)
        return real(batch)

    monkeypatch.setattr(backend._weights, "generate", generate)
    return sizes


def ask(backend, *calls, during=None):
    """Make all calls at once; return answers and exceptions in the order of the calls."""

    async def asking():
        try:
            return await asyncio.gather(*(backend.answer(call) for call in calls), *([during()] if during else []), return_exceptions=True)
        finally:
            await backend.close()

    return asyncio.run(asking())[: len(calls)]


def same(left, right):
    """Return True if two answers are equal up to the last bits of their probabilities."""
    return left.text == right.text and left.token_logprobs == pytest.approx(right.token_logprobs, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        pytest.param("llava", {}, id="llava-greedy"),
        pytest.param("llava", DRAWN, id="llava-drawn"),
        pytest.param("gemma3", {}, id="gemma3-greedy"),
        pytest.param("gemma3", DRAWN, id="gemma3-drawn", marks=pytest.mark.long),
    ],
)
def test_answers_of_a_batch_equal_those_that_are_generated_alone(kind, how, monkeypatch):
    backend = make(kind, batch_size=8, **how)
    sizes = sizes_of(backend, monkeypatch)
    together = ask(backend, *(Call(words, (0, 1), 5) for words in TALKS))
    assert sizes == [8 if how else 4]
    backend = make(kind, batch_size=1, **how)
    sizes = sizes_of(backend, monkeypatch)
    alone = ask(backend, *(Call(words, (number,), 5) for words in TALKS for number in (0, 1)))
    assert sizes == [1] * 8
    for place, answers in enumerate(together):
        (first,), (second,) = alone[2 * place : 2 * place + 2]
        assert same(answers[0], first)
        assert same(answers[1], second)
        assert (answers[0].text == answers[1].text) is not bool(how)
        assert answers[0].prompt_tokens == first.prompt_tokens


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_pictures_and_their_order_reach_the_model(kind):
    calls = [Call(talk("Look.", *pictures), (0,), 5) for pictures in ((1, 2), (2, 1), (1, 3), (1, 2))]
    chances = [answers[0].token_logprobs[0] for answers in ask(make(kind), *calls)]
    assert chances[0] == pytest.approx(chances[3], abs=1e-5)
    for other in chances[1:3]:
        assert abs(other - chances[0]) > 1e-3


def test_a_sample_is_the_same_whatever_else_is_asked_for_and_in_which_order():
    whole = ask(make(**DRAWN), *(Call(words, (0, 1, 2), 5) for words in TALKS))
    rest = ask(make(batch_size=3, **DRAWN), Call(TALKS[2], (2, 1), 5), Call(TALKS[0], (2,), 5))
    assert same(rest[0][0], whole[2][2])
    assert same(rest[0][1], whole[2][1])
    assert same(rest[1][0], whole[0][2])
    assert len({answer.text for answers in whole for answer in answers}) == 12


def test_the_most_probable_answer_is_generated_once_for_all_samples(monkeypatch):
    backend = make(temperature=0.0)
    sizes = sizes_of(backend, monkeypatch)
    answers = ask(backend, Call(TALKS[0], (0, 1, 2), None))[0]
    assert sizes == [1]
    assert len({answer.text for answer in answers}) == 1
    assert [bool(answer.completion_tokens) for answer in answers] == [True, False, False]
    assert [bool(answer.prompt_tokens) for answer in answers] == [True, False, False]


def test_kept_probabilities_are_those_of_the_model_before_temperature_and_top_p():
    model, processor = built("llava")
    answer = ask(make(temperature=0.5, top_p=0.8), Call(TALKS[0], (0,), 5))[0][0]
    batch = Weights(model, processor, GenerationSettings(max_tokens=10)).prepare([WaitingSample(TALKS[0], 0, None)])
    prompt = batch.inputs["input_ids"]
    seed_made = make(temperature=0.5, top_p=0.8)
    tokens = {}
    real = model.generate
    model.generate = lambda **given: tokens.setdefault("all", real(**given))
    try:
        ask(seed_made, Call(TALKS[0], (0,), 5))
    finally:
        del model.generate
    inputs = {**batch.inputs, "input_ids": tokens["all"], "attention_mask": torch.ones_like(tokens["all"])}
    with torch.inference_mode():
        chances = model(**inputs).logits.log_softmax(-1)[0, prompt.shape[1] - 1 : -1]
    expected = chances.gather(1, tokens["all"][0, prompt.shape[1] :, None])[:, 0].tolist()
    assert answer.completion_tokens == len(answer.token_logprobs)
    assert list(answer.token_logprobs) == pytest.approx(expected[: answer.completion_tokens], abs=1e-4)


def test_an_answer_ends_with_any_of_the_tokens_that_the_checkpoint_ends_with(monkeypatch):
    model, _ = built("llava")
    generated = []
    real = Weights._answer
    monkeypatch.setattr(Weights, "_answer", lambda self, tokens, *rest: generated.append(tokens) or real(self, tokens, *rest))
    calls = [Call(words, (0,), 5) for words in TALKS]
    whole = [answers[0] for answers in ask(make(batch_size=1), *calls)]
    place = next(place for place, answer in enumerate(whole) if answer.state == "truncated")
    assert (whole[place].finish_reason, whole[place].completion_tokens) == ("length", 10)
    end = generated[place].index(next(token for token in generated[place][1:] if token != generated[place][0]))
    monkeypatch.setattr(model.generation_config, "eos_token_id", [2, generated[place][end]])
    short = ask(make(), *calls)[place][0]
    assert (short.state, short.finish_reason, short.completion_tokens) == ("ok", "stop", end + 1)
    assert short.token_logprobs == pytest.approx(whole[place].token_logprobs[: end + 1], abs=1e-4)


def no_room_for_more_than(number):
    """Refuse larger batches as a GPU does."""

    def refuse(batch):
        if len(batch.samples) > number:
            raise torch.OutOfMemoryError

    return refuse


def test_a_batch_that_the_memory_does_not_hold_is_generated_in_halves_and_that_is_said_once(monkeypatch, capsys):
    backend = make(batch_size=4, **DRAWN)
    sizes = sizes_of(backend, monkeypatch, no_room_for_more_than(1))
    calls = [Call(talk("Alike.", seed), (0, 1), 5) for seed in range(4)]
    answers = ask(backend, *calls)
    whole = ask(make(batch_size=8, **DRAWN), *calls)
    assert all(same(left, right) for pair, other in zip(answers, whole, strict=True) for left, right in zip(pair, other, strict=True))
    assert sizes.count(4) <= 2  # the second batch may have been prepared before the first proved too large
    assert sizes[-1] == 1
    assert capsys.readouterr().err.count("no memory") == 1


def test_one_sample_that_is_too_large_is_a_failed_call_and_the_others_are_answered(monkeypatch):
    backend = make(batch_size=4)

    def refuse(batch):
        if any(sample.weight[0] == 3 for sample in batch.samples):
            raise torch.OutOfMemoryError

    sizes_of(backend, monkeypatch, refuse)
    answers = ask(backend, *(Call(words, (0, 1), 5) for words in TALKS))
    assert [isinstance(answer, CallError) for answer in answers] == [False, False, False, True]
    assert str(answers[3]).startswith("OutOfMemoryError")
    assert not answers[3].may_pass_later


def test_a_picture_that_cannot_be_read_costs_its_own_call_only():
    broken = (Message("user", "Look.", (MessageImage("", b"no picture", "0"),)),)
    answers = ask(make(), Call(TALKS[0], (0,), 5), Call(broken, (0,), 5), Call(TALKS[2], (0,), 5))
    assert [isinstance(answer, CallError) for answer in answers] == [False, True, False]


def test_a_prompt_that_leaves_no_room_for_the_longest_answer_fails_alone(monkeypatch):
    model, _ = built("llava")
    monkeypatch.setattr(model.config.get_text_config(), "max_position_embeddings", 100)
    answers = ask(make(), *(Call(words, (0,), 5) for words in TALKS))
    assert [isinstance(answer, CallError) for answer in answers] == [False, False, False, True]
    assert str(answers[3]).startswith("TooLongError")


def test_a_processor_that_wants_as_many_pictures_in_every_row_gets_them(monkeypatch):
    backend = make(batch_size=8)
    processor = backend._weights._processor
    real = processor.apply_chat_template

    def strict(talks, **options):
        counts = {sum(part["type"] == "image" for message in words for part in message["content"]) for words in talks}
        if len(counts) > 1:
            raise ValueError
        return real(talks, **options)

    monkeypatch.setattr(processor, "apply_chat_template", strict)
    sizes = sizes_of(backend, monkeypatch)
    answers = ask(backend, *(Call(words, (0,), 5) for words in [*TALKS, talk("Another?", 7)]))
    assert not any(isinstance(answer, Exception) for answer in answers)
    assert sorted(sizes) == [1, 1, 1, 2]


def test_the_loop_lives_while_a_batch_is_generated(monkeypatch):
    backend, ticked, seen = make(), threading.Event(), []
    sizes_of(backend, monkeypatch, lambda batch: seen.append(ticked.wait(30)))

    async def during():
        await asyncio.sleep(0)
        ticked.set()

    ask(backend, Call(TALKS[0], (0,), 5), during=during)
    assert seen == [True]


def test_once_stopped_the_batch_under_way_is_finished_and_nothing_more_is_begun(monkeypatch):
    backend, begun, go = make(batch_size=2, **DRAWN), threading.Event(), threading.Event()

    def hold(batch):
        begun.set()
        go.wait(30)

    sizes = sizes_of(backend, monkeypatch, hold)

    async def during():
        await asyncio.to_thread(begun.wait, 30)
        backend.stop()
        go.set()
        with pytest.raises(CallError, match="Interrupted"):
            await backend.answer(Call(TALKS[0], (0,), 5))

    answers = ask(backend, *(Call(words, (0, 1), 5) for words in TALKS), during=during)
    assert sizes == [2]
    assert [isinstance(answer, CallError) for answer in answers].count(True) == 3
    assert {str(answer) for answer in answers if isinstance(answer, CallError)} == {"Interrupted (no status)"}


def test_closing_ends_what_is_being_generated_at_its_next_token():
    model, processor = built("llava")
    settings = GenerationSettings(max_tokens=3000, temperature=1.0)
    weights, steps, begun = Weights(model, processor, settings), [], threading.Event()
    backend = BatchingBackend("m", weights, settings)
    weights._ends = set()
    hook = model.register_forward_hook(lambda *_: steps.append(1) or begun.set())

    async def asking():
        answer = asyncio.create_task(backend.answer(Call(TALKS[0], (0,), 5)))
        await asyncio.to_thread(begun.wait, 30)
        await backend.close()
        with pytest.raises(CallError, match="Interrupted"):
            await answer

    try:
        asyncio.run(asking())
    finally:
        hook.remove()
    assert len(steps) < 3000


def test_a_call_that_is_not_waited_for_any_more_is_not_generated(monkeypatch):
    backend = make(batch_size=8)
    sizes = sizes_of(backend, monkeypatch)

    async def asking():
        given_up = asyncio.create_task(backend.answer(Call(TALKS[0], (0,), 5)))
        kept = asyncio.create_task(backend.answer(Call(TALKS[2], (0,), 5)))
        await asyncio.sleep(0)
        given_up.cancel()
        answers = await kept
        await backend.close()
        return answers

    assert len(asyncio.run(asking())) == 1
    assert sizes == [1]


ALONE = """
import importlib.machinery, json, sys
needed, configuration = json.loads(sys.argv[1])
real = importlib.machinery.PathFinder

class Bare:
    find_distributions = real.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = real.find_spec(name, path, target)
        installed = spec and "site-packages" in str(spec.origin or list(spec.submodule_search_locations or ()))
        return None if installed and name.partition(".")[0] not in needed else spec

sys.meta_path[:] = [Bare if finder is real else finder for finder in sys.meta_path]
sys.path[:0] = sys.argv[2:4]
import asyncio
import importlib.util

absent = ["litellm", "openai", "pandas", "scipy", "sklearn", "SimpleITK", "nibabel", "matplotlib", "sentence_transformers", "accelerate"]
assert not any(importlib.util.find_spec(name) for name in [*absent, *configuration])
from pathlib import Path

from neuralmedbench.models.local.backend import BatchingBackend
from neuralmedbench.models.local.generation import GenerationSettings, Weights
from neuralmedbench.models.protocol import Call, Message, MessageImage
from fixtures.weights import llava, picture_bytes, weights_folder

settings = GenerationSettings(max_tokens=4, temperature=1.0, top_p=0.9, logprobs=True)
talk = (Message("user", "Look.", (MessageImage("One.", picture_bytes(1), "1"), MessageImage("Two.", picture_bytes(2), "2"))),)

async def asking():
    backend = BatchingBackend("m", Weights(*llava(), settings), settings)
    try:
        return await backend.answer(Call(talk, (0, 1), 1))
    finally:
        await backend.close()

print("the backend:", len(asyncio.run(asking())))

needed += configuration
import run_inference
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.requests import Request, RequestTurn

root = Path(sys.argv[4])
yaml = {"title": "T", "backend": "transformers", "revision": "1", "id": str(weights_folder("llava", root)), "max_tokens": 4}
words = {"item_id": "b/i", "case_id": "c", "patient_id": "p", "benchmark": "b", "arm": "a", "strategy": "s", "request_id": "r"}
one = Request(**words, runner="open", system="You look.", turns=(RequestTurn(text="What?"),), answer_schema="", samples=2)
where = {"ledger": root / "m.jsonl", "destinations": ("local",), "max_failed_fraction": 0.0, "root": root}
print("the command:", len(answer_requests([one], ModelRun(ModelConfig.model_validate(yaml).named("m"), **where))))
"""
"""Python that finds the standard library and the named packages only, as if no other package were installed."""


def names_of_requirements(*packages):
    """Return the modules of packages and of all their requirements, without extras."""
    modules = packages_distributions()
    wanted, found = list(packages), set()
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            lines = [line for line in requires(name) or () if not re.search(r"\bextra\s*==", line)]
            wanted += [re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in lines]
    known = {re.sub(r"[-_.]+", "-", name).lower() for name in found}
    return [module for module, owners in modules.items() if any(re.sub(r"[-_.]+", "-", owner).lower() in known for owner in owners)]


def test_torch_transformers_pillow_numpy_and_pyarrow_are_enough_and_the_command_needs_pydantic_besides(tmp_path):
    ours = ["pydantic", "pydantic_core", "annotated_types", "typing_inspection"]
    theirs = names_of_requirements("torch", "transformers", "pillow", "numpy", "pyarrow")  # PyYAML is among them
    needed = [name for name in theirs if name not in ours]  # a part of the command line of transformers may want them, too
    assert not {"litellm", "openai", "aiohttp", "pandas", "scipy", "sklearn", "accelerate", "torchvision"} & set(needed)
    command = [sys.executable, "-c", ALONE, json.dumps([needed, ours]), str(ROOT / "scripts"), str(ROOT / "tests"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["the backend: 2", "the command: 2"]
