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


@dataclass(frozen=True, eq=False)
class WaitingSample:
    """One sample of a conversation that is waited for.

    Attributes
    ----------
    messages : tuple of Message
        The conversation so far.
    seed : int
        Of its noise, already mixed with the conversation.
    answer : asyncio.Future
        Where the answer is waited for.
    """

    messages: tuple[Message, ...]
    seed: int
    answer: asyncio.Future[Answer]

    @cached_property
    def weight(self) -> tuple[int, int]:
        """Number of pictures, which take most of the tokens, and of characters."""
        pictures = sum(len(message.images) for message in self.messages)
        return pictures, sum(len(message.text) + sum(len(image.label) for image in message.images) for message in self.messages)


class TooLongError(Exception):
    """A conversation and the longest answer to it are longer than what the model was made for."""


class StoppedError(Exception):
    """The command ends: what was being generated is given up."""


@dataclass(frozen=True)
class PreparedBatch:
    """Conversations as the model takes them: what the processor made of them, and the tokens of each prompt without padding."""

    samples: tuple[WaitingSample, ...]
    inputs: Any
    prompt_tokens: tuple[int, ...]


class Weights:
    """A vision-language model of transformers and its processor.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Made for generation from pictures and text, on the device where it shall compute.
    processor : transformers.ProcessorMixin
        With a chat template.
    settings : GenerationSettings
        How it generates.

    Attributes
    ----------
    stopped : bool
        Set it from any thread: generation then ends with the token that is under way.
    """

    def __init__(self, model: Any, processor: Any, settings: GenerationSettings) -> None:
        self.stopped = False
        self._model, self._processor, self._settings = model.eval(), processor, settings
        tokenizer = processor.tokenizer
        tokenizer.padding_side = "left"  # the answers of all rows begin at the same place
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # another thread prepares the next batch meanwhile, and a fast tokenizer must not be used by two
        self._decoder = copy.deepcopy(tokenizer)
        said = model.generation_config
        ends = said.eos_token_id if isinstance(said.eos_token_id, list) else [said.eos_token_id]
        self._ends = {token for token in [*ends, tokenizer.eos_token_id] if token is not None}
        self._positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        pictures = type(getattr(processor, "image_processor", None)).__name__
        self.fingerprint = f"{pictures} {str(model.dtype).removeprefix('torch.')} {model.device.type}"

    def prepare(self, samples: Sequence[WaitingSample]) -> PreparedBatch:
        """Make a batch ready: pictures are decoded and scaled, the prompts written and padded."""
        shown: dict[int, list[dict[str, Any]]] = {}
        for sample in samples:
            if id(sample.messages) not in shown:
                shown[id(sample.messages)] = [_message(message) for message in sample.messages]
        inputs = self._processor.apply_chat_template(
            [shown[id(sample.messages)] for sample in samples],
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
        """Generate one answer a row."""
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
        """Give cached memory of a graphics card back, after a batch that was too large."""
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
        text = self._decoder.decode(tokens[:used], skip_special_tokens=True).strip()
        return Answer(
            text=text,
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

    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    for image in message.images:
        label = [{"type": "text", "text": image.label}] if image.label else []
        parts += [*label, {"type": "image", "image": Image.open(io.BytesIO(image.png)).convert("RGB")}]
    return {"role": message.role, "content": parts}


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
