"""The inputs of all tables, read from the files of one run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neuralmedbench.benchmarks.question_items import question_outcomes, read_questions
from neuralmedbench.config.arms import ArmVariant, load_arms
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.juries import jury_members
from neuralmedbench.config.layouts import Layout
from neuralmedbench.config.load import load_benchmark, load_grader, load_model, load_readiness
from neuralmedbench.config.model import GraderConfig, ModelConfig
from neuralmedbench.config.pipeline import ComparisonConfig, GraderChecksConfig, ReportConfig, StatisticsConfig
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.config.section import Section
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.bids import Participant, describe_participant, read_participants
from neuralmedbench.files.case_flow import flow_of_cases
from neuralmedbench.files.cases import read_audit, read_case, read_case_table, read_pictures
from neuralmedbench.files.json_files import read_json, read_json_record
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_urgency, read_vocabulary, urgency_path
from neuralmedbench.ratings.form import RatingForm, read_form
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.records.case import Audit, PictureFate
from neuralmedbench.records.items import Disclosure, Gold, Item, Kind, Strategy
from neuralmedbench.records.questions import IMPORT_RECORD, ImportRecord
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import PATIENT
from neuralmedbench.records.scores import PLANTED, Grade, GradeState, PlantedAnswer, Rating, RatingPart, Score, SimilarityRow
from neuralmedbench.records.vocabulary import Urgency, Vocabulary
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.planted.checks import EditCheck, check_grader, unused_criteria, usable_grades
from neuralmedbench.scoring.planted.planting import References, planted_in_answers
from neuralmedbench.scoring.rubric import is_outside
from neuralmedbench.tables.floors import Floor, floors
from neuralmedbench.tables.outcomes import FULL, Outcomes, gather_outcomes

Record = TypeVar("Record")
K = TypeVar("K", str, tuple[str, str])
R = TypeVar("R", Score, Response, Grade)
Numbered = TypeVar("Numbered", Score, Response, Grade, SimilarityRow)


class Stated(NamedTuple):
    """A comparison of two models on a benchmark, and the day on which it was written down (YYYY-MM-DD)."""

    on: str
    benchmark: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True)
class BenchmarkStudy:
    """One benchmark of a run.

    Attributes
    ----------
    scores, responses : dict of str to list
        By model; of its current revision.
    earlier : dict of str to list of Score
        By model: scores of the previous revision.
    earlier_responses, earlier_grades : dict
        Answers of the previous revision by model, and their grades by model and grader: what was sent for them is counted too.
    grades : dict of (str, str) to list of Grade
        By model and grader; of the current revision.
    flow : list of dict
        Cases of the table with their fate (scans, and pictures of one's own patients), as `files.case_flow` tells it.
    pictures : list of PictureFate
        Pictures with their fate (pictures).
    questions : list of (str, str)
        Rows of an imported data set with their fate: step and reason.
    sampled : dict of str to bool
        By model: True if its temperature is above 0.
    nonfinite : dict of str to int
        By kind: number of non-finite values (NaN, infinity), which were left out.
    planted, planted_grades : list of PlantedAnswer, dict of str to list of Grade
        Answers with planted errors, made from the references, and what each grader made of them.
    answer_tests : dict of (str, str) to tuple
        By model and grader: errors planted in answers of the model, and what the grader made of them.
    participants : dict of str to Participant
        Age, sex and scanner by case, as kept by de-identification; empty for imported data sets.
    leaking, leaks_accepted, stated : int
        Items whose answer is part of a request, those of them that a person accepted with a reason, and others that state their answer under
        the arm full.
    arms : dict of str to ArmVariant
        Its arms that have a file.
    disclosures : list of Disclosure
        What its arms show that was chosen with the answer.
    requests : list of Request
        As sent; only of a benchmark in which models ask for evidence or views.
    limit : int
        Most answers of a model; 0 unless the run is limited.
    layouts : dict of str to Layout
        Documented input layouts by the arm that shows nothing else.
    """

    name: str
    config: BenchmarkConfig
    items: list[Item]
    gold: list[Gold]
    scores: dict[str, list[Score]]
    responses: dict[str, list[Response]]
    grades: dict[tuple[str, str], list[Grade]]
    similarity: list[SimilarityRow]
    audit: Audit
    flow: list[dict[str, Any]]
    pictures: list[PictureFate]
    questions: list[tuple[str, str]]
    sampled: dict[str, bool]
    vocabulary: Vocabulary
    leaking: int = 0
    leaks_accepted: int = 0
    stated: int = 0
    participants: dict[str, Participant] = field(default_factory=dict)
    earlier: dict[str, list[Score]] = field(default_factory=dict)
    earlier_responses: dict[str, list[Response]] = field(default_factory=dict)
    earlier_grades: dict[tuple[str, str], list[Grade]] = field(default_factory=dict)
    nonfinite: dict[str, int] = field(default_factory=dict)
    planted: list[PlantedAnswer] = field(default_factory=list)
    planted_grades: dict[str, list[Grade]] = field(default_factory=dict)
    answer_tests: dict[tuple[str, str], tuple[list[PlantedAnswer], list[Grade]]] = field(default_factory=dict)
    arms: dict[str, ArmVariant] = field(default_factory=dict)
    disclosures: list[Disclosure] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    limit: int = 0
    layouts: dict[str, Layout] = field(default_factory=dict)

    @cached_property
    def checks(self) -> dict[str, list[EditCheck]]:
        """What each grader made of planted errors; empty for a grader that was not tested."""
        return {grader: check_grader(self.planted, grades) for grader, grades in self.planted_grades.items()}

    @cached_property
    def answer_checks(self) -> dict[tuple[str, str], list[EditCheck]]:
        """What each grader made of errors planted in answers of each model."""
        return {key: check_grader(*test) for key, test in self.answer_tests.items()}

    @cached_property
    def outcomes(self) -> Outcomes:
        """Scores as arrays; of a limited run over the items that a model was asked."""
        asked = {row.item_id for rows in self.responses.values() for row in rows}
        items = [item for item in self.items if item.item_id in asked] if self.limit else self.items
        return gather_outcomes(
            self.name, str(self.config.axis), items, self.gold, scores=self.scores, sampled=self.sampled, responses=self.responses
        )

    @cached_property
    def outside(self) -> npt.NDArray[np.bool_]:
        """Items whose reference the vocabulary does not have, of those of `outcomes`."""
        pairs = zip(self.outcomes.items, self.outcomes.gold, strict=True)
        return np.array([is_outside(item, ReferenceAnswer.of(gold, self.vocabulary)) for item, gold in pairs], dtype=bool)

    @property
    def cluster(self) -> str:
        """What counts as one patient: `patient`; where an imported set names none, the `pair`, the `case`, or the `item` itself."""
        return cluster_noun(self.config, self.items)

    @cached_property
    def floors(self) -> dict[str, Floor]:
        """What the best constant answer earns, by metric."""
        return floors(self.outcomes, self.vocabulary)


def cluster_noun(config: BenchmarkConfig, items: Sequence[Item]) -> str:
    """Name what counts as one patient of a benchmark."""
    named = config.has_cases or config.subjects == "phantom" or any(item.patient_id != item.case_id for item in items)
    if named or not items:
        return PATIENT
    if all(item.patient_id == item.pair_id for item in items):
        return "pair"
    return "item" if len({item.case_id for item in items}) == len(items) else "case"


@dataclass(frozen=True, kw_only=True)
class Study:
    """A run: benchmarks, models and graders in the order of the run lists, ratings and their form, a site's conditions, vocabulary, settings."""

    benchmarks: dict[str, BenchmarkStudy]
    models: dict[str, ModelConfig]
    graders: dict[str, GraderConfig]
    ratings: list[Rating]
    form: RatingForm
    readiness: ReadinessConfig
    vocabulary: Vocabulary
    settings: IntervalSettings
    members: dict[str, GraderConfig] = field(default_factory=dict)
    urgency: Urgency = field(default_factory=Urgency)
    grader_floor: float = GraderChecksConfig().floor
    limit: int = 0
    """Most answers per model and benchmark; 0 unless the run is limited."""
    stated: Stated | None = None
    """The comparison of `comparison` in the configuration; None if none is stated."""

    @property
    def all_graders(self) -> dict[str, GraderConfig]:
        """All graders: the run list, then the members of its juries."""
        return self.graders | self.members

    @property
    def readers(self) -> dict[str, str]:
        """People who answered the questions (`clinician`), and programs in their place (`simulated`), by name."""
        return {name: model.reader for name, model in self.models.items() if model.reader}

    def unused_criteria(self, benchmark: str, model: str, grader: str) -> frozenset[str]:
        """Return the criteria for which a grader is not used for the answers of a model."""
        one = self.benchmarks[benchmark]
        checks = [*one.checks.get(grader, ()), *one.answer_checks.get((model, grader), ())]
        return unused_criteria(checks, self.grader_floor, self.settings.confidence)

    def used_grades(self, benchmark: str, model: str, grader: str, *, earlier: bool = False) -> list[Grade]:
        """Return the grades of a grader for a model, without the criteria for which it is not used; of its earlier revision if asked for."""
        one = self.benchmarks[benchmark]
        grades = (one.earlier_grades if earlier else one.grades).get((model, grader), ())
        return usable_grades(grades, self.unused_criteria(benchmark, model, grader))

    @cached_property
    def sampled_ratings(self) -> list[Rating]:
        """Ratings of drawn answers, adjudicated ones included; second showings and controls are about raters, not models."""
        return [row for row in self.ratings if row.part is RatingPart.SAMPLE]


def is_sampled(model: ModelConfig) -> bool:
    """Return True if repeated answers differ by design: temperature above 0, or the provider's default when none is sent."""
    return model.temperature is None or model.temperature > 0


class StudySettings(Section):
    """What a command is told of a run: its lists, and the sections of the configuration by which it is read and released."""

    benchmarks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    graders: tuple[str, ...] = ()
    limit: int = 0
    grader_checks: GraderChecksConfig = GraderChecksConfig()
    statistics: StatisticsConfig = StatisticsConfig()
    comparison: ComparisonConfig = ComparisonConfig()
    report: ReportConfig = ReportConfig()


def study_of(root: Path, results: Path, vocabulary: Path, settings: StudySettings) -> Study:
    """Read the run of a command; parameters as of `read_study`."""
    intervals = IntervalSettings(**settings.statistics.model_dump(), margin=settings.comparison.margin)
    study = read_study(
        root,
        settings.benchmarks,
        settings.models,
        settings.graders,
        vocabulary=vocabulary,
        settings=intervals,
        grader_floor=settings.grader_checks.floor,
        limit=settings.limit,
        results=results,
    )
    stated = settings.comparison.stated
    return replace(study, stated=Stated(*stated) if stated else None)


def read_study(
    root: Path,
    benchmarks: Sequence[str],
    models: Sequence[str],
    graders: Sequence[str],
    *,
    vocabulary: Path,
    settings: IntervalSettings,
    grader_floor: float = GraderChecksConfig().floor,
    limit: int = 0,
    results: Path = Path("results"),
) -> Study:
    """Read a run.

    Parameters
    ----------
    root : Path
        The repository root; every file lies where the rules put it.
    benchmarks, models, graders : sequence of str
        The run lists.
    vocabulary : Path
        The vocabulary.
    settings : IntervalSettings
        Settings of all intervals.
    grader_floor : float
        Share of planted errors that a grader must detect.
    limit : int
        Of a limited run, otherwise 0: only items that a model was asked are expected.
    results : Path
        Folder of the results of the run, relative to the root.

    Returns
    -------
    Study
        The run.

    Raises
    ------
    ConfigError, DataError
        If a file is absent or does not match its record.
    """
    configs = {name: load_model(root / "config" / "models" / f"{name}.yaml") for name in models}
    listed = {name: load_grader(root / "config" / "graders" / f"{name}.yaml") for name in graders}
    members = jury_members(root / "config", listed)
    known = read_vocabulary(root / vocabulary)
    urgency = read_urgency(root / urgency_path(vocabulary), known)
    return Study(
        benchmarks={
            name: replace(
                _read_benchmark(root, name, configs, [*listed, *members], known=(known, urgency), results=root / results), limit=limit
            )
            for name in benchmarks
        },
        models=configs,
        graders=listed,
        members=members,
        ratings=read_records(root / results / "ratings" / "ratings.parquet", Rating),
        form=read_form(root / "config" / "rating.yaml"),
        readiness=load_readiness(root / "config" / "readiness.yaml"),
        vocabulary=known,
        urgency=urgency,
        settings=settings,
        grader_floor=grader_floor,
        limit=limit,
    )


def _read_benchmark(
    root: Path, name: str, models: dict[str, ModelConfig], graders: Sequence[str], *, known: tuple[Vocabulary, Urgency], results: Path
) -> BenchmarkStudy:
    vocabulary, urgency = known
    config = load_benchmark(root / "config", name)
    arms = load_arms(root / "config", config.arms, name)
    data = root / "data"
    nonfinite = Counter[str]()

    def numbers(path: Path, record: type[Numbered], kind: str) -> list[Numbered]:
        # non-finite values count as absent, and the page states how many there were
        rows, number = drop_nonfinite(read_records(path, record))
        nonfinite[kind] += number
        return rows

    def graded(rows: list[Grade]) -> list[Grade]:
        # a grade whose value was dropped is a failed one
        return [replace(row, state=GradeState.FAILED) if row.value is None and row.state is GradeState.OK else row for row in rows]

    items, gold = read_records(data / "items" / f"{name}.parquet", Item), read_records(data / "gold" / f"{name}.parquet", Gold)
    responses = {model: numbers(results / "responses" / name / f"{model}.parquet", Response, "measurements of calls") for model in models}
    grades = {
        (model, grader): graded(numbers(results / "grades" / name / model / f"{grader}.parquet", Grade, "grades"))
        for model in models
        for grader in graders
    }
    references = References({item.item_id: item for item in items}, {row.item_id: row for row in gold}, vocabulary, urgency)
    answer_tests = {
        key: (planted, [row for row in rows if row.model == PLANTED])
        for key, rows in grades.items()
        if (planted := planted_in_answers(responses[key[0]], rows, references))
    }
    scores = {model: numbers(results / "scores" / name / f"{model}.parquet", Score, "scores") for model in models}
    pictures = list(read_pictures(data / "deidentified" / name / "pictures.json").pictures) if config.kind is Kind.PICTURES else []
    flow = _case_flow(root, name, config)
    leaks = read_json_record(data / "leaks" / f"{name}.json", AnswerLeaks, remedy="run find_answer_leaks again")
    return BenchmarkStudy(
        name=name,
        config=config,
        items=items,
        gold=gold,
        # rows of the previous revision are kept separately, for the tables of changes and of what was sent
        scores=_of_revisions(scores, models),
        earlier=_of_revisions(scores, models, earlier=True),
        responses=_of_revisions(responses, models),
        earlier_responses=_of_revisions(responses, models, earlier=True),
        grades=_of_revisions(grades, models),
        earlier_grades=_of_revisions(grades, models, earlier=True),
        answer_tests=answer_tests,
        layouts={arm.name: arm.layout for arm in arms.values() if arm.layout and arm.shows_all},
        planted=_records_if_there(results / "planted" / f"{name}.parquet", PlantedAnswer),
        planted_grades={
            grader: graded(_records_if_there(results / "grades" / name / PLANTED / f"{grader}.parquet", Grade)) for grader in graders
        },
        similarity=numbers(results / "similarity" / f"{name}.parquet", SimilarityRow, "similarities"),
        audit=read_audit(data / "deidentified" / name / "audit.json"),
        flow=flow,
        pictures=pictures,
        questions=_question_fates(root / config.questions, pictures) if config.questions else [],
        sampled={model: is_sampled(entry) for model, entry in models.items()},
        participants=_participants(root / "data" / "deidentified" / name, config, flow),
        vocabulary=vocabulary,
        arms=arms,
        disclosures=read_records(data / "disclosures" / f"{name}.parquet", Disclosure) if any(arm.chosen for arm in arms.values()) else [],
        requests=read_records(data / "prompts" / f"{name}.parquet", Request)
        if {Strategy.ASK, Strategy.WORKUP, Strategy.VIEWER} & set(config.strategies)
        else [],
        leaking=leaks.leaking,
        leaks_accepted=leaks.accepted,
        stated=leaks.stated(FULL),
        nonfinite={kind: number for kind, number in nonfinite.items() if number},
    )


def _records_if_there(path: Path, record: type[Record]) -> list[Record]:
    return drop_nonfinite(read_records(path, record))[0] if path.is_file() else []


def _case_flow(root: Path, name: str, config: BenchmarkConfig) -> list[dict[str, Any]]:
    """Return the outcome of every case; for scans it was written when their slices were gathered."""
    if config.kind is Kind.SCANS:
        return list(read_json(root / "data" / "slices" / name / "flow.json")["cases"])
    table = root / "config" / "benchmarks" / f"{name}.cases.tsv"
    return flow_of_cases(read_case_table(table), root / "data" / "deidentified" / name) if config.has_cases else []


def _participants(folder: Path, config: BenchmarkConfig, flow: Sequence[dict[str, Any]]) -> dict[str, Participant]:
    """Return what is known of the patient and the scanner of every case; imported data sets have no case records."""
    if config.kind is Kind.SCANS:
        return read_participants(folder / "participants.tsv")
    cases = {case["case_id"]: folder / f"sub-{case['case_id']}" for case in flow if not case["excluded"]}
    return {case: describe_participant(read_case(place / "case.json"), place) for case, place in cases.items()}


def _question_fates(folder: Path, pictures: list[PictureFate]) -> list[tuple[str, str]]:
    """Return the outcome of every question of an imported data set: refused by the import, then as `question_outcomes` says."""
    path, refused = folder / IMPORT_RECORD, list[tuple[str, str]]()
    if path.is_file():
        record = read_json_record(path, ImportRecord, remedy="import the data set again")
        refused = [("refused_import", refusal.reason) for refusal in record.refused]
    return refused + question_outcomes(read_questions(folder), pictures)


def _of_revisions(tables: Mapping[K, list[R]], models: Mapping[str, ModelConfig], *, earlier: bool = False) -> dict[K, list[R]]:
    """Keep the rows of the current revision of each model, or of the one before; planted errors are no answers of a model."""

    def keeps(row: R) -> bool:
        return row.model != PLANTED and (row.revision != models[row.model].revision) is earlier

    return {key: [row for row in rows if keeps(row)] for key, rows in tables.items()}


@cache
def _floats(record: Any) -> tuple[tuple[str, bool], ...]:
    """Return the names of a record's floats, each with True if it may be absent."""
    return tuple((one.name, "None" in str(one.type)) for one in fields(record) if str(one.type) in ("float", "float | None"))


def drop_nonfinite(rows: Sequence[Record]) -> tuple[list[Record], int]:
    """Drop non-finite values (NaN, infinity) from records, and count them.

    Returns
    -------
    rows : list of record
        With None in place of a non-finite value; rows in which the value is required are left out.
    number : int
        Number of values dropped.
    """
    if not rows:
        return [], 0
    record: Any = type(rows[0])
    names = _floats(record)
    kept, number = list[Record](), 0
    for row in rows:
        nonfinite = [(name, optional) for name, optional in names if (value := getattr(row, name)) is not None and not math.isfinite(value)]
        number += len(nonfinite)
        if not nonfinite:
            kept.append(row)
        elif all(optional for _, optional in nonfinite):
            changes: dict[str, Any] = dict.fromkeys(name for name, _ in nonfinite)
            kept.append(replace(row, **changes))  # type: ignore[type-var]
    return kept, number


def nonfinite_statements(study: Study) -> list[str]:
    """State which non-finite values were left out; empty when there were none."""
    parts = [
        f"{benchmark.config.title} ({', '.join(f'{number:,} in {kind}' for kind, number in benchmark.nonfinite.items())})"
        for benchmark in study.benchmarks.values()
        if benchmark.nonfinite
    ]
    return [f"No numbers: values that are infinite or not a number count as absent: {'; '.join(parts)}."] if parts else []
