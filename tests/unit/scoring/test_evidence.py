"""Where an answer says it sees the lesion: read in the usual shapes, never guessed, and compared with the reference."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY
from fixtures.places import BEHAVIOURS, POSITIONS, SHRINKS, SIDE_PX, answers_of, cases, row, tile, truth_of, with_places
from fixtures.scoring import answered, checklist
from neuralmedbench.benchmarks.shown_lesions import picture_lesions
from neuralmedbench.config.layouts import load_layout
from neuralmedbench.imaging.alter import compose
from neuralmedbench.records.coordinates import Convention
from neuralmedbench.records.items import Arm, Item, Lesion
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score, StatedPlace
from neuralmedbench.scoring.evidence import KINDS, Pictures
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.places import read_numbers, read_place
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses

BUILT = cases(4)
ITEM = BUILT.items[0]
GOLD = {one.item_id: one for one in BUILT.gold}
LESIONS = {(one.case_id, one.image_id): one for one in BUILT.lesions}
TRUTH = truth_of(ITEM, GOLD[ITEM.item_id], LESIONS)
IMAGES = ITEM.images


def scored(text: str, item: Item = ITEM, unit: Convention = Convention.THOUSANDTHS, **changes: object) -> Score:
    """Score an answer as the stage does, with the deterministic grader."""
    response = answered(text, item, **changes)
    items, gold = {item.item_id: item}, {item.item_id: GOLD[ITEM.item_id]}
    gold = {item.item_id: replace(GOLD[ITEM.item_id], item_id=item.item_id)}
    grades = grade_with_rubric([response], items, gold, VOCABULARY, grader="rubric")
    (row,) = score_responses([response], items, gold, [grades], vocabulary=VOCABULARY, pictures=Pictures(LESIONS, KINDS, unit, SHRINKS))
    return row


def told(**changes: str) -> str:
    return with_places(TRUTH | changes)


def test_the_form_with_picture_and_box_is_read_strictly_and_whole() -> None:
    read = parse_answer(told(), ITEM)
    assert read.parse_status is ParseStatus.STRICT
    assert read.fields == {"location": "insula", "side": "left"}
    assert read.place == StatedPlace(3, None, (570.0, 461.0, 664.0, 578.0))
    assert parse_answer(checklist("glioblastoma"), ITEM).place is None, "a checklist without these sections says nothing about them"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[120, 200, 180, 260]", (120, 200, 180, 260)),
        ("120, 200, 180, 260", (120, 200, 180, 260)),
        ("(120, 200), (180, 260)", (120, 200, 180, 260)),
        ("[[120, 200], [180, 260]]", (120, 200, 180, 260)),
        ("<box>(120,200),(180,260)</box>", (120, 200, 180, 260)),
        ("<|box_start|>(120,200),(180,260)<|box_end|>", (120, 200, 180, 260)),
        ("<box>[[120, 200, 180, 260]]</box>", (120, 200, 180, 260)),
        ('{"bbox_2d": [120, 200, 180, 260], "label": "lesion"}', (120, 200, 180, 260)),
        ("bbox_2d=[120, 200, 180, 260]", (120, 200, 180, 260)),
        ("x1: 120, y1: 200, x2: 180, y2: 260", (120, 200, 180, 260)),
        ('{"xmin": 120, "ymin": 200, "xmax": 180, "ymax": 260}', (120, 200, 180, 260)),
        ("{'left': 120, 'top': 200, 'right': 180, 'bottom': 260}", (120, 200, 180, 260)),
        ("x=120, y=200, width=60, height=60", (120, 200, 180, 260)),
        ("(x1, y1, x2, y2) = (120, 200, 180, 260)", (120, 200, 180, 260)),
        ("[120, 200, 180, 260], its middle is (150, 230)", (120, 200, 180, 260)),
        ("[120, 200, 180, 260] around the bright area of picture 3", (120, 200, 180, 260)),
        ("[120px, 200px, 180px, 260px]", (120, 200, 180, 260)),
        ("[0.12, .2, 0.18, 0.26]", (0.12, 0.2, 0.18, 0.26)),
        ("[150, 230]", (150, 230)),
        ("<point>150 230</point>", (150, 230)),
        ("x=150, y=230", (150, 230)),
        ("none", ()),
        ("N/A", ()),
        ("null", ()),
        ("", ()),
    ],
)
def test_boxes_and_points_are_read_in_the_usual_shapes(text: str, expected: tuple[float, ...]) -> None:
    assert read_numbers(text) == (tuple(map(float, expected)), "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[120, 200, 180, 260], [20, 30, 40, 50]]", "names more than one box"),
        ("[120, 200, 180, 260] or [20, 30, 40, 50]", "names more than one box"),
        ("x1: 120, y1: 200, x2: 180, y2: 260, x1: 130", "names more than one box"),
        ("[120, 200, 180]", "its coordinates are neither those of a box nor of a point"),
        ("x1: 120, y1: 200", "its coordinates are neither those of a box nor of a point"),
        ("[120, 200, 180, 260, 7]", "names more than one box"),
        ("the upper left quarter", "has no coordinates"),
        ("[12%, 20%, 18%, 26%]", "its coordinates are in per cent, which was not asked for"),
        ('{"box_2d": [200, 120, 260, 180]}', "its box has y before x"),
        ("[ymin, xmin, ymax, xmax] = [200, 120, 260, 180]", "its box has y before x"),
    ],
)
def test_a_box_that_is_incomplete_doubled_or_in_another_order_is_not_read_and_says_why(text: str, reason: str) -> None:
    assert read_numbers(text) == ((), reason)


@pytest.mark.parametrize(
    ("text", "number", "position"),
    [
        ("3", 3, None),
        ("Picture 3", 3, None),
        ("picture 3 of 4", 3, None),
        ("3/4", 3, None),
        ("#3.", 3, None),
        ("Picture 3: FLAIR, axial, z = +10 mm", 3, 10.0),
        ("3 (T2w and FLAIR)", 3, None),
        ("picture 3, a lesion of 12 mm", 3, None),
        ("z = +10 mm", 3, 10.0),
        ("the slice at 10 mm", 3, 10.0),
        ("z = −10 mm", 1, -10.0),
        ("none", None, None),
        ("not visible", None, None),
    ],
)
def test_a_picture_is_read_by_its_number_or_its_position(text: str, number: int | None, position: float | None) -> None:
    assert read_place(text, "none", IMAGES) == StatedPlace(number, position)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3 and 4", "names more than one picture"),
        ("pictures 2, 3", "names more than one picture"),
        ("5", "there is no picture of that number"),
        ("0", "there is no picture of that number"),
        ("the FLAIR", "names no picture by its number"),
        ("z = +15 mm", "no such picture is at that position"),
        ("picture 3, z = +20 mm", "no such picture is at that position"),
        ("x = +10 mm", "no such picture is at that position"),
    ],
)
def test_a_picture_that_is_not_there_doubled_or_contradicted_is_not_read_and_says_why(text: str, reason: str) -> None:
    assert read_place(text, "none", IMAGES) == StatedPlace(unread=reason)


def test_a_name_that_the_question_uses_replaces_the_number() -> None:
    named = [replace(image, label=f"Figure {letter}") for letter, image in zip("ABCD", IMAGES, strict=True)]
    assert read_place("figure c", "none", named).picture == read_place("C", "none", named).picture == 3
    assert read_place("3", "none", named) == StatedPlace(unread="names no picture by its number")
    mixed = [IMAGES[0], replace(IMAGES[1], label="Figure B"), replace(IMAGES[2], label="Figure 7"), IMAGES[3]]
    assert [read_place(text, "none", mixed).picture for text in ("1", "B", "7", "4", "2", "Figure 3")] == [1, 2, 3, 4, None, None]
    either = [IMAGES[0], IMAGES[1], replace(IMAGES[2], label="Figure 2")]
    assert read_place("2", "none", either) == StatedPlace(unread="names more than one picture"), "Picture 2 or Figure 2"


def test_an_object_with_the_keys_of_the_schema_is_read_like_the_written_form() -> None:
    value = {
        "seen": "MRI; FLAIR; axial",
        "location": "insula",
        "side": "left",
        "picture": 3,
        "box": [570, 461, 664, 578],
        "findings": "A bright area.",
        "differential": [{"name": "brain infarction", "for": "sudden", "against": "nothing"}],
        "confidence": 0.7,
        "missing": "nothing",
        "rationale": "It fits.",
    }
    assert parse_answer(json.dumps(value), ITEM).place == StatedPlace(3, None, (570.0, 461.0, 664.0, 578.0))
    assert parse_answer(json.dumps(value | {"picture": None, "box": None}), ITEM).place == StatedPlace()
    assert scored(json.dumps(value)).evidence == dict.fromkeys(KINDS, True)


@pytest.mark.parametrize("decorate", [lambda name: f"**{name}:**", lambda name: f"### {name.title()}:", lambda name: f"- {name}:"])
def test_decorated_sections_are_read_and_stay_out_of_the_side(decorate) -> None:  # type: ignore[no-untyped-def]
    text = told()
    for name in ("SIDE", "PICTURE", "BOX"):
        text = text.replace(f"\n{name}:", f"\n{decorate(name)}")
    read = parse_answer(text, ITEM)
    assert read.place == StatedPlace(3, None, (570.0, 461.0, 664.0, 578.0))
    assert (read.fields or {})["side"] == "left"


def test_a_copied_form_states_nothing() -> None:
    text = told(PICTURE='<number of the picture that shows it best, or "none">', BOX="<[x1, y1, x2, y2] around it>")
    assert parse_answer(text, ITEM).place == StatedPlace()


@pytest.mark.parametrize("unit", list(Convention))
def test_a_right_answer_has_all_its_evidence_right_in_every_unit(unit: Convention) -> None:
    for response in answers_of("right in all", BUILT, unit):
        item = next(one for one in BUILT.items if one.item_id == response.item_id)
        text = response.text
        gold = {item.item_id: GOLD[item.item_id]}
        (found,) = score_responses(
            [response], {item.item_id: item}, gold, [], vocabulary=VOCABULARY, pictures=Pictures(LESIONS, KINDS, unit, SHRINKS)
        )
        assert found.evidence == dict.fromkeys(KINDS, True), text
        assert found.box_overlap is not None
        assert found.box_overlap > (0.85 if unit is Convention.SHRUNK_PIXELS else 0.95), "rounded to a whole shrunk pixel of 2.56"


@pytest.mark.parametrize(
    ("behaviour", "wrong"),
    [
        ("wrong side", {"side"}),
        ("wrong region", {"region"}),
        ("another picture", {"slice", "point", "box_0.3", "box_0.5"}),
        ("loose box", {"box_0.5"}),
        ("points", {"box_0.3", "box_0.5"}),
        ("names no place", {"slice", "point", "box_0.3", "box_0.5"}),
        ("wrong diagnosis", set()),
    ],
)
def test_each_written_behaviour_is_wrong_in_what_it_gets_wrong_and_in_nothing_else(behaviour: str, wrong: set[str]) -> None:
    text = with_places(BEHAVIOURS[behaviour](TRUTH))
    assert {name for name, right in (scored(text).evidence or {}).items() if not right} == wrong


@pytest.mark.parametrize(
    ("box", "unit", "reason"),
    [
        ("[570, 461, 1200, 578]", Convention.THOUSANDTHS, "its coordinates are beyond the picture in the unit that was asked for"),
        ("[-5, 461, 664, 578]", Convention.THOUSANDTHS, "its coordinates are beyond the picture in the unit that was asked for"),
        ("[146, 118, 170, 300]", Convention.PIXELS, "its coordinates are beyond the picture in the unit that was asked for"),
        ("[146, 118, 170, 148]", Convention.SHRUNK_PIXELS, "its coordinates are beyond the picture in the unit that was asked for"),
        ("[570, 461, 664, 578]", Convention.FRACTION, "its coordinates are beyond the picture in the unit that was asked for"),
        ("[0.57, 0.46, 0.66, 0.58]", Convention.THOUSANDTHS, "its coordinates are fractions, which were not asked for"),
        ("[0.57, 0.46, 0.66, 0.58]", Convention.PIXELS, "its coordinates are fractions, which were not asked for"),
        ("[664, 461, 570, 578]", Convention.THOUSANDTHS, "its box has no area, or its corners are exchanged"),
        ("[570, 461, 570, 578]", Convention.THOUSANDTHS, "its box has no area, or its corners are exchanged"),
    ],
)
def test_a_box_that_cannot_be_one_of_the_unit_asked_for_is_unread_and_the_picture_still_counts(
    box: str, unit: Convention, reason: str
) -> None:
    found = scored(told(BOX=box), unit=unit)
    assert found.evidence_unread == reason
    assert found.evidence is not None
    assert (found.evidence["slice"], found.evidence["box_0.3"], found.box_overlap) == (True, False, 0.0)


def test_a_place_on_the_other_side_contradicts_the_side() -> None:
    assert scored(told(LOCATION="right insula")).evidence == dict.fromkeys(KINDS, True) | {"side": False}
    assert scored(told(LOCATION="left insula")).evidence == dict.fromkeys(KINDS, True)
    assert (scored(told(SIDE="left and right")).evidence or {})["side"] is False


def test_what_the_reference_does_not_know_is_absent_and_never_guessed() -> None:
    def known(**changes: object) -> set[str]:
        built = cases(1, **changes)
        (item, *_), gold = built.items, {one.item_id: one for one in built.gold}
        shown = {(one.case_id, one.image_id): one for one in built.lesions}
        rows = score_responses([answered(told(), item)], {item.item_id: item}, gold, [], vocabulary=VOCABULARY, pictures=Pictures(shown))
        return set(rows[0].evidence or {})

    assert known() == set(KINDS)
    assert known(lesion_side="") == set(KINDS) - {"side"}
    assert known(lesion_location="somewhere near the insula") == set(KINDS) - {"region"}
    assert known(lesion_extent_mm=None) == {"side", "region", "slice"}, "a diameter alone is no box"
    assert known(lesion_position_mm=None) == {"side", "region"}
    assert known(lesion_position_mm=(30.0, 5.0, 90.0)) == {"side", "region"}, "no picture shows it"
    assert known(lesion_location="") == set()


def test_refused_and_truncated_answers_have_no_right_evidence_and_other_arms_have_none() -> None:
    for state in (ResponseState.REFUSED, ResponseState.TRUNCATED):
        assert scored(told(), state=state).evidence == dict.fromkeys(KINDS, False)
    assert scored("I am sorry, I cannot help with that.").evidence == dict.fromkeys(KINDS, False)
    assert scored(told(), state=ResponseState.SKIPPED).evidence is None
    assert scored(told(), arm=Arm.SHUFFLED_IMAGE).evidence is None


def test_the_only_picture_need_not_be_named_and_one_of_several_must_be() -> None:
    number = int(TRUTH["PICTURE"]) - 1
    one = replace(ITEM, images=(IMAGES[number],))
    assert scored(told(PICTURE="none"), one).evidence == dict.fromkeys(KINDS, True)
    unnamed = scored(told(PICTURE="none"))
    assert unnamed.evidence_unread == "names no picture for its box"
    assert (unnamed.evidence or {})["slice"] is False


def in_layout(family: str, text: str, item: Item = ITEM, pictures: Pictures | None = None) -> Score:
    """Score an answer to an item that was asked in the layout of a family."""
    name = f"layout-{family}"
    layouts = {name: load_layout(ROOT / "config", family, "test")}
    gold = {ITEM.item_id: GOLD[ITEM.item_id]}
    shown = replace(pictures or Pictures(LESIONS, KINDS), layouts=layouts)
    response = answered(text, item, arm=name)
    (found,) = score_responses([response], {item.item_id: item}, gold, [], vocabulary=VOCABULARY, pictures=shown)
    return found


@pytest.mark.parametrize("size", [(320, 256), (256, 320), (256, 256)])
def test_a_box_on_a_picture_that_a_layout_pads_and_scales_is_that_of_the_lesion(size: tuple[int, int]) -> None:
    """The box is read from the pixels that the layout makes."""
    width, height = size
    left, top = (width - SIDE_PX) // 2, (height - SIDE_PX) // 2
    wide = replace(row(ITEM.case_id, 10), image_id="wide", tiles=(tile(10, left, top),), size_px=size)
    (lesion,) = picture_lesions(GOLD[ITEM.item_id].lesion, [wide])
    (drawn,) = lesion.slices
    assert drawn.box is not None
    pixels = np.zeros((height, width), dtype=np.uint8)
    x1, y1, x2, y2 = (round(value * side) for value, side in zip(drawn.box, size * 2, strict=True))
    pixels[y1:y2, x1:x2] = 200
    sent = compose([pixels], load_layout(ROOT / "config", "medgemma", "test"))
    rows, columns = np.nonzero(sent > 100)
    ends = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    box = "[{}]".format(", ".join(f"{1000 * end / 896:.0f}" for end in ends))
    item, pictures = replace(ITEM, images=(replace(IMAGES[0], image_id="wide"),)), Pictures({(ITEM.case_id, "wide"): lesion})
    found = in_layout("medgemma", told(PICTURE="1", BOX=box), item, pictures)
    assert found.evidence == dict.fromkeys(KINDS, True)
    assert (found.box_overlap or 0) > 0.9
    # the picture as it was cut has the box elsewhere
    assert (score_responses([answered(told(PICTURE="1", BOX=box), item)], {item.item_id: item}, GOLD, [], vocabulary=VOCABULARY,
                            pictures=pictures)[0].box_overlap > 0.9) is (width == height)  # fmt: skip


def test_a_box_is_read_in_the_unit_and_order_that_a_layout_asks_for() -> None:
    x1, y1, x2, y2 = (float(value) for value in TRUTH["BOX"].strip("[]").split(","))
    swapped = f"[{y1:g}, {x1:g}, {y2:g}, {x2:g}]"
    for box in (swapped, '{"box_2d": ' + swapped + "}", f"ymin = {y1:g}, xmin = {x1:g}, ymax = {y2:g}, xmax = {x2:g}"):
        assert in_layout("gemini", told(BOX=box)).evidence == dict.fromkeys(KINDS, True), box
    assert (in_layout("gemini", told()).evidence or {})["point"] is False
    assert scored(told(BOX='{"box_2d": ' + swapped + "}")).evidence_unread == "its box has y before x"
    # Qwen2.5-VL is asked for pixels as its own processing scales them
    pixels = "[{}]".format(", ".join(f"{value * SIDE_PX / 1000:.0f}" for value in (x1, y1, x2, y2)))
    assert in_layout("qwen2.5vl", told(BOX=pixels)).evidence == dict.fromkeys(KINDS, True)


def test_pictures_are_counted_as_a_layout_shows_them() -> None:
    # a single picture is the middle one: the third
    assert in_layout("llama3.2", told(PICTURE="1")).evidence == dict.fromkeys(KINDS, True)
    assert in_layout("llama3.2", told(PICTURE="3")).evidence_unread == "there is no picture of that number"
    # of a CT slice on colours the picture for red stands for three
    windows = ("", "soft-tissue", "wide")
    images = tuple(replace(one, sequence="CT", window=name, image_id=f"{one.image_id}-{name}") for one in IMAGES for name in windows)
    lesions = {(one.case_id, f"{one.image_id}-{name}"): one for one in BUILT.lesions for name in windows}
    item = replace(ITEM, images=images)
    assert in_layout("medgemma", told(), item, Pictures(lesions)).evidence == dict.fromkeys(KINDS, True)
    assert (in_layout("medgemma", told(PICTURE="9"), item, Pictures(lesions)).evidence or {})["slice"] is False


def montage_of(positions: tuple[int, ...]) -> tuple[Item, Pictures]:
    """Put slices of 124 pixels into one picture of 256, with the gaps and the frame of the stage."""
    corners = [(0, 0), (128, 0), (0, 128), (128, 128)]
    tiles = tuple(tile(z, left + 2, top + 2, 124) for z, (left, top) in zip(positions, corners, strict=False))
    picture = replace(row(ITEM.case_id, 10), image_id="montage", tiles=tiles)
    lesion = GOLD[ITEM.item_id].lesion
    (shown,) = picture_lesions(lesion, [picture])
    item = replace(ITEM, images=(replace(IMAGES[0], image_id="montage", tiles_mm=tuple(float(z) for z in positions)),))
    return item, Pictures({(ITEM.case_id, "montage"): shown})


def test_in_a_montage_the_slice_is_the_one_of_the_position_or_under_the_box() -> None:
    item, pictures = montage_of(POSITIONS)
    (shown,) = pictures.lesions.values()
    third = shown.slices[2]
    assert third.box is not None
    box = "[{}]".format(", ".join(f"{value * 1000:.0f}" for value in third.box))

    def verdict(**changes: str) -> tuple[dict[str, bool], str]:
        response = answered(told(**{"PICTURE": "1", "BOX": box, **changes}), item)
        (found,) = score_responses(
            [response], {item.item_id: item}, {item.item_id: GOLD[ITEM.item_id]}, [], vocabulary=VOCABULARY, pictures=pictures
        )
        return found.evidence or {}, found.evidence_unread

    assert verdict()[0] == dict.fromkeys(KINDS, True)
    assert verdict(PICTURE="1, z = +10 mm", BOX="none")[0]["slice"] is True
    assert verdict(PICTURE="1, z = -10 mm", BOX="none")[0]["slice"] is False
    assert verdict(PICTURE="1", BOX="none") == (
        dict.fromkeys(KINDS, False) | {"side": True, "region": True},
        "does not say which slice of the picture",
    )
    first = "[{}]".format(", ".join(f"{value * 1000:.0f}" for value in shown.slices[0].frame))
    assert verdict(BOX=first)[0]["slice"] is False, "its middle lies on a slice without the lesion"


def test_the_box_of_the_lesion_is_that_of_its_extent_where_the_slice_cuts_it() -> None:
    lesion = Lesion(location="insula", side="left", behaviour={}, size_mm=30.0, position_mm=(30.0, 5.0, 10.0), extent_mm=(24.0, 30.0, 20.0))
    rows = {one.image_id: one for one in picture_lesions(lesion, [row("c00", z) for z in (0, 5, 10, 30)])}
    (middle,), (off,), (far,) = (rows[f"flair-z{z:+04d}"].slices for z in (10, 5, 30))
    assert middle.box == pytest.approx([value / SIDE_PX for value in (158 - 12, 133 - 15, 158 + 12, 133 + 15)], abs=1e-6)
    # a slice of 5 mm reaches within 2.5 mm of the centre, a quarter of the half width of 10
    part = (1 - 0.25**2) ** 0.5
    cut = (158 - 12 * part, 133 - 15 * part, 158 + 12 * part, 133 + 15 * part)
    assert off.box == pytest.approx([value / SIDE_PX for value in cut], abs=1e-6)
    assert (far.shown, far.box) == (False, None)
    assert rows["flair-z+000"].shown, "at the edge of its width along z"


def test_a_number_of_thousands_of_digits_is_no_picture() -> None:
    """A model that repeats a digit up to its limit must not end the scoring of all others."""
    assert read_place("9" * 5000, "", ()) == StatedPlace(unread="there is no picture of that number")
