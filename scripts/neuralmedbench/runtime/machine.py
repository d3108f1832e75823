"""What jobs may use on this machine: cores and memory of the process and its control groups, and packages that an installation may lack."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

GROUPS_OF_PROCESS, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
SHARE = 0.9
"""Part of the available memory that jobs may request: the rest is for Snakemake itself."""


def not_installed(packages: Iterable[str], extras: str = "all") -> str:
    """Say which of some packages this installation lacks; empty if it has all. None of them is imported."""
    absent = [name for name in packages if find_spec(name) is None]
    return f"not installed here: {', '.join(absent)}; `make setup EXTRAS={extras}` adds them" if absent else ""


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1: by its affinity, and by the quota of its control groups."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [float(quota) / float(period) for quota, period in _cpu_quotas() if float(quota) > 0]
    return max(1, int(min([allowed, *quotas])))


def usable_memory_mb() -> int:
    """Return the memory in MB that jobs may use together: `SHARE` of what is available now, and of the limit of the control groups."""
    import psutil

    limits = [int(text) for text in (*_values("memory", "memory.max"), *_values("memory", "memory.limit_in_bytes")) if text.isdigit()]
    return int(SHARE * min([psutil.virtual_memory().available, *limits]) / 1e6)


def _cpu_quotas() -> Iterator[tuple[str, str]]:
    """Yield quotas and periods in microseconds; a negative quota is none."""
    for text in _values("cpu", "cpu.max"):
        quota, _, period = text.partition(" ")
        yield ("-1" if quota == "max" else quota), period
    yield from zip(_values("cpu", "cpu.cfs_quota_us"), _values("cpu", "cpu.cfs_period_us"), strict=False)


def _values(controller: str, name: str) -> Iterator[str]:
    """Yield the contents of the files of one name in the control groups of this process and in those above them (versions 1 and 2)."""
    lines = GROUPS_OF_PROCESS.read_text(encoding="utf-8").splitlines() if GROUPS_OF_PROCESS.exists() else []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = GROUPS / controller if controllers else GROUPS
        group = top / place.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(top):
                break
            if (file := folder / name).is_file():
                yield file.read_text(encoding="utf-8").strip()
