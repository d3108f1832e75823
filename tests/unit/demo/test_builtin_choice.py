"""Built-in models: options, free answers and few-shot examples."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from fixtures.builtin import head, picture
from fixtures.prompt import NOTES, OPTIONS, asked, exemplar, open_question, question
from fixtures.scoring import vocabulary
from neuralmedbench.demo.baselines.baseline import build
from neuralmedbench.demo.baselines.forms import read_choice, without_examples
from neuralmedbench.models.protocol import Message
from neuralmedbench.records.items import Family, Runner
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.parse import parse_answer

pytestmark = pytest.mark.slow

MODELS = ("text", "image", "fusion")
STROKE = question(notes="Sudden loss of speech and weakness of the right arm an hour ago; atrial fibrillation.", record="")


@pytest.fixture(scope="module")
def models():
    return {name: build(name, vocabulary()) for name in MODELS}


def messages(item, *, strategy="direct", exemplars=()):
    """Return the conversation of an item as the engine passes it on; the pictures are drawn heads."""
    request = asked([item], exemplars=exemplars, strategies=list(dict.fromkeys(["direct", strategy])))["q1", "full", strategy]
    turn = request.turns[0]
    drawn = tuple(picture(head("FLAIR"), image.label) for image in turn.images)
    return Message("system", request.system), Message("user", turn.text, drawn)


@pytest.mark.parametrize("strategy", ["direct", "cot"])
@pytest.mark.parametrize("name", MODELS)
def test_an_item_of_choice_is_answered_with_a_letter_in_the_strict_form(models, name, strategy):
    prediction = parse_answer(models[name].answer(messages(STROKE, strategy=strategy), seed=1, temperature=1.0), STROKE)
    assert prediction.parse_status is ParseStatus.STRICT
    assert prediction.choice in "ABC"
    assert 0 < prediction.confidence <= 1


@pytest.mark.parametrize("name", ["text", "fusion"])
def test_the_words_decide_and_the_place_of_an_option_does_not(models, name):
    for options in (OPTIONS, OPTIONS[::-1]):
        item = replace(STROKE, options=options)
        prediction = parse_answer(models[name].answer(messages(item), seed=1, temperature=0.0), item)
        assert prediction.differential == ("cerebral infarction",)


@pytest.mark.parametrize("name", MODELS)
def test_diagnoses_are_chosen_as_they_are_named_openly_in_every_order(models, name):
    """What is recognised and what is found differ by what the form does, not by two ways to read the case."""
    item = replace(STROKE, runner=Runner.OPEN, family=Family.DIFFERENTIAL_DIAGNOSIS, options=())
    first = parse_answer(models[name].answer(messages(item), seed=1, temperature=0.0), item).differential[0]
    rivals = tuple(option for option in ("meningioma", "glioblastoma", "multiple sclerosis", "migraine") if option != first)[:3]
    for options in ((first, *rivals), (*rivals, first)):
        item = replace(STROKE, options=options)
        prediction = parse_answer(models[name].answer(messages(item), seed=1, temperature=0.0), item)
        assert prediction.differential == (first,)


def test_the_image_baseline_draws_by_lot_where_options_are_no_diagnoses(models):
    """It reads no words, so its score on such items is chance, and it must not favour a letter."""
    shown = messages(replace(STROKE, options=("the left arm", "the right arm", "both legs")))
    for temperature in (0.0, 1.0):
        letters = Counter(models["image"].answer(shown, seed=seed, temperature=temperature)[8] for seed in range(150))
        assert set(letters) == set("ABC")
        assert min(letters.values()) > 30
    answers = {models["image"].answer(shown, seed=5, temperature=1.0) for _ in range(3)}
    assert len(answers) == 1
    assert "CONFIDENCE: 0.333" in answers.pop()


@pytest.mark.parametrize("name", MODELS)
def test_a_free_answer_is_an_abstention(models, name):
    prediction = parse_answer(models[name].answer(messages(open_question()), seed=1, temperature=1.0), open_question())
    assert prediction.abstained
    assert prediction.parse_status is ParseStatus.STRICT
    assert prediction.differential == ()


def test_options_are_read_from_the_form_and_not_from_a_quotation():
    item = question(notes="He was asked:\nOptions:\nA. left\nB. right\n\nQuestion: Which?", options=("one\ntwo", "B. three", "four"))
    read = read_choice(messages(item)[1].text)
    assert read.options == ("one\ntwo", "B. three", "four")
    assert read.question == item.question
    assert "He was asked" in read.case
    assert read_choice("What is it?").options == ()


@pytest.mark.parametrize("name", MODELS)
def test_examples_of_other_patients_are_not_read_as_words_and_pictures_of_this_one(models, name):
    example = exemplar(question("e1", "p2", notes="Slowly growing mass with a dural tail for years."))
    shown = messages(STROKE, strategy="few_shot", exemplars=[example])
    assert "dural tail" in shown[1].text
    assert without_examples(shown) == messages(STROKE)
    assert models[name].answer(shown, seed=1, temperature=1.0) == models[name].answer(messages(STROKE), seed=1, temperature=1.0)


def test_a_form_that_offers_no_options_is_an_abstention(models):
    broken = Message("user", f"{NOTES}\n\nAnswer in this form:\nANSWER: <the letter of one option>")
    assert re.match("ANSWER: undetermined\n", models["text"].answer((broken,), seed=1, temperature=0.0))
