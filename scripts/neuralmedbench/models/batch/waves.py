"""Get answers by batch: hand in what the ledger lacks, wait, collect, and go on with what the answers make possible (turns of dialogues)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from neuralmedbench.errors import StorageError
from neuralmedbench.models.batch.client import readable
from neuralmedbench.models.batch.collect import NONE_IN_A_ROW, REFUSING, SCHEMA, BatchCollector
from neuralmedbench.models.batch.log import Chunk, ChunkState
from neuralmedbench.models.budget import Reservation
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.calls import call_of, count_downscaled, today
from neuralmedbench.models.ledger import ROOM_BYTES, LedgerEntry, new_entry
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, CallError, interruptible_sleep
from neuralmedbench.models.samples import MissingAnswer, SampleWalk
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.words import counted

NO_MONEY = Reservation("", 0, 0)
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
                why = f"perhaps handed in with {chunk.id}, which its provider does not have now; `nmb run retry` looks again, `nmb model batches` shows it"
            found |= dict.fromkeys(chunk.entries, MissingAnswer(ResponseState.SKIPPED, why))
        return found

    # --- handing in

    async def _hand_in(self, walks: Sequence[SampleWalk]) -> None:
        self._again = False
        waiting = {key for chunk in self._log.open_chunks() for key in chunk.entries}
        most = min(self._client.most_bytes, int(self._settings.max_mb * 1e6))
        part, size = list[_Line](), 0
        for walk in walks:
            if self._closed or self._blind or self.stopped:
                break
            if walk.resume(self._ledger).complete or walk.key in waiting or walk.key in self._missing:
                continue
            waiting.add(walk.key)
            if self._too_long(walk):
                continue
            if not self._ledger.has_room():
                message = f"model {self._model.name}: less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger; free some space and run the same command again"
                raise StorageError(message)
            line = await self._line(walk)
            if part and (size + len(line.line) >= most or len(part) >= self._most):
                await self._submit(self._affordable(part))
                part, size = [], 0
            part.append(line)
            size += len(line.line) + 1
        await self._submit(self._affordable(part))

    async def _line(self, walk: SampleWalk) -> _Line:
        schema = sent_schema(walk.request, self._model)
        call = call_of(self._run, walk.messages, [walk.number], schema)
        request, turn = walk.due
        entry = new_entry(
            request,
            self._model,
            walk.messages,
            key=walk.key,
            state=ResponseState.OK,
            text="",
            repeat=walk.number,
            turn=turn,
            called_on=today(),
            code=walk.code,
            destination=self._host,
            images_downscaled=count_downscaled(call.messages, self._model.provider_downscale),
            attempts=1,
            requests=1,
        )
        default = LedgerEntry(key=walk.key, state=ResponseState.OK, text="")
        known = {name: value for name, value in vars(entry).items() if value != vars(default)[name]}
        return _Line(
            key=walk.key,
            line=self._client.line(walk.key, *await self._backend.request_of(call)),
            entry=known | ({SCHEMA: schema} if schema else {}),
            reserve=partial(self._budget.reserve, walk.messages, 1, schema),
        )

    def _affordable(self, part: Sequence[_Line]) -> list[_Line]:
        """Reserve the money of a chunk, and leave out what a cap has no room for: all at once, so that a kill finds little reserved in vain."""
        kept = []
        for line in part:
            if (reserved := line.reserve()) is None:
                self._missing[line.key] = MissingAnswer(ResponseState.OVER_BUDGET, self._budget.why)
            else:
                kept.append(replace(line, reserved=reserved))
        return kept

    async def _submit(self, part: Sequence[_Line]) -> None:
        """Hand in one chunk; if it is too large for the provider, in halves."""
        if not part:
            return
        if self.stopped or self._closed or self._blind:
            self._pay_back(part)
            return
        try:
            reserved = {line.key: (line.reserved.id, line.reserved.nano_usd) for line in part if line.reserved.id}
            chunk = self._log.submitting({line.key: line.entry for line in part}, reserved)
        except OSError as error:
            self._pay_back(part)
            message = f"model {self._model.name}: its batch log cannot be written ({error.strerror}), so nothing was handed in; free some space and run the same command again"
            raise StorageError(message) from None
        try:
            with readable():
                batch = await self._client.submit(chunk, [line.line for line in part], lambda file: self._log.uploaded(chunk, file))
        except CallError as error:
            if error.status in REFUSING or not error.sent:
                await self._refused(chunk, part, error)
            else:  # perhaps received: the provider is asked
                self._say(f"{chunk.id}: {error}; whether it was received is asked of the provider")
            return
        self._log.submitted(chunk, batch)
        self._refusals = 0
        self._say(f"{counted(len(part), 'request')} handed in as batch {batch}, {sum(len(line.line) + 1 for line in part) / 1e6:.1f} MB")

    async def _refused(self, chunk: Chunk, part: Sequence[_Line], error: CallError) -> None:
        self._log.end(chunk, ChunkState.REFUSED)
        await self._delete(chunk)
        if error.status == 429 or not error.sent:
            # no batch was made, and the next round may pass; it is not tried for ever
            self._pay_back(part)
            self._refusals += 1
            if self._refusals < self._model.max_attempts:
                self._again = True
                wait_s = min(error.retry_after_s or 0.0, LONGEST_RETRY_AFTER_S) if self._settings.wait_hours else 0.0
                await interruptible_sleep(wait_s, self._stop)
                return
        self._fruitless += 1
        divisible = error.status in TOO_LARGE and self._fruitless < NONE_IN_A_ROW
        if divisible and len(part) > 1:
            middle = math.ceil(len(part) / 2)
            await self._submit(part[:middle])
            await self._submit(part[middle:])
            return
        self._pay_back(part)
        self._closed = "" if divisible else str(error)
        for line in part:
            self._missing[line.key] = MissingAnswer(ResponseState.FAILED, str(error))
        if self._closed:
            self._say(f"{error}; nothing more is handed in")

    def _pay_back(self, part: Sequence[_Line]) -> None:
        for line in part:
            self._budget.settle(line.reserved, 0.0)


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A request on its way into a chunk: its line, what the ledger's line knows before the answer, and its money."""

    key: str
    line: bytes
    entry: dict[str, Any]
    reserve: Callable[[], Reservation | None]
    reserved: Reservation = NO_MONEY
