"""`nmb run watch`: what it shows of a run, that it changes nothing, and that no file of a run can stop it."""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from neuralmedbench.cli.main import GROUPS, main
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.console import Progress
from neuralmedbench.runtime import job_progress, watch
from neuralmedbench.runtime.job_progress import LOCK, RUN_FILE, JobProgress, RunProgress, progress_folder, read_progress, write_run
from neuralmedbench.runtime.locks import try_lock
from neuralmedbench.runtime.one_writer import RUN_VARIABLE
from neuralmedbench.runtime.status_line import RunningJob
from neuralmedbench.runtime.terminal import RunTerminal
from neuralmedbench.runtime.watch import NO_RUN, drawing, look, looks, plain_lines

RUN = RunProgress(
    name="study",
    host="node7",
    pid=12,
    seconds=192.0,
    phase="start the first step",
    done=21,
    total=46,
    failed=1,
    steps=[("build items", 1, 1, 0), ("ask", 4, 1, 2), ("grade", 4, 0, 0)],
    asks=[
        ("demo", "fusion", "", "running"),
        ("demo", "fusion", "judge", "waiting"),
        ("demo", "gpt", "", "failed"),
        ("demo", "text", "", "done"),
        ("demo", "planted", "judge", "running"),
    ],
)
FUSION = JobProgress(
    benchmark="demo",
    model="fusion",
    done=320,
    total=1740,
    asked=300,
    seconds=75.0,
    spent_usd=1.5,
    cap_usd=5.0,
    retries={"RateLimitError (429)": 3},
    states={"ok": 300, "refused": 2, "failed": 18},
    missing={"failed: BadRequestError (400): too many pictures": 17, "failed: Timeout (no status)": 1},
    usd=0.25,
    recent_asked=240,
    recent_seconds=60.0,
)
TEXT = JobProgress(benchmark="demo", model="text", done=740, total=740, asked=740, seconds=3.0, states={"ok": 740}, ended=True)
FOLDER = "20261126T120000Z-0a"


def written(place: Path, *jobs: JobProgress, run: RunProgress = RUN, folder: str = FOLDER) -> Path:
    """Write the files of a run as it and its jobs do."""
    made = place / folder
    made.mkdir(parents=True, exist_ok=True)
    write_run(made, run)
    for number, job in enumerate(jobs):
        write_job(made, number, job)
    return made


def write_job(folder: Path, process: int, job: JobProgress, number: int = 0) -> None:
    """Write the file of a job."""
    (folder / f"node-{process}-{number}.json").write_text(job_progress.json.dumps(job_progress.asdict(job)), encoding="utf-8")


