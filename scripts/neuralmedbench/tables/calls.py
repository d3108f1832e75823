"""Data that left the machine: `destinations.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.records.responses import SentCall, distinct_calls
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.records.words import counted, listing
from neuralmedbench.tables.declare import Count, ModelRow, Number, Table, Tables, Takeaway, Text, of_benchmarks
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
        yield from _rows_of(name, model, [call for call in distinct_calls(answers) if call.requests], study.models[model])
        informed = dict.fromkeys(call for row in answers for call in row.informant_calls if call.requests)
        if informed:
            yield from _rows_of(name, f"{INFORMANT} of {model}", informed, study.models[model])
    for grader, config in study.all_graders.items():
        if config.model is not None:
            # answers with planted errors are sent like those of a model
            sources = (benchmark.grades, benchmark.earlier_grades, {key: grades for key, (_, grades) in benchmark.answer_tests.items()})
            grades = [grade for source in sources for (_, who), own in source.items() if who == grader for grade in own]
            grades += benchmark.planted_grades.get(grader, [])
            yield from _rows_of(name, f"{GRADER}{grader}", _grader_calls(grades), config.model)


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


def _rows_of(benchmark: str, who: str, sent: Iterable[SentCall], model: ModelConfig) -> list[DestinationRow]:
    """Return one row per destination; one for the present destination when nothing was sent."""
    today = _destination(model)
    # answers from before destinations were recorded count for the present one
    places = defaultdict[str, list[SentCall]](list)
    for one in sent:
        places[one.destination or today].append(one)
    return [_row(benchmark, who, place, places[place]) for place in sorted(places) or [today]]


def _row(benchmark: str, who: str, place: str, sent: list[SentCall]) -> DestinationRow:
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
    nothing = "Nothing left this machine for the answers and grades of this run."
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
