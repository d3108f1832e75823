"""Open the batch interface of a model's provider; settle, collect and delete what was handed in, whether by this process or by one that was killed."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from neuralmedbench.config.model import BatchConfig, ModelConfig
from neuralmedbench.models.api.backend import NO_KEY, ApiBackend
from neuralmedbench.models.api.replies import refusal_of
from neuralmedbench.models.batch.anthropic import VERSION, AnthropicBatches
from neuralmedbench.models.batch.client import ELSEWHERE, GONE, BatchClient, BatchHttp, BatchLine, BatchStatus, CannotListError, readable
from neuralmedbench.models.batch.google import GoogleBatches
from neuralmedbench.models.batch.log import BatchLog, Chunk, ChunkState
from neuralmedbench.models.batch.openai import OpenAIBatches
from neuralmedbench.models.budget import Reservation
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.calls import fields_of, today
from neuralmedbench.models.context_length import ContextLength
from neuralmedbench.models.destinations import address_of, destination_of
from neuralmedbench.models.ledger import ENTRY, FailedRequests, Ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.prices import BATCH, cost_usd
from neuralmedbench.models.protocol import Call, Message
from neuralmedbench.models.retry import CallError
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.records.responses import ResponseState


def _batch_client(model: ModelConfig, stop: asyncio.Event) -> BatchClient:
    """Open the batch interface of a model's provider, one of `destinations.BATCH_PROVIDERS`."""
    key = model.api_key or NO_KEY
    provider, _, name = model.id.partition("/")
    address = address_of(model)
    place = urlsplit(address)
    # a gateway may serve a provider below a path
    root = (
        f"{place.scheme}://{place.netloc}{place.path.rstrip('/').removesuffix('/v1/messages').removesuffix('/v1').removesuffix('/v1beta')}"
    )
    if provider == "anthropic":
        return AnthropicBatches(BatchHttp(model.name, address, key, {"x-api-key": key, "anthropic-version": VERSION}, stop), root)
    if provider == "gemini":
        return GoogleBatches(BatchHttp(model.name, address, key, {"x-goog-api-key": key}, stop), root, name)
    base = model.api_base or f"{root}/v1"
    return OpenAIBatches(BatchHttp(model.name, address, key, {"authorization": f"Bearer {key}"}, stop), base)


REFUSING = frozenset(range(400, 500)) - {408, 409, 425}
"""Statuses that say that no batch was made."""
NO_ENTRY = frozenset({401})
NONE_IN_A_ROW = 10
"""Batches that were refused, or failed as a whole, one after the other: then no more are handed in."""
SCHEMA = "answer_schema"
"""Field beside those of the ledger's line: the schema that was sent, with which the reply is read."""
LOOKS_FOR_GONE = 4
"""Looks at a batch that its provider does not have (404) before it counts as gone: a server that restarts says so for a while."""
LONGEST_H = 72.0
"""Hours after which a batch that has not ended never will: providers end theirs after 24."""
NEVER_RECEIVED, NO_RESULT = "NeverReceived", "NoResult"
"""Kinds of failures: a request that the provider never received; one of which an ended batch says nothing."""
BEGUN = (Message("user", ""),)
"""A conversation to read a stored reply with; what was asked does not matter."""


