"""Logs of inspect_ai, one per benchmark and model: a ZIP of JSON that `inspect view` and `read_eval_log` open (log format 2)."""

from __future__ import annotations

import json
import math
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.exports.released import LIBRARY, ReleasedRun, ReleasedScore, ScoredAnswer, counts_of, model_id
from neuralmedbench.files.packs import write_zip
from neuralmedbench.records.items import is_headline
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.study import BenchmarkStudy

Json = dict[str, Any]
VERSION = 2
PASSED = "pass1"
STOP = {"ok": "stop", "truncated": "max_tokens", "refused": "content_filter"}
"""Reason in the words of inspect by our state; a failed call has none."""


def write_inspect_logs(folder: Path, run: ReleasedRun) -> None:
    """Write `<benchmark>/<model>.eval` for every model with a number that may be shown, or with answers that may.

    Parameters
    ----------
    folder : Path
        Where the folders of the benchmarks go.
    run : ReleasedRun
        The run. A log of a private benchmark has its numbers and no sample.

    Notes
    -----
    Samples are the items, epochs the repeats. `pass1` of a sample is 1 or 0; without an answer, or a grade of it, it is NaN, which inspect
    leaves out. Numbers and intervals of the whole are those of our tables: inspect would compute intervals over items.
    """
    for benchmark, model in run.models:
        numbers = [number for number in run.numbers(benchmark.name, model.name) if is_headline(number)]
        answers = run.answers(benchmark, model.name)
        if numbers or answers:
            files = [(name, _json(value)) for name, value in _members(run, benchmark, model, numbers, answers)]
            write_zip(folder / benchmark.name / f"{model.name}.eval", files, compression=zipfile.ZIP_DEFLATED)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def _members(
    run: ReleasedRun, benchmark: BenchmarkStudy, model: ModelConfig, numbers: list[ReleasedScore], answers: list[ScoredAnswer]
) -> Iterator[tuple[str, Any]]:
    name = "/".join(model_id(model))
    samples = [_sample(answer, name) for answer in answers]
    start = {"version": VERSION, "eval": _spec(run, benchmark, model, answers), "plan": {"name": "plan", "steps": []}}
    made = f"{run.date.isoformat()}T00:00:00+00:00"
    header = start | {
        "status": "success",
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum(one["error"] is None for one in samples),
            "scores": [_eval_score(number, answers) for number in numbers],
        },
        "stats": {"started_at": made, "completed_at": made, "model_usage": _usage_of_all(samples)},
    }
    yield "_journal/start.json", start
    for one in samples:
        yield f"samples/{one['id']}_epoch_{one['epoch']}.json", one
    yield "summaries.json", [_summary(one) for one in samples]
    yield "reductions.json", _reductions(answers)
    yield "header.json", header


def _spec(run: ReleasedRun, benchmark: BenchmarkStudy, model: ModelConfig, answers: list[ScoredAnswer]) -> Json:
    items = list(dict.fromkeys(answer.item.item_id for answer in answers))
    name = f"{run.name}.{benchmark.name}.{model.name}.{model.revision}"
    sent = {"temperature": model.temperature, "top_p": model.top_p, "max_tokens": model.max_tokens, "seed": model.seed}
    return {
        "eval_id": name,
        "run_id": run.name,
        "created": f"{run.date.isoformat()}T00:00:00+00:00",
        "task": benchmark.name,
        "task_id": f"{run.name}.{benchmark.name}",
        "task_version": str(run.citation["version"]),
        "task_display_name": benchmark.config.title,
        "dataset": {"name": benchmark.config.title, "samples": len(items) or None, "sample_ids": items or None, "shuffled": False},
        "model": "/".join(model_id(model)),
        "model_generate_config": {key: value for key, value in sent.items() if value is not None},
        "config": {"epochs": benchmark.config.samples},
        "packages": {LIBRARY: str(run.citation["version"])},
        "metadata": {
            "made_by": run.title,
            "warning": run.warning,
            "revision": model.revision,
            "arm": FULL,
            "strategy": DIRECT,
            "commit": run.commit,
            "subjects": benchmark.config.subjects,
            **({} if answers else {"samples": "none: the benchmark is private"}),
        },
        "scorers": [{"name": PASSED}],
    }