def age(path: Path, seconds: float) -> None:
    """Make a file older, or by a negative number one of the future."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def shown(place: Path) -> list[str]:
    """Return what one look shows."""
    return plain_lines(look(place))


def test_a_run_has_answers_rate_cost_time_left_and_failures_by_kind(tmp_path: Path) -> None:
    written(tmp_path, FUSION, TEXT)
    assert shown(tmp_path) == [
        "run study on node7 (process 12): 21 of 46 steps, 1 failed, 3 min 12 s",
        "",
        "asked                    benchmark  state      answered      missing  a second  USD of cap    time left",
        "fusion                   demo       running    302 of 1,740  18       4         1.50 of 5.00  6 min",
        "judge on fusion          demo       waiting",
        "gpt                      demo       failed",
        "text                     demo       done       740 of 740",
        "judge on planted errors  demo       submitted",
        "",
        (
            "in all: 1,042 of 2,480 answers; 2 of 5 rows not asked yet, and their answers not counted; 0.25 USD for the answers of this run;"
            " time left not known"
        ),
        (
            "fusion, demo: 17 failed: BadRequestError (400): too many pictures; 1 failed: Timeout (no status); 2 refused;"
            " 3 repeated after RateLimitError (429)"
        ),
        "done: build items",
        "running: ask (1 of 4)",
        "waiting: grade (0 of 4)",
    ]


def test_a_project_without_a_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "watch", "--once"]) == 0
    assert capsys.readouterr().out == f"{NO_RUN}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "often"])
def test_a_time_between_looks_that_cannot_be_is_refused_in_one_line(every: str) -> None:
    with pytest.raises(ConfigError, match="--every"):
        GROUPS["run"].verbs["watch"].parse_args(["--every", every])


@pytest.mark.parametrize(
    ("asked", "seconds", "words"),
    [(0, 60.0, "not known"), (9, 60.0, "not known"), (10, 60.0, "2 h 25 min"), (300, 2.0, "not known"), (300, 60.0, "5 min")],
)
def test_time_left_is_not_known_until_there_is_a_rate(tmp_path: Path, asked: int, seconds: float, words: str) -> None:
    alone = RunProgress(asks=[("demo", "fusion", "", "running")])
    written(tmp_path, replace(FUSION, recent_asked=asked, recent_seconds=seconds), run=alone)
    lines = shown(tmp_path)
    assert lines[3].endswith(f"  {words}")
    whole = f"about {words} of asking left" if words != "not known" else "time left not known"
    assert next(line for line in lines if line.startswith("in all: ")).endswith(f"; {whole}")


def test_watching_changes_nothing_and_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / job_progress.PLACE
    folder = written(place, FUSION, TEXT)
    (folder / "0123.warning").write_text("fusion: WARNING: nothing can be read", encoding="utf-8")
    with (folder / LOCK).open("w") as lock:
        assert try_lock(lock.fileno())
        before = {path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in tmp_path.rglob("*")}
        assert main(["run", "watch", "--once"]) == 0
    assert {path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in tmp_path.rglob("*")} == before
    with (folder / LOCK).open("a") as lock:
        assert try_lock(lock.fileno(), shared=True), "nobody holds it"


@pytest.mark.parametrize("content", ["", '{"benchmark": "demo", "mo', "[]", "null", '{"colour": 1}', "\x00\x00", '{"name": 3'])
def test_a_torn_file_or_one_of_another_version_is_skipped(tmp_path: Path, content: str) -> None:
    folder = written(tmp_path, TEXT)
    (folder / "torn-1.json").write_text(content, encoding="utf-8")
    (folder / "half.partial").write_text(content, encoding="utf-8")
    assert "text                     demo       done       740 of 740" in shown(tmp_path)
    # without its own file a run is not known; the one before it is
    newer = written(tmp_path, folder="20261126T130000Z-0b")
    (newer / RUN_FILE).write_text(content, encoding="utf-8")
    assert shown(tmp_path)[0].startswith("run study on node7")


def test_files_and_folders_that_vanish_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, FUSION, TEXT)
    monkeypatch.setattr(Path, "read_text", lambda self, **_: (_ for _ in ()).throw(OSError(116, "Stale file handle")))
    assert shown(tmp_path) == [NO_RUN]
    monkeypatch.undo()
    for path in folder.iterdir():
        path.unlink()
    assert shown(tmp_path) == [NO_RUN]
    folder.rmdir()
    assert shown(tmp_path) == [NO_RUN]


def test_a_killed_run_is_told_by_its_silence_and_has_no_rate(tmp_path: Path) -> None:
    folder = written(tmp_path, FUSION)
    for path in folder.iterdir():
        age(path, 30)
    assert shown(tmp_path)[0].endswith("; last news 30 s ago")
    for path in folder.iterdir():
        age(path, 300)
    lines = shown(tmp_path)
    assert lines[0].endswith("; NO NEWS for 5 min 0 s: the run was killed, or its machine or the shared folder cannot be reached")
    assert lines[3].split() == [
        "fusion",
        "demo",
        "no",
        "news",
        "for",
        "5",
        "min",
        "0",
        "s",
        "302",
        "of",
        "1,740",
        "18",
        "1.50",
        "of",
        "5.00",
    ], "neither rate nor time left"
    assert not any(" left" in line for line in lines[4:])


@pytest.mark.parametrize("ahead_s", [-600.0, 600.0])
def test_a_file_server_with_another_clock_makes_no_silence(tmp_path: Path, ahead_s: float) -> None:
    folder = written(tmp_path, FUSION)
    first = look(tmp_path)
    written(tmp_path, replace(FUSION, seconds=76.0), run=replace(RUN, seconds=193.0))
    for path in folder.iterdir():
        age(path, ahead_s)
    lines = plain_lines(look(tmp_path, first))
    assert "NO NEWS" not in lines[0]
    assert "  running  " in lines[3]


def test_of_two_attempts_at_a_job_the_later_one_counts(tmp_path: Path) -> None:
    folder = written(tmp_path, FUSION, replace(FUSION, done=500))
    age(folder / "node-0-0.json", 30)
    assert any("482 of 1,740" in line for line in shown(tmp_path))
    age(folder / "node-1-0.json", 60)
    assert any("302 of 1,740" in line for line in shown(tmp_path))


def test_what_a_grader_asks_about_planted_errors_is_added_to_what_it_asked_about_answers(tmp_path: Path) -> None:
    judge = {"benchmark": "demo", "model": "fusion", "grader": "judge", "seconds": 9.0}
    folder = written(tmp_path, run=replace(RUN, asks=[("demo", "fusion", "judge", "running")]))
    write_job(folder, 5, JobProgress(**judge, done=24, total=24, usd=0.5, missing={"failed": 1}, retries={"a": 1}, ended=True), 0)
    age(folder / "node-5-0.json", 30)
    assert " ending " in shown(tmp_path)[3]
    write_job(folder, 5, JobProgress(**judge, done=8, total=10, usd=0.25, missing={"failed": 2}, retries={"a": 1}), 1)
    lines = shown(tmp_path)
    assert lines[3].split()[4:] == ["running", "29", "of", "34", "3", "not", "known", "0.75", "not", "known"]
    assert lines[6] == "judge on fusion, demo: 3 failed; 2 repeated after a"


def test_the_watch_ends_with_the_run_and_waits_for_one_that_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = replace(RUN, outcome="failed")
    steps = iter(
        [
            lambda: written(tmp_path, run=ended, folder="20261126T110000Z-00"),
            lambda: written(tmp_path),
            lambda: written(tmp_path, TEXT, run=ended),
        ]
    )
    monkeypatch.setattr(watch.time, "sleep", lambda _: next(steps)())
    seen = [plain_lines(snapshot) for snapshot, _ in looks(tmp_path, 1.0)]
    assert seen[0] == [NO_RUN]
    assert [lines[0].partition("; ")[2] for lines in seen[1:]] == ["failed 0 s ago", "", "failed 0 s ago"]
    assert [line.split("  ")[0] for line in seen[-1][3:8]] == ["fusion", "judge on fusion", "gpt", "text", "judge on planted errors"]
    assert sum("stopped" in line for line in seen[-1][3:8]) == 2
    assert sum("not begun" in line for line in seen[-1][3:8]) == 1


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 12), (200, 60), (40, 10), (20, 5)])
def test_a_drawing_fits_the_terminal_and_shows_first_what_runs(tmp_path: Path, width: int, height: int) -> None:
    from rich.console import Console

    many = [("demo", f"model-{number}", "", "waiting") for number in range(40)] + [("demo", "fusion", "", "running")]
    written(tmp_path, FUSION, run=replace(RUN, asks=many))
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(drawing(look(tmp_path), width, height))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    if width >= 80 and height < 60:
        assert len(lines) <= height
        assert any("and " in line and line.endswith(" waiting") for line in lines)
    assert any(line.startswith("fus") for line in lines)


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120, 200])
def test_a_narrow_terminal_cuts_names_and_never_numbers(tmp_path: Path, width: int) -> None:
    from rich.console import Console

    names = {"benchmark": "neural-medbench-with-a-long-name", "model": "claude-sonnet-4", "grader": "llm-diagnosis-v4"}
    row = (*names.values(), "running")
    written(tmp_path, replace(FUSION, **names), run=replace(RUN, asks=[row]))
    console = Console(file=io.StringIO(), width=width, height=24)
    console.print(drawing(look(tmp_path), width, 24))
    assert isinstance(console.file, io.StringIO)
    [line] = [line for line in console.file.getvalue().splitlines() if " running " in line]
    seen = {cell for cell in ("302 of 1,740", " 18 ", " 4 ", "1.50 of 5.00", "6 min") if cell in line}
    assert seen >= {"302 of 1,740", "6 min"}
    assert len(seen) == {60: 2, 70: 3, 80: 4, 100: 5}.get(width, 5)
    assert line.startswith("llm-d")
    assert ("with-a-long-name" in line) == (width == 200)


def test_many_models_that_fail_leave_room_for_the_table(tmp_path: Path) -> None:
    from rich.console import Console

    jobs = [replace(FUSION, model=f"model-{number}", missing={"failed": number + 1}) for number in range(20)]
    written(tmp_path, *jobs, run=replace(RUN, asks=[("demo", job.model, "", "running") for job in jobs]))
    console = Console(file=io.StringIO(), width=100, height=24)
    console.print(drawing(look(tmp_path), 100, 24))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 24
    assert sum(" running " in line for line in lines) >= 8
    assert lines.index("model-19, demo: 20 failed; 2 refused; 3 repeated after RateLimitError (429)") < lines.index(
        "and failures of 17 more rows: `nmb run watch --once`"
    )
    assert sum(", demo: " in line for line in shown(tmp_path)) == 20


def test_plain_lines_come_at_every_look_and_end_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    written(tmp_path, FUSION)
    monkeypatch.setattr(watch.time, "sleep", lambda _: written(tmp_path, run=replace(RUN, outcome="finished")))
    monkeypatch.setattr(watch.time, "strftime", lambda _: "12:00:00")
    watch.watch(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("12:00:00 ")] == [
        "12:00:00 run study on node7 (process 12): 21 of 46 steps, 1 failed, 3 min 12 s",
        "12:00:00 run study on node7 (process 12): 21 of 46 steps, 1 failed, 3 min 12 s; finished 0 s ago",
    ]


def write_as_a_job(name: str) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as log, Progress(name, 300, log, place=("demo", name, "")) as progress:
        for number in range(300):
            failed = number % 10 == 0
            progress.count("failed" if failed else "ok", 0.01, from_ledger=False, reason="Timeout (no status)" if failed else "")
            progress._report.write(progress._progress())


def test_two_jobs_of_different_processes_are_never_seen_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, "0/1/20261126T120000Z-0a")
    place = tmp_path / job_progress.PLACE
    with progress_folder() as folder:
        write_run(folder, RunProgress(asks=[("demo", "a", "", "running"), ("demo", "b", "", "running")]))
        jobs = [multiprocessing.get_context("fork").Process(target=write_as_a_job, args=(name,)) for name in "ab"]
        for job in jobs:
            job.start()
        counts: list[tuple[int, ...]] = []
        while any(job.is_alive() for job in jobs):
            snapshot = look(place)
            assert snapshot
            counts.append(tuple(snapshot.jobs[key][0].done for key in sorted(snapshot.jobs)))
        assert [job.exitcode for job in jobs] == [0, 0]
    assert all(len(later) >= len(former) for former, later in pairwise(counts)), "no job is lost from sight"
    assert shown(place)[3:5] == [f"{name}      demo       ending  270 of 300  30                 3.00" for name in "ab"]
    assert read_progress(folder) == [], "the run's own line shows what still asks"


def record(event: str, **more: Any) -> logging.LogRecord:
    """Make a log record as Snakemake does."""
    return logging.makeLogRecord({"msg": "", "levelno": logging.INFO, "event": event, **more})


@pytest.mark.parametrize("shows_itself", [False, True], ids=["our line", "--verbose"])
def test_a_run_writes_how_far_it_is_without_naming_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shows_itself: bool) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, f"0/1/{FOLDER}")
    terminal = RunTerminal(io.StringIO(), shown=not shows_itself)
    terminal.name_of_run = "study"
    asking = [
        RunningJob(rule=rule, wildcards={"benchmark": "demo", "model": model, **grader}, since=0.0)
        for rule, model, grader in (
            ("grade_responses", "planted", {"grader": "judge"}),
            ("grade_responses", "fusion", {"grader": "judge"}),
            ("run_inference", "fusion", {}),
        )
    ]
    terminal.planned_asks = lambda: asking
    terminal.emit(record("workflow_started"))
    terminal.emit(record("run_info", stats={"cut_slices": 2, "run_inference": 1, "grade_responses": 2, "all": 1, "total": 6}))
    for number in (4, 5):
        wildcards = {"benchmark": "demo", "case": f"secret{number}"}
        terminal.emit(record("job_info", jobid=number, rule_name="cut_slices", wildcards=wildcards))
    terminal.emit(record("job_finished", job_id=4))
    terminal.emit(record("job_info", jobid=7, rule_name="run_inference", wildcards={"benchmark": "demo", "model": "fusion"}))
    terminal.emit(record("job_error", jobid=7, log=[]))
    terminal.emit(record("progress", done=1, total=6))
    terminal._report()
    assert "secret" not in (tmp_path / job_progress.PLACE / FOLDER / RUN_FILE).read_text(encoding="utf-8")
    lines = shown(tmp_path / job_progress.PLACE)
    assert lines[0].startswith("run study on ")
    assert ": 1 of 6 steps, 1 failed, 0 s" in lines[0]
    assert [line.split("  ")[0] for line in lines[3:6]] == ["fusion", "judge on fusion", "judge on planted errors"]
    assert "failed" in lines[3]
    assert lines[-2:] == ["running: cut slices (1 of 2)", "waiting: ask, grade (0 of 2)"]
    terminal.close()
    snapshot = look(tmp_path / job_progress.PLACE)
    assert snapshot
    assert snapshot.run.outcome == "ended"


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    terminal = RunTerminal(io.StringIO(), shown=False, reports=False)
    terminal.emit(record("workflow_started"))
    terminal.close()
    assert list(tmp_path.iterdir()) == []


def test_a_job_reports_the_rate_of_the_last_minute_or_of_ten_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, f"0/1/{FOLDER}")
    now = [1000.0]
    monkeypatch.setattr("neuralmedbench.models.console.time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    with progress_folder() as folder, Progress("m", 400, io.StringIO(), place=("demo", "m", "judge")) as counted:
        for _ in range(20):
            counted.count("ok", None, from_ledger=True)
        assert counted._progress().recent_asked == 0
        for _ in range(100):  # 2 a second
            now[0] += 0.5
            counted.count("ok", 0.5, from_ledger=False)
        assert (counted._progress().recent_asked, counted._progress().recent_seconds) == (100, 50.0)
        for number in range(50):  # 1 in 2 seconds, over 100 seconds
            now[0] += 2
            counted.count("over_budget" if number % 2 else "ok", 0.5, from_ledger=False, reason="max_cost_usd" if number % 2 else "")
        assert counted._progress().recent_asked / counted._progress().recent_seconds == pytest.approx(0.5, rel=0.05)
        assert 58 <= counted._progress().recent_seconds <= 62
        now[0] += 1000  # nothing comes any more: the rate of the last ten falls
        assert counted._progress().recent_asked == 10
        assert counted._progress().recent_seconds == pytest.approx(1020)
    [(job, process, _)] = job_progress.dated_progress(folder)
    assert process.endswith(f"-{os.getpid()}")
    assert (job.benchmark, job.model, job.grader, job.done, job.asked, job.ended) == ("demo", "m", "judge", 170, 150, True)
    assert (dict(job.states), dict(job.missing)) == ({"ok": 145, "over_budget": 25}, {"over_budget: max_cost_usd": 25})
