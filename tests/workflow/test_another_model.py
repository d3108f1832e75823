"""A provider that answers by another model than the one asked: said at once, on the first screen, in gate and probe; one line allows an alias.

And one model at three efforts: a family over tokens.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from conftest import NMB
from fixtures.models import Server, reply, running_server
from neuralmedbench.files.result_tables import read_result

pytestmark = [pytest.mark.workflow, pytest.mark.long]

INPUTS = "NMB_FOUND_INPUTS"
OTHER = "made-up-3.5-lite"
MAPPING = {
    "title": "Exam",
    "home": "made up",
    "licence": "ours",
    "axis": "breadth",
    "files": ["*.csv"],
    "runner": "choice",
    "id": ["number"],
    "text": ["history"],
    "question": "question",
    "options": ["A", "B", "C", "D"],
    "answer": "answer",
    "persona": "You are a physician.",
    "samples": 1,
}
MARGINS = {
    "stated_on": "2026-01-31",
    "update": {"benchmark": "exam", "essential": {"all": {"min_accuracy": 0.9, "min_coverage": 0.9}}},
}


class Ruled(Server):
    """Answers by the first rule whose pattern is in the request, under the name of that rule, or else under the one that was asked."""

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        super().__init__()
        self.rules = rules

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        rule = next(rule for rule in self.rules if re.search(rule["if"], str(body["messages"])))
        return web.json_response(reply(rule["content"], model=rule.get("model", body["model"])))


def written_exam(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Write eight questions in the form of the input that was found, and the rule by which another model answers them all."""
    rows = [
        [number, "t", f"History {number}.", "Which diagnosis?", "Stroke", "Tumour", "Abscess", "Migraine", "A"] for number in range(1, 9)
    ]
    folder.mkdir()
    with (folder / "exam.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["number", "topic", "history", "question", "A", "B", "C", "D", "answer"], *rows])
    return folder, [{"if": "", "content": "ANSWER: A", "model": OTHER}]


def put_exam(project: Path, folder: Path, address: str, **model: object) -> None:
    """Import the questions, and write a run with one model that a server on this machine answers."""
    value = {"title": "Made up", "backend": "litellm", "id": "openai/made-up", "api_base": address, "revision": "1", "max_tokens": 64}
    run = {"benchmarks": ["exam"], "models": ["x16"], "graders": ["rubric"]}
    for name, content in (("mappings/exam", MAPPING), ("models/x16", value | model), ("x16", run), ("readiness", MARGINS)):
        path = project / "config" / f"{name}.yaml"
        before = yaml.safe_load(path.read_text(encoding="utf-8")) if name == "readiness" else {}
        path.write_text(yaml.safe_dump(before | content), encoding="utf-8")
    done = nmb(project, "benchmark", "import", "exam", "--from", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr


def nmb(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    return subprocess.run([*NMB, *words], cwd=project, env=env, capture_output=True, text=True, check=False, timeout=900)


def change(project: Path, **model: object) -> None:
    path = project / "config/models/x16.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | model), encoding="utf-8")


def report(project: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "config/x16.yaml"]
    done = subprocess.run(command, cwd=project, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def row_of(project: Path, run: str) -> dict[str, str]:
    with (project / f"results/{run}/tables/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["model"] == "x16")


@pytest.fixture(params=["generated", "found"])
def exam(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Questions, and the rules of a server that answers them by another model: made here, and those that were found."""
    if request.param == "generated":
        return written_exam(tmp_path / "exam")
    if INPUTS not in os.environ:
        pytest.skip(f"{INPUTS} is not set")
    folder = Path(os.environ[INPUTS], "01-answered-by-another-model")
    return folder, json.loads((folder / "replies.json").read_text(encoding="utf-8"))


def test_a_run_by_another_model_is_said_everywhere_and_counts_for_nothing(project: Path, exam: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, rules = exam
    with running_server(Ruled(rules)) as server:
        put_exam(project, folder, server.address)
        # while it is asked, at the first answer, and in the lines of `run try`
        tried = nmb(project, "run", "try", "--model", "x16", "--benchmark", "exam", "--cores", "2", "--configfiles", "config/x16.yaml")
        assert tried.returncode == 0, tried.stdout + tried.stderr
        assert f"x16: WARNING: answered by another model: {OTHER}, not made-up" in tried.stderr
        assert f"not answered: 8 answered by another model: {OTHER}, not made-up" in tried.stdout
        assert f"were answered by another model: {OTHER}, not made-up" in (project / "results/try-x16/report.html").read_text(
            encoding="utf-8"
        )
        watched = nmb(project, "run", "watch", "--once")
        assert f"8 failed: answered by another model: {OTHER}, not made-up" in watched.stdout
        # in a whole run: no rank, both names on the first screen, and nothing to be asked again
        said = report(project)
        assert f"answered by another model: {OTHER}, not made-up" in said
        assert (row_of(project, "x16")["rank"], row_of(project, "x16")["missing"]) == ("", "8")
        page = (project / "results/x16/report.html").read_text(encoding="utf-8")
        assert f"8 answers to Exam were answered by another model: {OTHER}, not made-up" in page
        asked = len(server.bodies)
        assert nmb(project, "run", "incomplete", "--configfiles", "config/x16.yaml").returncode == 0
        assert nmb(project, "run", "retry", "--configfiles", "config/x16.yaml", "--cores", "2").returncode == 0
        # a change that nobody announced
        probe = nmb(project, "run", "compare", "--probe", "x16", "--benchmark", "exam", "--configfiles", "config/x16.yaml")
        assert probe.returncode not in (0, 3)
        assert len(server.bodies) == asked
        # one line of the yaml says that it is the same model: the answers are taken from the ledger
        change(project, served_as=[OTHER])
        report(project)
        assert (row_of(project, "x16")["rank"], row_of(project, "x16")["missing"]) == ("1", "0")
        assert len(server.bodies) == asked
        assert OTHER not in nmb(project, "run", "incomplete", "--configfiles", "config/x16.yaml").stderr


def test_a_new_revision_by_another_model_is_not_judged(project: Path, exam: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, rules = exam
    right = [{"if": "", "content": "ANSWER: A"}]
    with running_server(Ruled(right)) as server:
        put_exam(project, folder, server.address)
        assert nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml").returncode == 6, "nothing was asked yet"
        report(project)
        gate = nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml")
        assert (gate.returncode, "no answers of a revision before" in gate.stdout) == (6, True), gate.stdout + gate.stderr
        server.rules = rules
        # the same revision, asked again, was answered by another model
        probe = nmb(project, "run", "compare", "--probe", "x16", "--benchmark", "exam", "--configfiles", "config/x16.yaml")
        assert (probe.returncode, f"{OTHER}, not made-up" in probe.stdout) == (3, True), probe.stdout + probe.stderr
        change(project, revision="2", reference_revision="1")
        report(project)
        rows = read_result(project / "results/x16/tables", "revisions")
        assert rows == [], "answers of another model are no revision of this one"
        gate = nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml")
        assert gate.returncode == 6, gate.stdout + gate.stderr
        assert f"8 answers of the revision that is new were answered by another model: {OTHER}, not made-up" in gate.stdout
        page = project / "results/x16/gate/exam/x16/blocked.html"
        assert OTHER in page.read_text(encoding="utf-8")
        change(project, served_as=[OTHER])
        report(project)
        gate = nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml")
        assert gate.returncode == 0, gate.stdout + gate.stderr


def test_the_gate_waits_for_answers_that_can_be_asked_for_and_says_so_by_its_exit_code(project: Path, tmp_path: Path) -> None:
    folder, _ = written_exam(tmp_path / "exam")
    right = [{"if": "", "content": "ANSWER: A"}]
    with running_server(Ruled(right)) as server:
        put_exam(project, folder, server.address, max_attempts=1)
        report(project)
        server.rules = [{"if": "History 3", "content": ""}, *right]  # an empty text refuses, so it is an answer
        change(project, revision="2", reference_revision="1", max_cost_usd=0.0005, **PRICED)
        said = report(project)
        assert "over_budget" in said
        done = nmb(project, "run", "incomplete", "--configfiles", "config/x16.yaml")
        assert (done.returncode, "requests them again" in done.stderr) == (3, True), done.stderr
        assert nmb(project, "run", "retry", "--configfiles", "config/x16.yaml", "--cores", "2").returncode == 3
        gate = nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml")
        assert (gate.returncode, "nmb run retry" in gate.stdout) == (6, True), gate.stdout + gate.stderr
        assert "look 1" not in gate.stdout
        change(project, max_cost_usd=5)
        assert nmb(project, "run", "retry", "--configfiles", "config/x16.yaml", "--cores", "2").returncode == 0
        assert nmb(project, "run", "incomplete", "--configfiles", "config/x16.yaml").returncode == 0
        gate = nmb(project, "model", "gate", "x16", "--configfiles", "config/x16.yaml")
        assert "look 1, counted" in gate.stdout, gate.stdout + gate.stderr


PRICED = {"prices": {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 1, "dated": "2026-01-01"}}


RIGHT = {"low": 2, "medium": 4, "high": 8}


class Thinking(Server):
    """Is right about as many of the eight questions as its effort allows, and needs as many tokens."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        effort = body["chat_template_kwargs"]["effort"]
        number = int(re.findall(r"History (\d)", str(body["messages"]))[-1])
        said = reply("ANSWER: A" if number <= RIGHT[effort] else "ANSWER: B", model=body["model"])
        tokens = 10 ** (1 + list(RIGHT).index(effort))
        said["usage"] = {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens}
        return web.json_response(said)


def test_three_efforts_of_one_id_are_a_family_with_one_figure_over_their_tokens(project: Path, tmp_path: Path) -> None:
    folder, _ = written_exam(tmp_path / "exam")
    with running_server(Thinking()) as server:
        put_exam(project, folder, server.address)
        for effort in RIGHT:
            value = yaml.safe_load((project / "config/models/x16.yaml").read_text(encoding="utf-8"))
            value |= {"title": f"Thinks {effort}", "parameters": {"chat_template_kwargs": {"effort": effort}}}
            (project / f"config/models/{effort}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
        run = {"benchmarks": ["exam"], "models": [*RIGHT], "graders": ["rubric"]}
        (project / "config/x16.yaml").write_text(yaml.safe_dump(run), encoding="utf-8")
        report(project)
        assert {body["chat_template_kwargs"]["effort"] for body in server.bodies} == set(RIGHT)
    tables = project / "results/x16/tables"
    with (tables / "costs.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file) if row["arm"] == "full"}
    assert {name: (row["shared_id"], float(row["pass1"]), float(row["completion_tokens_per_item"])) for name, row in rows.items()} == {
        "low": ("openai/made-up", 0.25, 10),
        "medium": ("openai/made-up", 0.5, 100),
        "high": ("openai/made-up", 1, 1000),
    }
    pairs = [row for row in read_result(tables, "pairs") if {row["model"], row["other"]} == {"low", "high"}]
    (difference,) = [float(row["difference"]) for row in pairs if row["difference"]]
    assert (abs(difference), sum(int(row["count"]) for row in pairs if row["count"])) == (0.75, 6)
    page = (project / "results/x16/report.html").read_text(encoding="utf-8")
    assert (
        "openai/made-up: Thinks low (10 tokens out, 25 %), Thinks medium (100 tokens out, 50 %), Thinks high (1000 tokens out, 100 %)"
        in page
    )
