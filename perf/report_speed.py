"""Measure making tables, figures and report for a run of 20 models x 5 benchmarks with 10,000 resamples (seconds, memory, size).

Run on purpose (`python perf/report_speed.py`), never a test. The answers are invented: 1,000 open items with five answers each, two items per
patient, and equally many questions on single pictures with one answer each; the other benchmarks are like these two in turn, with 60 patients.
They compress better than real ones, which repeat less.

`interactive_s` is the time from opening the page in headless Chromium until a click on a header of the leaderboard has sorted it and the
screen is drawn; `opened_s` is the time from opening the first case to its first answer; `page_cpu_s` is the CPU time of the page's thread for
both, which does not depend on other load. `goal_s` was set for two benchmarks (`--benchmarks 2`). `--page` measures an existing page only.
`--axe` says what a checker of accessibility finds in each block, light and dark, 1440 and 390 pixels wide, in the first 20 rows of a table.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures import tables as tables_fixtures  # noqa: E402
from fixtures.chromium import CHROMIUM, browser  # noqa: E402
from fixtures.commands import settings  # noqa: E402
from fixtures.tables import BREADTH, DEPTH, GRADERS, add_benchmark, write_study  # noqa: E402

GOAL_S, GOAL_MB, GOAL_INTERACTIVE_S = 90, 2000, 2
USED = """(async () => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  document.querySelector("#leaderboard table.sortable thead button").click();
  await drawn();
  const interactive = performance.now();
  const first = document.querySelector("details.case");
  if (first) first.open = true;
  while (first && !first.querySelector(".answer")) await drawn();
  return [interactive / 1000, first ? (performance.now() - interactive) / 1000 : null];
})()"""


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--benchmarks", type=int, default=5, help="at least 2")
    parser.add_argument("--items", type=int, default=1_000, help="open items, two per patient")
    parser.add_argument("--other-patients", type=int, default=60, help="patients of the other benchmarks, with two items each")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--arms", nargs="+", default=["full"], choices=sorted(tables_fixtures.ARM_SHIFT), help="arms of the run")
    parser.add_argument("--keep", type=Path, help="write the run to this folder and keep it")
    parser.add_argument("--page", type=Path, help="measure this page only")
    parser.add_argument("--axe", action="store_true", help="with --page: what axe finds in it")
    return parser.parse_args(argv)


def commands(root: Path, benchmarks: Sequence[str], models: Sequence[str], resamples: int) -> dict[str, list[str]]:
    """Return the commands of the rules, by step."""
    results, run = root / "results", {"benchmarks": benchmarks, "models": models}
    vocabulary = ["--vocabulary", "config/vocabulary.yaml"]
    steps = {
        "tables": [
            *("build_tables.py", "--root", str(root), *vocabulary, *settings(**run, graders=GRADERS, statistics={"resamples": resamples})),
            *("--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json")),
        ]
    }
    for name in benchmarks:
        paths = {kind: [str(results / kind / name / f"{model}.parquet") for model in models] for kind in ("responses", "scores")}
        grades = [str(results / "grades" / name / model / f"{grader}.parquet") for model in models for grader in GRADERS]
        data = {kind: str(root / "data" / kind / f"{name}.parquet") for kind in ("items", "gold", "prompts")}
        inputs = [*("--items", data["items"], "--gold", data["gold"]), "--responses", *paths["responses"], "--scores", *paths["scores"]]
        prompts = ["--prompts", data["prompts"]] if Path(data["prompts"]).is_file() else []
        steps[f"cases of {name}"] = [
            *("bundle_cases.py", *inputs, *prompts, "--grades", *grades, "--out", str(results / "cases" / f"{name}.parquet"))
        ]
    steps["figures"] = ["draw_figures.py", "--tables", str(results / "tables"), "--out", str(results / "figures")]
    out = str(results / "provenance.json")
    inputs = ["--inputs", f"data/items/{DEPTH}.parquet"]
    steps["provenance"] = [
        "record_provenance.py",
        "--root",
        str(root),
        *vocabulary,
        *settings(**run, statistics={"seed": 1}),
        *inputs,
        "--out",
        out,
    ]
    page = [*settings(**run, graders=GRADERS), "--out", str(results / "report.html")]
    steps["report"] = ["build_report.py", "--root", str(root), "--results", str(results), *page]
    return steps


def page_figures(page: Path, times: int = 5) -> dict[str, object]:
    """Return size and times of a page: medians over a few fresh browsers."""
    figures: dict[str, object] = {"report_mb": round(page.stat().st_size / 1e6, 1)}
    if CHROMIUM is None:
        return figures | {"interactive_s": None}
    measured = []
    for _ in range(times):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as opened:
            opened.call("Performance.enable", timeDomain="threadTicks")
            opened.open(page.resolve())
            used = opened.run(USED)
            metrics = {one["name"]: one["value"] for one in opened.call("Performance.getMetrics")["metrics"]}
            measured.append([*used, metrics["TaskDuration"]])
            assert not opened.complaints, opened.complaints
    names = ("interactive_s", "opened_s", "page_cpu_s")
    columns = zip(names, zip(*measured, strict=True), strict=True)
    return figures | {name: round(statistics.median(values), 2) for name, values in columns if None not in values}


def axe_findings(page: Path) -> dict[str, object]:
    """Return what axe finds in each block of a page, and how long that takes, by scheme and width."""
    import axe_core_python

    script = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + "; undefined"
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as opened:
        for scheme, width in (("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)):
            begun = time.perf_counter()
            opened.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            opened.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            opened.open(page.resolve())
            opened.run(script)
            findings = opened.findings({"resultTypes": ["violations"]}, rows=20)
            found[f"axe {scheme} {width}"] = {"findings": findings, "s": round(time.perf_counter() - begun, 1)}
    return found


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    if args.page:
        print(json.dumps(axe_findings(args.page) if args.axe else page_figures(args.page), indent=1))
        return 0
    tables_fixtures.ARM_SHIFT = {arm: shift for arm, shift in tables_fixtures.ARM_SHIFT.items() if arm in args.arms}
    models = tuple(f"model{number:02d}" for number in range(args.models))
    tables_fixtures.SKILL |= {model: 0.2 + 0.6 * place / max(args.models - 1, 1) for place, model in enumerate(models)}
    with tempfile.TemporaryDirectory() as folder:
        root = args.keep or Path(folder)
        write_study(root, models=models, patients=args.items // 2)
        benchmarks = [DEPTH, BREADTH]
        for number in range(2, args.benchmarks):
            name, of = (f"depth-{number}", DEPTH) if number % 2 else (f"breadth-{number}", BREADTH)
            add_benchmark(root, name, of, models, patients=min(args.other_patients, args.items // 2))
            benchmarks.append(name)
        figures: dict[str, object] = {
            "models": args.models,
            "benchmarks": len(benchmarks),
            "items": args.items,
            "open_answers": args.models * args.items * 5 * len(args.arms),
        }
        total = total_cpu = 0.0
        for step, command in commands(root, benchmarks, models, args.resamples).items():
            before, begun = os.times(), time.perf_counter()
            subprocess.run([sys.executable, str(ROOT / "scripts" / command[0]), *command[1:]], cwd=ROOT, check=True)
            after, seconds = os.times(), time.perf_counter() - begun
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            figures[step] = {"s": round(seconds, 1), "cpu_s": round(cpu, 1)}
            total, total_cpu = total + seconds, total_cpu + cpu
        figures |= {"s": round(total, 1), "cpu_s": round(total_cpu, 1), "goal_s": GOAL_S, "goal_mb": GOAL_MB}
        figures["largest_mb"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        figures |= page_figures(root / "results" / "report.html") | {"goal_interactive_s": GOAL_INTERACTIVE_S}
        print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
