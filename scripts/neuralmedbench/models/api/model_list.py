"""Last days of models as their providers list them: one request to each server, with its key and without any data."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterable
from typing import Any

from yarl import URL

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.models.api.backend import NATIVE
from neuralmedbench.models.api.replies import reply_object
from neuralmedbench.models.api.wire import Exchange, OneHost
from neuralmedbench.models.destinations import address_of

OPENAI = "https://api.openai.com/v1"
LONGEST_S = 20.0


def listed_last_days(models: Iterable[ModelConfig]) -> dict[str, datetime.date]:
    """Ask the servers that speak OpenAI's protocol which of their models end (`shutdown_date`).

    Returns
    -------
    dict of str to date
        By the name of the model or grader; without those that a server does not list, or lists without a date, or that cannot be asked.
    """
    asked = [model for model in models if model.backend == "litellm" and model.id.partition("/")[0] in NATIVE]
    places = {model.api_base or OPENAI: model for model in asked}
    lists = {base: asyncio.run(_shutdown_dates(base, model)) for base, model in places.items()}
    days = {model.name: lists[model.api_base or OPENAI].get(model.id.partition("/")[2]) for model in asked}
    return {name: day for name, day in days.items() if day}


async def _shutdown_dates(base: str, model: ModelConfig) -> dict[str, datetime.date]:
    host, exchange = OneHost(address_of(model), LONGEST_S), Exchange()
    headers = [("Authorization", f"Bearer {model.api_key}")] if model.api_key else []
    try:
        await host.send("GET", URL(f"{base.rstrip('/')}/models"), headers, None, exchange)
    finally:
        await host.close()
    rows = reply_object(exchange.body).get("data") if exchange.status == 200 else None
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (day := _day(row.get("shutdown_date"))):
            found[str(row.get("id"))] = day
    return found


def _day(value: Any) -> datetime.date | None:
    """Read a day from a text or from seconds since 1970; None if it is neither."""
    try:
        if isinstance(value, str):
            return datetime.datetime.fromisoformat(value).date()
        return datetime.datetime.fromtimestamp(value, datetime.UTC).date()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
