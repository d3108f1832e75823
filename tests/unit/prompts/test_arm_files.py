"""Arms with a file: what it says is what is shown, names with parameters, altered pictures and the gate before them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT
from fixtures.items import benchmark_config
from fixtures.prompt import TEMPLATES, labels, open_question, picture, question, said
from neuralmedbench.config.arms import ArmVariant, known_arms, load_arms
from neuralmedbench.errors import ConfigError, DataError, DeidentificationError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.plain_pictures import open_picture, write_grey
from neuralmedbench.imaging.alter import alter_pictures
from neuralmedbench.imaging.degradation import DEGRADATIONS
from neuralmedbench.prompts.arms import variant_views
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_altered
from neuralmedbench.records.items import OPTION, Disclosure, Item, Runner, Turn

FAMILY = "{title: T, group: degradation, description: D., pictures: blank, parameters: {operator: [blur, noise], level: [1, 2]}}"


@pytest.fixture
def write_arm(tmp_path):
    """Write a file of an arm in a configuration folder of its own, and return that folder."""

    def write(name: str, text: str) -> Path:
        (tmp_path / "config/arms").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"config/arms/{name}.yaml").write_text(text)
        return tmp_path / "config"

    return write


OTHER = open_question("other", "p9", images=(picture("y1", patient="p9"), picture("y2", patient="p9")))


def shown(item: Item, arm: ArmVariant, altered=(), disclosures=()):
    """Give the request of an item under an arm with a file, beside that of the arm full; None if the arm leaves it out."""
    config = benchmark_config(arms=["full", arm.name])
    material = CaseMaterial(arms={arm.name: arm}, altered=altered, disclosures=disclosures)
    rows = assemble([item, OTHER], material, config, TEMPLATES)
    made = {(row.item_id, row.arm): row for row in rows}
    return made[item.item_id, "full"], made.get((item.item_id, arm.name))


def drawn(folder: Path, item: Item) -> Item:
    """Give an item whose pictures are files with noise."""
    images = []
    for number, image in enumerate(item.images):
        path = folder / f"{item.case_id}-{number}.png"
        write_grey(path, np.random.default_rng(number).integers(1, 256, (8, 9), dtype=np.uint8))
        images.append(replace(image, path=path.as_posix(), sha256=sha256_of(path)))
    return replace(item, images=tuple(images))


def test_every_arm_file_of_the_project_is_valid_and_listed() -> None:
    files = {path.stem for path in (ROOT / "config/arms").glob("*.yaml")}
    assert files
    assert files <= {name.partition("-")[0] for name in known_arms(ROOT / "config")}


def test_a_family_of_arms_is_called_by_its_parameters(write_arm) -> None:
    folder = write_arm("degraded", FAMILY)
    found = load_arms(folder, ["full", "degraded-noise-2", "first_50_percent"], "b")
    assert {name: dict(arm.values) for name, arm in found.items()} == {"degraded-noise-2": {"operator": "noise", "level": "2"}}


@pytest.mark.parametrize(
    ("arm", "said_of_it"),
    [
        ("degraded-noise-3", "expected degraded-<operator>-<level>, found 'degraded-noise-3'; did you mean 'degraded-noise-2'"),
        ("degraded", "expected degraded-<operator>-<level>, found 'degraded'"),
        ("degraded-noise-2-1", "expected degraded-<operator>-<level>"),
        ("degrade-noise-2", "there is no arm 'degrade-noise-2'; did you mean 'degraded-noise-2'"),
        ("../secrets", "there is no arm"),
    ],
)
def test_a_wrong_name_of_an_arm_is_told_with_the_right_form(write_arm, arm, said_of_it) -> None:
    folder = write_arm("degraded", FAMILY)
    with pytest.raises(ConfigError) as refused:
        load_arms(folder, [arm], "mine")
    assert f"mine: arms: {said_of_it}" in str(refused.value)


def test_blank_pictures_have_the_size_of_their_sources_and_the_labels_of_full(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["blank_image"], "b")["blank_image"]
    item = drawn(tmp_path, question())
    altered = alter_pictures([item], [arm], tmp_path / "png")
    full, blank = shown(item, arm, altered)
    assert (said(blank), labels(blank)) == (said(full), labels(full))
    for image in blank.turns[0].images:
        pixels = np.asarray(open_picture(Path(image.path).read_bytes()))
        assert (pixels.shape, pixels.max(), sha256_of(Path(image.path))) == ((8, 9), 0, image.sha256)
        assert "sub-q1" in Path(image.path).parts, "a withdrawal finds the case by its folder"
    assert [image.volume_sha256 for image in blank.turns[0].images] == [image.volume_sha256 for image in full.turns[0].images]


def test_an_arm_changes_nothing_but_what_its_file_names(write_arm) -> None:
    base = "title: T, group: grounding, description: D."
    folder = write_arm("bare", f"{{{base}, pictures: none, text: none}}")
    write_arm("plain", f"{{{base}, labels: number}}")
    arms = load_arms(folder, ["bare", "plain"], "b")
    full, bare = shown(question(), arms["bare"])
    assert labels(bare) == []
    assert "woke with a weak" in said(full)
    assert "woke with a weak" not in said(bare)
    full, plain = shown(question(), arms["plain"])
    assert (labels(full)[0], labels(plain)[0]) == ("Picture 1: FLAIR, axial, z = +12 mm", "Picture 1")
    assert said(plain) == said(full)


def test_an_arm_leaves_out_items_that_it_does_not_change(write_arm) -> None:
    folder = write_arm("bare", "{title: T, group: grounding, description: D., pictures: none}")
    assert shown(open_question(images=()), load_arms(folder, ["bare"], "b")["bare"])[1] is None


def test_altered_pictures_keep_their_turn_of_a_dialogue_and_options_are_never_altered(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["blank_image"], "b")["blank_image"]
    option = replace(picture("a"), role=OPTION, label="cerebral infarction")
    item = drawn(tmp_path, question(images=(picture("z10"), picture("z20"), option)))
    altered = alter_pictures([item], [arm], tmp_path / "png")
    _, blank = shown(item, arm, altered)
    assert [image.sha256 == item.images[2].sha256 for image in blank.turns[0].images] == [False, False, True]
    turns = (Turn(reveal="", question="Q1", image_ids=("z10",)), Turn(reveal="", question="Q2", image_ids=("z20",)))
    dialogue = replace(item, runner=Runner.DIALOGUE, options=(), images=item.images[:2], turns=turns, notes="", record="")
    full, blank = shown(dialogue, arm, altered)
    assert [len(turn.images) for turn in blank.turns] == [len(turn.images) for turn in full.turns] == [1, 1]


def test_a_picture_that_is_not_that_of_the_items_is_not_altered(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["blank_image"], "b")["blank_image"]
    item = drawn(tmp_path, question())
    Path(item.images[0].path).write_bytes(b"another picture")
    with pytest.raises(DataError, match="not the one of the items"):
        alter_pictures([item], [arm], tmp_path / "png")


def test_an_altered_picture_of_unknown_origin_stops_before_any_prompt(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["blank_image"], "b")["blank_image"]
    item = drawn(tmp_path, question())
    altered = alter_pictures([item], [arm], tmp_path / "png")
    check_altered(altered, [item])
    for forged in (
        replace(altered[0], sources=("0" * 64,)),
        replace(altered[0], sources=()),
        replace(altered[0], volume_sha256="another scan"),
        replace(altered[0], sources=(*altered[0].sources, "0" * 64)),
    ):
        with pytest.raises(DeidentificationError, match="was not made from pictures of the items"):
            check_altered([forged], [item])


def test_degraded_pictures_are_named_as_the_operators_and_level_0_is_no_arm() -> None:
    file = load_arms(ROOT / "config", ["degraded-blur-1"], "b")["degraded-blur-1"]
    assert set(file.config.parameters["operator"]) == set(DEGRADATIONS)
    with pytest.raises(ConfigError, match="expected degraded-<operator>-<level>, found 'degraded-ghosting-0'"):
        load_arms(ROOT / "config", ["degraded-ghosting-0"], "b")


def test_a_degraded_arm_needs_its_parameters(write_arm) -> None:
    folder = write_arm("worse", "{title: T, group: degradation, description: D., pictures: degraded, parameters: {level: [1]}}")
    with pytest.raises(ConfigError, match="needs the parameters `operator` and `level`"):
        load_arms(folder, ["worse-1"], "b")


def test_a_degraded_arm_asks_only_items_whose_pictures_can_have_the_artefact(tmp_path) -> None:
    arms = load_arms(ROOT / "config", ["degraded-ghosting-1", "degraded-ghosting-2", "degraded-streaks-1", "degraded-blur-1"], "b")
    mr, ct = picture("z10"), replace(picture("z20"), sequence="CT")
    item = drawn(tmp_path, question(images=(mr, ct)))
    computed = drawn(tmp_path, open_question("c", "p2", images=(ct,)))
    altered = alter_pictures([item, computed], list(arms.values()), tmp_path / "png")
    changed = {name: {(row.case_id, row.sources[0]) for row in altered if row.arm == name} for name in arms}
    both = {(item.case_id, item.images[0].sha256), (item.case_id, item.images[1].sha256), (computed.case_id, computed.images[0].sha256)}
    assert changed["degraded-blur-1"] == both
    assert changed["degraded-ghosting-1"] == changed["degraded-ghosting-2"] == {(item.case_id, item.images[0].sha256)}
    assert changed["degraded-streaks-1"] == both - changed["degraded-ghosting-1"]
    full, ghosts = shown(item, arms["degraded-ghosting-2"], altered)
    assert [image.sha256 for image in ghosts.turns[0].images][1] == full.turns[0].images[1].sha256
    with pytest.raises(ConfigError, match="no item has what it leaves out"):
        shown(computed, arms["degraded-ghosting-2"], altered)
    mild, severe = (next(row for row in altered if row.arm == f"degraded-ghosting-{level}").quality for level in (1, 2))
    assert mild["psnr_db"] > severe["psnr_db"]
    assert all(np.isfinite(list(row.quality.values())).all() for row in altered)
    again = alter_pictures([item, computed], list(arms.values()), tmp_path / "again")
    assert [row.sha256 for row in again] == [row.sha256 for row in altered]


def chosen(arm: str, *names: str, of: str = "b/other", item: str = "b/q1") -> tuple[Disclosure, ...]:
    return (Disclosure(item_id=item, arm=arm, text="", images=names, images_of=of),)


def digests(request) -> list[list[str]]:
    return [[image.sha256 for image in turn.images] for turn in request.turns]


def test_the_pictures_of_another_patient_stand_in_the_place_of_those_of_the_item_and_its_options_stay() -> None:
    arm = load_arms(ROOT / "config", ["image_of_another"], "b")["image_of_another"]
    option = replace(picture("a"), role=OPTION, label="cerebral infarction")
    item = question(images=(picture("z10"), picture("z20"), option))
    full, other = shown(item, arm, disclosures=chosen(arm.name, "y2", "y1"))
    assert digests(other) == [["p9-y2", "p9-y1", "p1-a"]]
    assert said(other) == said(full)
    theirs = chosen(arm.name, "z10", of="b/q1", item="b/other")
    assert shown(item, arm, disclosures=theirs)[1] is None, "no donor, no request"
    with pytest.raises(DataError, match="run build_items again"):
        shown(item, arm, disclosures=chosen(arm.name, "z10"))


def test_pictures_without_the_lesion_keep_their_place_in_a_dialogue() -> None:
    arm = load_arms(ROOT / "config", ["lesion_left_out"], "b")["lesion_left_out"]
    turns = (Turn(reveal="", question="Q1", image_ids=("z10",)), Turn(reveal="", question="Q2", image_ids=("z20",)))
    dialogue = question(runner=Runner.DIALOGUE, options=(), turns=turns, notes="", record="")
    full, rest = shown(dialogue, arm, disclosures=chosen(arm.name, "z20", of="b/q1"))
    assert (digests(full), digests(rest)) == ([["p1-z10"], ["p1-z20"]], [[], ["p1-z20"]])


def test_mirrored_pictures_have_no_labels_and_the_display_convention_is_still_stated(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["mirrored_image"], "b")["mirrored_image"]
    sagittal = replace(picture("x5"), plane="sagittal")
    item = drawn(tmp_path, question(images=(picture("z10"), picture("z20"), sagittal)))
    altered = alter_pictures([item], [arm], tmp_path / "png")
    full, mirrored = shown(item, arm, altered)
    assert labels(mirrored) == ["Picture 1", "Picture 2", "Picture 3"]
    assert mirrored.system == full.system
    assert "the patient's left is on the viewer's right" in mirrored.system
    before, after = (
        [np.asarray(open_picture(Path(image.path).read_bytes())) for image in request.turns[0].images] for request in (full, mirrored)
    )
    assert [np.array_equal(one[:, ::-1], two) for one, two in zip(before, after, strict=True)] == [True, True, False]
    assert np.array_equal(before[2], after[2]), "a sagittal slice of the mirrored patient shows the same"


def test_items_with_a_picture_of_unknown_orientation_are_not_mirrored(tmp_path) -> None:
    arm = load_arms(ROOT / "config", ["mirrored_image"], "b")["mirrored_image"]
    loose = replace(picture("img-1"), position_mm=None)
    mixed = drawn(tmp_path, question(images=(picture("z10"), loose)))
    altered = alter_pictures([mixed], [arm], tmp_path / "png")
    assert [row.sources for row in altered] == [(mixed.images[0].sha256,)]
    both = [*altered, *alter_pictures([drawn(tmp_path, OTHER)], [arm], tmp_path / "png")]
    assert [view.item.item_id for view in variant_views([mixed, drawn(tmp_path, OTHER)], arm, both)] == ["b/other"]
    assert alter_pictures([drawn(tmp_path, question(images=(loose,)))], [arm], tmp_path / "png") == []
    config = benchmark_config(arms=["full", arm.name])
    with pytest.raises(ConfigError, match="the orientation of other pictures is unknown"):
        assemble([mixed], CaseMaterial(arms={arm.name: arm}, altered=altered), config, TEMPLATES)
