"""A wrong diagnosis that is like the right one: one rule for planted errors and for a colleague's suggestion."""

from __future__ import annotations

import pytest

from conftest import ROOT
from fixtures.prompt import open_question
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.arm_changes import DENIAL, suggestion_words, wrong_gold
from neuralmedbench.records.items import Family, Gold, GoldFields, Item, Lesion, Runner
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.planted.edits import Reference, right_answer, rival

NEUROLOGY = read_vocabulary(ROOT / "config/vocabulary/neurology.yaml")


def diagnosis(name: str, number: int = 1) -> tuple[Item, Gold]:
    """Give an item whose answer is a diagnosis."""
    item = open_question(f"q{number}", family=Family.DIFFERENTIAL_DIAGNOSIS)
    return item, Gold(item_id=item.item_id, answer=name)


def test_no_suggested_rival_is_the_reference_or_wider_or_narrower_and_most_diagnoses_have_one() -> None:
    without = []
    for entry in NEUROLOGY.diagnoses.values():
        item, gold = diagnosis(entry.name)
        wrong = wrong_gold(item, gold, NEUROLOGY)
        if wrong is None:
            without.append(entry.name)
            continue
        found = relation(wrong.answer, ReferenceAnswer.of(gold, NEUROLOGY))
        assert found in {Relation.SIBLING, Relation.UNRELATED}, (entry.name, wrong.answer, found)
        assert not DENIAL.search(wrong.answer)
    assert len(without) < len(NEUROLOGY.diagnoses) / 4, without


def test_a_suggestion_and_a_planted_error_name_the_same_rival() -> None:
    same = 0
    for entry in list(NEUROLOGY.diagnoses.values())[:60]:
        item, gold = diagnosis(entry.name)
        reference = Reference(item, gold, NEUROLOGY)
        planted = rival(right_answer(reference), reference)
        wrong = wrong_gold(item, gold, NEUROLOGY)
        if planted is not None and wrong is not None:
            same += planted.names[0] == wrong.answer
            # graders know more names of the reference, so a planted rival may be another one, but never a right one
            assert relation(planted.names[0], ReferenceAnswer.of(gold, NEUROLOGY)) not in RIGHT
    assert same > 30


def test_items_of_one_disease_have_different_rivals() -> None:
    found = {wrong.answer for number in range(40) if (wrong := wrong_gold(*diagnosis("glioblastoma", number), NEUROLOGY))}
    assert len(found) > 1


def test_an_alias_of_the_reference_is_no_rival() -> None:
    names = {wrong.answer for number in range(60) if (wrong := wrong_gold(*diagnosis("glioblastoma", number), NEUROLOGY))}
    known = min(names)
    for number in range(60):
        item, gold = diagnosis("glioblastoma", number)
        wrong = wrong_gold(item, Gold(item_id=gold.item_id, answer=gold.answer, aliases=(known,)), NEUROLOGY)
        assert wrong is not None
        assert wrong.answer != known


@pytest.mark.parametrize("side", ["midline", "bilateral", ""])
def test_another_place_of_a_lesion_is_not_within_the_right_one_nor_around_it(side: str) -> None:
    around = NEUROLOGY.regions.around
    for place in NEUROLOGY.locations:
        item = open_question(place.replace(" ", ""), family=Family.LESION_RECOGNITION)
        gold = Gold(item_id=item.item_id, answer="infarct", lesion=Lesion(location=place, side=side, behaviour={}))
        wrong = wrong_gold(item, gold, NEUROLOGY)
        assert wrong is not None
        assert wrong.lesion is not None
        assert wrong.lesion.location != place
        names = NEUROLOGY.regions.names
        for one in names.get(place, ()):
            assert not any(one in around[other] or other in around[one] for other in names.get(wrong.lesion.location, ()))


def test_the_other_side_of_a_lesion_keeps_its_place() -> None:
    item = open_question(family=Family.LESION_RECOGNITION)
    gold = Gold(item_id=item.item_id, answer="infarct", lesion=Lesion(location="insula", side="left", behaviour={}))
    wrong = wrong_gold(item, gold, NEUROLOGY)
    assert wrong is not None
    assert (suggestion_words(item, gold), suggestion_words(item, wrong)) == (
        "a lesion in the insula, on the left",
        "a lesion in the insula, on the right",
    )


def test_another_class_is_one_that_the_form_offers() -> None:
    schema = '{"properties": {"class": {"enum": ["tumor", "stroke", "normal", null]}}}'
    for number in range(10):
        item = open_question(f"q{number}", runner=Runner.STRUCTURED, answer_schema=schema)
        wrong = wrong_gold(item, Gold(item_id=item.item_id, answer="stroke", fields=GoldFields(diagnosis_class="stroke")), NEUROLOGY)
        assert wrong is not None
        assert suggestion_words(item, wrong) in {'"class": "tumor"', '"class": "normal"'}
