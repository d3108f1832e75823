"""Progress of a run: each job that asks a model writes a small file, and so does the run itself; both are shown.

On the terminal of the run by `runtime/terminal.py`, anywhere else that sees the folder by `runtime/watch.py`.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import secrets
import shutil
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from neuralmedbench.runtime.locks import read_holder, try_lock, write_holder
from neuralmedbench.runtime.one_writer import this_run

PLACE = Path(".snakemake/progress")
"""A folder for each run; its process holds a lock on it while it is in progress, and the next run removes it. On a cluster the jobs see it
through the shared file system."""
LOCK, RUN_FILE = "lock", "run.progress"


@dataclass(frozen=True, kw_only=True)
class JobProgress:
    """How far a job is that asks a model: names and numbers only.

    Attributes
    ----------
    benchmark, model, grader : str
        The benchmark, and the model that is asked, or whose answers a grader is asked about (empty: no grader).
    done, total, asked : int
        Answers that have come, answers needed, and those among `done` that were not in the ledger.
    seconds : float
        Time since the job began to ask.
    spent_usd, cap_usd : float or None
        What counts against the cap, and the cap; None for a model without one.
    retries : dict
        Attempts that were repeated, by cause.
    states, missing : dict
        Answers among `done` by state, and those that are missing by their reason.
    usd : float or None
        Cost of the answers that were not in the ledger; None if no price is known.
    recent_asked, recent_seconds : int, float
        The same as `asked` and `seconds` over the last minute, or longer if few answers came in it.
    ended : bool
        True once the job asks nothing more.
    """

    benchmark: str
    model: str
    grader: str = ""
    done: int = 0
    total: int = 0
    asked: int = 0
    seconds: float = 0.0
    spent_usd: float | None = None
    cap_usd: float | None = None
    retries: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    usd: float | None = None
    recent_asked: int = 0
    recent_seconds: float = 0.0
    ended: bool = False

    @property
    def asked_name(self) -> str:
        """The model or grader that is asked."""
        return self.grader or self.model


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """How far a run is: names of rules, benchmarks, models and graders, and numbers only.

    Attributes
    ----------
    name, host, pid : str, str, int
        The run, and where it was started.
    seconds : float
        Time since its start.
    phase : str
        What is done while no job runs.
    done, total, failed : int
        Jobs.
    steps : sequence of (str, int, int, int)
        Rules in words, in the order of the plan, with jobs planned, done and running.
    asks : sequence of (str, str, str, str)
        Benchmark, model, grader and state of each planned job that asks a model.
    outcome : str
        How it ended; empty while it is in progress.
    """

    name: str = ""
    host: str = ""
    pid: int = 0
    seconds: float = 0.0
    phase: str = ""
    done: int = 0
    total: int = 0
    failed: int = 0
    steps: Sequence[tuple[str, int, int, int]] = ()
    asks: Sequence[tuple[str, str, str, str]] = ()
    outcome: str = ""


def duration(seconds: float, *, rough: bool = False) -> str:
    """Write a duration; `rough` rounds up to 5 s, minutes, or 5 minutes from an hour on. Negative is zero.

    Examples
    --------
    >>> duration(59.6), duration(3600), duration(-1), duration(61, rough=True), duration(3601, rough=True), duration(3, rough=True)
    ('1 min 0 s', '1 h 0 min', '0 s', '2 min', '1 h 5 min', '5 s')
    """
    whole = max(0, math.ceil(seconds) if rough else round(seconds))
    if rough:
        step = 5 if whole <= 60 else 60 if whole <= 3600 else 300
        whole = -(-whole // step) * step
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min" if rough else f"{minutes} min {rest} s"
    return f"{rest} s"


REPORTS = itertools.count()
"""Numbers of the reports of this process: a grader's job asks twice, about answers and about planted errors."""


