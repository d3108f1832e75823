"""Find calls that a model cannot take before anything is sent: too long for `context_tokens` of its yaml, or with pictures that are refused."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.causes import TOO_LONG
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.picture_limits import refused_pictures
from neuralmedbench.models.prices import longest_answer
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.models.token_estimates import Estimator
from neuralmedbench.records.words import counted

STEP = f"{TOO_LONG.step}; if its context is longer, correct `context_tokens`"


@dataclass
class LengthCount:
    """Requests of one model by their length.

    Attributes
    ----------
    too_long : int
        Requests with a call that is too long even by the least estimate: it is not made.
    near_limit : int
        Further requests with a call that may be too long: it is made, and the server decides.
    longest_tokens : int
        Likely tokens of prompt and longest answer of the longest of them; 0 if there are none.
    """

    too_long: int = 0
    near_limit: int = 0
    longest_tokens: int = 0

    def add(self, other: LengthCount) -> None:
        """Count further requests."""
        self.too_long, self.near_limit = self.too_long + other.too_long, self.near_limit + other.near_limit
        self.longest_tokens = max(self.longest_tokens, other.longest_tokens)


@dataclass(frozen=True)
class DueCall:
    """A call that is still to be made.

    Attributes
    ----------
    messages : tuple of PromptMessage
        The conversation.
    schema : str
        JSON schema that is sent with it, or empty.
    unknown : int
        Likely tokens of its earlier answers that are not there yet.
    certain : bool
        False if the conversation may turn out shorter, because the model decides what it asks.
    """

    messages: tuple[PromptMessage, ...]
    schema: str = ""
    unknown: int = 0
    certain: bool = True


class ContextLength:
    """The context length of one model.

    Parameters
    ----------
    model : ModelConfig
        Its yaml; without `context_tokens` nothing is too long.
    root : Path
        Folder to which the paths of pictures are relative.

    Notes
    -----
    Two estimates of a prompt are compared with the limit less the longest answer. Of 1,301 English texts (prompts of the demo, five published
    sets, answers of models) and six tokenisers (cl100k, o200k, p50k, Claude 2, SmolLM2, MiniLM), every text had at least 1.09 times the
    tokens of the least estimate, and the demo's prompts had 0.93 to 1.37 times those of the likely one (`perf/token_estimates.py`). So a call
    above the first is surely too long; one above `prompt_perhaps` (1.4 times the likely text) may be. Texts of numbers or of other languages
    may be longer still.
    """

    def __init__(self, model: ModelConfig, root: Path = Path()) -> None:
        self._limit, self._answer = model.context_tokens, longest_answer(model) or 0
        self._model, self._root = model, root
        self._estimator = Estimator(model, root)

    def reason(self, messages: Sequence[PromptMessage], schema: str = "") -> str:
        """Return why a call is not made; empty if it fits or may fit."""
        return self._too_long(messages, schema) or self.refused_pictures(messages)

    def refused_pictures(self, messages: Sequence[PromptMessage]) -> str:
        """Return why the pictures of a call are refused; empty if they are not."""
        return refused_pictures(self._model, messages, self._root)

    def _too_long(self, messages: Sequence[PromptMessage], schema: str) -> str:
        if self._limit is None or self._estimator.prompt_at_least(messages, schema) + self._answer <= self._limit:
            return ""
        # the same words for every call of a model: reasons are counted
        return f"context_tokens {self._limit}: {TOO_LONG.words}"

    def count(self, calls: Iterable[DueCall]) -> LengthCount:
        """Count one request by its longest call."""
        too_long = near = False
        largest = 0
        for call in calls if self._limit is not None else ():
            is_too_long = call.certain and bool(self._too_long(call.messages, call.schema))
            more = call.unknown + self._answer
            if is_too_long or self._estimator.prompt_perhaps(call.messages, call.schema) + more > (self._limit or 0):
                too_long, near = too_long or is_too_long, True
                largest = max(largest, self._estimator.prompt_probably(call.messages, call.schema) + more)
        return LengthCount(int(too_long), int(near and not too_long), largest)

    def words(self, found: LengthCount) -> list[str]:
        """Say how many requests are too long or may be, with the limit, the largest estimate and the next step; nothing if none is."""
        if self._limit is None:
            return []
        size = f"prompt and longest answer take up to about {found.longest_tokens:,} tokens, context_tokens is {self._limit:,}"
        lines = [f"{counted(found.too_long, 'request')} too long and not asked: {size}; {STEP}"] if found.too_long else []
        return lines + ([f"{counted(found.near_limit, 'request')} may be too long: {size}"] if found.near_limit else [])


def check_lengths(due: Sequence[SampleWalk], run: ModelRun, *, total: int) -> int:
    """Say before the first call of a run which requests are too long, or may be, and whose pictures are refused.

    Parameters
    ----------
    due : sequence of SampleWalk
        Samples with a call that is still to be made.
    run : ModelRun
        The model and its limits.
    total : int
        All answers of the run.

    Returns
    -------
    int
        Samples whose next call is not made; they are skipped.

    Raises
    ------
    ConfigError
        If these are more than `max_failed_fraction` of all answers; nothing is sent then.
    """
    model, length, found = run.model, ContextLength(run.model, run.root), LengthCount()
    due = [walk for walk in due if not walk.asks_informant]
    calls = {(walk.request.item_id, walk.request.arm, walk.request.strategy): walk for walk in due}
    refused = Counter[str]()
    for walk in calls.values():
        found.add(length.count([DueCall(walk.messages, sent_schema(walk.request, model))]))
        refused[length.refused_pictures(walk.messages)] += 1
    refused.pop("", None)
    has_unsent = found.too_long or refused
    unsent = sum(bool(length.reason(walk.messages, sent_schema(walk.request, model))) for walk in due) if has_unsent else 0
    lines = [f"{counted(number, 'request')} not asked, {why}" for why, number in refused.items()] + length.words(found)
    if unsent > (math.inf if run.max_failed_fraction is None else run.max_failed_fraction * total):
        message = (
            f"model {model.name}: {lines[0]}. They are {unsent} of {total} answers, more than max_failed_fraction {run.max_failed_fraction:g};"
            " nothing was sent"
        )
        raise ConfigError(message)
    for line in lines:
        print(f"{model.name}: {line}", file=sys.stderr)
    return unsent
