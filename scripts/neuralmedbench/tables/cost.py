"""Requests, tokens, seconds and money (`costs.csv`), and what left the machine for where (`destinations.csv`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuralmedbench.config.model import ModelConfig, families
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import LOCAL, destination_of
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.prices import cost_usd, price_list
from neuralmedbench.records.items import is_headline
from neuralmedbench.records.responses import MISSING_STATES, PARTS, Response, SentCall, distinct_calls, served_by, total_of
from neuralmedbench.records.results import ALL_ARMS, PASS1
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.records.words import counted, listing
from neuralmedbench.tables.declare import (
    MODEL,
    Cells,
    Count,
    Flag,
    ModelRow,
    Number,
    Suppression,
    Table,
    Tables,
    Takeaway,
    Text,
    needs,
    of_benchmarks,
)
from neuralmedbench.tables.leaderboard import leaderboard_rows
from neuralmedbench.tables.outcomes import FULL, Key
from neuralmedbench.tables.study import BenchmarkStudy, Study

NOT_KNOWN, NOT_ASKED = "not known", "not asked here"
GRADER = "grader "
"""Prefix of a grader's name in lists of models."""


def sum_of_known(numbers: list[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class DestinationRow(ModelRow):
    """Amount of data sent to one destination for one model or grader."""

    destination: str
    requests: Count = None
    calls: Count = None
    pictures: Count = None
    characters: Count = None
    prompt_tokens: Count = None
    completion_tokens: Count = None
    cost_usd: Number = None
    first_called_on: Text = None
    last_called_on: Text = None


@of_benchmarks
def destination_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[DestinationRow]:
    """Rows of `destinations.csv`: data sent per model and destination, graders that ask a model and informants included.

    `requests` are different calls (each turn of a dialogue is one), `calls` the HTTP requests made for them, retries and failures
    included; pictures and characters are counted in each of these. A call that several answers share counts once. What was sent for answers
    of the previous revision and their grades is counted too; earlier ones stand in the ledger alone. Destination and day are
    those recorded with each answer and each failure. An answer from before they were recorded counts for the destination in the model's
    YAML today. A call that never connected sent nothing and is not counted.
    """
    name = benchmark.name
    for model, responses in benchmark.responses.items():
        answers = [*responses, *benchmark.earlier_responses.get(model, [])]
        yield from _destinations_of(name, model, [call for call in distinct_calls(answers) if call.requests], study.models[model])
        informed = dict.fromkeys(call for row in answers for call in row.informant_calls if call.requests)
        if informed:
            yield from _destinations_of(name, f"{INFORMANT} of {model}", informed, study.models[model])
    for grader, config in study.all_graders.items():
        if config.model is not None:
            # answers with planted errors are sent like those of a model
            sources = (benchmark.grades, benchmark.earlier_grades, {key: grades for key, (_, grades) in benchmark.answer_tests.items()})
            grades = [grade for source in sources for (_, who), own in source.items() if who == grader for grade in own]
            grades += benchmark.planted_grades.get(grader, [])
            yield from _destinations_of(name, f"{GRADER}{grader}", _grader_calls(grades), config.model)


def _grader_calls(grades: Iterable[Grade]) -> list[SentCall]:
    """Return the calls of a grader, each once: one call graded all criteria of a text, and all equal answers to an item."""
    # a grader has a ledger for each model, so equal calls for two models were made twice
    calls = dict.fromkeys((grade.model, call) for grade in grades for call in grade.calls or _as_one_call(grade))
    return [replace(call, key=f"{model} {call.key}") for model, call in calls if call.requests]


def _as_one_call(grade: Grade) -> tuple[SentCall, ...]:
    """Return a grade of a former version, which has no `calls`, as one call; none if nothing was sent."""
    if not grade.attempts or not (grade.destination or grade.state is not GradeState.FAILED):
        return ()
    call = SentCall(
        key=f"{grade.item_id} {grade.text_sha256}",
        requests=grade.attempts,
        characters=grade.characters_sent,
        destination=grade.destination,
        called_on=grade.called_on,
    )
    return (call,)


def _destinations_of(benchmark: str, who: str, sent: Iterable[SentCall], model: ModelConfig) -> list[DestinationRow]:
    """Return one row per destination; one for the present destination when nothing was sent."""
    today = _destination(model)
    # answers from before destinations were recorded count for the present one
    places = defaultdict[str, list[SentCall]](list)
    for one in sent:
        places[one.destination or today].append(one)
    return [_destination_row(benchmark, who, place, places[place]) for place in sorted(places) or [today]]


def _destination_row(benchmark: str, who: str, place: str, sent: list[SentCall]) -> DestinationRow:
    days = sorted({one.called_on for one in sent} - {""})
    costs = [one.cost_usd for one in sent if one.cost_usd is not None]
    return DestinationRow(
        benchmark=benchmark,
        model=who,
        destination=place,
        requests=len({one.key for one in sent}),
        calls=sum(one.requests for one in sent),
        pictures=sum(one.pictures * one.requests for one in sent),
        characters=sum(one.characters * one.requests for one in sent),
        prompt_tokens=sum_of_known([one.prompt_tokens for one in sent]),
        completion_tokens=sum_of_known([one.completion_tokens for one in sent]),
        cost_usd=float(sum(costs)) if costs else None,
        first_called_on=days[0] if days else None,
        last_called_on=days[-1] if days else None,
    )


def _destination(model: ModelConfig) -> str:
    if model.backend == "imported":
        return NOT_ASKED
    try:
        return destination_of(model)
    except ConfigError:  # then nothing was sent: the engine makes the same check first
        return NOT_KNOWN


def destinations_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise who received de-identified data."""
    rows = tables["destinations"]
    # only destinations other than this machine
    abroad = sorted({row["destination"] for row in rows if row["requests"] and row["destination"] != "local"})
    calls = counted(sum(row["calls"] or 0 for row in rows), "call")
    pictures = sum(row["pictures"] or 0 for row in rows)
    nothing = "No data left this machine to produce the answers and grades of this run."
    return Takeaway(
        f"De-identified data went to {listing(abroad)}." if abroad else nothing,
        f"{calls}, {counted(pictures, 'picture')}" if pictures else calls,
    )


DESTINATIONS = Table(
    name="destinations",
    row=DestinationRow,
    rows=destination_rows,
    suppression=None,
    takeaways={"left": destinations_takeaway},
)


MONEY = ("cost_usd", "usd_per_item", "usd_per_right_answer")


@dataclass(frozen=True, kw_only=True)
class CostRow(ModelRow):
    """All requests to one model on one benchmark (arm `all`), or its scored answers (arm full, strategy direct).

    USD are text with nine decimals, because an answer may cost less than a millionth of a dollar.
    """

    arm: str
    title: Text = None
    shared_id: Text = None
    pass1: Number = None
    pass1_low: Number = None
    pass1_high: Number = None
    n_items: Count = None
    n_patients: Count = None
    requests: Count = None
    answered: Count = None
    prompt_tokens: Count = None
    completion_tokens: Count = None
    completion_tokens_per_item: Number = None
    cached_tokens: Count = None
    cache_write_tokens: Count = None
    reasoning_tokens: Count = None
    image_tokens: Count = None
    service_tiers: Text = None
    cost_usd: Text = None
    usd_per_item: Text = None
    usd_per_right_answer: Text = None
    priced_on: Text = None
    on_frontier: Flag = None
    note: Text = None
    latency_median_s: Number = None
    latency_p90_s: Number = None
    attempts: Count = None
    first_called_on: Text = None
    last_called_on: Text = None
    served_models: Count = None
    fingerprints: Count = None


def request_rows(study: Study) -> list[CostRow]:
    """Rows of the arm `all`: only they and `destinations.csv` hold latency, attempts or dates.

    `requests` are the expected answers. Tokens, cost and `attempts` (HTTP requests) count a call once, however many answers share it.
    """
    return [
        _cost_row({"benchmark": name, "model": model, "arm": ALL_ARMS} | _requests(responses))
        for name, benchmark in study.benchmarks.items()
        for model, responses in benchmark.responses.items()
    ]


def _cost_row(cells: Cells) -> CostRow:
    return CostRow(**(cells | {name: f"{cells[name]:.9f}" for name in MONEY if cells.get(name) is not None}))


def _requests(responses: list[Response]) -> Cells:
    latencies = [row.latency_s for row in responses if row.latency_s is not None]
    calls = distinct_calls(responses)
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    dates = sorted({row.called_on for row in responses} - {""})
    served = served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)
    return {
        "requests": len(responses),
        "answered": sum(row.state not in MISSING_STATES for row in responses),
        "prompt_tokens": sum_of_known([call.prompt_tokens for call in calls]),
        "completion_tokens": sum_of_known([call.completion_tokens for call in calls]),
        **usage_cells(calls),
        "latency_median_s": float(np.median(latencies)) if latencies else None,
        "latency_p90_s": float(np.quantile(latencies, 0.9)) if latencies else None,
        "cost_usd": float(sum(costs)) if costs else None,
        "attempts": sum(call.requests for call in calls),
        "first_called_on": dates[0] if dates else None,
        "last_called_on": dates[-1] if dates else None,
        "served_models": len({one.name for one in served}),
        "fingerprints": len(served),
    }


def usage_cells(calls: Sequence[SentCall]) -> Cells:
    """Return the parts of the tokens of some calls that providers report, and the service tiers that they name."""
    parts = {name: total_of(calls, name) for name in PARTS}
    written = [count for name in ("cache_write_tokens", "cache_write_1h_tokens") if (count := parts.pop(name)) is not None]
    tiers = sorted({call.service_tier for call in calls} - {""})
    return {**parts, "cache_write_tokens": sum(written) if written else None, "service_tiers": "; ".join(tiers) or None}


def cost_rows(study: Study, leaderboard: Sequence[Mapping[str, Any]]) -> list[CostRow]:
    """Rows of the arm full: the answers under the strategy direct whose items have a reference; a call that several answers share counts once.

    Costs are by the price list in the model's YAML, in USD, without calls that failed or were repeated; they are empty without a
    price or if the tokens of any answer are not known. `shared_id`: the id, where other models of the run ask it with other settings, such
    as efforts of thinking. `on_frontier`: among the models with a rank and a price, none that costs at most
    as much is better, and none that is at least as good costs less. (Our rule.)
    """
    board = {(row["benchmark"], row["model"]): row for row in leaderboard}
    rows, shared = [], families(study.models.values())
    for name, benchmark in study.benchmarks.items():
        models = [model for model in study.models if model not in study.readers]
        found = [_row(benchmark, model, study.models[model], board[name, model], study.settings.max_missing_fraction) for model in models]
        rows += _with_frontier(found, {model for model in models if board[name, model].get("rank") is not None})
    return [_cost_row(row | {"shared_id": shared.get(row["model"])}) for row in rows]


def _row(benchmark: BenchmarkStudy, model: str, config: ModelConfig, placed: Mapping[str, Any], most_missing: float) -> Cells:
    scored = {item.item_id for item in benchmark.outcomes.items}
    answers = [row for row in benchmark.responses[model] if _counts(row, scored)]
    row: Cells = {"benchmark": benchmark.name, "model": model, "arm": FULL, "title": config.title} | {name: placed[name] for name in PASS1}
    row |= {"n_items": placed["n_items"], "n_patients": placed["n_patients"], "answered": len(answers)}
    calls = [call for call in distinct_calls(answers) if call.answered]
    row |= {name: total_of(calls, name) for name in ("prompt_tokens", "completion_tokens")} | usage_cells(calls)
    if row["completion_tokens"] is not None and answers:
        row["completion_tokens_per_item"] = row["completion_tokens"] / len(answers)
    # without a price, or with unknown tokens, the row has a note instead of costs
    prices = config.prices
    if prices is None or not (prices.usd_per_million_prompt_tokens or prices.usd_per_million_completion_tokens):
        return row | {"note": _why_no_price(model, config)}
    unknown = sum(answer.cost_usd is None for answer in answers)
    row["priced_on"] = prices.dated
    if unknown or not answers:
        return row | {"note": _why_unknown(config, answers, unknown) if answers else "no answer"}
    # cost per right answer: all money by the answers that pass; among answers that nobody graded may be right ones
    counts = benchmark.outcomes.counts[Key(model)]
    right, ungraded = int(counts.passes.sum()), int(counts.not_graded.sum())
    known = ungraded <= most_missing * len(answers)
    spent = sum(call.cost_usd or 0.0 for call in calls)
    row |= {"cost_usd": spent, "usd_per_item": spent / len(answers), "usd_per_right_answer": spent / right if right and known else None}
    notes = [] if right and known else ["no right answer"] if known else ["too many answers are not graded"]
    notes += [] if placed.get("rank") is not None else ["no rank: not on the frontier"]
    return row | {"note": "; ".join(notes)}


def _counts(row: Response, scored: set[str]) -> bool:
    return is_headline(row) and row.state not in MISSING_STATES and row.item_id in scored


def _why_unknown(config: ModelConfig, answers: Sequence[Response], unknown: int) -> str:
    """Say why so many answers have no price: a service tier or a kind of token has none, or the tokens are not known."""
    calls = [call for answer in answers for call in answer.calls if call.answered]
    tiers = sorted({call.service_tier for call in calls if price_list(config, call.service_tier) is None})
    if tiers:
        return f"no prices of the service tier {listing(tiers)} in its yaml"
    counted = [call for call in calls if call.prompt_tokens is not None and call.completion_tokens is not None]
    if any(cost_usd(config, call) is None for call in counted):
        return "no price of tokens written to the cache in its yaml"
    return f"the tokens of {unknown} of {len(answers)} answers are not known"


def _why_no_price(model: str, config: ModelConfig) -> str:
    if config.backend == "imported":
        return "no price: answers imported"
    if config.prices is not None:
        return "price 0 in its yaml"
    try:
        local = destination_of(config) == LOCAL
    except ConfigError:  # then its destination is not known
        local = False
    return "no price: runs here" if local else "no price in its yaml"


def _with_frontier(rows: list[Cells], ranked: set[str]) -> list[Cells]:
    """Mark the models with a price and a rank by whether they are on the frontier; the others have no mark."""
    priced = [row for row in rows if row.get("usd_per_item") is not None and row["pass1"] is not None and row["model"] in ranked]
    return [row | {"on_frontier": not any(_beats(other, row) for other in priced)} if row in priced else row for row in rows]


def _beats(one: Cells, other: Cells) -> bool:
    ahead = (other["usd_per_item"] - one["usd_per_item"], one["pass1"] - other["pass1"])
    return min(ahead) >= 0 and max(ahead) > 0


def cost_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise what was paid, as far as prices are known."""
    rows = [row for row in tables["costs"] if row["arm"] == ALL_ARMS]
    requests = counted(sum(row["requests"] or 0 for row in rows), "request")
    paid = [row for row in rows if row["cost_usd"] is not None]
    priced = len({row["model"] for row in paid})
    models = counted(len({row["model"] for row in rows}), "model")
    text = (
        f"{sum(float(row['cost_usd']) for row in paid):,.2f} USD by the prices of {priced} of {models}."
        if paid
        else "Prices are not known for any model of this run."
    )
    return Takeaway(text, f"{requests} to {models}")


@needs(leaderboard_rows)
def all_rows(study: Study, leaderboard: Sequence[Mapping[str, Any]]) -> list[CostRow]:
    """Rows of `costs.csv`: all requests, then the scored answers."""
    return [*request_rows(study), *cost_rows(study, leaderboard)]


TABLE = Table(
    name="costs",
    row=CostRow,
    rows=all_rows,
    # rows of all requests are not about patients: they count none, and are always shown
    suppression=Suppression(f"{MODEL} arm title shared_id priced_on service_tiers note", whole=False),
    takeaways={"cost": cost_takeaway},
)
