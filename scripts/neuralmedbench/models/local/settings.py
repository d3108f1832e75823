"""How local weights generate: what the model's yaml says, and what the checkpoint says where the yaml says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuralmedbench.errors import ConfigError

PARAMETERS = {"top_k": "a whole number from 0 on", "min_p": "a number from 0 to 1", "repetition_penalty": "a number above 0"}
"""What `parameters` of a model with local weights may hold."""


@dataclass(frozen=True)
class GenerationSettings:
    """Settings of generation.

    Attributes
    ----------
    max_tokens : int
        Longest answer.
    temperature : float
        0 takes the most probable token each time.
    top_p, top_k, min_p : float, int, float or None
        Which tokens may be drawn; None: all.
    repetition_penalty : float or None
        None: what the checkpoint says.
    batch_size : int
        Samples generated at once.
    logprobs : bool
        Whether the probability of each generated token is kept.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    batch_size: int = 8
    logprobs: bool = False


def sampling_of(temperature: float | None, top_p: float | None, parameters: Mapping[str, object], checkpoint: Any) -> dict[str, Any]:
    """Say how tokens are drawn.

    Parameters
    ----------
    temperature, top_p : float or None
        Of the model's yaml; None: it does not say.
    parameters : mapping
        Its further parameters; see `PARAMETERS`.
    checkpoint : transformers.GenerationConfig
        What the makers of the weights set. As with an API, what the yaml does not say is theirs to decide; nothing that neither of
        them says is added (transformers itself would add `top_k` 50).

    Returns
    -------
    dict
        `temperature`, `top_p`, `top_k`, `min_p` and `repetition_penalty` of `GenerationSettings`.

    Raises
    ------
    ConfigError
        If a parameter is none that local weights take, or has a value that it cannot have.
    """
    for key, value in parameters.items():
        if key not in PARAMETERS:
            message = f"parameters: local weights take {', '.join(PARAMETERS)}, not {key}"
            raise ConfigError(message)
        if not _fits(key, value):
            message = f"parameters: {key} must be {PARAMETERS[key]}"
            raise ConfigError(message)
    if temperature is None:
        temperature = (checkpoint.temperature if checkpoint.temperature is not None else 1.0) if checkpoint.do_sample else 0.0
    said = {"top_p": top_p, **parameters}
    drawn = {key: value if (value := said.get(key)) is not None else getattr(checkpoint, key, None) for key in ("top_p", "top_k", "min_p")}
    return {"temperature": temperature, "repetition_penalty": said.get("repetition_penalty"), **drawn}


def _fits(key: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if key == "top_k":
        return isinstance(value, int) and value >= 0
    return 0 <= value <= 1 if key == "min_p" else value > 0
