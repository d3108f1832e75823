"""Models with open weights in a local folder; the samples of many calls are generated in batches, because that is fastest."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.errors import ConfigError, ProviderError
from neuralmedbench.models.local.generation import (
    GenerationSettings,
    PreparedBatch,
    TooLongError,
    WaitingSample,
    Weights,
    sampling_of,
    seed_of_sample,
)
from neuralmedbench.models.protocol import Answer, Call
from neuralmedbench.models.retry import INTERRUPTED, CallError

if TYPE_CHECKING:
    from neuralmedbench.config.model import ModelConfig


WINDOW = 8
"""Calls in flight, in batches: enough waiting samples to batch similar conversations."""

COLLECT_S = 0.05
"""How long to wait for more calls before a batch that is not full; generation takes seconds."""


class BatchingBackend:
    """A backend (`models.protocol.Backend`) that collects the samples of many calls and generates them in batches.

    Parameters
    ----------
    name : str
        Name of the model, for messages.
    weights : Weights
        The model.
    settings : GenerationSettings
        Its settings.

    Notes
    -----
    One batch is generated at a time, in a thread, while another thread prepares the next one. Every sample is a row with its own copy of
    the prompt: `num_return_sequences` of transformers 5.17 gives the second picture of a prompt to the wrong row. A sample depends on its
    conversation and its seed; the rest of the batch changes it only by rounding in larger matrix products, which can flip a token where
    two are almost equally probable (more often in bfloat16 than in float32).
    """

    several = True

    def __init__(self, name: str, weights: Weights, settings: GenerationSettings) -> None:
        self.in_flight = WINDOW * settings.batch_size
        self._name, self._weights, self._settings = name, weights, settings
        self._open: set[WaitingSample] = set()  # all samples without an answer
        self._waiting: list[WaitingSample] = []  # those not in a batch yet
        self._parts: list[list[WaitingSample]] = []  # parts of batches that failed
        self._limits: list[BatchLimit] = []
        self._mixed = True  # whether a batch may mix samples with different numbers of pictures
        self._stopping = False
        self._runner: asyncio.Task[None] | None = None

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Answer one call; see `models.protocol.Backend`. At temperature 0 all samples are equal, so one is generated."""
        if self._stopping:
            raise CallError(INTERRUPTED, final=True)
        repeats = call.repeats if self._settings.temperature else call.repeats[:1]
        samples = [self._sample(call, repeat) for repeat in repeats]
        self._open.update(samples)
        self._waiting += samples
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._work())
        try:
            answers = await asyncio.gather(*(sample.answer for sample in samples))
        finally:
            self._open.difference_update(samples)
            for sample in samples:  # nothing is generated for a call that was cancelled
                sample.answer.cancel()
        copy = replace(answers[0], prompt_tokens=0, completion_tokens=0)
        return (*answers, *[copy] * (len(call.repeats) - len(repeats)))

    def stop(self) -> None:
        """Start no more batches: the running one is finished, and waiting calls fail."""
        self._stopping = True
        for sample in [*self._waiting, *(sample for part in self._parts for sample in part)]:
            _fail(sample, INTERRUPTED)

    async def close(self) -> None:
        """End; a batch still being generated stops at its next token and fails."""
        self.stop()
        self._weights.stopped = True
        if self._runner:
            await asyncio.gather(self._runner, return_exceptions=True)

    def _sample(self, call: Call, repeat: int) -> WaitingSample:
        seed = call.seed_of(repeat)
        of_sample = seed_of_sample(call.messages, repeat if seed is None else seed)
        return WaitingSample(call.messages, of_sample, asyncio.get_running_loop().create_future())

    async def _work(self) -> None:
        try:
            now = await self._next()
            while now is not None:
                # prepare the next batch while this one is generated, unless too few samples wait for a full one
                full = len(self._waiting) >= self._settings.batch_size
                ahead = asyncio.create_task(self._prepared()) if full else None
                await self._generate(now)
                now = (await ahead if ahead else None) or await self._next()
        except Exception as error:  # a bug in this module must not leave calls waiting forever
            for sample in self._open:
                _fail(sample, type(error).__name__)
            raise

    async def _next(self) -> PreparedBatch | None:
        """Wait while too few samples for a batch wait and more keep coming, then prepare a batch."""
        seen = -1
        while seen < len(self._waiting) < self._settings.batch_size and not self._parts:
            seen = len(self._waiting)
            await asyncio.sleep(COLLECT_S)
        return await self._prepared()

    async def _prepared(self) -> PreparedBatch | None:
        """Take samples and prepare them; None if none wait."""
        while samples := self._take():
            try:
                return await asyncio.to_thread(self._weights.prepare, samples)
            except Exception as error:  # an unusable picture or prompt fails its own call, not the run
                kind = type(error)
            self._put_back(samples, kind)
        return None

    async def _generate(self, batch: PreparedBatch) -> None:
        if self._stopping:
            for sample in batch.samples:
                _fail(sample, INTERRUPTED)
            return
        try:
            answers = await asyncio.to_thread(self._weights.generate, batch)
        except Exception as error:
            kind = type(error)
        else:
            for sample, answer in zip(batch.samples, answers, strict=True):
                if not sample.answer.done():
                    sample.answer.set_result(answer)
            return
        self._put_back(batch.samples, kind)  # outside `except`: the traceback would keep the memory that was short

    def _take(self) -> list[WaitingSample]:
        while self._parts:
            if part := [sample for sample in self._parts.pop(0) if not sample.answer.done()]:
                return part
        self._waiting = [sample for sample in self._waiting if not sample.answer.done()]
        if not self._waiting:
            return []
        chosen = choose_batch(self._waiting, self._settings.batch_size, limits=self._limits, mixed=self._mixed)
        taken = set(chosen)
        self._waiting = [sample for sample in self._waiting if sample not in taken]
        return chosen

    def _put_back(self, samples: Sequence[WaitingSample], kind: type[Exception]) -> None:
        """Split a failed batch in two and try again, until the sample that causes the failure fails alone."""
        import torch

        full = issubclass(kind, torch.OutOfMemoryError)
        if full:
            self._weights.release()
        if len(samples) == 1 or self._stopping:
            for sample in samples:
                _fail(sample, INTERRUPTED if self._stopping else kind.__name__)
            return
        half = (len(samples) + 1) // 2
        if full:
            if not self._limits:
                print(f"{self._name}: no memory for {len(samples)} such answers at once, {half} are generated at once", file=sys.stderr)
            self._limits.append(BatchLimit(max(sample.weight for sample in samples), half))
        elif self._mixed and kind is not TooLongError and len({sample.weight[0] for sample in samples}) > 1:
            self._mixed = False  # some processors need the same number of pictures in every row
            self._waiting[:0] = samples
            return
        self._parts += [list(samples[:half]), list(samples[half:])]


