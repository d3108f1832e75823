from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime import atomic_write as partial
from neuralmedbench.runtime.atomic_write import atomic_file, atomic_folder, write_text

pytestmark = pytest.mark.slow

BEGIN = """
import os, pathlib, signal, sys
from neuralmedbench.runtime import atomic_write
target = pathlib.Path(sys.argv[1])
"""
HALF_A_FILE = BEGIN + "with atomic_write.atomic_file(target) as partial:\n    partial.write_text('half')\n    "
DIE = "os.kill(os.getpid(), signal.SIGKILL)"
LIVE = "print('ready', flush=True); input()"
HALF_A_FOLDER = BEGIN + (
    "moves, real = [], os.replace\n"
    "def replace(*names):\n"
    "    moves.append(names)\n"
    "    if len(moves) == int(sys.argv[2]):\n"
    f"        {DIE}\n"
    "    real(*names)\n"
    "os.replace = replace\n"
    "with atomic_write.atomic_folder(target) as partial:\n"
    "    (partial / 'a.txt').write_text('new')\n"
)


@pytest.fixture(autouse=True)
def nothing_swept_yet(monkeypatch):
    """Start every test like a process that has not written anything yet."""
    monkeypatch.setattr(partial, "_swept", set())


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed(code: str, *arguments: object) -> None:
    assert start(code, *arguments).wait(30) == -signal.SIGKILL


def half_done(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".partial-*"))


def test_what_a_killed_writer_left_goes_with_the_next_write_and_what_a_living_one_does_stays(tmp_path):
    killed(HALF_A_FILE + DIE, tmp_path / "a.txt")
    assert len(half_done(tmp_path)) == 1
    living = start(HALF_A_FILE + LIVE, tmp_path / "b.txt")
    assert living.stdout.readline() == "ready\n"
    assert len(half_done(tmp_path)) == 1  # the running one swept before it started
    write_text(tmp_path / "a.txt", "whole")
    assert len(half_done(tmp_path)) == 1
    living.communicate("\n", timeout=30)
    assert (tmp_path / "b.txt").read_text() == "half"
    assert half_done(tmp_path) == []


def test_half_done_work_is_part_of_no_case(tmp_path):
    case = CaseRecord(benchmark="b", case_id="c1", patient_id="p1", stage="normalise", source_sha256="0")
    (tmp_path / "volumes").mkdir()
    (tmp_path / "volumes" / "a.nii").write_bytes(b"voxels")
    write_case(tmp_path / "case.json", case)
    undisturbed = read_case(tmp_path / "case.json")
    for folder in (tmp_path, tmp_path / "volumes"):
        killed(HALF_A_FILE + DIE, folder / "case.json")
    assert list(sha256_of_files(tmp_path)) == ["case.json", "volumes/a.nii"]
    write_case(tmp_path / "case.json", case)
    assert read_case(tmp_path / "case.json") == undisturbed


@pytest.mark.parametrize(("move", "left"), [(1, "old"), (2, None)])
def test_a_folder_is_the_old_one_or_absent_when_its_writer_is_killed(tmp_path, move, left):
    target = tmp_path / "png"
    with atomic_folder(target) as folder:
        (folder / "a.txt").write_text("old")
        (folder / "b.txt").write_text("old")
    killed(HALF_A_FOLDER, target, move)
    assert target.exists() == (left is not None)
    assert {path.read_text() for path in target.glob("*")} == ({left} if left else set())
    partial._swept.clear()  # as in another process
    with atomic_folder(target) as folder:
        (folder / "c.txt").write_text("later")
    assert [path.name for path in tmp_path.iterdir()] == ["png"]
    assert [path.name for path in target.iterdir()] == ["c.txt"]


def test_of_two_writers_of_a_folder_the_later_one_wins_whole(tmp_path):
    with atomic_folder(tmp_path / "png") as first:
        (first / "a.txt").write_text("first")
        with atomic_folder(tmp_path / "png") as second:
            (second / "b.txt").write_text("second")
        assert [path.name for path in (tmp_path / "png").iterdir()] == ["b.txt"]
    assert [path.name for path in (tmp_path / "png").iterdir()] == ["a.txt"]
    assert half_done(tmp_path) == []


def test_a_folder_that_appears_between_the_two_moves_goes_the_same_way(tmp_path, monkeypatch):
    target, real = tmp_path / "png", os.replace
    moves = []

    def replace(source, place):
        moves.append(place)
        if len(moves) == 2:  # the old folder is moved away, and another writer puts its own there
            target.mkdir()
            (target / "other.txt").touch()
        real(source, place)

    monkeypatch.setattr(partial.os, "replace", replace)
    with atomic_folder(target) as folder:
        (folder / "a.txt").touch()
    assert [path.name for path in target.iterdir()] == ["a.txt"]
    assert half_done(tmp_path) == []


def test_nobody_else_can_look_into_half_done_work(tmp_path):
    with atomic_file(tmp_path / "a.txt") as partial_file:
        partial_file.write_text("x")
        assert partial_file.parent.stat().st_mode & 0o777 == 0o700
