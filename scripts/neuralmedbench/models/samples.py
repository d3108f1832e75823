"""One sample of a request: walk it through the stored answers, and write it as a row of the responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.models.call_keys import call_key, request_key
from neuralmedbench.models.conversation import PromptMessage, ViewSource, informant_messages, next_messages, shown_answer, stored_view
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.ledger import FailedRequests, LedgerEntry
from neuralmedbench.models.prices import cost_usd
from neuralmedbench.records.requests import Request, earlier_request
from neuralmedbench.records.responses import ANOTHER_MODEL, Response, ResponseState, SentCall, printable_name, total_of, usage_of
from neuralmedbench.records.thoughts import OPENING, ThoughtEnd, split_thoughts


class AnswerStore(Protocol):
    """A source of stored answers: a ledger, or its entries by key."""

    def get(self, key: str, /) -> LedgerEntry | None:
        """Return the answer of a key; None if there is none."""
        ...


def item_key(key: str, request: Request) -> str:
    """Return the key of an imported answer if another item's answer already has the call's key."""
    return sha256_of_value({"call_key": key, "item_id": request.item_id, "arm": request.arm, "strategy": request.strategy})


def stored_answer(store: AnswerStore, request: Request, model: ModelConfig, key: str) -> LedgerEntry | None:
    """Look up the answer to a call.

    Our own runs ask an identical prompt once, for all items that share it. An imported run answered each item separately, so its answer
    is never used for another item.
    """
    entry = store.get(key)
    if model.backend != "imported":
        return entry
    return store.get(item_key(key, request)) or (entry if entry and entry.item_id in ("", request.item_id) else None)


class SampleWalk:
    """One sample of a request: its answered calls and the next one.

    Parameters
    ----------
    request : Request
        The request.
    model : ModelConfig
        The model with its settings.
    repeat : int
        Number of the sample.
    code : str
        As in `models.call_keys.call_key`.
    views : callable
        As in `models.conversation.next_messages`.
    informant : ModelConfig or None
        The model that tells the facts, if the request has one; its calls stand between those of the model that asks. None, and of imported
        answers: words decide.

    Attributes
    ----------
    entries : list of LedgerEntry
        The answers to its calls, in order, replies of the informant among them; those to `Request.earlier` come first.
    sent : list of tuple of PromptMessage
        The conversation of each answered call.
    messages : tuple of PromptMessage
        The conversation of the next call, or of the last one if all are answered.
    key : str
        Key of the next call, which depends on the answers before it; empty if all are answered, or if the earlier answer that the request
        shows is none (`skipped`).
    asks_informant : bool
        True if the next call goes to the informant.
    """

    def __init__(
        self,
        request: Request,
        model: ModelConfig,
        repeat: int,
        *,
        code: str = "",
        views: ViewSource = stored_view,
        informant: ModelConfig | None = None,
    ) -> None:
        self.request, self.model, self.repeat, self.code, self._views = request, model, repeat, code, views
        self.informant = informant if informant and has_informant(request, model) else None
        self.asks_informant = False
        self.entries: list[LedgerEntry] = []
        self.sent: list[tuple[PromptMessage, ...]] = []
        self.messages: tuple[PromptMessage, ...] = ()
        self.key = ""
        self._advance()

    @property
    def complete(self) -> bool:
        """True if no call of the sample is left to be made."""
        return not self.key

    @property
    def own_entries(self) -> list[LedgerEntry]:
        """The model's answers to its own conversation, without the earlier one that it shows."""
        return self.answers[len(self.request.earlier) :]

    @property
    def answers(self) -> list[LedgerEntry]:
        """The answers of the model, without replies of the informant."""
        return [entry for entry in self.entries if entry.strategy != INFORMANT]

    @property
    def informed(self) -> list[str]:
        """The replies of the informant; empty ones were cut off or refused."""
        return [entry.text if entry.state == ResponseState.OK else "" for entry in self.entries if entry.strategy == INFORMANT]

    @property
    def asked_model(self) -> ModelConfig:
        """The model that the next call goes to."""
        return self.informant if self.asks_informant and self.informant else self.model

    @property
    def number(self) -> int:
        """Number of the sample in the next call; the informant is asked an equal question once for all samples."""
        return 0 if self.asks_informant else self.repeat

    @property
    def due(self) -> tuple[Request, int]:
        """The request that the next call belongs to, that of the arm `full` until its answer is there, and the number of the call in it."""
        if self.asks_informant:
            return replace(self.request, strategy=INFORMANT), len(self.informed)
        first, number = len(self.request.earlier), len(self.answers)
        return (earlier_request(self.request), number) if number < first else (self.request, number - first)

    @property
    def skipped(self) -> MissingAnswer | None:
        """Why the sample cannot be asked: the earlier answer that it shows is none."""
        first = len(self.request.earlier)
        if not first or len(self.answers) < first:
            return None
        earlier = self.answers[first - 1]
        if earlier.state == ResponseState.OK and shown_answer(earlier.shown):
            return None
        return no_earlier_answer(earlier.state if earlier.state != ResponseState.OK else "empty")

    @property
    def foreign(self) -> LedgerEntry | None:
        """The first of its answers by another model than the one asked."""
        return next((entry for entry in self.entries if not self._model_of(entry).is_answered_by(entry.served_model)), None)

    @property
    def unusable(self) -> MissingAnswer | None:
        """Why the sample has no answer of the model, although its calls are answered or cannot be made."""
        entry = self.foreign
        if entry is None:
            return self.skipped
        asked = self._model_of(entry).id
        served, name = map(withhold_outside_paths, (printable_name(entry.served_model), asked.partition("/")[2] or asked))
        whose = f"{INFORMANT}: " if entry.strategy == INFORMANT else ""
        why = f"{whose}{ANOTHER_MODEL}: {served}, not {name}"
        return MissingAnswer(ResponseState.FAILED, why, destination=entry.destination, called_on=entry.called_on)

    def _model_of(self, entry: LedgerEntry) -> ModelConfig:
        return self.informant if entry.strategy == INFORMANT and self.informant else self.model

    def resume(self, store: AnswerStore) -> SampleWalk:
        """Add stored answers up to the first call without one, and return the walk itself."""
        while self.key and (entry := self._stored(store)) is not None:
            self.add(entry)
        return self

    def add(self, entry: LedgerEntry) -> None:
        """Add the answer to the next call."""
        self.entries.append(entry)
        self.sent.append(self.messages)
        self._advance()

    def key_of(self, repeat: int) -> str:
        """Return the key of the next call for another sample of the same conversation."""
        if self.asks_informant:
            return call_key(self.asked_model, self.messages, repeat)
        return request_key(self.request, self.model, self.messages, repeat, code=self.code)

    def _stored(self, store: AnswerStore) -> LedgerEntry | None:
        return store.get(self.key) if self.asks_informant else stored_answer(store, self.request, self.model, self.key)

    def _advance(self) -> None:
        # the key depends on the answers so far: a dialogue's next message follows them
        texts, replies = [entry.shown for entry in self.answers], self.informed
        to_informant = informant_messages(self.request, texts, replies) if self.informant else None
        self.asks_informant = to_informant is not None
        due = to_informant
        if due is None and not self.skipped:
            due = next_messages(self.request, texts, self.model.max_images, self._views, replies)
        self.messages = self.messages if due is None else due
        self.key = "" if due is None else self.key_of(self.number)


