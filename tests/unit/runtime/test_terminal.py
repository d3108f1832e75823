"""What a run shows: a line of progress, the cause of each failed job, and words about locks and interrupts."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from neuralmedbench.recording import stages
from neuralmedbench.runtime import job_progress, terminal
from neuralmedbench.runtime.job_progress import (
    JobProgress,
    Report,
    duration,
    other_runs,
    progress_folder,
    read_progress,
    take_warnings,
    warn_run,
)
from neuralmedbench.runtime.one_writer import RUN_VARIABLE
from neuralmedbench.runtime.status_line import STAGES, RunningJob, RunState, heartbeat, money, seconds_left, terminal_line
from neuralmedbench.runtime.terminal import RunTerminal, failures, locked_line, message_of

ASKING = RunningJob(rule="run_inference", wildcards={"benchmark": "demo", "model": "fusion"}, since=10.0)
HALF = JobProgress(
    benchmark="demo",
    model="fusion",
    done=320,
    total=740,
    asked=300,
    seconds=75.0,
    spent_usd=0.1234,
    cap_usd=5.0,
    retries={"RateLimitError 429": 2},
)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal of 80 columns."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return -1


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def terminal_of(stream: io.StringIO, clock: Clock | None = None) -> tuple[RunTerminal, io.StringIO]:
    """Make the terminal of a run that shows it."""
    terminal = RunTerminal(stream, clock=clock or Clock())
    terminal._active = True
    return terminal, stream


def record(event: str | None, message: str = "", level: int = logging.INFO, **more: Any) -> logging.LogRecord:
    """Make a log record as Snakemake does."""
    return logging.makeLogRecord({"msg": message, "levelno": level, "event": event, **more})


def running(*jobs: RunningJob, **state: Any) -> RunState:
    """Make the state of a run in which some jobs run."""
    return RunState(0.0, total=106, done=12, running=dict(enumerate(jobs)), **state)


def test_every_rule_has_words() -> None:
    rules = {
        rule
        for path in (ROOT / "rules").glob("*.smk")
        for rule in re.findall(r"^rule (\w+):", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert STAGES.keys() == rules


def test_the_line_has_stage_done_of_all_rate_cost_and_time_left() -> None:
    assert terminal_line(running(ASKING), [HALF], now=80.0, width=200) == (
        "12 of 106 steps, 1 min 20 s | ask fusion on demo: 320 of 740 answers, 4 a second, 0.12 of 5.00 USD, about 2 min left,"
        " 2 retried (2 after RateLimitError 429)"
    )


@pytest.mark.parametrize("width", [0, 1, 20, 40, 79, 119])
def test_the_line_is_never_wider_than_the_terminal(width: int) -> None:
    cases = [RunningJob(rule="cut_slices", wildcards={"benchmark": "demo", "case": str(number)}, since=1.0) for number in range(5)]
    others = [
        RunningJob(rule=rule, wildcards={"benchmark": "demo"}, since=2.0) for rule in ("build_items", "gather_slices", "gather_audit")
    ]
    line = terminal_line(running(ASKING, *cases, *others, failed=1), [HALF], now=80.0, width=width)
    assert len(line) <= width
    assert line.startswith("12 of 106 steps"[:width])


def test_what_matters_least_is_left_out_first() -> None:
    assert terminal_line(running(ASKING), [HALF], 80.0, 79) == "12 of 106 steps | ask fusion on demo: 320 of 740 answers, about 2 min left"
    assert terminal_line(running(ASKING), [HALF], 80.0, 40) == "12 of 106 steps | ask fusion on demo"


def test_cases_are_counted_and_never_named() -> None:
    cases = [
        RunningJob(rule="normalise_case", wildcards={"benchmark": "demo", "case": f"secret{number}"}, since=50.0) for number in range(2)
    ]
    state = running(*cases)
    state.of_rule["normalise_case"], state.done_of_rule["normalise_case"] = 12, 3
    assert terminal_line(state, [], 80.0, 200) == "12 of 106 steps, 1 min 20 s | normalise scans of demo (3 of 12)"
    assert heartbeat(state, [], 80.0) == "12 of 106 steps, 1 min 20 s | normalise scans of demo (3 of 12) for 30 s"


def test_two_models_share_the_line_and_have_their_own_words_in_a_log() -> None:
    other = RunningJob(rule="run_inference", wildcards={"benchmark": "demo", "model": "gpt"}, since=10.0)
    slow = JobProgress(benchmark="demo", model="gpt", done=5, total=10, asked=5, seconds=20.0)
    assert terminal_line(running(ASKING, other), [HALF, slow], 80.0, 90) == (
        "12 of 106 steps | ask fusion, gpt: 325 of 750 answers, 4.2 a second, 0.12 USD, 2 retried"
    )
    said = heartbeat(running(ASKING, other), [HALF, slow], 80.0)
    assert "ask fusion on demo: 320 of 740 answers" in said
    assert said.endswith(" | ask gpt on demo: 5 of 10 answers, 0.25 a second")


def test_progress_of_a_job_that_has_ended_is_not_shown() -> None:
    assert "answers" not in terminal_line(running(), [HALF], 80.0, 200)


@pytest.mark.parametrize(
    ("done", "asked", "seconds", "left"),
    [(320, 300, 75.0, 105.0), (740, 700, 75.0, None), (5, 5, 60.0, None), (320, 300, 1.0, None), (320, 0, 75.0, None), (0, 0, 0.0, None)],
)
def test_time_left_is_estimated_only_where_it_can_be(done: int, asked: int, seconds: float, left: float | None) -> None:
    assert seconds_left([JobProgress(benchmark="b", model="m", done=done, total=740, asked=asked, seconds=seconds)]) == left


def test_no_time_is_negative_and_money_has_cents() -> None:
    assert [duration(seconds) for seconds in (-5, 0, 59.4, 61, 3661)] == ["0 s", "0 s", "59 s", "1 min 1 s", "1 h 1 min"]
    assert [money(usd) for usd in (0, 0.0004, 0.01, 12.345, 20_000)] == ["0.00", "0.0004", "0.01", "12.35", "20,000.00"]


def test_a_log_gets_a_line_before_ten_seconds_of_silence_and_not_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    terminal, stream = terminal_of(io.StringIO(), clock)
    monkeypatch.setattr(time, "strftime", lambda _form: "12:00:00")
    terminal.emit(record("run_info", stats={"cut_slices": 2, "total": 2}))
    terminal.emit(record("job_info", jobid=4, rule_name="cut_slices", wildcards={"benchmark": "demo", "case": "ab"}))
    for second in range(1, 29):
        clock.now = float(second)
        terminal.show()
    terminal.emit(record("job_finished", job_id=4))
    terminal.emit(record("progress", done=1, total=2))
    assert stream.getvalue().splitlines() == [
        f"12:00:00 0 of 2 steps, {now} s | cut slices of demo (0 of 2) for {now} s" for now in (9, 18, 27)
    ]
    assert (terminal.state.done, terminal.state.done_of_rule["cut_slices"]) == (1, 1)


def test_a_terminal_keeps_one_line_and_warnings_stand_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, "0/1/run")
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((80, 24)))
    terminal, stream = terminal_of(Terminal())
    with progress_folder() as terminal._folder:
        terminal.show()
        assert warn_run("fusion: WARNING: nothing can be read")
        terminal.show()
    assert stream.getvalue().count("\n") == 1
    assert "\r\x1b[Kfusion: WARNING: nothing can be read\n\r\x1b[K" in stream.getvalue()
    terminal.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_jobs_report_only_to_a_run_that_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, "0/1/run")
    Report().write(HALF)
    assert not warn_run("nobody")
    assert list(tmp_path.iterdir()) == []
    with progress_folder() as folder:
        report = Report()
        report.write(HALF)
        (folder / "torn.json").write_text('{"benchmark": ', encoding="utf-8")
        assert read_progress(folder) == [HALF]
        report.write(replace(HALF, ended=True))
        assert read_progress(folder) == []
        assert take_warnings(folder) == []
    assert folder.exists(), "how the run ended can be read until the next one begins"
    monkeypatch.setenv(RUN_VARIABLE, "0/1/next")
    with progress_folder() as following:
        assert list(job_progress.PLACE.iterdir()) == [following]


def test_folders_of_runs_that_ended_are_removed_and_a_running_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dead = job_progress.PLACE / "dead"
    dead.mkdir(parents=True)
    (dead / job_progress.LOCK).touch()
    monkeypatch.setenv(RUN_VARIABLE, "0/1/first")
    with progress_folder():
        assert not dead.exists()
        assert other_runs() == []
        assert "--unlock" in locked_line()
        monkeypatch.setenv(RUN_VARIABLE, "0/1/second")
        assert other_runs() == [os.getpid()]
        assert f"another run is working in this folder (process {os.getpid()})" in locked_line()
        monkeypatch.setenv(RUN_VARIABLE, "0/1/first")


def test_a_run_with_nothing_to_do_says_which_answers_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is set after the run plans nothing: without a line the report would seem to be complete."""
    missing, ran, stream = "missing: 12 answers (12 skipped); `nmb run retry` requests them again", [], io.StringIO()
    done = SimpleNamespace(stderr=f"{missing}\n")
    monkeypatch.setattr(terminal.subprocess, "run", lambda command, **_: ran.append(command) or done)
    shown = RunTerminal(stream)
    shown.arguments = ["--overridden", "--configfiles", "config/mine.yaml"]
    shown.last_words = lambda: ["The report: here"]
    shown._active = True
    shown.emit(logging.makeLogRecord({"msg": "Nothing to be done (all requested files are present).", "levelno": logging.INFO}))
    assert stream.getvalue().splitlines()[1:] == [missing, "The report: here"]
    assert ran[0][3:] == ["run", "incomplete", "--configfiles", "config/mine.yaml"]


