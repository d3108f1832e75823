"""Money: no paid model runs without a cap, and no call starts that could break it."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.conversation import Said

CHARACTERS_PER_TOKEN = 2.0
TOKENS_PER_PICTURE = 2500
TOKENS_OF_AN_OPEN_ANSWER = 8192
"""Deliberately high guesses: a reserve that is too high stops a little early, one that is too low breaks the cap."""


def check_paid(name: str, model: ModelConfig) -> None:
    """Refuse a model that costs money without a cap that can be kept.

    Raises
    ------
    ConfigError
        If the model has a key or prices, and has no `max_cost_usd` or no prices to keep it by.
    """
    if model.api_key_env is None and model.prices is None:
        return
    if model.max_cost_usd is None:
        message = f"model {name}: it may cost money; set max_cost_usd, the cap of one job"
        raise ConfigError(message)
    if model.prices is None:
        message = f"model {name}: max_cost_usd cannot be kept without prices; set prices (0 when your server is free)"
        raise ConfigError(message)


def cost_usd(model: ModelConfig, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
    """Price of an answer in USD; None when the prices or the tokens are not known."""
    if model.prices is None or prompt_tokens is None or completion_tokens is None:
        return None
    prompt = prompt_tokens * model.prices.usd_per_million_prompt_tokens
    return (prompt + completion_tokens * model.prices.usd_per_million_completion_tokens) / 1e6


class Purse:
    """The money of one job.

    Parameters
    ----------
    model : ModelConfig
        Its prices and its cap.
    """

    def __init__(self, model: ModelConfig) -> None:
        self._model = model
        self._spent = 0.0
        self._reserved = 0.0

    def reserve(self, said: Sequence[Said]) -> float | None:
        """Set the highest likely price of a call aside.

        Parameters
        ----------
        said : sequence of Said
            What is about to be sent.

        Returns
        -------
        float or None
            What was set aside, to be given back to `settle`; None when the cap leaves no room for the call.
        """
        text = sum(len(entry.text) for entry in said) / CHARACTERS_PER_TOKEN
        pictures = sum(len(entry.images) for entry in said) * TOKENS_PER_PICTURE
        estimate = cost_usd(self._model, int(text) + pictures, self._model.max_tokens or TOKENS_OF_AN_OPEN_ANSWER) or 0.0
        cap = self._model.max_cost_usd
        if cap is not None and self._spent + self._reserved + estimate > cap:
            return None
        self._reserved += estimate
        return estimate

    def settle(self, reserved: float, spent: float | None) -> None:
        """Book what a call really cost; a call whose price is not known costs what was set aside."""
        self._reserved -= reserved
        self._spent += reserved if spent is None else spent
