"""One call of a model, from the reservation of its cost to the line in the ledger."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuralmedbench.config.model import Downscale, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.budget import NANO, Budget, Reservation
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.causes import DAY_LIMIT, NO_CREDIT, is_of_all
from neuralmedbench.models.conversation import PromptMessage, load_messages
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.models.ledger import ROOM_BYTES, FailedRequests, Ledger, LedgerEntry, new_entry
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.prices import cost_usd, highest_usd
from neuralmedbench.models.protocol import Answer, Backend, Call, Message, tokens_of_call
from neuralmedbench.models.rate_limits import Grant, RateLimits
from neuralmedbench.models.registry import BackendHandle
from neuralmedbench.models.retry import (
    CONNECTION_REFUSED,
    INTERRUPTED,
    TOO_MANY,
    UNKNOWN_HOST,
    CallError,
    GaveUpError,
    RetriedCall,
    answer_with_retries,
)
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.models.token_estimates import png_size
from neuralmedbench.records.responses import ResponseState, usage_of

NOBODY = frozenset({CONNECTION_REFUSED, UNKNOWN_HOST})
HOPELESS_STATUSES = frozenset({401, 402, 404})
"""A wrong key, no credit, no such model: every further call would fail the same way, so none is sent."""


FIRST_CONNECTION_S = 10.0
"""Seconds in which a server that was never reached has to accept a connection."""
FIRST_REFUSAL_S = 1.0
"""The same if nothing listens at its address: one or two attempts later it still does not."""
FIRST_REFUSED = 10
"""First calls after which a server that refuses them all for one reason is not asked on."""
REFUSING_STATUSES = frozenset({200, 400, 403, 413, 415, 422})
"""A server that refuses what it is asked (some do with status 200, and an error as the reply); another request may pass."""


class Caller:
    """Makes the calls of one run and keeps every answer.

    Attributes
    ----------
    calls : int
        Calls made, without retries.
    retries : Counter of str
        Attempts that failed and were followed by another one, by their cause.
    storage_error : str
        Why answers can no longer be kept; empty while they can.
    cut_short : bool
        True if a call was not made, or not retried, because the command was asked to end.

    Parameters
    ----------
    most_failed : float
        More failed answers fail the run.
    """

    def __init__(self, run: ModelRun, handle: BackendHandle, ledger: Ledger, most_failed: float = math.inf) -> None:
        self._run, self._model, self._handle, self._ledger = run, run.model, handle, ledger
        self._destination = destination_of(run.model)
        self._jitter = random.Random(0)  # only spreads waits: no answer depends on it
        self._stop = asyncio.Event()
        self._budget, self._limits = (
            run.control.budget(run.model, run.ledger, run.root),
            run.control.limits(run.model, run.ledger, self._stop),
        )
        self._refusal = ""
        self._reach = Reachability(run.model.deadline_s)
        self._refused = Counter[str]()  # first calls, by their error, until one is answered
        self._most_failed = most_failed
        self.calls = 0
        self.retries: Counter[str] = Counter()
        self.storage_error = ""
        self.cut_short = False

    @property
    def never_reached(self) -> bool:
        """True if calls were given up because nothing was ever reached at the address of the model."""
        return bool(self._refusal) and not self._reach.reached

    @property
    def stopped(self) -> bool:
        """True if the command was asked to end."""
        return self._stop.is_set()

    def spent_of_cap(self) -> tuple[float, float] | None:
        """Return what counts against the cap that leaves the least, and that cap, in USD; None without a cap."""
        return self._budget.spent_of_cap()

    def stop(self) -> None:
        """Start no more calls; those in flight are finished and kept."""
        self._stop.set()
        if self._handle.backend:
            self._handle.backend.stop()

    async def ask(self, walk: SampleWalk, keys: Mapping[int, str]) -> dict[int, LedgerEntry | MissingAnswer]:
        """Ask for samples of one conversation, in one call if the backend returns them all; `keys` of the ledger by sample number."""
        outcomes: dict[int, LedgerEntry | MissingAnswer] = {}
        while rest := {repeat: key for repeat, key in keys.items() if repeat not in outcomes}:
            outcomes |= await self._ask_once(walk, rest)
        return outcomes

    async def _ask_once(self, walk: SampleWalk, keys: Mapping[int, str]) -> dict[int, LedgerEntry | MissingAnswer]:
        backend = self._handle.backend
        # reasons to send nothing
        if self._refusal:
            return dict.fromkeys(keys, MissingAnswer(ResponseState.FAILED, self._refusal))
        if backend is None or self.stopped or not self._can_keep():
            self.cut_short |= backend is not None and self.stopped
            why = self._handle.reason if backend is None else INTERRUPTED if self.stopped else "no room"
            return dict.fromkeys(keys, MissingAnswer(ResponseState.SKIPPED, why))
        schema = sent_schema(walk.request, self._model)
        # reserve the highest price, send, then settle at the real one
        call = call_of(self._run, walk.messages, list(keys), schema)
        reserved = await self._budget.reserve_in_turn(walk.messages, len(keys), schema)
        if reserved is None:
            return dict.fromkeys(keys, MissingAnswer(ResponseState.OVER_BUDGET, self._budget.why))
        gate = AttemptGate(self._budget, self._limits, reserved, self._reach, self.retries)
        spent: float | None = None  # keeps the reservation: a call that fails in any unforeseen way may have been charged
        try:
            outcome = await self._answers(backend, call, gate)
            answers = outcome.answer
            self._reach.note(sent=True)
            self._refused, self._most_failed = Counter(), math.inf
            self.calls += 1
            gate.close(answers)
            spent = _cost_usd(self._model, answers, reserved)
        except GaveUpError as error:
            spent = None if error.perhaps_paid else 0.0
            self.calls += error.attempts > 0
            self.cut_short |= self.stopped  # without the interrupt it might have been retried
            if error.attempts:
                self._reach.note(sent=error.sent > 0, nobody=error.kind in NOBODY)
            used_up = error.cause in (NO_CREDIT.words, DAY_LIMIT.words)
            if error.status in HOPELESS_STATUSES or used_up or self._reach.lost or self._refuses_all(error):
                self._refuse(str(error))
            key = next(iter(keys.values()))  # the requests of a call are counted once, with its first sample
            first, rest = self._failed(key, str(error), error.attempts, error.sent), MissingAnswer(ResponseState.FAILED, str(error))
            if self.stopped:  # the interrupt is the cause, and the next run makes these calls
                first, rest = (replace(one, state=ResponseState.SKIPPED, error=INTERRUPTED) for one in (first, rest))
            return {repeat: rest if place else first for place, repeat in enumerate(keys)}
        except ConfigError:  # a call that cannot be made, so nothing was sent
            spent = 0.0
            raise
        finally:
            self._budget.settle(reserved, spent)
        counts = {
            "latency_s": round(outcome.seconds, 4),
            "images_downscaled": count_downscaled(call.messages, self._model.provider_downscale),
        }
        outcomes: dict[int, LedgerEntry | MissingAnswer] = {}
        for (repeat, key), answer in zip(keys.items(), answers, strict=False):
            # the attempts of a call are counted once, with its first sample
            made = {"attempts": 0, "requests": 0} if outcomes else {"attempts": outcome.attempts, "requests": outcome.sent}
            entry = self._entry(answer, walk, key=key, repeat=repeat, failed=self._ledger.failed.of(key), **made, **counts)
            outcomes[repeat] = self._keep(entry)
        return outcomes

    def _refuses_all(self, error: GaveUpError) -> bool:
        """Return whether the first calls were all refused for one reason, which makes any further call pointless."""
        if error.status not in REFUSING_STATUSES or math.isinf(self._most_failed):
            return False
        self._refused[str(error)] += 1
        # what depends on the request may pass for another one: stop only when too many have failed anyway
        enough = FIRST_REFUSED if is_of_all(str(error)) else max(FIRST_REFUSED, self._most_failed + 1)
        return len(self._refused) == 1 and self._refused.total() >= enough

    def _refuse(self, why: str) -> None:
        if not self._refusal:
            unreached = f": {self._destination} cannot be reached; start the server or correct `api_base`" if self._reach.lost else ""
            print(f"{self._model.name}: {why}{unreached}; no more calls are made", file=sys.stderr, flush=True)
        self._refusal = why

    async def _answers(self, backend: Backend, call: Call, gate: AttemptGate) -> RetriedCall[tuple[Answer, ...]]:
        remote = self._model.backend in ("litellm", "server")  # no deadline for a model in this process: its calls queue for the batch
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
        request, turn = walk.due
        return new_entry(
            request,
            self._model,
            walk.messages,
            turn=turn,
            called_on=today(),
            code=walk.code,
            destination=self._destination,
            **fields_of(answer),
            **call,
        )

    def _keep(self, entry: LedgerEntry) -> LedgerEntry | MissingAnswer:
        try:
            self._ledger.add(entry)
        except OSError as error:  # a quota, which `has_room` does not see, or a failing disk
            self.storage_error = f"its ledger cannot be written ({error.strerror})"
            return self._failed(entry.key, "not kept", entry.attempts, entry.requests or 0)
        return entry

    def _failed(self, key: str, why: str, attempts: int, sent: int) -> MissingAnswer:
        place, day = (self._destination, today()) if sent else ("", "")
        if sent:
            self._ledger.failed.add(key, FailedRequests(place, sent, day))
        return MissingAnswer(ResponseState.FAILED, why, attempts, place, day)

    def _can_keep(self) -> bool:
        """Return True while there is room for another answer; after the first False nothing is asked any more."""
        if not self.storage_error and not self._ledger.has_room():
            self.storage_error = f"less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger"
        return not self.storage_error


def call_of(run: ModelRun, messages: Sequence[PromptMessage], repeats: Sequence[int], schema: str) -> Call:
    """Return the call that asks for samples of a conversation."""
    # a backend counts samples from 0, so the seed moves by the run's first repeat: sample k keeps its seed in every run
    seed = None if run.model.seed is None else run.model.seed + run.first_repeat
    numbers = tuple(repeat - run.first_repeat for repeat in repeats)
    return Call(load_messages(messages, run.root, run.model.max_picture_px), numbers, seed, json.loads(schema) if schema else None)


def fields_of(answer: Answer) -> dict[str, Any]:
    """Return the fields of a line of the ledger that come from the answer."""
    return {
        "state": answer.state,
        "text": answer.text.encode("utf-8", "replace").decode("utf-8"),  # half a surrogate pair is valid JSON but not valid text
        "finish_reason": answer.finish_reason,
        "served_model": answer.served_model,
        "fingerprint": answer.fingerprint,
        "thought": answer.thought,
        "token_logprobs": tuple(round(value, 4) for value in answer.token_logprobs),
        **vars(usage_of(answer)),
    }


def today() -> str:
    """Return the day in UTC, YYYY-MM-DD."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _cost_usd(model: ModelConfig, answers: Sequence[Answer], reserved: Reservation) -> float | None:
    """Return the price of a call, at the higher token price where prompt and answers are counted together.

    None if it is unknown, or if that upper bound is not below the reservation: the reservation then stands.
    """
    costs = [cost_usd(model, answer) for answer in answers]
    known = [cost for cost in costs if cost is not None]
    if len(known) == len(costs):
        return sum(known)
    total = tokens_of_call(answers)
    most = [cost for pair in ((total, 0), (0, total)) if total is not None and (cost := highest_usd(model, *pair)) is not None]
    return max(most) if most and max(most) * NANO < reserved.nano_usd else None


