"""Watch a run from another terminal or another machine: read what it and its jobs write, take no lock, and write nothing."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.records.scores import PLANTED
from neuralmedbench.records.words import counted
from neuralmedbench.runtime.job_progress import PLACE, DatedProgress, JobProgress, RunProgress, dated_progress, duration, joined, read_run
from neuralmedbench.runtime.status_line import DONE, FAILED, FEWEST_ANSWERS, RUNNING, SHORTEST_S, WAITING, Place, money

TERMINAL_S, PLAIN_S = 2.0, 30.0
"""Seconds between two looks on a terminal, and elsewhere."""
SILENT_S = 90.0
"""After this many seconds without news a run or job may have been killed; a client of NFS may see a file up to 60 s late."""
LATE_S = 10.0
"""After this many seconds without news a look says how old its numbers are."""
NO_RUN, UNKNOWN = "no run has begun here", "not known"
HEAD = ("asked", "benchmark", "state", "answered", "missing", "a second", "USD of cap", "time left")
LEFT_OUT_FIRST = tuple(map(HEAD.index, ("a second", "missing", "USD of cap")))
"""Columns that a narrow terminal leaves out."""
GAP, SHORTEST_NAME = 2, 12
ORDER = (RUNNING, FAILED, WAITING, DONE)
STYLES = {RUNNING: "bold", FAILED: "red", WAITING: "dim", DONE: "green"}


@dataclass(frozen=True)
class Snapshot:
    """A run as it was at one look.

    Attributes
    ----------
    folder : str
        Name of its folder, which no other run has.
    run : RunProgress
        What the run wrote.
    jobs : dict
        What its jobs wrote, by benchmark, model and grader, each with its age in seconds.
    age_s : float
        Seconds since the run wrote.
    """

    folder: str
    run: RunProgress
    jobs: dict[Place, tuple[JobProgress, float]]
    age_s: float

    @property
    def silent(self) -> bool:
        """True if the run should be in progress, and nothing was heard of it for long."""
        return not self.run.outcome and self.age_s > SILENT_S


def look(place: Path = PLACE, before: Snapshot | None = None) -> Snapshot | None:
    """Read the last run that began in a project.

    Parameters
    ----------
    place : Path
        The folder in which runs and jobs write.
    before : Snapshot, optional
        The look before this one. What has changed since is new, whatever the clock of a file server says.

    Returns
    -------
    Snapshot or None
        None if there is no run.
    """
    now = time.time()
    for folder in sorted(place.glob("*/"), reverse=True):  # names begin with the time
        if found := read_run(folder):
            old = before if before and before.folder == folder.name else None
            run, written = found
            moved = old is not None and old.run.seconds != run.seconds
            jobs: dict[Place, tuple[JobProgress, float]] = {}
            for key, one in _latest(dated_progress(folder)).items():
                known = old.jobs.get(key) if old else None
                fresh = known is not None and known[0].seconds != one.job.seconds
                jobs[key] = (one.job, 0.0 if fresh else max(0.0, now - one.written))
            return Snapshot(folder.name, run, jobs, 0.0 if moved else max(0.0, now - written))
    return None


def _latest(found: Sequence[DatedProgress]) -> dict[Place, DatedProgress]:
    """Return the progress of each job: of two attempts the later one, of two things that one process asked both."""
    jobs: dict[Place, DatedProgress] = {}
    for one in found:
        key = (one.job.benchmark, one.job.model, one.job.grader)
        before = jobs.get(key)
        jobs[key] = one._replace(job=joined(before.job, one.job)) if before and before.process == one.process else one
    return jobs


def looks(place: Path, every_s: float) -> Iterator[tuple[Snapshot | None, bool]]:
    """Look again and again, until a run that was seen in progress has ended; the bool is True for the last look."""
    snapshot, in_progress = None, ""
    while True:
        snapshot = look(place, snapshot)
        last = bool(snapshot and snapshot.run.outcome and snapshot.folder == in_progress)
        yield snapshot, last
        if last:
            return
        if snapshot and not snapshot.run.outcome:
            in_progress = snapshot.folder
        time.sleep(every_s)


@dataclass(frozen=True)
class Row:
    """One model, or one grader of its answers, on one benchmark.

    Attributes
    ----------
    state : str
        Of its job, by the run.
    job : JobProgress or None
        What its job wrote last.
    live : bool
        True while the job asks, so that rate and time left mean something.
    cells : tuple of str
        As in `HEAD`.
    """

    state: str
    job: JobProgress | None
    live: bool
    cells: tuple[str, ...]


def rows_of(snapshot: Snapshot) -> list[Row]:
    """Return a row for each planned job that asks a model, in the order of the plan."""
    rows = []
    for benchmark, model, grader, state in snapshot.run.asks:
        asked = model if not grader else f"{grader} on {'planted errors' if model == PLANTED else model}"
        job, age_s = snapshot.jobs.get((benchmark, model, grader), (None, 0.0))
        live = bool(job and not job.ended and state == RUNNING and not snapshot.run.outcome and age_s <= SILENT_S)
        names = (asked, benchmark, _state_words(snapshot, state, job, age_s))
        rows.append(Row(state, job, live, names + (_numbers(job, live) if job else ("",) * (len(HEAD) - len(names)))))
    return rows


def _numbers(job: JobProgress, live: bool) -> tuple[str, ...]:
    missing = sum(job.missing.values())
    return (
        f"{job.done - missing:,} of {job.total:,}",
        f"{missing:,}" if missing else "",
        _rate(job) if live else "",
        _cost(job),
        _left(seconds_left(job)) if live else "",
    )


def _state_words(snapshot: Snapshot, state: str, job: JobProgress | None, age_s: float) -> str:
    if snapshot.run.outcome and state in (WAITING, RUNNING):
        return "not begun" if state == WAITING else "stopped"
    if state != RUNNING:
        return state
    if job is None:
        return "submitted"
    if job.ended:
        return "ending"
    return f"no news for {duration(age_s)}" if age_s > SILENT_S else state


def _rate(job: JobProgress) -> str:
    if not job.recent_asked or job.recent_seconds <= 0:
        return UNKNOWN
    rate = job.recent_asked / job.recent_seconds
    return f"{rate:.2g}" if rate < 10 else f"{rate:,.0f}"


def _cost(job: JobProgress) -> str:
    if job.spent_usd is not None and job.cap_usd is not None:
        return f"{money(job.spent_usd)} of {money(job.cap_usd)}"
    return money(job.usd) if job.usd else ""


def seconds_left(job: JobProgress) -> float | None:
    """Estimate the time until a job has its answers from the rate of the last minute; None if too few came."""
    if job.done >= job.total:
        return 0.0
    if job.recent_asked < FEWEST_ANSWERS or job.recent_seconds < SHORTEST_S:
        return None
    return (job.total - job.done) * job.recent_seconds / job.recent_asked


def _left(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else duration(seconds, rough=True)


def _head_line(snapshot: Snapshot) -> str:
    """Say which run it is, how far, and how it is."""
    run = snapshot.run
    failed = f", {run.failed} failed" if run.failed else ""
    text = f"run {run.name} on {run.host} (process {run.pid}): {run.done} of {counted(run.total, 'step')}{failed}, {duration(run.seconds)}"
    if run.outcome:
        return f"{text}; {run.outcome} {duration(snapshot.age_s)} ago"
    if snapshot.silent:
        return f"{text}; NO NEWS for {duration(snapshot.age_s)}: the run was killed, or its machine or the shared folder cannot be reached"
    text = text if any(running for *_, running in run.steps) else f"{text}; {run.phase}"
    return f"{text}; last news {duration(snapshot.age_s)} ago" if snapshot.age_s > LATE_S else text


def _end_lines(snapshot: Snapshot, most: int | None = None) -> list[str]:
    """Sum up the asking, and list failures by kind, of at most so many rows, and the stages."""
    rows = rows_of(snapshot)
    failures = _failure_lines(rows)
    more = [f"and failures of {counted(len(failures) - most, 'more row')}: `nmb run watch --once`"] if most and len(failures) > most else []
    return [*_sum_lines(snapshot, rows), *failures[:most], *more, *_stage_lines(snapshot)]


def _sum_lines(snapshot: Snapshot, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    jobs = [row.job for row in rows if row.job]
    answered = sum(job.done - sum(job.missing.values()) for job in jobs)
    parts = [f"in all: {answered:,} of {sum(job.total for job in jobs):,} answers"] if jobs else []
    uncounted = sum(row.job is None and row.state in (WAITING, RUNNING) for row in rows)
    parts += [f"{uncounted} of {counted(len(rows), 'row')} not asked yet, and their answers not counted"] if uncounted else []
    usd = [job.usd for job in jobs if job.usd is not None]
    parts += [f"{money(sum(usd))} USD for the answers of this run"] if usd else []
    ends = [seconds_left(row.job) for row in rows if row.job and row.live]
    known = [end for end in ends if end is not None]
    if ends and not uncounted and len(known) == len(ends):
        parts += [f"about {duration(max(known), rough=True)} of asking left"]
    elif ends:
        parts += [f"time left {UNKNOWN}"]
    return ["; ".join(parts)]


def _failure_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line for each job with missing, refused or cut answers, or with repeated attempts; what is missing most comes first."""
    lines = []
    for row in sorted(rows, key=lambda row: -sum(row.job.missing.values()) if row.job else 0):
        if job := row.job:
            kinds = [f"{number:,} {kind}" for kind, number in _largest_first(job.missing)]
            kinds += [f"{job.states[state]:,} {state}" for state in ("refused", "truncated") if job.states.get(state)]
            kinds += [f"{number:,} repeated after {cause}" for cause, number in _largest_first(job.retries)]
            lines += [f"{row.cells[0]}, {row.cells[1]}: {'; '.join(kinds)}"] if kinds else []
    return lines


