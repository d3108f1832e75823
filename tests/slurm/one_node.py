"""A real Slurm cluster of one node: this machine, with everything it writes in one folder, ended by its own process numbers."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scontrol", "scancel")
PACKAGES = ("slurm-wlm", "munge")
SYSTEM_PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
MinJobAge=36000
GresTypes=gpu
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} CoresPerSocket={cpus} RealMemory={memory_mb} Gres=gpu:1
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# a card that is none: Slurm counts it and hands it out, nothing computes on it
CARDS = "Name=gpu File=/dev/null\n"
START_S = 30.0


def why_not() -> str:
    """Say why no cluster can be started here; empty when one can. Installs Slurm when that is all that is missing."""
    if os.geteuid() != 0:
        return "a Slurm cluster of one node is started by root"
    if missing() and shutil.which("apt-get", path=SYSTEM_PATH):
        _install()
    return f"not here and not to be installed with apt-get: {', '.join(missing())}" if missing() else ""


def missing() -> list[str]:
    """Programs of Slurm that are not here."""
    return [program for program in PROGRAMS if not shutil.which(program, path=SYSTEM_PATH)]


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
        with suppress(subprocess.SubprocessError):
            subprocess.run(["apt-get", *arguments], env=environment, capture_output=True, check=False, timeout=300)


@contextmanager
def one_node(folder: Path) -> Iterator[dict[str, str]]:
    """Start the cluster, and end it again.

    Parameters
    ----------
    folder : Path
        Where it keeps everything.

    Yields
    ------
    dict of str to str
        The environment in which the programs of Slurm know this cluster.
    """
    settings = {
        "folder": folder,
        "host": socket.gethostname().partition(".")[0],
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20 * 0.9),
        "controller_port": _free_port(),
        "node_port": _free_port(),
    }
    for part in ("munge", "state", "spool"):
        (folder / part).mkdir(parents=True)
    (folder / "munge").chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**settings), encoding="utf-8")
    (folder / "gres.conf").write_text(CARDS, encoding="utf-8")
    configuration = str(folder / "slurm.conf")
    environment = {**os.environ, "PATH": f"{_own_srun(folder, configuration)}{os.pathsep}{SYSTEM_PATH}", "SLURM_CONF": configuration}
    munge = [f"--{name}={folder}/munge/{name.split('-')[0]}" for name in ("socket", "key-file", "pid-file", "seed-file", "log-file")]
    commands = [
        ["munged", "--foreground", "--force", *munge],
        ["slurmctld", "-D", "-f", configuration],
        ["slurmd", "-D", "-f", configuration, "-N", str(settings["host"])],
    ]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.out").open("wb") as said:
                daemons.append(subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT, cwd=folder))
            time.sleep(0.5)
        _wait_until_idle(folder, environment)
        yield environment
    finally:
        with suppress(subprocess.SubprocessError, OSError):
            subprocess.run(["scancel", "--user", "root"], env=environment, capture_output=True, check=False, timeout=20)
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()


def _own_srun(folder: Path, configuration: str) -> Path:
    """Give a folder with an `srun` that knows this cluster: Snakemake's plugin takes SLURM_CONF away from the jobs that it starts."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "srun"
    program.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {shutil.which("srun", path=SYSTEM_PATH)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return programs


def _wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True, check=False, timeout=20
        )
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    said = "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in sorted(folder.glob("*.log")))
    message = f"the cluster did not become idle within {START_S:.0f} s\n{said}"
    raise RuntimeError(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
