"""The question of the title on an imported set of open questions, asked of a model that knows every diagnosis when it is offered and finds none."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from conftest import copy_project, snakemake
from fixtures.imports import put, question
from fixtures.models import Server, reply, running_server
from neuralmedbench.benchmarks.adapters.rows import DataSet, QuestionEntry
from neuralmedbench.benchmarks.importing import ImportPaths, import_set
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.records.arm_changes import CHOICE
from neuralmedbench.records.items import Axis, Family, Gold, Runner
from neuralmedbench.records.questions import LETTERS

pytestmark = [pytest.mark.workflow, pytest.mark.long]

DIAGNOSES = (
    "Meningioma",
    "Glioblastoma",
    "Multiple sclerosis",
    "Cerebral abscess",
    "Subdural haematoma",
    "Migraine with aura",
    "Myasthenia gravis",
    "Guillain-Barré syndrome",
    "Parkinson disease",
    "Normal pressure hydrocephalus",
    "Creutzfeldt-Jakob disease",
    "Wernicke encephalopathy",
)
PATIENTS = 24
MARK = "Case file "
"""Words of a case before its number, by which the model knows what it has."""
SET = {
    "title": "Open questions",
    "kind": "text",
    "axis": "depth",
    "source": "data/raw/open",
    "questions": "data/questions/open",
    "subjects": "public",
    "arms": ["full", *(f"choice-{rotation}" for rotation in (1, 2, 3, 4))],
    "samples": 1,
}
MODEL = {"title": "Recogniser", "backend": "litellm", "id": "openai/recogniser", "revision": "1", "temperature": 0}


class Recogniser(Server):
    """Chooses the right option wherever it stands; asked openly, it answers with the diagnosis of the next case."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        words = str(body["messages"][-1]["content"])
        place = int(re.search(rf"{MARK}(\d+)", words)[1])
        right, another = (DIAGNOSES[number % len(DIAGNOSES)] for number in (place, place + 1))
        offered = next((letter for letter in LETTERS if re.search(rf"\b{letter}\. {right}", words)), "")
        said = f"ANSWER: {offered}" if offered else f"DIFFERENTIAL:\n1. {another}\nFINDINGS: none\nRATIONALE: none"
        return web.json_response(reply(f"{said}\nCONFIDENCE: 0.9"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, without_torch: dict[str, str]) -> Iterator[Path]:
    """Import the set and finish a run that names all four choice arms."""
    folder = tmp_path_factory.mktemp("title")
    project = copy_project(folder / "project")
    entries = tuple(
        QuestionEntry(
            question=question(
                f"q{place:02d}", Runner.OPEN, family=Family.DIFFERENTIAL_DIAGNOSIS, text=f"{MARK}{place}.", question="The diagnosis?"
            ),
            gold=Gold(item_id=f"q{place:02d}", answer=DIAGNOSES[place % len(DIAGNOSES)]),
        )
        for place in range(PATIENTS)
    )
    home = {"name": "open", "title": "Open questions", "home": "h", "licence": "l", "files": "f", "axis": Axis.DEPTH}
    one = DataSet(**home, expected=PATIENTS, read=lambda _: iter(entries))
    import_set(
        one,
        put(folder / "open", {"a": "x"}),
        "open",
        ImportPaths(tables=project / "data/questions/open", pictures=project / "data/raw/open"),
    )
    with running_server(Recogniser()) as server:
        files = {
            "title": {"benchmarks": ["open"], "models": ["recogniser"], "graders": ["rubric"], "statistics": {"resamples": 200}},
            "benchmarks/open": SET,
            "models/recogniser": {**MODEL, "api_base": server.address},
        }
        for name, value in files.items():
            (project / "config" / f"{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
        done = snakemake(project, "--configfile", "config/title.yaml", "--", "results/title/report.html", env=without_torch)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
        yield project


def test_a_model_that_only_recognises_is_told_from_one_that_finds(run: Path) -> None:
    rows = {row["measure"]: row for row in read_result(run / "results/title/tables", "title") if row["model"] == "recogniser"}
    assert (float(rows["recognised"]["value"]), float(rows["found"]["value"]), float(rows["left_out"]["value"])) == (1, 0, 0)
    assert (rows["recognises_only"]["count"], rows["recognises_only"]["of"]) == (str(PATIENTS), str(PATIENTS))
    assert all(CHOICE.fullmatch(arm) for arm in rows["recognised"]["arm"].split())
    contrast = rows["recognised_minus_found"]
    assert (float(contrast["difference"]), contrast["answer"], contrast["n_patients"]) == (1, "better", str(PATIENTS))
    assert float(contrast["p_corrected"]) < 0.01


def test_the_first_sentence_of_the_page_answers_the_title(run: Path) -> None:
    page = (run / "results/title/report.html").read_text(encoding="utf-8")
    line = html.unescape(re.sub(r"<[^>]+>", "", re.search(r'<div class="answer-line">(.*?)</div>', page, re.DOTALL)[1]))
    assert f"Recogniser recognises 100 % of {PATIENTS} patients' diagnoses when offered and finds 0 % alone: 100 points lower" in line
    assert len(line.split()) <= 25
