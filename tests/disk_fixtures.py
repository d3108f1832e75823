"""Disks that are small, or may only be read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size_kib: int) -> Iterator[Path]:
    """Mount a disk of its own on a folder; a machine that does not allow it skips the test."""
    place.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@contextmanager
def read_only(place: Path) -> Iterator[Path]:
    """Mount a folder over itself so that nobody, root included, can write to it."""
    _mount("--bind", str(place), str(place))
    try:
        _mount("-o", "remount,bind,ro", str(place))
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def fill(place: Path, *, leave_kib: int = 0) -> Path:
    """Fill a disk but for so much; the file that does it."""
    ballast = place / "ballast"
    free = os.statvfs(place)
    with ballast.open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - leave_kib * 1024)))
    return ballast


def _mount(*arguments: str) -> None:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root can mount a disk for this test")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let a test mount a disk: {done.stderr.strip()}")
