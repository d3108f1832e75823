"""Get answers by batch: hand in what the ledger lacks, wait, collect, and go on with what the answers make possible (turns of dialogues)."""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from neuralmedbench.errors import StorageError
from neuralmedbench.models.batch.client import readable
from neuralmedbench.models.batch.collect import NONE_IN_A_ROW, REFUSING, SCHEMA, BatchCollector
from neuralmedbench.models.batch.log import Chunk, ChunkState
from neuralmedbench.models.budget import Reservation
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.conversation import load_messages
from neuralmedbench.models.ledger import ROOM_BYTES, LedgerEntry, new_entry
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, CallError, interruptible_sleep
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.words import counted

TOO_LARGE = frozenset({400, 413})
"""Statuses by which a provider may refuse a batch because of its size: half of it may pass."""


class BatchRun(BatchCollector):
    """One model, asked by batch in one run.

    Parameters
    ----------
    run : ModelRun
        The model, its limits and its ledger.
    ledger : Ledger
        The open ledger.
    """

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
            await self._delete_left()
            while True:
                await self._settle()
                for chunk in self._log.open_chunks():
                    await self._collect(chunk)
                await self._hand_in(walks)
                done = not (self._again or self._log.open_chunks()) or self._only_unsettled()
                if done or self.stopped or self._blind or time.monotonic() >= ends:
                    break
                await interruptible_sleep(self._settings.poll_s, self._stop)
            keys = [walk.key for walk in walks if not walk.resume(self._ledger).complete and not self._too_long(walk)]
            why = f"not handed in: {self._closed or 'the provider took no more for now; the next run hands it in'}"
            state = ResponseState.FAILED if self._closed else ResponseState.SKIPPED
            return dict.fromkeys(keys, MissingAnswer(state, why)) | self._missing | self._open_ones()
        finally:
            await self._client.close()
            await self._backend.close()

    def _only_unsettled(self) -> bool:
        return not self._again and all(chunk.state is ChunkState.UNSETTLED for chunk in self._log.open_chunks())

    def _open_ones(self) -> dict[str, MissingAnswer]:
        found: dict[str, MissingAnswer] = {}
        for chunk in self._log.open_chunks():
            name = chunk.batch or chunk.id
            what = f"could not be looked at ({self._blind})" if self._blind else "has not ended"
            why = f"handed in with batch {name}, which {what}; the next run collects it"
            if chunk.state is ChunkState.UNSETTLED:
                why = f"perhaps handed in with {chunk.id}, which its provider cannot tell; `nmb model batches` shows it, and you decide"
            found |= dict.fromkeys(chunk.entries, MissingAnswer(ResponseState.SKIPPED, why))
        return found

    # --- handing in

    async def _hand_in(self, walks: Sequence[SampleWalk]) -> None:
        self._again = False
        waiting = {key for chunk in self._log.open_chunks() for key in chunk.entries}
        part = _Part()
        for walk in walks:
            if self._closed or self._blind or self.stopped:
                break
            if walk.resume(self._ledger).complete or walk.key in waiting or walk.key in self._missing:
                continue
            waiting.add(walk.key)
            schema = sent_schema(walk.request, self._model)
            if self._too_long(walk):
                continue
            if not self._ledger.has_room():
                message = f"model {self._model.name}: less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger; free some space and run the same command again"
                raise StorageError(message)
            line = self._client.line(walk.key, *await self._backend.request_of(self._call(walk, schema)))
            if part.lines and not self._fits(part, line):
                await self._submit(self._affordable(part))
                part = _Part()
            part.add(
                walk.key,
                line,
                self._entry(walk) | ({SCHEMA: schema} if schema else {}),
                partial(self._budget.reserve, walk.messages, 1, schema),
            )
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
        if self.stopped or self._closed or self._blind:
            self._pay_back(part)
            return
        try:
            chunk = self._log.submitting(part.entries, {key: (one.id, one.nano_usd) for key, one in part.reserved.items() if one.id})
        except OSError as error:
            self._pay_back(part)
            message = f"model {self._model.name}: its batch log cannot be written ({error.strerror}), so nothing was handed in; free some space and run the same command again"
            raise StorageError(message) from None
        try:
            with readable():
                batch = await self._client.submit(chunk, part.lines, lambda file: self._log.uploaded(chunk, file))
        except CallError as error:
            if error.status in REFUSING or not error.sent:
                await self._refused(chunk, part, error)
            else:  # perhaps received: the provider is asked
                self._say(f"{chunk.id}: {error}; whether it was received is asked of the provider")
            return
        self._log.submitted(chunk, batch)
        self._attempts["refused"] = 0
        self._say(f"{counted(len(part.lines), 'request')} handed in as batch {batch}, {part.bytes / 1e6:.1f} MB")

    async def _refused(self, chunk: Chunk, part: _Part, error: CallError) -> None:
        self._end(chunk, ChunkState.REFUSED)
        await self._delete(chunk)
        if error.status == 429 or not error.sent:
            # no batch was made, and the next round may pass; it is not tried for ever
            self._pay_back(part)
            self._attempts["refused"] += 1
            if self._attempts["refused"] < self._model.max_attempts:
                self._again = True
                wait_s = min(error.retry_after_s or 0.0, LONGEST_RETRY_AFTER_S) if self._settings.wait_hours else 0.0
                await interruptible_sleep(wait_s, self._stop)
                return
        self._fruitless += 1
        divisible = error.status in TOO_LARGE and self._fruitless < NONE_IN_A_ROW
        if divisible and len(part.lines) > 1:
            for half in part.halves():
                await self._submit(half)
            return
        self._pay_back(part)
        self._closed = "" if divisible else str(error)
        for key in part.entries:
            self._missing[key] = MissingAnswer(ResponseState.FAILED, str(error))
        if self._closed:
            self._say(f"{error}; nothing more is handed in")

    # --- money, and the rest

    def _pay_back(self, part: _Part) -> None:
        for reserved in part.reserved.values():
            self._budget.settle(reserved, 0.0)

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
