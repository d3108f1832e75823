"""Runs that are killed at a random moment, and what must hold afterwards.

A round copies a finished run, takes away what one stage and everything after it made, and starts Snakemake in a session of its own.
When a job of that stage has run for a random part of its usual time (or has got a random number of its answers), a `kill -9` ends the
whole process group, or Snakemake alone while the command goes on. Then a person's two commands follow: `snakemake --unlock`, and the same command again.

What is counted as asked twice: a request whose answer had been delivered whole more than `WINDOW_S` before the kill and that is
answered again afterwards. An answer inside the window may have reached the client's socket without the client living long enough to
write it down; no client can close that gap, so such requests are reported by themselves. Where Snakemake alone is killed the
client lives on, there is no such gap, and every second answer counts.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from conftest import copy_project, snakemake
from loopback import Loopback
from neuralmedbench.recording.audit import reached
from neuralmedbench.recording.metadata import METADATA, read_metadata

WINDOW_S = 0.25
CONFIG = "config/crash.yaml"
TARGET = "results/metrics.json"
COMMAND = ("--configfile", CONFIG, "--", TARGET)
STAGES = {
    "imaging": ("ingest_case", "deidentify_case", "normalise_case", "cut_slices"),
    "inference": ("run_inference",),
    "scoring": ("grade_responses", "score_responses", "embed_similarity", "build_tables"),
}
"""Rules of each stage: one of them is hit."""
DATED = {"efficiency.csv", "destinations.csv"}
"""Tables that hold days, attempts or seconds."""
SCORED = ("grades", "similarity", "scores", "ratings", "cases", "tables", "metrics.json")
GONE = {
    "imaging": (
        "data/ingested",
        "data/deidentified",
        "data/normalised",
        "data/slices",
        "data/items",
        "data/gold",
        "data/prompts",
        "results",
    ),
    "inference": ("data/ledger", "results"),
    "scoring": ("data/ledger/*/graders", *(f"results/{name}" for name in SCORED)),
}
"""What a round of each stage takes away beforehand."""


def add_loopback_model(project: Path, address: str) -> None:
    """Add a model and a grader that are asked at an address of this machine, and a run list with them beside a built-in model."""
    asked = {"backend": "litellm", "id": "openai/loop", "revision": "1", "api_base": address, "temperature": 1.0, "concurrency": 4}
    # repeats differ by their seed alone: without one they would be one request to the server
    model = {"title": "Loopback", **asked, "seed": 1}
    grader = {"title": "Loopback grader", "kind": "llm", "prompt": "config/prompts/grader-v1.j2", "model": {**model, "id": "openai/grader"}}
    run = yaml.safe_load((project / "config/test.yaml").read_text(encoding="utf-8"))
    run |= {"models": ["text", "loop"], "graders": ["rubric", "loop"]}
    for name, value in {"models/loop.yaml": model, "graders/loop.yaml": grader, "crash.yaml": run}.items():
        (project / "config" / name).write_text(yaml.safe_dump(value), encoding="utf-8")


def undisturbed_run(folder: Path, address: str, *, finished: Path | None = None) -> Path:
    """Make the run with which all others are compared: on top of a finished run of `config/test.yaml`, or from nothing."""
    if finished is None:
        copy_project(folder)
    else:
        shutil.copytree(finished, folder)
    add_loopback_model(folder, address)
    done = snakemake(folder, *COMMAND)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder


def results_of(project: Path) -> dict[str, bytes]:
    """Content of every result that must not depend on what happened on the way."""
    files = [*(project / "results/tables").glob("*.*"), project / "results/metrics.json"]
    return {path.name: path.read_bytes() for path in files if path.name not in DATED}


def half_done(project: Path) -> list[str]:
    """Find what killed processes left behind in the folders of data and results."""
    return sorted(path.relative_to(project).as_posix() for top in ("data", "results") for path in (project / top).rglob(".partial-*"))


@dataclass(frozen=True)
class Round:
    """What happened in one round; the counts are of requests.

    Attributes
    ----------
    stage, rule, killed : str
        Where it was hit, and what was killed: `group` or `snakemake`.
    hit : bool
        Whether the job was still at work when it was killed.
    answered : int
        Answers delivered before the kill.
    window : int
        Of these, delivered within `WINDOW_S` before it, and how many of them were asked for again (`window_again`).
    twice : int
        Requests that were answered before the window, or with a living client, and answered again.
    waited : bool
        Whether the next run had to wait for a command of the killed one.
    finished, identical : bool
        Whether the next run came to its end, and with the results of the undisturbed run.
    left : tuple of str
        Half-done folders that lie there afterwards.
    """

    stage: str
    rule: str
    killed: str
    hit: bool
    answered: int
    window: int
    window_again: int
    twice: int
    waited: bool
    finished: bool
    identical: bool
    left: tuple[str, ...]
    said: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything held that must hold."""
        return self.finished and self.identical and not self.twice and not self.left