def test_an_interrupt_is_no_failure_and_the_second_one_ends_at_once(tmp_path: Path) -> None:
    terminal, stream = terminal_of(io.StringIO())
    terminal.interrupted = True
    terminal.emit(record("job_info", jobid=1, rule_name="build_items", wildcards={"benchmark": "demo"}))
    terminal.emit(record("job_error", level=logging.ERROR, jobid=1, log=["absent.log"]))
    terminal.emit(record("progress", done=3, total=9))
    log = tmp_path / "snakemake.log"
    log.write_text(SNAKEMAKE.format(folder=tmp_path), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        terminal.fail([str(log)])
    assert ended.value.code == 130
    assert stream.getvalue() == "interrupted: 3 of 9 steps are made and kept; the same command goes on from there\n"


def test_errors_before_the_first_job_are_one_line_without_places_in_the_rules() -> None:
    terminal, stream = terminal_of(io.StringIO())
    text = 'WorkflowError in file "rules/common.smk", line 40:\nConfigError: config: unknown key\n  File "rules/common.smk", line 40, in <module>'
    terminal.emit(record("error", text, logging.ERROR, exception="WorkflowError"))
    failed = 'RuleException:\nCalledProcessError in file "rules/60_infer.smk", line 36:\nCommand "python" returned non-zero exit status 14.'
    terminal.emit(record("error", failed, logging.ERROR, exception="RuleException"))
    assert stream.getvalue() == "ConfigError: config: unknown key\n"
    assert message_of("WorkflowError:") == "WorkflowError:"


@pytest.mark.parametrize(
    ("message", "ours"),
    [
        ("Config file config/config.yaml is extended by additional config specified via the command line.", True),
        ("Assuming unrestricted shared filesystem usage.", True),
        ("Unlocked working directory.", False),
    ],
)
def test_what_snakemake_says_of_itself_before_a_run_is_left_out(message: str, ours: bool) -> None:
    stream = io.StringIO()
    assert RunTerminal(stream).takes_over(record(None, message)) is ours
    assert not RunTerminal(stream, shown=False).takes_over(record(None, message)), "asked for with --verbose"
    assert stream.getvalue() == ""


def test_the_terminal_is_there_before_snakemake_reads_a_configuration() -> None:
    lines = (ROOT / "rules/common.smk").read_text(encoding="utf-8").splitlines()
    assert lines.index("TERMINAL = snakemake_terminal(workflow, logger)") < lines.index('configfile: "config/config.yaml"')
    assert "configfile" not in (ROOT / "Snakefile").read_text(encoding="utf-8")


def test_ctrl_c_while_a_command_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    """A module that takes long to load stands in for a slow disk."""
    (tmp_path / "argparse.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(30)\n", encoding="utf-8")
    command = [sys.executable, "-m", "neuralmedbench", "run", "list"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "scripts")])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout
        assert started.stdout.readline() == "loading\n"
        started.send_signal(signal.SIGINT)
        assert started.wait(10) == -signal.SIGINT
        assert started.stderr
        assert started.stderr.read() == ""


