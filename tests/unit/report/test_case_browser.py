"""Data of the case browser: every strategy, both sides of dialogues, and compression."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fixtures.models import request
from fixtures.report import unpacked
from fixtures.scoring import GOLD, ITEM, LESION_GOLD, LESION_ITEM, answered, differential, vocabulary
from fixtures.viewing import VIEWER, show
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.bundle import BundleGrade, BundleImage, BundleTurn
from neuralmedbench.records.requests import Fact, Inquiry, RequestImage, RequestTurn
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import Grade, GradeState
from neuralmedbench.report import cases
from neuralmedbench.report.cases import CaseBlock, case_blocks, case_index, leave_out_cases, preview, previews
from neuralmedbench.report.page import write_report
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.bundle import AskedOf, bundle_cases, turns_of

ROUNDS = request("i", RequestTurn(text="First."), RequestTurn(text="Second."), RequestTurn(text="Third."))
FACTS = (Fact(text="A headache for three weeks."), Fact(text="No fever."))
ASKED = replace(
    request("i", RequestTurn(text="Ask.")),
    strategy="ask",
    inquiry=Inquiry(facts=FACTS, max_questions=2, unknown="The case does not say.", left="{left} left.", closing="Answer."),
)


RESULTS = {"a": {"alpha": [1, 5]}, "b": {"beta": [0, 5]}}


def rows(block: CaseBlock) -> list[dict[str, Any]]:
    """Return the responses of the first item as the page reads them."""
    return list(unpacked(block.packed)[0]["responses"])


def test_a_dialogue_of_rounds_holds_each_answer_with_the_round_that_followed_it() -> None:
    said = answered("c", turns=("a", "b", "c"))
    assert turns_of(said, ROUNDS) == (BundleTurn(answer="a", told="Second."), BundleTurn(answer="b", told="Third."))
    broken = replace(said, state=ResponseState.FAILED, text="", turns=("a",))
    assert turns_of(broken, ROUNDS) == (BundleTurn(answer="a", told="Second."),)
    assert turns_of(said, None) == (BundleTurn(answer="a", told=""), BundleTurn(answer="b", told=""))
    assert turns_of(answered("c", turns=("c",)), ROUNDS) == ()
    assert turns_of(replace(broken, turns=()), ROUNDS) == ()


def test_a_dialogue_in_which_the_model_asks_holds_what_the_case_told_it() -> None:
    questions = ("QUESTION: Is there a headache?", "QUESTION: Which blood group?")
    said = answered("DIFFERENTIAL:\n1. glioma", turns=(*questions, "DIFFERENTIAL:\n1. glioma"))
    assert turns_of(said, ASKED) == (
        BundleTurn(answer=questions[0], told="A headache for three weeks.\n\n1 left."),
        BundleTurn(answer=questions[1], told="The case does not say.\n\nAnswer."),
    )


def test_a_turn_of_a_viewer_names_the_slice_that_was_shown_whether_or_not_its_picture_is_there() -> None:
    looking = replace(ROUNDS, turns=ROUNDS.turns[:1], viewer=VIEWER, strategy="viewer")
    said = answered("DIFFERENTIAL:\n1. glioma", turns=(show("FLAIR", 12), show("FLAIR", 99), "DIFFERENTIAL:\n1. glioma"))
    first, second = turns_of(said, looking)
    assert (first.told, first.images) == ("View 1: FLAIR, axial, slice 12 of 20, z = +15 mm\nViews left: 5.", ())
    assert second.told == "Not shown: FLAIR, axial, has slices 1 to 20.\n\nViews left: 4."


def test_a_turn_of_a_work_up_holds_what_was_asked_for_what_came_and_which_candidate_is_the_reference() -> None:
    image = RequestImage(path="a.png", sha256="a" * 64, label="Picture 1: FLAIR, axial")
    facts = (Fact(text="FLAIR, axial:", name="FLAIR, axial", kind="pictures", sequence="FLAIR", plane="axial", images=(image,)),)
    inquiry = replace(ASKED.inquiry, facts=facts, unclear="Name one.", again="Given already.")
    work_up = replace(ASKED, item_id=ITEM.item_id, strategy="workup", inquiry=inquiry)
    stated = "CANDIDATES:\n1. migraine | 0.5\n2. glioblastoma | 0.3\n"
    answers = (f"{stated}REQUEST: the FLAIR", f"{stated}REQUEST: PET", f"{stated}DIFFERENTIAL:\n1. migraine")
    said = answered(answers[-1], turns=answers, strategy="workup")
    known = AskedOf(requests=[work_up], vocabulary=vocabulary())
    (bundle,) = bundle_cases([ITEM], [GOLD], [said], [], [], known=known)
    (shown,) = bundle.responses
    first, second = shown.turns
    assert (first.request, first.outcome, first.given, first.images) == ("the FLAIR", "given", "FLAIR, axial", ("a" * 64,))
    assert (second.request, second.outcome, second.given, second.images) == ("PET", "absent", "", ())
    assert first.candidates == second.candidates == shown.candidates
    assert [(one.name, one.probability, one.right) for one in shown.candidates] == [("migraine", 0.5, False), ("glioblastoma", 0.3, True)]
    (row,) = rows(case_blocks([bundle])[0])
    assert row["turns"][0][2]["candidates"] == row["candidates"] == [["migraine", 0.5, False], ["glioblastoma", 0.3, True]]
    broken = replace(said, state=ResponseState.FAILED, text="", turns=answers[:1])
    (lost,) = bundle_cases([ITEM], [GOLD], [broken], [], [], known=known)[0].responses
    assert (lost.turns, lost.candidates) == ((first,), ())
    (unread,) = bundle_cases([ITEM], [GOLD], [said], [], [], known=replace(known, vocabulary=None))[0].responses
    assert (unread.turns[0].outcome, unread.candidates) == ("", ()), "without a vocabulary it is a dialogue like others"


def test_answers_of_every_strategy_are_shown_and_direct_ones_alone_are_counted_in_the_summary() -> None:
    direct, thought = (answered(differential(name), strategy=how) for name, how in (("glioblastoma", "direct"), ("migraine", "cot")))
    scored = score_responses([direct, thought], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary())
    scores = [replace(row, passed=row.strategy == "direct") for row in sorted(scored, key=lambda row: row.strategy, reverse=True)]
    grade = Grade(
        **{name: getattr(scores[1], name) for name in ("item_id", "benchmark", "arm", "strategy", "model", "revision", "repeat")},
        text_sha256=scores[1].text_sha256, grader="g", criterion="core_diagnosis", value=0.0, weight=1.0, explanation="no", state=GradeState.OK,
    )  # fmt: skip
    (block,) = case_blocks(bundle_cases([ITEM], [GOLD], [direct, thought], scores, [grade]))
    found = {row["strategy"]: row for row in rows(block)}
    assert block.index[0]["strategies"] == ["direct", "cot"]
    assert block.index[0]["results"] == {"fusion": [1, 1]}
    assert (found["cot"]["differential"][0], found["cot"]["grades"]) == ("migraine", [["g", "core_diagnosis", 0.0, "no"]])
    assert found["direct"]["grades"] == []


def test_a_sample_that_only_voted_is_read_and_has_no_score() -> None:
    samples = [answered(differential(name), strategy="self_consistency", repeat=place) for place, name in enumerate(["glioblastoma"] * 2)]
    scores = score_responses(samples, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary())[:1]
    first, second = rows(case_blocks(bundle_cases([ITEM], [GOLD], samples, scores, []))[0])
    assert (first["counted"], second["counted"], second["passed"]) == (True, False, None)
    assert second["differential"][0] == "glioblastoma"


def test_an_answer_to_a_lesion_question_shows_the_place_that_decides_and_other_answers_do_not() -> None:
    text = "LESION: stroke\nLOCATION: frontal lobe\nSIDE: right\nFINDINGS: bright on FLAIR\nCONFIDENCE: 0.5"
    (asked,), (other,) = (
        bundle_cases([item], [gold], [replace(answered(text), item_id=item.item_id)], [], [])
        for item, gold in ((LESION_ITEM, LESION_GOLD), (ITEM, GOLD))
    )
    assert (asked.place, rows(case_blocks([asked])[0])[0]["place"]) == ("frontal lobe, left", "frontal lobe, right")
    assert (other.place, other.responses[0].place) == ("", "")


def test_a_packed_case_holds_what_was_put_in_and_a_number_is_no_truth_value() -> None:
    samples = [answered(differential("glioblastoma"), repeat=repeat) for repeat in range(20)]
    (bundle,) = bundle_cases([ITEM], [GOLD], samples, [], [])
    (block,) = case_blocks([bundle])
    (item,) = unpacked(block.packed)
    assert {name: item[name] for name in ("item_id", "question", "answer")} == {
        "item_id": ITEM.item_id,
        "question": bundle.question,
        "answer": GOLD.answer,
    }
    names = ("model", "arm", "strategy", "repeat", "state", "text", "passed", "counted", "relation", "seen", "missing")
    assert [[row[name] for name in names] for row in rows(block)] == [[getattr(row, name) for name in names] for row in bundle.responses]
    assert {type(row["counted"]) for row in rows(block)} == {bool}
    assert {type(row["repeat"]) for row in rows(block)} == {int}


@pytest.mark.parametrize(
    "text", ["</script><script>1</script>", "<!--<script>", "\u202e\u0007 ]]> &amp; \"'\u2028\U0001f9e0", "x" * 1_000_000]
)
def test_whatever_a_model_wrote_a_packed_case_is_letters_and_comes_back_as_it_was(text: str) -> None:
    (block,) = case_blocks(bundle_cases([ITEM], [GOLD], [answered(text)], [], []))
    assert re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", block.packed)
    assert rows(block)[0]["text"] == text
    assert len(block.packed) < 10_000


def test_a_case_is_packed_to_the_same_letters_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = bundle_cases([ITEM], [GOLD], [answered(differential("glioblastoma"))], [], [])
    (first,) = case_blocks(bundles)
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert case_blocks(bundles) == [first]


def test_a_grade_that_is_no_number_does_not_close_the_case() -> None:
    (bundle,) = bundle_cases([ITEM], [GOLD], [answered("a")], [], [])
    grade = BundleGrade(grader="g", criterion="core_diagnosis", value=math.nan, explanation="")
    bundle = replace(bundle, responses=(replace(bundle.responses[0], grades=(grade,)),))
    assert rows(case_blocks([bundle])[0])[0]["grades"] == [["g", "core_diagnosis", None, ""]]


def block(name: str, *, flagged: bool, pictures: set[str], size: int = 100) -> CaseBlock:
    results = {"fusion": [0 if flagged else 1, 1]}
    return CaseBlock(f"case-b-{name}", "b", name, "glioma", [{"results": results}], frozenset(pictures), "A" * size)


def test_a_page_without_room_keeps_every_case_and_the_answers_of_flagged_ones_longest() -> None:
    blocks = [
        block("a", flagged=True, pictures={"p"}),
        block("b", flagged=False, pictures={"p", "q"}),
        block("c", flagged=True, pictures={"r"}),
    ]
    pictures = dict.fromkeys("pqr", "W" * 50)
    kept, shown = leave_out_cases(blocks, pictures, 120)
    assert [bool(one.packed) for one in kept] == [True, False, True]
    assert set(shown) == {"p", "r"}
    kept, shown = leave_out_cases(blocks, pictures, 151)
    assert [one.case_id for one in kept] == ["a", "b", "c"]
    assert sum(not one.packed for one in kept) == 2
    assert leave_out_cases(blocks, pictures, 0) == (blocks, pictures)
    assert leave_out_cases(blocks, pictures, 10_000)[1] == {}


@dataclass(frozen=True)
class Small:
    """The part of a page's source that decides which cases fit."""

    cases: list[CaseBlock]
    pictures: dict[str, str]


