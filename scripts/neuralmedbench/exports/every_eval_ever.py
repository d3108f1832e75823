"""Every Eval Ever records, version 0.3.0: one aggregate per benchmark and model, and its answers beside it (github.com/evaleval/every_eval_ever)."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import uuid
from pathlib import Path
from typing import Any

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.exports.released import LIBRARY, ReleasedRun, ReleasedScore, ScoredAnswer, counts_of, may_travel, model_id
from neuralmedbench.files.json_files import write_json
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.study import BenchmarkStudy

Json = dict[str, Any]
VERSION = "0.3.0"
FORBIDDEN = re.compile(r'[<>:"\\|?*\x00-\x1f/]')
"""Characters that a folder of the datastore may not have."""
HOSTED, OWN = "externally_managed", "self_deployed"


def write_every_eval_ever(root: Path, folder: Path, run: ReleasedRun) -> None:
    """Write the records in the layout of the datastore: `data/<benchmark>/<developer>/<model>/<uuid>.json` and `<uuid>_samples.jsonl`.

    Parameters
    ----------
    root : Path
        The repository root, with the prompts of the graders.
    folder : Path
        Where `data/` goes.
    run : ReleasedRun
        The run. A model without a number that may be shown has no record.
    """
    for benchmark, model in run.models:
        numbers = run.numbers(benchmark.name, model.name)
        if numbers:
            _write_record(root, folder, run, benchmark=benchmark, model=model, numbers=numbers)


def _write_record(
    root: Path, folder: Path, run: ReleasedRun, *, benchmark: BenchmarkStudy, model: ModelConfig, numbers: list[ReleasedScore]
) -> None:
    developer, name = model_id(model)
    # equal runs give equal names: no random number, and no time of writing
    named = f"{run.name}/{benchmark.name}/{model.name}/{model.revision}/{run.commit}/{run.date}"
    identifier = uuid.UUID(bytes=hashlib.sha256(named.encode()).digest()[:16], version=4)
    place = Path("data", *(FORBIDDEN.sub("-", part).strip(". ") for part in (benchmark.name, developer, name)))
    retrieved = str(int(datetime.datetime.combine(run.date, datetime.time(), datetime.UTC).timestamp()))
    evaluation = f"{benchmark.name}/{developer}/{name}/{retrieved}/{run.name}/{model.name}@{model.revision}"
    record: Json = {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": run.date.isoformat(),
        "retrieved_timestamp": retrieved,
        "source_metadata": {
            "source_name": run.title,
            "source_type": "evaluation_run",
            "source_organization_name": run.citation["authors"][0]["name"],
            "evaluator_relationship": "first_party" if model.backend == "builtin" else "third_party",
            "additional_details": {"run": run.name, **({"warning": run.warning} if run.warning else {})},
        },
        "eval_library": {
            "name": LIBRARY,
            "version": str(run.citation["version"]),
            "additional_details": {"commit": run.commit},
        },
        "model_info": _model_info(model),
        "evaluation_results": [_result(root, run, benchmark, number) for number in numbers],
    }
    answers = [answer for answer in run.answers(benchmark, model.name) if answer.score.passed is not None]
    if answers and any(_is_pass1(number) for number in numbers):
        lines = [
            json.dumps(_instance(answer, evaluation, f"{developer}/{name}", numbers), ensure_ascii=False, sort_keys=True)
            for answer in answers
        ]
        text = "\n".join([*lines, ""])
        path = place / f"{identifier}_samples.jsonl"
        write_text(folder / path, text)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": path.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(lines),
        }
    write_json(folder / place / f"{identifier}.json", record)


def _model_info(model: ModelConfig) -> Json:
    developer, name = model_id(model)
    hosted = model.backend == "litellm" and not model.api_base
    known: Json = {"name": model.title, "id": f"{developer}/{name}", "developer": developer}
    if hosted and "/" in model.id:
        known["inference_platform"] = model.id.partition("/")[0]
    elif model.backend in {"transformers", "server"}:
        known["inference_engine"] = {"name": model.server.engine if model.server else "transformers"}
    deployment = HOSTED if hosted else OWN if model.backend in {"builtin", "transformers", "server"} else "unknown"
    weights = {True: "open_weights", False: "closed_weights", None: "unknown"}[model.open_weights]
    details = {"revision": model.revision, "backend": model.backend, "baseline": str(model.baseline).lower()}
    return known | {"additional_details": {**details, "deployment_type": deployment, "model_availability": weights}}


def _is_pass1(number: ReleasedScore) -> bool:
    return (number.metric, number.arm, number.strategy) == ("pass1", FULL, DIRECT)


def _name(number: ReleasedScore) -> str:
    return ".".join(
        part for part in (number.benchmark or "", number.arm or "", "" if number.strategy == DIRECT else number.strategy or "") if part
    )


def _result_id(number: ReleasedScore) -> str:
    return f"{_name(number)}.{number.metric}"


def _result(root: Path, run: ReleasedRun, benchmark: BenchmarkStudy, number: ReleasedScore) -> Json:
    card = run.cards[benchmark.name]
    source: Json = {
        "dataset_name": benchmark.config.title,
        "source_type": "other",
        "additional_details": {"subjects": benchmark.config.subjects},
    }
    if card.url and may_travel(benchmark):
        source |= {"source_type": "url", "url": [card.url]}
    metric: Json = {
        "evaluation_description": f"{number.metric}; arm {number.arm}, strategy {number.strategy}. Items with a reference: {number.n_items}.",
        "metric_id": f"neural_medbench.{number.metric}",
        "metric_name": number.metric,
        "metric_unit": "proportion",
        "lower_is_better": number.metric == "false_alarm",
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
        "additional_details": {"grader": number.grader or "none: letters, labels or words are compared"},
    }
    if scoring := _llm_scoring(root, run, number):
        metric["llm_scoring"] = scoring
    score: Json = {"score": number.value, "details": counts_of(number)}
    if number.low is not None and number.high is not None:
        limits = {"lower": number.low, "upper": number.high, "confidence_level": number.confidence, "method": number.interval}
        known = {name: value for name, value in limits.items() if value is not None}
        score["uncertainty"] = {"confidence_interval": known, "num_samples": number.n_items}
    if number.note:
        score["details"] |= {"note": number.note}
    return {
        "evaluation_result_id": _result_id(number),
        "evaluation_name": _name(number),
        "source_data": source,
        "evaluation_timestamp": run.date.isoformat(),
        "metric_config": metric,
        "score_details": score,
    }


def _llm_scoring(root: Path, run: ReleasedRun, number: ReleasedScore) -> Json | None:
    """Return the language models that decide a number, with the prompt of the first; None if there is none."""
    every = run.study.all_graders
    named = [every[name] for name in (number.grader or "").split(";") if name in every]
    judges = [one for grader in named for one in (grader, *(every[name] for name in grader.members if name in every)) if one.model]
    if not judges:
        return None
    prompt = root / str(judges[0].prompt)
    return {
        "judges": [
            {
                "model_info": _model_info(judge.model),
                **({"temperature": judge.model.temperature} if judge.model.temperature is not None else {}),
            }
            for judge in judges
            if judge.model
        ],
        "input_prompt": prompt.read_text(encoding="utf-8") if prompt.is_file() else str(judges[0].prompt),
    }


def _instance(answer: ScoredAnswer, evaluation: str, model: str, numbers: list[ReleasedScore]) -> Json:
    item, score, response = answer.item, answer.score, answer.response
    number = next(number for number in numbers if _is_pass1(number))
    raw, references, messages = answer.question, answer.references, answer.messages
    hashed = json.dumps({"raw": raw, "reference": references}, sort_keys=True, separators=(",", ":")).encode()
    last = len(messages) - 1 if messages else 0
    tokens = (response.prompt_tokens, response.completion_tokens)
    record: Json = {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        "model_id": model,
        "evaluation_name": _name(number),
        "evaluation_result_id": _result_id(number),
        "sample_id": item.item_id,
        "sample_hash": hashlib.sha256(hashed).hexdigest(),
        "interaction_type": "multi_turn" if messages else "single_turn",
        "input": {"raw": raw, "reference": references, **({"choices": list(item.options)} if item.options else {})},
        "answer_attribution": [
            {
                "turn_idx": last,
                "source": f"messages[{last}].content" if messages else "output.raw",
                "extracted_value": answer.extracted,
                "extraction_method": f"answer form, {score.parse_status}",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(bool(score.passed)), "is_correct": bool(score.passed)}
        | ({"num_turns": len(messages) // 2} if messages else {}),
        "metadata": {
            "repeat": str(score.repeat),
            "patient_id": item.patient_id,
            "family": str(item.family),
            "level": str(item.level),
            "state": score.state,
            "pictures": " ".join(image.sha256 for image in item.images),
        },
    }
    if messages:
        record["messages"] = [{"turn_idx": place, "role": role, "content": text} for place, (role, text) in enumerate(messages)]
    else:
        record["output"] = {"raw": [response.text]}
    if None not in tokens:
        record["token_usage"] = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(filter(None, tokens))}
    if response.latency_s is not None:
        record["performance"] = {"latency_ms": response.latency_s * 1000}
    if score.state != "ok":
        record["error"] = score.state
    return record
