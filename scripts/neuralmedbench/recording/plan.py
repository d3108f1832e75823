"""The plan of a run: what every model and grader of it would be asked, and what that would cost. Nothing is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from neuralmedbench.config.load import group_limit, load_asked
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models.budget import account_of, check_paid
from neuralmedbench.models.destinations import check_destination, destination_of
from neuralmedbench.models.forecast import Forecast, forecast_calls
from neuralmedbench.models.ledger import LedgerEntry, read_ledger
from neuralmedbench.models.picture_budget import too_many_options
from neuralmedbench.models.readers import requests_for
from neuralmedbench.models.registry import closed_because, code_of
from neuralmedbench.models.samples import SampleWalk, response_row
from neuralmedbench.models.token_estimate import longest_answer
from neuralmedbench.records.items import Gold, Item, Strategy
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.scoring.llm.grader_requests import read_model_grader, scored_responses
from neuralmedbench.scoring.llm.task import MAX_CHARACTERS

VOTED = Strategy.SELF_CONSISTENCY
"""Of the samples of this strategy one alone is graded."""
CHARACTERS_PER_TOKEN = 4
"""Of an answer that a grader is expected to read."""


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One model, or one grader of one model's answers, on one benchmark; a jury asks nothing, its members do.

    Attributes
    ----------
    grader : str
        Empty for the model itself.
    outlook : Forecast
        What would be asked.
    destination : str
        Host, `local`, or `unknown`.
    group : str
        Its rate limit group, or empty.
    least_minutes : float
        What the limits of the group take for these calls alone.
    blocked : str
        Why nothing would be asked as things are; empty when it would.
    note : str
        What else a person should know.
    """

    benchmark: str
    model: str
    grader: str
    outlook: Forecast
    prices_dated: str
    destination: str
    allowed: bool
    key_env: str
    key_is_set: bool
    group: str
    least_minutes: float
    max_cost_usd: float | None
    account: str
    blocked: str
    note: str = ""


@dataclass(frozen=True)
class PlanGap:
    """A benchmark whose prompts are not there yet, and how they are made."""

    benchmark: str
    remedy: str


def plan_run(run: Run, root: Path = Path()) -> tuple[list[PlanRow], list[PlanGap]]:
    """Look ahead for every benchmark, model and grader of the run lists.

    Parameters
    ----------
    run : Run
        The run.
    root : Path
        The repository root.

    Returns
    -------
    rows : list of PlanRow
        In the order of the run lists; each model is followed by its graders.
    unplanned : list of Unplanned
        Benchmarks without prompts.

    Raises
    ------
    ConfigError, DataError
        If a file of the run cannot be read.
    """
    vocabulary = read_vocabulary(root / run.config.vocabulary)
    rows: list[PlanRow] = []
    unplanned: list[PlanGap] = []
    for benchmark in run.benchmarks:
        prompts = f"data/prompts/{benchmark}.parquet"
        if not (root / prompts).is_file():
            unplanned.append(
                PlanGap(benchmark, f"its prompts are not there yet; `snakemake --cores 8 -- {prompts}` makes them and asks nothing")
            )
            continue
        rows += _Planner(run, benchmark, root, vocabulary).rows(read_records(root / prompts, Request))
    return rows, unplanned