def _largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return Counter(counts).most_common()


def _stage_lines(snapshot: Snapshot) -> list[str]:
    """Name the stages that are done, running and waiting, with their jobs."""
    steps = snapshot.run.steps
    ended = bool(snapshot.run.outcome)
    parts = {
        "done": [_counted_step(words, done, planned) for words, planned, done, _ in steps if done >= planned],
        "stopped" if ended else "running": [
            _counted_step(words, done, planned) for words, planned, done, running in steps if done < planned and (running or done)
        ],
        "not begun" if ended else "waiting": [
            _counted_step(words, done, planned) for words, planned, done, running in steps if not running and not done and planned
        ],
    }
    return [f"{state}: {', '.join(names)}" for state, names in parts.items() if names]


def _counted_step(words: str, done: int, planned: int) -> str:
    return words if planned == 1 else f"{words} ({done} of {planned})"


def plain_lines(snapshot: Snapshot | None) -> list[str]:
    """Write a run as plain lines."""
    if snapshot is None:
        return [NO_RUN]
    table = [HEAD, *(row.cells for row in rows_of(snapshot))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in table]
    return [_head_line(snapshot), *(["", *lines, ""] if len(table) > 1 else []), *_end_lines(snapshot)]


def watch(place: Path = PLACE, *, once: bool = False, every_s: float | None = None) -> None:
    """Show the last run that began in a project, until it ends; wait for one if none is in progress.

    Parameters
    ----------
    place : Path
        The folder in which runs and jobs write.
    once : bool
        Print one look and return.
    every_s : float, optional
        Seconds between two looks.
    """
    if once:
        print("\n".join(plain_lines(look(place))))
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        _watch_on_terminal(place, every_s or TERMINAL_S)
    else:
        for number, (snapshot, _) in enumerate(looks(place, every_s or PLAIN_S)):
            if snapshot or not number:
                print(
                    *([""] if number else []),
                    f"{time.strftime('%H:%M:%S')} {plain_lines(snapshot)[0]}",
                    *plain_lines(snapshot)[1:],
                    sep="\n",
                    flush=True,
                )