def has_informant(request: Request, model: ModelConfig) -> bool:
    """Return True if a language model tells the facts to a model that asks; answers that were imported had another one, so words decide."""
    return request.inquiry is not None and bool(request.inquiry.informant) and model.backend != "imported"


@dataclass(frozen=True)
class MissingAnswer:
    """Why a call has no answer, the number of attempts, and (if anything was sent) the host and the day in UTC."""

    state: ResponseState
    error: str
    attempts: int = 0
    destination: str = ""
    called_on: str = ""


def no_earlier_answer(cause: str) -> MissingAnswer:
    """Return why a sample is not asked that shows the model's own earlier answer, if there is none."""
    return MissingAnswer(ResponseState.SKIPPED, f"no earlier answer to show ({cause})")


def response_row(walk: SampleWalk, missing: MissingAnswer | None = None, failed: Sequence[FailedRequests] = ()) -> Response:
    """Build the row of one sample.

    Parameters
    ----------
    walk : SampleWalk
        The sample.
    missing : MissingAnswer, optional
        Why its last answer is missing; without it there is at least one answer.
    failed : sequence of FailedRequests
        What was sent for the missing answer, in this run and before.

    Returns
    -------
    Response
        The row.
    """
    missing = missing or walk.unusable
    request, entries, messages = walk.request, walk.own_entries, walk.messages
    last = entries[-1] if entries else None
    served = walk.foreign or last
    # marks of its own may have been written into the yaml after the answer came
    marks = walk.model.thought_marks
    texts = tuple(split_thoughts(entry.text, marks).answer or entry.text if marks else entry.text for entry in entries)
    # count what left the machine: a failed call did; of a call that was never sent the last answer and message did not
    sent = messages if not missing or missing.destination else messages[:-2] if entries else ()
    if walk.asks_informant:  # what the model was sent last
        sent = next(messages for messages, entry in zip(reversed(walk.sent), reversed(walk.entries), strict=True) if entry is last)
    costs = [cost_usd(walk.model, entry) for entry in entries]
    latencies = [entry.latency_s for entry in entries if entry.latency_s is not None]
    return Response(
        item_id=request.item_id,
        case_id=request.case_id,
        patient_id=request.patient_id,
        benchmark=request.benchmark,
        arm=request.arm,
        strategy=request.strategy,
        model=walk.model.name,
        revision=walk.model.revision,
        repeat=walk.repeat,
        request_id=request.request_id,
        runner=request.runner,
        state=missing.state if missing else ResponseState(entries[-1].state),
        text=texts[-1] if texts and not missing else "",
        turns=texts,
        call_keys=tuple(entry.key for entry in walk.entries),
        images_sent=_pictures(sent),
        finish_reason=last.finish_reason if last else "",
        served_model=served.served_model if served else "",
        fingerprint=served.fingerprint if served else "",
        prompt_tokens=total_of(entries, "prompt_tokens"),
        completion_tokens=total_of(entries, "completion_tokens"),
        latency_s=round(sum(latencies), 4) if latencies else None,
        cost_usd=sum(known) if (known := [cost for cost in costs if cost is not None]) and len(known) == len(costs) else None,
        attempts=sum(entry.attempts for entry in entries) + (missing.attempts if missing else 0),
        error=missing.error if missing else "",
        called_on=(missing.called_on if missing else "") or (last.called_on if last else ""),
        images_downscaled=sum(entry.images_downscaled for entry in entries),
        destination=(missing.destination if missing else "") or (last.destination if last else ""),
        characters_sent=_characters(sent),
        mean_logprob=_mean(last.token_logprobs) if last and not missing else None,
        calls=tuple(_sent_calls(walk, failed)),
        informed=tuple(walk.informed),
        informant_calls=tuple(_sent_calls(walk, failed, of_informant=True)),
    )


