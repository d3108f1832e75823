"""Input layouts: the order of a message, which pictures it has, who is asked in it, and what a server can share between questions."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, source
from fixtures.models import PNG, model_config, running_server
from fixtures.prompt import TEMPLATES, exemplar, labels, open_question, picture, question
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.layouts import COMMON_ORDER, LayoutConfig, load_layout
from neuralmedbench.config.load import check
from neuralmedbench.errors import ConfigError
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.requests_of_model import requests_for
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.parts import PICTURE
from neuralmedbench.records.arm_changes import AlteredPicture
from neuralmedbench.records.items import OPTION, Family, Item, Level, Runner, Turn

FAMILIES = sorted(path.stem for path in (ROOT / "config/layouts").glob("*.yaml"))
DIFFERENT = [name for name in FAMILIES if name not in ("common", "gpt4o")]
"""Families whose layout differs from `common`."""
WORD = re.compile(r"\w+")


def of_case(*names: str) -> list[Item]:
    """Return the three questions of each case (differential, lesion, reasons) with four pictures."""
    return build_cases("b", benchmark_config(), [source(name) for name in names], {name: answer(name) for name in names}, VOCABULARY).items


def in_layouts(items, *families: str, altered=(), exemplars=(), **changes):
    """Return the requests of items by item and family; `common` is the arm full."""
    arms = load_arms(ROOT / "config", [f"layout-{family}" for family in families], "b")
    config = benchmark_config(arms=["full", *arms], **changes)
    rows = assemble(items, CaseMaterial((), exemplars, arms, altered), config, TEMPLATES)
    return {(row.item_id.removeprefix("b/"), row.layout or "common"): row for row in rows}


def words(request) -> list[str]:
    """Return the words of a request without the labels of its pictures, sorted."""
    return sorted(WORD.findall(" ".join(turn.words for turn in request.turns)))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_value_of_a_layout_has_its_source_in_the_comment_above(family) -> None:
    config = load_layout(ROOT / "config", family, "test").config
    blocks = re.findall(r"((?:^#.*\n)+)(\w+):", (ROOT / "config" / "layouts" / f"{family}.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    stated = {key for comment, key in blocks if len(comment) > 20}
    assert config.model_fields_set - {"title", "label_after"} == stated - {"title"} != set()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("order", ["case", "pictures"], "case, pictures and question, each once"),
        ("order", ["question", "case", "pictures"], "the case before the question"),
        ("label", "Image", "must stand in it once"),
        ("windows", ["brain", "brain", "wide"], "red, green and blue need different windows"),
        ("labels", {"name": "x"}, "unknown key 'labels'; did you mean 'label'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check(LayoutConfig, {"title": "T", key: value}, "mine.yaml")


def test_the_file_of_the_common_layout_says_what_the_code_does() -> None:
    config = load_layout(ROOT / "config", "common", "test").config
    assert config == LayoutConfig(title="Common", order=COMMON_ORDER, label=PICTURE)


@pytest.mark.parametrize("family", DIFFERENT)
def test_a_layout_moves_the_words_and_changes_none(family) -> None:
    made = in_layouts(of_case("a1"), family, strategies=["direct", "cot"])
    for (item, layout), request in made.items():
        if layout != "common":
            ours = [word if word != "after" else "before" for word in words(made[item, "common"])]
            theirs = [word if word != "after" else "before" for word in words(request)]
            assert sorted(theirs) == sorted(ours)
            assert request.system == made[item, "common"].system
            assert request.request_id != made[item, "common"].request_id


def test_the_question_stands_after_the_last_slice_and_the_case_where_the_maker_has_it() -> None:
    made = in_layouts([open_question()], "medgemma", "qwen3vl")
    (slices,), (first,) = made["q1", "medgemma"].turns, made["q1", "qwen3vl"].turns
    assert slices.text.startswith("Clinical notes:")
    assert slices.text.endswith("The pictures follow this text, each before its label.")
    assert slices.after.startswith("Question: What is seen")
    assert first.text == "The pictures follow this text, each after its label."
    assert first.after.index("Clinical notes:") < first.after.index("Question: What is seen")
    assert (slices.labels_after, first.labels_after) == (True, False)


def test_a_label_has_the_makers_number_and_says_as_much_as_ours() -> None:
    made = in_layouts([question()], "medgemma", "claude", "internvl")
    assert labels(made["q1", "common"]) == ["Picture 1: FLAIR, axial, z = +12 mm", "Figure B: FLAIR, axial, z = +12 mm"]
    assert labels(made["q1", "medgemma"])[0] == "SLICE 1: FLAIR, axial, z = +12 mm"
    assert labels(made["q1", "claude"]) == ["Image 1: FLAIR, axial, z = +12 mm", "Figure B: FLAIR, axial, z = +12 mm"]
    assert labels(made["q1", "internvl"])[0] == "Image-1: FLAIR, axial, z = +12 mm"


def test_a_box_is_asked_for_in_the_unit_and_order_of_the_layout() -> None:
    item = replace(open_question(), family=Family.DIFFERENTIAL_DIAGNOSIS)
    made = in_layouts([item], "gemini", "qwen2.5vl", "llava", answer_form="evidence")
    asked = {
        layout: next(line for line in "\n".join(turn.words for turn in row.turns).splitlines() if line.startswith("BOX:"))
        for (_, layout), row in made.items()
    }
    assert asked["common"] == asked["llava"], "a layout that names no coordinates asks for ours"
    assert asked["common"].startswith("BOX: <[x1, y1, x2, y2] around it on that picture, in thousandths (0 to 1000)")
    assert asked["gemini"].startswith("BOX: <[y1, x1, y2, x2] around it on that picture, in thousandths (0 to 1000)")
    assert asked["qwen2.5vl"].startswith("BOX: <[x1, y1, x2, y2] around it on that picture, in pixels of the picture as you see it")


def test_each_round_of_a_dialogue_is_laid_out_and_keeps_its_pictures() -> None:
    turns = (Turn(reveal="Weak arm.", question="Q1?"), Turn(reveal="A scan.", question="Q2?", image_ids=("z10", "z20")))
    item = replace(question(), runner=Runner.DIALOGUE, options=(), turns=turns, notes="", record="")
    ours, (first, second) = (in_layouts([item], "medgemma")["q1", layout].turns for layout in ("common", "medgemma"))
    assert (first.text, first.after) == (ours[0].text, "")
    assert second.text.startswith("Round 2 of 2.\n\nNew information:\nA scan.")
    assert second.after.startswith("Question: Q2?")
    assert [image.label for image in second.images] == ["SLICE 1: FLAIR, axial, z = +12 mm", "Figure B: FLAIR, axial, z = +12 mm"]


def test_what_is_given_or_disclosed_belongs_to_the_question_and_not_to_the_shared_case() -> None:
    (_, given) = (open_question(given=text) for text in ("", "cerebral infarction"))
    (turn,) = in_layouts([given], "medgemma")["q1", "medgemma"].turns
    assert "The diagnosis is known" not in turn.text
    assert turn.after.startswith("The diagnosis is known: cerebral infarction")


def test_examples_stay_before_everything_and_their_pictures_before_those_of_the_question() -> None:
    shown = exemplar(question("x", "p7"))
    (turn,) = in_layouts([question()], "qwen3vl", exemplars=[shown], strategies=["direct", "few_shot"])["q1", "qwen3vl"].turns
    assert turn.text[: turn.example_characters].rstrip().endswith("Now comes what you answer.")
    assert [image.example for image in turn.images] == [True, True, False, False]
    assert turn.after.endswith("how sure you are of this option>")


def test_a_layout_shows_its_plane_alone_and_no_more_pictures_than_it_allows() -> None:
    images = (*(picture(f"z{number}") for number in range(5)), replace(picture("s1"), plane="sagittal"),
              replace(picture("o"), role=OPTION, label="cerebral infarction"))  # fmt: skip
    made = in_layouts([question(images=images)], "medgemma", "llama3.2")
    assert [image.sha256 for image in made["q1", "medgemma"].turns[0].images] == [*(f"p1-z{number}" for number in range(5)), "p1-o"]
    assert [image.sha256 for image in made["q1", "llama3.2"].turns[0].images] == ["p1-z3", "p1-o"]


def test_a_ct_slice_on_colours_stands_for_its_windows_and_other_windows_of_it_are_left_out() -> None:
    windows = ("wide", "soft-tissue", "", "bone")
    images = tuple(replace(picture(f"ct-{name}", sequence="CT"), window=name) for name in windows)
    item = question(images=(*images, picture("flair")))
    row = AlteredPicture(case_id="q1", arm="layout-medgemma", sources=tuple(image.sha256 for image in images[:3]), volume_sha256="volume-p1",
                         path="rgb.png", sha256="rgb", window="red wide, green soft-tissue, blue brain")  # fmt: skip
    made = in_layouts([item], "medgemma", altered=[row])
    assert labels(made["q1", "medgemma"]) == [
        "SLICE 1: CT, axial, red wide, green soft-tissue, blue brain window, z = +12 mm",
        "SLICE 2: FLAIR, axial, z = +12 mm",
    ]
    assert len(labels(made["q1", "common"])) == 5


def test_an_item_without_pictures_has_no_other_layout_and_a_layout_like_ours_asks_nothing() -> None:
    made = in_layouts([question(images=()), question("q2")], "qwen3vl")
    assert set(made) == {("q1", "common"), ("q2", "common"), ("q2", "qwen3vl")}
    with pytest.raises(ConfigError, match="arm layout-gpt4o: no item has what it leaves out"):
        in_layouts([question()], "gpt4o")


def test_only_models_that_name_a_layout_are_asked_in_it() -> None:
    rows = list(in_layouts([question()], "qwen3vl", "claude").values())
    asked = {name: sorted(row.layout for row in requests_for(model_config(layout=name), rows)) for name in (None, "claude", "qwen3vl")}
    assert asked == {None: [""], "claude": ["", "claude"], "qwen3vl": ["", "qwen3vl"]}
    with pytest.raises(ConfigError, match=r"there is no layout 'qwen3-vl'.*did you mean 'qwen3vl'"):
        load_layout(ROOT / "config", "qwen3-vl", "model m")


def written_pictures(root: Path, requests):
    """Return requests whose pictures are files, each with bytes of its own."""

    def stored(image):
        png = PNG + image.sha256.encode()
        (root / (name := f"{hashlib.sha256(png).hexdigest()}.png")).write_bytes(png)
        return replace(image, path=name, sha256=hashlib.sha256(png).hexdigest())

    return [
        replace(row, samples=1, turns=tuple(replace(turn, images=tuple(map(stored, turn.images))) for turn in row.turns))
        for row in requests
    ]


def shared_pictures(bodies) -> tuple[int, int]:
    """Count the pictures of each request, and those in its longest prefix of content parts that an earlier request also began with."""
    earlier: list[list[str]] = []
    shared = total = 0
    for body in bodies:
        parts = [
            json.dumps(part, sort_keys=True)
            for message in body["messages"]
            for part in (message["content"] if isinstance(message["content"], list) else [message["content"]])
        ]
        prefixes = [
            next((place for place, pair in enumerate(zip(parts, other, strict=False)) if pair[0] != pair[1]), len(parts))
            for other in earlier
        ]
        pictures = ["image_url" in part for part in parts]
        if prefixes:
            total += sum(pictures)
            shared += sum(pictures[: max(prefixes)])
        earlier.append(parts)
    return shared, total


@pytest.mark.parametrize(("family", "share"), [("common", 0.0), ("medgemma", 1.0), ("qwen3vl", 1.0), ("claude", 1.0), ("gemini", 1.0)])
def test_a_server_can_share_the_pictures_of_a_case_between_its_questions_where_they_come_first(family, share, tmp_path) -> None:
    """Of the pictures of every question of a case but the first."""
    layouts = [] if family == "common" else [family]
    for case in ("a1", "a2"):
        made = in_layouts(of_case(case), *layouts)
        requests = written_pictures(tmp_path, [row for (_, layout), row in made.items() if layout == family])
        assert len(requests) == 3
        with running_server() as server:
            model = model_config(api_base=server.address, concurrency=1, layout=layouts[0] if layouts else None)
            ledger = tmp_path / f"{case}.jsonl"
            answer_requests(requests, ModelRun(model, ledger=ledger, destinations=("local",), max_failed_fraction=None, root=tmp_path))
        shared, total = shared_pictures(server.bodies)
        assert total == 8
        assert shared / total == share
        # the first question is there too, and can share nothing: four pictures more
        assert shared / (total + 4) == pytest.approx(share * 2 / 3)


def test_a_dialogue_and_its_layout_have_the_same_cases(tmp_path) -> None:
    built = build_cases("b", benchmark_config(), [source("a2")], {"a2": answer("a2", level=Level.DIALOGUE)}, VOCABULARY)
    made = in_layouts(built.items, "qwen3vl")
    ours, theirs = ({item for item, layout in made if layout == name} for name in ("common", "qwen3vl"))
    assert theirs == ours
