"""A comparison of two models that is stated before they are asked: patients come in batches until it is decided (`nmb run decide`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.load import check
from neuralmedbench.config.pipeline import ComparisonConfig
from neuralmedbench.config.workflow import Run, merged_config
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.estimates.comparisons import patient_gaps
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.sequential import SequentialInterval, confidence_sequence
from neuralmedbench.files.tables import read_records
from neuralmedbench.recording.limited_run import read_small_run
from neuralmedbench.records.items import Gold, Item, is_headline
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score
from neuralmedbench.records.words import counted, percent, points, points_span
from neuralmedbench.tables.outcomes import Key, gather_outcomes

NOT_STATED = (
    "no comparison is stated: write `comparison` with stated_on, benchmark, first, second and margin into the configuration before the two are"
    " asked (docs/configuration.md)"
)


@dataclass(frozen=True, kw_only=True)
class ComparisonLook:
    """What a stated comparison shows with the patients asked so far.

    Attributes
    ----------
    interval : SequentialInterval
        Of first minus second, in pass@1 of patients.
    asked, all_patients : int
        Patients with an answer of either model, and of the benchmark.
    missing : float
        The larger share of missing answers of the two models.
    asked_on : str
        Day of the first answer.
    """

    comparison: ComparisonConfig
    interval: SequentialInterval
    asked: int
    all_patients: int
    missing: float
    most_missing: float
    confidence: float
    asked_on: str

    @property
    def outcome(self) -> str:
        """What is decided (`SequentialInterval.outcome`); nothing while too many answers are missing."""
        return self.interval.outcome(self.comparison.margin) if self.missing <= self.most_missing else ""


def comparison_run(patients: int, configfiles: Sequence[Path] = ()) -> Run:
    """Write the configfile of a stated comparison among its results, and read the run with it.

    Parameters
    ----------
    patients : int
        Patients that are asked, at least 1.
    configfiles : sequence of Path
        Configuration files in which it is stated, with settings, graders and caps.

    Returns
    -------
    Run
        The run `decide-<benchmark>` of the two models: its results lie in a folder of their own, and the answers in the ledgers.

    Raises
    ------
    ConfigError
        If no comparison is stated, or the run has mistakes: all of them.
    """
    base = merged_config(configfiles)
    stated = check(ComparisonConfig, base.get("comparison") or {}, "comparison")
    if stated.benchmark is None:
        raise ConfigError(NOT_STATED)
    graders = list(base.get("graders") or ["rubric"])
    chosen = {"benchmarks": [stated.benchmark], "models": [stated.first, stated.second], "graders": graders}
    return read_small_run(f"decide-{stated.benchmark}", {**chosen, "limit": patients, "limit_unit": "patients"}, configfiles)


def patients_of(benchmark: str) -> int:
    """Count the patients of a benchmark whose prompts are there, under the arm full."""
    requests = read_records(Path(f"data/prompts/{benchmark}.parquet"), Request)
    return len({row.patient_id for row in requests if is_headline(row)})


def look_at(run: Run) -> ComparisonLook:
    """Judge a stated comparison by the scores that there are; nothing is asked.

    Parameters
    ----------
    run : Run
        The run in which it is stated, or as `comparison_run` returned it.

    Returns
    -------
    ComparisonLook
        Patients count alike, however many items they have; items with a missing answer of either model are left out.

    Raises
    ------
    ConfigError
        If no comparison is stated, or its benchmark or a model is not in the run lists.
    DataError
        If the scores of one of the two are not there.
    """
    stated, settings = run.config.comparison, run.config.statistics
    if stated.benchmark is None:
        raise ConfigError(NOT_STATED)
    name, models, folder = stated.benchmark, [str(stated.first), str(stated.second)], Path(run.results)
    if absent := [one for one in (name, *models) if one not in {*run.benchmarks, *run.models}]:
        message = f"comparison: {', '.join(absent)} is not in the run lists; add it, or let `nmb run decide` ask"
        raise ConfigError(message)
    scores, responses = dict[str, list[Score]](), list[Response]()
    for model in models:
        path = folder / "scores" / name / f"{model}.parquet"
        if not path.is_file():
            message = f"{path.as_posix()} is not there: `nmb run decide` asks the two models, or run the workflow with both in `models`"
            raise DataError(message)
        revision = run.models[model].revision
        scores[model] = [row for row in read_records(path, Score) if row.revision == revision]
        table = read_records(folder / "responses" / name / f"{model}.parquet", Response)
        responses += [row for row in table if row.revision == revision and is_headline(row)]
    asked = {row.item_id for row in responses}
    items, gold = read_records(Path(f"data/items/{name}.parquet"), Item), read_records(Path(f"data/gold/{name}.parquet"), Gold)
    outcomes = gather_outcomes(
        name,
        str(run.benchmarks[name].axis),
        [item for item in items if item.item_id in asked],
        gold,
        scores=scores,
        sampled=dict.fromkeys(models, True),
    )
    by = outcomes.by_patient(IntervalSettings(confidence=settings.confidence))
    first, second = (outcomes.pass1_of_complete_items(Key(model)) for model in models)
    return ComparisonLook(
        comparison=stated,
        interval=confidence_sequence(patient_gaps(first, second, by), settings.confidence),
        asked=len({row.patient_id for row in responses}),
        all_patients=patients_of(name),
        missing=max(outcomes.counts[Key(model)].missing_fraction for model in models),
        most_missing=settings.max_missing_fraction,
        confidence=settings.confidence,
        asked_on=min((row.called_on for row in responses if row.called_on), default=""),
    )


def look_line(look: ComparisonLook) -> str:
    """State the interval and what is decided, in one line."""
    stated, interval = look.comparison, look.interval
    first, second = str(stated.first), str(stated.second)
    span = points_span(interval.low, interval.high)
    head = f"{counted(interval.patients, 'patient')} of {look.all_patients}: {first} minus {second} {points(interval.value)} points"
    found = {
        "first": f"decided: {first} is better",
        "second": f"decided: {second} is better",
        "alike": f"decided: they differ by less than {points(stated.margin, plus='')} points",
        "": "not decided",
    }[look.outcome]
    if look.missing > look.most_missing:
        found = f"not decided: {percent(look.missing, 1)} of the answers are missing; `nmb run incomplete` says why"
    return f"{head} ({span}, {percent(look.confidence)} at all looks together); {found}"


def stated_late(look: ComparisonLook) -> str:
    """Warn of a comparison that was stated after its first answer: it may have been chosen by what they show; empty otherwise."""
    stated = look.comparison.stated_on
    if stated is None or not look.asked_on or stated.isoformat() <= look.asked_on:
        return ""
    return (
        f"stated on {stated.isoformat()}, after the first answer of {look.asked_on}: if what was known chose the comparison, its error is larger"
        " than stated"
    )
