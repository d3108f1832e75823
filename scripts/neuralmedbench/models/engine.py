"""The engine: get every requested answer from the ledger or from the model, without paying twice for an answer."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError, InterruptedRunError, ProviderError, StorageError
from neuralmedbench.models.batch.log import open_requests
from neuralmedbench.models.budget import check_paid
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.calls import Caller
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.console import Progress, UnreadWarning, graceful_interrupt, print_to_person
from neuralmedbench.models.context_length import ContextLength, check_lengths
from neuralmedbench.models.destinations import address_of, check_destination
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.ledger import Ledger, LedgerEntry, check_recorded_ledger, open_ledger
from neuralmedbench.models.model_run import ModelRun, place_of
from neuralmedbench.models.registry import BackendHandle, code_of, open_backend, unavailable_reason
from neuralmedbench.models.replay import replay_requests
from neuralmedbench.models.requests_of_model import too_many_pictures
from neuralmedbench.models.samples import MissingAnswer, SampleWalk, has_informant, no_earlier_answer, response_row, with_cut_thoughts
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState, is_by_another_model
from neuralmedbench.records.scores import response_key
from neuralmedbench.records.words import counted

MOST_NAMES = 3
"""Other models that answered and that are named while a run asks."""


def answer_requests(requests: Sequence[Request], run: ModelRun) -> list[Response]:
    """Get every sample of every request answered by one model.

    The backend is opened only if the ledger lacks an answer: importing litellm takes 3 to 4 s of CPU, loading weights longer.

    Parameters
    ----------
    requests : sequence of Request
        The requests; each is asked `samples` times.
    run : ModelRun
        The model, its limits and its ledger.

    Returns
    -------
    list of Response
        One per request and repeat, sorted by item, arm, strategy and repeat.

    Raises
    ------
    ConfigError
        If the model may not be asked: no spending cap, a destination that is not allowed, or a parameter that it does not take; or if more
        than `max_failed_fraction` of the answers would be to prompts that are too long for it.
    DataError
        If a picture is not the one that the audit covered.
    ProviderError
        If another process writes to the ledger, the ledger is shorter than the recorded one (its answers were paid for), local weights
        cannot be loaded, or too many calls failed; under `replay` if the ledger is absent or lacks an answer.
    StorageError
        If the disk of the ledger is (nearly) full: no more calls are made; calls in flight are finished and their answers kept.
    InterruptedRunError
        If the command was asked to end (Ctrl-C, a signal) before everything was answered; calls in flight as above.
    """
    model, name = run.model, run.model.name
    if run.replay:
        return replay_requests(requests, model, run.ledger, run.vocabulary, views=run.views, informant=run.informant)
    # refusals first: nothing below may run for a model that must not be asked
    destination = check_destination(model, run.destinations)
    check_paid(model)
    if any(has_informant(request, model) for request in requests):
        _check_informant(run)
    check_recorded_ledger(model, run.ledger)
    code = code_of(model, run.vocabulary)
    total = sum(request.samples for request in requests)
    print(f"{name}: {total} answers needed for {len(requests)} requests; destination: {destination}", file=sys.stderr)
    with open_ledger(run.ledger) as ledger:
        if ledger.unreadable:
            print_to_person(
                f"{name}: {ledger.unreadable} lines of its ledger cannot be read; answers that only they hold are asked for again"
            )
        walks = [
            SampleWalk(request, model, run.first_repeat + number, code=code, views=run.views, informant=run.informant).resume(ledger)
            for request in requests
            for number in range(request.samples)
        ]
        kept = sum(walk.complete for walk in walks)
        due = [walk for walk in walks if not walk.complete and not too_many_pictures(walk.request, model.max_images)]
        must_ask = check_lengths(due, run, total=total) < len(due)
        missing: dict[str, MissingAnswer] = {}
        waiting = open_requests(run.ledger)
        if model.batch and (must_ask or waiting) and not unavailable_reason(model):
            missing = _fill_by_batch(due, run, ledger)
            must_ask = False
        elif waiting:  # what may have been paid for is not asked for again in another way
            why = "handed in with batch {}: put `batch` back into its yaml, and the next run collects it"
            missing = {key: MissingAnswer(ResponseState.SKIPPED, why.format(batch)) for key, batch in waiting.items()}
        handle = open_backend(model, run.vocabulary) if must_ask else BackendHandle(None)
        informed = handle.backend is not None and run.informant is not None and any(walk.informant for walk in due)
        informant = open_backend(run.informant, run.vocabulary) if informed and run.informant else BackendHandle(None)
        most_failed = math.inf if run.max_failed_fraction is None else run.max_failed_fraction * total
        scheduler = _Scheduler(run, handle, ledger, most_failed, informant, missing=missing)
        responses = asyncio.run(scheduler.responses(walks))
    _report(name, responses, kept, scheduler.caller, handle)
    if run.informant and scheduler.informant.calls and scheduler.informant is not scheduler.caller:
        print(f"{name}: {counted(scheduler.informant.calls, 'call')} made to its informant {run.informant.name}", file=sys.stderr)
    # whose answer came is no matter of calls that failed: the run goes on, and the page says so
    failed = sum(row.state is ResponseState.FAILED and not is_by_another_model(row.error) for row in responses)
    if run.max_failed_fraction is not None and failed > run.max_failed_fraction * total:
        worst = Counter(row.error for row in responses if row.error and not is_by_another_model(row.error)).most_common(1)[0][0]
        if scheduler.caller.never_reached:
            raise ProviderError(_never_reached(model, worst, failed))
        step = f"; {step}" if (step := next_step(worst)) else ""
        kept = any(response.state not in MISSING_STATES for response in responses)
        again = "the others are kept: run again to ask for the failed ones only" if kept else "run the same command again"
        message = (
            f"model {name}: {failed} of {total} answers failed (most often {worst}), more than max_failed_fraction"
            f" {run.max_failed_fraction:g}{step}; {again}"
        )
        raise ProviderError(message)
    return responses


def _fill_by_batch(due: Sequence[SampleWalk], run: ModelRun, ledger: Ledger) -> dict[str, MissingAnswer]:
    """Ask by the provider's batch interface, and say why an answer is still missing, by the key of its call."""
    from neuralmedbench.models.batch.waves import BatchRun

    if any(walk.informant for walk in due):
        message = (
            f"model {run.model.name}: `batch` cannot be used where a language model tells the facts (`informant`): it answers in between"
        )
        raise ConfigError(message)

    async def filling() -> tuple[dict[str, MissingAnswer], bool]:
        batches = BatchRun(run, ledger)
        with graceful_interrupt(batches.stop, run.model.name):
            return await batches.fill(due), batches.stopped

    missing, stopped = asyncio.run(filling())
    if waiting := sum(one.state is ResponseState.SKIPPED for one in missing.values()):
        print_to_person(
            f"{run.model.name}: {counted(waiting, 'request')} handed in and not collected; `nmb run retry` collects what has ended"
        )
    if stopped:
        message = (
            f"model {run.model.name}: interrupted; what was handed in is collected by the same command, and the answers so far are kept"
        )
        raise InterruptedRunError(message)
    return missing


