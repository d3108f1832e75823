"""Groups of items in the topic `rates`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.scoring import vocabulary
from fixtures.tables import BREADTH, DEPTH, item, score
from neuralmedbench.recording.trace import PARTS
from neuralmedbench.records.items import Family, Gold, GoldFields, Item, ItemImage, Level, Runner
from neuralmedbench.tables.groups import item_groups, pictures_of
from neuralmedbench.tables.outcomes import gather_outcomes

VOCABULARY = vocabulary()


def picture(sequence: str, plane: str = "axial") -> ItemImage:
    return ItemImage(
        image_id="i", path="i.png", sha256="0" * 64, volume_sha256="", sequence=sequence, plane=plane, role="slice", position_mm=None,
        mm_per_px=None, oracle=False,
    )  # fmt: skip


def asked(number: int, *images: ItemImage, runner: Runner = Runner.OPEN, tags: tuple[str, ...] = ()) -> Item:
    family = Family.CLASSIFICATION if runner is Runner.STRUCTURED else Family.DIFFERENTIAL_DIAGNOSIS
    base = item(BREADTH if runner is Runner.STRUCTURED else DEPTH, f"c{number}", f"p{number}", family, level=Level.DIRECT, runner=runner)
    return replace(base, images=images, tags=tags)


ITEMS = [
    asked(0, picture("CT"), picture("ceCT", "coronal"), tags=("rarity:rare",)),
    asked(1, *[picture("FLAIR")] * 6),
    asked(2, picture("FLAIR"), picture("T1w")),
    asked(3, picture("CT"), *[picture("T1w")] * 20, tags=("rarity:rare",)),
    asked(4),
]
ANSWERS = ["intracerebral haemorrhage", "glioblastoma", "meningioma", "normal brain", "a disease that nobody knows"]


def groups(items: list[Item], gold: list[Gold]) -> dict[tuple[str, str], list[int]]:
    scores = {"m": [score(one, "m", passed=True) for one in items]}
    outcomes = gather_outcomes("b", "depth", items, gold, scores=scores, sampled={"m": True})
    study = SimpleNamespace(vocabulary=VOCABULARY, benchmarks={"b": SimpleNamespace(participants={})})
    return {(part, value): np.flatnonzero(mask).tolist() for part, value, mask in item_groups(study, outcomes)}


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[int]]:
    return groups(ITEMS, [Gold(item_id=one.item_id, answer=answer) for one, answer in zip(ITEMS, ANSWERS, strict=True)])


def test_items_are_grouped_by_what_their_pictures_show(found: dict[tuple[str, str], list[int]]) -> None:
    assert {key: place for key, place in found.items() if key[0] in ("modality", "sequence", "plane")} == {
        ("modality", "CT"): [0], ("modality", "CT and MRI"): [3], ("modality", "MRI"): [1, 2],
        ("sequence", "FLAIR"): [1], ("sequence", "several_sequences"): [0, 2, 3],
        ("plane", "axial"): [1, 2, 3], ("plane", "several_planes"): [0],
    }  # fmt: skip


def test_what_all_items_share_is_no_group() -> None:
    alike = groups(ITEMS[1:3], [Gold(item_id=one.item_id, answer="glioblastoma") for one in ITEMS[1:3]])
    assert {part for part, _ in alike} == {"family", "level", "disease_family", "diagnosis", "sequence", "pictures", "lesion_shown"}


def test_numbers_of_pictures_stand_in_the_order_of_the_numbers(found: dict[tuple[str, str], list[int]]) -> None:
    own = [(value, place) for (part, value), place in found.items() if part == "pictures"]
    assert own == [("0", [4]), ("2 to 5", [0, 2]), ("6 to 10", [1]), ("more than 20", [3])]
    assert [pictures_of(asked(0, *[picture("CT")] * number)) for number in (1, 2, 5, 6, 20)] == [
        "1",
        "2 to 5",
        "2 to 5",
        "6 to 10",
        "11 to 20",
    ]


def test_a_disease_belongs_to_the_widest_term_above_it(found: dict[tuple[str, str], list[int]]) -> None:
    assert {key: place for key, place in found.items() if key[0] == "disease_family"} == {
        ("disease_family", "stroke"): [0], ("disease_family", "brain tumour"): [1, 2], ("disease_family", "normal brain"): [3],
    }  # fmt: skip
    assert VOCABULARY.disease_family("stroke") == "stroke"
    assert VOCABULARY.disease_family("no such disease") == ""


def test_normal_controls_and_tags_of_rarity_are_groups(found: dict[tuple[str, str], list[int]]) -> None:
    assert found["normal_control", "true"] == [3]
    assert found["rarity", "rare"] == [0, 3]


def test_what_is_asked_for_is_grouped_by_the_reference() -> None:
    labels = [("MRI", "T1", "axial"), ("MRI", "FLAIR", "coronal"), ("CT", None, "axial")]
    items = [asked(number, picture("unknown", ""), runner=Runner.STRUCTURED) for number in range(3)]
    gold = [
        Gold(
            item_id=one.item_id,
            answer="tumor",
            fields=GoldFields(modality=modality, sequence=sequence, plane=plane, diagnosis_class="tumor"),
        )
        for one, (modality, sequence, plane) in zip(items, labels, strict=True)
    ]
    found = groups(items, gold)
    assert (found["modality", "CT"], found["modality", "MRI"]) == ([2], [0, 1])
    assert (found["sequence", "T1"], found["sequence", "FLAIR"]) == ([0], [1])
    assert (found["plane", "axial"], found["plane", "coronal"]) == ([0, 2], [1])
    assert found["disease_family", "brain tumour"] == [0, 1, 2]
    assert [key for key in found if key[0] == "pictures"] == []
    assert ("sequence", "unknown") not in found


def test_a_traced_number_of_a_sequence_is_counted_over_the_same_items(found: dict[tuple[str, str], list[int]]) -> None:
    gold = Gold(item_id="", answer="", fields=GoldFields(sequence="T2"))
    told = [PARTS["sequence"](one, replace(gold, fields=None)) for one in ITEMS]
    assert {name: [place for place, value in enumerate(told) if value == name] for name in set(told) - {""}} == {
        value: place for (part, value), place in found.items() if part == "sequence"
    }
    assert PARTS["sequence"](asked(0, picture("unknown", "")), gold) == "T2"
