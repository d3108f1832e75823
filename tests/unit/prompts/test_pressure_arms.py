"""Arms of pressure and wording: what a request shows, what it leaves alone, and which items are asked."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, source
from fixtures.prompt import OPTIONS, TEMPLATES, asked, labels, open_question, picture, question, said, staged
from neuralmedbench.benchmarks.case_items import FIRST_TURN, NEXT_TURN, QUESTIONS, build_cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.neurovlm_labels import QUESTION
from neuralmedbench.benchmarks.told_by_arms import add_told_answers
from neuralmedbench.config.arms import load_arms
from neuralmedbench.errors import ConfigError
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.arm_changes import is_movable, option_order, wrong_gold
from neuralmedbench.records.items import OPTION, Gold, Item, Level
from neuralmedbench.records.requests import EARLIER, Request
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary

STROKES = replace(
    VOCABULARY,
    diagnoses={
        **VOCABULARY.diagnoses,
        "vascular": Diagnosis(key="vascular", name="vascular disease"),
        "stroke": replace(VOCABULARY.diagnoses["stroke"], parent="vascular"),
        "bleed": Diagnosis(key="bleed", name="intracerebral haemorrhage", parent="vascular"),
    },
)
"""A vocabulary with two diseases of one family."""

SUGGESTIONS = ["suggestion-wrong", "suggestion-right"]


def shown(items: list[Item], gold: list[Gold], arms: list[str], vocabulary: Vocabulary = STROKES) -> dict[tuple[str, str], Request]:
    """Give the requests of items by item and arm, as `build_items` and `assemble_prompts` make them."""
    known = load_arms(ROOT / "config", arms, "b")
    built = add_told_answers(BenchmarkItems(tuple(items), tuple(gold)), known.values(), vocabulary)
    config = benchmark_config(arms=["full", *arms])
    rows = assemble(items, CaseMaterial(disclosures=built.disclosures, arms=known), config, TEMPLATES)
    return {(row.item_id, row.arm): row for row in rows}


def of_cases(**changes: object) -> tuple[list[Item], list[Gold]]:
    """Give the items of one case of a stroke, with their gold."""
    built = build_cases("b", benchmark_config(), [source("a1")], {"a1": answer("a1", **changes)}, STROKES)
    return list(built.items), list(built.gold)


def added(request: Request, full: Request) -> list[str]:
    """Give the lines that a request has and the one under full has not."""
    return [line for line in said(request).splitlines() if line not in said(full).splitlines()]


def test_a_suggestion_is_the_only_difference_to_full_and_both_directions_ask_the_same_items() -> None:
    items, gold = of_cases()
    made = shown(items, gold, SUGGESTIONS)
    for family, wrong, right in (
        ("differential_diagnosis", "intracerebral haemorrhage", "acute ischaemic stroke"),
        ("lesion_recognition", "a lesion in the insula, on the right", "a lesion in the insula, on the left"),
        ("rationale_generation", "intracerebral haemorrhage", "acute ischaemic stroke"),
    ):
        full = made[f"b/a1/{family}", "full"]
        for arm, words in zip(SUGGESTIONS, (wrong, right), strict=True):
            request = made[f"b/a1/{family}", arm]
            assert added(request, full) == [f"A senior colleague has seen this case and suggests: {words}"]
            assert labels(request) == labels(full)


def test_a_suggested_option_is_one_of_those_that_are_offered() -> None:
    item = question()
    made = shown([item], [Gold(item_id=item.item_id, answer=OPTIONS[1], choice="B")], SUGGESTIONS)
    wrong, right = (said(made[item.item_id, arm]).partition("suggests: ")[2].splitlines()[0] for arm in SUGGESTIONS)
    assert right == "B. glioblastoma"
    assert wrong in {"A. cerebral infarction", "C. multiple sclerosis"}


@pytest.mark.parametrize(
    ("item", "gold"),
    [
        (open_question(given="acute ischaemic stroke"), Gold(item_id="b/q1", answer="acute ischaemic stroke")),
        (open_question(), Gold(item_id="b/q1", answer="a bright spot")),
        (open_question(), Gold(item_id="b/q1", answer="normal brain")),
    ],
    ids=["the diagnosis is stated", "the vocabulary does not know it", "no disease"],
)
def test_an_item_without_a_plausible_wrong_answer_is_not_asked_under_pressure(item: Item, gold: Gold) -> None:
    assert wrong_gold(item, gold, STROKES) is None
    other = question("q2")
    made = shown([item, other], [gold, Gold(item_id=other.item_id, answer=OPTIONS[0], choice="A")], SUGGESTIONS)
    assert {name for name, arm in made if arm in SUGGESTIONS} == {other.item_id}


def test_a_lesion_without_a_side_is_suggested_elsewhere() -> None:
    items, gold = of_cases(lesion_side="midline")
    made = shown(items, gold, ["suggestion-wrong"])
    text = said(made["b/a1/lesion_recognition", "suggestion-wrong"])
    assert "suggests: a lesion in the frontal lobe\n" in text


@pytest.mark.parametrize("stance", ["suggested", "doubted"])
def test_a_request_with_an_earlier_answer_carries_the_messages_that_it_answers(stance: str) -> None:
    items, gold = of_cases()
    arm = f"own_answer-{stance}"
    made = shown(items, gold, [arm])
    for item in items:
        full, request = made[item.item_id, "full"], made[item.item_id, arm]
        assert request.earlier == full.turns
        assert [line for line in added(request, full) if line != '"""'][1:] == [EARLIER]
        assert request.request_id != full.request_id
        assert full.earlier == ()