class Report:
    """The file of this job; nothing is written where no run shows it, or when its disk is full."""

    def __init__(self) -> None:
        folder = PLACE / this_run()
        self._path = folder / f"{socket.gethostname()}-{os.getpid()}-{next(REPORTS)}.json" if folder.is_dir() else None

    def write(self, progress: JobProgress) -> None:
        """Write the file again, atomically."""
        if self._path is not None:
            _write(self._path, json.dumps(asdict(progress)))


def warn_run(line: str) -> bool:
    """Show a warning on the terminal of the run that started this job; False if none shows it."""
    folder = PLACE / this_run()
    return folder.is_dir() and _write(folder / f"{secrets.token_hex(8)}.warning", line)


def _write(path: Path, text: str) -> bool:
    partial = path.with_suffix(".partial")
    with suppress(OSError):
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
        return True
    return False


@contextmanager
def progress_folder() -> Iterator[Path]:
    """Make the folder in which the jobs of this run report, and hold its lock; folders of runs that ended before it are removed."""
    other_runs()
    folder = PLACE / this_run()
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            try_lock(lock)
        write_holder(lock)
        yield folder
    finally:
        os.close(lock)


def other_runs() -> list[int]:
    """Return the process ids of other runs that are in progress in this project; what ended runs left is removed."""
    running = []
    for path in PLACE.glob(f"*/{LOCK}"):
        if path.parent.name == this_run():
            continue
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR)
            try:
                if try_lock(lock):
                    shutil.rmtree(path.parent, ignore_errors=True)
                else:
                    running.append(read_holder(lock).pid)
            finally:
                os.close(lock)
    return running


def read_progress(folder: Path) -> list[JobProgress]:
    """Read the files of the jobs of a run that still ask, sorted."""
    jobs = [one.job for one in dated_progress(folder) if not one.job.ended]
    return sorted(jobs, key=lambda job: (job.benchmark, job.model, job.grader))


class DatedProgress(NamedTuple):
    """What a job wrote: the process, and when (seconds since the epoch)."""

    job: JobProgress
    process: str
    written: float


def dated_progress(folder: Path) -> list[DatedProgress]:
    """Read the files of all jobs of a run, the oldest first; one that is torn, gone or of another version is skipped."""
    jobs = []
    for path in folder.glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            written = path.stat().st_mtime
            job = JobProgress(**json.loads(path.read_text(encoding="utf-8")))
            jobs.append(DatedProgress(job, path.stem.rpartition("-")[0], written))
    return sorted(jobs, key=lambda one: one.written)


def joined(first: JobProgress, then: JobProgress) -> JobProgress:
    """Add up what a job asked first and then; how fast it is, what it spent of its cap and whether it has ended is that of the second."""
    usd = [job.usd for job in (first, then) if job.usd is not None]
    return replace(
        then,
        done=first.done + then.done,
        total=first.total + then.total,
        asked=first.asked + then.asked,
        seconds=first.seconds + then.seconds,
        usd=sum(usd) if usd else None,
        states=Counter(first.states) + Counter(then.states),
        missing=Counter(first.missing) + Counter(then.missing),
        retries=Counter(first.retries) + Counter(then.retries),
    )


def write_run(folder: Path, progress: RunProgress) -> None:
    """Write how far a run is, atomically; nothing if its disk is full."""
    _write(folder / RUN_FILE, json.dumps(asdict(progress)))


def read_run(folder: Path) -> tuple[RunProgress, float] | None:
    """Read how far a run is and when that was written; None if the file is torn, gone or of another version."""
    path = folder / RUN_FILE
    with suppress(OSError, ValueError, TypeError):
        written = path.stat().st_mtime
        return RunProgress(**json.loads(path.read_text(encoding="utf-8"))), written
    return None


def take_warnings(folder: Path) -> list[str]:
    """Read the warnings of the jobs of a run, and remove them."""
    lines = []
    for path in sorted(folder.glob("*.warning")):
        with suppress(OSError):
            lines.append(path.read_text(encoding="utf-8", errors="replace"))
            path.unlink()
    return lines
