"""Forecast the calls, tokens and cost that a model still needs, and those of a switch to another version of a grader, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from neuralmedbench.config.load import load_grader
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.context_length import ContextLength, DueCall, LengthCount
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.informant import INFORMANT, MOST_REPLIES
from neuralmedbench.models.ledger import LedgerEntry, read_ledger
from neuralmedbench.models.picture_limits import beyond_limits
from neuralmedbench.models.prices import answers_of_a_call, asked_tier, cost_usd, highest_usd, longest_answer
from neuralmedbench.models.samples import SampleWalk, has_informant
from neuralmedbench.models.token_estimates import Estimator
from neuralmedbench.records.fact_matching import MOST_FACTS
from neuralmedbench.records.requests import Request, RequestImage
from neuralmedbench.records.responses import Usage, total_of
from neuralmedbench.records.words import counted

ENOUGH_ANSWERS = 10
"""With at least this many answers in the ledger their mean length is the likely one, with fewer half of the longest allowed."""

LIKELY_REPLY = 12
"""Tokens of an informant's reply in its form."""


@dataclass(kw_only=True)
class Forecast:
    """Calls, tokens and cost that one model still needs.

    Attributes
    ----------
    requests, samples : int
        Requests of the benchmark, and samples of them.
    answered : int
        Answers already in the ledger; one shared by several samples counts once.
    calls : int
        Calls still to be made; an upper bound if the model decides how often it asks.
    prompt_tokens, completion_tokens : int
        Likely numbers.
    most_prompt_tokens, most_completion_tokens : int
        Upper bounds, as reserved before each call.
    cached_tokens : int
        Likely part of the prompt tokens that the provider reads from its cache: as large a part as of the answers in the ledger.
    usd, most_usd : float or None
        Likely and highest cost; None without prices.
    lengths : LengthCount
        Requests that are too long for the model, or may be; calls that are too long are not among `calls`.
    pictures : list of str
        Items whose pictures are beyond what the provider documents, one line a limit.
    """

    requests: int = 0
    samples: int = 0
    answered: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    most_prompt_tokens: int = 0
    most_completion_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    most_usd: float | None = None
    lengths: LengthCount = field(default_factory=LengthCount)
    pictures: list[str] = field(default_factory=list)

    def price(self, model: ModelConfig, cached_share: float = 0.0) -> None:
        """Set the likely and the highest cost; `cached_share` of the prompt tokens is likely to be cached."""
        self.cached_tokens = int(cached_share * self.prompt_tokens)
        counts = {name: getattr(self, name) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")}
        self.usd = cost_usd(model, Usage(service_tier=asked_tier(model), **counts))
        self.most_usd = highest_usd(model, self.most_prompt_tokens, self.most_completion_tokens)


def forecast_calls(
    requests: Sequence[Request],
    model: ModelConfig,
    entries: Mapping[str, LedgerEntry],
    *,
    code: str = "",
    root: Path = Path(),
    informant: ModelConfig | None = None,
) -> Forecast:
    """Count what the ledger lacks.

    Parameters
    ----------
    requests : sequence of Request
        The requests.
    model : ModelConfig
        The model's yaml.
    entries : mapping of str to LedgerEntry
        Its ledger.
    code : str
        As in `models.call_keys.call_key`.
    root : Path
        Folder to which the paths of pictures are relative.
    informant : ModelConfig or None
        As in `models.samples.SampleWalk`; its calls are counted by `forecast_informant`.

    Returns
    -------
    Forecast
        The counts.
    """
    return _Forecaster(model, entries, code, root, informant).over(requests)


def forecast_informant(
    requests: Sequence[Request], model: ModelConfig, informant: ModelConfig, entries: Mapping[str, LedgerEntry], *, code: str = ""
) -> Forecast:
    """Count what the ledger lacks of the informant's replies to the questions of one model; parameters as in `forecast_calls`.

    An upper bound: the model may ask less, several samples may ask the same, and hardly any reply needs its correction.
    """
    asked = [request for request in requests if has_informant(request, model)]
    forecast, estimator = Forecast(requests=len(asked), samples=sum(request.samples for request in asked)), Estimator(informant, Path())
    most, seen = longest_answer(informant) or 0, set[str]()
    for request in asked:
        assert request.inquiry
        for repeat in range(request.samples):
            walk = SampleWalk(request, model, repeat, code=code, informant=informant).resume(entries)
            seen |= {entry.key for entry in walk.entries if entry.strategy == INFORMANT}
            left = 0 if walk.complete else request.inquiry.max_questions - len(walk.own_entries) + walk.asks_informant
            messages = (PromptMessage("system", request.inquiry.informant), PromptMessage("user", request.inquiry.correction))
            forecast.calls += left * MOST_REPLIES
            forecast.prompt_tokens += left * estimator.prompt_probably(messages, "")
            forecast.most_prompt_tokens += left * MOST_REPLIES * (estimator.prompt_at_most(messages, "") + most)
            forecast.completion_tokens += left * min(LIKELY_REPLY, most)
            forecast.most_completion_tokens += left * MOST_REPLIES * most
    forecast.answered = len(seen)
    forecast.price(informant)
    return forecast


class _Forecaster:
    """One walk over the requests of a benchmark."""

    def __init__(
        self, model: ModelConfig, entries: Mapping[str, LedgerEntry], code: str, root: Path, informant: ModelConfig | None
    ) -> None:
        self._informant, self._root = informant, root
        self._model, self._entries, self._code = model, entries, code
        self._estimator, self._length = Estimator(model, root), ContextLength(model, root)
        self._due: list[DueCall] = []
        self._most = longest_answer(model) or 0
        own = [entry for entry in entries.values() if entry.strategy != INFORMANT]
        lengths = [entry.completion_tokens for entry in own if entry.completion_tokens]
        self._likely = sum(lengths) // len(lengths) if len(lengths) >= ENOUGH_ANSWERS else self._most // 2
        sent = [entry for entry in own if entry.prompt_tokens]
        self._cached_share = _share_of_prompt(sent) if len(sent) >= ENOUGH_ANSWERS else 0.0
        self._seen: set[str] = set()
        self._counted: set[tuple[str, int, tuple[PromptMessage, ...]]] = set()

    def over(self, requests: Sequence[Request]) -> Forecast:
        forecast = Forecast(requests=len(requests), samples=sum(request.samples for request in requests))
        longest: dict[str, tuple[PromptMessage, ...]] = {}
        for request in requests:
            has_first_call, self._due = False, []
            for repeat in range(request.samples):
                # with `native_n` the samples of a conversation share its first call
                has_first_call |= self._sample(request, repeat, forecast, shared=has_first_call and self._model.native_n)
            forecast.lengths.add(self._length.count(self._due))
            for call in self._due:
                longest[request.item_id] = max(longest.get(request.item_id, ()), call.messages, key=_pictures_of)
        forecast.pictures = beyond_limits(self._model, longest.items(), self._root)
        forecast.price(self._model, self._cached_share)
        return forecast

    def _sample(self, request: Request, repeat: int, forecast: Forecast, *, shared: bool) -> bool:
        """Walk one sample through the ledger and count the calls it lacks; True if its first call is new and still to be made."""
        walk = SampleWalk(request, self._model, repeat, code=self._code, informant=self._informant).resume(self._entries)
        for entry in walk.answers:
            forecast.answered += entry.key not in self._seen
            self._seen.add(entry.key)
        if walk.complete:
            return False
        is_new = walk.key not in self._seen
        self._seen.add(walk.key)
        answers = [entry.shown for entry in walk.answers]
        self._remaining_calls(request, answers, forecast, key=walk.key, shared=shared and not answers)
        return is_new and not answers

    def _remaining_calls(self, request: Request, answers: list[str], forecast: Forecast, *, key: str, shared: bool) -> None:
        messages = next_messages(request, answers, self._model.max_images)
        reply = _longest_reply(request)
        earlier = max(0, len(request.earlier) - len(answers))
        left = request.most_calls - len(answers) + (0 if request.asks_back else len(request.earlier))
        for number in range(left):
            if number and not request.asks_back:  # future answers are empty here; `_call` adds their likely length
                messages = next_messages(request, [*answers, *[""] * number], self._model.max_images)
            sent = (*(messages or ()), *reply * number)
            # of an earlier conversation only the last answer is sent again
            unknown = number if number < earlier or not earlier else number - earlier + 1
            schema, certain = sent_schema(request, self._model), not (number and request.asks_back)
            self._due.append(DueCall(sent, schema, unknown * self._likely, certain))
            if certain and self._length.reason(sent, schema):
                return  # neither this call of the sample nor a further one is made
            # samples that share their next call go on alike while they are sent the same: arms share the first turns of a dialogue
            if (key, number, sent) not in self._counted:
                self._counted.add((key, number, sent))
                self._call(request, sent, unknown, forecast, shared=shared and not number)

    def _call(self, request: Request, messages: tuple[PromptMessage, ...], unknown: int, forecast: Forecast, *, shared: bool) -> None:
        """Count one call that follows so many unknown answers; a shared call adds only its answer."""
        if not shared:
            schema = sent_schema(request, self._model)
            forecast.calls += 1
            forecast.prompt_tokens += self._estimator.prompt_probably(messages, schema) + unknown * self._likely
            forecast.most_prompt_tokens += self._estimator.prompt_at_most(messages, schema) + unknown * self._most
        forecast.completion_tokens += self._likely
        forecast.most_completion_tokens += self._most * answers_of_a_call(self._model)


def _pictures_of(messages: Sequence[PromptMessage]) -> int:
    return sum(len(message.images) for message in messages)


def _share_of_prompt(entries: Sequence[LedgerEntry]) -> float:
    """Return the part of the prompts that was read from the provider's cache."""
    return (total_of(entries, "cached_tokens") or 0) / (total_of(entries, "prompt_tokens") or 1)


def _longest_reply(request: Request) -> tuple[PromptMessage, ...]:
    """Return the longest reply that a question of the model can get; none if it does not ask."""
    if viewer := request.viewer:
        # COMPARE shows two pictures, but uses up two views: one a call is the most on average
        picture = RequestImage(path=viewer.like, sha256=viewer.like, label=viewer.scans[0].name)
        return (PromptMessage("user", viewer.left, (picture,)),)
    if (inquiry := request.inquiry) is None:
        return ()
    facts = sorted(inquiry.facts, key=lambda fact: (len(fact.images), len(fact.text)), reverse=True)[:MOST_FACTS]
    words = [*(fact.text for fact in facts), inquiry.unknown, inquiry.left, inquiry.closing]
    return (PromptMessage("user", "\n".join(words), tuple(chain.from_iterable(fact.images for fact in facts))),)


@dataclass(frozen=True)
class GraderSwitch:
    """Calls of a grader for answers that another version of the same task has graded.

    `before` is the other grader, or the same one with another prompt, model or settings; USD is None without prices.
    """

    grader: str
    before: str
    calls: int
    usd: float | None
    most_usd: float | None


def grader_switches(
    grader: str, config: GraderConfig, requests: Sequence[Request], ledgers: Path, config_folder: Path
) -> Iterator[GraderSwitch]:
    """Yield what a grader would grade again, for every version that has graded it.

    Parameters
    ----------
    grader : str
        Its name.
    config : GraderConfig
        Its YAML file, of `kind: llm`.
    requests : sequence of Request
        What it is to grade; a request names its answer by the digest of its text.
    ledgers : Path
        Folder with the ledgers of all graders of one model on one benchmark.
    config_folder : Path
        The folder `config/`.

    Yields
    ------
    GraderSwitch
        One per version with grades of these answers.
    """
    assert config.model
    own = read_ledger(ledgers / f"{grader}.jsonl")
    for path in sorted(ledgers.glob("*.jsonl")):
        if _task_of(path.stem, config_folder) == config.task:
            graded = {(entry.item_id, entry.strategy) for entry in read_ledger(path).values()}
            # what the grader's own ledger answers is no call
            cost = forecast_calls([row for row in requests if (row.item_id, row.strategy) in graded], config.model, own)
            if cost.calls:
                yield GraderSwitch(grader, path.stem, cost.calls, cost.usd, cost.most_usd)


def _task_of(grader: str, folder: Path) -> str:
    """Return the task of a grader that asks a model; empty if its YAML file is gone or it asks none."""
    path = folder / "graders" / f"{grader}.yaml"
    try:
        config = load_grader(path) if path.is_file() else None
    except ConfigError:
        return ""
    return config.task if config is not None and config.kind == "llm" else ""


def switch_lines(switches: Iterable[GraderSwitch]) -> list[str]:
    """Say for each grader and each earlier version what grading again costs, over all models and benchmarks."""
    found: dict[tuple[str, str], list[GraderSwitch]] = {}
    for switch in switches:
        found.setdefault((switch.grader, switch.before), []).append(switch)
    return [_line(grader, before, rows) for (grader, before), rows in found.items()]


def _line(grader: str, before: str, rows: Sequence[GraderSwitch]) -> str:
    version = "it with another prompt, model or settings" if grader == before else before
    known = [(row.usd, row.most_usd) for row in rows if row.usd is not None and row.most_usd is not None]
    price = (
        f"about {sum(usd for usd, _ in known):.2f} USD, at most {sum(most for _, most in known):.2f} USD"
        if known
        else "at an unknown price"
    )
    keep = "" if grader == before else f"; the run list with {before} in its place asks none of them"
    return f"switch to {grader}: {version} graded these answers before; grading them again takes {counted(sum(row.calls for row in rows), 'call')}, {price}{keep}"
