"""What a person is asked of what models are asked: each question once, as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.requests import Request


def requests_for(model: ModelConfig, requests: Iterable[Request]) -> list[Request]:
    """Give the requests that are asked of a model.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml.
    requests : iterable of Request
        What a benchmark asks.

    Returns
    -------
    list of Request
        All of them. Of a reader each question once under the arm full and the strategy direct: nobody answers a question a second time
        without knowing it, and an arm that shows less of a case that was seen is none.
    """
    if model.reader is None:
        return list(requests)
    return [replace(row, samples=1) for row in requests if (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)]
