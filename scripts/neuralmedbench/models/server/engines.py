"""Programs that serve weights with the OpenAI protocol: how each is started, how it says that it is ready, and why it ends early."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig, ServerConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.json_files import read_json
from neuralmedbench.models.causes import Cause
from neuralmedbench.models.server import llamacpp
from neuralmedbench.runtime.machine import not_installed

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Engine:
    """A program that serves weights.

    Attributes
    ----------
    program : str
        Its usual name.
    words : tuple of str
        Arguments that start its server; `{weights}` and `{name}` stand for the weights and the name under which they are served.
    ready : str
        Path that answers when the server listens.
    lists : bool
        True if its list of models has that name.
    version : tuple of (str, str)
        Path and key of its version; empty if it has none.
    weights : str
        What it serves: a `folder`, a `file`, or `any` of these and names in the cache of Hugging Face.
    """

    program: str
    words: tuple[str, ...]
    ready: str = "/v1/models"
    lists: bool = True
    version: tuple[tuple[str, str], ...] = ()
    weights: str = "any"


ENGINES = {
    "vllm": Engine("vllm", ("serve", "{weights}", "--served-model-name", "{name}"), version=(("/version", "version"),)),
    "sglang": Engine(
        "sglang",
        ("serve", "--model-path", "{weights}", "--served-model-name", "{name}"),
        version=(("/server_info", "version"), ("/get_server_info", "version")),
    ),
    "llamacpp": Engine("llama-server", ("--model", "{weights}", "--alias", "{name}"), version=(("/props", "build_info"),), weights="file"),
    # it lists what lies in the cache of Hugging Face, and refuses any other name than the one that it was started with
    "transformers": Engine("transformers", ("serve", "{name}"), ready="/health", lists=False, weights="folder"),
}

FORMER_NAMES = {"llamacpp": "llama_cpp"}
"""Names of engines in the keys of calls, where they stay as they were."""

PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "HF_HOME")
PASSED_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "HSA_", "OMP_", "MKL_")
"""Variables that a server gets from the job: paths, language, GPUs and threads. API keys, proxies and settings of engines are none of them."""
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "*",
    "PYTHONUNBUFFERED": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",  # older versions log every prompt at the level INFO
}
"""No download, no usage statistics, and no prompt in a log."""

OUT_OF_MEMORY = Cause(
    "it lacks memory",
    "end what else uses the GPU, shorten the context (vLLM: --max-model-len), or take more GPUs or smaller weights",
    (
        r"out ?of ?memory",
        r"no available memory for the cache blocks",
        r"free memory on device .* is less than",
        r"larger than the (?:available kv cache memory|maximum number of tokens that can be stored)",
        r"cudamalloc failed|failed to allocate|not enough (?:gpu )?memory",
    ),
)
PORT_TAKEN = Cause(
    "its port is in use",
    "end what uses it, or take `port` out of `server`",
    (r"address already in use|errno 98|port \d+ is (?:already )?in use", r"(?:couldn't|could not|failed to) bind"),
)
START_CAUSES = (
    OUT_OF_MEMORY,
    PORT_TAKEN,
    Cause(
        "it does not take one of its arguments",
        "compare `arguments` and `machine_arguments` with --help of its version",
        (r"unrecognized arguments|no such option|invalid argument|unexpected extra argument|error: argument|invalid value for",),
    ),
    Cause(
        "packages that it needs are not installed",
        "install them where it is installed (transformers: transformers[serving]; llamacpp: make setup EXTRAS=llamacpp)",
        (r"missing dependencies|modulenotfounderror|no module named",),
    ),
    Cause("it finds no GPU", "see whether this job may use one", (r"no cuda gpus|failed to infer device|no nvidia driver|no accelerator",)),
    Cause(
        "it does not know this kind of model",
        "take a newer version of it, or another engine",
        (r"architectures? .*not supported|unknown model architecture|does not recognize this architecture",),
    ),
    Cause(
        "it finds no complete weights at `id`",
        "copy them to this machine and correct `id`; nothing is downloaded",
        (
            r"no such file|not a local folder|localentrynotfound|offline mode|appear to have a file named|failed to load model|repository not found",
        ),
    ),
)
SIGNAL_CAUSES: dict[int, Cause] = {
    signal.SIGKILL: Cause("it was killed", "see whether the memory of this machine was used up", ()),
    signal.SIGILL: Cause(
        "it uses an instruction that this processor lacks",
        "name a build for this processor in `program`, or run the job on a newer machine",
        (),
    ),
}
"""Causes of an end by a signal."""
SIGNAL_BASE = 128
"""Added to the number of a signal, it is the exit code."""


def engine_of(model: ModelConfig) -> tuple[Engine, ServerConfig]:
    """Return the engine of a model with `backend: server`, and its section."""
    if model.server is None:
        message = f"model {model.name}: it has no section `server`"
        raise ConfigError(message)
    return ENGINES[model.server.engine], model.server


def served_name(model: ModelConfig) -> str:
    """Return the name under which the weights are served."""
    return model.name if engine_of(model)[0].lists else Path(model.id).name


def command_of(model: ModelConfig, port: int) -> list[str]:
    """Return the command that serves a model.

    Raises
    ------
    ConfigError
        If the program or the weights are not there, or would ignore a setting of the yaml.
    """
    engine, settings = engine_of(model)
    if sys.platform != "linux":
        message = f"model {model.name}: a job can own a server on Linux alone; start it by hand and name its address in `api_base` (backend: litellm)"
        raise ConfigError(message)
    program = _program_of(model)
    _check_weights(model, engine)
    weights = str(Path(model.id).resolve()) if Path(model.id).exists() else model.id
    words = [word.format(weights=weights, name=served_name(model)) for word in engine.words]
    return [*program, *words, "--host", HOST, "--port", str(port), *settings.arguments, *settings.machine_arguments]


def packaged(settings: ServerConfig) -> bool:
    """Return True if a server is the one of a Python package, which needs no `program`."""
    return settings.engine == "llamacpp" and settings.program is None


def package_version() -> str:
    """Return the version of the package that serves GGUF files."""
    return metadata.version(llamacpp.PACKAGE)


def _program_of(model: ModelConfig) -> list[str]:
    engine, settings = engine_of(model)
    if packaged(settings):
        if lacking := not_installed([llamacpp.PACKAGE], "llamacpp"):
            message = f"model {model.name}: {lacking}, or name a llama-server in `program` of `server`"
            raise ConfigError(message)
        return [sys.executable, "-P", llamacpp.__file__]
    name = settings.program or engine.program
    program = shutil.which(name)
    if program is None:
        message = f"model {model.name}: {name} is not installed here; name the program in `program` of `server`"
        raise ConfigError(message)
    return [str(Path(program).absolute())]


def folder_of(model: ModelConfig) -> Path:
    """Return the folder in which a server runs: `transformers serve` is told the name of the weights alone, which it repeats in answers."""
    return Path.cwd() if engine_of(model)[0].lists else Path(model.id).resolve().parent


def environment_of(settings: ServerConfig, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a server."""
    given = os.environ if given is None else given
    passed = {name: value for name, value in given.items() if name in PASSED or name.startswith(PASSED_PREFIXES)}
    return {**passed, **OFFLINE, **settings.environment}


