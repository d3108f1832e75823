"""Measure planning a run with 10,000 own cases and 20 models: CPU seconds, memory, jobs by rule. There are no scans; nothing is run.

Run on purpose (`python perf/plan_scale.py`), never a test; tests/workflow/test_scale.py tests how the number of jobs grows.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.scale import PER_CASE, SCALE, write_scale  # noqa: E402


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="cases of the benchmark")
    parser.add_argument("--models", type=int, default=20, help="models of the run list")
    parser.add_argument("--profile", default="profiles/default", help="workflow profile")
    return parser.parse_args(argv)


def dry_run(folder: Path, *arguments: str) -> tuple[float, float, str]:
    """Plan the report; return CPU seconds (user and system), peak memory in MiB, and the output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "snakemake", "-n", *arguments, *SCALE, "--", "results/scale/report.html"]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        text = output.read()
    if status:
        sys.exit(text[-5000:])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def read_table(path: Path) -> float:
    """Return the CPU seconds for reading the case table."""
    from neuralmedbench.files.cases import read_case_table

    start = time.process_time()
    read_case_table(path)
    return time.process_time() - start


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_scale(Path(scratch) / "project", args.cases, args.models)
        profile = ("--workflow-profile", args.profile)
        plan_s, plan_mib, _ = dry_run(folder, "-q", *profile)
        # again with the table of jobs, for which Snakemake also computes resources and command of every job
        counted_s, counted_mib, output = dry_run(folder, "-q", "rules", "host", *profile)
        table = output.split("Job stats:")[1].split("total ")[0]
        jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)}
        figures = {
            "cases": args.cases,
            "models": args.models,
            "profile": args.profile,
            "plan_cpu_s": round(plan_s, 1),
            "plan_mib": round(plan_mib),
            "plan_and_count_cpu_s": round(counted_s, 1),
            "plan_and_count_mib": round(counted_mib),
            "case_table_cpu_s": round(read_table(folder / "config" / "benchmarks" / "mine.cases.tsv"), 2),
            "jobs": sum(jobs.values()),
            "jobs_after_imaging": sum(count for rule, count in jobs.items() if rule not in PER_CASE),
            "jobs_by_rule": jobs,
        }
        print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
