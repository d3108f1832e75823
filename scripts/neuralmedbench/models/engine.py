"""The engine: every answer that is asked for, from the ledger or from the model, and nothing paid for twice."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import InterruptedRunError, ProviderError, StorageError
from neuralmedbench.models.budget import check_paid
from neuralmedbench.models.call_keys import request_key
from neuralmedbench.models.calls import Caller
from neuralmedbench.models.console import Progress, graceful_interrupt
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.ledger import Ledger, LedgerEntry, check_recorded_ledger, open_ledger
from neuralmedbench.models.picture_budget import too_many_options
from neuralmedbench.models.registry import BackendHandle, open_backend
from neuralmedbench.models.replay import replay_requests
from neuralmedbench.models.run_limits import UNLIMITED, RunLimits
from neuralmedbench.models.samples import MissingAnswer, response_row, stored_answer
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState
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
    control: RunLimits = UNLIMITED,
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
    control : RunLimits
        Caps and rate limits of the run; by default the model's own cap, within this process alone.

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
        loaded, or too many calls failed; under `replay` if the ledger is absent or lacks an answer.
    StorageError
        If the disk of the ledger is (nearly) full: no more calls are made, those under way are waited for and kept.
    InterruptedRunError
        If a person or the system asked the command to end before everything was answered; likewise.
    """
    if replay:
        return replay_requests(requests, model, name=name, ledger=ledger, vocabulary=vocabulary)
    destination = check_destination(name, model, destinations)
    check_paid(name, model)
    check_recorded_ledger(name, model, ledger)
    total = sum(request.samples for request in requests)
    print(f"{name}: {total} answers asked for by {len(requests)} requests; destination: {destination}", file=sys.stderr)
    with open_ledger(ledger) as book:
        if book.unreadable:
            print(f"{name}: {book.unreadable} lines of its ledger cannot be read; what they answered is asked for again", file=sys.stderr)
        opened = open_backend(name, model, vocabulary)
        run = _Run(model, name, book, opened, control=control, destination=destination, root=root, first=first_repeat)
        responses = asyncio.run(run.responses(requests))
    _report(name, responses, run.caller.calls, opened)
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

    def __init__(
        self,
        model: ModelConfig,
        name: str,
        book: Ledger,
        opened: BackendHandle,
        *,
        control: RunLimits,
        destination: str,
        root: Path,
        first: int,
    ) -> None:
        self._model, self._name, self._book, self._opened, self._first = model, name, book, opened, first
        self.caller = Caller(model, opened, book, name=name, control=control, destination=destination, root=root, first=first)
        self._underway: dict[str, asyncio.Task[dict[int, LedgerEntry | MissingAnswer]]] = {}
        self._failed: set[str] = set()

    async def responses(self, requests: Sequence[Request]) -> list[Response]:
        """Answer everything: as many workers as the backend takes calls at once share one list of samples."""
        backend = self._opened.backend
        asked = [(request, self._first + number) for request in requests for number in range(request.samples)]
        if backend and backend.several:  # every conversation is begun once before the second of its samples is looked at
            asked.sort(key=lambda sample: sample[1])
        rows: list[Response] = []
        problems: list[Exception] = []
        samples = iter(asked)

        async def work() -> None:
            for request, repeat in samples:
                try:
                    row = await self._sample(request, repeat)
                    rows.append(row)
                    fresh = row.state in MISSING_STATES or not self._underway.keys().isdisjoint(row.call_keys)
                    progress.count(row.state, row.cost_usd, from_ledger=not fresh)
                except Exception as error:  # calls that are under way are paid for: their answers are waited for
                    problems.append(error)
                    self.caller.stop()
                if self.caller.stopped:
                    return

        flushing = asyncio.create_task(self._book.keep_synced())
        try:
            with Progress(self._name, len(asked)) as progress, graceful_interrupt(self.caller.stop, self._name):
                await asyncio.gather(*(work() for _ in range(min(backend.in_flight if backend else 1, len(asked)))))
        finally:
            flushing.cancel()
            if backend:
                await backend.close()
        if problems:
            raise problems[0]
        if self.caller.disk_says:
            message = (
                f"model {self._name}: {self.caller.disk_says}; no more calls were made and what had come before is kept:"
                " free some space and run the same command again"
            )
            raise StorageError(message)
        if len(rows) < len(asked) or self.caller.cut_short:  # a wish to end that comes after the last answer leaves nothing to do
            message = f"model {self._name}: interrupted; the answers that had come are kept: run the same command again"
            raise InterruptedRunError(message)
        return sorted(rows, key=response_key)

    async def _sample(self, request: Request, repeat: int) -> Response:
        entries: list[LedgerEntry] = []
        messages: tuple[PromptMessage, ...] = ()
        reason = too_many_options(request, self._model.max_images)
        missing = MissingAnswer(ResponseState.SKIPPED, reason) if reason else None
        while not missing and (due := next_messages(request, [entry.text for entry in entries], self._model.max_images)) is not None:
            messages = due
            outcome = await self._call(request, messages, repeat, len(entries))
            if isinstance(outcome, MissingAnswer):
                missing = outcome
            else:
                entries.append(outcome)
        return response_row(request, repeat, entries, messages, missing, model=self._model, name=self._name)

    async def _call(self, request: Request, messages: tuple[PromptMessage, ...], repeat: int, turn: int) -> LedgerEntry | MissingAnswer:
        key = self._key(request, messages, repeat)
        if (entry := stored_answer(self._book, request, self._model, key)) is not None:
            return entry
        if key not in self._underway:  # two requests that say the same are one call
            keys = self._together(request, messages, (repeat, key), turn)
            task = asyncio.create_task(self.caller.ask(request, messages, keys, turn))
            self._underway |= dict.fromkeys(keys.values(), task)
        outcome = (await self._underway[key])[repeat]
        if not isinstance(outcome, MissingAnswer):
            return outcome
        if key in self._failed:  # what was tried stands once, with the first request that said it
            return MissingAnswer(outcome.state, outcome.error)
        self._failed.add(key)
        return outcome

    def _together(self, request: Request, messages: tuple[PromptMessage, ...], sample: tuple[int, str], turn: int) -> dict[int, str]:
        """Give the samples of a conversation that one call asks for, with their keys: those that nobody has or waits for."""
        backend = self._opened.backend
        if turn > 0 or backend is None or not backend.several:
            return dict([sample])
        keys = {number: self._key(request, messages, number) for number in range(self._first, self._first + request.samples)}
        return {number: key for number, key in keys.items() if self._book.get(key) is None and key not in self._underway}

    def _key(self, request: Request, messages: tuple[PromptMessage, ...], repeat: int) -> str:
        return request_key(request, self._model, messages, repeat, code=self._opened.code)


def _report(name: str, responses: list[Response], calls: int, opened: BackendHandle) -> None:
    skipped = sum(response.state is ResponseState.SKIPPED for response in responses)
    print(f"{name}: {calls} calls made, the rest stood in the ledger", file=sys.stderr)
    if opened.reason and skipped:
        print(f"{name}: {skipped} answers skipped: {opened.reason}", file=sys.stderr)