def test_a_page_above_its_limit_leaves_out_what_it_takes_and_says_so_and_one_that_is_too_large_without_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Small([block(str(number), flagged=number > 1, pictures=set(), size=100_000) for number in range(40)], {})
    monkeypatch.setattr("neuralmedbench.report.page.render", lambda source: "x" * 9_000_000 + "".join(case.packed for case in source.cases))
    (soft,) = write_report(tmp_path / "a.html", source, 25)  # type: ignore[arg-type]
    assert soft == "the report holds 13.0 MB, more than the 10 that a page should hold"
    left, _ = write_report(tmp_path / "b.html", source, 11)  # type: ignore[arg-type]
    assert left == "the report may hold 11 MB (`report.max_megabytes`): 21 of 40 cases are shown without their answers"
    assert (tmp_path / "b.html").stat().st_size == 9_000_000 + 19 * 100_000
    with pytest.raises(ConfigError, match=r"holds 9\.0 MB without the answers of any case, 5 are allowed"):
        write_report(tmp_path / "c.html", source, 5)  # type: ignore[arg-type]
    assert not (tmp_path / "c.html").exists()


def test_the_index_names_a_model_once_and_a_model_without_answers_has_no_result() -> None:
    first, second = (replace(block(name, flagged=True, pictures=set()), index=[{"results": results}]) for name, results in RESULTS.items())
    assert case_index([first, second]) == {
        "models": ["alpha", "beta"],
        "cases": {
            "case-b-a": {"benchmark": "b", "items": [{"results": [[1, 5], None]}]},
            "case-b-b": {"benchmark": "b", "items": [{"results": [None, [0, 5]]}]},
        },
    }


