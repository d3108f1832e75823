"""Actions of a model that looks at scans: what each shows, what it measures, and why it is not carried out."""

from __future__ import annotations

import re

import pytest

from fixtures.viewing import FLAIR, T1, VIEWER, action, final, show
from neuralmedbench.records.views import SliceView, ViewAction, ViewMistake, ViewStep, read_action, view_steps


def read(answer: str, left: int = 6) -> ViewStep:
    return read_action(VIEWER, answer, left)


def test_an_action_is_read_in_the_forms_that_models_write() -> None:
    expected = SliceView(scan=FLAIR, plane="axial", number=12, window="own")
    for answer in (
        '{"action": "SHOW", "sequence": "FLAIR", "plane": "axial", "slice": 12}',
        'Let me see {the basal ganglia}.\n```json\n{"Action": "show", "sequence": "flair", "plane": "AXIAL", "slice": "12", "zoom": 1.0}\n```',
        '<think>{"action": "ANSWER"} DIFFERENTIAL: 1. x</think>{"action":"SHOW","sequence":"FLAIR","plane":"axial","slice":12,"at":[1,2]}',
        f"{show('FLAIR', 12)} again: {show('FLAIR', 12)}",
    ):
        assert read(answer) == ViewStep(ViewAction.SHOW, (expected,)), answer
    zoomed = read(show("T1w", 3, window="dark", zoom=2, at=[250, 750])).views[0]
    assert (zoomed.scan, zoomed.window, zoomed.zoom, zoomed.at) == (T1, "dark", 2, (250, 750))


def test_two_scans_are_compared_at_one_position() -> None:
    first, second = read(action("COMPARE", sequences=["FLAIR", "T1w"], plane="axial", slice=12, window="bright", zoom=4)).views
    assert (first.number, first.window) == (12, "bright")
    # slice 12 of the FLAIR lies at -40 + 11 * 5 = 15 mm: T1w has -40.5 + 55 = 14.5 and 15.5 mm
    assert second.scan.of_plane("axial").position_mm(second.number) == pytest.approx(15.0, abs=0.5)
    assert (second.window, second.zoom) == ("own", 4), "a window that a scan lacks is its own one"


def test_a_distance_is_worked_out_from_two_points() -> None:
    # 300 and 400 thousandths of 200 mm are 60 and 80 mm: 100 mm; half of it in a picture at zoom 2
    for zoom, mm in ((1, 100.0), (2, 50.0)):
        step = read(action("MEASURE", sequence="FLAIR", plane="axial", slice=9, zoom=zoom, points=[[100, 100], [400, 500]]))
        assert (step.distance_mm, step.views, step.mistake) == (pytest.approx(mm), (), None)


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        ("I would like to see the FLAIR.", ViewMistake.NO_ACTION),
        ('{"action": "SHOW", "sequence": "FLAIR", "plane": "axial", "slice": 12', ViewMistake.NO_ACTION),
        ("{" * 100_000, ViewMistake.NO_ACTION),
        (show("FLAIR", 1) + show("FLAIR", 2), ViewMistake.SEVERAL),
        (action("SCROLL"), ViewMistake.MALFORMED),
        (action("SHOW", sequence="FLAIR", plane="axial"), ViewMistake.MALFORMED),
        (show("FLAIR", 2.5), ViewMistake.MALFORMED),
        (show("FLAIR", True), ViewMistake.MALFORMED),
        (show("FLAIR", 3, zoom=2, at=[500]), ViewMistake.MALFORMED),
        (action("COMPARE", sequences=["FLAIR"], plane="axial", slice=3), ViewMistake.MALFORMED),
        (action("MEASURE", sequence="FLAIR", plane="axial", slice=3, points=[1, 2]), ViewMistake.MALFORMED),
        (show("dwi", 3), ViewMistake.NOT_HELD),
        (action("SHOW", sequence="FLAIR", plane="coronal", slice=3), ViewMistake.NOT_HELD),
        (show("FLAIR", 3, window="bone"), ViewMistake.NOT_HELD),
        (show("FLAIR", 3, zoom=3), ViewMistake.NOT_HELD),
        (show("FLAIR", 0), ViewMistake.OUT_OF_RANGE),
        (show("FLAIR", 21), ViewMistake.OUT_OF_RANGE),
        (show("FLAIR", 3, zoom=2, at=[500, 1001]), ViewMistake.OUT_OF_RANGE),
        (action("MEASURE", sequence="FLAIR", plane="axial", slice=3, points=[[0, 0], [-1, 5]]), ViewMistake.OUT_OF_RANGE),
        (action("COMPARE", sequences=["FLAIR", "T1w"], plane="axial", slice=20), ViewMistake.OUT_OF_RANGE),
    ],
)
def test_what_cannot_be_carried_out_is_said_and_shows_nothing(answer: str, mistake: ViewMistake) -> None:
    step = read(answer)
    assert (step.mistake, step.views, step.cost) == (mistake, (), 1)
    assert step.reason


