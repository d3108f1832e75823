"""How tokens are sampled, and how batches are chosen; no weights are needed."""

from __future__ import annotations

import asyncio
import hashlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.local.backend import BatchLimit, choose_batch
from neuralmedbench.models.local.generation import (
    GenerationSettings,
    GumbelNoise,
    TokenLogprobs,
    WaitingSample,
    sampling_of,
    sampling_processors,
    seed_of_sample,
)
from neuralmedbench.models.protocol import Message, MessageImage

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
SCORES = torch.tensor([2.0, 1.0, 0.0, 0.5, -1.0, 1.5])
NO_CHOICE = SimpleNamespace(do_sample=False, temperature=None, top_p=None, top_k=None, min_p=None)
MAKERS_CHOICE = SimpleNamespace(do_sample=True, temperature=0.8, top_p=0.95, top_k=64, min_p=None)


def draw(settings, *, rows=60, steps=100):
    """Draw tokens as greedy search would, shape (rows, steps)."""
    processors = sampling_processors(settings, list(range(1000, 1000 + rows)), CPU)
    drawn = []
    for _ in range(steps):
        scores = SCORES.expand(rows, -1).clone()
        for processor in processors:
            scores = processor(torch.zeros(rows, 1, dtype=torch.long), scores)
        drawn.append(scores.argmax(-1))
    return torch.stack(drawn, dim=1).numpy()


def chi_square(counts, expected):
    """Return Pearson's chi-squared statistic of two arrays of counts."""
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_tokens_are_drawn_as_often_as_the_softmax_says(temperature):
    drawn = draw(GenerationSettings(max_tokens=1, temperature=temperature))
    expected = drawn.size * (SCORES / temperature).softmax(-1).numpy()
    assert chi_square(np.bincount(drawn.ravel(), minlength=6), expected) < 20.5  # 0.999 quantile of 5 degrees of freedom


def test_rows_and_steps_are_drawn_independently():
    drawn = draw(GenerationSettings(max_tokens=1, temperature=1.0))
    chances = SCORES.softmax(-1).numpy()
    for first, second in ((drawn[::2], drawn[1::2]), (drawn[:, ::2], drawn[:, 1::2])):
        pairs = np.bincount((6 * first + second).ravel(), minlength=36)
        assert chi_square(pairs, first.size * np.outer(chances, chances).ravel()) < 66.6  # 0.999 quantile of 35 degrees of freedom


@pytest.mark.parametrize(("limits", "kept"), [({"top_p": 0.6}, {0, 5}), ({"top_k": 3}, {0, 1, 5}), ({"min_p": 0.3}, {0, 1, 5})])
def test_tokens_outside_the_limits_are_never_drawn_and_the_others_keep_their_odds(limits, kept):
    drawn = draw(GenerationSettings(max_tokens=1, temperature=1.0, **limits))
    assert set(drawn.ravel()) == kept
    places = sorted(kept)
    expected = drawn.size * SCORES[places].softmax(-1).numpy()
    assert chi_square(np.bincount(drawn.ravel(), minlength=6)[places], expected) < 13.8  # 0.999 quantile of 2 degrees of freedom


def test_the_noise_of_a_row_depends_on_its_seed_alone():
    scores = torch.zeros(3, 50)
    ids = torch.zeros(3, 1, dtype=torch.long)
    together, alone = GumbelNoise([1, 2, 3], CPU), GumbelNoise([2], CPU)
    for _ in range(3):
        assert torch.equal(together(ids, scores)[1], alone(ids[:1], scores[:1])[0])


def test_at_temperature_zero_nothing_is_drawn():
    assert sampling_processors(GenerationSettings(max_tokens=1, temperature=0.0, top_p=0.5), [1], CPU) == []


def test_the_probability_of_every_chosen_token_is_kept():
    keeper = TokenLogprobs()
    steps = [torch.tensor([[0.0, math.log(3)]]), torch.tensor([[math.log(9), 0.0]])]
    tokens = torch.tensor([[7]])
    for scores, chosen in zip(steps, (1, 1), strict=True):
        assert keeper(tokens, scores) is scores
        tokens = torch.cat([tokens, torch.tensor([[chosen]])], dim=1)
    assert keeper.table(tokens)[0] == pytest.approx([math.log(0.75), math.log(0.1)], abs=1e-6)


