"""The engine: every answer that is asked for, from the ledger or from the model, and nothing paid for twice."""

from __future__ import annotations

import asyncio
import datetime
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.errors import ProviderError, StorageError
from neuralmedbench.models.budget import Purse, check_paid, cost_usd
from neuralmedbench.models.conversation import Said, load, next_messages
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.keys import KEY_VERSION, call_key
from neuralmedbench.models.ledger import ROOM_BYTES, Entry, Ledger, open_ledger
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.recorded import check_recorded_ledger
from neuralmedbench.models.registry import Opened, open_backend
from neuralmedbench.models.replay import replay_requests
from neuralmedbench.models.retry import GaveUpError, answer_with_retries
from neuralmedbench.models.rows import Missing, response_row
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.vocabulary import Vocabulary


def answer_requests(
    requests: Sequence[Request],
    model: ModelConfig,
    *,
    name: str,
    ledger: Path,
    destinations: Sequence[str],
    max_failed_fraction: float | None,
    root: Path = Path(),
    vocabulary: Vocabulary | None = None,
    replay: bool = False,
    first_repeat: int = 0,
) -> list[Response]:
    """Get every sample of every request answered by one model.

    Parameters
    ----------
    requests : sequence of Request
        What is asked; each `samples` times.
    model : ModelConfig
        The model's yaml.
    name : str
        Its name.
    ledger : Path
        Ledger file of this benchmark and model.
    destinations : sequence of str
        `allowed_destinations` of the benchmark.
    max_failed_fraction : float or None
        A larger share of failed answers is an error, after all answers that came are in the ledger; None: never.
    root : Path
        Folder to which the paths of pictures are relative.
    vocabulary : Vocabulary or None
        For built-in models.
    replay : bool
        Take every answer from the ledger and ask for nothing; see `models.replay`.
    first_repeat : int
        Number of the first sample. Samples of other numbers have keys, and where the model has one seeds, of their own: with
        numbers that were never used everything is asked afresh.

    Returns
    -------
    list of Response
        One a request and repeat, sorted by item, arm, strategy and repeat.

    Raises
    ------
    ConfigError
        If the model may not be asked: no spending cap, or a destination that is not allowed.
    DataError
        If a picture is not the one that the audit covered.
    ProviderError
        If another process writes to the ledger, answers that were recorded and paid for are not here, local weights cannot be
        loaded, or too many calls failed; under `replay` if
        the ledger is absent or lacks an answer.
    StorageError
        If the disk of the ledger is (nearly) full: no more calls are made, those under way are waited for and kept.
    """
    if replay:
        return replay_requests(requests, model, name=name, ledger=ledger, vocabulary=vocabulary)
    destination = check_destination(name, model, destinations)
    check_paid(name, model)
    check_recorded_ledger(name, model, ledger)
    total = sum(request.samples for request in requests)
    print(f"{name}: {total} answers asked for by {len(requests)} requests; destination: {destination}", file=sys.stderr)
    with open_ledger(ledger) as book:
        opened = open_backend(name, model, vocabulary)
        run = _Run(model, name, book, opened, root, first=first_repeat)
        responses = asyncio.run(run.responses(requests))
    _report(name, responses, run, opened)
    failed = sum(response.state is ResponseState.FAILED for response in responses)
    if max_failed_fraction is not None and failed > max_failed_fraction * total:
        worst = Counter(response.error for response in responses if response.error).most_common(1)[0][0]
        message = (
            f"model {name}: {failed} of {total} answers failed (most often {worst}), more than max_failed_fraction"
            f" {max_failed_fraction:g}; the others are kept: run again to ask for the failed ones only"
        )
        raise ProviderError(message)
    return responses


