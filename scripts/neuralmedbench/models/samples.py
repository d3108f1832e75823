"""One sample of a request: walked through the stored answers, and written as a row of the responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.models.budget import cost_usd
from neuralmedbench.models.call_keys import request_key
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.ledger import LedgerEntry
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState


class AnswerStore(Protocol):
    """Where answers are looked up: a ledger, or its entries by key."""

    def get(self, key: str, /) -> LedgerEntry | None:
        """Give the answer of a key; None when it is not there."""
        ...


def item_key(key: str, request: Request) -> str:
    """Give the key of an imported answer where another answer stands under the call's key.

    Parameters
    ----------
    key : str
        As `request_key` gives it: items with the same prompt, and arms and strategies that send the same, have it in common.
    request : Request
        Whose answer it is.

    Returns
    -------
    str
        64 hex digits, for this item, arm and strategy alone.
    """
    return sha256_of_value({"call_key": key, "item_id": request.item_id, "arm": request.arm, "strategy": request.strategy})


def stored_answer(kept: AnswerStore, request: Request, model: ModelConfig, key: str) -> LedgerEntry | None:
    """Look up the answer to a call.

    A model that is asked answers one prompt once, for all items that share it. Somebody else's run answered each item: its answer is
    never taken for another item.

    Parameters
    ----------
    kept : AnswerStore
        The answers.
    request : Request
        What is asked.
    model : ModelConfig
        The model.
    key : str
        Key of the call.

    Returns
    -------
    LedgerEntry or None
        The answer; None when it is not there.
    """
    entry = kept.get(key)
    if model.backend != "imported":
        return entry
    return kept.get(item_key(key, request)) or (entry if entry and entry.item_id in ("", request.item_id) else None)


@dataclass(frozen=True)
class SampleProgress:
    """How far a sample is answered.

    Attributes
    ----------
    entries : tuple of LedgerEntry
        The answers to its calls, in order, up to the first that is not there.
    messages : tuple of PromptMessage
        The conversation of the call that is due, or of the last one when all are there.
    key : str
        Key of the call that is due; empty when all are there.
    """

    entries: tuple[LedgerEntry, ...]
    messages: tuple[PromptMessage, ...]
    key: str

    @property
    def complete(self) -> bool:
        """Whether every call of the sample is answered."""
        return not self.key


def resume_sample(request: Request, model: ModelConfig, kept: AnswerStore, repeat: int, *, code: str = "") -> SampleProgress:
    """Follow one sample.

    Parameters
    ----------
    request : Request
        What is asked.
    model : ModelConfig
        The model as it is asked.
    kept : AnswerStore
        The answers.
    repeat : int
        Number of the sample.
    code : str
        As in `models.call_keys.call_key`.

    Returns
    -------
    SampleProgress
        What is there and what is due; a call is made of the answers before it.
    """
    entries: list[LedgerEntry] = []
    messages: tuple[PromptMessage, ...] = ()
    while (due := next_messages(request, [entry.text for entry in entries], model.max_images)) is not None:
        messages, key = due, request_key(request, model, due, repeat, code=code)
        entry = stored_answer(kept, request, model, key)
        if entry is None:
            return SampleProgress(tuple(entries), messages, key)
        entries.append(entry)
    return SampleProgress(tuple(entries), messages, "")


@dataclass(frozen=True)
class MissingAnswer:
    """Why a call has no answer, and how often it was tried; if anything was sent, to which host, and on which day (UTC)."""

    state: ResponseState
    error: str
    attempts: int = 0
    destination: str = ""
    called_on: str = ""


def response_row(
    request: Request,
    repeat: int,
    entries: Sequence[LedgerEntry],
    messages: Sequence[PromptMessage],
    missing: MissingAnswer | None = None,
    *,
    model: ModelConfig,
    name: str,
) -> Response:
    """Make the row of one sample.

    Parameters
    ----------
    request : Request
        What was asked.
    repeat : int
        Which of its samples.
    entries : sequence of LedgerEntry
        The answers to its turns, as far as they came; at least one unless the sample is missing.
    messages : sequence of PromptMessage
        The last conversation.
    missing : MissingAnswer or None
        Why the sample has no last answer.
    model : ModelConfig
        The model that was asked, with the revision that it had.
    name : str
        Its name.

    Returns
    -------
    Response
        The row.
    """
    last = entries[-1] if entries else None
    # a call that failed was sent all the same; one that was not made, or found no connection, ends with words that nobody got
    sent = messages if not missing or missing.destination else messages[:-2] if entries else ()
    prompt, completion = _total([entry.prompt_tokens for entry in entries]), _total([entry.completion_tokens for entry in entries])
    latencies = [entry.latency_s for entry in entries if entry.latency_s is not None]
    return Response(
        item_id=request.item_id,
        case_id=request.case_id,
        patient_id=request.patient_id,
        benchmark=request.benchmark,
        arm=request.arm,
        strategy=request.strategy,
        model=name,
        revision=model.revision,
        repeat=repeat,
        request_id=request.request_id,
        runner=request.runner,
        state=missing.state if missing else ResponseState(entries[-1].state),
        text=last.text if last and not missing else "",
        turns=tuple(entry.text for entry in entries),
        call_keys=tuple(entry.key for entry in entries),
        images_sent=sum(len(entry.images) for entry in sent),
        finish_reason=last.finish_reason if last else "",
        served_model=last.served_model if last else "",
        fingerprint=last.fingerprint if last else "",
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency_s=round(sum(latencies), 4) if latencies else None,
        cost_usd=cost_usd(model, prompt, completion),
        attempts=sum(entry.attempts for entry in entries) + (missing.attempts if missing else 0),
        error=missing.error if missing else "",
        called_on=(missing.called_on if missing else "") or (last.called_on if last else ""),
        images_downscaled=sum(entry.images_downscaled for entry in entries),
        destination=(missing.destination if missing else "") or (last.destination if last else ""),
        characters_sent=sum(len(entry.text) + sum(len(image.label) for image in entry.images) for entry in sent),
        mean_logprob=_mean(last.token_logprobs) if last and not missing else None,
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _total(tokens: list[int | None]) -> int | None:
    known = [count for count in tokens if count is not None]
    return sum(known) if known and len(known) == len(tokens) else None
