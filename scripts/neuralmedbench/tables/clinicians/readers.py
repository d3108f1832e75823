"""Readers beside models: on the questions that a reader answered, and on no others."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from neuralmedbench.estimates.intervals import rate_interval
from neuralmedbench.estimates.pairs import paired_difference
from neuralmedbench.tables.contrasts import answered
from neuralmedbench.tables.groups import Mask, item_groups
from neuralmedbench.tables.outcomes import DIRECT, FULL, Key, Outcomes
from neuralmedbench.tables.study import BenchmarkStudy, Study

SLICES = ("family", "level")

Row = dict[str, Any]


def reader_rows(study: Study) -> list[Row]:
    """Rows of `readers.csv`.

    Parameters
    ----------
    study : Study
        The run.

    Returns
    -------
    list of dict
        One a reader, other model (readers too) and slice: pass@1 of both with intervals, and reader minus model, paired by item, over the
        items that both answered without a missing sample. All items, then each family and each level. Strata of a round are drawn with
        different probabilities: a rate here is that of the items that were shown, not of the benchmark.
    """
    return [row for benchmark in study.benchmarks.values() for reader in study.readers for row in _rows(study, benchmark, reader)]


def _rows(study: Study, benchmark: BenchmarkStudy, reader: str) -> Iterator[Row]:
    outcomes = benchmark.outcomes
    own = answered(outcomes, Key(reader))
    for name, value, mask in _slices(study, outcomes):
        for model in study.models:
            other = answered(outcomes, Key(model))
            both = mask & ~np.isnan(own) & ~np.isnan(other)
            if model == reader or not both.any():
                continue
            row: Row = {
                "benchmark": benchmark.name,
                "reader": reader,
                "title": study.models[reader].title,
                "simulated": "simulated" in (study.readers[reader], study.readers.get(model)),
                "model": model,
                "slice": name,
                "value_of_slice": value,
                "seconds_median": _seconds(benchmark, reader, both),
            }
            shown = {"reader": np.where(both, own, np.nan), "model": np.where(both, other, np.nan)}
            for side, values in shown.items():
                rate = rate_interval(values, outcomes.patients, study.settings)
                row |= {f"{side}_pass1": rate.value, f"{side}_pass1_low": rate.low, f"{side}_pass1_high": rate.high}
            found = paired_difference(shown["reader"], shown["model"], outcomes.patients, study.settings)
            row |= {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
            yield row | {"n_items": found.items, "n_patients": found.patients}


def _slices(study: Study, outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    yield "all", "all", np.ones(len(outcomes.items), dtype=bool)
    yield from ((name, value, mask) for name, value, mask in item_groups(study, outcomes) if name in SLICES)


def _seconds(benchmark: BenchmarkStudy, reader: str, both: Mask) -> float | None:
    """Median time for an answer, all its turns together."""
    shown = {item.item_id for item, there in zip(benchmark.outcomes.items, both, strict=True) if there}
    known = [
        row.latency_s
        for row in benchmark.responses[reader]
        if row.item_id in shown and row.latency_s is not None and (row.arm, row.strategy) == (FULL, DIRECT)
    ]
    return median(known) if known else None
