"""What a run shows: one line of progress instead of Snakemake's output, which goes to its log on disk, and the cause of a failure last.

Snakemake's own output comes with `--printshellcmds`, `--verbose` or `--dry-run`.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from neuralmedbench.records.scores import PLANTED
from neuralmedbench.records.words import counted
from neuralmedbench.runtime.commands import INTERRUPTED
from neuralmedbench.runtime.job_progress import (
    RunProgress,
    duration,
    other_runs,
    progress_folder,
    read_progress,
    take_warnings,
    write_run,
)
from neuralmedbench.runtime.status_line import ASKING, WAITING, RunningJob, RunState, heartbeat, terminal_line

HEARTBEAT_S = 9.0
"""Longest silence where there is no terminal, with a second to spare for a busy machine."""
REDRAW_S = 1.0
WIDTH = 80
"""Of a terminal that does not say."""
CLEAR = "\r\x1b[K"
PREAMBLE = re.compile(
    r"Config file \S+ is \w+ by additional config specified via the command line|Assuming unrestricted shared filesystem usage"
)
"""What Snakemake says of itself before a run starts."""
NOTHING, NOTHING_MISSING = "Nothing to be done", "nothing is missing"
MOST_TARGETS = 3
REPORT_RULE = "build_report"
SHOW_COMMANDS = frozenset({"-p", "--printshellcmds"})
"""Given on the command line; the profile has it too, for the log on disk."""
DEFAULT_HANDLER = "DefaultStreamHandler"
"""Name of Snakemake's handler for the terminal (`snakemake.logging.LoggerManager`)."""
FAILED = re.compile(r"^Error in rule (?P<rule>\w+):\n(?:    .*\n)*?    log: (?P<log>\S+)", re.MULTILINE)
ORIGIN = re.compile(r"^(?:\w+(?: in (?:rule \w+ in )?file \".*?\", line \d+)?:|\s+File \".*\", line \d+, in .*)$")
"""Lines of Snakemake's messages that name its own classes and places in the rules."""


