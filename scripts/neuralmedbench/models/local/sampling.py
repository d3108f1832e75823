"""Samples that depend on the conversation and the seed alone, whatever else is generated beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neuralmedbench.models.local.settings import GenerationSettings
from neuralmedbench.models.protocol import Message

if TYPE_CHECKING:
    import torch


def seed_of_sample(messages: Sequence[Message], seed: int) -> int:
    """Mix the seed of a sample with its conversation: equal seeds of different conversations must not give the same noise.

    Parameters
    ----------
    messages : sequence of Message
        The conversation; pictures count by their digest.
    seed : int
        The model's seed plus the number of the sample.

    Returns
    -------
    int
        In [0, 2^63).
    """
    said = [[message.role, message.text, [[image.label, image.sha256] for image in message.images]] for message in messages]
    digest = hashlib.sha256(json.dumps([said, seed], ensure_ascii=True, separators=(",", ":")).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class GumbelNoise:
    """Adds noise to the scores, so that the greatest one is a sample: one source of noise a row.

    Parameters
    ----------
    seeds : sequence of int
        One a row of the batch.
    device : torch.device
        Where the scores are. The noise of a seed differs between a processor and a graphics card.

    Notes
    -----
    Gumbel-max: if the g_i are independent Gumbel(0, 1) variables, argmax_i(x_i + g_i) is distributed as softmax(x) (C. J. Maddison,
    D. Tarlow, T. Minka, A* Sampling, NeurIPS 2014, section 2; the fact is older, E. J. Gumbel 1954). g = -log(e) with e of the
    exponential distribution of rate 1. Greedy search over these scores is sampling, and the sample of a row depends on its own
    scores and its own seed; `generate` itself draws all rows of a batch from one source, whose state depends on the batch.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        import torch

        self._sources = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Give noisy scores, shape (rows, vocabulary), of scores of that shape."""
        import torch

        noise = torch.empty_like(scores, dtype=torch.float32)
        for row, source in zip(noise, self._sources, strict=True):
            row.exponential_(generator=source)
        return scores.float() - noise.log_()


class TokenLogprobs:
    """Keeps the log-probability of every token that is chosen, of the scores as they are where this stands among the processors.

    Notes
    -----
    A processor sees the scores before a token is chosen, so each token is looked up one step later; the scores of one step are held,
    not those of all (steps x rows x vocabulary would be gigabytes).
    """

    def __init__(self) -> None:
        self._held: torch.Tensor | None = None
        self._columns: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Look the last token up, hold these scores, and give them back unchanged."""
        self._look_up(input_ids)
        self._held = scores.float().log_softmax(-1)
        return scores

    def table(self, tokens: torch.Tensor) -> list[list[float]]:
        """Give the natural logarithms, one list a row and one number a step, when `tokens` (rows, length) are all there."""
        import torch

        self._look_up(tokens)
        self._held = None
        table: list[list[float]] = torch.cat(self._columns, dim=1).tolist()
        return table

    def _look_up(self, tokens: torch.Tensor) -> None:
        if self._held is not None:
            self._columns.append(self._held.gather(1, tokens[:, -1:]))


def sampling_processors(settings: GenerationSettings, seeds: Sequence[int], device: torch.device) -> list[Any]:
    """Make the processors that draw tokens: temperature, then the tokens that may be drawn, then noise; none at temperature 0.

    Parameters
    ----------
    settings : GenerationSettings
        How tokens are drawn.
    seeds : sequence of int
        One a row of the batch.
    device : torch.device
        Where the scores are.

    Returns
    -------
    list
        Callables of the kind of `transformers.LogitsProcessor`, in their order.
    """
    from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    if not settings.temperature:
        return []
    processors: list[Any] = [TemperatureLogitsWarper(settings.temperature)] if settings.temperature != 1 else []
    if settings.top_k:
        processors.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p is not None and settings.top_p < 1:
        processors.append(TopPLogitsWarper(settings.top_p))
    if settings.min_p:
        processors.append(MinPLogitsWarper(settings.min_p))
    return [*processors, GumbelNoise(seeds, device)]