def _fail(sample: WaitingSample, kind: str) -> None:
    if not sample.answer.done():
        sample.answer.set_exception(CallError(kind, final=True))


@dataclass(frozen=True)
class BatchLimit:
    """A batch size that fits in memory for samples of this weight or more, found after running out of memory."""

    weight: tuple[int, int]
    size: int


def choose_batch(
    samples: Sequence[WaitingSample], size: int, *, limits: Sequence[BatchLimit] = (), mixed: bool = True
) -> list[WaitingSample]:
    """Choose a batch: the sample that has waited longest, and those most similar to it in pictures and length."""
    oldest = samples[0]
    alike = [sample for sample in samples if mixed or sample.weight[0] == oldest.weight[0]]
    ordered = sorted(alike, key=lambda sample: sample.weight)  # stable: the samples of one conversation stay in their order
    place = ordered.index(oldest)
    # of all runs of neighbours that include the oldest sample take the narrowest; repeat with a smaller size if memory does not allow it
    while True:
        starts = range(max(0, place - size + 1), max(0, min(place, len(ordered) - size)) + 1)
        runs = [ordered[start : start + size] for start in starts]
        best = min(runs, key=lambda run: [last - first for first, last in zip(run[0].weight, run[-1].weight, strict=True)])
        allowed = min((limit.size for limit in limits if best[-1].weight >= limit.weight), default=size)
        if len(best) <= allowed:
            return best
        size = allowed


class TransformersBackend(BatchingBackend):
    """A vision-language model that transformers can load through its Auto classes.

    Parameters
    ----------
    model : ModelConfig
        Its yaml; `id` is the folder with weights, tokenizer and processor.

    Raises
    ------
    ConfigError
        If the yaml has a parameter that local weights do not take, or no `max_tokens`.
    ProviderError
        If the folder or a library is absent, the folder is not a complete checkpoint, or the GPU has too little memory.

    Notes
    -----
    On a GPU the weights keep the data type of the checkpoint (usually bfloat16), on a CPU they are float32. Only the first visible GPU
    is used.
    """

    def __init__(self, model: ModelConfig) -> None:
        if model.max_tokens is None:
            message = f"model {model.name}: local weights need max_tokens"
            raise ConfigError(message)
        weights, processor = _load(model.name, Path(model.id))
        try:
            sampling = sampling_of(model.temperature, model.top_p, model.parameters, weights.generation_config)
        except ConfigError as error:
            message = f"model {model.name}: {error}"
            raise ConfigError(message) from None
        settings = GenerationSettings(
            max_tokens=model.max_tokens,
            batch_size=model.batch_size,
            logprobs=model.logprobs,
            thought_marks=model.thought_marks or (),
            **sampling,
        )
        ready = Weights(weights, processor, settings)
        drawn = ", ".join(f"{key} {value:g}" for key, value in sampling.items() if value is not None)
        print(f"{model.name}: {type(weights).__name__}, {ready.fingerprint}; {drawn}", file=sys.stderr)
        super().__init__(model.name, ready, settings)


def _load(name: str, folder: Path) -> tuple[Any, Any]:
    """Load the weights, onto the GPU if there is one, and their processor."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    if not folder.is_dir():
        message = f"model {name}: its id is not a folder here; put the weights there or correct `id`"
        raise ProviderError(message)
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForImageTextToText, AutoProcessor
    from transformers.utils import logging

    untyped_logging: Any = logging
    untyped_logging.disable_progress_bar()
    auto: Any = AutoModelForImageTextToText
    processors: Any = AutoProcessor
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = "auto" if device == "cuda" else torch.float32
    try:
        processor = processors.from_pretrained(folder, local_files_only=True)
        weights, report = auto.from_pretrained(folder, local_files_only=True, dtype=dtype, output_loading_info=True)
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        message = f"model {name}: transformers cannot load what lies in its folder ({type(error).__name__})"
        raise ProviderError(message) from None
    if absent := len(report["missing_keys"]) + len(report["mismatched_keys"]):  # transformers would fill them with random numbers
        message = f"model {name}: {absent} of its tensors are not in its folder, or have another shape there; copy the weights again"
        raise ProviderError(message)
    if not getattr(processor, "chat_template", None):
        message = f"model {name}: its folder has no chat template; weights that were tuned to answer come with one"
        raise ProviderError(message)
    try:
        return weights.to(device), processor
    except torch.OutOfMemoryError:
        message = f"model {name}: its weights do not fit on the graphics card; serve them over several (vLLM, `api_base`)"
        raise ProviderError(message) from None