def _check_informant(run: ModelRun) -> None:
    """Say who tells the facts, and refuse a model that may not be sent them or may cost without a limit, as any other."""
    if run.informant is None:
        message = f"model {run.model.name}: a language model tells the facts of these requests, and none is given; run prompts again"
        raise ConfigError(message)
    if run.model.server and run.informant.server:
        message = (
            f"model {run.model.name}: it and {run.informant.name}, which tells the facts, would each need a server of this job at the same time;"
            " start one of the two by hand (backend: litellm with api_base)"
        )
        raise ConfigError(message)
    destination = check_destination(run.informant, run.destinations)
    check_paid(run.informant)
    print(f"{run.model.name}: {run.informant.name} tells the facts that it asks for; destination: {destination}", file=sys.stderr)


def _never_reached(model: ModelConfig, error: str, failed: int) -> str:
    """Say what is wrong if nothing was ever reached at the address of a model."""
    address = urlsplit(address_of(model))
    step = "start the server, or correct `api_base` in its yaml" if model.api_base else "see whether this machine has a connection to it"
    return (
        f"model {model.name}: nothing answers at {address.scheme}://{address.netloc} ({error}); {step}, and run the same command again:"
        f" nothing was sent, and all {failed} answers are still asked for"
    )


class _Scheduler:
    """Distributes the samples of one run over as many workers as the backend takes calls at once."""

    def __init__(
        self,
        run: ModelRun,
        handle: BackendHandle,
        ledger: Ledger,
        most_failed: float,
        informant: BackendHandle,
        *,
        missing: dict[str, MissingAnswer],
    ) -> None:
        self._missing = missing
        self._model, self._ledger, self._handle, self._first = run.model, ledger, handle, run.first_repeat
        self._place = place_of(run.ledger)
        self.caller = Caller(run, handle, ledger, most_failed)
        self._informant = informant
        # its samples count from 0 in every run: equal questions of all samples share one call
        self.informant = Caller(replace(run, model=run.informant, first_repeat=0), informant, ledger) if run.informant else self.caller
        self._lengths = {False: ContextLength(run.model, run.root), True: ContextLength(run.informant or run.model, run.root)}
        self._informing = asyncio.Semaphore(informant.backend.in_flight if informant.backend else 1)
        self._warning = UnreadWarning(run.model.name, run.why_unread if handle.backend else None)
        self._calls: dict[str, asyncio.Task[dict[int, LedgerEntry | MissingAnswer]]] = {}  # every call made in this run, by key
        self._failed: set[str] = set()
        self._said: set[str] = set()  # other models that answered
        self._counted: set[str] = set()  # calls whose cost was shown

    async def responses(self, walks: Sequence[SampleWalk]) -> list[Response]:
        """Complete all samples."""
        backend = self._handle.backend
        # a cap that is too small buys the answers that are ranked first, not controls that are cheaper
        walks = sorted(walks, key=lambda walk: (walk.request.arm != Arm.FULL, walk.request.strategy != Strategy.DIRECT))
        if backend and backend.several:  # one call answers several samples: start every conversation before any second sample
            walks = sorted(walks, key=lambda walk: walk.repeat)
        rows: list[Response] = []
        problems: list[Exception] = []
        samples = iter(walks)  # shared by all workers: each takes the next sample

        async def work() -> None:
            for walk in samples:
                try:
                    row = await self._sample(walk)
                    rows.append(row)
                    fresh = (row.state in MISSING_STATES and not is_by_another_model(row.error)) or not self._calls.keys().isdisjoint(
                        row.call_keys
                    )
                    progress.count(row.state, self._new_cost(row), from_ledger=not fresh, reason=row.error)
                    self._warning.count(row, len(walks) - len(rows))
                except Exception as error:  # calls in flight are paid for: finish them before raising
                    problems.append(error)
                    self._stop()
                if self.caller.stopped:
                    return

        flushing = asyncio.create_task(self._ledger.keep_synced())
        shown = Progress(self._model.name, len(walks), place=self._place, retries=self.caller.retries, spent=self.caller.spent_of_cap)
        reporting = asyncio.create_task(shown.keep_reported())
        try:
            with shown as progress, graceful_interrupt(self._stop, self._model.name):
                await asyncio.gather(*(work() for _ in range(min(backend.in_flight if backend else 1, len(walks)))))
        finally:
            flushing.cancel()
            reporting.cancel()
            for opened in filter(None, (backend, self._informant.backend)):
                await opened.close()
        if problems:
            raise problems[0]
        if storage_error := self.caller.storage_error or self.informant.storage_error:
            message = (
                f"model {self._model.name}: {storage_error}; no more calls were made and the answers so far are kept:"
                " free some space and run the same command again"
            )
            raise StorageError(message)
        if (
            len(rows) < len(walks) or self.caller.cut_short or self.informant.cut_short
        ):  # an interrupt after the last answer leaves nothing to do
            message = f"model {self._model.name}: interrupted; the answers so far are kept: run the same command again"
            raise InterruptedRunError(message)
        return sorted(with_cut_thoughts(rows, walks), key=response_key)

    def _stop(self) -> None:
        self.caller.stop()
        self.informant.stop()

    def _new_cost(self, row: Response) -> float | None:
        """Return the cost of the calls of an answer that were made in this run and not counted with another answer."""
        new = [call for call in (*row.calls, *row.informant_calls) if call.key in self._calls and call.key not in self._counted]
        self._counted.update(call.key for call in new)
        costs = [call.cost_usd for call in new if call.cost_usd is not None]
        return sum(costs) if costs else None

    async def _sample(self, walk: SampleWalk) -> Response:
        reason = too_many_pictures(walk.request, self._model.max_images)
        missing = MissingAnswer(ResponseState.SKIPPED, reason) if reason else None
        if not missing and walk.informant and self._informant.reason and not walk.resume(self._ledger).complete:
            # without it nobody would tell what is asked for: nothing is paid for
            missing = MissingAnswer(ResponseState.SKIPPED, f"{INFORMANT} {walk.informant.name}: {self._informant.reason}")
        while not missing and not walk.resume(self._ledger).complete:
            if reason := self._lengths[walk.asks_informant].reason(walk.messages, sent_schema(walk.request, walk.asked_model)):
                missing = MissingAnswer(ResponseState.SKIPPED, reason)
                break
            outcome = self._missing.get(walk.key) or await self._call(walk)
            if isinstance(outcome, MissingAnswer) and walk.asks_informant:
                missing = replace(outcome, error=f"{INFORMANT}: {outcome.error}")
            elif isinstance(outcome, MissingAnswer):
                # without the earlier answer there is nothing to show: that call counts with the arm that asks it
                earlier = walk.due[0] is not walk.request
                missing = no_earlier_answer(outcome.error or outcome.state) if earlier else outcome
            else:
                walk.add(outcome)
                self._warn_of_another(walk)
        self._warn_of_another(walk)
        return response_row(walk, missing, self._ledger.failed.of(walk.key) if missing and walk.key else ())

    def _warn_of_another(self, walk: SampleWalk) -> None:
        """Say once that another model answers, while the rest can still be saved."""
        why = walk.unusable.error if walk.foreign and walk.unusable else ""
        if why and why not in self._said and len(self._said) < MOST_NAMES:
            print_to_person(f"{self._model.name}: WARNING: {why}; {next_step(why)}. Ctrl-C ends the run and keeps what has come")
        self._said.update([why] if why else [])

    async def _call(self, walk: SampleWalk) -> LedgerEntry | MissingAnswer:
        key = walk.key
        # no await between this look-up and the entry below, so no second worker starts the same call
        if key not in self._calls:  # identical requests share one call
            keys = self._together(walk)
            task = asyncio.create_task(self._inform(walk, keys) if walk.asks_informant else self.caller.ask(walk, keys))
            self._calls |= dict.fromkeys(keys.values(), task)
        outcome = (await self._calls[key])[walk.number]
        if not isinstance(outcome, MissingAnswer):
            return outcome
        if key in self._failed:  # attempts and destination of a failed call count once, with the first request that shares it
            return MissingAnswer(outcome.state, outcome.error)
        self._failed.add(key)
        return outcome

    async def _inform(self, walk: SampleWalk, keys: dict[int, str]) -> dict[int, LedgerEntry | MissingAnswer]:
        async with self._informing:
            return await self.informant.ask(walk, keys)

    def _together(self, walk: SampleWalk) -> dict[int, str]:
        """Return the samples of a conversation that one call asks for, with their keys: those neither in the ledger nor in flight."""
        backend = self._handle.backend
        if walk.entries or backend is None or not backend.several:
            return {walk.number: walk.key}
        keys = {number: walk.key_of(number) for number in range(self._first, self._first + walk.request.samples)}
        return {number: key for number, key in keys.items() if self._ledger.get(key) is None and key not in self._calls}


def _report(name: str, responses: list[Response], kept: int, caller: Caller, handle: BackendHandle) -> None:
    skipped = sum(response.state is ResponseState.SKIPPED for response in responses)
    made = counted(caller.calls, "call")
    print(f"{name}: {made} made; {counted(kept, 'answer')} {'was' if kept == 1 else 'were'} in the ledger before", file=sys.stderr)
    if caller.retries:
        causes = ", ".join(f"{number} after {cause}" for cause, number in caller.retries.most_common())
        print(f"{name}: {counted(caller.retries.total(), 'retry')}: {causes}", file=sys.stderr)
    if handle.reason and skipped:
        print(f"{name}: {skipped} answers skipped: {handle.reason}", file=sys.stderr)
