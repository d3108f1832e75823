"""Slices chosen with knowledge of the answer are marked for people, and never for models."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, slice_row, source
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CASE_COLUMNS
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.labels import picture_label
from neuralmedbench.records.case import Tile
from neuralmedbench.tables.bundle import AskedOf, bundle_cases
from neuralmedbench.tables.verdict import oracle_benchmarks

ORACLE = (slice_row("a1", 20, oracle=True), slice_row("a1", -20, oracle=True))


def built(**of_source: Any) -> BenchmarkItems:
    """Items of one case."""
    return build_cases("b", benchmark_config(), [replace(source("a1"), **of_source)], {"a1": answer("a1")}, VOCABULARY)


def test_the_case_browser_names_oracle_pictures_and_the_width_of_the_lesion() -> None:
    made = built(images=ORACLE)
    bundle = bundle_cases(list(made.items), list(made.gold), [], [], [], known=AskedOf(lesions=made.lesions))[0]
    assert [image.label for image in bundle.images] == ["FLAIR, axial, +20 mm, lesion 19 px, oracle", "FLAIR, axial, -20 mm, oracle"]


def test_the_report_and_the_methods_name_benchmarks_with_oracle_slices() -> None:
    def study(**of_source: Any) -> Any:
        return SimpleNamespace(benchmarks={"b": SimpleNamespace(config=benchmark_config(), items=list(built(**of_source).items))})

    assert oracle_benchmarks(study(images=ORACLE)) == ["T"]
    assert oracle_benchmarks(study()) == []


def test_a_model_is_never_told_that_a_slice_was_chosen_with_the_answer_or_what_it_shows_of_the_lesion() -> None:
    plain, marked = built(images=tuple(replace(row, oracle=False) for row in ORACLE)), built(images=ORACLE)
    templates = Templates(ROOT / "config" / "prompts")
    sent = [assemble(made.items, CaseMaterial(made.disclosures), benchmark_config(arms=("full",)), templates) for made in (plain, marked)]
    assert [request.request_id for request in sent[0]] == [request.request_id for request in sent[1]]
    assert "width_px" not in repr(sent)


def test_the_label_of_a_montage_lists_the_place_of_every_tile() -> None:
    tiles = tuple(Tile(index=number, position_mm=float(position)) for number, position in enumerate((-30, -10, 10)))
    image = built(images=(slice_row("a1", -10, tiles=tiles),)).items[0].images[0]
    assert picture_label(2, image, "full") == "Picture 2: FLAIR, axial, slices at z -30 -10 +10 mm, left to right and then top to bottom"
    assert picture_label(2, image, "none") == "Picture 2"
    assert image.role == "montage"


def test_the_label_of_ct_names_every_window_but_that_for_the_brain() -> None:
    rows = tuple(slice_row("a1", 20, "CT", image_id=name, window_name=name) for name in ("brain", "bone"))
    labels = {image.image_id: picture_label(1, image, "full") for image in built(images=rows).items[0].images}
    assert labels == {"brain": "Picture 1: CT, axial, z = +20 mm", "bone": "Picture 1: CT, axial, bone window, z = +20 mm"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name in ("models", "graders"):
        shutil.copytree(ROOT / "config" / name, tmp_path / name)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "mine.cases.tsv").write_text("\t".join(CASE_COLUMNS) + "\n")
    (tmp_path / "answers.csv").write_text("case_id,diagnosis\n")
    (tmp_path / "benchmarks" / "mine.yaml").write_text("title: Mine\nkind: scans\naxis: depth\nsource: /data\n")
    return tmp_path


def test_answers_are_an_input_of_slices_under_the_policy_lesion_alone(config: Path) -> None:
    yaml = config / "benchmarks" / "mine.yaml"
    yaml.write_text(yaml.read_text() + f"answers: {config / 'answers.csv'}\n")
    run = {"benchmarks": ["mine"], "models": ["text"]}
    for policy, files in (("uniform", []), ("content", []), ("three_plane", []), ("lesion", [str(config / "answers.csv")])):
        assert Run.read({**run, "slices": {"policy": policy}}, config).oracle_files("mine") == files


def test_slices_around_the_lesion_need_answers(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine: slices\.policy is lesion, which needs positions from an answers table"):
        Run.read({"benchmarks": ["mine"], "models": ["text"], "slices": {"policy": "lesion"}}, config)
