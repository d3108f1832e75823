"""A grader that misses planted errors is not used: seen from a whole run, with a grader on this machine that passes every answer."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from aiohttp import web

from fixtures.models import Server, reply, running_server
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.scores import PLANTED, Grade, Score

pytestmark = [pytest.mark.workflow, pytest.mark.long]

JUDGE: dict[str, Any] = {
    "title": "Lenient judge", "kind": "llm", "prompt": "config/prompts/grader-v3.j2",
    "model": {"title": "Lenient judge", "backend": "litellm", "id": "openai/lenient", "revision": "1", "temperature": 0, "max_tokens": 50,
              "api_key_env": "NMB_TEST_KEY", "max_cost_usd": 1,
              "prices": {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 1, "dated": "2026-01-01"}},
}  # fmt: skip
VERDICTS = ("core_diagnosis", "main_condition")


class Lenient(Server):
    """A grader that passes whatever it reads."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        return web.json_response(reply(json.dumps({**dict.fromkeys(VERDICTS, 1), "explanation": "e"})))


@dataclass(frozen=True)
class LenientRun:
    """A finished run whose first grader is the lenient one, and the second the default grader."""

    folder: Path
    requests: int
    plan: str

    def rows(self, table: str) -> list[dict[str, str]]:
        with (self.folder / "results/lenient/tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tested(
    finished_run: Path, tmp_path_factory: pytest.TempPathFactory, run_snakemake: Callable[..., CompletedProcess[str]]
) -> Iterator[LenientRun]:
    """Grade the answers of the finished run anew; do not change it."""
    folder = tmp_path_factory.mktemp("tested") / "project"
    shutil.copytree(finished_run, folder)
    settings = yaml.safe_load((folder / "config/test.yaml").read_text()) | {
        "benchmarks": ["demo-tiny"], "graders": ["lenient", "rubric"], "published": [],
        "grader_checks": {"floor": 0.95},  # the exact interval of 0 of 2 patients ends at 0.84
    }  # fmt: skip
    (folder / "config/lenient.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    arguments = ("--configfile", "config/lenient.yaml", "--", "results/lenient/report.html")
    env = {"NMB_TEST_KEY": "not-a-key"}
    with running_server(Lenient()) as server:
        judge = {**JUDGE, "model": {**JUDGE["model"], "api_base": server.address}}
        (folder / "config/graders/lenient.yaml").write_text(yaml.safe_dump(judge), encoding="utf-8")
        done = run_snakemake(folder, *arguments, env=env)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        again = run_snakemake(folder, "-n", *arguments, env=env)
        yield LenientRun(folder, len(server.bodies), again.stdout + again.stderr)


def test_every_request_about_planted_errors_is_in_the_ledger_and_none_is_asked_twice(tested: LenientRun) -> None:
    ledgers = sorted((tested.folder / "data/ledger/demo-tiny/graders").glob("*/lenient.jsonl"))
    assert [path.parent.name for path in ledgers] == ["image", PLANTED, "text"]
    assert sum(len(read_ledger(path)) for path in ledgers) == tested.requests > 0
    assert "Nothing to be done" in tested.plan


def test_errors_are_planted_in_answers_that_the_grader_passed_and_it_misses_them(tested: LenientRun) -> None:
    grades = read_records(tested.folder / "results/lenient/grades/demo-tiny/image/lenient.parquet", Grade)
    assert {row.strategy for row in grades if row.model == PLANTED} >= {"negation", "rival", "ranks_exchanged", "padding"}
    rows = [row for row in tested.rows("graders") if row["grader"] == "lenient" and row["must"] == "fall"]
    assert {(row["measure"], row["criterion"]) for row in rows} == {
        (where, name) for where in ("detected_in_reference", "detected_in_answers") for name in VERDICTS
    }
    assert {float(row["value"]) for row in rows} == {0.0}
    assert {row["against_floor"] for row in rows if row["n_patients"] == "2"} == {"below"}


def test_the_next_grader_of_the_list_decides_and_no_score_is_the_lenient_ones(finished_run: Path, tested: LenientRun) -> None:
    path = "scores/demo-tiny/image.parquet"
    before, now = (read_records(folder / path, Score) for folder in (finished_run / "results/test", tested.folder / "results/lenient"))
    assert [row.passed for row in now] == [row.passed for row in before]
    assert not all(row.passed for row in now)
    grades = read_records(tested.folder / "results/lenient/grades/demo-tiny/image/lenient.parquet", Grade)
    assert {row.value for row in grades} == {1.0}


def test_the_report_and_its_leaderboard_say_that_the_grader_is_not_used(tested: LenientRun) -> None:
    page = (tested.folder / "results/lenient/report.html").read_text(encoding="utf-8")
    said = "Lenient judge is not used for core diagnosis and main condition: of one planted error it detects 0 %"
    blocks = {name: page[page.index(f'id="{name}"') :] for name in ("leaderboard", "planted")}
    for name, block in blocks.items():
        assert said in block[: block.index("</section>")], name
    assert "The next grader of the list decides" in blocks["leaderboard"]
