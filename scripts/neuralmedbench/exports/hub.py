"""Result files in the form of the Hugging Face hub: `eval.yaml` for the data set's repository, a result file for each model's repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.cards.card import CroissantConfig
from neuralmedbench.exports.released import LIBRARY, ReleasedRun, ReleasedScore, may_travel
from neuralmedbench.records.words import percent
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.families import pass_definition
from neuralmedbench.tables.study import BenchmarkStudy

ON_HUB = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)")
OWNER = "OWNER"
"""In place of the owner of a data set whose card names no page of the hub."""


def write_hub_files(folder: Path, run: ReleasedRun) -> None:
    """Write `<benchmark>/eval.yaml`, and `<benchmark>/<model>.yaml` for every model whose pass@1 is known.

    Parameters
    ----------
    folder : Path
        Where the folders of the benchmarks go.
    run : ReleasedRun
        The run. Private benchmarks are left out: their data set is on no hub.
    """
    for benchmark in run.study.benchmarks.values():
        if may_travel(benchmark):
            write_text(folder / benchmark.name / "eval.yaml", _yaml(_registration(run, benchmark)))
    for benchmark, model in run.models:
        first = next((number for number in run.numbers(benchmark.name, model.name) if number.tier is not None), None)
        if first is not None and may_travel(benchmark):
            write_text(folder / benchmark.name / f"{model.name}.yaml", _yaml([_result(run, run.cards[benchmark.name], first)]))


def dataset_of(benchmark: str, card: CroissantConfig) -> str:
    """Return the data set's name on the hub, from the address in its card; else a name in which the owner is left open."""
    found = ON_HUB.match(card.url or "")
    return found[1] if found else f"{OWNER}/{benchmark}"


def notes_of(number: ReleasedScore) -> str:
    """Say n, interval, grader and tier of a number in the one free text that a result file has."""
    parts = [
        f"{number.metric} over {number.n_items} items of {number.n_patients} {number.cluster}s",
        f"{percent(number.confidence)} interval {number.low:.6f} to {number.high:.6f} ({number.interval})"
        if number.confidence is not None
        else "no interval",
        f"grader {number.grader or 'none'}",
        f"tier {number.tier}, rank {number.rank} ({number.rank_low} to {number.rank_high})",
        f"arm {number.arm}, strategy {number.strategy}",
    ]
    return "; ".join(parts)


def _registration(run: ReleasedRun, benchmark: BenchmarkStudy) -> dict[str, Any]:
    description = " ".join(filter(None, (pass_definition(benchmark.items), run.warning)))
    return {
        "name": benchmark.config.title,
        "description": description,
        "evaluation_framework": LIBRARY,
        "tasks": [{"id": benchmark.name}],
    }


def _result(run: ReleasedRun, card: CroissantConfig, number: ReleasedScore) -> dict[str, Any]:
    return {
        "dataset": {"id": dataset_of(number.benchmark or "", card), "task_id": number.benchmark},
        "value": number.value,
        "date": run.date.isoformat(),
        "notes": notes_of(number),
    }


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=1000)