class _Run:
    """One run of one model over the requests of one benchmark."""

    def __init__(self, model: ModelConfig, name: str, book: Ledger, opened: Opened, root: Path, *, first: int = 0) -> None:
        self._model, self._name, self._book, self._opened, self._root, self._first = model, name, book, opened, root, first
        self._purse = Purse(model)
        self._jitter = random.Random(0)
        self._underway: dict[str, asyncio.Task[Entry | Missing]] = {}
        self._disk_says = ""
        self.calls = 0

    async def responses(self, requests: Sequence[Request]) -> list[Response]:
        """Answer everything, `concurrency` calls at a time; a model in this process answers one after the other."""
        self._slots = asyncio.Semaphore(self._model.concurrency if self._model.backend == "litellm" else 1)
        try:
            asked = [(request, self._first + number) for request in requests for number in range(request.samples)]
            rows = await asyncio.gather(*(self._response(request, repeat) for request, repeat in asked))
        finally:
            if self._opened.backend:
                await self._opened.backend.close()
        if self._disk_says:
            message = (
                f"model {self._name}: {self._disk_says}; no more calls were made and what had come before is kept:"
                " free some space and run the same command again"
            )
            raise StorageError(message)
        return sorted(rows, key=lambda row: (row.item_id, row.arm, row.strategy, row.repeat))

    async def _response(self, request: Request, repeat: int) -> Response:
        entries: list[Entry] = []
        said: tuple[Said, ...] = ()
        while (due := next_messages(request, [entry.text for entry in entries], self._model.max_images)) is not None:
            said = due
            outcome = await self._call(request, said, repeat, len(entries))
            if isinstance(outcome, Missing):
                return response_row(request, repeat, entries, said, outcome, model=self._model, name=self._name)
            entries.append(outcome)
        return response_row(request, repeat, entries, said, model=self._model, name=self._name)

    async def _call(self, request: Request, said: tuple[Said, ...], repeat: int, turn: int) -> Entry | Missing:
        key = call_key(self._model, said, repeat, code=self._opened.code)
        if (entry := self._book.get(key)) is not None:
            return entry
        if key not in self._underway:  # two requests that say the same are one call
            self._underway[key] = asyncio.create_task(self._fresh(key, request, said, repeat, turn))
        return await self._underway[key]

    async def _fresh(self, key: str, request: Request, said: tuple[Said, ...], repeat: int, turn: int) -> Entry | Missing:
        backend = self._opened.backend
        if backend is None:
            return Missing(ResponseState.SKIPPED, self._opened.reason)
        async with self._slots:
            if not self._can_keep():
                return Missing(ResponseState.SKIPPED, "no room")
            reserved = self._purse.reserve(said)
            if reserved is None:
                return Missing(ResponseState.OVER_BUDGET, "max_cost_usd")
            # a backend counts the samples of a conversation from 0; their seeds start where this run's repeats do
            seed = None if self._model.seed is None else self._model.seed + self._first
            call = Call(load(said, self._root), repeat - self._first, request.samples if turn == 0 else 1, seed)
            self.calls += 1
            try:
                answer, attempts, seconds = await answer_with_retries(
                    lambda: backend.answer(call),
                    max_attempts=self._model.max_attempts,
                    timeout_s=self._model.timeout_s,
                    jitter=self._jitter,
                )
            except GaveUpError as error:
                self._purse.settle(reserved, None if error.perhaps_paid else 0.0)
                return Missing(ResponseState.FAILED, str(error), error.attempts)
            self._purse.settle(reserved, cost_usd(self._model, answer.prompt_tokens, answer.completion_tokens))
        entry = Entry(
            key=key,
            state=answer.state,
            text=answer.text.encode("utf-8", "replace").decode("utf-8"),  # half a surrogate pair is valid JSON, but no text
            finish_reason=answer.finish_reason,
            served_model=answer.served_model,
            fingerprint=answer.fingerprint,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            latency_s=round(seconds, 4),
            attempts=attempts,
            called_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
            key_version=KEY_VERSION,
            item_id=request.item_id,
            arm=request.arm,
            strategy=request.strategy,
            repeat=repeat,
            turn=turn,
            model=without_places(self._model.id),
            revision=self._model.revision,
            temperature=self._model.temperature,
            top_p=self._model.top_p,
            seed=self._model.seed,
            max_tokens=self._model.max_tokens,
            code=self._opened.code,
        )
        try:
            self._book.add(entry)
        except OSError as error:  # a quota, which is not seen beforehand, or a disk that breaks
            self._disk_says = f"its ledger cannot be written ({error.strerror})"
            return Missing(ResponseState.FAILED, "not kept", attempts)
        return entry

    def _can_keep(self) -> bool:
        """Whether one more answer could be kept; once it could not, nothing is asked any more."""
        if not self._disk_says and not self._book.has_room():
            self._disk_says = f"less than {ROOM_BYTES // 2**20} MiB are free on the disk of its ledger"
        return not self._disk_says


def _report(name: str, responses: list[Response], run: _Run, opened: Opened) -> None:
    states = Counter(response.state for response in responses)
    words = ", ".join(f"{state.value} {states[state]}" for state in ResponseState if states[state]) or "nothing"
    print(f"{name}: {words}; {run.calls} calls made, the rest stood in the ledger", file=sys.stderr)
    if states[ResponseState.SKIPPED]:
        print(f"{name}: {states[ResponseState.SKIPPED]} answers skipped: {opened.reason}; set it and run again", file=sys.stderr)
