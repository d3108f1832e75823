"""Slices chosen with knowledge of the answer are marked for people, and never for models."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, slice_row, source
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.sources import read_sources
from neuralmedbench.benchmarks.told_by_arms import add_shown_by_arms
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.files.cases import CASE_COLUMNS, write_case
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_pictures
from neuralmedbench.prompts.parts import picture_label
from neuralmedbench.records.case import Audit, SliceRow, Tile
from neuralmedbench.records.requests import Request
from neuralmedbench.tables.bundle import AskedOf, bundle_cases
from neuralmedbench.tables.first_screen import oracle_benchmarks

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


BESIDE = tuple(
    slice_row("a1", place, name, image_id=f"oracle-{name}-{place}", oracle=True) for name in ("FLAIR", "dwi") for place in (10, 15)
)
OTHERS = ("full", "no_image", "shuffled_image", "image_of_another", "lesion_left_out")
TUMOUR = {"diagnosis": "glioblastoma", "rationale": ()}


def asked(*arms: str, beside: tuple[SliceRow, ...] = (), **answer_of_a1: Any) -> list[Request]:
    """Give the requests of three cases; the first one has slices at its lesion, the others have no known place."""
    sources = [replace(source("a1"), oracle=beside), source("a2"), source("a3")]
    unplaced = {"lesion_position_mm": None, "lesion_size_mm": None}
    answers = {"a1": answer("a1", **answer_of_a1), "a2": answer("a2", **TUMOUR, **unplaced), "a3": answer("a3", **unplaced)}
    variants = load_arms(ROOT / "config", arms, "b")
    made = add_shown_by_arms(build_cases("b", benchmark_config(), sources, answers, VOCABULARY), variants.values(), VOCABULARY)
    assert not any(image.oracle for item in made.items for image in item.images)
    material = CaseMaterial(made.disclosures, arms=variants, oracle=beside)
    return assemble(made.items, material, benchmark_config(arms=arms), Templates(ROOT / "config" / "prompts"))


def test_slices_at_the_lesion_are_shown_by_their_arm_alone_and_change_no_other_request() -> None:
    requests = asked(*OTHERS, "oracle_slices", beside=BESIDE)
    assert [request for request in requests if request.arm != "oracle_slices"] == asked(*OTHERS), "byte for byte"
    oracle = {row.sha256 for row in BESIDE}
    shown = {request.arm for request in requests if any(image.sha256 in oracle for turn in request.turns for image in turn.images)}
    assert shown == {"oracle_slices"}


def test_the_arm_asks_the_items_with_a_known_place_the_same_question_and_says_nothing_of_the_lesion() -> None:
    requests = asked("full", "oracle_slices", beside=BESIDE)
    found = {request.item_id: request for request in requests if request.arm == "oracle_slices"}
    assert {name.split("/")[1] for name in found} == {"a1"}, "a case without a place is left out"
    assert len(found) == 3, "every question about it"
    for request in requests:
        if request.arm == "full" and request.item_id in found:
            (turn,), (oracle,) = request.turns, found[request.item_id].turns
            assert (oracle.text, oracle.after) == (turn.text, turn.after)
            assert [image.label for image in oracle.images] == [
                f"Picture {number}: {name}, axial, z = +{place} mm"
                for number, (name, place) in enumerate(product(("FLAIR", "dwi"), (10, 15)), start=1)
            ]


def test_slices_that_do_not_show_the_lesion_are_no_oracle_and_the_arm_is_refused_if_there_is_no_other() -> None:
    with pytest.raises(ConfigError, match="arm oracle_slices: no item has a lesion of known place that a slice there shows"):
        asked("full", "oracle_slices", beside=BESIDE, lesion_behaviour={"FLAIR": "isointense", "dwi": "isointense"})


def test_oracle_slices_are_refused_without_a_passed_audit_that_covers_their_scan() -> None:
    scan = {row.volume_sha256: "a1" for row in BESIDE}
    passed = Audit(benchmark="b", profile="pseudonymised", kind="patient", state="passed", covered=scan)
    check_pictures([], BESIDE, passed)
    with pytest.raises(DeidentificationError, match="waits for a person"):
        check_pictures([], BESIDE, replace(passed, state="pending"))
    with pytest.raises(DeidentificationError, match="2 scans or pictures are not covered"):
        check_pictures([], BESIDE, replace(passed, covered={"another": "a2"}))


def test_slices_beside_those_of_the_items_are_told_apart_and_under_the_policy_lesion_all_are_those_of_the_items(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    write_case(path, source("a1", notes=(), record="").case)
    templates = Templates(ROOT / "config" / "prompts")
    both = read_sources([path], [*source("a1").images, *BESIDE], templates)[0]
    assert {row.oracle for row in both.images} == {False}
    assert set(both.oracle) == set(BESIDE)
    policy = read_sources([path], BESIDE, templates)[0]
    assert (set(policy.images), policy.oracle) == (set(BESIDE), ())


def test_the_arm_needs_scans_answers_and_another_policy_and_makes_answers_and_masks_inputs(config: Path) -> None:
    yaml, run = config / "benchmarks" / "mine.yaml", {"benchmarks": ["mine"], "models": ["text"]}
    shutil.copytree(ROOT / "config" / "arms", config / "arms")
    yaml.write_text(yaml.read_text() + "arms: [full, oracle_slices]\n")
    with pytest.raises(
        ConfigError, match="mine: the arm oracle_slices needs positions from an answers table, which this benchmark has not"
    ):
        Run.read(run, config)
    (config / "masks").mkdir()
    (config / "masks" / "c1.nii.gz").write_bytes(b"")
    yaml.write_text(f"{yaml.read_text()}answers: {config / 'answers.csv'}\nlesion_masks: {config / 'masks'}\n")
    found = Run.read(run, config)
    assert found.shows_oracle("mine")
    assert found.oracle_files("mine", "c1") == [str(config / "answers.csv"), str(config / "masks" / "c1.nii.gz")]
    assert found.oracle_files("mine", "c2") == [str(config / "answers.csv")]
    with pytest.raises(ConfigError, match=r"mine: slices\.policy is lesion, so the arm oracle_slices would show what `full` shows"):
        Run.read(run | {"slices": {"policy": "lesion"}}, config)
    yaml.write_text(yaml.read_text().partition("lesion_masks")[0].replace("kind: scans", "kind: pictures"))
    with pytest.raises(ConfigError, match="mine: the arm oracle_slices needs slices of scans"):
        Run.read(run, config)


def test_answers_are_an_input_of_slices_under_the_policy_lesion_alone(config: Path) -> None:
    yaml = config / "benchmarks" / "mine.yaml"
    yaml.write_text(yaml.read_text() + f"answers: {config / 'answers.csv'}\n")
    run = {"benchmarks": ["mine"], "models": ["text"]}
    for policy, files in (("uniform", []), ("content", []), ("three_plane", []), ("lesion", [str(config / "answers.csv")])):
        assert Run.read({**run, "slices": {"policy": policy}}, config).oracle_files("mine", "c1") == files


def test_slices_around_the_lesion_need_answers(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine: slices\.policy is lesion, which needs positions from an answers table"):
        Run.read({"benchmarks": ["mine"], "models": ["text"], "slices": {"policy": "lesion"}}, config)
