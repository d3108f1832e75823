"""Keys of `config/models/<model>.yaml` and `config/graders/<grader>.yaml`: one model or grader, and the server that a job starts for its weights."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, WithJsonSchema, field_validator, model_validator

from neuralmedbench.config.section import RANDOM_TEXT, Name, Section
from neuralmedbench.records.items import Strategy
from neuralmedbench.records.served_names import AZURE, names_same_model

MOST_USD = 1e9
MOST_SECONDS = 1e6
AZURE_HOSTS = (".azure.com", ".azure-api.net")
OWN = frozenset(
    {"--host", "--port", "--uds", "--api-key", "--api-key-file", "--served-model-name", "--alias", "-a", "--model", "-m", "--model-path"}
    | {"--config", "--env-file", "--log-requests", "--enable-log-requests", "--verbose", "-v", "--verbosity", "-lv", "--log-verbosity"}
)
"""Arguments that the job sets itself, that would hide settings in a file, or that would write what is asked into a log."""


Setting = str | float | int | bool
NESTED = ("chat_template_kwargs", "output_config", "reasoning", "thinking", "thinkingConfig")
"""Parameters of a call that are sections, by which servers and providers set how much a model thinks."""


class ServerConfig(Section):
    """`server` of a model with `backend: server`."""

    engine: Literal["llamacpp", "vllm", "sglang", "transformers"] = Field(
        description="Program that serves the weights; `llamacpp` is a package (`make setup EXTRAS=llamacpp`) and serves GGUF files."
    )
    program: str | None = Field(
        None,
        description="Where it lies, such as `/opt/vllm/bin/vllm` or a `llama-server`; absent: `vllm`, `sglang` or `transformers` of the PATH, or the"
        " package of `llamacpp`.",
    )
    arguments: tuple[str, ...] = Field(
        (),
        description="Its further arguments on which an answer may depend (`--max-model-len`, `--dtype`, `--quantization`, ...): after a change"
        " everything is asked again.",
    )
    machine_arguments: tuple[str, ...] = Field(
        (),
        description="Its further arguments for this machine alone (GPUs, memory, parallel requests): after a change nothing is asked again.",
    )
    environment: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of its environment, which otherwise has the paths, the language and the GPUs of the job's; no keys.",
    )
    port: int | None = Field(None, ge=1024, le=65535, description="Port on this machine; absent: a free one.")
    start_timeout_s: float = Field(1800.0, gt=0, le=86400, description="Longest start, until it has answered once, in seconds.")

    @field_validator("engine", mode="before")
    @classmethod
    def _former_name(cls, value: object) -> object:
        return "llamacpp" if value == "llama_cpp" else value

    @field_validator("arguments", "machine_arguments")
    @classmethod
    def _leaves_ours(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for argument in value:
            name = argument.partition("=")[0].replace("_", "-")
            if name in OWN:
                message = f"`{name}` is set by the job itself, or would write into a log what is asked; take it out"
                raise ValueError(message)
        return value

    @field_validator("arguments", "machine_arguments", "environment")
    @classmethod
    def _have_no_keys(cls, value: tuple[str, ...] | dict[str, str]) -> tuple[str, ...] | dict[str, str]:
        # they are passed on, and stand in the settings of every answer
        for text in value.values() if isinstance(value, dict) else value:
            if RANDOM_TEXT.fullmatch(text.partition("=")[2] or text):
                message = "one value may be an API key, not shown here; a server on this machine needs none"
                raise ValueError(message)
        return value


class PriceList(Section):
    """Prices of one service tier."""

    usd_per_million_prompt_tokens: float = Field(ge=0, le=MOST_USD, description="Price of input.")
    usd_per_million_completion_tokens: float = Field(ge=0, le=MOST_USD, description="Price of output, reasoning included.")
    usd_per_million_cached_tokens: float | None = Field(
        None, ge=0, le=MOST_USD, description="Price of input that the provider reads from its cache; absent: that of other input."
    )
    usd_per_million_cache_write_tokens: float | None = Field(
        None,
        ge=0,
        le=MOST_USD,
        description="Price of input that is written to the cache for some minutes; absent: the cost of such an answer is unknown.",
    )
    usd_per_million_cache_write_1h_tokens: float | None = Field(None, ge=0, le=MOST_USD, description="The same for an hour.")


class Prices(PriceList):
    """Prices of a paid model."""

    dated: str = Field(description="Day of the price list, YYYY-MM-DD.")
    tiers: dict[Name, PriceList] = Field(
        default_factory=dict,
        description="Prices of other service tiers, by the name that the provider reports (`flex`, `priority`, `batch`).",
    )


class BatchConfig(Section):
    """How a model is asked by its provider's batch interface."""

    poll_s: float = Field(60.0, gt=0, le=MOST_SECONDS, description="Seconds between two looks at batches that have not ended.")
    wait_hours: float = Field(
        26.0, ge=0, le=1000, description="How long a run waits for them; 0: it hands in and ends, and a later run collects."
    )
    max_requests: int = Field(10_000, ge=1, le=100_000, description="Most requests of one batch.")
    max_mb: float = Field(64.0, gt=0, le=2000, description="Most megabytes of one batch; its requests are in memory while they are sent.")
    settle_after_s: float = Field(
        120.0,
        ge=0,
        le=MOST_SECONDS,
        description="Seconds after which a batch that a killed run may have handed in, and that the provider does not list, was never received.",
    )


