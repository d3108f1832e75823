"""Find what stopped a run of Snakemake: the last line of the log of each failed job."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

FAILED = re.compile(r"^Error in rule (?P<rule>\w+):\n(?:    .*\n)*?    log: (?P<log>\S+)", re.MULTILINE)


def print_failures(logs: Iterable[str]) -> None:
    """Print a line on standard error for each job that failed, below everything that Snakemake prints; takes its own logs."""
    lines = [line for log in logs if Path(log).is_file() for line in failures(Path(log))]
    if lines:
        print("", "This stopped the run:", *lines, "", sep="\n", file=sys.stderr)


def failures(log: Path) -> list[str]:
    """Return a line for each failed job: its rule, its log and the last line there, which is its error. Takes Snakemake's own log."""
    jobs = {(match["rule"], Path(match["log"])) for match in FAILED.finditer(log.read_text(encoding="utf-8", errors="replace"))}
    return [f"{rule} ({path.as_posix()}): {_last_line(path)}" for rule, path in sorted(jobs)]


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message; run again with --debug")
