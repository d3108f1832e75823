"""Options of a choice that are pictures: a small set made by hand, from its table to the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.builtin import head, picture
from fixtures.imports import built, picture_bytes, put, put_mapping
from fixtures.models import model_config
from fixtures.prompt import asked, exemplar, labels, said
from fixtures.scoring import vocabulary
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.answer_leaks import by_item, sent_texts_of
from neuralmedbench.benchmarks.importing import ImportPaths, import_set
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.demo.baselines.baseline import build
from neuralmedbench.errors import DataError
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.protocol import Message
from neuralmedbench.models.replay import NOTHING_RECORDED
from neuralmedbench.models.requests_of_model import too_many_pictures, within_budget
from neuralmedbench.records.items import OPTION
from neuralmedbench.records.questions import ImportRecord
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.scoring.parse import parse_answer

MAPPING: dict[str, Any] = {
    "title": "Mine",
    "home": "here",
    "licence": "ours",
    "axis": "breadth",
    "files": ["table.json"],
    "runner": "choice",
}
FUNCTION = """
def question(row):
    names = [row[letter] for letter in "ABCD"]
    while not names[-1]:
        names.pop()
    shown = [Picture(file=f"img/{name}") for name in row["shown"]]
    options = [Picture(file=name and f"img/{name}", role="option") for name in names]
    return Question(id=row["n"], question=row["q"], answer=row["a"], pictures=(*shown, *options))
