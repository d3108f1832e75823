"""Generate answers with local weights: conversations to tokens, sampling with seeded noise, tokens to text."""

from __future__ import annotations

import asyncio
import copy
import gc
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.protocol import Answer, Message
from neuralmedbench.records.requests import order_of_parts
from neuralmedbench.records.thoughts import answer_of

if TYPE_CHECKING:
    import torch


PARAMETERS = {"top_k": "a whole number from 0 on", "min_p": "a number from 0 to 1", "repetition_penalty": "a number above 0"}
"""Allowed `parameters` of a model with local weights."""


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of generation.

    Attributes
    ----------
    max_tokens : int
        Longest answer, in tokens.
    temperature : float
        0 always takes the most probable token.
    top_p, top_k, min_p : float, int, float or None
        Limits on the tokens that may be drawn; None: no limit.
    repetition_penalty : float or None
        None: the checkpoint's own.
    batch_size : int
        Samples generated at once.
    logprobs : bool
        True to keep the log-probability of each generated token.
    thought_marks : tuple of str
        As in the yaml of the model.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    batch_size: int = 8
    logprobs: bool = False
    thought_marks: tuple[str, ...] = ()


def sampling_of(temperature: float | None, top_p: float | None, parameters: Mapping[str, object], checkpoint: Any) -> dict[str, Any]:
    """Resolve the sampling settings: the yaml first, then the checkpoint's generation config; ConfigError for an invalid parameter."""
    for key, value in parameters.items():
        if key not in PARAMETERS:
            message = f"parameters: local weights take {', '.join(PARAMETERS)}, not {key}"
            raise ConfigError(message)
        if not _fits(key, value):
            message = f"parameters: {key} must be {PARAMETERS[key]}"
            raise ConfigError(message)
    if temperature is None:
        temperature = (checkpoint.temperature if checkpoint.temperature is not None else 1.0) if checkpoint.do_sample else 0.0
    # what neither sets stays unset: transformers itself would add `top_k` 50
    given = {"top_p": top_p, **parameters}
    drawn = {key: value if (value := given.get(key)) is not None else getattr(checkpoint, key, None) for key in ("top_p", "top_k", "min_p")}
    return {"temperature": temperature, "repetition_penalty": given.get("repetition_penalty"), **drawn}