def with_cut_thoughts(rows: Iterable[Response], walks: Iterable[SampleWalk]) -> list[Response]:
    """Mark answers that met their limit in thought, although nothing in them says so: where the server's template opens every thought.

    That it does is known from the other answers, in which a closing mark stood alone.
    """
    thoughts = {entry.key: entry.thought for walk in walks for entry in walk.entries if entry.thought}
    if ThoughtEnd.LONE not in thoughts.values():
        return list(rows)
    marked = []
    for row in rows:
        cut = row.state is ResponseState.TRUNCATED and bool(row.text) and row.call_keys[-1] not in thoughts
        text = f"{OPENING}{row.text}" if cut else row.text
        marked.append(replace(row, text=text, turns=(*row.turns[:-1], text)) if cut else row)
    return marked


def _sent_calls(walk: SampleWalk, failed: Sequence[FailedRequests], *, of_informant: bool = False) -> Iterator[SentCall]:
    model = walk.informant if of_informant and walk.informant else walk.model
    for entry, messages in zip(walk.entries, walk.sent, strict=False):
        if (entry.strategy == INFORMANT) is not of_informant:
            continue
        yield SentCall(
            key=entry.key,
            requests=entry.attempts if entry.requests is None else entry.requests,
            pictures=_pictures(messages),
            characters=_characters(messages),
            **vars(usage_of(entry)),
            cost_usd=cost_usd(model, entry),
            destination=entry.destination,
            called_on=entry.called_on,
        )
        yield from _failed_calls(entry.key, entry.failed, messages)
    if walk.asks_informant is of_informant:
        yield from _failed_calls(walk.key, failed, walk.messages)


def _failed_calls(key: str, failed: Sequence[FailedRequests], messages: Sequence[PromptMessage]) -> Iterator[SentCall]:
    pictures, characters = _pictures(messages), _characters(messages)
    for one in failed:
        yield SentCall(
            key=key,
            requests=one.requests,
            answered=False,
            pictures=pictures,
            characters=characters,
            destination=one.destination,
            called_on=one.called_on,
        )


def _pictures(messages: Sequence[PromptMessage]) -> int:
    return sum(len(entry.images) for entry in messages)


def _characters(messages: Sequence[PromptMessage]) -> int:
    return sum(len(entry.text) + len(entry.after) + sum(len(image.label) for image in entry.images) for entry in messages)


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None
