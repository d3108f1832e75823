from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.errors import BusyError, StorageError
from neuralmedbench.runtime import one_writer
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.one_writer import RUN_VARIABLE, name_this_run, only_writer, outputs_of, run_has_ended, wait_for_writers

pytestmark = pytest.mark.slow

SLOW = """
import pathlib, sys, time
from neuralmedbench.runtime.commands import run_command

def main(argv):
    out = pathlib.Path(argv[1])
    with out.open("a") as file:
        file.write(f"begin {argv[2]}\\n")
    while not pathlib.Path(argv[3]).exists():
        time.sleep(0.01)
    with out.open("a") as file:
        file.write(f"end {argv[2]}\\n")
    return 0

raise SystemExit(run_command(main))
"""
"""A command that writes, waits for a file, and writes again."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Put the locks of a test into a folder of the test."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def slow(tmp_path):
    """Return a function that starts the slow command; all its processes are terminated afterwards."""
    started = []

    def start(out: str, name: str, until: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, "--out", out, name, until],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), **env},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(path: Path, text: str) -> None:
    end = time.monotonic() + 30
    while text not in (path.read_text() if path.exists() else ""):
        assert time.monotonic() < end, f"{text} never came"
        time.sleep(0.01)


def lock_files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "tmp").rglob("*.lock"))


def test_a_second_writer_of_the_same_output_waits_and_says_for_whom(slow, tmp_path):
    first = slow("a.txt", "one", "go")
    wait_for(tmp_path / "a.txt", "begin one")
    second = slow(str(tmp_path / "a.txt"), "two", "go")  # the same file under another name
    while not (output := second.stderr.readline()).strip():
        assert second.poll() is None
    assert output == f"process {first.pid} still writes a.txt; waiting for it to end\n"
    (tmp_path / "go").touch()
    assert first.wait(30) == second.wait(30) == 0
    assert (tmp_path / "a.txt").read_text().split("\n")[:-1] == ["begin one", "end one", "begin two", "end two"]
    assert lock_files(tmp_path) == []


def test_writers_of_different_outputs_do_not_wait_for_each_other(slow, tmp_path):
    slow("a.txt", "one", "go")
    slow("b.txt", "two", "go")
    wait_for(tmp_path / "a.txt", "begin one")
    wait_for(tmp_path / "b.txt", "begin two")


def test_after_the_limit_one_line_names_the_process_and_what_to_do(slow, tmp_path):
    first = slow("a.txt", "one", "go")
    wait_for(tmp_path / "a.txt", "begin one")
    second = slow("a.txt", "two", "go", NMB_WAIT_S="0.1")
    assert second.wait(30) == BusyError.exit_code
    output = second.stderr.read()
    assert output == (
        f"BusyError: process {first.pid} still writes a.txt; when it belongs to a run that was killed, wait for its end or end it"
        f" with `kill {first.pid}`, then run the same command again\n"
    )
    assert (tmp_path / "a.txt").read_text() == "begin one\n"


def test_a_writer_that_was_killed_is_in_nobodys_way(slow, tmp_path):
    first = slow("a.txt", "one", "go")
    wait_for(tmp_path / "a.txt", "begin one")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert len(lock_files(tmp_path)) == 1
    (tmp_path / "go").touch()
    second = slow("a.txt", "two", "go", NMB_WAIT_S="0")
    assert second.wait(30) == 0
    assert lock_files(tmp_path) == []


def test_of_many_writers_one_works_at_a_time(slow, tmp_path):
    (tmp_path / "go").touch()
    processes = [slow("a.txt", str(number), "go") for number in range(8)]
    assert [process.wait(60) for process in processes] == [0] * 8
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert len(lines) == 16
    for begin, end in zip(lines[::2], lines[1::2], strict=True):
        assert end == begin.replace("begin", "end")


def test_a_command_whose_run_was_killed_before_it_began_does_nothing(slow, tmp_path, monkeypatch):
    run = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with monkeypatch.context() as patch:
        patch.setenv(RUN_VARIABLE, "")
        patch.setattr(os, "getpid", lambda: run.pid)
        name_this_run()
        value = os.environ[RUN_VARIABLE]
    first = slow("a.txt", "one", "go", **{RUN_VARIABLE: value})
    wait_for(tmp_path / "a.txt", "begin one")
    second = slow("a.txt", "two", "go", **{RUN_VARIABLE: value})
    run.kill()
    run.wait()
    (tmp_path / "go").touch()
    assert first.wait(30) == 0  # it had started, and goes on
    assert second.wait(30) == BusyError.exit_code
    assert "a.txt: the run that started this command has ended, nothing was done" in second.stderr.read()
    assert (tmp_path / "a.txt").read_text() == "begin one\nend one\n"


def test_a_command_that_a_person_starts_belongs_to_no_run(monkeypatch):
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    assert not run_has_ended()
    monkeypatch.setenv(RUN_VARIABLE, "another-machine/999999999")
    assert not run_has_ended()


def test_a_run_waits_for_a_command_of_an_earlier_one_and_for_no_other(slow, tmp_path, monkeypatch, capsys):
    (tmp_path / "results").mkdir()
    first = slow("results/tables", "one", "go")
    wait_for(tmp_path / "results/tables", "begin one")
    monkeypatch.setattr(one_writer, "WAIT_S", 0.0)
    wait_for_writers(["results/metrics.json", "results/tables.csv"])
    with pytest.raises(BusyError, match=f"process {first.pid} still writes results/tables; when"):
        wait_for_writers(["results/other.csv", "results/tables/rates.csv"])
    monkeypatch.setattr(one_writer, "WAIT_S", 30.0)
    monkeypatch.setattr(one_writer, "ANNOUNCE_AFTER_S", 0.0)
    monkeypatch.setattr(time, "sleep", lambda _: (tmp_path / "go").touch())
    wait_for_writers(["results/tables/rates.csv"])
    assert capsys.readouterr().err == f"process {first.pid} still writes results/tables; waiting for it to end\n"


@pytest.mark.parametrize("arguments", [["--help", "--out", "a"], ["--out", "a", "-h"], ["--benchmark", "demo"], []])
def test_a_command_that_writes_nothing_takes_no_lock(arguments, tmp_path):
    assert outputs_of(arguments) == []
    assert run_command(lambda _: len(lock_files(tmp_path)), arguments) == 0


def test_every_argument_that_begins_with_out_is_an_output():
    assert outputs_of(["--case", "c", "--out-flow", "f.json", "--out=g.json"]) == [Path("f.json"), Path("g.json")]


@pytest.mark.parametrize("path", sorted((ROOT / "rules").glob("*.smk")), ids=lambda path: path.name)
def test_every_rule_tells_its_command_what_it_writes(path):
    rules = re.split(r"^rule ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for rule in rules:
        assert " --out" in rule.partition("shell:")[2], rule.partition(":")[0]


def test_the_locks_lie_where_only_their_owner_can_look(tmp_path):
    with only_writer([Path("a")]):
        (lock,) = lock_files(tmp_path)
        assert lock.parent.stat().st_mode & 0o777 == 0o700
        assert lock.read_text() == f"{os.getpid()}\n{tmp_path / 'a'}"


def test_a_folder_of_locks_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "tmp" / f"neuralmedbench-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="belongs to another user; set TMPDIR"), only_writer([Path("a")]):
        pass
