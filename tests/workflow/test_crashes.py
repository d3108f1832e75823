"""Runs that are killed, stopped or cannot write: the same command again finishes them, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.crashes import COMMAND, SCORES, Round, crash, results_of, take_away, undisturbed_run
from fixtures.disk import read_only, small_disk
from fixtures.loopback import Loopback
from fixtures.models import running_server
from fixtures.terminal import at_terminal
from neuralmedbench.models.ledger import ROOM_BYTES, open_ledger, read_ledger
from neuralmedbench.runtime.one_writer import WAIT_VARIABLE, only_writer
from neuralmedbench.runtime.watch import look, plain_lines

pytestmark = [pytest.mark.workflow, pytest.mark.long]

Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]
ANSWERS = "results/crash/responses/demo-tiny/loop.parquet"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    """Run the model that answers on this machine and counts."""
    loopback = Loopback(seed=1, longest_s=0.8)
    with running_server(loopback):
        yield loopback


@pytest.fixture(scope="module")
def undisturbed(finished_run: Path, server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the run with which all others are compared; do not change it. It has one benchmark and ends at the scores; `perf/crash_rounds.py` has all."""
    folder = tmp_path_factory.mktemp("undisturbed") / "project"
    return undisturbed_run(folder, server.address, finished=finished_run, benchmarks=["demo-tiny"], target=SCORES)


@pytest.fixture
def copy(undisturbed: Path, server: Loopback, tmp_path: Path) -> Path:
    """Give a copy of the undisturbed run; the server counts anew."""
    server.forget()
    return Path(shutil.copytree(undisturbed, tmp_path / "project"))


def test_a_run_that_is_killed_while_it_asks_finishes_when_it_is_started_again(undisturbed: Path, server: Loopback, tmp_path: Path) -> None:
    """One seeded round, at the stage that costs money; `make validate` kills at every stage, 20 times."""
    done: Round = crash(undisturbed, tmp_path / "project", server, stage="inference", killed="group", seed=3, results=[SCORES])
    assert done.passed, done


def test_a_torn_record_of_snakemake_is_told_in_one_line_and_its_output_is_made_again(
    copy: Path, server: Loopback, undisturbed: Path, run_snakemake: Snakemake
) -> None:
    for output in (SCORES, ANSWERS):
        record = copy / ".snakemake/metadata" / urlsafe_b64encode(output.encode()).decode()
        record.write_bytes(record.read_bytes()[:100])
    done = run_snakemake(copy, *COMMAND[:-1], SCORES)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    assert said.count("Snakemake's record of it is torn; it is made again") == 2
    assert f"{ANSWERS}: Snakemake's record of it is torn" in said
    assert results_of(copy, [SCORES]) == results_of(undisturbed, [SCORES])
    assert not server.delivered
    assert "Nothing to be done" in run_snakemake(copy, *COMMAND[:-1], SCORES).stderr


def test_a_ledger_that_another_process_writes_to_is_told_on_the_terminal_with_its_number(
    copy: Path, server: Loopback, run_snakemake: Snakemake
) -> None:
    (copy / ANSWERS).unlink()
    with open_ledger(copy / "data/ledger/demo-tiny/loop.jsonl"):
        done = run_snakemake(copy, *COMMAND[:-1], ANSWERS)
    assert done.returncode != 0
    cause = f"ProviderError: loop.jsonl: process {os.getpid()} writes to this ledger; wait for it to end"
    assert cause in done.stderr.splitlines()[-1], "nothing comes after the cause"
    assert "Traceback" not in done.stdout + done.stderr
    assert "non-zero exit status" not in done.stdout + done.stderr
    assert not server.delivered


def test_a_command_that_outlives_its_run_for_long_stops_the_next_run_before_it_touches_anything(
    copy: Path, server: Loopback, run_snakemake: Snakemake
) -> None:
    (copy / ANSWERS).unlink()
    before = {path: path.stat().st_mtime_ns for top in ("data", "results") for path in (copy / top).rglob("*")}
    with only_writer([copy / ANSWERS]):
        done = run_snakemake(copy, "-p", *COMMAND[:-1], ANSWERS, env={WAIT_VARIABLE: "0.2"})
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"BusyError: process {os.getpid()} still writes {ANSWERS}; when it belongs to a run that was killed" in said
    assert "localrule run_inference" not in said
    assert {path: path.stat().st_mtime_ns for top in ("data", "results") for path in (copy / top).rglob("*")} == before
    assert not server.delivered


