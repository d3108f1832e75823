"""Age, sex and scanner of de-identified cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuralmedbench.files.bids import Participant, describe_participant, read_participants
from neuralmedbench.files.json_files import write_json
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.groups import demographics


def case_with(folder: Path, *sidecars: dict[str, object]) -> CaseRecord:
    """Write the sidecars of a case and a file that is no sidecar."""
    for number, content in enumerate(sidecars):
        write_json(folder / "anat" / f"scan{number}.json", content)
    write_json(folder / "anat" / "list.json", [1, 2])
    names = [*(f"anat/scan{number}.json" for number in range(len(sidecars))), "anat/list.json", "anat/gone.json"]
    return CaseRecord(benchmark="b", case_id="one", patient_id="p", stage="deidentify", files=dict.fromkeys(names, "0" * 64))


def test_the_scanner_is_read_from_the_sidecars_and_two_of_them_are_several(tmp_path: Path) -> None:
    first = {"Manufacturer": "Siemens", "ManufacturersModelName": "Prisma", "MagneticFieldStrength": 2.89}
    assert describe_participant(case_with(tmp_path, first, first), tmp_path) == Participant("n/a", "n/a", "Siemens Prisma", "2.89")
    other = {"Manufacturer": "GE", "MagneticFieldStrength": 1.5}
    assert describe_participant(case_with(tmp_path, first, other), tmp_path) == Participant("n/a", "n/a", "several", "several")
    assert describe_participant(case_with(tmp_path, {"EchoTime": 0.1}), tmp_path) == Participant()


def test_a_table_of_an_earlier_version_has_unknown_scanners(tmp_path: Path) -> None:
    write_text(tmp_path / "participants.tsv", "participant_id\tpatient_id\tage\tsex\tstate\nsub-one\tp\t89+\tF\tok\n")
    assert read_participants(tmp_path / "participants.tsv") == {"one": Participant(age="89+", sex="F")}


@pytest.mark.parametrize(
    ("age", "group"),
    [
        ("17", "0 to 17"),
        ("18", "18 to 39"),
        ("59", "40 to 59"),
        ("74", "60 to 74"),
        ("75", "75 and over"),
        ("89+", "75 and over"),
        ("n/a", ""),
    ],
)
def test_ages_of_89_and_more_stay_in_one_group_with_others(age: str, group: str) -> None:
    assert demographics(Participant(age=age))["age"] == group


@pytest.mark.parametrize(
    ("stated", "group"), [("3", "3 T"), ("2.89", "3 T"), ("1.494", "1.5 T"), ("0.35", "0.35 T"), ("several", "several"), ("n/a", "")]
)
def test_a_field_strength_has_its_usual_name(stated: str, group: str) -> None:
    assert demographics(Participant(field_strength=stated))["field_strength"] == group


def test_nothing_recorded_is_in_no_group() -> None:
    assert set(demographics(Participant()).values()) == {""}