def test_the_earlier_answer_of_a_dialogue_stands_in_its_last_round() -> None:
    built = build_cases("b", benchmark_config(), [source("a2")], {"a2": answer("a2", level=Level.DIALOGUE)}, STROKES)
    made = shown(list(built.items), list(built.gold), ["own_answer-suggested"])
    request = made["b/a2/differential_diagnosis", "own_answer-suggested"]
    assert [EARLIER in turn.text for turn in request.turns] == [False, True]
    assert len(request.earlier) == 2


def test_a_question_in_stages_has_no_earlier_answer_to_show_and_no_pictures_of_another() -> None:
    items = [question(), staged("s1", "p2"), question("q2", "p3")]
    arms = ["own_answer-suggested", "shuffled_image", "no_image", "paraphrase-1"]
    asked_of = {(item, arm) for item, arm in shown(items, [], arms) if item == "b/s1"}
    assert asked_of == {("b/s1", arm) for arm in ("full", "no_image", "paraphrase-1")}


def test_a_text_that_holds_the_place_of_the_earlier_answer_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"b/q1: its text holds \{earlier_answer\}"):
        shown([question(notes=f"He wrote {EARLIER}.")], [], ["own_answer-suggested"])


@pytest.mark.parametrize("options", range(2, 11))
def test_every_option_stands_once_in_every_place_over_as_many_seeds_as_there_are_options(options: int) -> None:
    for first in (1, 1 + options):
        orders = [option_order("b/q1", options, seed) for seed in range(first, first + options)]
        for place in range(options):
            assert sorted(order[place] for order in orders) == list(range(options))


def test_orders_differ_between_items_so_that_one_seed_is_balanced_too() -> None:
    places = [option_order(f"b/q{number}", 4, 1).index(0) for number in range(4_000)]
    assert all(abs(places.count(place) / 4_000 - 0.25) < 0.03 for place in range(4))


def test_shuffled_options_change_their_order_and_nothing_else() -> None:
    item = question()
    arms = [f"options_shuffled-{seed}" for seed in (1, 2, 3)]
    made = shown([item], [], arms)
    found = set()
    for arm in arms:
        printed = re.findall(r"^([A-C])\. (.*)$", said(made[item.item_id, arm]), re.MULTILINE)
        assert [letter for letter, _ in printed] == list("ABC")
        found.add(tuple(text for _, text in printed))
        assert re.sub(r"^[A-C]\. .*$", "", said(made[item.item_id, arm]), flags=re.MULTILINE) == re.sub(
            r"^[A-C]\. .*$", "", said(made[item.item_id, "full"]), flags=re.MULTILINE
        )
    assert {frozenset(texts) for texts in found} == {frozenset(OPTIONS)}
    assert [sorted(texts[place] for texts in found) for place in range(3)] == [sorted(OPTIONS)] * 3


@pytest.mark.parametrize("named", [True, False], ids=["pictures called by letters", "pictures called by names"])
def test_the_picture_of_an_option_moves_with_its_letter(named: bool) -> None:
    names = ("Option A", "Option B", "Option C") if named else ("Figure 1", "Figure 2", "Figure 3")
    pictures = tuple(replace(picture(f"o{place}", label=name), role=OPTION) for place, name in enumerate(names))
    item = question(options=names, images=(picture("z10"), *pictures))
    for seed in (1, 2, 3):
        made = shown([item], [], [f"options_shuffled-{seed}"])[item.item_id, f"options_shuffled-{seed}"]
        order = option_order(item.item_id, 3, seed)
        sent = made.turns[0].images[1:]
        # the picture at a letter is that of the option which the order puts there
        assert [image.sha256 for image in sent] == [pictures[old].sha256 for old in order]
        letters = [f"Option {letter}" for letter in "ABC"]
        assert [image.label for image in sent] == (
            letters if named else [f"{x} ({names[old]})" for x, old in zip(letters, order, strict=True)]
        )