def test_the_seed_of_a_sample_follows_words_pictures_and_number():
    def talk(text="a", sha="1", label="x"):
        return (Message("user", text, (MessageImage(label, b"", sha),)),)

    seeds = [
        seed_of_sample(talk(), 0),
        seed_of_sample(talk(), 1),
        *(seed_of_sample(talk(**{key: "z"}), 0) for key in ("text", "sha", "label")),
    ]
    assert len(set(seeds)) == 5
    assert seeds[0] == seed_of_sample(talk(), 0)
    assert all(0 <= seed < 2**63 for seed in seeds)
    said = '[[["user","a",[["x","1"]]]],0]'  # frozen: the same samples must be drawn after an update
    assert seeds[0] == int(hashlib.sha256(said.encode()).hexdigest()[:16], 16) >> 1


def test_what_the_yaml_does_not_say_the_checkpoint_says_and_nothing_else_does():
    assert sampling_of(None, None, {}, NO_CHOICE)["temperature"] == 0.0
    said = {"temperature": 0.8, "top_p": 0.95, "top_k": 64, "min_p": None, "repetition_penalty": None}
    assert sampling_of(None, None, {}, MAKERS_CHOICE) == said
    ours = sampling_of(1.0, 0.5, {"top_k": 0, "repetition_penalty": 1.1}, MAKERS_CHOICE)
    assert ours == {"temperature": 1.0, "top_p": 0.5, "top_k": 0, "min_p": None, "repetition_penalty": 1.1}
    assert sampling_of(1.0, None, {}, NO_CHOICE)["top_k"] is None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"reasoning_effort": "low"}, "not reasoning_effort"),
        ({"top_k": 0.5}, "top_k must be a whole number"),
        ({"top_k": True}, "top_k"),
        ({"min_p": 1.5}, "min_p must be a number from 0 to 1"),
        ({"repetition_penalty": 0}, "repetition_penalty must be a number above 0"),
    ],
)
def test_a_parameter_that_local_weights_do_not_take_is_refused(parameters, words):
    with pytest.raises(ConfigError, match=words):
        sampling_of(1.0, None, parameters, NO_CHOICE)


@pytest.fixture
def samples():
    """Return a function that makes samples with given numbers of pictures and characters."""
    loop = asyncio.new_event_loop()

    def making(*weights):
        made = []
        for pictures, characters in weights:
            images = (MessageImage("", b"", ""),) * pictures
            made.append(WaitingSample((Message("user", "x" * characters, images),), 0, loop.create_future()))
        return made

    yield making
    loop.close()


def weights_of(batch):
    return [sample.weight for sample in batch]


def test_conversations_that_are_alike_are_generated_together(samples):
    waiting = samples((4, 100), (1, 90), (4, 20), (1, 10), (4, 110), (9, 5))
    assert weights_of(choose_batch(waiting, 2)) == [(4, 100), (4, 110)]
    assert weights_of(choose_batch(waiting[1:], 2)) == [(1, 10), (1, 90)]
    assert len(choose_batch(waiting, 8)) == 6


def test_the_sample_that_waits_longest_is_always_in_the_batch(samples):
    shapes = [(int(pictures), int(length)) for pictures, length in np.random.default_rng(0).integers(0, 9, (40, 2))]
    waiting = samples(*shapes)
    for size in (1, 3, 8, 64):
        for place in range(len(waiting)):
            batch = choose_batch(waiting[place:], size)
            assert waiting[place] in batch
            assert len(batch) == min(size, len(waiting) - place)


def test_batches_as_heavy_as_one_that_was_too_large_are_smaller_from_then_on(samples):
    waiting = samples(*[(2, 10)] * 8, *[(5, 10)] * 8)
    limits = [BatchLimit((5, 10), 4), BatchLimit((5, 10), 2)]
    assert len(choose_batch(waiting, 8, limits=limits)) == 8
    assert len(choose_batch(waiting[8:], 8, limits=limits)) == 2


def test_numbers_of_pictures_are_kept_apart_where_the_processor_wants_that(samples):
    waiting = samples((1, 10), (2, 10), (1, 30), (0, 10))
    assert weights_of(choose_batch(waiting, 4, mixed=False)) == [(1, 10), (1, 30)]
    assert len(choose_batch(waiting, 4)) == 4
