"""Groups of items for which rates are reported: by subject, by presentation, and by tags of the data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuralmedbench.files.bids import OLDEST, UNKNOWN, Participant
from neuralmedbench.records.case import CT_SEQUENCES, Sequence
from neuralmedbench.records.items import DIAGNOSES, Gold, Item
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.tables.outcomes import Outcomes
from neuralmedbench.tables.study import Study

NORMAL = "normal"
"""Key of the vocabulary's entry for a scan without abnormality."""

SEVERAL = "several"

PICTURES = {"0": 0, "1": 1, "2 to 5": 5, "6 to 10": 10, "11 to 20": 20}
"""Groups by the number of pictures, with the largest number of each; beyond them: more than 20. (Our rule.)"""

AGES = {"0 to 17": 17, "18 to 39": 39, "40 to 59": 59, "60 to 74": 74}
"""Age groups with the last year of each; beyond them 75 and over, where ages of 89 and more are pooled too. (Our rule.)"""

DEMOGRAPHICS = ("age", "sex", "scanner", "field_strength")
SEXES = {"F": "female", "M": "male", "O": "other"}
NOMINAL_TESLA = (0.5, 1.0, 1.5, 3.0, 7.0)
TESLA_TOLERANCE = 0.12

Mask = npt.NDArray[np.bool_]


class ItemGroup(NamedTuple):
    """Some items: a slice and its value, and their mask, shape (items,)."""

    slice: str
    value: str
    mask: Mask


def demographics(participant: Participant) -> dict[str, str]:
    """Return the groups of a case by age, sex, scanner and field strength; empty where it is not recorded.

    A field strength close to a usual one is called by it (2.89 T: `3 T`).
    """
    age = participant.age.rstrip("+")
    years = OLDEST if participant.age.endswith("+") else int(age) if age.isdecimal() else None
    stated = participant.field_strength.replace(".", "", 1).isdecimal()
    tesla = float(participant.field_strength) if stated else None
    nominal = next((usual for usual in NOMINAL_TESLA if tesla is not None and abs(usual - tesla) <= TESLA_TOLERANCE), tesla)
    scanner, several = ("" if value == UNKNOWN else value for value in (participant.scanner, participant.field_strength))
    return {
        "age": "" if years is None else next((name for name, last in AGES.items() if years <= last), f"{max(AGES.values()) + 1} and over"),
        "sex": SEXES.get(participant.sex, ""),
        "scanner": scanner,
        "field_strength": several if nominal is None else f"{nominal:g} T",
    }


def item_groups(study: Study, outcomes: Outcomes) -> Iterator[ItemGroup]:
    """Yield the groups of a benchmark's items.

    Tags `name:value` of a data set are groups, for example `rarity:rare`. Language, modality, plane, number of pictures, age, sex, scanner
    and field strength are groups only where a set has several values. Sequence, plane and modality are those of the pictures, or of the reference where the
    pictures do not state them because they are asked for.
    """
    # one value per item for every grouping; an empty value is in no group
    pairs = list(zip(outcomes.items, outcomes.gold, strict=True))
    participants = study.benchmarks[outcomes.benchmark].participants
    people = [demographics(participants.get(item.case_id, Participant())) for item in outcomes.items]
    columns = {
        "family": [str(item.family) for item in outcomes.items],
        "level": [str(item.level) for item in outcomes.items],
        "disease_family": [study.vocabulary.disease_family(gold.answer) for gold in outcomes.gold],
        "diagnosis": [gold.answer if item.family in DIAGNOSES else "" for item, gold in pairs],
        "modality": _if_several([modality_of(item, gold) for item, gold in pairs]),
        "sequence": [sequence_of(item, gold) for item, gold in pairs],
        "plane": _if_several([plane_of(item, gold) for item, gold in pairs]),
        "pictures": _if_several([pictures_of(item) for item in outcomes.items]),
        "normal_control": ["true" if is_normal(gold, study.vocabulary) else "" for gold in outcomes.gold],
        "year": [item.date[:4] for item in outcomes.items],
        "language": _if_several([item.language for item in outcomes.items]),
        "lesion_shown": ["" if item.lesion_shown is None else str(item.lesion_shown).lower() for item in outcomes.items],
    }
    columns |= {name: _if_several([person[name] for person in people]) for name in DEMOGRAPHICS}
    for part, values in columns.items():
        for value in sorted(set(values) - {""}, key=_place):
            yield ItemGroup(part, value, np.array([entry == value for entry in values], dtype=bool))
    # tags `name:value` of the data set
    for tag in sorted({tag for item in outcomes.items for tag in item.tags if ":" in tag}):
        part, _, value = tag.partition(":")
        yield ItemGroup(part, value, np.array([tag in item.tags for item in outcomes.items], dtype=bool))


def _if_several(values: list[str]) -> list[str]:
    return values if len(set(values) - {""}) > 1 else [""] * len(values)


def _place(value: str) -> tuple[int, str]:
    """Sort key of groups: by name, numbers of pictures by number."""
    return (list(PICTURES).index(value) if value in PICTURES else len(PICTURES), value)


def _one_of(values: Iterable[str], kind: str) -> str:
    """Return the only value, `several_<kind>s`, or an empty string when there is none."""
    known = sorted({str(value) for value in values} - {"", Sequence.UNKNOWN})
    return "" if not known else known[0] if len(known) == 1 else f"{SEVERAL}_{kind}s"


def sequence_of(item: Item, gold: Gold) -> str:
    """Return the only sequence of an item's pictures, or `several_sequences`; that of the reference where it is asked for."""
    shown = _one_of((image.sequence for image in item.images), "sequence")
    return shown or (gold.fields.sequence or "" if gold.fields else "")


def plane_of(item: Item, gold: Gold) -> str:
    """Return the only plane of an item's pictures, or `several_planes`; that of the reference where it is asked for."""
    shown = _one_of((image.plane for image in item.images), "plane")
    return shown or (gold.fields.plane or "" if gold.fields else "")


def modality_of(item: Item, gold: Gold) -> str:
    """Return `MRI`, `CT` or `CT and MRI` by the sequences of an item's pictures; that of the reference where it is asked for; empty if not known."""
    known = {image.sequence for image in item.images} - {"", Sequence.UNKNOWN}
    shown = sorted({"CT" if sequence in CT_SEQUENCES else "MRI" for sequence in known})
    return " and ".join(shown) or (gold.fields.modality or "" if gold.fields else "")


def pictures_of(item: Item) -> str:
    """Return the group by the number of an item's pictures; a model's picture budget may send fewer."""
    return next((name for name, most in PICTURES.items() if len(item.images) <= most), f"more than {max(PICTURES.values())}")


def is_normal(gold: Gold, vocabulary: Vocabulary) -> bool:
    """Return True if a reference states that there is no abnormality."""
    found = vocabulary.of_whole_reference(gold.answer, gold.icd10)
    return found is not None and found.key == NORMAL