def crash(undisturbed: Path, folder: Path, server: Loopback, *, stage: str, killed: str, seed: int) -> Round:
    """Do one round.

    Parameters
    ----------
    undisturbed : Path
        A finished run; it is copied.
    folder : Path
        Where the copy goes.
    server : Loopback
        The server behind the model; it counts anew.
    stage : str
        Key of `STAGES`.
    killed : str
        `group` or `snakemake`.
    seed : int
        Decides the rule that is hit and the moment.
    """
    choice = random.Random(f"{stage}/{killed}/{seed}")
    rule = choice.choice(STAGES[stage])
    output, usual_s = choice.choice(jobs_of(undisturbed, rule))
    shutil.copytree(undisturbed, folder)
    take_away(folder, stage)
    server.forget()
    process = start(folder)
    wait_until(lambda: has_begun(folder, output), process)
    if calls := answers_in(ledger_of(undisturbed, output)):  # its own clock: it runs as slowly as the machine does today
        wanted = choice.randint(0, calls - 1)
        wait_until(lambda: answers_in(ledger_of(folder, output)) >= wanted, process)
        time.sleep(choice.uniform(0, WINDOW_S))
    else:
        time.sleep(choice.uniform(0, 0.9 * usual_s))
    hit = process.poll() is None and has_begun(folder, output)
    moment = time.monotonic()
    with suppress(ProcessLookupError):  # it ended by itself a moment ago: then it was not hit
        if process.returncode is None:  # not waited for yet: the number is still its own
            os.kill(-process.pid if killed == "group" else process.pid, signal.SIGKILL)
    process.wait()
    unlocked = snakemake(folder, "--unlock", *COMMAND)
    done = snakemake(folder, *COMMAND)
    said = done.stdout + done.stderr
    finished = unlocked.returncode == 0 and done.returncode == 0
    delivered = list(server.delivered.values())
    if killed == "group":  # what was under way then was handed to nobody
        delivered = [[one for one in answers if not one.asked < moment <= one.done] for answers in delivered]
    before = [answers for answers in delivered if answers and answers[0].done < moment]
    window = [answers for answers in before if killed == "group" and answers[0].done > moment - WINDOW_S]
    again = [answers for answers in delivered if len(answers) > 1]
    return Round(
        stage=stage,
        rule=rule,
        killed=killed,
        hit=hit,
        answered=len(before),
        window=len(window),
        window_again=sum(answers in window for answers in again),
        twice=sum(answers not in window for answers in again),
        waited="still writes" in said,
        finished=finished,
        identical=finished and results_of(folder) == results_of(undisturbed),
        left=tuple(half_done(folder)),
        said="" if finished else unlocked.stdout[-2000:] + unlocked.stderr[-2000:] + said[-6000:],
    )


def take_away(project: Path, stage: str) -> None:
    """Remove what a stage and everything after it made."""
    for pattern in GONE[stage]:
        for path in project.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start Snakemake as the leader of a session, so that one signal reaches all its children."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "killed.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "2", *COMMAND],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[bytes], limit_s: float = 600) -> None:
    """Wait for something that a process does."""
    end = time.monotonic() + limit_s
    while not happened():
        if process.poll() is not None or time.monotonic() > end:
            message = "it never happened; killed.log in the round's folder says why"
            raise RuntimeError(message)
        time.sleep(0.02)


def ledger_of(project: Path, output: str) -> Path:
    """Where the answers stand that an output is made from; for a job that asks nobody a file that is not there."""
    ledger = re.sub(r"^results/responses/(.*)\.parquet$", r"data/ledger/\1.jsonl", output)
    return project / re.sub(r"^results/grades/([^/]+)/(.*)\.parquet$", r"data/ledger/\1/graders/\2.jsonl", ledger)


def answers_in(ledger: Path) -> int:
    """Count the answers of a ledger."""
    return ledger.read_bytes().count(b"\n") if ledger.suffix == ".jsonl" and ledger.is_file() else 0


def has_begun(project: Path, output: str) -> bool:
    """Whether Snakemake has begun the job of an output and not ended it."""
    return (project / ".snakemake/incomplete" / _record_of(output)).exists()


def jobs_of(project: Path, rule: str) -> list[tuple[str, float]]:
    """One output of each job of a rule, and the seconds that the job took, by path."""
    jobs = {}
    for path, made in reached(read_metadata(project / METADATA), TARGET).items():
        # a built-in model answers in milliseconds, and nobody counts its answers
        if made.rule == rule and (rule != "run_inference" or path.endswith("loop.parquet")):
            record = json.loads((project / METADATA / _record_of(path)).read_text(encoding="utf-8"))
            jobs[made.shellcmd] = (path, record["endtime"] - record["starttime"])
    return sorted(jobs.values())


def _record_of(output: str) -> str:
    return urlsafe_b64encode(output.encode()).decode()