def test_a_reason_repeats_no_word_of_the_model() -> None:
    assert "ignore" not in read(show("ignore all of this", 3)).reason


def test_the_budget_ends_every_conversation() -> None:
    compare = action("COMPARE", sequences=["FLAIR", "T1w"], plane="axial", slice=12)
    steps = view_steps(VIEWER, ["no action", show("FLAIR", 1), compare, show("FLAIR", 2), compare, show("FLAIR", 3)])
    assert [step.cost for step in steps] == [1, 1, 2, 1, 1]
    assert steps[-1].mistake is ViewMistake.NO_VIEWS, "one view is left, and two are asked for"
    assert len(view_steps(VIEWER, [show("FLAIR", 1)] * 9, most_pictures=2)) == 2


def test_the_final_answer_ends_it_too_with_or_without_its_action() -> None:
    for answer in (final("stroke"), "DIFFERENTIAL:\n1. stroke", f"{show('FLAIR', 2)}\n{final('stroke')}"):
        assert read(answer).action is ViewAction.ANSWER
        assert len(view_steps(VIEWER, [show("FLAIR", 1), answer, show("FLAIR", 2)])) == 1
    assert read(show("FLAIR", 2) + "\nDIFFERENTIAL:\n1. stroke").action is ViewAction.SHOW, "so far; the action goes on"


def test_a_label_says_what_is_shown_and_paths_differ_with_it() -> None:
    one = read(show("FLAIR", 12)).views[0]
    other = read(show("FLAIR", 12, window="bright", zoom=2, at=[250, 500])).views[0]
    assert one.label == "FLAIR, axial, slice 12 of 20, z = +15 mm"
    assert other.label == "FLAIR, axial, slice 12 of 20, z = +15 mm, bright window, zoom 2 at [250, 500]"
    assert one.path.startswith("data/views/b/sub-c1/")
    assert one.path != other.path


def test_a_point_is_in_the_picture_or_beside_it() -> None:
    assert read(show("FLAIR", 12)).views[0].shows((90.0, -99.0, 0.0))
    assert not read(show("FLAIR", 12)).views[0].shows((101.0, 0.0, 0.0))
    zoomed = read(show("FLAIR", 12, zoom=2, at=[250, 500])).views[0]  # x from -100 to 0, y from -50 to 50
    assert [zoomed.shows((x, y, 0.0)) for x, y in ((-50, 0), (-99, 49), (1, 0), (-50, 51))] == [True, True, False, False]


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1" + "0" * 5000, "1e400"])
@pytest.mark.parametrize(
    "action",
    [
        '{"action": "SHOW", "sequence": "FLAIR", "plane": "axial", "slice": N}',
        '{"action": "SHOW", "sequence": "FLAIR", "plane": "axial", "slice": 10, "zoom": N}',
        '{"action": "SHOW", "sequence": "FLAIR", "plane": "axial", "slice": 10, "zoom": 2, "at": [N, 10]}',
        '{"action": "MEASURE", "points": [[N, 1], [2, 3]]}',
    ],
)
def test_a_number_of_hundreds_of_digits_is_a_mistake_of_the_model_and_ends_no_run(action: str, number: str) -> None:
    assert read(re.sub(r"\bN\b", number, action)).mistake is not None
