"""How local weights draw tokens: the settings of yaml and checkpoint, and noise that depends on the conversation and the seed alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.protocol import Message

if TYPE_CHECKING:
    import torch


PARAMETERS = {"top_k": "a whole number from 0 on", "min_p": "a number from 0 to 1", "repetition_penalty": "a number above 0"}
"""What `parameters` of a model with local weights may hold."""


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of generation.

    Attributes
    ----------
    max_tokens : int
        Longest answer.
    temperature : float
        0 takes the most probable token each time.
    top_p, top_k, min_p : float, int, float or None
        Which tokens may be drawn; None: all.
    repetition_penalty : float or None
        None: what the checkpoint says.
    batch_size : int
        Samples generated at once.
    logprobs : bool
        Whether the probability of each generated token is kept.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    batch_size: int = 8
    logprobs: bool = False


def sampling_of(temperature: float | None, top_p: float | None, parameters: Mapping[str, object], checkpoint: Any) -> dict[str, Any]:
    """Say how tokens are drawn."""
    for key, value in parameters.items():
        if key not in PARAMETERS:
            message = f"parameters: local weights take {', '.join(PARAMETERS)}, not {key}"
            raise ConfigError(message)
        if not _fits(key, value):
            message = f"parameters: {key} must be {PARAMETERS[key]}"
            raise ConfigError(message)
    if temperature is None:
        temperature = (checkpoint.temperature if checkpoint.temperature is not None else 1.0) if checkpoint.do_sample else 0.0
    said = {"top_p": top_p, **parameters}
    drawn = {key: value if (value := said.get(key)) is not None else getattr(checkpoint, key, None) for key in ("top_p", "top_k", "min_p")}
    return {"temperature": temperature, "repetition_penalty": said.get("repetition_penalty"), **drawn}


def _fits(key: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if key == "top_k":
        return isinstance(value, int) and value >= 0
    return 0 <= value <= 1 if key == "min_p" else value > 0


def seed_of_sample(messages: Sequence[Message], seed: int) -> int:
    """Mix the seed of a sample with its conversation: equal seeds of different conversations must not give the same noise.

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
    """Make the processors that draw tokens: temperature, then the tokens that may be drawn, then noise; none at temperature 0."""
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
