"""What the calls cost, and what left the machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.destinations import destination_of
from neuralmedbench.records.responses import MISSING_STATES, Response
from neuralmedbench.records.scores import GradeState
from neuralmedbench.stats.study import Study

NOT_KNOWN = "not known"

Row = dict[str, Any]


def efficiency_rows(study: Study) -> list[Row]:
    """Rows of `efficiency.csv`, the only table that holds latency, attempts and dates."""
    return [
        {"benchmark": name, "model": model} | _efficiency(responses)
        for name, benchmark in study.benchmarks.items()
        for model, responses in benchmark.responses.items()
    ]


def _efficiency(responses: list[Response]) -> Row:
    latencies = [row.latency_s for row in responses if row.latency_s is not None]
    costs = [row.cost_usd for row in responses if row.cost_usd is not None]
    dates = sorted({row.called_on for row in responses} - {""})
    return {
        "requests": len(responses),
        "answered": sum(row.state not in MISSING_STATES for row in responses),
        "prompt_tokens": _total([row.prompt_tokens for row in responses]),
        "completion_tokens": _total([row.completion_tokens for row in responses]),
        "latency_median_s": float(np.median(latencies)) if latencies else None,
        "latency_p90_s": float(np.quantile(latencies, 0.9)) if latencies else None,
        "cost_usd": float(sum(costs)) if costs else None,
        "attempts": sum(row.attempts for row in responses),
        "first_called_on": dates[0] if dates else None,
        "last_called_on": dates[-1] if dates else None,
    }


def _total(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def destination_rows(study: Study) -> list[Row]:
    """Rows of `destinations.csv`: requests and pictures by model and destination, graders that ask a model included."""
    rows = []
    for name, benchmark in study.benchmarks.items():
        for model, responses in benchmark.responses.items():
            sent = [row for row in responses if row.attempts > 0]
            pictures = sum(row.images_sent for row in sent)
            place = _destination(model, study.models[model])
            rows.append({"benchmark": name, "model": model, "destination": place, "requests": len(sent), "pictures": pictures})
        asked: Counter[str] = Counter()
        for (_, grader), grades in benchmark.grades.items():
            asked[grader] += len({(grade.model, grade.text_sha256, grade.item_id) for grade in grades if grade.state != GradeState.SKIPPED})
        for grader, config in study.graders.items():
            if config.model is not None:
                place = _destination(grader, config.model)
                rows.append(
                    {"benchmark": name, "model": f"grader {grader}", "destination": place, "requests": asked[grader], "pictures": 0}
                )
    return rows


def _destination(name: str, model: ModelConfig) -> str:
    try:
        return destination_of(name, model)
    except ConfigError:  # then nothing was sent: the engine asks the same question first
        return NOT_KNOWN
