"""Section `server` of a model: the program that serves its weights on this machine, started and ended by the job that asks it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from neuralmedbench.config.section import RANDOM_TEXT, Section

OWN = frozenset(
    {"--host", "--port", "--uds", "--api-key", "--api-key-file", "--served-model-name", "--alias", "-a", "--model", "-m", "--model-path"}
    | {"--config", "--env-file", "--log-requests", "--enable-log-requests", "--verbose", "-v", "--verbosity", "-lv", "--log-verbosity"}
)
"""Arguments that the job sets itself, that would hide settings in a file, or that would write what is asked into a log."""


class ServerConfig(Section):
    """`server` of a model with `backend: server`."""

    engine: Literal["vllm", "sglang", "llama_cpp", "transformers"] = Field(description="Program that serves the weights.")
    program: str | None = Field(
        None,
        description="Where it lies, such as `/opt/vllm/bin/vllm`; absent: `vllm`, `sglang`, `llama-server` or `transformers` of the PATH.",
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
