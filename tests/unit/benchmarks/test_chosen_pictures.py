"""Pictures that arms show instead of those of an item: of a patient with another disease, or without the lesion."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, slice_row, source
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.gold import findings_of_others
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.told_by_arms import add_chosen_pictures, pictures_of_others
from neuralmedbench.config.arms import load_arms
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.prompts.arms import donors_of
from neuralmedbench.records.items import Disclosure

DISEASES = ("brain infarction", "glioblastoma", "normal brain")


def built(*cases: tuple[str, str], arms: tuple[str, ...] = ("image_of_another", "lesion_left_out"), **sources) -> BenchmarkItems:
    """Build the items of cases with their diagnoses, and what the arms show; `sources` exchanges cases by name."""
    made = [sources.get(case) or source(case) for case, _ in cases]
    answers = {case: answer(case, diagnosis=diagnosis, rationale=()) for case, diagnosis in cases}
    items = build_cases("b", benchmark_config(), made, answers, VOCABULARY)
    return add_chosen_pictures(items, load_arms(ROOT / "config", arms, "b").values(), VOCABULARY)


def rows_of(found: BenchmarkItems, arm: str) -> dict[str, Disclosure]:
    return {row.item_id: row for row in found.disclosures if row.arm == arm}


def test_the_donor_is_another_patient_with_a_disease_of_another_family_and_has_the_same_question():
    found = built(*((f"c{number:02d}", DISEASES[number % 3]) for number in range(12)))
    gold, items = {row.item_id: row for row in found.gold}, {item.item_id: item for item in found.items}
    rows = rows_of(found, "image_of_another")
    assert set(rows) == set(items)
    for item_id, row in rows.items():
        own, donor = items[item_id], items[row.images_of]
        assert own.patient_id != donor.patient_id
        assert VOCABULARY.disease_family(gold[item_id].answer) != VOCABULARY.disease_family(gold[row.images_of].answer)
        assert (own.family, own.runner) == (donor.family, donor.runner)
        assert [(image.sequence, image.plane) for image in own.images] == [
            (image.sequence, image.plane) for image in donor.images if image.image_id in row.images
        ]


def test_the_same_donors_are_chosen_in_every_order_of_the_cases_and_no_patient_lends_to_all():
    cases = [(f"c{number:02d}", DISEASES[number % 3]) for number in range(30)]
    rows = rows_of(built(*cases), "image_of_another")
    assert rows == rows_of(built(*reversed(cases)), "image_of_another")
    lent = Counter(row.images_of for row in rows.values())
    assert max(lent.values()) <= 6, "of the 60 items of 30 patients"


def test_a_patient_without_the_sequence_lends_none_and_of_a_larger_stack_as_many_as_the_item_has():
    flair = tuple(slice_row("c2", position) for position in (-30, -10, 10, 30))
    found = built(("c1", "glioblastoma"), ("c2", "brain infarction"), c2=replace(source("c2"), images=flair))
    rows = {item.split("/")[1]: row.images for item, row in rows_of(found, "image_of_another").items()}
    assert rows["c1"] == ("flair-z-030", "flair-z+010"), "two of FLAIR, evenly spaced, and nothing of dwi"
    other = built(("c1", "glioblastoma"), ("c2", "brain infarction"), c2=replace(source("c2"), images=(slice_row("c2", 0, "T2w"),)))
    assert rows_of(other, "image_of_another") == {}


def test_a_donor_whose_lesion_was_missed_is_the_last_choice():
    missed = replace(
        source("c2"), images=tuple(slice_row("c2", position, sequence) for sequence in ("FLAIR", "dwi") for position in (60, 70))
    )
    few = replace(source("c3"), images=(slice_row("c3", 20),))
    cases = (("c1", "glioblastoma"), ("c2", "brain infarction"), ("c3", "brain infarction"))
    found = built(*cases, c2=missed, c3=few)
    assert {item.lesion_shown for item in found.items if item.case_id == "c2"} == {False}
    assert {row.images_of.split("/")[1] for item, row in rows_of(found, "image_of_another").items() if "/c1/" in item} == {"c3"}


class CountedId(str):
    """The id of a patient that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedId.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        CountedId.compared += 1
        return str.__ne__(self, other)

    __hash__ = str.__hash__


DONORS = {
    "pictures": lambda items, found: pictures_of_others(items, {row.item_id: row for row in found.gold}, VOCABULARY, "image_of_another"),
    "findings": lambda items, found: findings_of_others(items, {row.item_id: row for row in found.gold}, found.disclosures, VOCABULARY),
    "shuffled": lambda items, _: donors_of(items).values(),
}


@pytest.mark.parametrize("what", DONORS)
def test_the_search_for_donors_compares_as_many_patients_as_there_are_items_and_not_all_pairs(what):
    compared = []
    for number in (40, 160):
        found = built(*((f"c{case:03d}", DISEASES[case % 3]) for case in range(number)), arms=())
        items = [replace(item, patient_id=CountedId(item.patient_id)) for item in found.items]
        CountedId.compared = 0
        assert len(list(DONORS[what](items, found))) >= number
        compared.append(CountedId.compared)
    assert compared[1] <= 6 * compared[0], "four times the items; all pairs would be 16 times"


@pytest.mark.parametrize("diagnosis", ["glioblastoma", "a disease of its own"])
def test_the_same_family_and_unknown_diagnoses_lend_no_pictures(diagnosis):
    assert rows_of(built(("c1", "glioblastoma"), ("c2", diagnosis)), "image_of_another") == {}


def test_two_patients_with_the_same_picture_do_not_lend_it_to_each_other():
    same = replace(source("c2"), images=source("c1").images)
    assert rows_of(built(("c1", "glioblastoma"), ("c2", "brain infarction"), c2=same), "image_of_another") == {}


def test_the_pictures_without_the_lesion_are_all_others_of_the_item():
    rows = rows_of(built(("c1", "glioblastoma")), "lesion_left_out")
    # the lesion is at z = 15 mm and 20 mm wide; slices at -10 and 20 mm
    assert {row.images for row in rows.values()} == {("flair-z-010", "dwi-z-010")}
    assert all(row.images_of == item for item, row in rows.items())


def test_items_whose_lesion_is_on_all_pictures_on_none_or_unknown_keep_theirs():
    for positions in ((15, 20), (-30, 60)):
        images = tuple(slice_row("c1", position) for position in positions)
        assert rows_of(built(("c1", "glioblastoma"), c1=replace(source("c1"), images=images)), "lesion_left_out") == {}
    items = build_cases("b", benchmark_config(), [source("c1")], {"c1": answer("c1", lesion_position_mm=None)}, VOCABULARY)
    arms = load_arms(ROOT / "config", ["lesion_left_out"], "b")
    assert add_chosen_pictures(items, arms.values(), VOCABULARY).disclosures == items.disclosures


def test_disclosures_of_before_are_still_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "disclosures.parquet"
    write_records(path, Disclosure, [Disclosure(item_id="b/q", arm="findings_disclosed", text="- a")], key=lambda row: row.item_id)
    table = pq.read_table(path).drop_columns(["images", "images_of"])
    pq.write_table(table.replace_schema_metadata({"record": "Disclosure", "schema_version": "5"}), path)
    assert read_records(path, Disclosure) == [Disclosure(item_id="b/q", arm="findings_disclosed", text="- a", images=(), images_of="")]
    pq.write_table(pa.table(table.to_pydict()).replace_schema_metadata({"record": "Disclosure", "schema_version": "8"}), path)
    with pytest.raises(Exception, match="columns do not fit"):
        read_records(path, Disclosure)