def _fits(key: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if key == "top_k":
        return isinstance(value, int) and value >= 0
    return 0 <= value <= 1 if key == "min_p" else value > 0


@dataclass(frozen=True, eq=False)
class WaitingSample:
    """One sample of a conversation that waits for its answer.

    Attributes
    ----------
    messages : tuple of Message
        The conversation so far.
    seed : int
        Seed of its noise (`seed_of_sample`).
    answer : asyncio.Future
        The answer to come.
    """

    messages: tuple[Message, ...]
    seed: int
    answer: asyncio.Future[Answer]

    @cached_property
    def weight(self) -> tuple[int, int]:
        """Number of pictures, which take most of the tokens, and number of characters."""
        pictures = sum(len(message.images) for message in self.messages)
        return pictures, sum(len(message.words) + sum(len(image.label) for image in message.images) for message in self.messages)


class TooLongError(Exception):
    """A conversation and its longest answer exceed the model's context length."""


class StoppedError(Exception):
    """The command ends, so the running generation was abandoned."""


@dataclass(frozen=True)
class PreparedBatch:
    """Model inputs of a batch (left-padded), and the number of tokens of each prompt without padding."""

    samples: tuple[WaitingSample, ...]
    inputs: Any
    prompt_tokens: tuple[int, ...]


class Weights:
    """A vision-language model of transformers and its processor.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Generates from pictures and text; already on its device.
    processor : transformers.ProcessorMixin
        With a chat template.
    settings : GenerationSettings
        Settings of generation.

    Attributes
    ----------
    stopped : bool
        May be set from any thread: generation then ends after the current token.
    """

    def __init__(self, model: Any, processor: Any, settings: GenerationSettings) -> None:
        self.stopped = False
        self._model, self._processor, self._settings = model.eval(), processor, settings
        tokenizer = processor.tokenizer
        tokenizer.padding_side = "left"  # so that the answers of all rows start at the same position
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # another thread prepares the next batch at the same time, and a fast tokenizer is not thread-safe
        self._decoder = copy.deepcopy(tokenizer)
        eos = model.generation_config.eos_token_id
        ends = eos if isinstance(eos, list) else [eos]
        self._ends = {token for token in [*ends, tokenizer.eos_token_id] if token is not None}
        self._positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        pictures = type(getattr(processor, "image_processor", None)).__name__
        self.fingerprint = f"{pictures} {str(model.dtype).removeprefix('torch.')} {model.device.type}"

    def prepare(self, samples: Sequence[WaitingSample]) -> PreparedBatch:
        """Prepare a batch on the CPU: decode and scale the pictures, apply the chat template, tokenise and pad.

        Raises TooLongError if a prompt leaves no room for the longest answer.
        """
        conversations: dict[int, list[dict[str, Any]]] = {}  # samples of one call share their messages, and so the decoded pictures
        for sample in samples:
            if id(sample.messages) not in conversations:
                conversations[id(sample.messages)] = [_message(message) for message in sample.messages]
        inputs = self._processor.apply_chat_template(
            [conversations[id(sample.messages)] for sample in samples],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )
        lengths = tuple(inputs["attention_mask"].sum(dim=1).tolist())
        if self._positions and max(lengths) + self._settings.max_tokens > self._positions:
            raise TooLongError
        return PreparedBatch(tuple(samples), inputs, lengths)

    def generate(self, batch: PreparedBatch) -> list[Answer]:
        """Generate one answer per row; StoppedError if `stopped` was set, torch.OutOfMemoryError if the batch is too large.

        Log-probabilities are those of the model's own distribution: after penalties, before temperature and top-p. The end token is
        counted among the tokens of an answer.
        """
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        model, settings = self._model, self._settings
        chances = TokenLogprobs() if settings.logprobs else None
        seeds = [sample.seed for sample in batch.samples]
        changed = {} if settings.repetition_penalty is None else {"repetition_penalty": settings.repetition_penalty}
        inputs = batch.inputs.to(model.device, dtype=model.dtype)
        with torch.inference_mode():
            tokens = model.generate(
                **inputs,
                do_sample=False,  # the noise among the processors draws
                num_beams=1,
                max_new_tokens=settings.max_tokens,
                pad_token_id=self._decoder.pad_token_id,
                logits_processor=LogitsProcessorList(
                    [*([chances] if chances else []), *sampling_processors(settings, seeds, model.device)]
                ),
                stopping_criteria=StoppingCriteriaList([self._stop]),
                **changed,
            )
        if self.stopped:
            raise StoppedError
        logprobs = chances.table(tokens) if chances else [[] for _ in seeds]
        rows = tokens[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._answer(*row) for row in zip(rows, batch.prompt_tokens, logprobs, strict=True)]

    def release(self) -> None:
        """Release cached GPU memory, after a batch that was too large."""
        import torch

        gc.collect()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()

    def _stop(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        import torch

        return torch.full((len(input_ids),), self.stopped, device=input_ids.device, dtype=torch.bool)

    def _answer(self, tokens: list[int], prompt_tokens: int, logprobs: list[float]) -> Answer:
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        used = len(tokens) if end is None else end + 1
        reply = self._decoder.decode(tokens[:used], skip_special_tokens=True).strip()
        text, thought = answer_of(reply, self._settings.thought_marks, cut=end is None)
        return Answer(
            text=text,
            thought=thought,
            state="truncated" if end is None else "ok" if text else "refused",
            finish_reason="length" if end is None else "stop",
            served_model=type(self._model).__name__,
            fingerprint=self.fingerprint,
            prompt_tokens=prompt_tokens,
            completion_tokens=used,
            token_logprobs=tuple(logprobs[:used]),
        )


def _message(message: Message) -> dict[str, Any]:
    from PIL import Image

    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if not isinstance(part, str):
            parts.append({"type": "image", "image": Image.open(io.BytesIO(part.png)).convert("RGB")})
        elif part or not parts:  # no label is no part
            parts.append({"type": "text", "text": part})
    return {"role": message.role, "content": parts}


def sampling_processors(settings: GenerationSettings, seeds: Sequence[int], device: torch.device) -> list[Any]:
    """Return the logits processors in order: temperature, limits on the tokens, noise; none at temperature 0."""
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


def seed_of_sample(messages: Sequence[Message], seed: int) -> int:
    """Mix the seed of a sample with its conversation, so that equal seeds of different conversations give different noise.

    Returns
    -------
    int
        In [0, 2^63).
    """
    content = [
        [message.role, message.text, [[image.label, image.sha256] for image in message.images], *order_of_parts(message).items()]
        for message in messages
    ]
    digest = hashlib.sha256(json.dumps([content, seed], ensure_ascii=True, separators=(",", ":")).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class GumbelNoise:
    """Adds noise to the scores, so that their maximum is a sample; one random generator per row.

    Parameters
    ----------
    seeds : sequence of int
        One per row of the batch.
    device : torch.device
        Device of the scores. The noise of a seed differs between CPU and GPU.

    Notes
    -----
    Gumbel-max: if the g_i are independent Gumbel(0, 1) variables, argmax_i(x_i + g_i) is distributed as softmax(x) (C. J. Maddison,
    D. Tarlow, T. Minka, A* Sampling, NeurIPS 2014, section 2; after E. J. Gumbel 1954). g = -log(e) with e from the exponential
    distribution of rate 1. Greedy search over these scores is sampling, and a row depends only on its own scores and seed; `generate`
    itself would draw all rows of a batch from one generator, whose state depends on the batch.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        import torch

        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores with noise, float32 of shape (rows, vocabulary)."""
        import torch

        noise = torch.empty_like(scores, dtype=torch.float32)
        for row, generator in zip(noise, self._generators, strict=True):
            row.exponential_(generator=generator)
        return scores.float() - noise.log_()


class TokenLogprobs:
    """Records the log-probability of every chosen token, from the scores at its place among the processors.

    Notes
    -----
    A processor sees the scores before a token is chosen, so each token is looked up one step later. Only the scores of one step are held
    (steps x rows x vocabulary would be gigabytes).
    """

    def __init__(self) -> None:
        self._held: torch.Tensor | None = None
        self._columns: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Look up the last token, hold the log-softmax of these scores, and return them unchanged."""
        self._look_up(input_ids)
        self._held = scores.float().log_softmax(-1)
        return scores

    def table(self, tokens: torch.Tensor) -> list[list[float]]:
        """Return the natural logarithms, one list per row and one number per step, for the final `tokens` of shape (rows, length)."""
        import torch

        self._look_up(tokens)
        self._held = None
        table: list[list[float]] = torch.cat(self._columns, dim=1).tolist()
        return table

    def _look_up(self, tokens: torch.Tensor) -> None:
        if self._held is not None:
            self._columns.append(self._held.gather(1, tokens[:, -1:]))