class RunTerminal(logging.Handler):
    """Show a run of Snakemake on a terminal or in a log; takes its log records.

    Parameters
    ----------
    stream : TextIO
        Where to write. On a terminal one line is drawn again and again; elsewhere a line comes at least every 10 s.
    shown : bool
        False: Snakemake shows itself (`--verbose`, a dry run); only `say` writes.
    reports : bool
        False: nothing is written for `nmb run watch` (a dry run).
    clock : callable
        Monotonic time in s.
    """

    def __init__(self, stream: TextIO, *, shown: bool = True, reports: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._stream, self._shown, self._reports, self._clock = stream, shown, reports, clock
        self._drawn = self._active = self._ended = self.interrupted = False
        self._terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._wrote = clock()
        self.state = RunState(clock())
        self.log = self.name_of_run = self.outcome = ""
        self.last_words: Callable[[], list[str]] = list
        self.planned_asks: Callable[[], list[RunningJob]] = list
        self.arguments: Sequence[str] = ()
        self.silent_graders: Sequence[str] = ()  # graders that ask no model
        self._folder: Path | None = None
        self._open = ExitStack()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def introduce(self, run: Any, *, overridden: bool) -> None:
        """Take the names of a run (`config.workflow.Run`): its own, its configfiles, and its graders that ask no model."""
        self.name_of_run = run.name
        self.arguments = [*(["--overridden"] if overridden else []), *run.options("--configfiles")]
        self.silent_graders = [name for name, grader in run.all_graders.items() if not grader.model]

    def takes_over(self, record: logging.LogRecord) -> bool:
        """Return whether this record is shown here and not by Snakemake: all from the start of a run on; before it errors, and its preamble."""
        if self._shown and _event(record) == "workflow_started":
            self._active = True
        before = _event(record) == "error" or PREAMBLE.match(record.getMessage()) is not None
        return self._active or (self._shown and before)

    def close(self) -> None:
        """Show no more progress; called by `logging` too."""
        self._stopping.set()
        with self._held():
            self._clear()
            self._ended = True
        self.outcome = self.outcome or "ended"
        self._report()
        self._open.close()
        super().close()

    def say(self, *lines: str) -> None:
        """Write lines above the line of progress."""
        with (
            self._held(),
            suppress(OSError, ValueError, RuntimeError),
        ):  # ValueError: a closed stream; RuntimeError: a signal while it is written
            self._clear()
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
            self._wrote = self._clock()

    def emit(self, record: logging.LogRecord) -> None:
        """Take one of Snakemake's log records."""
        event, job = _event(record), getattr(record, "jobid", getattr(record, "job_id", -1))
        if event == "workflow_started":
            self.state.phase = "plan the steps"
            self._start()
        elif event == "run_info":
            self._plan(getattr(record, "stats", {}))
        elif event == "job_info":
            wildcards = {name: str(value) for name, value in (getattr(record, "wildcards", None) or {}).items()}
            self.state.start(job, RunningJob(rule=str(getattr(record, "rule_name", "")), wildcards=wildcards, since=self._clock()))
        elif event == "job_finished":
            self.state.end(job)
        elif event == "progress":
            self.state.done, self.state.total = int(getattr(record, "done", 0)), int(getattr(record, "total", 0))
        elif event == "job_error":
            self._fail(job, getattr(record, "log", None) or [])
        elif event == "error" and self._shown and not (self._ended or self.interrupted):
            text = record.getMessage()
            if "CalledProcessError" not in text:  # a step that failed, whose log says why
                self.say(locked_line() if getattr(record, "exception", "") == "LockException" else message_of(text))
        elif self._active and event == "None" and record.levelno == logging.WARNING:
            self.say(record.getMessage())
        elif self._active and record.getMessage().startswith(NOTHING):
            report = self.last_words()
            # a run without work may lack answers: a key was not set when they were asked
            self.say(record.getMessage(), *(self._lines_of("incomplete") if report else []), *report)

    def _start(self) -> None:
        if self._reports and self._folder is None:
            with suppress(OSError):  # a project that cannot be written: the run says so itself
                self._folder = self._open.enter_context(progress_folder())
        if self._reports or self._shown:
            self._thread.start()

    def _plan(self, stats: dict[str, int]) -> None:
        counts = {rule: int(number) for rule, number in stats.items() if rule != "total"}
        self.state.of_rule.update(counts)
        self.state.total, self.state.phase = sum(counts.values()), "start the first step"
        places = {job.place for job in self.planned_asks()}
        # graders after their model, planted errors last
        order = sorted(places, key=lambda place: (place[0], place[1] == PLANTED, place))
        self.state.asks = dict.fromkeys(order, WAITING)

    def _fail(self, number: int, logs: Sequence[str]) -> None:
        job = self.state.end(number, failed=True)
        if job and self._active and not self.interrupted:
            self.say(f"failed: {job.stage}: {last_line(Path(str(logs[0]))) if logs else 'no log'}")
            self.state.phase = "wait for the steps that run"

    def _tick(self) -> None:
        while not self._stopping.wait(REDRAW_S):
            with self._held():
                if not self._ended:
                    self.show()
            self._report()

    def _report(self) -> None:
        """Write how far the run is, for those who watch it elsewhere."""
        if self._folder is None:
            return
        with self._held():
            state, now = self.state, self._clock()
            progress = RunProgress(
                name=self.name_of_run,
                host=socket.gethostname(),
                pid=os.getpid(),
                seconds=round(now - state.started, 3),
                phase=state.phase,
                done=state.done,
                total=state.total,
                failed=state.failed,
                steps=state.steps(),
                asks=[(*place, asked) for place, asked in state.asks.items()],
                outcome=self.outcome,
            )
        write_run(self._folder, progress)  # outside the lock: a slow file system must not hold up the run

    def show(self) -> None:
        """Draw the line of progress again, or write one if there has been none for long; warnings of jobs come above it."""
        for line in take_warnings(self._folder) if self._folder else ():
            self.say(line)
        now = self._clock()
        if not self._shown or (not self._terminal and now - self._wrote < HEARTBEAT_S):
            return
        progress = read_progress(self._folder) if self._folder else []
        with suppress(OSError, ValueError):
            if self._terminal:
                width = os.get_terminal_size(self._stream.fileno()).columns or WIDTH
                self._stream.write(CLEAR + terminal_line(self.state, progress, now, width - 1))
                self._stream.flush()
                self._drawn = True
            else:
                self.say(f"{time.strftime('%H:%M:%S')} {heartbeat(self.state, progress, now)}")

    def _held(self) -> AbstractContextManager[object]:
        return self.lock or nullcontext()

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            with suppress(OSError, ValueError):
                self._stream.write(CLEAR)
                self._stream.flush()

    # ---- the end of a run ----

    def finish(self, *lines: str) -> None:
        """Write the last lines of a run that ended well, the time taken first."""
        self._ended, self.outcome = True, "finished"
        self.say(f"{counted(self.state.done, 'step')} in {duration(self._clock() - self.state.started)}{self._log_words()}", *lines)

    def record(self, workflow: Any) -> None:
        """Record a run that ended well, and write its last lines: what is missing and why, what was recorded, the report."""
        report = self.last_words()
        steps = workflow.dag_settings.until or [rule.name for rule in workflow.dag.targetrules]
        targets = sorted(map(str, steps if workflow.dag_settings.until else workflow.dag.targetfiles)) or sorted(steps)
        self.state.phase = "record the run" if report else "look for missing answers"
        # if recording fails, the run still succeeds and a line says why
        lines = self._lines_of("record" if report else "incomplete")
        made = ", ".join(targets) if len(targets) <= MOST_TARGETS else f"{len(targets)} files"
        self.finish(*lines, *(report or [f"made: {made}; a run is recorded when the whole of it is asked for"]))

    def _lines_of(self, verb: str) -> list[str]:
        """Return what `nmb run record` or `nmb run incomplete` says of this run."""
        arguments = [one for one in self.arguments if verb == "record" or one != "--overridden"]
        path = os.pathsep.join(filter(None, ["scripts", os.environ.get("PYTHONPATH", "")]))
        done = subprocess.run(
            [sys.executable, "-m", "neuralmedbench", "run", verb, *arguments],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return [line for line in done.stderr.splitlines() if line.strip() and line != NOTHING_MISSING]

    def fail(self, logs: Iterable[str]) -> NoReturn:
        """Write the last lines of a run that failed or was interrupted, and end the process: nothing comes after them."""
        made = f"{self.state.done} of {self.state.total} steps are made and kept; the same command goes on from there"
        causes = [line for log in logs if Path(log).is_file() for line in failures(Path(log))]
        self._ended, self.outcome = True, "interrupted" if self.interrupted else "failed"
        if self.interrupted:
            self.say(f"interrupted: {made}")
            raise SystemExit(INTERRUPTED)
        if causes:
            self.say(f"{made}{self._log_words()}", *reversed(causes))
        else:
            self.say(f"stopped: {made}{self._log_words()}")
        raise SystemExit(1)

    def _log_words(self) -> str:
        return f"; Snakemake's log: {self.log}" if self.log else ""

    # ---- Ctrl-C ----

    def catch_interrupt(self, stop: Callable[[], bool]) -> None:
        """At the first Ctrl-C call `stop`, which returns False if no step runs; the second one ends the run at once."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            self.state.phase = "wait for the steps that run"
            if not stop():
                self._ended = True
                self.say("interrupted before the first step: run the same command again")
                raise SystemExit(INTERRUPTED)
            self.say("interrupted: no more steps are started; waiting for those that run (interrupt again to end at once)")

        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, interrupt)


def locked_line() -> str:
    """Say why Snakemake's lock stops a run, and what to type."""
    running = other_runs()
    if running:
        return (
            f"BusyError: another run is working in this folder (process {running[0]}); wait for it to end, and run the same command again"
        )
    return "BusyError: the last run in this folder was killed, or one is working on another machine; if none is: snakemake --unlock, then the same command"


def message_of(text: str) -> str:
    """Take the message out of what Snakemake prints of an error, without its classes and places."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not ORIGIN.match(line)]
    return "\n".join(lines) or text.strip()


def failures(log: Path) -> list[str]:
    """Return a line for each failed job in Snakemake's log, the first first: its rule, its log and the last line there, which is its error."""
    jobs = [(match["rule"], Path(match["log"])) for match in FAILED.finditer(log.read_text(encoding="utf-8", errors="replace"))]
    return [f"{rule} ({path.as_posix()}): {last_line(path)}" for rule, path in dict.fromkeys(jobs)]


def last_line(path: Path) -> str:
    """Return the last line of a job's log."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message; run again with --debug")


def _event(record: logging.LogRecord) -> str:
    return str(getattr(record, "event", None))


def snakemake_terminal(workflow: Any, logger: logging.Logger) -> RunTerminal:
    """Add the terminal of a run to Snakemake's logger; it takes over when the run starts, not for a plan, a summary or the linter.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The workflow; its settings decide whether Snakemake's own output is wanted.
    logger : Logger
        Snakemake's.
    """
    settings = workflow.output_settings
    its_own = settings.dryrun or settings.verbose or settings.debug_dag or settings.quiet or not SHOW_COMMANDS.isdisjoint(sys.argv)
    default = next((handler for handler in logger.handlers if handler.name == DEFAULT_HANDLER), None)
    main = workflow.is_main_process
    terminal = RunTerminal(sys.stderr, shown=bool(main and default and not its_own), reports=main and not settings.dryrun)
    terminal.log = next(
        (os.path.relpath(handler.baseFilename) for handler in logger.handlers if isinstance(handler, logging.FileHandler)), ""
    )
    if default:
        default.addFilter(lambda record: not terminal.takes_over(record))
    logger.addHandler(terminal)

    def report_line() -> list[str]:
        """Name the report, if it is part of what was asked for."""
        reports = [job.output[0] for job in workflow.dag.jobs if job.rule.name == REPORT_RULE]
        return [f"The report: {Path(report).absolute()}" for report in reports]

    def planned_asks() -> list[RunningJob]:
        """Return the planned jobs that ask a model."""
        jobs = [
            RunningJob(rule=job.rule.name, wildcards=job.wildcards_dict, since=0.0)
            for job in workflow.dag.needrun_jobs()
            if job.rule.name in ASKING
        ]
        return [job for job in jobs if job.place[2] not in terminal.silent_graders]

    terminal.last_words, terminal.planned_asks = report_line, planned_asks

    def stop() -> bool:
        if workflow.scheduler is None:
            return False
        if workflow.non_local_exec:  # Snakemake cancels submitted jobs after this
            raise KeyboardInterrupt
        # in a thread, because the main one may hold the scheduler's lock; steps on this machine get the signal too
        threading.Thread(target=workflow.scheduler.exit_gracefully).start()
        return True

    if workflow.is_main_process:
        terminal.catch_interrupt(stop)
    return terminal
