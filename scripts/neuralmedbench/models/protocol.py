"""What the engine hands a backend, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class MessageImage:
    """A picture of a message: the words shown before it (may be empty), the bytes of the PNG and their digest."""

    label: str
    png: bytes
    sha256: str


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Attributes
    ----------
    role : str
        `system`, `user` or `assistant`.
    text : str
        The words.
    images : tuple of MessageImage
        Pictures, shown after the words, each after its label.
    """

    role: str
    text: str
    images: tuple[MessageImage, ...] = ()


@dataclass(frozen=True)
class Call:
    """One call: the whole conversation so far, ending with a user message.

    Attributes
    ----------
    messages : tuple of Message
        System message first, then user and assistant in turn.
    repeats : tuple of int
        Numbers of the samples of this conversation that are asked for; one, unless the backend takes `several`.
    seed : int or None
        The model's seed; None when its yaml has none.
    schema : mapping or None
        JSON schema that the answer has to follow; None when its form is not checked by the provider.
    """

    messages: tuple[Message, ...]
    repeats: tuple[int, ...]
    seed: int | None
    schema: Mapping[str, object] | None = None

    def seed_of(self, repeat: int) -> int | None:
        """Seed of one sample."""
        return None if self.seed is None else self.seed + repeat


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes
    ----------
    state : str
        `ok`, `refused` or `truncated`: the model's behaviour. A transport error is an exception, never an answer.
    finish_reason, served_model, fingerprint : str
        What the provider said; empty when it said nothing.
    prompt_tokens, completion_tokens : int or None
        As counted by the provider; None when it does not say, or cannot be believed. Where it counts several samples together the first one
        has the whole count and the others 0.
    token_logprobs : tuple of float
        Natural logarithm of the probability of each generated token; empty when it was not asked for.
    total_tokens : int or None
        Tokens of prompt and answers, where the provider counts them together only: with the first sample, of the whole call.
    """

    text: str
    state: str = "ok"
    finish_reason: str = ""
    served_model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    token_logprobs: tuple[float, ...] = ()
    total_tokens: int | None = None


def tokens_of_call(answers: Sequence[Answer]) -> int | None:
    """Tokens of the prompt and of all answers of one call; None when they are not known."""
    counts = [count for answer in answers for count in (answer.prompt_tokens, answer.completion_tokens)]
    known = [count for count in counts if count is not None]
    if known and len(known) == len(counts):
        return sum(known)
    return answers[0].total_tokens if answers else None


class Backend(Protocol):
    """A way of calling a model. One call at a time per coroutine.

    Attributes
    ----------
    in_flight : int
        How many calls the engine may have under way at once.
    several : bool
        Whether one call may ask for several samples of a conversation.
    """

    in_flight: int
    several: bool

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Answer one call: one answer a repeat, in their order; fewer, but at least one, when the others have to be asked for again."""
        ...

    def stop(self) -> None:
        """Begin nothing more; calls that have begun are finished, those that only wait may fail."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
