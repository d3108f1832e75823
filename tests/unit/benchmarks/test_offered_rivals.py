"""Rivals of a reference: each diagnosis is offered five times as often as it is right, and no two of five are near each other."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from conftest import ROOT
from fixtures.items import answer, benchmark_config, source
from fixtures.prompt import asked, open_question, said
from fixtures.scoring import vocabulary
from neuralmedbench.benchmarks.answer_leaks import sent_texts_of
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.rivals import add_rivals, kind_of, nearness, rival_places
from neuralmedbench.benchmarks.told_by_arms import add_shown_by_arms
from neuralmedbench.config.arms import load_arms
from neuralmedbench.demo.cohort import read_cohort
from neuralmedbench.records.arm_changes import in_form, right_letter
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner

GOLDEN = ROOT / "tests/golden/rivals.json"
DIFFERENT = ("glioblastoma", "multiple sclerosis", "herpes simplex encephalitis", "Alzheimer disease", "normal brain", "migraine")


def set_of(names: list[str], patients: list[str] | None = None) -> BenchmarkItems:
    """Give one open question for a diagnosis of each name."""
    items = [
        open_question(f"c{place}", patients[place] if patients else f"p{place}", family=Family.DIFFERENTIAL_DIAGNOSIS)
        for place in range(len(names))
    ]
    return BenchmarkItems(tuple(items), tuple(Gold(item_id=item.item_id, answer=name) for item, name in zip(items, names, strict=True)))


def rivals_of(names: list[str]) -> list[tuple[str, ...]]:
    """Give the names that each case is offered."""
    built, lacking = add_rivals(set_of(names), vocabulary())
    assert lacking == ""
    return [item.rivals for item in built.items]


def test_the_rivals_of_the_twelve_phantoms_are_frozen() -> None:
    cohort = read_cohort()
    built = set_of([patient.diagnosis for patient in cohort])
    made, _ = add_rivals(built, vocabulary())
    found = {patient.key: list(item.rivals) for patient, item in zip(cohort, made.items, strict=True)}
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("names", [[*DIFFERENT], [*DIFFERENT, "glioblastoma", "multiple sclerosis", "normal brain", "migraine"] * 2])
def test_each_diagnosis_is_offered_five_times_as_often_as_it_is_right(names: list[str]) -> None:
    rivals = rivals_of(names)
    assert all(name in own and len(set(own)) == 5 for name, own in zip(names, rivals, strict=True))
    right, offered = Counter(names), Counter(name for own in rivals for name in own)
    assert offered == {name: 5 * number for name, number in right.items()}


def test_no_two_of_five_are_synonyms_wider_narrower_or_siblings() -> None:
    words = vocabulary()
    names = [
        "glioblastoma",
        "GBM",
        "glioma",
        "meningioma",
        *DIFFERENT[1:],
        "stroke",
        "neurosarcoidosis",
        "idiopathic intracranial hypertension",
    ]
    names += ["an illness outside", "another illness outside", "a third one", "a fourth one"]
    near = nearness([kind_of(Gold(item_id="x", answer=name), words) for name in names], range(len(names)), words)
    assert near[:4, :4].tolist() == [[True] * 3 + [False], [True] * 3 + [False], [True] * 4, [False, False, True, True]]
    for own in rivals_of(names):
        places = [names.index(name) for name in own]
        assert near[np.ix_(places, places)].sum() == 5


def test_a_patient_lends_no_reference_to_another_case_of_that_patient() -> None:
    names = [*DIFFERENT, "an illness outside"]
    apart, _ = add_rivals(set_of(names), vocabulary())
    assert any(names[0] in item.rivals and names[6] in item.rivals for item in apart.items)
    made, _ = add_rivals(set_of(names, ["p0", "p1", "p2", "p3", "p4", "p5", "p0"]), vocabulary())
    assert not any(names[0] in item.rivals and names[6] in item.rivals for item in made.items)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([*DIFFERENT[:4]], "it needs 5 different diagnoses, found 4"),
        ([*DIFFERENT, "glioblastoma"], "2 of 7 cases have one diagnosis, expected at most a fifth"),
        (["glioblastoma", "glioma", "meningioma", *DIFFERENT[1:3]], "too many of the 5 diagnoses are near each other in the vocabulary"),
    ],
)
def test_without_rivals_nothing_is_asked_as_a_choice_and_one_line_says_why(
    names: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = load_arms(ROOT / "config", ["choice-1"], "b").values()
    made = add_shown_by_arms(set_of(names), arms, vocabulary())
    assert not any(item.rivals for item in made.items)
    assert capsys.readouterr().err == f"b: no question is asked as a choice: {reason}; take the arm out, or add cases\n"


def test_without_an_arm_that_offers_them_no_item_has_rivals() -> None:
    built = set_of([*DIFFERENT])
    assert add_shown_by_arms(built, load_arms(ROOT / "config", ["blank_image"], "b").values(), vocabulary()) == built


def test_only_open_questions_for_a_diagnosis_get_and_lend_rivals() -> None:
    built = set_of([*DIFFERENT])
    others = [
        open_question("lesion", "p20", family=Family.LESION_RECOGNITION),
        open_question("told", "p21", family=Family.DIFFERENTIAL_DIAGNOSIS, given="stroke"),
        open_question("free", "p22"),
    ]
    gold = [Gold(item_id=item.item_id, answer="stroke") for item in others]
    made, _ = add_rivals(replace(built, items=(*built.items, *others), gold=(*built.gold, *gold)), vocabulary())
    assert [bool(item.rivals) for item in made.items] == [True] * 6 + [False] * 3
    assert "stroke" not in {name for item in made.items for name in item.rivals}


def test_rivals_that_the_answers_table_names_are_the_options() -> None:
    named = answer("a1", diagnosis="GBM", rivals=("migraine", "normal brain"))
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], {"a1": named, "a2": answer("a2")}, vocabulary())
    made, lacking = add_rivals(built, vocabulary())
    by_id = {item.item_id: item for item in made.items}
    item = by_id["b/a1/differential_diagnosis"]
    assert item.rivals == ("GBM", "migraine", "normal brain")
    assert (lacking, by_id["b/a2/differential_diagnosis"].rivals) == ("", ())
    gold = next(row for row in made.gold if row.item_id == item.item_id)
    assert right_letter(in_form(item, "choice-1"), gold) == "A"


def test_a_draw_that_leaves_no_place_is_made_again() -> None:
    near = np.eye(10, dtype=bool) | np.kron(np.eye(5, dtype=bool), np.ones((2, 2), dtype=bool))
    for seed in range(20):
        places = rival_places(near, seed)
        assert places is not None
        for case, own in enumerate(places.tolist()):
            assert not near[np.ix_([case, *own], [case, *own])][~np.eye(5, dtype=bool)].any()


def dialogue(item: Item) -> Item:
    """Give the dialogue of a case."""
    built = build_cases("b", benchmark_config(), [source("a2")], {"a2": answer("a2", level=Level.DIALOGUE)}, vocabulary())
    return replace(built.items[0], rivals=item.rivals)


def test_a_dialogue_is_asked_as_a_choice_in_one_message_with_all_that_its_rounds_reveal() -> None:
    item = dialogue(open_question(rivals=DIFFERENT[:5]))
    shown = in_form(item, "choice-2")
    assert (shown.runner, shown.turns, shown.options) == (Runner.CHOICE, (), DIFFERENT[:5])
    assert shown.question == "What is the most likely diagnosis?"
    assert all(turn.reveal in shown.notes for turn in item.turns)
    assert in_form(item, "full") is item


@pytest.mark.parametrize("level", [Level.DIRECT, Level.DIALOGUE])
def test_printed_rivals_are_no_leak_and_no_other_arm_shows_them(level: Level) -> None:
    named = answer("a1", diagnosis="GBM", rivals=("migraine", "neurosarcoidosis"), level=level)
    built = build_cases("b", benchmark_config(), [source("a1")], {"a1": named}, vocabulary())
    arms = ["full", "no_image", "choice-1", "choice-2", "choice-3", "choice-4"]
    rows = [row for (item, _, _), row in asked(built.items, arms=arms).items() if item == "a1/differential_diagnosis"]
    assert {row.arm for row in rows if "neurosarcoidosis" in said(row)} == set(arms[2:])
    places = sent_texts_of(built.items[0], rows)
    assert not any(name in place.text for place in places.values() for name in ("GBM", "migraine", "neurosarcoidosis"))