def start_cause(messages: str, code: int) -> Cause | None:
    """Name the likely cause of a server's end, by the end of its messages and its exit code."""
    text = messages.lower()
    named = next((cause for cause in START_CAUSES if cause.is_given_by(text)), None)
    return named or SIGNAL_CAUSES.get(code - SIGNAL_BASE)


def settings_digest(model: ModelConfig) -> str:
    """Digest what a server's answers depend on and the yaml says: the engine and the arguments that are not of this machine alone."""
    _, settings = engine_of(model)
    engine = FORMER_NAMES.get(settings.engine, settings.engine)
    return hashlib.sha256(json.dumps([engine, *settings.arguments]).encode()).hexdigest()[:16]


PART = 2**20
"""Bytes at the beginning and at the end of a file of weights that are read for its digest."""


def _weights_digest(weights: Path) -> str:
    """Digest the small files of a folder whole, and of large ones their size and both ends; empty if it lies elsewhere."""
    if not weights.exists():
        return ""
    made = hashlib.sha256()
    for file in sorted(path for path in weights.iterdir() if path.is_file()) if weights.is_dir() else [weights]:
        size = file.stat().st_size
        made.update(f"{file.name if weights.is_dir() else ''} {size}\0".encode())
        with file.open("rb") as stream:
            made.update(stream.read(PART))
            stream.seek(max(PART, size - PART))
            made.update(stream.read(PART))
    return made.hexdigest()[:8]


def fingerprint_of(model: ModelConfig, version: str) -> str:
    """Describe a server in one line: engine, version, digests of the weights and of all settings, then the settings."""
    _, settings = engine_of(model)
    words = [*settings.arguments, *settings.machine_arguments, *(f"{name}={value}" for name, value in sorted(settings.environment.items()))]
    # a file that is named, such as a chat template, counts with what it holds
    files = [_weights_digest(Path(word)) for word in words if Path(word).is_file()]
    made = hashlib.sha256(json.dumps([*words, *files]).encode()).hexdigest()[:8]
    weights = _weights_digest(Path(model.id))
    head = f"{settings.engine} {version or 'of unknown version'}{f', weights {weights}' if weights else ''}"
    return f"{head}, settings {made}: {' '.join(map(_shown, words))}" if words else head


def _shown(word: str) -> str:
    """Withhold a path of this machine, whether it is the whole word or the value in it."""
    name, sign, value = word.partition("=")
    return f"{name}{sign}{withhold_outside_paths(value)}" if sign else str(withhold_outside_paths(word))


def _check_weights(model: ModelConfig, engine: Engine) -> None:
    path = Path(model.id)
    if (engine.weights == "folder" and not path.is_dir()) or (engine.weights == "file" and not path.is_file()):
        message = f"model {model.name}: its id is not a {engine.weights} here; put the weights there or correct `id`"
        raise ConfigError(message)
    settings = path / "generation_config.json"
    if engine is ENGINES["transformers"] and model.temperature:
        try:
            stated = read_json(settings) if settings.is_file() else {}
        except DataError:
            message = f"model {model.name}: generation_config.json of its folder is not JSON; put the file of its weights there again"
            raise ConfigError(message) from None
        samples = isinstance(stated, dict) and stated.get("do_sample") is True
        if not samples:  # the server samples only if the weights say so, whatever temperature is asked for
            message = (
                f'model {model.name}: `transformers serve` ignores its temperature {model.temperature:g}: write `"do_sample": true` into'
                " generation_config.json of its folder, or write `temperature: 0`"
            )
            raise ConfigError(message)
