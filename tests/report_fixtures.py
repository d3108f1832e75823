"""The commands from scores to the page, run on a made-up study."""

from __future__ import annotations

from pathlib import Path

import build_report
import build_tables
import bundle_cases
import draw_figures
import record_provenance
from tables_fixtures import BREADTH, DEPTH, GRADERS

MODELS = ("alpha", "beta", "gamma")


def build(root: Path, models: tuple[str, ...] = MODELS, *extra: str) -> str:
    results, run = root / "results", ["--benchmarks", DEPTH, BREADTH, "--models", *models]
    vocabulary = ["--vocabulary", "config/vocabulary.yaml"]
    tables = ["--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json"), "--resamples", "100"]
    assert build_tables.main(["--root", str(root), *run, "--graders", *GRADERS, *vocabulary, *tables]) == 0
    for name in (DEPTH, BREADTH):
        arguments = ["--items", str(root / "data" / "items" / f"{name}.parquet"), "--gold", str(root / "data" / "gold" / f"{name}.parquet")]
        for kind in ("responses", "scores"):
            arguments += [f"--{kind}", *(str(results / kind / name / f"{model}.parquet") for model in models)]
        prompts = root / "data" / "prompts" / f"{name}.parquet"
        arguments += ["--prompts", str(prompts)] if prompts.is_file() else []
        arguments += ["--grades", *(str(results / "grades" / name / model / f"{grader}.parquet") for model in models for grader in GRADERS)]
        assert bundle_cases.main([*arguments, "--out", str(results / "cases" / f"{name}.parquet")]) == 0
    assert draw_figures.main(["--tables", str(results / "tables"), "--out", str(results / "figures")]) == 0
    provenance = ["--root", str(root), *run, *vocabulary, "--bootstrap-seed", "1", "--out", str(results / "provenance.json")]
    assert record_provenance.main([*provenance, "--inputs", f"data/items/{DEPTH}.parquet"]) == 0
    return page(root, models, *extra)


def page(root: Path, models: tuple[str, ...], *extra: str) -> str:
    out = root / "results" / "report.html"
    arguments = ["--root", str(root), "--results", str(root / "results"), "--benchmarks", DEPTH, BREADTH, "--models", *models]
    assert build_report.main([*arguments, "--graders", *GRADERS, "--out", str(out), *extra]) == 0
    return out.read_text(encoding="utf-8")
