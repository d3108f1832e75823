"""How long a provider serves a model: by the model's yaml, or by the price list that is installed with litellm. Nothing is asked here."""

from __future__ import annotations

import datetime
import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from neuralmedbench.config.model import ModelConfig

PRICE_LIST = "model_prices_and_context_window_backup.json"
NEAR_DAYS = 180
"""A last day that is not further away is said. (Our rule.)"""


@cache
def price_list() -> Mapping[str, Any]:
    """Read litellm's list of models without importing litellm, which takes seconds; empty if it is not installed."""
    package = importlib.util.find_spec("litellm")
    path = Path(package.origin).with_name(PRICE_LIST) if package and package.origin else Path()
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def listed(model_id: str) -> Mapping[str, Any] | None:
    """Return what the price list says of a provider's model; None if it does not know it."""
    provider, _, name = model_id.partition("/")
    rows = [row for key in (model_id, name) if (row := price_list().get(key)) and row.get("litellm_provider") == provider]
    return rows[0] if rows else None


def last_day(model: ModelConfig, served: str = "") -> datetime.date | None:
    """Return the last day on which a provider serves a model, or the version that it named in its answers; None if it is not known."""
    if model.ends_on and not served:
        return model.ends_on
    row = listed(f"{model.id.partition('/')[0]}/{served.rpartition('/')[2]}" if served else model.id) if _is_hosted(model) else None
    day = str((row or {}).get("deprecation_date") or "")
    return datetime.date.fromisoformat(day) if day else None


def life_lines(
    models: Iterable[ModelConfig], today: datetime.date, listed_days: Mapping[str, datetime.date] | None = None
) -> Iterator[str]:
    """Yield a line for each model that ends soon or has ended, and for each that the price list does not know.

    What its provider's own list says (`api.model_list`) comes first.
    """
    for model in models:
        own = (listed_days or {}).get(model.name)
        if own and own != model.ends_on:
            yield f"{model.name}: write `ends_on: {own}` in its yaml, as its provider's list of models says"
        if day := own or last_day(model):
            yield from (f"{model.name}: {words}" for words in life_words(day, today))
        if _is_hosted(model) and price_list() and listed(model.id) is None:
            yield f"{model.name}: the installed price list does not know {model.id}: parameters that it refuses, and its last day, are not known before it is asked"


def life_words(day: datetime.date, today: datetime.date) -> Iterator[str]:
    """Yield what a last day means; nothing if it is far."""
    left = (day - today).days
    if left < 0:
        yield f"WARNING: its provider ended it on {day}: calls fail, or another model answers them; write another `id` and raise `revision`"
    elif left <= NEAR_DAYS:
        yield f"its provider serves it until {day}, {left} days from now: the last day to ask this revision"


def _is_hosted(model: ModelConfig) -> bool:
    return model.backend == "litellm" and model.api_base is None