class Reachability:
    """Whether the server of a model can be reached: one that refuses every connection is not tried again for each answer.

    Parameters
    ----------
    patience_s : float
        Seconds without a connection after which a server that was reached before counts as lost, for example while it restarts.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s, self.reached = patience_s, False
        self._since: float | None = None
        self._nobody = False

    def note(self, *, sent: bool, nobody: bool = False) -> None:
        """Note an attempt that was sent, or found no connection; `nobody`: nothing listens at the address, or no host has its name."""
        if sent:
            self._since, self.reached = None, True
        else:
            self._nobody = nobody
            self._since = time.monotonic() if self._since is None else self._since

    @property
    def lost(self) -> bool:
        """True if no attempt has found a connection for a while."""
        patience = self._patience_s if self.reached else FIRST_REFUSAL_S if self._nobody else FIRST_CONNECTION_S
        return self._since is not None and time.monotonic() - self._since >= patience


class AttemptGate:
    """Budget and rate limits that every attempt of one call has to pass; a `models.retry.AttemptPolicy`.

    Parameters
    ----------
    budget : Budget
        The model's spending.
    limits : RateLimits
        The limits of its group.
    reserved : Reservation
        Money reserved for the first attempt.
    reach : Reachability, optional
        Whether the server can be reached.
    retries : Counter of str, optional
        Counts the attempts that are followed by another one, by cause.
    """

    def __init__(
        self,
        budget: Budget,
        limits: RateLimits,
        reserved: Reservation,
        reach: Reachability | None = None,
        retries: Counter[str] | None = None,
    ) -> None:
        self._budget, self._limits, self._reserved = budget, limits, reserved
        self._reach, self._retries = reach or Reachability(math.inf), Counter[str]() if retries is None else retries
        self._grant: Grant | None = None

    async def enter(self) -> None:
        """Wait until the group may send another request."""
        self._grant = await self._limits.wait(self._reserved.tokens)

    def leave(self, error: CallError | None, seconds: float) -> None:
        """Let the next call start."""
        if self._grant:
            refused = error is not None and (error.status == TOO_MANY or error.retry_after_s is not None)
            self._limits.end(self._grant, refused=refused, answered_s=None if error else seconds)

    def pause(self, seconds: float) -> None:
        """Make the whole group wait."""
        self._limits.pause(seconds)

    def may_retry(self, error: CallError) -> bool:
        """Return True if the server can be reached and there is money for another attempt.

        A failed attempt that may have been charged stays spent.
        """
        self._reach.note(sent=error.sent, nobody=error.kind in NOBODY)
        if self._reach.lost or (error.perhaps_paid and not self._budget.reserve_retry(self._reserved)):
            return False
        self._retries[str(error)] += 1
        return True

    def close(self, answers: Sequence[Answer]) -> None:
        """Report the tokens used to the rate limits; if the provider did not count all of them, the estimate stands."""
        if self._grant:
            self._limits.settle(self._grant, tokens_of_call(answers))


def count_downscaled(messages: Iterable[Message], limit: Downscale | None) -> int:
    """Count the pictures that the provider scales down."""
    if limit is None:
        return 0
    return sum(limit.scales_down(png_size(image.png)) for message in messages for image in message.images)
