"""Check that a change of structure changed no result: run two commits side by side and compare every file that they make.

    python tests/same_results.py d8e717d                        # that commit against the work tree's HEAD, config/test.yaml
    python tests/same_results.py d8e717d --configfile config/config.yaml
    python tests/same_results.py --folders BEFORE AFTER         # two finished runs

Latency, call dates, digests of the code and provenance differ between any two runs and are left out; nothing else is.
"""

from __future__ import annotations

import argparse
import base64
import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
MADE = ("data", "results")
CLOCK = ("latency_s", "latency_median_s", "latency_p90_s", "first_called_on", "last_called_on", "called_on")
CODE = ("code", "key", "call_keys", "answer_sha256")
"""A built-in model's answers have its code in their keys; the keys of every other model are frozen by a golden test."""
LISTS_OF_CALLS = ("calls", "informant_calls")
"""Columns that hold the calls of an answer, each with its key."""
PACKED = re.compile(r'(<script type="application/gzip;base64" id="csv-[^"]*">)([^<]*)')
"""The file of a table on the page."""


def compared_files(folder: Path) -> Iterator[str]:
    """Give the relative paths of all files that a run makes, without locks and provenance."""
    for part in MADE:
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path.suffix != ".lock" and path.name not in {"README.md", "provenance.json", ".gitignore"}:
                yield path.relative_to(folder).as_posix()


def comparable(folder: Path, name: str) -> object:
    """Read a file as a value that two runs of the same code share."""
    path = folder / name
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".csv":
        return _without_clock(path)
    if name.startswith("data/ledger/"):
        return sorted(_ledger_line(line) for line in path.read_text(encoding="utf-8").splitlines())
    if path.suffix == ".html" and name.startswith("results/"):
        return _page(path.read_text(encoding="utf-8"), folder)
    return path.read_bytes()


def differences(before: Path, after: Path) -> list[str]:
    """Name the files that differ between two finished runs, or that only one of them has."""
    old, new = set(compared_files(before)), set(compared_files(after))
    found = [f"only before: {name}" for name in sorted(old - new)] + [f"only after: {name}" for name in sorted(new - old)]
    return found + [f"differs: {name}" for name in sorted(old & new) if comparable(before, name) != comparable(after, name)]


def _parquet(path: Path) -> tuple[str, list[dict[str, object]]]:
    table: pa.Table = pq.read_table(path)
    table = table.drop_columns([name for name in (*CLOCK, *CODE) if name in table.column_names])
    rows = [{name: _without_keys(value) if name in LISTS_OF_CALLS else value for name, value in row.items()} for row in table.to_pylist()]
    return str(table.schema), rows


def _without_keys(calls: list[dict[str, object]] | None) -> list[dict[str, object]]:
    return [{name: one for name, one in call.items() if name not in (*CLOCK, *CODE)} for call in calls or ()]


def _without_clock(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return _rows_without_clock(file)


def _rows_without_clock(lines: Iterable[str]) -> list[list[str]]:
    rows = list(csv.reader(lines))
    kept = [number for number, name in enumerate(rows[0]) if name not in CLOCK] if rows else []
    return [[row[number] for number in kept] for row in rows]


def _ledger_line(line: str) -> str:
    entry = {name: value for name, value in json.loads(line).items() if name not in (*CLOCK, *CODE)}
    return json.dumps(entry, sort_keys=True)


def _page(text: str, folder: Path) -> str:
    """Drop the section on provenance, the commit's badge, and latencies and call dates in cells and in the packed files of tables."""
    text = PACKED.sub(
        lambda found: f"{found[1]}{_rows_without_clock(gzip.decompress(base64.b64decode(found[2])).decode().splitlines())}", text
    )
    text = re.sub(r'<section id="provenance".*?</section>', "", text, flags=re.DOTALL)
    text = re.sub(r"(<span>Code</span>) [^<]*", r"\1", text)
    clock: set[str] = set()
    for table in (folder / "results").rglob("costs.csv"):
        with table.open(encoding="utf-8", newline="") as file:
            clock |= {row[name] for row in csv.DictReader(file) for name in CLOCK if row.get(name)}
    for value in sorted(clock):
        text = re.sub(rf'data-value="{re.escape(value)}">[^<]*<', "><", text).replace(f">{value}<", "><")
    return text


def finished_run(commit: str, configfile: str, folder: Path) -> Path:
    """Clone a commit of this repository into a folder and run it there from raw data to the report."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "-c", "advice.detachedHead=false", "checkout", "--quiet", commit], cwd=folder, check=True)
    words = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", configfile]
    with (folder / "run.log").open("w", encoding="utf-8") as log:
        subprocess.run(words, cwd=folder, stdout=log, stderr=log, check=True)
    return folder


def main(argv: Sequence[str] | None = None) -> int:
    """Compare two commits, or two folders in which runs have finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help="commit to compare HEAD with")
    parser.add_argument("--configfile", default="config/test.yaml", help="what is run (default: %(default)s)")
    parser.add_argument("--folders", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="two finished runs instead of two commits")
    args = parser.parse_args(argv)
    if not args.folders and not args.base:
        parser.error("name a commit, or two folders with --folders")
    if args.folders:
        found = differences(*args.folders)
    else:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        with tempfile.TemporaryDirectory() as name:
            runs = [finished_run(commit, args.configfile, Path(name, part)) for part, commit in (("before", args.base), ("after", head))]
            found = differences(*runs)
    print("\n".join(found or ["every result is the same"]))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
