"""Choose the requests for a human reader: each question once, with everything that the case shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.records.items import Arm, Strategy
from neuralmedbench.records.requests import Request


def requests_for(model: ModelConfig, requests: Iterable[Request]) -> list[Request]:
    """Return the requests for a model or a human reader.

    Parameters
    ----------
    model : ModelConfig
        The model's yaml.
    requests : iterable of Request
        The requests of a benchmark.

    Returns
    -------
    list of Request
        All requests for a model. For a human reader one sample per question, with the arm full and the strategy direct: people remember
        their first answer, and after the full case an arm that shows less of it measures nothing.
    """
    if model.reader is None:
        return list(requests)
    return [replace(row, samples=1) for row in requests if (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)]