def test_at_a_terminal_one_line_counts_the_answers_and_a_part_that_was_made_is_no_error(copy: Path) -> None:
    take_away(copy, "inference")
    shown = at_terminal(copy, *COMMAND[:-1], ANSWERS)
    assert shown.code == 0, shown.text[-3000:]
    assert shown.longest_silence_s < 10
    assert len(shown.lines) <= 8, shown.lines
    assert shown.lines[-1] == f"made: {ANSWERS}; a run is recorded when the whole of it is asked for"
    assert ".snakemake/log/" in shown.lines[-2]
    assert re.search(r"ask loop on demo-tiny: \d+ of 24 answers", shown.text)
    assert not any("Error" in line for line in shown.lines)
    # of the runs before nothing is left, and of this one how it ended
    assert len(list((copy / ".snakemake/progress").iterdir())) == 1
    ended = look(copy / ".snakemake/progress")
    assert ended
    assert (ended.run.name, ended.run.outcome, ended.run.done, ended.run.total) == ("crash", "finished", 1, 1)
    assert [line.split() for line in plain_lines(ended)[3:4]] == [["loop", "demo-tiny", "done", "24", "of", "24"]]


def test_ctrl_c_ends_in_one_line_and_what_had_come_is_not_asked_again(copy: Path, server: Loopback, run_snakemake: Snakemake) -> None:
    take_away(copy, "inference")
    shown = at_terminal(copy, *COMMAND[:-1], ANSWERS, interrupt_at=b"ask loop on demo-tiny: ")
    assert shown.code == 130, shown.text[-3000:]
    assert shown.lines[-1] == "interrupted: 0 of 1 steps are made and kept; the same command goes on from there"
    assert "Traceback" not in shown.text
    assert "Error" not in shown.text
    assert run_snakemake(copy, *COMMAND[:-1], ANSWERS).returncode == 0
    assert {len(answers) for answers in server.delivered.values()} == {1}


def test_a_lock_is_told_with_what_to_type(copy: Path, run_snakemake: Snakemake) -> None:
    (copy / ANSWERS).unlink()
    (copy / ".snakemake/locks").mkdir(exist_ok=True)
    (copy / ".snakemake/locks/0.output.lock").write_text(f"{ANSWERS}\n", encoding="utf-8")
    done = run_snakemake(copy, *COMMAND[:-1], ANSWERS)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("BusyError: the last run in this folder was killed")
    assert done.stderr.splitlines()[-1].endswith("snakemake --unlock, then the same command")


def test_a_disk_that_fills_during_inference_costs_nothing_but_the_rest(
    copy: Path, server: Loopback, undisturbed: Path, run_snakemake: Snakemake
) -> None:
    take_away(copy, "inference")
    with small_disk(copy / "data/ledger", ROOM_BYTES // 1024 + 8) as disk:
        stopped = run_snakemake(copy, *COMMAND[:-1], ANSWERS)
        assert stopped.returncode != 0
        assert "StorageError: model loop: less than 8 MiB are free on the disk of its ledger" in stopped.stdout + stopped.stderr
        ledger = disk / "demo-tiny/loop.jsonl"
        lines = ledger.read_text(encoding="utf-8").splitlines()
        assert 0 < len(lines) < 24
        assert len([json.loads(line) for line in lines]) == len(read_ledger(ledger)) == len(server.delivered)
        assert not (copy / ANSWERS).exists()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        done = run_snakemake(copy, *COMMAND[:-1], SCORES)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        assert ledger.read_text(encoding="utf-8").splitlines()[: len(lines)] == lines
    assert {len(answers) for answers in server.delivered.values()} == {1}
    assert results_of(copy, [SCORES]) == results_of(undisturbed, [SCORES])


def test_data_that_may_only_be_read_are_told_in_one_line(copy: Path, server: Loopback, run_snakemake: Snakemake) -> None:
    shutil.rmtree(copy / "results")
    with read_only(copy / "data"):
        done = run_snakemake(copy, *COMMAND[:-1], ANSWERS)
    assert done.returncode != 0
    assert (
        "StorageError: data/ledger/demo-tiny/loop.jsonl cannot be written: its disk or folder is read-only; make it writable and run"
        in done.stdout + done.stderr
    )
    assert not server.delivered