def _eval_score(number: ReleasedScore, answers: list[ScoredAnswer]) -> Json:
    """Return one of our numbers as inspect's score, with its limits as inspect's `ci` has them."""
    values = {"mean": number.value, "ci_lower": number.low, "ci_upper": number.high}
    known = sum(answer.score.passed is not None for answer in answers)
    counts = {"scored_samples": known, "unscored_samples": len(answers) - known} if answers and number.metric == PASSED else {}
    return {
        "name": number.metric,
        "scorer": number.metric,
        "metrics": {name: {"name": name, "value": value, "params": {}} for name, value in values.items() if value is not None},
        "metadata": dict(counts_of(number)),
        **counts,
    }


def _score(answer: ScoredAnswer) -> Json:
    score = answer.score
    return {
        "value": math.nan if score.passed is None else float(score.passed),
        "answer": answer.extracted,
        "metadata": {
            "state": score.state,
            "parse_status": str(score.parse_status),
            "relation": score.relation,
            "differential": list(score.differential),
            "confidence": score.confidence,
        },
    }


def _sample(answer: ScoredAnswer, model: str) -> Json:
    item, score, response = answer.item, answer.score, answer.response
    last = {"role": "assistant", "content": response.text, "source": "generate", "model": model}
    said = [{"role": role, "content": text} for role, text in answer.messages] or [{"role": "user", "content": answer.question}, last]
    failed = score.missing and score.state not in STOP
    return {
        "id": item.item_id,
        "epoch": score.repeat + 1,
        "input": answer.question,
        "choices": list(item.options) or None,
        "target": answer.references,
        "messages": said,
        "output": {
            "model": model,
            "choices": [{"message": last, "stop_reason": STOP.get(score.state, "unknown")}],
            "completion": response.text,
            **({"usage": usage} if (usage := _usage(answer)) else {}),
            **({"time": response.latency_s} if response.latency_s is not None else {}),
        },
        "scores": {PASSED: _score(answer)},
        "metadata": {
            "item_id": item.item_id,
            "patient_id": item.patient_id,
            "family": str(item.family),
            "level": str(item.level),
            "pictures": [image.sha256 for image in item.images],
        },
        "store": {},
        "events": [],
        "model_usage": {model: usage} if usage else {},
        "attachments": {},
        "error": {"message": f"no answer: {score.state}", "traceback": "", "traceback_ansi": ""} if failed else None,
    }


def _usage(answer: ScoredAnswer) -> dict[str, int]:
    sent, got = answer.response.prompt_tokens, answer.response.completion_tokens
    return {} if sent is None or got is None else {"input_tokens": sent, "output_tokens": got, "total_tokens": sent + got}


def _usage_of_all(samples: list[Json]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in samples:
        for model, usage in one["model_usage"].items():
            for name, number in usage.items():
                found[model][name] += number
    return found


def _summary(sample: Json) -> Json:
    kept = ("id", "epoch", "input", "choices", "target", "scores", "metadata", "model_usage")
    error = sample["error"]["message"] if sample["error"] else None
    return {name: sample[name] for name in kept} | {"error": error, "completed": True, "message_count": len(sample["messages"])}


def _reductions(answers: list[ScoredAnswer]) -> list[Json]:
    """Return the mean over the epochs of every sample, as inspect's reducer `mean` makes it."""
    by_item: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        by_item[answer.item.item_id] += [float(answer.score.passed)] if answer.score.passed is not None else []
    means = [{"sample_id": name, "value": math.fsum(values) / len(values) if values else math.nan} for name, values in by_item.items()]
    return [{"scorer": PASSED, "reducer": "mean", "samples": means}]