def _watch_on_terminal(place: Path, every_s: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        for snapshot, last in looks(place, every_s):
            live.update(drawing(snapshot, console.width, console.height, last=last), refresh=True)


def drawing(snapshot: Snapshot | None, width: int, height: int, *, last: bool = False) -> Any:
    """Draw a run for a terminal of this size; what does not fit of the table is counted, what runs comes first."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if snapshot is None:
        return Text(f"{NO_RUN}; waiting for one (Ctrl-C ends)")
    wait = "waiting for the next run (Ctrl-C ends)" if snapshot.run.outcome else "Ctrl-C ends this view, not the run"
    wait = "" if last else wait
    ends = [*_end_lines(snapshot, max(2, height // 8)), wait]
    rows = sorted(rows_of(snapshot), key=lambda row: ORDER.index(row.state) if row.state in ORDER else len(ORDER))
    taken = sum(len(textwrap.wrap(line, width)) for line in (_head_line(snapshot), *ends))
    fit = max(1, height - taken - 3)  # head of the table, a line of what is left out, a spare one
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="underline")
    widths = _fitting([HEAD, *(row.cells for row in rows[:fit])], width)
    for place, column in widths.items():
        table.add_column(HEAD[place], no_wrap=True, max_width=column, justify="left" if place < HEAD.index("answered") else "right")
    for row in rows[:fit]:
        table.add_row(*(Text(row.cells[place]) for place in widths), style=STYLES.get(row.state, ""))
    left_out = Counter(row.state for row in rows[fit:])
    more = [Text(f"and {', '.join(f'{number} {state}' for state, number in left_out.items())}", style="dim")] if left_out else []
    head = Text(_head_line(snapshot), style="red" if snapshot.silent or snapshot.run.failed else "bold")
    return Group(head, *([table] if rows else []), *more, *map(Text, ends[:-1]), Text(wait, style="dim"))


def _fitting(table: Sequence[Sequence[str]], width: int) -> dict[int, int]:
    """Return the width of each column: on a narrow terminal some are left out and names are cut, numbers never."""
    asked, benchmark, *rest = (max(map(len, column)) + GAP for column in zip(*table, strict=True))
    widths = dict(enumerate(rest, start=2))
    for place in LEFT_OUT_FIRST:
        if sum(widths.values()) + min(asked, SHORTEST_NAME) + min(benchmark, SHORTEST_NAME) > width + GAP:
            del widths[place]
    left = width + GAP - sum(widths.values())
    asked = min(asked, max(left * 3 // 5, left - benchmark))
    return {place: max(1, column - GAP) for place, column in {0: asked, 1: min(benchmark, left - asked), **widths}.items()}