"""
CHECKS = {name: picture_bytes(place) for place, name in enumerate(("s1", "s2", "s3", "o1", "o2", "o3", "o4", "p1", "p2", "p3"))}
ROWS: list[dict[str, Any]] = [
    {"n": "one", "q": "Which picture is of the same patient?", "A": "o1.png", "B": "o2.png", "C": "o3.png", "D": "o4.png", "a": "C",
     "shown": ["s1.png", "s2.png"]},
    {"n": "two", "q": "Which one shows a bleed?", "A": "p1.png", "B": "p2.png", "C": "p3.png", "D": "", "a": "img/p2.png", "shown": ["s3.png"]},
    {"n": "bare", "q": "Which one is normal?", "A": "o4.png", "B": "p3.png", "C": "", "D": "", "a": "A", "shown": []},
]  # fmt: skip


def taken(
    tmp_path: Path, rows: list[dict[str, Any]], policy: str = "full", function: str = FUNCTION
) -> tuple[ImportRecord, BenchmarkItems]:
    put_mapping(tmp_path, MAPPING, function)
    put(tmp_path / "set", {"table.json": rows, **{f"img/{name}.png": content for name, content in CHECKS.items()}})
    places = ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw")
    record = import_set(data_sets(tmp_path / "config")["mine"], tmp_path / "set", "b", places)
    return record, built(places, policy)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkItems:
    return taken(tmp_path_factory.mktemp("options"), ROWS)[1]


def sent(made: BenchmarkItems, arm: str = "full") -> dict[str, Request]:
    requests = asked(made.items, arms=["full", "no_image", "shuffled_image"])
    return {name: request for (name, where, _), request in requests.items() if where == arm}


def test_each_option_is_shown_under_its_letter_behind_the_pictures_that_are_asked_about(made: BenchmarkItems) -> None:
    assert [row.choice for row in made.gold] == ["C", "B", "A"]
    requests = sent(made)
    assert labels(requests["one"]) == ["Picture 1", "Picture 2", "Option A", "Option B", "Option C", "Option D"]
    assert labels(requests["two"]) == ["Picture 1", "Option A", "Option B", "Option C"]
    assert "Options:\nA. Option A\nB. Option B\nC. Option C\n\n" in said(requests["two"])
    own = {image.label: image.sha256 for image in made.items[0].images if image.role == OPTION}
    assert [image.sha256 for image in requests["one"].turns[0].images[2:]] == [own[f"Option {letter}"] for letter in "ABCD"]


@pytest.mark.parametrize("policy", ["full", "none"])
def test_an_options_label_never_tells_modality_sequence_or_plane(made: BenchmarkItems, policy: str) -> None:
    labelled = [
        replace(
            item, label_policy=policy, images=tuple(replace(image, sequence="FLAIR", plane="axial", window="bone") for image in item.images)
        )
        for item in made.items
    ]
    shown = labels(asked(labelled)["one", "full", "direct"])
    assert shown[2:] == ["Option A", "Option B", "Option C", "Option D"]
    assert shown[0] == ("Picture 1: FLAIR, axial, bone window" if policy == "full" else "Picture 1")


def test_a_name_of_the_questions_own_stands_behind_the_letter(made: BenchmarkItems) -> None:
    item = replace(made.items[1], options=("Figure 1", "Figure 2", "Figure 3"))
    images = (item.images[0], *(replace(image, label=name) for image, name in zip(item.images[1:], item.options, strict=True)))
    assert labels(asked([replace(item, images=images)])["two", "full", "direct"])[1:] == [
        "Option A (Figure 1)", "Option B (Figure 2)", "Option C (Figure 3)",
    ]  # fmt: skip


def test_arms_take_away_or_exchange_what_is_asked_about_and_leave_the_options(made: BenchmarkItems) -> None:
    without, shuffled = sent(made, "no_image"), sent(made, "shuffled_image")
    assert labels(without["one"]) == ["Option A", "Option B", "Option C", "Option D"]
    assert "The pictures follow this text" in said(without["one"])
    assert set(without) == set(shuffled) == {"one", "two"}, "where the options are all that is shown there is nothing to take away"
    full = sent(made)
    digests = {name: [image.sha256 for image in request.turns[0].images] for name, request in full.items()}
    assert [image.sha256 for image in shuffled["one"].turns[0].images] == [digests["two"][0], *digests["one"][2:]]
    assert [image.sha256 for image in shuffled["two"].turns[0].images] == [*digests["one"][:2], *digests["two"][1:]]


def test_examples_show_their_options_too(made: BenchmarkItems) -> None:
    one, two, _ = made.items
    request = asked([one], exemplars=[exemplar(two)], arms=["full", "no_image"], strategies=["direct", "few_shot"])
    assert labels(request["one", "full", "few_shot"])[:4] == [
        f"Example 1, {label}" for label in ("Picture 1", "Option A", "Option B", "Option C")
    ]
    assert labels(request["one", "no_image", "few_shot"])[:3] == [f"Example 1, Option {letter}" for letter in "ABC"]


@pytest.mark.parametrize(
    ("most", "left"),
    [(None, ["Picture 1", "Picture 2"]), (9, ["Picture 1", "Picture 2"]), (6, ["Picture 1", "Picture 2"]), (5, ["Picture 2"]), (4, [])],
)
def test_a_picture_budget_cuts_the_other_pictures_and_no_option(made: BenchmarkItems, most: int | None, left: list[str]) -> None:
    request = sent(made)["one"]
    assert not too_many_pictures(request, most)
    (turn,) = within_budget(request.turns, most)
    assert [image.label for image in turn.images] == [*left, "Option A", "Option B", "Option C", "Option D"]


def test_a_question_whose_options_are_over_the_budget_is_skipped_and_the_reason_names_it(made: BenchmarkItems, tmp_path: Path) -> None:
    model = model_config(backend="builtin", id="text", max_images=3)
    reason = "b/one: 4 options are pictures, max_images is 3"
    assert {name: too_many_pictures(request, 3) for name, request in sent(made).items()} == {"one": reason, "two": "", "bare": ""}
    ask = {"ledger": tmp_path / "m.jsonl", "vocabulary": vocabulary()}
    rows = answer_requests([sent(made)["one"]], ModelRun(model, destinations=("local",), max_failed_fraction=None, **ask))
    assert {(row.item_id, row.state, row.error, row.attempts) for row in rows} == {("b/one", ResponseState.SKIPPED, reason, 0)}
    assert len(rows) == sent(made)["one"].samples
    assert answer_requests([sent(made)["one"]], ModelRun(model, destinations=("local",), max_failed_fraction=None, replay=True, **ask)) == [
        replace(row, error=NOTHING_RECORDED) for row in rows
    ]


def test_examples_lose_their_pictures_before_the_item_loses_one(made: BenchmarkItems) -> None:
    one, two, _ = made.items
    request = asked([one], exemplars=[exemplar(two)], strategies=["direct", "few_shot"])["one", "full", "few_shot"]
    shown = labels(replace(request, turns=within_budget(request.turns, 7)))
    assert shown[1:] == ["Picture 1", "Picture 2", "Option A", "Option B", "Option C", "Option D"]
    assert shown[0].startswith("Example 1, ")


@pytest.mark.parametrize("name", [pytest.param("text", marks=pytest.mark.slow), "image", pytest.param("fusion", marks=pytest.mark.slow)])
def test_the_built_in_models_answer_with_a_letter_that_is_offered(made: BenchmarkItems, name: str) -> None:
    item, request = made.items[1], sent(made)["two"]
    drawn = tuple(picture(head("FLAIR"), image.label) for image in request.turns[0].images)
    messages = (Message("system", request.system), Message("user", request.turns[0].text, drawn))
    assert parse_answer(build(name, vocabulary()).answer(messages, seed=1, temperature=1.0), item).choice in ("A", "B", "C")


@pytest.mark.parametrize("text", ["ANSWER: B", "Option B", "The answer is option B.", '{"answer": "Option B"}'])
def test_an_answer_may_name_the_label(made: BenchmarkItems, text: str) -> None:
    assert parse_answer(text, made.items[1]).choice == "B"


def test_labels_of_options_are_printed_options_and_no_leak(made: BenchmarkItems) -> None:
    requests = by_item(sent(made).values())
    assert "Option" not in sent_texts_of(made.items[1], requests["b/two"])["labels"].text
    assert "Option" not in sent_texts_of(made.items[1], requests["b/two"])["template"].text.replace("Options:", "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"B": ""}, "an option is empty"),
        ({"B": "o1.png"}, "two options are the same picture"),
        ({"B": "absent.png"}, "a picture is not there"),
        ({"B": "../../x.png"}, "the path of a picture leaves the folder"),
        ({"a": "E"}, "the right answer is not one of A to D"),
    ],
)
def test_a_row_with_a_wrong_option_is_refused_with_its_reason(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    record, _ = taken(tmp_path, [{**ROWS[0], **changes}, ROWS[2]])
    assert [row.reason.partition(",")[0] for row in record.refused] == [reason]


def test_a_line_whose_picture_names_no_option_is_refused_by_its_question(tmp_path: Path) -> None:
    taken(tmp_path, ROWS)
    path = tmp_path / "questions" / "questions.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"label": "Option D"', '"label": "Option X"'), encoding="utf-8")
    assert "Option X" in path.read_text(encoding="utf-8")
    with pytest.raises(DataError, match="question one: the label of an option picture is not the text of an option"):
        built(ImportPaths(tables=tmp_path / "questions", pictures=tmp_path / "raw"), "full")


def test_options_may_be_base64_or_bytes(tmp_path: Path) -> None:
    import base64

    row = {"q": "Which?", "o": [base64.b64encode(CHECKS[name]).decode() for name in ("o1", "o2")], "a": "B"}
    function = """
import base64

def question(row):
    first, second = row["o"]
    options = (Picture(file=first, role="option"), Picture(file=base64.b64decode(second), role="option"))
    return Question(question=row["q"], answer=row["a"], pictures=options)
"""
    _, made = taken(tmp_path, [row], function=function)
    assert (made.items[0].options, made.gold[0].choice) == (("Option A", "Option B"), "B")
    assert [image.label for image in made.items[0].images] == ["Option A", "Option B"]