class _Planner:
    """Plans one benchmark."""

    def __init__(self, run: Run, benchmark: str, root: Path, vocabulary: Vocabulary) -> None:
        self._run, self._benchmark, self._root, self._vocabulary = run, benchmark, root, vocabulary
        self._llm = {name: grader for name, grader in run.all_graders.items() if grader.kind == "llm" and grader.model and grader.prompt}

    @cached_property
    def _items(self) -> dict[str, Item]:
        return {row.item_id: row for row in read_records(self._root / f"data/items/{self._benchmark}.parquet", Item)}

    @cached_property
    def _gold(self) -> dict[str, Gold]:
        return {row.item_id: row for row in read_records(self._root / f"data/gold/{self._benchmark}.parquet", Gold)}

    def rows(self, requests: list[Request]) -> Iterator[PlanRow]:
        for name in self._run.models:
            model = load_asked(self._run.folder, self._benchmark, name)
            asked = [request for request in requests_for(model, requests) if not too_many_options(request, model.max_images)]
            entries = read_ledger(self._root / f"data/ledger/{self._benchmark}/{name}.jsonl")
            outlook = forecast_calls(asked, model, entries, code=code_of(model, self._vocabulary), root=self._root)
            yield self._row(name, "", model, outlook)
            for grader, config in self._llm.items():
                yield self._grader_row(name, model, grader, config, asked)

    def _grader_row(self, name: str, model: ModelConfig, grader: str, config: GraderConfig, asked: list[Request]) -> PlanRow:
        assert config.model
        responses = self._root / f"results/responses/{self._benchmark}/{name}.parquet"
        there = read_records(responses, Response) if responses.is_file() else []
        answered = {response_key(row) for row in there if _came(row)}
        expected = [row for row in _expected(asked, model) if response_key(row) not in answered]
        entries = read_ledger(self._root / f"data/ledger/{self._benchmark}/graders/{name}/{grader}.jsonl")
        outlook = forecast_calls(self._graded(there, expected, grader, name), config.model, entries, root=self._root)
        note = (
            f"{len(expected)} answers of its model are still to come: of half the longest length, as it is counted here" if expected else ""
        )
        return self._row(name, grader, config.model, outlook, note)

    def _graded(self, there: list[Response], expected: list[Response], grader: str, model: str) -> list[Request]:
        items, gold = self._items, self._gold
        asker = read_model_grader(grader, self._llm[grader], self._run.models[model].names, root=self._root)
        answers = [
            *scored_responses(there, items, gold, self._vocabulary),
            *(row for row in expected if not row.repeat or row.strategy != VOTED),
        ]
        known = [row for row in answers if row.item_id in gold]
        wanted = {(row.item_id, row.text): row for row in known if asker.wants(row, items[row.item_id], gold[row.item_id])}
        return [asker.request(row, items[row.item_id], gold[row.item_id]) for row in wanted.values()]

    def _row(self, name: str, grader: str, model: ModelConfig, outlook: Forecast, note: str = "") -> PlanRow:
        allowed = self._run.benchmarks[self._benchmark].allowed_destinations
        destination = _destination(model)
        limit, group = group_limit(model, self._run.config.rate_limits), model.rate_limit_group or ""
        tokens = outlook.prompt_tokens + outlook.completion_tokens
        minutes = [0.0, *([outlook.calls / limit.requests_per_minute] if limit.requests_per_minute else [])]
        minutes += [tokens / limit.tokens_per_minute] if limit.tokens_per_minute else []
        return PlanRow(
            benchmark=self._benchmark,
            model=name,
            grader=grader,
            outlook=outlook,
            prices_dated=model.prices.dated if model.prices else "",
            destination=destination,
            allowed=destination in {entry.lower() for entry in allowed},
            key_env=model.api_key_env or "",
            key_is_set=bool(model.api_key_env and os.environ.get(model.api_key_env)),
            group=group,
            least_minutes=max(minutes),
            max_cost_usd=model.max_cost_usd,
            account=account_of(model),
            blocked=self._blocked(model, allowed) if outlook.calls else "",
            note=note,
        )

    def _blocked(self, model: ModelConfig, allowed: Sequence[str]) -> str:
        try:
            check_destination(model, allowed)
            check_paid(model)
        except ConfigError as error:
            return str(error)
        return "the configuration says `replay`" if self._run.config.replay else closed_because(model)


def _came(row: Response) -> bool:
    return row.state not in MISSING_STATES


def _destination(model: ModelConfig) -> str:
    try:
        return destination_of(model)
    except ConfigError:
        return "unknown"


def _expected(requests: list[Request], model: ModelConfig) -> list[Response]:
    """Stand in for answers that are not there yet: only their number and length count, and no two of them are equal."""
    length = min(MAX_CHARACTERS, (longest_answer(model) or 0) // 2 * CHARACTERS_PER_TOKEN)
    return [response_row(_standing_in(request, model, repeat, length)) for request in requests for repeat in range(request.samples)]


def _standing_in(request: Request, model: ModelConfig, repeat: int, length: int) -> SampleWalk:
    text = f"{request.arm} {request.strategy} {repeat} ".ljust(length, "x")
    walk = SampleWalk(request, model, repeat)
    walk.entries.append(LedgerEntry(key="", state=ResponseState.OK, text=text))
    return walk
