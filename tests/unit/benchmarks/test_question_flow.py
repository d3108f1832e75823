"""Every question of an imported data set has its outcome in the report, also if a picture was quarantined."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fixtures.report import build
from fixtures.tables import BREADTH, write_study
from neuralmedbench.benchmarks.question_items import build_questions, question_outcomes, read_questions
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.errors import DataError
from neuralmedbench.figures import gallery
from neuralmedbench.files.cases import write_pictures
from neuralmedbench.files.json_files import write_json_record, write_lines
from neuralmedbench.records.case import PictureFate, PictureManifest, State
from neuralmedbench.records.items import Disclosure, Family, Gold, Runner
from neuralmedbench.records.questions import IMPORT_RECORD, ImportedQuestion, ImportRecord, QuestionImage, Refusal

pytestmark = pytest.mark.slow

BURNED, ABSENT = "text is burned into the picture", "the file is not there"
PICTURES = (
    PictureFate(image_id="img-000001", path="pictures/img-000001.png", sha256="1"),
    PictureFate(image_id="img-000002", path="", sha256="", state=State.QUARANTINED, reason=BURNED),
    PictureFate(image_id="img-000003", path="", sha256="", state=State.QUARANTINED, reason=ABSENT),
)
ASKED = {"a": "1", "b": "12", "c": "21", "d": "32", "e": "", "f": "1", "g": "3"}
"""Questions and the indices of their pictures; f is a few-shot example."""


def question(name: str, pictures: str) -> ImportedQuestion:
    images = tuple(QuestionImage(file=f"{number}.png") for number in pictures)
    return ImportedQuestion(
        question_id=name,
        runner=Runner.OPEN,
        family=Family.QUESTION_ANSWERING,
        question="What is it?",
        images=images,
        exemplar=name == "f",
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run whose breadth benchmark is an imported set of seven questions; the import refused two more."""
    root = tmp_path_factory.mktemp("flow")
    write_study(root, patients=3)
    folder = root / "data" / "questions" / "b"
    write_lines(folder / "questions.jsonl", ImportedQuestion, [question(*one) for one in ASKED.items()])
    write_lines(folder / "answers.jsonl", Gold, [Gold(item_id="a", answer="x"), Gold(item_id="f", answer="y")])
    write_lines(folder / "disclosures.jsonl", Disclosure, [])
    (folder / "images.csv").write_text("file_path,sha256,width,height\n1.png,,1,1\n2.png,,1,1\n3.png,,1,1\n", encoding="utf-8")
    refused = (Refusal(where="row 3", reason="the question is empty"), Refusal(where="row 5", reason="the question is empty"))
    record = ImportRecord(benchmark="b", data_set="b", licence="l", home="h", sources={}, expected=0, found=9, imported=7, refused=refused)
    write_json_record(folder / IMPORT_RECORD, record)
    path = root / "config" / "benchmarks" / f"{BREADTH}.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8")) | {"questions": "data/questions/b"}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    manifest = PictureManifest(benchmark=BREADTH, stage="deidentify", source_sha256="0" * 64, pictures=PICTURES)
    write_pictures(root / "data" / "deidentified" / BREADTH / "pictures.json", manifest)
    (root / "report.html").write_text(build(root, figures=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "FIGURES", {"case_flow": gallery.FIGURES["case_flow"]})
        gallery.draw_figures(root / "results" / "tables", root / "results" / "figures")
    return root


def test_fates_are_those_that_the_items_are_built_by(study: Path) -> None:
    asked = read_questions(study / "data" / "questions" / "b")
    fates = dict(zip(ASKED, question_outcomes(asked, PICTURES), strict=True))
    manifest = PictureManifest(benchmark=BREADTH, stage="deidentify", source_sha256="0" * 64, pictures=PICTURES)
    built = build_questions("b", load_benchmark(study / "config", BREADTH), asked, manifest, Path())
    assert {f"b/{name}" for name, (step, _) in fates.items() if step == "used"} == {item.item_id for item in built.items}
    assert {f"b/{name}" for name, (step, _) in fates.items() if step == "example"} == {one.item.item_id for one in built.exemplars}
    assert fates["b"] == fates["c"] == ("quarantined_picture", BURNED)
    assert fates["d"] == ("quarantined_picture", ABSENT), "the first of its pictures that is lacking"


def test_a_set_without_a_usable_picture_says_why_none_is_used(study: Path) -> None:
    asked = read_questions(study / "data" / "questions" / "b")
    with_pictures = replace(asked, questions=tuple(one for one in asked.questions if one.images))
    lost = tuple(replace(one, state=State.QUARANTINED, reason=BURNED) for one in PICTURES)
    manifest = PictureManifest(benchmark=BREADTH, stage="deidentify", source_sha256="0" * 64, pictures=lost)
    with pytest.raises(DataError, match=f"b: no item: a picture of 6 of 6 questions was kept back: {BURNED}"):
        build_questions("b", load_benchmark(study / "config", BREADTH), with_pictures, manifest, Path())


def test_the_case_flow_counts_questions_with_their_reasons_and_nothing_is_lost(study: Path) -> None:
    rows = list(csv.DictReader((study / "results" / "tables" / "case_flow.csv").open(encoding="utf-8")))
    found = {(row["step"], row["reason"]): int(row["n"]) for row in rows if row["unit"] == "question"}
    assert found == {
        ("listed", ""): 9,
        ("refused_import", "the question is empty"): 2,
        ("quarantined_picture", ABSENT): 2,
        ("quarantined_picture", BURNED): 2,
        ("example", "shown with its answer by the strategy few_shot"): 1,
        ("used", ""): 2,
    }
    assert found["listed", ""] == sum(n for (step, _), n in found.items() if step != "listed")
    assert {(row["unit"], row["n"]) for row in rows if row["benchmark"] == BREADTH and row["step"] == "listed"} == {
        ("picture", "3"),
        ("file", "3"),
        ("question", "9"),
    }
    assert {row["unit"] for row in rows if row["benchmark"] != BREADTH} == {"case", "file", "series"}


def test_the_report_shows_them(study: Path) -> None:
    page = (study / "report.html").read_text(encoding="utf-8")
    assert f'<td>Questions</td><td>quarantined picture</td><td class="wrap">{BURNED}</td><td class="number">2</td>' in page
    figure = (study / "results" / "figures" / "case_flow.svg").read_text(encoding="utf-8")
    assert f"{BREADTH}: questions" in figure
    assert "picture quarantined" in figure


def test_a_set_without_its_import_record_is_counted_from_its_questions_and_another_number_of_pictures_is_told(study: Path) -> None:
    asked = read_questions(study / "data" / "questions" / "b")
    assert len(question_outcomes(replace(asked, questions=asked.questions[:2]), PICTURES)) == 2
    with pytest.raises(DataError, match="lists 3 pictures, 2 were ingested"):
        question_outcomes(asked, PICTURES[:2])


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "is not there"), ("file_path,sha256\n1.png,\n,\n", "row 2 has no file_path"), ("a,b\n1,2\n", "row 1 has no file_path")],
)
def test_a_list_of_pictures_that_is_gone_or_incomplete_is_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "images.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"^images\.csv.*{said}.*nmb benchmark import"):
        read_questions(tmp_path)