@pytest.mark.parametrize(("pictures", "longest"), [(1, 768), (251, 512), (1_001, 256)])
def test_a_page_with_fewer_pictures_shows_them_larger_and_none_larger_than_it_was_sent(tmp_path: Path, pictures: int, longest: int) -> None:
    sent = [_picture(tmp_path, side) for side in (1_000, 100)]
    absent = [BundleImage(sha256=f"{number:064x}", label="", path="absent.png") for number in range(pictures - len(sent))]
    images = {image.sha256: image for image in [*sent, *absent]}
    shown = previews(images, tmp_path, [block("a", flagged=True, pictures=set(images))])
    sizes = [Image.open(io.BytesIO(base64.b64decode(shown[image.sha256]))).size for image in sent]
    assert sizes == [(longest, longest), (100, 100)]
    assert len(shown) == len(sent)


@pytest.mark.parametrize("most", [0, 1_000, 4_000, 7_500, 20_000, 100_000])
def test_pictures_that_a_page_has_no_room_for_are_not_made_and_the_page_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    images = {image.sha256: image for image in (_picture(tmp_path, side) for side in range(20, 50))}
    digests, made = list(images), list[str]()
    blocks = [  # every case shares a picture with the next
        block(str(number), flagged=number % 3 == 0, pictures=set(digests[2 * number : 2 * number + 3]), size=300) for number in range(14)
    ]
    every = previews(images, tmp_path, blocks)
    monkeypatch.setattr(cases, "preview", lambda image, *arguments: made.append(image.sha256) or preview(image, *arguments))
    some = previews(images, tmp_path, blocks, most)
    assert every.items() >= some.items()
    assert list(every) == [digest for digest in images if digest in every]
    assert len(made) == len(set(made))

    def page(pictures: dict[str, str]) -> tuple[list[CaseBlock], dict[str, str]]:
        excess = sum(len(one.packed) for one in blocks) + sum(map(len, pictures.values())) - most
        return leave_out_cases(blocks, pictures, excess) if excess > 0 else (blocks, pictures)

    assert page(some) == page(every)
    if most < sum(map(len, every.values())) // 2:
        assert len(made) < len(every)