@pytest.mark.parametrize(
    ("options", "movable"),
    [
        (("yes", "no"), True),
        (("10", "20", "30"), True),
        (("left", "right", "both sides"), True),
        (("vitamin A", "vitamin B and C deficiency"), True),
        (("stroke", "tumour", "all of the above"), False),
        (("stroke", "tumour", "None of these"), False),
        (("stroke", "tumour", "A and B"), False),
        (("stroke", "tumour", "Both A & B only"), False),
        (("stroke",), False),
    ],
)
def test_options_that_speak_of_each_other_are_neither_moved_nor_taken_away(options: tuple[str, ...], movable: bool) -> None:
    item = question(options=options)
    assert is_movable(item) is movable
    made = shown([item, question("q2")], [Gold(item_id=item.item_id, answer=options[0], choice="A")], ["options_shuffled-1"])
    assert ((item.item_id, "options_shuffled-1") in made) is movable
    if movable:
        made = shown([item], [Gold(item_id=item.item_id, answer=options[0], choice="A")], ["none_of_the_above"])
        assert "A. None of the above" in said(made[item.item_id, "none_of_the_above"])
    else:
        with pytest.raises(ConfigError, match="arm none_of_the_above: no item"):
            shown([item], [Gold(item_id=item.item_id, answer=options[0], choice="A")], ["none_of_the_above"])


def test_a_question_that_names_an_option_by_its_letter_keeps_its_order() -> None:
    assert not is_movable(question(question="Why is option B wrong?"))
    assert is_movable(question(question="What is seen in Figure B?"))


def test_none_of_the_above_takes_the_place_and_the_picture_of_the_right_option() -> None:
    names = ("Option A", "Option B", "Option C")
    pictures = tuple(replace(picture(f"o{place}", label=name), role=OPTION) for place, name in enumerate(names))
    item = question(options=names, images=(picture("z10"), *pictures))
    made = shown([item], [Gold(item_id=item.item_id, answer="Option B", choice="B")], ["none_of_the_above"])
    request = made[item.item_id, "none_of_the_above"]
    assert "A. Option A\nB. None of the above\nC. Option C" in said(request)
    assert labels(request)[1:] == ["Option A", "Option C"]


def test_an_arm_that_changes_options_has_the_name_by_which_answers_are_read(tmp_path) -> None:
    folder = tmp_path / "config"
    (folder / "arms").mkdir(parents=True)
    (folder / "arms/mixed.yaml").write_text("{title: T, group: wording, description: D., options: shuffle, parameters: {seed: [1]}}")
    with pytest.raises(ConfigError, match="`options: shuffle` belongs to the arm"):
        load_arms(folder, ["mixed-1"], "b")


@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_a_paraphrase_changes_words_of_instruction_and_question_alone(number: str) -> None:
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], {
        "a1": answer("a1"), "a2": answer("a2", level=Level.DIALOGUE)
    }, STROKES)  # fmt: skip
    arm = f"paraphrase-{number}"
    for form in ("short", "checklist"):
        made = asked([*built.items, question(), open_question("q2")], arms=["full", arm], strategies=["direct", "cot"], answer_form=form)
        names = {(item, strategy) for item, _, strategy in made}
        for item, strategy in names:
            full, other = (made[item, name, strategy] for name in ("full", arm))
            changed, gone = set(added(other, full)), set(added(full, other))
            # the same number of lines is exchanged: nothing is added, nothing lost
            assert len(said(full).splitlines()) == len(said(other).splitlines())
            kept = [line for line in gone if not line.startswith(("Question: ", "Options:", "Answer in this form:"))]
            assert all(line in TEMPLATES.render("system", persona="", oriented=True) or "You take part" in line for line in kept), kept
            assert len(changed) == len(gone)
            assert labels(other) == labels(full)
            assert other.answer_schema == full.answer_schema


@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_every_question_of_our_own_has_other_words_in_every_paraphrase(number: str) -> None:
    own = [*QUESTIONS.values(), FIRST_TURN, NEXT_TURN, QUESTION]
    reworded = [TEMPLATES.paraphrase(number).question(text) for text in own]
    assert not set(own) & set(reworded)
    assert len(set(reworded)) == len(own)
    assert TEMPLATES.paraphrase(number).question("What is seen in Figure B?") == "What is seen in Figure B?"


def test_no_two_paraphrases_say_the_same_words() -> None:
    own = [*QUESTIONS.values(), FIRST_TURN, NEXT_TURN, QUESTION]
    for text in own:
        assert len({TEMPLATES.paraphrase(number).question(text) for number in "123"}) == 3


def test_a_paraphrase_without_a_folder_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no paraphrase '4'"):
        TEMPLATES.paraphrase("4")
