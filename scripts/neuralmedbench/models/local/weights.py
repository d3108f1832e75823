"""Weights and their processor: from conversations to tokens, and back."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neuralmedbench.models.local.batch_choice import WaitingSample
from neuralmedbench.models.local.sampling import GenerationSettings, TokenLogprobs, sampling_processors
from neuralmedbench.models.protocol import Answer, Message


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
