"""Samples that wait for their turn, and which of them are generated together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from neuralmedbench.models.protocol import Answer, Message


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


@dataclass(frozen=True)
class BatchLimit:
    """What the memory did not hold: samples of this weight or more are generated in batches of this size at most."""

    weight: tuple[int, int]
    size: int


def choose_batch(
    samples: Sequence[WaitingSample], size: int, *, limits: Sequence[BatchLimit] = (), mixed: bool = True
) -> list[WaitingSample]:
    """Choose what is generated together: the sample that waits longest, and those that are most alike."""
    oldest = samples[0]
    alike = [sample for sample in samples if mixed or sample.weight[0] == oldest.weight[0]]
    ordered = sorted(alike, key=lambda sample: sample.weight)  # stable: the samples of one conversation stay in their order
    place = ordered.index(oldest)
    while True:
        starts = range(max(0, place - size + 1), max(0, min(place, len(ordered) - size)) + 1)
        runs = [ordered[start : start + size] for start in starts]
        best = min(runs, key=lambda run: [last - first for first, last in zip(run[0].weight, run[-1].weight, strict=True)])
        allowed = min((limit.size for limit in limits if best[-1].weight >= limit.weight), default=size)
        if len(best) <= allowed:
            return best
        size = allowed