def test_a_run_that_a_command_starts_answers_ctrl_c_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(
        stages.subprocess, "run", lambda *_, **__: seen.append(signal.getsignal(signal.SIGINT)) or SimpleNamespace(returncode=130)
    )
    before = signal.getsignal(signal.SIGINT)
    run: Any = SimpleNamespace(options=lambda _: [])
    assert stages.make_files(["x"], run) == 130
    assert (seen, signal.getsignal(signal.SIGINT)) == ([signal.SIG_IGN], before)


SNAKEMAKE = """Shell command: python scripts/build_items.py &> {folder}/items.log
[Mon Nov 23 18:11:43 2026]
Error in rule build_items:
    message: None
    jobid: 0
    input: data/slices/mine/slices.parquet
    output: data/items/mine.parquet
    log: {folder}/items.log (check log file(s) for error details)
    shell:
        python scripts/build_items.py
        (command exited with non-zero exit code)
Error in rule cut_slices:
    message: None
    jobid: 3
    log: {folder}/absent.log (check log file(s) for error details)
    shell:
        python scripts/cut_slices.py
Finished jobid: 2 (Rule: cut_slices)
"""


def test_each_failed_job_has_a_line_with_the_error_of_its_log_and_the_first_one_stands_last(tmp_path: Path) -> None:
    (tmp_path / "items.log").write_text("a warning\nDataError: the answers table has 1 rows\n\n", encoding="utf-8")
    (tmp_path / "snakemake.log").write_text(SNAKEMAKE.format(folder=tmp_path), encoding="utf-8")
    assert failures(tmp_path / "snakemake.log") == [
        f"build_items ({tmp_path}/items.log): DataError: the answers table has 1 rows",
        f"cut_slices ({tmp_path}/absent.log): no message; run again with --debug",
    ]
    terminal, stream = terminal_of(io.StringIO())
    with pytest.raises(SystemExit) as ended:
        terminal.fail([str(tmp_path / "snakemake.log")])
    assert ended.value.code == 1
    assert stream.getvalue().splitlines()[-1] == failures(tmp_path / "snakemake.log")[0]


@pytest.mark.parametrize("text", ["", "Finished jobid: 2 (Rule: cut_slices)\n", "Error in rule"])
def test_a_log_without_failed_jobs_names_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "snakemake.log").write_text(text, encoding="utf-8")
    assert failures(tmp_path / "snakemake.log") == []
