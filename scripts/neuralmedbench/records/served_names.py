"""Compare the model that a provider names in its answer with the one that was asked.

Providers answer an alias with a dated name, servers with the path of their weights; hosts add regions, makers and options. What is left of two
names after that (words, version, size) has to be the same.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

NUMBERED_ALIASES = frozenset({"deepseek", "gemini", "mistral", "openrouter", "xai"})
"""Providers with aliases that do not name the version (`mistral-medium`, `deepseek-flash`)."""
AZURE = "azure"
"""Stands for a provider whose ids are names of deployments, which their owner chooses."""

MAKERS = r"ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|zai"
BEDROCK = re.compile(rf"^(?:[a-z]{{2,6}}(?:-gov)?\.)?(?:{MAKERS})\.(?=[a-z])")
BEDROCK_VERSION = re.compile(r"-(?:v\d+(?::\d+)?|\d+:\d+)$")
FILE = re.compile(r"^(?:[/~.\\]|[a-z]:[/\\])|\.(?:gguf|ggml|safetensors|bin|onnx)$")
OPTION = re.compile(r":(?:free|nitro|floor|online|extended|exacto|beta|thinking|latest|default)$")
"""Ways of being routed (OpenRouter), and Ollama's default tag: not part of a model's name."""
MONTH, DAY = r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12]\d|3[01])"
DATES = tuple(
    re.compile(rf"(?<![a-z0-9.]){form}(?![a-z0-9.])")
    for form in (
        rf"(?P<y>20[2-9]\d)[-.]?{MONTH}[-.]?{DAY}",
        rf"{MONTH}-(?P<y>20[2-9]\d)",
        rf"(?P<y>20[2-9]\d)-{MONTH}",
        rf"(?P<y>2[2-9]){MONTH}{DAY}",
        rf"{MONTH}-{DAY}",
        rf"(?P<y>2[2-9]){MONTH}",
        rf"{MONTH}{DAY}",
        r"(?P<r>0\d\d)",
    )
)
"""Days and months of a version, and Google's numbers of one (`-002`); the longest form first."""
QUANTIZED = re.compile(
    r"(?<![a-z0-9])(?:i?q\d(?:_[a-z0-9]+)*|b?f(?:p)?(?:8|16|32)|(?:int|nf|nvfp|mxfp)[48]|[48]-?bit|w\da\d+|awq|gptq|gguf|mlx|bnb|ud|i1)(?![a-z0-9])"
)
SIZE = re.compile(r"(?<![a-z0-9.])(?:\d+x)?[ae]?\d+(?:\.\d+)?[bme](?![a-z0-9])")
FIRST_STAGES = frozenset({"preview", "exp", "experimental"})
"""Words of a version before the final one, which is another model."""
NEUTRAL = frozenset({"latest", "default", "stable", "beta", "meta"})
TUNED = frozenset({"instruct", "it"})
KINDS = frozenset(
    {"chat", "codex", "fast", "flash", "haiku", "large", "lite", "max", "medium", "mini", "nano", "opus", "pro", "small", "sonnet", "turbo"}
)
"""Words that make another model of a deployment's name."""


@dataclass(frozen=True)
class ModelName:
    """Parts of a model's name, in lower case; `date` by year, month, day and number of a version, as far as it has them."""

    words: Counter[str]
    version: tuple[str, ...]
    sizes: frozenset[str]
    quantized: frozenset[str]
    date: dict[str, str]
    is_latest: bool
    is_file: bool


def names_same_model(asked: str, served: str) -> bool:
    """Return True if a provider may answer a request for one name under the other one.

    Parameters
    ----------
    asked : str
        Id of the model with its provider (`openai/gpt-4o`, `azure/my-deployment`), or an alias of it.
    served : str
        Name in the provider's answer.

    Examples
    --------
    >>> names_same_model("openai/gpt-4o", "gpt-4o-2024-08-06"), names_same_model("openai/gpt-4o", "gpt-4o-mini-2024-07-18")
    (True, False)
    >>> names_same_model("gemini/gemini-2.5-flash", "models/gemini-3.5-flash-lite")
    False
    """
    provider = asked.partition("/")[0].lower()
    one, other = read_name(asked), read_name(served)
    if one == other:
        return True
    dates_agree = all(other.date.get(part, value) == value for part, value in one.date.items())
    if not dates_agree or (one.quantized and one.quantized != other.quantized):
        return False
    return _may_deploy(one, other) if provider == AZURE else _has_same_parts(one, other, provider)


def _has_same_parts(one: ModelName, other: ModelName, provider: str) -> bool:
    # a path says more than the name that its owner gave the server, and OpenRouter's full names say more than its short ones
    loose = other.is_file or provider == "openrouter"
    same_size = one.sizes == other.sizes or (loose and not one.sizes)
    same_version = one.version == other.version or (not one.version and (one.is_latest or provider in NUMBERED_ALIASES))
    forgiven = FIRST_STAGES | (TUNED if loose else frozenset()) | (frozenset() if "non" in other.words else {"reasoning"})
    more = other.words - one.words
    return same_size and same_version and not one.words - other.words and more.keys() <= forgiven


def _may_deploy(one: ModelName, other: ModelName) -> bool:
    """Return True unless a deployment is named after another model than the one behind it."""
    if not one.version or not one.words & other.words:
        return True
    return one.version == other.version and not other.words - one.words and not (one.words - other.words).keys() & KINDS


@lru_cache(maxsize=1024)
def read_name(name: str) -> ModelName:
    """Take a model's name apart."""
    text = name.strip().lower().partition("#")[0]  # Fireworks adds its deployment
    is_file = bool(FILE.search(text))
    parts = [part for part in re.split(r"[/\\]", re.sub(r"\.(?:gguf|ggml|safetensors|bin|onnx)$", "", text)) if part]
    hub = next((part.rpartition("--")[2] for part in parts if part.startswith("models--")), "")
    text = OPTION.sub("", hub or (parts[-1] if parts else ""))
    text, makers = BEDROCK.subn("", text)
    if makers:
        text = BEDROCK_VERSION.sub("", text)
    text = re.sub(r"-\d{5}-of-\d{5}$", "", text)
    text = re.sub(r"^gpt-?35(?!\d)", "gpt-3.5", re.sub(r"(?<=\d)p(?=\d)", ".", text))
    text = text.replace("gpt-4-turbo-preview", "gpt-4-preview")  # OpenAI's alias of gpt-4-0125-preview
    date: dict[str, str] = {}
    for form in DATES:
        if found := form.search(text.replace("@", "-")):
            date = {part: value[-2:] if part == "y" else value for part, value in found.groupdict().items() if value}
            text = text[: found.start()] + text[found.end() :]
            break
    quantized, sizes = (frozenset(form.findall(text)) for form in (QUANTIZED, SIZE))
    text = SIZE.sub("", QUANTIZED.sub("", text))
    tokens = re.findall(r"[a-z]+|\d+", re.sub(r"(?<![a-z])v(?=\d)", "", text))
    return ModelName(
        words=Counter(token for token in tokens if not token.isdigit() and token not in NEUTRAL),
        version=tuple(token for token in tokens if token.isdigit() and token != "0"),
        sizes=sizes,
        quantized=quantized,
        date=date,
        is_latest="latest" in tokens,
        is_file=is_file,
    )
