"""Costs of the calls, and data that left the machine: `efficiency.csv` and `destinations.csv`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.records.served import served_by
from neuralmedbench.records.words import counted, listing
from neuralmedbench.tables.declare import Table, of_study
from neuralmedbench.tables.rows import Cells, ResultRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway

NOT_KNOWN, NOT_ASKED = "not known", "not asked here"
GRADER = "grader "
"""Prefix of a grader's name in lists of models."""


@dataclass(frozen=True, kw_only=True)
class EfficiencyRow(ResultRow):
    """The calls of one model on one benchmark; USD, seconds."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    requests: int | None = None
    answered: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_median_s: float | None = None
    latency_p90_s: float | None = None
    cost_usd: float | None = None
    attempts: int | None = None
    first_called_on: str | None = None
    last_called_on: str | None = None
    served_models: int | None = None
    fingerprints: int | None = None


def efficiency_rows(study: Study) -> list[EfficiencyRow]:
    """Rows of `efficiency.csv`; only this table and `destinations.csv` hold latency, attempts or dates."""
    return [
        EfficiencyRow(benchmark=name, model=model, **_efficiency(responses))
        for name, benchmark in study.benchmarks.items()
        for model, responses in benchmark.responses.items()
    ]


def _efficiency(responses: list[Response]) -> Cells:
    latencies = [row.latency_s for row in responses if row.latency_s is not None]
    costs = [row.cost_usd for row in responses if row.cost_usd is not None]
    dates = sorted({row.called_on for row in responses} - {""})
    served = served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)
    return {
        "requests": len(responses),
        "answered": sum(row.state not in MISSING_STATES for row in responses),
        "prompt_tokens": _total([row.prompt_tokens for row in responses]),
        "completion_tokens": _total([row.completion_tokens for row in responses]),
        "latency_median_s": float(np.median(latencies)) if latencies else None,
        "latency_p90_s": float(np.quantile(latencies, 0.9)) if latencies else None,
        "cost_usd": float(sum(costs)) if costs else None,
        "attempts": sum(row.attempts for row in responses),
        "first_called_on": dates[0] if dates else None,
        "last_called_on": dates[-1] if dates else None,
        "served_models": len({one.name for one in served}),
        "fingerprints": len(served),
    }


def _total(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class DestinationRow(ResultRow):
    """Amount of data sent to one destination for one model or grader."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
    destination: str
    requests: int | None = None
    calls: int | None = None
    pictures: int | None = None
    characters: int | None = None
    first_called_on: str | None = None
    last_called_on: str | None = None


def destination_rows(study: Study) -> list[DestinationRow]:
    """Rows of `destinations.csv`: data sent per model and destination, graders that ask a model included.

    Destination and day are those recorded with each answer and each failure. An answer from before they were recorded counts for the
    destination in the model's YAML today. A call that never connected sent nothing and is not counted.
    """
    rows = []
    for name, benchmark in study.benchmarks.items():
        for model, responses in benchmark.responses.items():
            # identical requests are one call
            calls = {row.call_keys or response_key(row): _sent_for(row) for row in responses if row.attempts and _was_sent(row)}
            rows += _rows_of(name, model, list(calls.values()), study.models[model])
        for grader, config in study.all_graders.items():
            if config.model is not None:
                ours = [grade for (_, one), grades in benchmark.grades.items() if one == grader for grade in grades]
                ours += benchmark.planted_grades.get(grader, [])  # answers with planted errors are sent like those of a model
                graded = [grade for grade in ours if grade.attempts and (grade.destination or grade.state is not GradeState.FAILED)]
                # one call graded one text: all criteria of it, and all identical answers to an item
                texts = {(grade.model, grade.item_id, grade.text_sha256): _sent_to_grade(grade) for grade in graded}
                rows += _rows_of(name, f"{GRADER}{grader}", list(texts.values()), config.model)
    return rows


@dataclass(frozen=True)
class _Transfer:
    destination: str
    calls: int
    pictures: int
    characters: int
    day: str


def _was_sent(row: Response) -> bool:
    return bool(row.destination or row.call_keys) or row.state is not ResponseState.FAILED


def _sent_for(row: Response) -> _Transfer:
    return _Transfer(row.destination, row.attempts, row.images_sent, row.characters_sent, row.called_on)


def _sent_to_grade(grade: Grade) -> _Transfer:
    return _Transfer(grade.destination, grade.attempts, 0, grade.characters_sent, grade.called_on)


def _rows_of(benchmark: str, who: str, sent: list[_Transfer], model: ModelConfig) -> list[DestinationRow]:
    """Return one row per destination; one for the present destination when nothing was sent."""
    today = _destination(model)
    # answers from before destinations were recorded count for the present one
    places = defaultdict[str, list[_Transfer]](list)
    for one in sent:
        places[one.destination or today].append(one)
    return [_row(benchmark, who, place, places[place]) for place in sorted(places) or [today]]


def _row(benchmark: str, who: str, place: str, sent: list[_Transfer]) -> DestinationRow:
    days = sorted({one.day for one in sent} - {""})
    return DestinationRow(
        benchmark=benchmark,
        model=who,
        destination=place,
        requests=len(sent),
        calls=sum(one.calls for one in sent),
        pictures=sum(one.pictures for one in sent),
        characters=sum(one.characters for one in sent),
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
    pictures = counted(sum(row["pictures"] or 0 for row in rows), "picture")
    nothing = "Nothing left this machine for the answers and grades of this run."
    return Takeaway(f"De-identified data went to {listing(abroad)}." if abroad else nothing, f"{calls}, {pictures}")


def cost_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise what was paid, as far as prices are known."""
    rows = tables["efficiency"]
    requests = counted(sum(row["requests"] or 0 for row in rows), "request")
    paid = [row for row in rows if row["cost_usd"] is not None]
    priced = len({row["model"] for row in paid})
    models = counted(len({row["model"] for row in rows}), "model")
    text = (
        f"{sum(row['cost_usd'] for row in paid):,.2f} USD by the prices of {priced} of {models}."
        if paid
        else "No price is known for a model of this run."
    )
    return Takeaway(text, f"{requests} to {models}")


EFFICIENCY = Table(
    name="efficiency",
    row=EfficiencyRow,
    rows=of_study(efficiency_rows),
    suppression=None,
    takeaways={"cost": cost_takeaway},
)

DESTINATIONS = Table(
    name="destinations",
    row=DestinationRow,
    rows=of_study(destination_rows),
    suppression=None,
    takeaways={"left": destinations_takeaway},
)
