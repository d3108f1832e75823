"""One call of a model, from the reservation of its cost to the line in the ledger."""

from __future__ import annotations

import asyncio
import datetime
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neuralmedbench.config.model import Downscale, ModelConfig
from neuralmedbench.models.budget import NANO, Budget, Reservation, cost_usd
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.conversation import PromptMessage, load_messages
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.models.ledger import ROOM_BYTES, Ledger, LedgerEntry, new_entry
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Answer, Backend, Call, Message, tokens_of_call
from neuralmedbench.models.rate_limits import Grant, RateLimits
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.retry import INTERRUPTED, CallError, GaveUpError, answer_with_retries
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.records.responses import ResponseState

HOPELESS_STATUSES = frozenset({401, 402, 404})
"""A wrong key, no credit, no such model: what one call is told, all are; the others are not sent."""


class Caller:
    """Makes the calls of one run and keeps every answer that comes.

    Attributes
    ----------
    calls : int
        Calls made, retries not counted.
    storage_error : str
        Why answers cannot be kept any more; empty while they can.
    cut_short : bool
        Whether a call was not made, or not tried again, because the command was asked to end.
    """

    def __init__(self, run: ModelRun, handle: BackendHandle, ledger: Ledger) -> None:
        self._model, self._handle, self._ledger = run.model, handle, ledger
        self._destination, self._root, self._first = destination_of(run.model), run.root, run.first_repeat
        self._jitter = random.Random(0)
        self._stop = asyncio.Event()
        self._budget, self._limits = run.control.budget(run.model, run.root), run.control.limits(run.model, self._stop)
        self._refusal = ""
        self.calls = 0
        self.storage_error = ""
        self.cut_short = False

    @property
    def stopped(self) -> bool:
        """Whether the command was asked to end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Begin no more calls; those under way are waited for and kept."""
        self._stop.set()
        if self._handle.backend:
            self._handle.backend.stop()

    async def ask(self, walk: SampleWalk, keys: Mapping[int, str]) -> dict[int, LedgerEntry | MissingAnswer]:
        """Ask for samples of one conversation, in one call if the backend gives them all; `keys` in the ledger are by sample number."""
        outcomes: dict[int, LedgerEntry | MissingAnswer] = {}
        while rest := {repeat: key for repeat, key in keys.items() if repeat not in outcomes}:
            outcomes |= await self._ask_once(walk, rest)
        return outcomes

    async def _ask_once(self, walk: SampleWalk, keys: Mapping[int, str]) -> dict[int, LedgerEntry | MissingAnswer]:
        backend = self._handle.backend
        if self._refusal:
            return dict.fromkeys(keys, MissingAnswer(ResponseState.FAILED, self._refusal))
        if backend is None or self.stopped or not self._can_keep():
            self.cut_short |= backend is not None and self.stopped
            why = self._handle.reason if backend is None else INTERRUPTED if self.stopped else "no room"
            return dict.fromkeys(keys, MissingAnswer(ResponseState.SKIPPED, why))
        schema = sent_schema(walk.request, self._model)
        call = self._call(walk.messages, list(keys), schema)
        reserved = await self._budget.reserve_in_turn(walk.messages, len(keys), schema)
        if reserved is None:
            return dict.fromkeys(keys, MissingAnswer(ResponseState.OVER_BUDGET, self._budget.why))
        gate = AttemptGate(self._budget, self._limits, reserved)
        spent: float | None = None  # whatever happens to a call that was begun: it may have been charged
        try:
            answers, attempts, seconds = await self._answers(backend, call, gate)
            self.calls += 1
            gate.close(answers)
            spent = _cost_usd(self._model, answers, reserved)
        except GaveUpError as error:
            spent = None if error.perhaps_paid else 0.0
            self.calls += error.attempts > 0
            self.cut_short |= self.stopped  # it may be that it would have been tried again
            if error.status in HOPELESS_STATUSES:
                self._refusal = str(error)
            first, rest = self._failed(str(error), error.attempts, sent=error.sent), MissingAnswer(ResponseState.FAILED, str(error))
            return {repeat: rest if place else first for place, repeat in enumerate(keys)}
        finally:
            self._budget.settle(reserved, spent)
        counts = {"latency_s": round(seconds, 4), "images_downscaled": shrunk_pictures(call.messages, self._model.provider_downscale)}
        outcomes: dict[int, LedgerEntry | MissingAnswer] = {}
        for (repeat, key), answer in zip(keys.items(), answers, strict=False):
            # the attempts of one call stand once, with its first sample
            entry = self._entry(answer, walk, key=key, repeat=repeat, attempts=0 if outcomes else attempts, **counts)
            outcomes[repeat] = self._keep(entry)
        return outcomes

    def _call(self, messages: Sequence[PromptMessage], repeats: Sequence[int], schema: str) -> Call:
        # a backend counts the samples of a conversation from 0; their seeds start where this run's repeats do
        seed = None if self._model.seed is None else self._model.seed + self._first
        numbers = tuple(repeat - self._first for repeat in repeats)
        return Call(load_messages(messages, self._root), numbers, seed, json.loads(schema) if schema else None)

    async def _answers(self, backend: Backend, call: Call, gate: AttemptGate) -> tuple[tuple[Answer, ...], int, float]:
        remote = self._model.backend == "litellm"  # a model in this process answers when its turn has come
        return await answer_with_retries(
            lambda: backend.answer(call),
            max_attempts=self._model.max_attempts,
            timeout_s=self._model.timeout_s if remote else None,
            jitter=self._jitter,
            stop=self._stop,
            deadline_s=self._model.deadline_s if remote else None,
            gate=gate,
        )

    def _entry(self, answer: Answer, walk: SampleWalk, **call: Any) -> LedgerEntry:
        return new_entry(
            walk.request,
            self._model,
            walk.messages,
            turn=len(walk.entries),
            state=answer.state,
            text=answer.text.encode("utf-8", "replace").decode("utf-8"),  # half a surrogate pair is valid JSON, but no text
            finish_reason=answer.finish_reason,
            served_model=answer.served_model,
            fingerprint=answer.fingerprint,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            called_on=_today(),
            code=walk.code,
            destination=self._destination,
            token_logprobs=tuple(round(value, 4) for value in answer.token_logprobs),
            **call,
        )

    def _keep(self, entry: LedgerEntry) -> LedgerEntry | MissingAnswer:
        try:
            self._ledger.add(entry)
        except OSError as error:  # a quota, which is not seen beforehand, or a disk that breaks
            self.storage_error = f"its ledger cannot be written ({error.strerror})"
            return self._failed("not kept", entry.attempts, sent=entry.attempts > 0)
        return entry

    def _failed(self, why: str, attempts: int, *, sent: bool) -> MissingAnswer:
        place, day = (self._destination, _today()) if sent else ("", "")
        return MissingAnswer(ResponseState.FAILED, why, attempts, place, day)

    def _can_keep(self) -> bool:
        """Whether one more answer could be kept; once it could not, nothing is asked any more."""
        if not self.storage_error and not self._ledger.has_room():
            self.storage_error = f"less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger"
        return not self.storage_error


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _cost_usd(model: ModelConfig, answers: Sequence[Answer], reserved: Reservation) -> float | None:
    """Price of a call, at the dearer price where prompt and answers are counted together; None: what was set aside, which is less."""
    costs = [cost_usd(model, answer.prompt_tokens, answer.completion_tokens) for answer in answers]
    known = [cost for cost in costs if cost is not None]
    if len(known) == len(costs):
        return sum(known)
    total = tokens_of_call(answers)
    most = [cost for pair in ((total, 0), (0, total)) if (cost := cost_usd(model, *pair)) is not None]
    return max(most) if most and max(most) * NANO < reserved.nano_usd else None


