"""A log shared by many processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.runtime.append_log import SharedLog, append_line, read_log

COUNT = """
import os, sys
from pathlib import Path
from neuralmedbench.runtime.append_log import SharedLog

book, seen, mine = SharedLog(Path(sys.argv[1])), 0, 0
print("ready", flush=True)
sys.stdin.readline()
while True:
    with book.transaction() as transaction:
        seen += len(transaction.new_records)
        if seen == int(sys.argv[2]):
            break
        transaction.added.append({"number": seen, "by": sys.argv[3]})
        seen += 1
        mine += 1
print(mine)
"""
"""Adds the next number until there are enough; a process that misses a line repeats a number."""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def added(book: SharedLog, *records: dict[str, object]) -> list[dict[str, object]]:
    """Run a transaction that adds records; return the new ones."""
    with book.transaction() as transaction:
        transaction.added.extend(records)
    return transaction.new_records


def test_four_processes_count_to_2000_together_and_no_number_is_lost_or_written_twice(tmp_path):
    path = tmp_path / "folder" / "book.jsonl"
    writers = [start(COUNT, path, 2000, number) for number in range(4)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    outputs = [writer.communicate("go\n", timeout=60)[0] for writer in writers]
    numbers = [record["number"] for record in read_log(path)]
    assert numbers == list(range(2000))
    assert sum(map(int, outputs)) == 2000


def test_a_process_reads_only_what_others_added_since(tmp_path):
    here, there = SharedLog(tmp_path / "b"), SharedLog(tmp_path / "b")
    assert added(here, {"a": 1}) == []
    assert added(there, {"a": 2}, {"a": 3}) == [{"a": 1}]
    assert added(here) == [{"a": 2}, {"a": 3}]
    assert added(here) == added(there) == []


def test_a_turn_that_ends_with_an_error_adds_nothing_and_lets_others_go_on(tmp_path):
    here, there = SharedLog(tmp_path / "b"), SharedLog(tmp_path / "b")
    with pytest.raises(KeyError), here.transaction() as transaction:
        transaction.added.extend({"a": number, "b": {}[number]} for number in (1, 2))
    assert added(there, {"a": 2}) == []
    assert added(here) == [{"a": 2}]


@pytest.mark.parametrize("torn", [b'{"a":9', b"\xff\xfe", b'{"a":9}'])
def test_the_torn_last_line_of_a_killed_process_costs_only_itself(tmp_path, torn):
    path = tmp_path / "b"
    early = SharedLog(path)
    added(early, {"a": 1})
    with path.open("ab") as file:
        file.write(torn)
    late = SharedLog(path)
    whole = [{"a": 9}] if torn.endswith(b"}") else []
    assert added(late, {"a": 2}) == [{"a": 1}, *whole]
    assert added(early, {"a": 3}) == [*whole, {"a": 2}]
    assert read_log(path) == [{"a": 1}, *whole, {"a": 2}, {"a": 3}]


def test_a_line_that_was_torn_while_others_looked_is_ended_by_who_writes_next(tmp_path):
    path = tmp_path / "b"
    one, two = SharedLog(path), SharedLog(path)
    added(one, {"a": 1})
    with path.open("ab") as file:
        file.write(b'{"a"')
    assert added(one) == []
    assert added(two, {"a": 2}) == [{"a": 1}]
    assert added(one, {"a": 3}) == [{"a": 2}]
    assert read_log(path) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_a_book_that_begins_anew_is_the_same_book_for_all(tmp_path):
    path = tmp_path / "b"
    one, two = SharedLog(path), SharedLog(path)
    added(one, *({"a": number} for number in range(50)))
    added(two)
    with one.transaction() as transaction:
        transaction.truncate = True
        transaction.added.append({"b": 1})
    assert added(two, {"b": 2}) == [{"b": 1}]
    assert added(one) == [{"b": 2}]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"b": 1}, {"b": 2}]
    assert os.listdir(tmp_path) == ["b"]


def test_a_book_that_a_person_took_away_is_made_again(tmp_path):
    book = SharedLog(tmp_path / "b")
    added(book, {"a": 1})
    (tmp_path / "b").unlink()
    assert added(book, {"a": 2}) == []
    assert read_log(tmp_path / "b") == [{"a": 2}]


def test_a_disk_that_takes_half_a_line_leaves_none(tmp_path, monkeypatch):
    book, real = SharedLog(tmp_path / "b"), os.write
    added(book, {"a": 1})
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:4]))
    with pytest.raises(OSError, match="No space"):
        added(book, {"a": 2})
    monkeypatch.undo()
    added(book, {"a": 3})
    assert read_log(tmp_path / "b") == [{"a": 1}, {"a": 3}]


def _in_a_fork(book, pipe):
    with book.transaction() as transaction:
        pipe.send("inside")
        pipe.poll(20)
        transaction.added.append({"a": 2})


def test_a_forked_process_locks_the_book_for_itself(tmp_path):
    book, context = SharedLog(tmp_path / "b"), multiprocessing.get_context("fork")
    added(book, {"a": 1})
    here, there = context.Pipe()
    child = context.Process(target=_in_a_fork, args=(book, there))
    child.start()
    assert here.recv() == "inside"
    probe = start("import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)", tmp_path / "b")
    assert probe.wait(20) != 0
    here.send("go on")
    child.join(20)
    assert added(book) == [{"a": 2}]


DIE_INSIDE = """
import os, signal, sys
from pathlib import Path
from neuralmedbench.runtime.append_log import SharedLog

with SharedLog(Path(sys.argv[1])).transaction() as transaction:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_inside_a_turn_does_not_keep_the_book(tmp_path):
    book = SharedLog(tmp_path / "b")
    assert start(DIE_INSIDE, tmp_path / "b").wait(20) == -signal.SIGKILL
    assert added(book, {"a": 1}) == []


def test_a_book_without_a_file_belongs_to_one_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert added(SharedLog(None), {"a": 1}) == []
    assert list(Path().iterdir()) == []


def test_the_torn_line_of_a_killed_process_costs_no_line_that_follows(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"first": 1}\n{"torn": ')
    append_line(path, {"second": 2}, sync=True)
    append_line(path, {"third": 3})
    assert read_log(path) == [{"first": 1}, {"second": 2}, {"third": 3}]
    assert path.read_bytes().count(b"\n") == 4
