"""The stages of `dvc.yaml`, from the run lists: DVC keeps the ledger of what Snakemake made."""

from __future__ import annotations

from typing import Any

import yaml

from neuralmedbench.config.workflow import Run
from neuralmedbench.records.items import Kind

HEADER = "# Generated from the run lists by `make docs`; do not edit by hand. Snakemake is the engine, this is its ledger.\n"


def dvc_yaml(run: Run) -> str:
    """Text of `dvc.yaml` for a run.

    Parameters
    ----------
    run : Run
        The run; benchmarks that are private are left out.

    Returns
    -------
    str
        The file. Every stage calls Snakemake for its output, so there is one way to make a thing; every out persists,
        so that Snakemake never loses what it could resume from.
    """
    shared = [name for name, benchmark in run.benchmarks.items() if not benchmark.private]
    scans = [name for name in shared if run.benchmarks[name].kind is Kind.SCANS]
    models, graders = list(run.models), list(run.graders)
    benchmark, model = "${item.benchmark}", "${item.model}"
    responses, scores = f"results/responses/{benchmark}/{model}.parquet", f"results/scores/{benchmark}/{model}.parquet"
    grades = f"results/grades/{benchmark}/{model}/${{item.grader}}.parquet"
    stages: dict[str, Any] = {
        "deidentify": _stage(
            {"benchmark": shared}, "audit.json", [], [f"data/deidentified/{benchmark}"], of=f"data/deidentified/{benchmark}"
        ),
        "slices": _stage(
            {"benchmark": scans},
            "slices.parquet",
            [f"data/deidentified/{benchmark}"],
            [f"data/normalised/{benchmark}", f"data/slices/{benchmark}"],
            of=f"data/slices/{benchmark}",
        ),
        "prompts": _stage(
            {"benchmark": shared},
            f"{benchmark}.parquet",
            [f"data/deidentified/{benchmark}"],
            [f"data/{part}/{benchmark}.parquet" for part in ("items", "gold", "disclosures", "prompts")],
            of="data/prompts",
        ),
        "infer": _stage(
            {"benchmark": shared, "model": models},
            f"{model}.parquet",
            [f"data/prompts/{benchmark}.parquet", f"config/models/{model}.yaml"],
            [f"data/ledger/{benchmark}/{model}.jsonl", responses],
            of=f"results/responses/{benchmark}",
        ),
        "grade": _stage(
            {"benchmark": shared, "model": models, "grader": graders},
            "${item.grader}.parquet",
            [responses, "config/graders/${item.grader}.yaml"],
            [grades],
            of=f"results/grades/{benchmark}/{model}",
        ),
        "score": _stage(
            {"benchmark": shared, "model": models},
            f"{model}.parquet",
            [responses, f"data/gold/{benchmark}.parquet"],
            [scores],
            of=f"results/scores/{benchmark}",
        ),
        "report": {
            "cmd": "snakemake --cores 8 -- results/report.html",
            "deps": [f"results/scores/{name}/{entry}.parquet" for name in shared for entry in models],
            "outs": [
                _out(path)
                for path in (
                    "results/tables",
                    "results/similarity",
                    "results/ratings",
                    "results/cases",
                    "results/figures",
                    "results/provenance.json",
                    "results/report.html",
                    ".snakemake/metadata",
                )
            ],
            "metrics": [_out("results/metrics.json")],
        },
    }
    return HEADER + yaml.safe_dump({"stages": stages}, sort_keys=False, width=140)


def _stage(matrix: dict[str, list[str]], target: str, deps: list[str], outs: list[str], *, of: str) -> dict[str, Any]:
    stage: dict[str, Any] = {"matrix": matrix, "cmd": f"snakemake --cores 8 -- {of}/{target}"}
    if deps:
        stage["deps"] = deps
    return {**stage, "outs": [_out(path) for path in outs]}


def _out(path: str) -> dict[str, dict[str, bool]]:
    return {path: {"persist": True}}