class BatchCollector:
    """What was handed in for one model: settled with the provider, collected into the ledger, paid for and deleted.

    Parameters
    ----------
    run : ModelRun
        The model, its limits and its ledger.
    ledger : Ledger
        The open ledger.
    """

    def __init__(self, run: ModelRun, ledger: Ledger) -> None:
        self._run, self._model, self._ledger = run, run.model, ledger
        assert run.model.batch
        self._settings: BatchConfig = run.model.batch
        self._stop = asyncio.Event()
        self._backend, self._client = ApiBackend(run.model), _batch_client(run.model, self._stop)
        self._budget, self._log = run.control.budget(run.model, run.ledger, run.root), BatchLog(run.ledger)
        self._lengths = ContextLength(run.model, run.root)
        self._attempts: Counter[str] = Counter()
        self._refusals = 0  # batches in a row that were refused for now
        self._missing: dict[str, MissingAnswer] = {}
        self._closed = ""  # why nothing more is handed in
        self._blind = ""  # why nothing more can be looked at
        self._fruitless = 0  # batches in a row that were refused or failed as a whole
        self._first_looks: dict[str, float] = {}
        self._gone: Counter[str] = Counter()
        self._most = min(self._client.most_requests, self._settings.max_requests)  # requests of one batch
        self._again = False  # whether requests that were refused for now are handed in again

    async def _settle(self) -> None:
        """Ask the provider for chunks of which it is not known whether it has received them."""
        for chunk in self._log.open_chunks():
            if chunk.state is not ChunkState.SUBMITTING:
                continue
            # its time is counted from the first look of this process: an upload may have taken long
            since = time.time() - self._first_looks.setdefault(chunk.id, time.time())
            known = {one.batch for one in self._log.chunks.values() if one is not chunk}
            try:
                with readable():
                    batch = await self._client.find(chunk, known)
            except (CannotListError, CallError) as error:
                status = error.status if isinstance(error, CallError) else 404
                if status in REFUSING - NO_ENTRY - {429} or self._is_old(chunk):
                    self._log.end(chunk, ChunkState.UNSETTLED)
                    self._say(f"{chunk.id} was perhaps handed in, and {self._host} lists no batches: its requests are not sent again")
                elif isinstance(error, CallError):  # not known yet, or not to be reached: asked again after the next wait
                    self._give_up_at(error)
                continue
            if batch:
                self._log.submitted(chunk, batch)
            elif since >= self._settings.settle_after_s:  # a list may lag behind
                self._pay(chunk, dict.fromkeys(chunk.reserved, 0.0))
                self._log.end(chunk, ChunkState.ABSENT)
                self._count(dict.fromkeys(chunk.entries, CallError(NEVER_RECEIVED)), sent=0)
                await self._delete(chunk)

    def _give_up_at(self, error: CallError) -> None:
        """Stop waiting where a wrong key would meet every further look."""
        if error.status in NO_ENTRY:
            self._blind = str(error)

    async def _collect(self, chunk: Chunk) -> None:
        if chunk.state is ChunkState.SUBMITTING or not chunk.batch or (found := await self._results(chunk)) is None:
            return
        status, lines = found
        said = _said(status)
        is_void = status.state.lower() == "failed" and not lines and not status.results
        costs: dict[str, float | None] = {}
        failed: dict[str, CallError] = {}
        for line in lines:
            if line.key in chunk.entries:
                await self._keep(chunk, line, costs, failed)
        for key in chunk.entries.keys() - costs.keys():
            # of a batch that failed as a whole nothing was answered; of any other it may have been, and been charged
            failed[key], costs[key] = CallError(NO_RESULT, final=not is_void), 0.0 if is_void else None
        self._ledger.sync()
        self._pay(chunk, costs)
        for file in set(status.files) - set(chunk.files):
            self._log.uploaded(chunk, file)
        self._log.end(chunk, ChunkState.COLLECTED, answered=len(chunk.entries) - len(failed), said=said)
        self._fruitless = self._fruitless + 1 if is_void else 0
        if self._fruitless >= NONE_IN_A_ROW:
            self._closed = f"{self._fruitless} batches in a row failed as a whole"
        if is_void and len(failed) > 1:  # by its size, or by one of its requests: smaller ones show which
            self._most = min(self._most, len(failed) // 2)
        else:
            self._count(failed)
        self._say(f"batch {chunk.batch} ({said}): {len(chunk.entries) - len(failed)} of {len(chunk.entries)} answered")
        await self._delete(chunk)

    async def _results(self, chunk: Chunk) -> tuple[BatchStatus, list[BatchLine]] | None:
        """Return the results of a batch; None if there are none yet, or none that can be read."""
        try:
            with readable():
                status = await self._client.status(chunk)
                if status.ended:
                    return status, [line async for line in self._client.results(chunk, status)]
        except CallError as error:
            self._gone[chunk.id] += error.status in GONE
            if self._gone[chunk.id] >= LOOKS_FOR_GONE or error.kind == ELSEWHERE or self._is_old(chunk):
                self._unsettle(chunk, f"{error}; it cannot be collected")
            elif chunk.state is not ChunkState.UNSETTLED:  # nothing is lost: it is asked for again after the next wait
                self._say(f"batch {chunk.batch}: {error}; it is asked for again")
                self._give_up_at(error)
            return None
        if self._is_old(chunk):
            self._unsettle(chunk, f"{_said(status)} after {LONGEST_H:.0f} hours")
        return None

    def _unsettle(self, chunk: Chunk, why: str) -> None:
        if chunk.state is not ChunkState.UNSETTLED:
            self._log.end(chunk, ChunkState.UNSETTLED)
            self._say(f"batch {chunk.batch}: {why}; its requests are not sent again (`nmb model batches`)")

    async def _delete(self, chunk: Chunk) -> None:
        """Delete what the provider keeps of a chunk that is done; what cannot be deleted now is tried again by the next run."""
        if not chunk.has_files:
            return
        try:
            await self._client.delete(chunk)
            self._log.deleted(chunk)
        except CallError as error:
            self._say(f"{chunk.batch or chunk.id}: its files could not be deleted ({error}); the next run tries again")

    async def _delete_left(self) -> None:
        for chunk in list(self._log.chunks.values()):
            await self._delete(chunk)

    def _is_old(self, chunk: Chunk) -> bool:
        return time.time() - chunk.created > 3600 * LONGEST_H

    def _too_long(self, walk: SampleWalk) -> bool:
        return bool(self._lengths.reason(walk.messages, sent_schema(walk.request, self._model)))

    async def _keep(self, chunk: Chunk, line: BatchLine, costs: dict[str, float | None], failed: dict[str, CallError]) -> None:
        if line.key in costs and line.key not in failed:  # the provider's second line for a request adds nothing
            return
        answer = refusal_of(line.error, line.body) if line.error else None
        unpaid = None if line.key in costs or (line.error and line.error.perhaps_paid) else 0.0
        if line.error and not answer:
            failed[line.key], costs[line.key] = line.error, unpaid
            return
        entry = dict(chunk.entries[line.key])
        schema = entry.pop(SCHEMA, "")
        try:
            call = Call(BEGUN, (0,), None, json.loads(schema) if schema else None)
            answer = answer or (await self._backend.answers_from(line.body, call))[0]
        except CallError as error:  # it was charged all the same
            failed[line.key], costs[line.key] = error, None
            return
        failed.pop(line.key, None)
        answer = replace(answer, service_tier=BATCH)
        costs[line.key] = unpaid if line.error else cost_usd(self._model, answer)
        entry |= fields_of(answer) | {"key": line.key, "failed": self._ledger.failed.of(line.key)}
        self._ledger.add(ENTRY.validate_python(entry))

    def _count(self, failed: Mapping[str, CallError], *, sent: int = 1) -> None:
        """Note the requests that got no answer; those that may pass later are handed in again, as often as a call is tried."""
        day = today()
        for key, error in failed.items():
            self._attempts[key] += 1
            if sent:
                self._ledger.failed.add(key, FailedRequests(self._host, sent, day))
            if not error.may_pass_later or self._attempts[key] >= self._model.max_attempts:
                self._missing[key] = MissingAnswer(ResponseState.FAILED, str(error), self._attempts[key], self._host, day)

    def _pay(self, chunk: Chunk, costs: Mapping[str, float | None]) -> None:
        for key, usd in costs.items():
            if key in chunk.reserved:
                name, nano = chunk.reserved[key]
                self._budget.settle(Reservation(name, nano, 0), usd)

    @property
    def _host(self) -> str:
        return destination_of(self._model)

    def _say(self, words: str) -> None:
        print(f"{self._model.name}: {words}", file=sys.stderr, flush=True)


def _said(status: BatchStatus) -> str:
    """Return the provider's word for a state; another one is not repeated."""
    return status.state if status.known else "a state that is not known here"