class Downscale(Section):
    """The provider's size limit for pictures."""

    longest_side_px: int | None = Field(None, ge=1, description="Longest side.")
    shortest_side_px: int | None = Field(None, ge=1, description="Shortest side.")

    def size_of(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the width and height to which a picture is scaled down: by the stricter limit, never up."""
        factor = self._factor(size)
        return math.ceil(size[0] * factor), math.ceil(size[1] * factor)

    def scales_down(self, size: tuple[int, int]) -> bool:
        """Return True if a picture is scaled down: a side is above `longest_side_px`, or both sides are above `shortest_side_px`."""
        return self._factor(size) < 1

    def _factor(self, size: tuple[int, int]) -> float:
        limits = (self.longest_side_px, max(size)), (self.shortest_side_px, min(size))
        return min((limit / side for limit, side in limits if limit and side > limit), default=1.0)


class ModelConfig(Section):
    """`config/models/<model>.yaml`: one model, or one grader model."""

    title: str = Field(description="Name shown in the report.")
    backend: Literal["builtin", "litellm", "transformers", "server", "imported"] = Field(
        description="How it is called; `server`: by a server that the job starts and ends; `imported`: not called, its answers come from elsewhere"
        " (`nmb model import`); `transformers`: not called any more, its recorded answers are replayed."
    )
    id: str = Field(description="Name of the model for the backend: `fusion`, `openai/gpt-5`, a folder or file with weights, ...")
    served_as: tuple[str, ...] = Field(
        (),
        description="Other names under which it may answer. A dated name of `id`, or the path of its weights, needs none; an answer under any further"
        " name is another model's and counts as missing.",
    )
    revision: str = Field(
        description="Change this after an API update: the model is then called again, and old and new answers are compared."
    )
    ends_on: datetime.date | None = Field(
        None, description="Last day on which its provider serves it, YYYY-MM-DD; absent: as the installed price list of litellm says."
    )
    reference_revision: str | None = Field(
        None, description="The revision in use, with which the current one is compared; absent: the one before it in the ledger."
    )
    api_base: str | None = Field(None, description="Address of an OpenAI-compatible server.")
    server: ServerConfig | None = Field(None, description="The server of `backend: server`.")
    api_key_env: str | None = Field(
        None, pattern=r"^[A-Z][A-Z0-9_]*$", description="Name of the environment variable with the API key; never the key itself."
    )
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature; absent: not sent.")
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling; absent: not sent.")
    seed: int | None = Field(None, description="Seed, to which the number of the repeat is added; absent: not sent.")
    max_tokens: int | None = Field(1024, ge=1, le=10_000_000, description="Longest answer, in tokens.")
    max_tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="Name under which `max_tokens` is sent; some servers take `max_completion_tokens` alone."
    )
    parameters: dict[str, Setting | dict[str, Setting]] = Field(
        default_factory=dict,
        description="Further parameters of a call, sent unchanged (`top_k`, `reasoning_effort`, ...);"
        f" {', '.join(f'`{name}`' for name in NESTED)} may be sections.",
    )
    thought_marks: tuple[str, str] | None = Field(
        None,
        description="What begins and ends its thoughts, if no usual mark does: `['<reflect>', '</reflect>']`; an empty beginning if the server's"
        " template writes it. Answers in the ledger are read anew, and nothing is asked again.",
    )
    structured_output: Literal["none", "json_object", "json_schema"] = Field(
        "none", description="How JSON answers are requested if an item or a grader has a schema; only if the provider supports it."
    )
    logprobs: bool = Field(False, description="Whether the probabilities of the generated tokens are requested and stored.")
    native_n: bool = Field(
        False, description="Whether the provider returns several samples per call (`n`), so that the prompt is paid for once."
    )
    max_images: int | None = Field(None, ge=0, description="Most pictures per request; the pictures sent are evenly spaced.")
    max_picture_px: int | None = Field(
        None,
        ge=16,
        le=100_000,
        description="Longest side of a picture as sent; larger ones are scaled down. Part of the question: set it before a run.",
    )
    context_tokens: int | None = Field(
        None,
        ge=1,
        le=100_000_000,
        description="Tokens that it takes in one call, prompt and longest answer together (vLLM: --max-model-len); a call that is surely longer is not made."
        " Absent: not checked.",
    )
    tokens_per_picture: int | None = Field(
        None, ge=1, le=1_000_000, description="Tokens of a picture, if it is a fixed number (MedGemma: 256); absent: estimated by its size."
    )
    layout: Name | None = Field(
        None,
        description="Input layout that its maker documents, a file of `config/layouts/`: the arms of that layout ask it, and only models that name it.",
    )
    provider_downscale: Downscale | None = Field(
        None, description="Size to which the provider documents that it downscales pictures; larger ones are counted, never changed."
    )
    concurrency: int = Field(
        8, ge=1, le=256, description="Most requests in flight: a run begins with 8 and finds out how many the provider takes."
    )
    batch: BatchConfig | None = Field(
        None,
        description="Ask by the provider's batch interface (`batch: {}`), at about half the price and within a day; benchmarks must allow it as `batch://host`.",
    )
    rate_limit_group: Name | None = Field(
        None, description="Models of one group share its `rate_limits` in config.yaml and its pauses, over all jobs."
    )
    timeout_s: float = Field(120.0, gt=0, le=MOST_SECONDS, description="Deadline of one attempt, in seconds.")
    deadline_s: float = Field(900.0, gt=0, le=MOST_SECONDS, description="Deadline of a call with all its attempts and waits, in seconds.")
    max_attempts: int = Field(4, ge=1, le=20, description="Attempts per call.")
    prices: Prices | None = Field(None, description="Prices; a model without prices and with a key is refused without `max_cost_usd`.")
    max_cost_usd: float | None = Field(
        None,
        ge=0,
        le=MOST_USD,
        description="Cap on the total ever spent on this model and revision, over all benchmarks, by this copy of the project and those that share its ledgers by a link.",
    )
    knowledge_cutoff: str | None = Field(
        None,
        pattern=r"^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$",
        description="Documented end of its training data, `YYYY-MM` or `YYYY-MM-DD`; answers to older and newer cases are compared.",
    )
    knowledge_cutoff_source: str = Field("", description="Where the provider documents it; required with `knowledge_cutoff`.")
    open_weights: bool | None = Field(None, description="Whether the weights are available; if it is not stated, the report says so.")
    baseline: bool = Field(False, description="Whether it is a built-in reference, not a vision-language model.")
    reader: Literal["clinician", "simulated"] | None = Field(
        None,
        description="A person whose answers were imported (`nmb ratings import-readers`), or a program that simulates one; not ranked.",
    )
    reader_strategy: Literal[Strategy.DIRECT, Strategy.WORKUP] = Field(
        Strategy.DIRECT, description="How the questions of a reader's round were asked: `direct`, or as a `workup`."
    )

    _name: str = PrivateAttr("")

    @property
    def name(self) -> str:
        """Name of its file, or its grader's file; not a key of the YAML."""
        return self._name

    def named(self, name: str) -> ModelConfig:
        """Return a copy of the model with a name."""
        # the model is frozen; a private attribute can be set on a copy
        copy = self.model_copy()
        copy._name = name
        return copy

    @property
    def api_key(self) -> str:
        """The key in the environment variable `api_key_env`; empty if none is named or set."""
        return os.environ.get(self.api_key_env or "", "")

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which its answers could reveal it."""
        return self.name, self.title, self.id

    def is_answered_by(self, served: str) -> bool:
        """Return True if an answer of this name is this model's, or says nothing of its model."""
        if self.backend != "litellm" or not served:
            return True
        host = urlsplit(self.api_base or "").hostname or ""
        asked = f"{AZURE}/{self.id.partition('/')[2]}" if host.endswith(AZURE_HOSTS) else self.id
        return any(names_same_model(name, served) for name in (asked, *self.served_as))

    @model_validator(mode="before")
    @classmethod
    def _recorded_with_transformers(cls, value: object) -> object:
        """Leave out `batch_size`, which recorded runs of `backend: transformers` have; no answer depends on it."""
        if isinstance(value, dict) and value.get("backend") == "transformers":
            return {key: entry for key, entry in value.items() if key != "batch_size"}
        return value

    @field_validator("api_base")
    @classmethod
    def _has_no_password(cls, value: str | None) -> str | None:
        if value is not None and "@" in urlsplit(value).netloc:
            message = "a user name or password does not belong in an address, where it could be shown; name the variable with the key in `api_key_env`"
            raise ValueError(message)
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _have_values(cls, value: object) -> object:
        """Say in one line what may be nested, and what a value may be."""
        for name, entry in value.items() if isinstance(value, dict) else ():
            if isinstance(entry, dict) and name not in NESTED:
                message = f"`{name}` cannot be a section; only {', '.join(NESTED)} can"
                raise ValueError(message)
            for part in entry.values() if isinstance(entry, dict) else (entry,):
                if not isinstance(part, Setting):
                    message = f"`{name}` takes a text, a number, true or false, found {type(part).__name__}"
                    raise ValueError(message)  # noqa: TRY004 (pydantic reports no TypeError)
                # they stand in every line of the ledger
                if isinstance(part, str) and RANDOM_TEXT.fullmatch(part):
                    message = (
                        f"`{name}` has a value that may be an API key, not shown here; name the variable with the key in `api_key_env`"
                    )
                    raise ValueError(message)
        return value

    @field_validator("thought_marks")
    @classmethod
    def _thoughts_end(cls, value: tuple[str, str] | None) -> tuple[str, str] | None:
        if value is not None and not value[1].strip():
            message = "the second mark, which ends a thought, is empty"
            raise ValueError(message)
        return value

    @field_validator("knowledge_cutoff", mode="before")
    @classmethod
    def _day_of_yaml(cls, value: object) -> object:
        """Accept an unquoted 2024-06-01, which YAML reads as a date."""
        return value.isoformat() if isinstance(value, datetime.date) else value

    @field_validator("revision", "reference_revision", mode="before")
    @classmethod
    def _number_of_yaml(cls, value: object) -> object:
        """Accept an unquoted 2 or 2024-06-01; not 1.10, which YAML reads as 1.1."""
        if isinstance(value, datetime.date):
            return value.isoformat()
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _a_cutoff_has_a_source(self) -> ModelConfig:
        if self.knowledge_cutoff and not self.knowledge_cutoff_source:
            message = "knowledge_cutoff: state in `knowledge_cutoff_source` where the provider documents it; a guessed date proves nothing"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _only_an_api_has_batches(self) -> ModelConfig:
        if self.batch and self.backend != "litellm":
            message = "batch: only a model behind an API (`backend: litellm`) is asked by batch"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _people_are_not_asked(self) -> ModelConfig:
        if self.reader and self.backend != "imported":
            message = f"reader: {self.reader} needs backend: imported, because no program can ask a person"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _has_a_server(self) -> ModelConfig:
        if (self.backend == "server") != (self.server is not None):
            message = "`backend: server` and the section `server` go together: one says that the job starts a server, the other which"
            raise ValueError(message)
        if self.server and (self.api_base or self.api_key_env or self.prices):
            message = "a server that the job starts has no `api_base`, `api_key_env` or `prices`; take them out"
            raise ValueError(message)
        ignored = {"structured_output": self.structured_output != "none", "native_n": self.native_n, "logprobs": self.logprobs}
        if self.server and self.server.engine == "transformers" and any(ignored.values()):
            message = f"`transformers serve` ignores {' and '.join(f'`{key}`' for key, used in ignored.items() if used)}; take it out, or take another engine"
            raise ValueError(message)
        return self


ASKED_WITH = {
    "id",
    "backend",
    "server",
    "api_base",
    "revision",
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "parameters",
    "structured_output",
} | {
    "logprobs",
    "max_images",
    "max_picture_px",
    "layout",
}
"""Settings of a model by which its answers may differ from those of another one."""


def families(models: Iterable[ModelConfig]) -> dict[str, str]:
    """Return the id of each model that another one shares, by name: one model at several settings, such as efforts of thinking."""
    asked: dict[tuple[str, str, str | None], list[ModelConfig]] = {}
    for model in models:
        if not model.reader:  # of people the id says nothing
            asked.setdefault((model.backend, model.id, model.api_base), []).append(model)
    return {model.name: model.id for alike in asked.values() if len(alike) > 1 for model in alike}


def indistinct_models(models: Iterable[ModelConfig]) -> Iterator[str]:
    """Yield one line for each pair that nobody could tell apart: of one title, or of one id with the same settings.

    Parameters
    ----------
    models : iterable of ModelConfig
        The models of a run, with their names.

    Yields
    ------
    str
        What is wrong, and what to do.
    """
    seen: dict[str, str] = {}
    for model in models:
        faults = {f"title {model.title.strip().casefold()}": f"are both called {model.title!r} in the report: give one another `title`"}
        if not model.reader:  # of people the id says nothing
            same = repr(model.model_dump(include=ASKED_WITH))
            faults[f"id {same}"] = (
                "have the same `id` and settings, so they are one model: correct the `id` of one, or take it out of `models`"
            )
        for key, fault in faults.items():
            if (other := seen.setdefault(key, model.name)) != model.name:
                yield f"models {other} and {model.name} {fault}"


class GraderValidation(Section):
    """`validation` of a grader: its verdicts on answers that people had labelled before, in words that its author did not write."""

    source: str = Field(description="Who wrote and labelled the answers, and when.")
    right: int = Field(ge=1, description="Answers that people call right.")
    right_accepted: int = Field(ge=0, description="Of these, answers that the grader passes.")
    wrong: int = Field(ge=1, description="Answers that people call wrong.")
    wrong_rejected: int = Field(ge=0, description="Of these, answers that the grader fails.")

    @model_validator(mode="after")
    def _has_parts_of_wholes(self) -> GraderValidation:
        if self.right_accepted > self.right or self.wrong_rejected > self.wrong:
            message = "`right_accepted` and `wrong_rejected` are parts of `right` and `wrong`"
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
    model: Annotated[ModelConfig | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="The model of an LLM grader: a file of `config/models/`."
    )
    arms: tuple[str, ...] | None = Field(None, min_length=1, description="Arms whose answers an LLM grader judges; absent: all.")
    validation: GraderValidation | None = Field(
        None,
        description="How often the grader is right on answers that people had labelled; until clinicians have rated answers of the run.",
    )
    members: tuple[Name, ...] = Field((), description="Members of a jury: other files in `config/graders/`.")
    _asks: str = PrivateAttr("")
    rule: Literal["majority", "mean"] = Field(
        "majority", description="How a jury decides: `majority` needs more than half of the votes, so a tie fails; `mean` is their mean."
    )

    @property
    def asks(self) -> str:
        """Name of the file of its model; empty without one, or where earlier files have the model within."""
        return self._asks

    def asking(self, model: ModelConfig, name: str) -> GraderConfig:
        """Return the grader with its model, under a name of their own, and the name of the model's file."""
        copy = self.model_copy(update={"model": model})
        copy._asks = name
        return copy

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
