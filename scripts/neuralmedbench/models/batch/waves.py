"""Get answers by batch: hand in what the ledger lacks, wait, collect, and go on with what the answers make possible (turns of dialogues)."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from neuralmedbench.config.model import BatchConfig
from neuralmedbench.errors import StorageError
from neuralmedbench.models.api.backend import ApiBackend
from neuralmedbench.models.batch.client import BatchLine, CannotListError
from neuralmedbench.models.batch.log import BatchLog, Chunk, ChunkState
from neuralmedbench.models.batch.providers import batch_client
from neuralmedbench.models.budget import Reservation
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.context_length import ContextLength
from neuralmedbench.models.conversation import load_messages
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.models.failed_calls import FailedRequests
from neuralmedbench.models.ledger import ENTRY, ROOM_BYTES, Ledger, LedgerEntry, new_entry
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.prices import BATCH, cost_usd
from neuralmedbench.models.protocol import Call, Message
from neuralmedbench.models.retry import CallError, interruptible_sleep
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.usage import usage_of
from neuralmedbench.records.words import counted

TOO_LARGE = frozenset({400, 413})
"""Statuses by which a provider may refuse a batch because of its size: half of it may pass."""
REFUSING, NO_ENTRY = range(400, 500), frozenset({401, 403})
LONGEST_H = 72.0
"""Hours after which a batch that has not ended never will: providers end theirs after 24."""
NO_RESULT = "NoResult"
"""A request of which an ended batch says nothing."""
BEGUN = (Message("user", ""),)
"""A conversation to read a stored reply with; what was asked does not matter."""


class BatchRun:
    """One model, asked by batch in one run.

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
        self._backend, self._client = ApiBackend(run.model), batch_client(run.model, self._stop)
        self._budget, self._log = run.control.budget(run.model, run.ledger, run.root), BatchLog(run.ledger)
        self._lengths = ContextLength(run.model, run.root)
        self._attempts: Counter[str] = Counter()
        self._missing: dict[str, MissingAnswer] = {}
        self._refusal = ""
        self._most = min(self._client.most_requests, self._settings.max_requests)  # requests of one batch
        self._again = False  # whether requests that were refused for now are handed in again
        self.collected = 0

    def stop(self) -> None:
        """Hand in no more; what was handed in is collected by the next run."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """True if the command was asked to end."""
        return self._stop.is_set()

    async def fill(self, walks: Sequence[SampleWalk]) -> dict[str, MissingAnswer]:
        """Fill the ledger until everything is answered, or until the time to wait is over.

        Parameters
        ----------
        walks : sequence of SampleWalk
            The samples that are not complete.

        Returns
        -------
        dict of str to MissingAnswer
            Why a call has no answer, by its key.
        """
        ends = time.monotonic() + 3600 * self._settings.wait_hours
        try:
            while True:
                await self._settle()
                for chunk in self._log.open_chunks():
                    await self._collect(chunk)
                if not self.stopped and not self._refusal:
                    await self._hand_in(walks)
                if (
                    self.stopped
                    or not (self._again or self._log.open_chunks())
                    or time.monotonic() >= ends
                    or self._refusal
                    or self._only_unsettled()
                ):
                    break
                await interruptible_sleep(self._settings.poll_s, self._stop)
            return self._missing | self._open_ones()
        finally:
            await self._client.close()
            await self._backend.close()

    def _give_up_at(self, error: CallError) -> None:
        """Stop waiting where a wrong key or a missing permission would meet every further look."""
        if error.status in NO_ENTRY:
            self._refusal = str(error)

    def _only_unsettled(self) -> bool:
        return not self._again and all(chunk.state is ChunkState.UNSETTLED for chunk in self._log.open_chunks())

    def _open_ones(self) -> dict[str, MissingAnswer]:
        found: dict[str, MissingAnswer] = {}
        for chunk in self._log.open_chunks():
            name = chunk.batch or chunk.id
            what = f"could not be looked at ({self._refusal})" if self._refusal else "has not ended"
            why = f"handed in with batch {name}, which {what}; the next run collects it"
            if chunk.state is ChunkState.UNSETTLED:
                why = f"perhaps handed in with {chunk.id}, which its provider cannot tell; `nmb model batches` shows it, and you decide"
            found |= dict.fromkeys(chunk.entries, MissingAnswer(ResponseState.SKIPPED, why))
        return found

    # --- what earlier processes left

    async def _settle(self) -> None:
        """Ask the provider for chunks of which it is not known whether it has received them."""
        for chunk in self._log.open_chunks():
            if chunk.state is not ChunkState.SUBMITTING:
                continue
            try:
                batch = await self._client.find(chunk)
            except CannotListError:
                self._end(chunk, ChunkState.UNSETTLED)
                self._say(f"{chunk.id} was perhaps handed in, and {self._host} has no list of batches: its requests are not sent again")
                continue
            except CallError as error:  # not known yet, or not to be reached: asked again after the next wait
                self._give_up_at(error)
                continue
            if batch:
                self._log.submitted(chunk, batch)
            elif time.time() - chunk.created >= self._settings.settle_after_s:
                # a list may lag behind: only a chunk that is old enough was never received
                self._end(chunk, ChunkState.ABSENT)
                with contextlib.suppress(CallError):
                    await self._client.delete(chunk, ())
                self._pay(chunk, dict.fromkeys(chunk.reserved, 0.0))

    # --- handing in

    async def _hand_in(self, walks: Sequence[SampleWalk]) -> None:
        self._again = False
        waiting = {key for chunk in self._log.open_chunks() for key in chunk.entries}
        part = _Part()
        for walk in walks:
            if walk.resume(self._ledger).complete or walk.key in waiting or walk.key in self._missing or self._refusal or self.stopped:
                continue
            waiting.add(walk.key)
            schema = sent_schema(walk.request, self._model)
            if self._lengths.reason(walk.messages, schema):
                continue
            if not self._ledger.has_room():
                message = f"model {self._model.name}: less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger; free some space and run the same command again"
                raise StorageError(message)
            line = self._client.line(walk.key, *await self._backend.request_of(self._call(walk, schema)))
            if part.lines and not self._fits(part, line):
                await self._submit(self._affordable(part))
                part = _Part()
            part.add(walk.key, line, self._entry(walk), partial(self._budget.reserve, walk.messages, 1, schema))
        await self._submit(self._affordable(part))

    def _affordable(self, part: _Part) -> _Part:
        """Reserve the money of a chunk, and leave out what a cap has no room for: all at once, so that a kill finds little reserved in vain."""
        kept = _Part()
        for key, line, entry in zip(part.entries, part.lines, part.entries.values(), strict=True):
            if (reserved := part.reserve[key]()) is None:
                self._missing[key] = MissingAnswer(ResponseState.OVER_BUDGET, self._budget.why)
            else:
                kept.add(key, line, entry, part.reserve[key])
                kept.reserved[key] = reserved
        return kept

    def _fits(self, part: _Part, line: bytes) -> bool:
        most = min(self._client.most_bytes, int(self._settings.max_mb * 1e6))
        return part.bytes + len(line) < most and len(part.lines) < self._most

    async def _submit(self, part: _Part) -> None:
        """Hand in one chunk; if it is too large for the provider, in halves."""
        if not part.lines:
            return
        if self.stopped or self._refusal:
            self._pay_back(part)
            return
        chunk = self._log.submitting(part.entries, {key: (one.id, one.nano_usd) for key, one in part.reserved.items() if one.id})
        try:
            batch = await self._client.submit(chunk, part.lines, lambda file: self._log.uploaded(chunk, file))
        except CallError as error:
            if error.status in REFUSING or not error.sent:
                await self._refused(chunk, part, error)
            else:  # perhaps received: the provider is asked
                self._say(f"{chunk.id}: {error}; whether it was received is asked of the provider")
            return
        self._log.submitted(chunk, batch)
        self._say(f"{counted(len(part.lines), 'request')} handed in as batch {batch}, {part.bytes / 1e6:.1f} MB")

    async def _refused(self, chunk: Chunk, part: _Part, error: CallError) -> None:
        self._end(chunk, ChunkState.REFUSED)
        if files := tuple(chunk.files):
            with contextlib.suppress(CallError):
                await self._client.delete(chunk, files)
        if error.status in TOO_LARGE and len(part.lines) > 1:
            for half in part.halves():
                await self._submit(half)
            return
        self._pay_back(part)
        if error.status == 429 or not error.sent:
            # no batch was made, and the next round may pass; it is not tried for ever
            self._attempts["refused"] += 1
            await interruptible_sleep(max(error.retry_after_s or 0.0, self._settings.poll_s), self._stop)
            if self._attempts["refused"] < self._model.max_attempts:
                self._again = True
                return
        self._refusal = str(error) if len(part.lines) > 1 or error.status in {401, 402, 403, 404, 429} or not error.sent else ""
        for key in part.entries:
            self._missing[key] = MissingAnswer(ResponseState.FAILED, str(error))
        if self._refusal:
            self._say(f"{error}; nothing more is handed in")

    # --- collecting

    async def _collect(self, chunk: Chunk) -> None:
        if chunk.state is ChunkState.SUBMITTING or not chunk.batch:
            return
        try:
            status = await self._client.status(chunk)
            if not status.ended:
                if chunk.state is not ChunkState.UNSETTLED and time.time() - chunk.created > 3600 * LONGEST_H:
                    self._end(chunk, ChunkState.UNSETTLED)
                    self._say(f"batch {chunk.batch} says {status.state!r} after {LONGEST_H:.0f} hours: its requests are not sent again")
                return
            lines = [line async for line in self._client.results(chunk, status)]
        except CallError as error:  # nothing is lost: it is asked for again after the next wait
            self._say(f"batch {chunk.batch}: {error}; it is asked for again")
            self._give_up_at(error)
            return
        is_void = status.state.lower() == "failed" and not lines
        costs: dict[str, float | None] = {}
        failed: dict[str, CallError] = {}
        for line in lines:
            if line.key in chunk.entries:
                await self._keep(chunk, line, costs, failed)
        for key in chunk.entries.keys() - costs.keys():
            # of a batch that failed as a whole nothing was answered; of any other it may have been, and been charged
            failed[key], costs[key] = CallError(NO_RESULT), 0.0 if is_void else None
        self._ledger.sync()
        self._pay(chunk, costs)
        self._end(chunk, ChunkState.COLLECTED, answered=len(chunk.entries) - len(failed), said=status.state[:40])
        if is_void and len(failed) > 1:  # by its size, or by one of its requests: smaller ones show which
            self._most = len(failed) // 2
        else:
            self._count(failed)
        self._say(f"batch {chunk.batch} ({status.state}): {len(chunk.entries) - len(failed)} of {len(chunk.entries)} answered")
        try:
            await self._client.delete(chunk, status.files)
            self._log.deleted(chunk)
        except CallError as error:
            self._say(f"batch {chunk.batch}: its files could not be deleted ({error}); delete them at the provider")

    async def _keep(self, chunk: Chunk, line: BatchLine, costs: dict[str, float | None], failed: dict[str, CallError]) -> None:
        if line.key in costs and line.key not in failed:  # the provider's second line for a request adds nothing
            return
        if line.error is not None:
            failed[line.key], costs[line.key] = line.error, 0.0
            return
        try:
            answer = (await self._backend.answers_from(line.body, Call(BEGUN, (0,), None)))[0]
        except CallError as error:  # it was charged all the same
            failed[line.key], costs[line.key] = error, None
            return
        failed.pop(line.key, None)
        usage = replace(usage_of(answer), service_tier=BATCH)
        costs[line.key] = cost_usd(self._model, usage)
        known = {"state", "finish_reason", "served_model", "fingerprint"}
        fields = {name: getattr(answer, name) for name in known} | vars(usage)
        text = answer.text.encode("utf-8", "replace").decode("utf-8")
        logprobs = [round(value, 4) for value in answer.token_logprobs]
        failures = [list(one) for one in self._ledger.failed.of(line.key)]
        entry = chunk.entries[line.key] | fields | {"key": line.key, "text": text, "token_logprobs": logprobs, "failed": failures}
        self._ledger.add(ENTRY.validate_python(entry))
        self.collected += 1

    def _count(self, failed: Mapping[str, CallError]) -> None:
        """Note the requests that got no answer; those that may pass later are handed in again, as often as a call is tried."""
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        for key, error in failed.items():
            self._attempts[key] += 1
            self._ledger.failed.add(key, FailedRequests(self._host, 1, day))
            if not error.may_pass_later or self._attempts[key] >= self._model.max_attempts:
                self._missing[key] = MissingAnswer(ResponseState.FAILED, str(error), self._attempts[key], self._host, day)

    # --- money, and the rest

    def _pay(self, chunk: Chunk, costs: Mapping[str, float | None]) -> None:
        for key, usd in costs.items():
            if key in chunk.reserved:
                name, nano = chunk.reserved[key]
                self._budget.settle(Reservation(name, nano, 0), usd)

    def _pay_back(self, part: _Part) -> None:
        for reserved in part.reserved.values():
            self._budget.settle(reserved, 0.0)

    def _end(self, chunk: Chunk, state: ChunkState, **words: Any) -> None:
        self._log.end(chunk, state, **words)

    def _call(self, walk: SampleWalk, schema: str) -> Call:
        seed = None if self._model.seed is None else self._model.seed + self._run.first_repeat
        number = walk.number - self._run.first_repeat
        return Call(load_messages(walk.messages, self._run.root), (number,), seed, json.loads(schema) if schema else None)

    def _entry(self, walk: SampleWalk) -> dict[str, Any]:
        """Return the fields of a line of the ledger that are known before the answer."""
        request, turn = walk.due
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        entry = new_entry(
            request,
            self._model,
            walk.messages,
            key=walk.key,
            state=ResponseState.OK,
            text="",
            repeat=walk.number,
            turn=turn,
            called_on=day,
            code=walk.code,
            destination=self._host,
            attempts=1,
            requests=1,
        )
        default = LedgerEntry(key=walk.key, state=ResponseState.OK, text="")
        return {name: value for name, value in vars(entry).items() if value != vars(default)[name]}

    @property
    def _host(self) -> str:
        return destination_of(self._model)

    def _say(self, words: str) -> None:
        print(f"{self._model.name}: {words}", file=sys.stderr, flush=True)


class _Part:
    """Requests on their way into one chunk."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.entries: dict[str, dict[str, Any]] = {}
        self.reserve: dict[str, Callable[[], Reservation | None]] = {}
        self.reserved: dict[str, Reservation] = {}
        self.bytes = 0

    def add(self, key: str, line: bytes, entry: dict[str, Any], reserve: Callable[[], Reservation | None]) -> None:
        self.lines.append(line)
        self.entries[key], self.reserve[key] = entry, reserve
        self.bytes += len(line) + 1

    def halves(self) -> Iterable[_Part]:
        keys, middle = list(self.entries), math.ceil(len(self.lines) / 2)
        for numbers in (range(middle), range(middle, len(keys))):
            half = _Part()
            for number in numbers:
                key = keys[number]
                half.add(key, self.lines[number], self.entries[key], self.reserve[key])
                half.reserved[key] = self.reserved[key]
            yield half
