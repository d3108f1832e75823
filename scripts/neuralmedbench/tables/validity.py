"""How answers keep to the form that was asked for: strict, repaired, failed; structured ones step by step."""

from __future__ import annotations

from collections import Counter
from typing import Any

from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.scoring.parse import plain_text
from neuralmedbench.scoring.structured.form import STEPS, form_of
from neuralmedbench.scoring.structured_answer import find_answer_object
from neuralmedbench.tables.descriptive import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

PARSED = (ParseStatus.STRICT, ParseStatus.REPAIRED, ParseStatus.FAILED)

Row = dict[str, Any]


def validity_rows(study: Study) -> list[Row]:
    """Rows of `validity.csv`: arm full, strategy direct.

    `answered` is a share of the answers that were expected; every other step is one of the answers that came, refused and truncated ones
    included. `parse_strict`, `parse_repaired` and `parse_failed` add up to all of them. Structured answers have the steps of `form.STEPS` as well:
    each counts only answers that pass the steps before it.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        runners = [runner for runner in Runner if any(item.runner == runner for item in benchmark.items)]
        for model, scores in benchmark.scores.items():
            for runner in runners:
                own = [row for row in headline(scores) if row.runner == runner]
                head = {"benchmark": benchmark.name, "model": model, "runner": str(runner)}
                rows += [head | row for row in _steps(benchmark, runner, own)]
    return rows


def _steps(benchmark: BenchmarkStudy, runner: Runner, scores: list[Score]) -> list[Row]:
    came = [row for row in scores if not row.missing]
    rows = [_row("answered", len(came), len(scores))] if scores else []
    if not came:
        return rows
    states = Counter(row.parse_status for row in came)
    rows += [_row(f"parse_{status}", states[status], len(came)) for status in PARSED]
    if runner is Runner.STRUCTURED:
        items = {item.item_id: item for item in benchmark.items}
        passed = [_passed(row, items[row.item_id]) for row in came]
        rows += [_row(step, sum(number > place for number in passed), len(came)) for place, step in enumerate(STEPS)]
    return rows


def _passed(score: Score, item: Item) -> int:
    """Count the steps that one answer passes; what no parser could read passes none."""
    value = None if score.parse_status == ParseStatus.FAILED else find_answer_object(plain_text(score.text))[0]
    return form_of(item.answer_schema).passed(value)


def _row(step: str, count: int, n: int) -> Row:
    return {"step": step, "share": count / n, "count": count, "n": n}