def _picture(root: Path, side: int) -> BundleImage:
    path = root / f"{side}.png"
    Image.new("L", (side, side)).save(path)
    return BundleImage(sha256=hashlib.sha256(path.read_bytes()).hexdigest(), label="T1w", path=path.name)


def test_a_case_of_one_question_begins_with_it_and_a_sequence_that_nobody_knows_is_no_name() -> None:
    image = BundleImage(path="", sha256="0" * 64, label="unknown, axial")
    asked = "Is  there a\nmass effect?"
    (bundle,) = bundle_cases([replace(ITEM, question=asked)], [GOLD], [], [], [])
    bundle = replace(bundle, images=(image, replace(image, label="FLAIR, axial")))
    (block,) = case_blocks([bundle])
    assert (block.question, block.title) == ("Is there a mass effect?", f"{ITEM.case_id}, FLAIR")
    (several,) = case_blocks([bundle, replace(bundle, item_id="other")])
    assert several.question == ""
    (long,) = case_blocks([replace(bundle, question="word " * 60)])
    assert long.question == "word " * 27 + "word…"


def test_an_answer_that_never_came_or_was_not_graded_counts_in_no_summary_of_a_case() -> None:
    rows = [answered(differential("glioblastoma"), repeat=repeat) for repeat in range(3)]
    rows[1] = replace(rows[1], state=ResponseState.SKIPPED, text="")
    scored = score_responses(rows, {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary())
    scores = [replace(row, passed=(True, None, None)[row.repeat]) for row in scored]
    (block,) = case_blocks(bundle_cases([ITEM], [GOLD], rows, scores, []))
    assert block.index[0]["results"] == {"fusion": [1, 1]}
