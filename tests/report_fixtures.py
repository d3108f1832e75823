"""The commands from scores to the page, run on a made-up study."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

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
    profile = ["--profile", extra[extra.index("--profile") + 1]] if "--profile" in extra else []
    assert build_tables.main(["--root", str(root), *run, "--graders", *GRADERS, *vocabulary, *tables, *profile]) == 0
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


def unpacked(packed: str) -> list[dict[str, Any]]:
    """Give the items of a packed case as the page reads them: each response with its names."""
    items: list[dict[str, Any]] = json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))["items"]
    for item in items:
        names, columns = item["responses"].keys(), item["responses"].values()
        item["responses"] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return items


def blocks_of(text: str) -> dict[str, str]:
    """Give the blocks of a page by their id, in order."""
    found = re.findall(r'<section id="([^"]+)".*?</section>', text, flags=re.DOTALL)
    return {name: text[text.index(f'<section id="{name}"') :].partition("</section>")[0] for name in found}


def lacking(block: str) -> list[str]:
    """Name the parts that a block owes its reader and does not have."""
    parts = {
        "takeaway": r'<p class="takeaway">[^<]{15,}</p>',
        "n": r'<p class="n">n = ([^<]*\d[^<]*|not shown)</p>',
        "figure, table, list or empty state": r'<figure|<table|<ul|<dl|class="empty"|class="case"',
        "how to read": r'<details class="how" data-print><summary>How to read</summary>\s*<p>.{15,}',
        "rule": r"rule <code>[a-z_]+</code>",
        "config": r'config (<code>[a-z_]+</code> in )?<a href="\.\./config/[^"]*">',
    }
    return [name for name, pattern in parts.items() if not re.search(pattern, block, flags=re.DOTALL)]
