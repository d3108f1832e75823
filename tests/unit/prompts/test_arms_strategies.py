"""What each arm shows of an item, and how each strategy asks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fixtures.items import benchmark_config
from fixtures.models import model_config, running_server
from fixtures.prompt import NOTES, RECORD, TEMPLATES, asked, exemplar, labels, open_question, picture, question, said
from fixtures.scoring import ITEM
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.requests_of_model import within_budget
from neuralmedbench.prompts.arms import first_part, first_words, within_words, words_of_case
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_pictures
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Disclosure, Runner, Turn

PLAIN = {"images": (), "notes": "", "record": ""}


def arm(item, name, **shown):
    """Return the request of an item under an arm; None if it is left out."""
    beside = open_question("other", "p9")  # an item to which the arm applies
    row = Disclosure(item_id="b/other", arm=name, text="Known.")
    made = asked([item, replace(beside, given="a stroke")], arms=["full", name], **{"disclosures": [row], **shown})
    return made.get(("q1", name, "direct"))


@pytest.mark.parametrize("percent", [1, 10, 50, 90, 99])
def test_the_first_part_is_cut_behind_a_word_and_never_longer_than_its_share(percent):
    item = question()
    part = first_part(item, percent)
    assert NOTES.startswith(part.notes)
    assert RECORD.startswith(part.record)
    assert part.record == "" or part.notes == NOTES
    assert 1 <= words_of_case(part) <= max(1, words_of_case(item) * percent / 100)
    assert f"{part.notes} ".split()[-1] in NOTES.split()
    assert part.question == item.question


@given(
    words=some.lists(some.text("ab. \n", min_size=1, max_size=4), min_size=1, max_size=12),
    small=some.integers(1, 99),
    more=some.integers(0, 98),
)
@settings(max_examples=60)
def test_a_larger_part_begins_with_every_smaller_one(words, small, more):
    half = len(words) // 2
    item = question(notes=" ".join(words[:half]), record=" ".join(words[half:]))
    first, second = first_part(item, small), first_part(item, min(99, small + more))
    assert second.notes.startswith(first.notes)
    assert second.record.startswith(first.record)
    assert words_of_case(first) <= words_of_case(second)


def test_the_first_part_of_one_word_is_no_part_and_a_dialogue_has_none():
    assert arm(question(notes="Headache.", record=""), "first_50_percent") is None
    turns = (Turn(reveal="A long story of a headache.", question="Which?"),)
    assert arm(open_question(runner=Runner.DIALOGUE, turns=turns, notes="", record=""), "first_50_percent") is None
    text = said(arm(question(), "first_50_percent"))
    assert "A woman of 61 years" in text
    assert "sodium" not in text


def test_a_known_diagnosis_is_told_and_withheld():
    item = open_question(given="a cerebral infarction")
    assert "The diagnosis is known: a cerebral infarction" in said(asked([item])["q1", "full", "direct"])
    withheld = said(arm(item, "diagnosis_withheld"))
    assert "infarction" not in withheld
    assert NOTES in withheld
    assert arm(open_question(), "diagnosis_withheld") is None


@pytest.mark.parametrize("name", ["findings_disclosed", "evidence_supplied"])
def test_what_is_disclosed_stands_in_its_own_arm_only(name):
    told = Disclosure(item_id="b/q1", arm=name, text="Dark on the ADC map.")
    made = asked([question()], disclosures=[told], arms=["full", name])
    assert "Dark on the ADC map." in said(made["q1", name, "direct"])
    assert "Dark on the ADC map." not in said(made["q1", "full", "direct"])
    assert arm(question(), name) is None
    assert arm(question(), name, disclosures=[replace(told, text=""), Disclosure(item_id="b/other", arm=name, text="Known.")]) is None


def test_the_findings_are_told_in_the_same_words_without_pictures_and_without_history():
    told = Disclosure(item_id="b/q1", arm="findings_disclosed", text="Dark on the ADC map.")
    of_another = Disclosure(item_id="b/q1", arm="findings_of_another", text="A dural tail.")
    names = ["findings_disclosed", "findings_and_history", "findings_only", "findings_of_another"]
    made = {
        name: made
        for (_, name, _), made in asked([question(), question("q2", "p2")], disclosures=[told, of_another], arms=["full", *names]).items()
    }
    shown = {name: ("Dark on the ADC map." in said(made[name]), NOTES in said(made[name]), len(labels(made[name]))) for name in names}
    assert shown == {
        "findings_disclosed": (True, True, 2),
        "findings_and_history": (True, True, 0),
        "findings_only": (True, False, 0),
        "findings_of_another": (False, True, 2),
    }
    assert "A dural tail." in said(made["findings_of_another"])
    assert said(made["findings_of_another"]).replace("A dural tail.", "Dark on the ADC map.") == said(made["findings_disclosed"])
    assert all("Which diagnosis" in said(made[name]) for name in names)


def test_items_to_which_an_arm_changes_nothing_are_left_out():
    assert arm(question(images=()), "no_image") is None
    assert arm(question(notes="", record=""), "no_text") is None
    shown = asked([question(images=()), question("q2", "p2"), question("q3", "p3")], arms=["full", "shuffled_image"])
    assert {name for name, of, _ in shown if of == "shuffled_image"} == {"q2", "q3"}


def test_without_pictures_an_item_of_choice_keeps_its_options_and_no_label():
    request = arm(question(), "no_image")
    assert labels(request) == []
    assert "A. cerebral infarction" in said(request)
    assert "FLAIR" not in said(request)
    assert "pictures follow" not in said(request)


@pytest.mark.parametrize(
    "name", ["no_image", "no_text", "first_50_percent", "diagnosis_withheld", "findings_disclosed", "evidence_supplied"]
)
def test_an_arm_of_the_yaml_that_reaches_no_item_is_an_error_that_names_it(name):
    """An arm in the yaml promises rows in the tables; without the error they would just be absent."""
    with pytest.raises(ConfigError, match=rf"arm {name}: no item has what it leaves out, cuts or shows.*take it out of `arms`"):
        asked([question(**PLAIN)], arms=["full", name])


def test_arms_that_nobody_named_ask_what_they_can():
    """The default arms apply to any benchmark: without pictures there is nothing to leave out, and none was requested."""
    rows = assemble([question(**PLAIN)], CaseMaterial(), benchmark_config(), TEMPLATES)
    assert [row.arm for row in rows] == ["full"]


def test_steps_and_votes_ask_the_same_so_that_it_is_paid_for_once(tmp_path):
    made = asked([question(images=())], strategies=["direct", "cot", "self_consistency"], samples=3)
    cot, votes = made["q1", "full", "cot"], made["q1", "full", "self_consistency"]
    assert cot.request_id == votes.request_id != made["q1", "full", "direct"].request_id
    assert "REASONING:" in said(cot)
    with running_server() as server:
        model = model_config(api_base=server.address)
        rows = answer_requests(
            list(made.values()),
            ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=None, root=tmp_path),
        )
    assert len(rows) == 9
    assert len(server.bodies) == 6
    texts = {(row.strategy, row.repeat): row.text for row in rows}
    assert all(texts["cot", repeat] == texts["self_consistency", repeat] for repeat in range(3))


def test_a_dialogue_asks_for_steps_in_every_turn():
    turns = (Turn(reveal="A headache.", question="Which?"), Turn(reveal="A weak arm.", question="And now?"))
    item = open_question(runner=Runner.DIALOGUE, turns=turns, notes="", record="", question="", images=())
    request = asked([item], strategies=["direct", "cot"])["q1", "full", "cot"]
    assert [turn.text.count("REASONING:") for turn in request.turns] == [1, 1]


EXAMPLES = (
    exemplar(question("e1", "p1", question="Own?", images=(picture("e1", patient="p1"),))),
    exemplar(question("e2", "p2", question="Second?", images=(picture("e2", patient="p2"),), notes="Slow for a year.")),
    exemplar(question("e3", "p3", question="Third?", images=(), notes="")),
    exemplar(open_question("e4", "p4", question="Open?")),
)


def few_shot(item, examples=EXAMPLES, **changes):
    return asked([item], exemplars=examples, strategies=["direct", "few_shot"], **changes).get(("q1", "full", "few_shot"))


def test_an_item_is_shown_examples_of_its_own_form_and_never_one_of_its_own_patient():
    text = said(few_shot(question()))
    assert "Second?" in text
    assert "Third?" in text
    assert "Own?" not in text
    assert "Open?" not in text
    assert "Own?" in said(few_shot(question(patient="p8")))


def test_an_example_with_a_picture_of_the_item_is_not_shown():
    """Some published splits have copies of one picture in both parts."""
    copy = exemplar(question("e5", "p5", question="Copy?", images=question().images))
    assert "Copy?" not in said(few_shot(question(), (*EXAMPLES, copy)))


def test_examples_stand_before_the_item_and_are_marked_in_text_and_pictures():
    request = few_shot(question())
    turn = request.turns[0]
    assert turn.text[turn.example_characters :] == asked([question()])["q1", "full", "direct"].turns[0].text
    assert "Right answer:\nANSWER: B" in turn.text[: turn.example_characters]
    assert [(image.label.partition(",")[0], image.example) for image in turn.images] == [
        ("Example 1", True),
        ("Picture 1: FLAIR", False),
        ("Figure B: FLAIR", False),
    ]


def test_no_more_examples_are_shown_than_the_yaml_allows():
    assert "Third?" not in said(few_shot(question(), few_shot=1))


def test_examples_show_pictures_and_text_only_where_the_item_does():
    made = asked([question()], exemplars=EXAMPLES, arms=["full", "no_image", "no_text"], strategies=["direct", "few_shot"])
    without = made["q1", "no_image", "few_shot"]
    assert labels(without) == []
    assert "labelled" not in said(without)
    assert "Slow for a year." in said(without)
    assert "Slow for a year." not in said(made["q1", "no_text", "few_shot"])


def test_few_shot_without_examples_is_refused_and_a_dialogue_is_never_shown_any():
    with pytest.raises(ConfigError, match=r"strategy few_shot: there is no example that could be shown; take it out of `strategies`"):
        few_shot(question(), ())
    with pytest.raises(ConfigError, match="no example that could be shown"):
        few_shot(question(), EXAMPLES[:1])
    turns = (Turn(reveal="A headache.", question="Which?"),)
    dialogue = open_question(runner=Runner.DIALOGUE, turns=turns, notes="", record="")
    example = exemplar(replace(dialogue, item_id="b/e9", patient_id="p7"))
    made = asked([dialogue, question("q2")], exemplars=[*EXAMPLES, example], strategies=["direct", "few_shot"])
    assert {name for name, _, strategy in made if strategy == "few_shot"} == {"q2"}


def test_a_picture_of_an_example_that_the_audit_does_not_cover_is_refused():
    item, example = question(images=()), EXAMPLES[1].item
    published = tuple(replace(image, volume_sha256=image.sha256) for image in example.images)
    shown = [item, replace(example, images=published)]
    audit = Audit(benchmark="b", profile="pseudonymised", kind="public", state="passed", covered={published[0].sha256: "e2"})
    check_pictures(shown, [], audit)
    with pytest.raises(DeidentificationError):
        check_pictures(shown, [], replace(audit, covered={}))


def test_text_beyond_the_budget_is_cut_at_its_end_and_the_request_says_how_much():
    item = question()
    every = words_of_case(item)
    request = asked([item], max_case_words=5)["q1", "full", "direct"]
    assert "A woman of 61 years\n" in said(request)
    assert "woke" not in said(request)
    assert "sodium" not in said(request)
    assert request.words_cut == every - 5
    assert item.question in said(request)
    whole = asked([item], max_case_words=every)["q1", "full", "direct"]
    assert (whole.words_cut, whole.request_id) == (0, asked([item])["q1", "full", "direct"].request_id)
    assert asked([item])["q1", "full", "direct"].words_cut == 0


def test_the_text_budget_takes_the_record_first_and_of_a_dialogue_the_last_turns():
    item = question()
    assert first_words(item, len(NOTES.split()) + 1) == replace(item, record="age:")
    turns = (Turn(reveal="one two three", question="Which?"), Turn(reveal="four five", question="And now?"))
    dialogue = open_question(runner=Runner.DIALOGUE, turns=turns, notes="", record="")
    short, cut = within_words(dialogue, 4)
    assert [turn.reveal for turn in short.turns] == ["one two three", "four"]
    assert [turn.question for turn in short.turns] == ["Which?", "And now?"]
    assert cut == 1


def test_arms_are_made_of_what_the_text_budget_leaves_and_examples_keep_to_it_too():
    made = asked([question()], exemplars=EXAMPLES, max_case_words=4, arms=["full", "first_50_percent"], strategies=["direct", "few_shot"])
    assert "A woman\n" in said(made["q1", "first_50_percent", "direct"])
    long = exemplar(question("e6", "p6", images=(), notes="one two three four five six"))
    assert "one two three four\n" in said(few_shot(question(), [long], max_case_words=4))


def kept(request, most):
    """Return the labels of the pictures that a budget leaves."""
    return [image.label for turn in within_budget(request.turns, most) for image in turn.images]


def test_examples_lose_their_pictures_before_the_item_loses_any():
    """An item without its pictures is another question; an example without its own is a weaker example."""
    shown = tuple(picture(f"s{number}") for number in range(4))
    examples = [exemplar(question(f"e{n}", f"p{n}", images=(picture("x", patient=f"p{n}"),))) for n in range(2, 8)]
    request = few_shot(question(images=shown), examples)
    own = [f"Picture {number}: FLAIR, axial, z = +12 mm" for number in (1, 2, 3, 4)]
    assert len(kept(request, None)) == 10
    assert kept(request, 10) == kept(request, None)
    for most in (4, 5, 6, 9):
        left = kept(request, most)
        assert [label for label in left if label.startswith("Picture")] == own
        assert len(left) == most
    assert [label.partition(",")[0] for label in kept(request, 6)][:2] == ["Example 1", "Example 6"]
    assert kept(request, 4) == own
    assert kept(request, 2) == [own[0], own[3]]
    assert kept(request, 0) == []


def test_the_pictures_of_a_request_without_examples_are_cut_as_ever():
    shown = tuple(picture(f"s{number}") for number in range(7))
    request = asked([question(images=shown)])["q1", "full", "direct"]
    places = {most: [int(label.split(":")[0].split()[1]) for label in kept(request, most)] for most in range(8)}
    assert places == {
        0: [],
        1: [4],
        2: [1, 7],
        3: [1, 4, 7],
        4: [1, 3, 5, 7],
        5: [1, 3, 4, 5, 7],
        6: [1, 2, 3, 5, 6, 7],
        7: [1, 2, 3, 4, 5, 6, 7],
    }


def test_a_text_in_a_script_without_spaces_is_cut_as_others_are():
    item = replace(ITEM, notes="患者は三日前から頭痛と発熱がある。MRI shows nothing", record="", turns=())
    assert words_of_case(item) == 9
    assert first_part(item, 40).notes == "患者は三日前から頭"
    assert within_words(item, 7) == (replace(item, notes="患者は三日前から頭痛と発熱がある。MRI"), 2)
