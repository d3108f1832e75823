"""The engine: every answer that is asked for, from the ledger or from the model, and nothing paid for twice."""

from __future__ import annotations

import asyncio
import datetime
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.models import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.models.budget import Purse, check_paid, cost_usd
from neuralmedbench.models.conversation import Said, conversation, load, within_budget
from neuralmedbench.models.destinations import check_destination
from neuralmedbench.models.keys import KEY_VERSION, call_key
from neuralmedbench.models.ledger import Entry, Ledger, open_ledger
from neuralmedbench.models.protocol import Call
from neuralmedbench.models.registry import Opened, open_backend
from neuralmedbench.models.retry import GaveUpError, answer_with_retries
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
        If another process writes to the ledger, local weights cannot be loaded, or too many calls failed.
    """
    destination = check_destination(name, model, destinations)
    check_paid(name, model)
    total = sum(request.samples for request in requests)
    print(f"{name}: {total} answers asked for by {len(requests)} requests; destination: {destination}", file=sys.stderr)
    with open_ledger(ledger) as book:
        opened = open_backend(name, model, vocabulary)
        run = _Run(model, name, book, opened, root)
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


@dataclass(frozen=True)
class _Missing:
    """Why a call has no answer."""

    state: ResponseState
    error: str
    attempts: int = 0


class _Run:
    """One run of one model over the requests of one benchmark."""

    def __init__(self, model: ModelConfig, name: str, book: Ledger, opened: Opened, root: Path) -> None:
        self._model, self._name, self._book, self._opened, self._root = model, name, book, opened, root
        self._purse = Purse(model)
        self._jitter = random.Random(0)
        self._underway: dict[str, asyncio.Task[Entry | _Missing]] = {}
        self.calls = 0

    async def responses(self, requests: Sequence[Request]) -> list[Response]:
        """Answer everything, `concurrency` calls at a time; a model in this process answers one after the other."""
        self._slots = asyncio.Semaphore(self._model.concurrency if self._model.backend == "litellm" else 1)
        try:
            rows = await asyncio.gather(*(self._response(request, repeat) for request in requests for repeat in range(request.samples)))
        finally:
            if self._opened.backend:
                await self._opened.backend.close()
        return sorted(rows, key=lambda row: (row.item_id, row.arm, row.strategy, row.repeat))

    async def _response(self, request: Request, repeat: int) -> Response:
        turns = within_budget(request.turns, self._model.max_images)
        entries: list[Entry] = []
        for turn in range(len(turns)):
            said = conversation(request, turns, [entry.text for entry in entries])
            outcome = await self._call(request, said, repeat, turn)
            if isinstance(outcome, _Missing):
                return self._row(request, repeat, entries, said, outcome)
            entries.append(outcome)
        return self._row(request, repeat, entries, said, None)

    async def _call(self, request: Request, said: tuple[Said, ...], repeat: int, turn: int) -> Entry | _Missing:
        key = call_key(self._model, said, repeat, code=self._opened.code)
        if (entry := self._book.get(key)) is not None:
            return entry
        if key not in self._underway:  # two requests that say the same are one call
            self._underway[key] = asyncio.create_task(self._fresh(key, request, said, repeat, turn))
        return await self._underway[key]

    async def _fresh(self, key: str, request: Request, said: tuple[Said, ...], repeat: int, turn: int) -> Entry | _Missing:
        backend = self._opened.backend
        if backend is None:
            return _Missing(ResponseState.SKIPPED, self._opened.reason)
        async with self._slots:
            reserved = self._purse.reserve(said)
            if reserved is None:
                return _Missing(ResponseState.OVER_BUDGET, "max_cost_usd")
            call = Call(load(said, self._root), repeat, request.samples if turn == 0 else 1, self._model.seed)
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
                return _Missing(ResponseState.FAILED, str(error), error.attempts)
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
        )
        self._book.add(entry)
        return entry

    def _row(self, request: Request, repeat: int, entries: list[Entry], said: tuple[Said, ...], missing: _Missing | None) -> Response:
        last = entries[-1] if entries else None
        prompt, completion = _total([entry.prompt_tokens for entry in entries]), _total([entry.completion_tokens for entry in entries])
        latencies = [entry.latency_s for entry in entries if entry.latency_s is not None]
        return Response(
            item_id=request.item_id,
            case_id=request.case_id,
            patient_id=request.patient_id,
            benchmark=request.benchmark,
            arm=request.arm,
            strategy=request.strategy,
            model=self._name,
            revision=self._model.revision,
            repeat=repeat,
            request_id=request.request_id,
            runner=request.runner,
            state=missing.state if missing else ResponseState(entries[-1].state),
            text=last.text if last and not missing else "",
            turns=tuple(entry.text for entry in entries),
            call_keys=tuple(entry.key for entry in entries),
            images_sent=sum(len(entry.images) for entry in said) if entries else 0,
            finish_reason=last.finish_reason if last else "",
            served_model=last.served_model if last else "",
            fingerprint=last.fingerprint if last else "",
            prompt_tokens=prompt,
            completion_tokens=completion,
            latency_s=round(sum(latencies), 4) if latencies else None,
            cost_usd=cost_usd(self._model, prompt, completion),
            attempts=sum(entry.attempts for entry in entries) + (missing.attempts if missing else 0),
            error=missing.error if missing else "",
            called_on=last.called_on if last else "",
        )


def _total(tokens: list[int | None]) -> int | None:
    known = [count for count in tokens if count is not None]
    return sum(known) if known and len(known) == len(tokens) else None


def _report(name: str, responses: list[Response], run: _Run, opened: Opened) -> None:
    states = Counter(response.state for response in responses)
    words = ", ".join(f"{state.value} {states[state]}" for state in ResponseState if states[state]) or "nothing"
    print(f"{name}: {words}; {run.calls} calls made, the rest stood in the ledger", file=sys.stderr)
    if states[ResponseState.SKIPPED]:
        print(f"{name}: {states[ResponseState.SKIPPED]} answers skipped: {opened.reason}; set it and run again", file=sys.stderr)
