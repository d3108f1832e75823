"""What a model would be asked, before anything is sent: calls, tokens and money that are still to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.budget import cost_usd
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.conversation import MOST_FACTS, PromptMessage, next_messages
from neuralmedbench.models.ledger import LedgerEntry
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.models.token_estimate import Estimator, answers_of_a_call, longest_answer
from neuralmedbench.records.requests import Inquiry, Request

ENOUGH_ANSWERS = 10
"""From so many answers in the ledger on, their mean length is taken for the likely one; before, half of the longest."""


@dataclass(kw_only=True)
class Forecast:
    """What is still to be asked of one model.

    Attributes
    ----------
    requests, samples : int
        What the benchmark asks.
    answered : int
        Answers that the ledger holds, of these; one that several samples share counts once.
    calls : int
        Calls still to be made: at most, where the model decides how often it asks.
    prompt_tokens, completion_tokens : int
        Probably.
    most_prompt_tokens, most_completion_tokens : int
        As they are set aside before each call.
    usd, most_usd : float or None
        Probably and at most; None without prices.
    """

    requests: int = 0
    samples: int = 0
    answered: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    most_prompt_tokens: int = 0
    most_completion_tokens: int = 0
    usd: float | None = None
    most_usd: float | None = None


def forecast_calls(
    requests: Sequence[Request], model: ModelConfig, entries: Mapping[str, LedgerEntry], *, code: str = "", root: Path = Path()
) -> Forecast:
    """Count what the ledger does not hold yet.

    Parameters
    ----------
    requests : sequence of Request
        What is asked.
    model : ModelConfig
        The model's yaml.
    entries : mapping of str to LedgerEntry
        Its ledger.
    code : str
        As in `models.call_keys.call_key`.
    root : Path
        Folder to which the paths of pictures are relative.

    Returns
    -------
    Forecast
        The counts.
    """
    return _Forecaster(model, entries, code, root).over(requests)


class _Forecaster:
    """One walk over the requests of a benchmark."""

    def __init__(self, model: ModelConfig, entries: Mapping[str, LedgerEntry], code: str, root: Path) -> None:
        self._model, self._entries, self._code = model, entries, code
        self._estimator = Estimator(model, root)
        self._most = longest_answer(model) or 0
        lengths = [entry.completion_tokens for entry in entries.values() if entry.completion_tokens]
        self._likely = sum(lengths) // len(lengths) if len(lengths) >= ENOUGH_ANSWERS else self._most // 2
        self._seen: set[str] = set()
        self._counted: set[tuple[str, int, tuple[PromptMessage, ...]]] = set()

    def over(self, requests: Sequence[Request]) -> Forecast:
        found = Forecast(requests=len(requests), samples=sum(request.samples for request in requests))
        for request in requests:
            begun = False
            for repeat in range(request.samples):
                # with `native_n` the samples of a conversation share its first call
                begun |= self._sample(request, repeat, found, shared=begun and self._model.native_n)
        found.usd = cost_usd(self._model, found.prompt_tokens, found.completion_tokens)
        found.most_usd = cost_usd(self._model, found.most_prompt_tokens, found.most_completion_tokens)
        return found

    def _sample(self, request: Request, repeat: int, found: Forecast, *, shared: bool) -> bool:
        """Follow one sample through the ledger, then count what is left of it; whether it has a first call of its own still to be made."""
        walk = SampleWalk(request, self._model, repeat, code=self._code).resume(self._entries)
        for entry in walk.entries:
            found.answered += entry.key not in self._seen
            self._seen.add(entry.key)
        if walk.complete:
            return False
        own = walk.key not in self._seen
        self._seen.add(walk.key)
        answers = [entry.text for entry in walk.entries]
        self._rest(request, answers, found, key=walk.key, shared=shared and not answers)
        return own and not answers

    def _rest(self, request: Request, answers: list[str], found: Forecast, *, key: str, shared: bool) -> None:
        messages = next_messages(request, answers, self._model.max_images)
        told = _longest_reply(request.inquiry) if request.inquiry else ()
        left = request.inquiry.max_questions + 1 - len(answers) if request.inquiry else len(request.turns) - len(answers)
        for number in range(left):
            if number and not request.inquiry:  # answers that nobody knows yet are empty here, and counted by their length below
                messages = next_messages(request, [*answers, *[""] * number], self._model.max_images)
            words = (*(messages or ()), *told * number)
            # samples whose next call is the same go on alike for as long as they are told the same: arms share the first turns of a dialogue
            if (key, number, words) not in self._counted:
                self._counted.add((key, number, words))
                self._call(request, words, number, found, shared=shared and not number)

    def _call(self, request: Request, messages: tuple[PromptMessage, ...], unknown: int, found: Forecast, *, shared: bool) -> None:
        """Count one call, behind so many answers that nobody knows yet; a shared one costs an answer and nothing else."""
        if not shared:
            schema = sent_schema(request, self._model)
            found.calls += 1
            found.prompt_tokens += self._estimator.prompt_probably(messages, schema) + unknown * self._likely
            found.most_prompt_tokens += self._estimator.prompt_at_most(messages, schema) + unknown * self._most
        found.completion_tokens += self._likely
        found.most_completion_tokens += self._most * answers_of_a_call(self._model)


def _longest_reply(inquiry: Inquiry) -> tuple[PromptMessage, ...]:
    """Give the longest reply that a question of the model can bring."""
    facts = sorted(inquiry.facts, key=lambda fact: (len(fact.images), len(fact.text)), reverse=True)[:MOST_FACTS]
    words = [*(fact.text for fact in facts), inquiry.unknown, inquiry.left, inquiry.closing]
    return (PromptMessage("user", "\n".join(words), tuple(chain.from_iterable(fact.images for fact in facts))),)
