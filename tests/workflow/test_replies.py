"""What servers reply to `nmb run try`, and what a user is told of it."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from conftest import NMB
from fixtures.imports import put_yes_no
from fixtures.models import Server, reply, running_server

pytestmark = pytest.mark.workflow

SECRET = "Mustermann-Zebra-77"
QUESTIONS = 3
BENCHMARK = {
    "title": "Yes or no",
    "kind": "text",
    "axis": "breadth",
    "source": "data/raw/yesno",
    "questions": "data/questions/yesno",
    "subjects": "public",
}


def try_stub(project: Path, server: Server) -> subprocess.CompletedProcess[str]:
    """Try a server with the questions of a small set that are answered by yes or no."""
    put_yes_no(project / "downloaded", project / "data", count=QUESTIONS)
    for name, value in {
        "yesno": {"benchmarks": ["yesno"], "models": ["stub"], "graders": ["rubric"]},
        "benchmarks/yesno": BENCHMARK,
    }.items():
        (project / "config" / f"{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["--api-base", server.address, "--id", "stub", "--cores", "2", "--configfiles", "config/yesno.yaml"]
    return subprocess.run(
        [*NMB, "run", "try", "--model", "stub", *words],
        cwd=project,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.long
def test_a_success_without_an_answer_is_one_line_with_its_cause_and_the_next_step(project: Path) -> None:
    """The other forms of such replies have their causes in `unit/models/test_faults.py`."""
    found = "ErrorReply (200): the reply holds an error instead of an answer in `choices`"
    with running_server() as server:
        server.modes, server.message = ["200"], f"the scan of {SECRET} cannot be read"
        done = try_stub(project, server)
    shown = done.stdout + done.stderr
    assert done.returncode != 0
    (line,) = [line for line in shown.splitlines() if line.startswith("failed: ask stub on yesno")]
    assert f"ProviderError: model stub: {QUESTIONS} of {QUESTIONS} answers failed (most often {found})" in line
    assert "the server's own log" in line
    assert "kept" not in line, "there is no answer"
    assert SECRET not in shown


@pytest.mark.long
def test_what_was_answered_before_the_errors_is_kept(project: Path) -> None:
    with running_server() as server:
        server.modes = ["ok", "200"]
        done = try_stub(project, server)
    line = next(line for line in done.stderr.splitlines() if line.startswith("failed: ask stub on yesno"))
    assert "2 of 3 answers failed" in line
    assert "the others are kept: run again to ask for the failed ones only" in line


class Affirmer(Server):
    """Answers every question with an opening yes and an explanation."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        return web.json_response(reply("Yes, there is a bright lesion in the left thalamus, and no mass effect."))


@pytest.mark.long
def test_an_opening_yes_is_read_and_scored(project: Path) -> None:
    with running_server(Affirmer()) as server:
        done = try_stub(project, server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all that was answered could be read" in done.stdout
    with (project / "results/try-stub/tables/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["model"] == "stub"]
    assert (row["n_items"], row["unparsable"], row["missing"]) == (str(QUESTIONS), "0", "0")
    assert float(row["pass1"]) == pytest.approx(2 / 3), "the first and the third of three questions are answered by yes"
