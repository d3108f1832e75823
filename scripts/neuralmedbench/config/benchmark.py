"""Keys of `config/benchmarks/<benchmark>.yaml`: one benchmark, with its `sequence_map` (which descriptions mean which kind of scan)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from neuralmedbench.config.deidentification import DeidentificationConfig, Profile, Subjects, header_options
from neuralmedbench.config.section import Name, Section
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.case import Plane, VoxelSizes
from neuralmedbench.records.coordinates import Convention
from neuralmedbench.records.items import Arm, Axis, Kind, Strategy
from neuralmedbench.records.views import ViewRules

S = TypeVar("S", bound=str)
Pattern = str | int | float
"""A pattern for a text, or a number that a value must equal."""
AGENT = r"^[A-Za-z0-9]+$"
"""An agent is one word, because it becomes part of a BIDS name."""


class MappedSequence(Section):
    """One entry of `sequence_map`."""

    criteria: dict[str, Pattern | tuple[Pattern, ...]] = Field(
        min_length=1,
        description="Patterns by DICOM keyword (`SeriesDescription`, `ProtocolName`, `ImageType`, `EchoTime`...); for NIfTI by key of its sidecar,"
        " or `FileName` (without suffix). `*` stands for any letters, `?` for one, upper and lower case are equal; put patterns in quotes."
        " A number must be equal. All keys must fit; of a list one entry.",
    )
    sequence: Literal["T1w", "ceT1w", "T2w", "FLAIR", "dwi", "ADC", "SWI", "T2starw", "PDw", "angio", "CT", "ceCT", "none"] | None = Field(
        None, description="Kind of the series that fit; `none` leaves them out. Absent: the kind that is recognised."
    )
    contrast_agent: str | None = Field(
        None,
        pattern=AGENT,
        description="Contrast agent that was given although the headers do not say so, in one word: T1w becomes ceT1w, and CT ceCT.",
    )

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.sequence is None and self.contrast_agent is None:
            message = "give `sequence`, `contrast_agent`, or both"
            raise ValueError(message)
        if self.contrast_agent and self.sequence not in {None, "ceT1w", "ceCT"}:
            message = f"a contrast agent is for `ceT1w` and `ceCT`, not for {self.sequence}"
            raise ValueError(message)
        return self


def _with(chosen: tuple[S, ...], needed: str) -> tuple[S, ...]:
    """Return the list itself; it must contain what the leaderboard needs, without repeats."""
    if needed not in chosen:
        message = f"`{needed}` must be among them: the leaderboard and every difference need it"
        raise ValueError(message)
    if len(set(chosen)) < len(chosen):
        message = "one of them is repeated"
        raise ValueError(message)
    return chosen


class ViewerConfig(Section):
    """What models are shown on request under the strategy `viewer`; what it allows is part of the audit that a person signs."""

    max_views: int = Field(12, ge=1, le=100, description="Budget of views, after which the final answer is requested.")
    planes: tuple[Plane, ...] = Field(tuple(Plane), min_length=1, description="Planes that may be cut: `axial`, `coronal`, `sagittal`.")
    windows: tuple[Literal["own", "dark", "bright", "brain", "blood", "bone", "soft-tissue", "wide"], ...] = Field(
        ("own", "dark", "bright", "brain", "blood", "bone"),
        min_length=1,
        description="Windows that may be used: `own` of a scan, its `dark` half or its `bright` part; of CT those of `slices.ct_windows`.",
    )
    zooms: tuple[int, ...] = Field((1, 2, 4), min_length=1, description="Zooms that may be used; 1 is the whole field of view.")

    @field_validator("zooms")
    @classmethod
    def _show_the_whole(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if 1 not in value or not all(1 <= zoom <= 8 for zoom in value):
            message = "zooms are whole numbers from 1 to 8, with 1 among them"
            raise ValueError(message)
        return value


ArmName = Annotated[str, Field(min_length=1)]
"""An arm: a member of `Arm`, `first_<x>_percent`, or an arm with a file (`config.arms.load_arms` checks that there is one)."""


class BenchmarkConfig(Section):
    """`config/benchmarks/<benchmark>.yaml`: one benchmark."""

    title: str = Field(description="Name shown in the report.")
    kind: Kind = Field(description="`scans`, `pictures` or `text`.")
    axis: Axis = Field(description="`depth`, `breadth` or `control`.")
    source: str = Field(description="`phantoms` (generated), or the folder of its files.")
    answers: str | None = Field(None, description="Answers table (CSV); without one the benchmark runs and is reported as not scored.")
    lesion_masks: str | None = Field(
        None,
        description="Folder with the marked voxels of the main lesion of a case, `<case_id>.nii.gz`, in the space of the reference scan: they"
        " give the lesion's box on each picture. Without a file, position and extent in the answers table do.",
    )
    questions: str | None = Field(
        None, description="Folder of an imported data set (`nmb benchmark import`): questions, answers and the list of its pictures."
    )
    reference_pool: tuple[Name, ...] = Field(
        (),
        description="Models whose answers selected the items (`nmb benchmark curate`): every table and figure marks them, and"
        " if they have a seed, they are asked with seeds other than those of the selection.",
    )
    private: bool = Field(True, description="Own data: not in dvc.yaml, and a run with it is not recorded.")
    record: bool = Field(False, description="Record own data anyway, for a DVC remote of your own.")
    subjects: Subjects = Field("patient", description="Source of the data; determines the kind of audit.")
    profile: Profile = Field("pseudonymised", description="De-identification profile.")
    deidentification: DeidentificationConfig = Field(
        default_factory=DeidentificationConfig, description="What de-identification removes and what it may keep."
    )
    sequence_map: tuple[MappedSequence, ...] = Field(
        (),
        description="Kinds of scans by words of their headers, for all cases; entries of `sequence_overrides` in the case table precede it.",
    )
    voxel_sizes: VoxelSizes | None = Field(
        None,
        description="Statement that counts in NIfTI headers whose voxel sizes differ by more than 2 %: the `sform`, or `pixdim` (the sizes of"
        " the qform); absent: such a scan is not used, and its reason names both.",
    )
    key_file: str | None = Field(None, description="File with the secret key of the pseudonyms; required for own data.")
    allowed_destinations: tuple[str, ...] = Field(
        ("local",),
        description="Where requests may go: `local`, or host names; `http://host` allows plain http to that host too, `batch://host` batches, which a provider keeps for a time.",
    )
    arms: tuple[ArmName, ...] = Field(
        (Arm.FULL, Arm.NO_IMAGE, Arm.NO_TEXT),
        min_length=1,
        description="Variants of the full request, with parts left out or added: `full`, `no_image`, `no_text`, `shuffled_image`,"
        " `first_<x>_percent` (the first x per cent of the words of a case), `findings_disclosed` (an expert's findings in words, added to the full"
        " request), `findings_of_another` (instead, those of a patient with another disease), `findings_and_history` (no pictures), `findings_only`"
        " (neither pictures nor history), `diagnosis_withheld`, `evidence_supplied`, or a file of `config/arms/` ([Arms](arms.md))."
        " An arm omits items that it does not change. `full` must be among them.",
    )
    strategies: tuple[Strategy, ...] = Field(
        (Strategy.DIRECT,),
        min_length=1,
        description="How an answer is requested: `direct`, which must be among them; `cot` asks for steps first; `self_consistency` asks as `direct` and lets the"
        " samples vote; `few_shot` shows answered examples of the data set; `ask` lets the model ask questions in dialogues, and a matcher answers"
        " from the case alone (dialogues under other strategies have fixed rounds; the two are never pooled); `workup` gives the history and lets the model ask"
        " for one examination a turn; `viewer` (scans) lets it ask for the slices that it wants to see, as far as `viewer` allows.",
    )
    max_questions: int = Field(
        10, ge=1, le=50, description="Most questions under the strategy `ask`, after which the final answer is requested."
    )
    informant: Name | None = Field(
        None,
        description="Under the strategy `ask`, a file of `config/models/`: this language model finds the facts that answer a question, and they are told word for"
        " word (its destination must be allowed, and its own caps hold). Absent: words decide, without a model.",
    )
    max_examinations: int = Field(
        6, ge=1, le=50, description="Most requests under the strategy `workup`, after which the final answer is requested."
    )
    workup_cases: tuple[str, ...] = Field(
        (),
        description="Cases (`case_id`) that are asked under the strategy `workup`, of which every turn is a call; empty: all that have a history and more to ask for.",
    )
    workup_arms: tuple[Literal["full", "no_image", "shuffled_image"], ...] = Field(
        ("full", "no_image", "shuffled_image"),
        description="Of these `arms`, those that are asked under the strategy `workup` too; arms by the order of evidence (`evidence-history`) always are.",
    )
    few_shot: int = Field(20, ge=1, le=100, description="Most examples shown by the strategy `few_shot`.")
    max_case_words: int | None = Field(
        None,
        ge=1,
        description="Text budget: the longest case text of a request, in words. Longer texts are truncated at the end (first the notes, then the"
        " record, then the texts of later turns), and the request records how many words were cut; absent: no limit.",
    )
    samples: int = Field(5, ge=1, le=100, description="Answers per request.")
    answer_form: Literal["checklist", "evidence", "short"] = Field(
        "checklist",
        description="Form of the answer to open items and of the last answer of a dialogue: a `checklist` that a person can review (what was seen,"
        " location and side, findings, ranked hypotheses with evidence for and against, confidence, what is missing, rationale), `evidence` (a checklist"
        " that also names the picture that shows the abnormality best and a box around it there), or the `short` one"
        " (differential, findings, rationale, confidence; or lesion, location and side). Choices, fields and free answers have their own forms.",
    )
    coordinates: Convention = Field(
        Convention.THOUSANDTHS,
        description="Unit of the coordinates that the form `evidence` asks for: `fraction` (0 to 1) or `thousandths` (0 to 1000) of width and height,"
        " `pixels` of the picture as sent, or `shrunk_pixels` of the picture as the provider scales it down (`provider_downscale` of the model).",
    )
    persona: str = Field(
        "You are a neurologist and neuroradiologist.",
        min_length=1,
        description="Who the model is: the first sentence of the system prompt.",
    )
    viewer: ViewerConfig | None = Field(
        None, description="What the strategy `viewer` may show of scans; absent: nothing beyond the chosen slices."
    )
    label_policy: Literal["full", "none"] = Field("full", description="Whether pictures are labelled with sequence, plane and position.")

    @field_validator("deidentification")
    @classmethod
    def _text_of_scans_goes(cls, value: DeidentificationConfig, info: ValidationInfo) -> DeidentificationConfig:
        if value.burned_in == "keep" and info.data.get("kind") is Kind.SCANS:
            message = "burned_in: keep is for single pictures, whose letters can belong to the question; set hide or drop"
            raise ValueError(message)
        return value

    @field_validator("deidentification")
    @classmethod
    def _fits_the_profile(cls, value: DeidentificationConfig, info: ValidationInfo) -> DeidentificationConfig:
        if info.data.get("profile") == "safe_harbor" and "113107" in (value.options or ()):
            message = "options: 113107 shifts dates, but the profile safe_harbor keeps only years; leave 113107 out"
            raise ValueError(message)
        return value

    @field_validator("deidentification")
    @classmethod
    def _has_headers(cls, value: DeidentificationConfig, info: ValidationInfo) -> DeidentificationConfig:
        if value.elements and info.data.get("kind") in {Kind.PICTURES, Kind.TEXT}:
            message = "elements: own rules are for the headers of scans, and this benchmark has none; take them out"
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

    @field_validator("lesion_masks")
    @classmethod
    def _has_scans(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and (info.data.get("kind") is not Kind.SCANS or not info.data.get("answers")):
            message = "masks of lesions belong to scans with an answers table (`kind: scans`, `answers`)"
            raise ValueError(message)
        return value

    @field_validator("viewer")
    @classmethod
    def _has_volumes(cls, value: ViewerConfig | None, info: ValidationInfo) -> ViewerConfig | None:
        if value and info.data.get("kind") is not Kind.SCANS:
            message = "only scans have slices that can be asked for (`kind: scans`)"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _says_what_may_be_shown(self) -> Self:
        if Strategy.VIEWER in self.strategies and self.viewer is None:
            message = "the strategy `viewer` needs the key `viewer`: what may be shown on request (`viewer: {}` for its defaults)"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _informs_where_facts_are_asked_for(self) -> Self:
        if self.informant and Strategy.ASK not in self.strategies:
            message = "`informant` tells facts under the strategy `ask`; add `ask` to `strategies`, or take `informant` out"
            raise ValueError(message)
        return self

    @property
    def view_rules(self) -> ViewRules | None:
        """What may be shown on request; None: nothing."""
        rules = self.viewer
        return ViewRules(planes=tuple(rules.planes), windows=rules.windows, zooms=rules.zooms) if rules else None

    @property
    def reading(self) -> dict[str, str | None]:
        """How scans are read, for the command: `voxel_sizes`, and the digest of `sequence_map`, whose patterns it reads itself."""
        entries = [entry.model_dump(mode="json") for entry in self.sequence_map]
        return {"map_digest": sha256_of_value(entries) if entries else "", "voxel_sizes": self.voxel_sizes}

    @property
    def has_cases(self) -> bool:
        """True if the benchmark has a case table: scans, and pictures of own patients."""
        own = self.subjects == "patient" and self.source != "phantoms" and not self.questions
        return self.kind is Kind.SCANS or (self.kind is Kind.PICTURES and own)

    @property
    def picture_table(self) -> str:
        """Table of the pictures: that of an imported data set, else the answers, else `images.csv` in the source folder."""
        return f"{self.questions}/images.csv" if self.questions else self.answers or f"{self.source}/images.csv"

    @cached_property
    def cleaning_digest(self) -> str:
        """Digest of the rules by which cases or pictures are cleaned; the command reads them, so that no log holds them."""
        rules = self.deidentification
        if not self.has_cases:
            return sha256_of_value([rules.burned_in, self.subjects])
        changed = rules.model_dump(mode="json", exclude={"options"}, exclude_defaults=True)
        return sha256_of_value([self.profile, self.subjects, self.header_options, changed])

    @cached_property
    def audit_digest(self) -> str:
        """Digest of the rules that the audit and the review state; read by their commands."""
        elements = [rule.model_dump(mode="json") for rule in self.deidentification.elements]
        views = asdict(self.view_rules) if self.view_rules else None
        return sha256_of_value([self.profile, self.subjects, self.header_options, elements, views])

    @property
    def header_options(self) -> tuple[str, ...]:
        """PS3.15 options in force, sorted: those configured, else all that the profile allows."""
        return header_options(self.profile, self.deidentification)


def are_shallow_texts(benchmarks: Iterable[BenchmarkConfig]) -> bool:
    """Return True if no benchmark has pictures or depth: then it is not asked whether a model reasons like a neurologist."""
    return all(one.kind is Kind.TEXT and one.axis is not Axis.DEPTH for one in benchmarks)
