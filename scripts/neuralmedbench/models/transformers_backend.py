"""Models with open weights, from a folder on this machine."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.io.files import sha256_of_value
from neuralmedbench.models.protocol import Answer, Call, Message


class TransformersBackend:
    """A vision-language model that transformers can load through its Auto classes.

    Parameters
    ----------
    name : str
        Name of the model, for messages.
    model : ModelConfig
        Its yaml; `id` is the folder with weights, tokenizer and processor.

    Raises
    ------
    ProviderError
        If the folder or the library is not there, or the folder holds something else.

    Notes
    -----
    Sampling depends on what else is in a batch. All samples of one conversation are therefore generated together from
    one seed, and nothing else with them: an answer is the same whether a run was interrupted or not.
    """

    def __init__(self, name: str, model: ModelConfig) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        folder = Path(model.id)
        if not folder.is_dir():
            message = f"model {name}: its id is not a folder here; put the weights there or correct `id`"
            raise ProviderError(message)
        try:
            import torch
            from transformers import AutoModelForImageTextToText, AutoProcessor
        except ImportError:
            message = f"model {name}: torch and transformers are not installed; see envs/inference.yaml"
            raise ProviderError(message) from None
        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        auto: Any = AutoModelForImageTextToText
        processors: Any = AutoProcessor
        try:
            self._processor = processors.from_pretrained(folder, local_files_only=True, padding_side="left")
            weights = auto.from_pretrained(folder, local_files_only=True, dtype="auto")
        except (OSError, ValueError, ImportError) as error:
            message = f"model {name}: transformers cannot load what lies in its folder ({type(error).__name__})"
            raise ProviderError(message) from None
        self._weights = weights.to(self._device).eval()
        self._model = model
        self._together: dict[str, list[Answer]] = {}

    async def answer(self, call: Call) -> Answer:
        """Answer one call, from the samples that were generated together; see `models.protocol.Backend`."""
        shape = [[message.role, message.text, [[image.label, image.sha256] for image in message.images]] for message in call.messages]
        key = sha256_of_value([shape, call.samples])
        if key not in self._together:
            self._together[key] = self._generate(call)
        answers = self._together[key]
        return answers[call.repeat if call.samples > 1 else 0]

    async def close(self) -> None:
        """Forget what was generated."""
        self._together.clear()

    def _generate(self, call: Call) -> list[Answer]:
        torch, model = self._torch, self._model
        inputs = self._processor.apply_chat_template(
            [[_message(message) for message in call.messages]],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        ).to(self._device, dtype=self._weights.dtype)
        greedy = not model.temperature
        sampling: dict[str, Any] = {"do_sample": False}
        if not greedy:
            sampling = {"do_sample": True, "temperature": model.temperature, "top_p": model.top_p, "num_return_sequences": call.samples}
        torch.manual_seed((call.seed if call.samples > 1 else call.own_seed) or 0)
        with torch.inference_mode():
            tokens = self._weights.generate(
                **inputs,
                max_new_tokens=model.max_tokens,
                pad_token_id=self._processor.tokenizer.pad_token_id,
                **{name: value for name, value in sampling.items() if value is not None},
            )
        prompt = int(inputs["input_ids"].shape[1])
        answers = [self._answer(row[prompt:], prompt) for row in tokens]
        return answers * call.samples if greedy else answers

    def _answer(self, tokens: Any, prompt_tokens: int) -> Answer:
        tokenizer = self._processor.tokenizer
        ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
        ended = next((place for place, token in enumerate(tokens.tolist()) if token in ends), None)
        text = tokenizer.decode(tokens, skip_special_tokens=True).strip()
        state = "truncated" if ended is None else "ok" if text else "refused"
        return Answer(
            text=text,
            state=state,
            finish_reason="length" if ended is None else "stop",
            served_model=type(self._weights).__name__,
            prompt_tokens=prompt_tokens,
            completion_tokens=len(tokens) if ended is None else ended,
        )


def _message(message: Message) -> dict[str, Any]:
    from PIL import Image

    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    for image in message.images:
        picture = Image.open(io.BytesIO(image.png)).convert("RGB")
        parts += [{"type": "text", "text": image.label}, {"type": "image", "image": picture}]
    return {"role": message.role, "content": parts}