class AttemptGate:
    """What the attempts of one call have to pass; a `models.retry.AttemptPolicy`.

    Parameters
    ----------
    budget : Budget
        The money of the model.
    limits : RateLimits
        The limits of its group.
    reserved : Reservation
        What is set aside for the first attempt.
    """

    def __init__(self, budget: Budget, limits: RateLimits, reserved: Reservation) -> None:
        self._budget, self._limits, self._reserved = budget, limits, reserved
        self._grant: Grant | None = None

    async def enter(self) -> None:
        """Wait until the group may send one more request."""
        self._grant = await self._limits.wait(self._reserved.tokens)

    def pause(self, seconds: float) -> None:
        """Let the whole group wait."""
        self._limits.pause(seconds)

    def again(self, error: CallError) -> bool:
        """Whether there is money for one more attempt: one that may have been charged stays spent."""
        return not error.perhaps_paid or self._budget.reserve_retry(self._reserved)

    def close(self, answers: Sequence[Answer]) -> None:
        """Say what the answers had in tokens; when the provider did not count them all, they count as they were asked for."""
        if self._grant:
            self._limits.settle(self._grant, tokens_of_call(answers))


SIZE_AT = 16
"""Where the header of a PNG holds width and height, four bytes each."""


def shrunk_pictures(messages: Iterable[Message], limit: Downscale | None) -> int:
    """Count the pictures that are wider or higher than `longest_side_px`, or have both sides above `shortest_side_px`."""
    if limit is None:
        return 0
    return sum(_is_shrunk(image.png, limit) for message in messages for image in message.images)


def _is_shrunk(png: bytes, limit: Downscale) -> bool:
    width, height = (int.from_bytes(png[place : place + 4], "big") for place in (SIZE_AT, SIZE_AT + 4))
    too_long = limit.longest_side_px is not None and max(width, height) > limit.longest_side_px
    return too_long or (limit.shortest_side_px is not None and min(width, height) > limit.shortest_side_px)
