"""A run that is larger than any test can make: case table and models are there, scans are not. It can be planned, not run."""

from __future__ import annotations

import hashlib
from pathlib import Path

from conftest import copy_project
from neuralmedbench.files.cases import CaseRow, write_case_table

SCALE = ("--configfile", "config/scale.yaml")
PER_CASE = ("ingest_case", "deidentify_case", "normalise_case", "cut_slices")
BENCHMARK = """\
title: Own scans that are not there
kind: scans
axis: depth
source: /nowhere/scans
key_file: /nowhere/key
allowed_destinations: [local, api.openai.com]
"""
MODEL = """\
title: A remote model
backend: litellm
id: openai/{name}
revision: "1"
api_key_env: OPENAI_API_KEY
max_cost_usd: 1
prices:
  usd_per_million_prompt_tokens: 1
  usd_per_million_completion_tokens: 1
  dated: "2026-01-01"
"""


def write_scale(folder: Path, cases: int, models: int) -> Path:
    """Copy the project and add an own-data benchmark of so many cases (two a patient), so many models and a run list of them."""
    copy_project(folder)
    config = folder / "config"
    (config / "benchmarks" / "mine.yaml").write_text(BENCHMARK, encoding="utf-8")
    rows = [
        CaseRow(
            case_id=_digest(f"case {number}")[:12],
            patient_id=_digest(f"patient {number // 2}")[:12],
            source_sha256=_digest(f"source {number}"),
            sequence_overrides={"series-02": "FLAIR"} if number % 10 == 0 else {},
            exclude="",
        )
        for number in range(cases)
    ]
    write_case_table(config / "benchmarks" / "mine.cases.tsv", rows)
    names = [f"remote{number:02d}" for number in range(models)]
    for name in names:
        (config / "models" / f"{name}.yaml").write_text(MODEL.format(name=name), encoding="utf-8")
    lists = f"benchmarks: [mine]\nmodels: [{', '.join(names)}]\ngraders: [rubric, llm]\n"
    (config / "scale.yaml").write_text(lists, encoding="utf-8")
    return folder


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
