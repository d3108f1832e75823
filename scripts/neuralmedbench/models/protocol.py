"""The interface between the engine and a backend: messages, calls, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neuralmedbench.records.requests import joined_words
from neuralmedbench.records.responses import Usage


@dataclass(frozen=True)
class MessageImage:
    """A picture of a message: the label shown beside it (may be empty), the bytes of the PNG and their SHA-256."""

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
        The text.
    images : tuple of MessageImage
        Pictures, shown after the text, each after its label.
    after : str
        Text after the pictures.
    labels_after : bool
        True if each picture is shown before its label.
    """

    role: str
    text: str
    images: tuple[MessageImage, ...] = ()
    after: str = ""
    labels_after: bool = False

    @property
    def words(self) -> str:
        """All its text, without the labels of the pictures."""
        return joined_words(self.text, self.after)

    @property
    def parts(self) -> list[str | MessageImage]:
        """Its texts, labels and pictures in the order in which they are sent."""
        parts: list[str | MessageImage] = [self.text] if self.text or not self.after else []
        for image in self.images:
            parts += (image, image.label) if self.labels_after else (image.label, image)
        return [*parts, self.after] if self.after else parts


@dataclass(frozen=True)
class Call:
    """One call: the whole conversation so far, ending with a user message.

    Attributes
    ----------
    messages : tuple of Message
        System message first, then user and assistant in turn.
    repeats : tuple of int
        Numbers of the requested samples of this conversation; only one unless the backend takes `several`.
    seed : int or None
        The model's seed; None if its yaml has none.
    schema : mapping or None
        JSON schema that the provider has to enforce; None if it enforces none.
    """

    messages: tuple[Message, ...]
    repeats: tuple[int, ...]
    seed: int | None
    schema: Mapping[str, object] | None = None

    def seed_of(self, repeat: int) -> int | None:
        """Return the seed of one sample."""
        return None if self.seed is None else self.seed + repeat


@dataclass(frozen=True)
class Answer(Usage):
    """One answer of a model.

    Attributes
    ----------
    state : str
        `ok`, `refused` or `truncated`: the model's behaviour. A transport error is an exception, never an answer.
    finish_reason, served_model, fingerprint : str
        As reported by the provider; empty if it reported none.
    prompt_tokens, ..., service_tier
        As in `records.responses.Usage`. If the provider counts several samples together, the first sample has the whole count and the
        others 0.
    token_logprobs : tuple of float
        Natural logarithm of the probability of each generated token; empty unless requested.
    thought : str
        As in `models.ledger.LedgerEntry`.
    total_tokens : int or None
        Tokens of prompt and answers, where the provider counts them only together: of the whole call, with the first sample.
    """

    text: str
    state: str = "ok"
    finish_reason: str = ""
    served_model: str = ""
    fingerprint: str = ""
    token_logprobs: tuple[float, ...] = ()
    thought: str = ""
    total_tokens: int | None = None


def tokens_of_call(answers: Sequence[Answer]) -> int | None:
    """Return the tokens of the prompt and of all answers of one call; None if they are unknown."""
    # the provider's total is used only if a count of its own is missing
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
        Calls that the engine may have in flight at once.
    several : bool
        True if one call may ask for several samples of a conversation.
    """

    in_flight: int
    several: bool

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Answer one call: one answer per repeat, in order; or fewer, but at least one, and the engine asks for the others again.

        Raises CallError if the call failed; its status decides whether it is retried.
        """
        ...

    def stop(self) -> None:
        """Start nothing more; running calls are finished, waiting ones may fail."""
        ...

    async def close(self) -> None:
        """Close connections and free resources."""
        ...
