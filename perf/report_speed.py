"""Measure tables, figures and report of a run of 20 models x 1,000 items x 5 samples with 10,000 resamples (seconds, memory, size).

Run on purpose (`python perf/report_speed.py`), never a test. The answers are made up: open items, two a patient, and as many questions about
single pictures beside them, one answer each.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

import tables_fixtures  # noqa: E402
from tables_fixtures import BREADTH, DEPTH, GRADERS, write_study  # noqa: E402

GOAL_S, GOAL_MB = 90, 2000


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--items", type=int, default=1_000, help="open items, two a patient")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--arms", nargs="+", default=["full"], choices=sorted(tables_fixtures.ARM_SHIFT), help="arms that ran")
    parser.add_argument("--keep", type=Path, help="folder that the run is written to and left in")
    return parser.parse_args(argv)


def commands(root: Path, models: Sequence[str], resamples: int) -> dict[str, list[str]]:
    """Give the commands as the rules call them, by step."""
    results, run = root / "results", ["--benchmarks", DEPTH, BREADTH, "--models", *models]
    vocabulary = ["--vocabulary", "config/vocabulary.yaml"]
    found = {
        "tables": [
            *("build_tables.py", "--root", str(root), *run, "--graders", *GRADERS, *vocabulary, "--resamples", str(resamples)),
            *("--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json")),
        ]
    }
    for name in (DEPTH, BREADTH):
        paths = {kind: [str(results / kind / name / f"{model}.parquet") for model in models] for kind in ("responses", "scores")}
        grades = [str(results / "grades" / name / model / f"{grader}.parquet") for model in models for grader in GRADERS]
        data = {kind: str(root / "data" / kind / f"{name}.parquet") for kind in ("items", "gold", "prompts")}
        inputs = [*("--items", data["items"], "--gold", data["gold"]), "--responses", *paths["responses"], "--scores", *paths["scores"]]
        prompts = ["--prompts", data["prompts"]] if Path(data["prompts"]).is_file() else []
        found[f"cases of {name}"] = [
            *("bundle_cases.py", *inputs, *prompts, "--grades", *grades, "--out", str(results / "cases" / f"{name}.parquet"))
        ]
    found["figures"] = ["draw_figures.py", "--tables", str(results / "tables"), "--out", str(results / "figures")]
    out = str(results / "provenance.json")
    inputs = ["--inputs", f"data/items/{DEPTH}.parquet"]
    found["provenance"] = ["record_provenance.py", "--root", str(root), *run, *vocabulary, "--bootstrap-seed", "1", *inputs, "--out", out]
    page = ["--graders", *GRADERS, "--max-megabytes", "1000", "--out", str(results / "report.html")]
    found["report"] = ["build_report.py", "--root", str(root), "--results", str(results), *run, *page]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    tables_fixtures.ARM_SHIFT = {arm: shift for arm, shift in tables_fixtures.ARM_SHIFT.items() if arm in args.arms}
    models = tuple(f"model{number:02d}" for number in range(args.models))
    with tempfile.TemporaryDirectory() as folder:
        root = args.keep or Path(folder)
        write_study(root, models=models, patients=args.items // 2)
        told: dict[str, object] = {"models": args.models, "items": args.items, "answers": args.models * args.items * 5 * len(args.arms)}
        total = 0.0
        for step, command in commands(root, models, args.resamples).items():
            before, begun = os.times(), time.perf_counter()
            subprocess.run([sys.executable, str(ROOT / "scripts" / command[0]), *command[1:]], cwd=ROOT, check=True)
            after, seconds = os.times(), time.perf_counter() - begun
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            told[step] = {"s": round(seconds, 1), "cpu_s": round(cpu, 1)}
            total += seconds
        told |= {"s": round(total, 1), "goal_s": GOAL_S, "goal_mb": GOAL_MB}
        told["largest_mb"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        told["report_mb"] = round((root / "results" / "report.html").stat().st_size / 1e6, 1)
        print(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
