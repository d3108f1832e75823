"""Time the demo on a fresh copy: generation, raw scans to report, and a second run; report the largest process.

Run on purpose (`python perf/demo_run.py`), never a test. Published timings come from one such run.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "requirements.lock")


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2, help="cores that Snakemake may use")
    parser.add_argument("--configfile", default="config/config.yaml", help="configuration to run")
    parser.add_argument("--keep", type=Path, help="leave the finished copy in this folder")
    return parser.parse_args(argv)


def timed(folder: Path, *arguments: str) -> tuple[float, str]:
    """Run Snakemake; return its wall time in seconds and its output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:] + done.stderr[-5000:])
    return time.perf_counter() - start, done.stdout + done.stderr


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch) / "project"
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            source = ROOT / part
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, folder / part)
        settings = ("--cores", str(args.cores), "--configfile", args.configfile)
        generation, _ = timed(folder, *settings, "--until", "generate_phantom")
        whole, _ = timed(folder, *settings)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        again, output = timed(folder, *settings)
        figures = {
            "cores": args.cores,
            "generation_s": round(generation, 1),
            "raw_to_report_s": round(whole, 1),
            "second_run_s": round(again, 1),
            "second_run_says_nothing_to_be_done": "Nothing to be done" in output,
            "largest_process_mib": round(largest),
            "report_mib": round(next((folder / "results").rglob("report.html")).stat().st_size / 2**20, 2),
        }
        print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
