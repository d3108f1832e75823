"""Keys of `config/models/<model>.yaml` and `config/graders/<grader>.yaml`: one model, one grader."""

from __future__ import annotations

import datetime
from typing import Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from neuralmedbench.config.section import Name, Section


class Prices(Section):
    """Prices of a paid model."""

    usd_per_million_prompt_tokens: float = Field(ge=0, description="Price of input.")
    usd_per_million_completion_tokens: float = Field(ge=0, description="Price of output.")
    dated: str = Field(description="Day of the price list, YYYY-MM-DD.")


class Downscale(Section):
    """The provider's own limit of a picture."""

    longest_side_px: int | None = Field(None, ge=1, description="Longest side.")
    shortest_side_px: int | None = Field(None, ge=1, description="Shortest side.")


class ModelConfig(Section):
    """`config/models/<model>.yaml`: one model, or one grader model."""

    title: str = Field(description="Name shown in the report.")
    backend: Literal["builtin", "litellm", "transformers", "imported"] = Field(
        description="How it is called; `imported`: never, its answers were collected by others (`nmb model import`)."
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
    parameters: dict[str, str | float | int | bool] = Field(
        default_factory=dict, description="Further parameters of a call, sent as they are (`top_k`, `reasoning_effort`...)."
    )
    structured_output: Literal["none", "json_object", "json_schema"] = Field(
        "none", description="How an answer in JSON is asked for where an item or a grader has a schema; only if the provider supports it."
    )
    logprobs: bool = Field(False, description="Whether the probabilities of the generated tokens are asked for and kept.")
    native_n: bool = Field(
        False, description="Whether the provider gives several samples in one call (`n`); the prompt is then paid for once."
    )
    max_images: int | None = Field(None, ge=0, description="Picture budget of a request; the pictures sent are spread evenly.")
    provider_downscale: Downscale | None = Field(
        None, description="To what the provider shrinks pictures by its own documentation; pictures above it are counted, never changed."
    )
    concurrency: int = Field(8, ge=1, le=256, description="Requests in flight.")
    batch_size: int = Field(8, ge=1, le=1024, description="Samples that local weights generate at once.")
    rate_limit_group: Name | None = Field(
        None, description="Models of one group share its `rate_limits` in config.yaml, over all jobs, and its pauses."
    )
    timeout_s: float = Field(120.0, gt=0, description="Deadline of one attempt.")
    deadline_s: float = Field(900.0, gt=0, description="Deadline of a call with all its attempts and waits.")
    max_attempts: int = Field(4, ge=1, le=20, description="Attempts per call.")
    prices: Prices | None = Field(None, description="Prices; a model without prices and with a key is refused without `max_cost_usd`.")
    max_cost_usd: float | None = Field(
        None, ge=0, description="Cap of everything that this machine ever spends on this model and revision, over all benchmarks."
    )
    knowledge_cutoff: str | None = Field(
        None,
        pattern=r"^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$",
        description="Documented end of its training data, `YYYY-MM` or `YYYY-MM-DD`: answers to older and newer cases are compared.",
    )
    knowledge_cutoff_source: str = Field("", description="Where the provider documents it; needed with `knowledge_cutoff`.")
    open_weights: bool = Field(False, description="Whether the weights can be had.")
    baseline: bool = Field(False, description="A built-in reference, not a vision-language model.")
    reader: Literal["clinician", "simulated"] | None = Field(
        None,
        description="A person whose answers were imported (`nmb ratings import-readers`), or a program in the place of one; has no rank.",
    )

    _name: str = PrivateAttr("")

    @property
    def name(self) -> str:
        """Name of its file, or of its grader's: known when the yaml is read, and no key of it."""
        return self._name

    def named(self, name: str) -> ModelConfig:
        """Give the same model under a name."""
        copy = self.model_copy()
        copy._name = name
        return copy

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which it could give itself away in its answers."""
        return self.name, self.title, self.id

    @field_validator("knowledge_cutoff", mode="before")
    @classmethod
    def _day_of_yaml(cls, value: object) -> object:
        """Take a bare 2024-06-01, which yaml reads as a date."""
        return value.isoformat() if isinstance(value, datetime.date) else value

    @model_validator(mode="after")
    def _a_cutoff_has_a_source(self) -> ModelConfig:
        if self.knowledge_cutoff and not self.knowledge_cutoff_source:
            message = "knowledge_cutoff: say in `knowledge_cutoff_source` where the provider documents it; a guessed one tells nothing"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _people_are_not_asked(self) -> ModelConfig:
        if self.reader and self.backend != "imported":
            message = f"reader: {self.reader} needs backend: imported, no program can ask a person"
            raise ValueError(message)
        return self


class GraderConfig(Section):
    """`config/graders/<grader>.yaml`: one grader."""

    title: str = Field(description="Name shown in the report.")
    kind: Literal["rubric", "llm", "jury"] = Field(
        description="`rubric` is deterministic, `llm` asks a model, `jury` counts the votes of other graders."
    )
    task: Literal["diagnosis", "rubric", "reasoning", "errors"] = Field(
        "diagnosis", description="What an LLM grader judges: the diagnosis, the item's rubric, the steps of the reasoning, or the errors."
    )
    prompt: str | None = Field(None, description="Prompt template of an LLM grader.")
    model: ModelConfig | None = Field(None, description="The model that an LLM grader asks.")
    arms: tuple[str, ...] | None = Field(None, min_length=1, description="Arms whose answers an LLM grader judges; absent: all.")
    members: tuple[Name, ...] = Field((), description="Of a jury: its members, other files in `config/graders/`.")
    rule: Literal["majority", "mean"] = Field(
        "majority", description="How a jury decides: `majority` is what more than half of the votes reach, a tie does not; or their mean."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> GraderConfig:
        if self.kind == "jury" and (len(set(self.members)) < 2 or len(set(self.members)) != len(self.members)):
            message = "a jury needs `members`: two or more different graders"
            raise ValueError(message)
        if self.kind == "jury" and (self.model or self.prompt or self.arms):
            message = "a jury asks no model: `model`, `prompt` and `arms` belong to its members"
            raise ValueError(message)
        if self.kind != "jury" and self.members:
            message = f"`members` belong to a jury, this grader is of `kind: {self.kind}`"
            raise ValueError(message)
        return self
