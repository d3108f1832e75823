"""Rows of `participants.tsv` and `sessions.tsv` meet the subjects and sessions that they describe, and what does not meet is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.deid import write_config
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.ingest.listing import find_cases

FOUND = os.environ.get("NMB_FOUND_INPUTS", "")
NIFTI = b"\0" * 344 + b"n+1\0" + b"\0" * 192


def data_set(root: Path, table: str, *names: str) -> Path:
    """Write the smallest files that a listing takes for scans of a BIDS data set."""
    for name in names:
        folder = root.joinpath(*(part for part in name.split("_") if part.startswith(("sub-", "ses-"))), "anat")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}_T1w.nii").write_bytes(NIFTI)
    (root / "dataset_description.json").write_text("{}", encoding="utf-8")
    (root / "participants.tsv").write_text(table, encoding="utf-8")
    return root


def facts(root: Path) -> dict[str, tuple[str, str]]:
    return {case.study: (case.facts.get("age", ""), case.facts.get("sex", "")) for case in find_cases(root).cases}


def notices(root: Path) -> str:
    return "\n".join(notice.text for notice in find_cases(root).notices)


@pytest.mark.skipif(not FOUND, reason="NMB_FOUND_INPUTS names no folder of inputs")
def test_each_session_of_the_given_data_set_has_its_age_and_each_row_is_accounted_for() -> None:
    root = Path(FOUND) / "06-participants" / "scans"
    ages = {"sub-0050772": ("58", "F"), "sub-0050774/ses-1": ("61", "F"), "sub-0050774/ses-2": ("62", "F")}
    assert facts(root) == ages
    assert notices(root).splitlines() == [
        "participants.tsv: 1 row (line 5) met no subject with scans",
        "participants.tsv: 1 row (line 2) met a subject by number, because the ids are spelled differently",
    ]


@pytest.mark.parametrize("written", ["50772", "0050772", "SUB-0050772", "sub-50772 ", "sub_0050772", "50772.0"])
def test_an_id_meets_its_subject_however_it_is_spelled(tmp_path: Path, written: str) -> None:
    root = data_set(tmp_path, f"participant_id\tage\n{written}\t58\n", "sub-0050772")
    assert facts(root) == {"sub-0050772": ("58", "")}
    assert "met a subject by number" in notices(root)


@pytest.mark.parametrize("separator", ["\t", ";", ","])
@pytest.mark.parametrize(
    "titles", [("participant_id", "Age", "Sex"), ("Participant_ID", "age_years", "GENDER"), ("participant_id", "AGE", "gender")]
)
def test_columns_and_separators_of_other_programs_are_read(tmp_path: Path, separator: str, titles: tuple[str, ...]) -> None:
    table = "\n".join(separator.join(row) for row in (titles, ("sub-01", "058Y", "F"), ("sub-02", "7", "M")))
    root = data_set(tmp_path, f"\ufeff{table}\n", "sub-01", "sub-02")
    assert facts(root) == {"sub-01": ("58", "F"), "sub-02": ("7", "M")}
    assert notices(root) == ""


@pytest.mark.parametrize(
    "table",
    [
        "participant_id\tsession_id\tage\nsub-01\tses-1\t61\nsub-01\tses-2\t62\n",
        "participant_id\tsession_id\tage\nsub-01\t2\t62\nsub-01\t01\t61\n",
        "participant_id\tage\nsub-01_ses-1\t61\nsub-01_ses-2\t62\n",
        "participant_id\tage\nsub-01\t60\n",
    ],
    ids=["session_id", "bare numbers", "subject and session in one", "sessions.tsv"],
)
def test_two_sessions_have_their_two_ages(tmp_path: Path, table: str) -> None:
    root = data_set(tmp_path, table, "sub-01_ses-1", "sub-01_ses-2")
    if "ses" not in table:
        (root / "sub-01" / "sub-01_sessions.tsv").write_text("session_id\tage\nses-1\t61\nses-2\t62\n", encoding="utf-8")
    assert facts(root) == {"sub-01/ses-1": ("61", ""), "sub-01/ses-2": ("62", "")}


def test_rows_that_disagree_without_naming_their_session_are_not_used(tmp_path: Path) -> None:
    root = data_set(tmp_path, "participant_id\tage\tsex\nsub-01\t61\tF\nsub-01\t62\tF\n", "sub-01_ses-1", "sub-01_ses-2")
    assert facts(root) == {"sub-01/ses-1": ("", "F"), "sub-01/ses-2": ("", "F")}
    assert "2 of 2 cases met rows with different ages or sexes, which were not used" in notices(root)


def test_a_row_that_fits_two_subjects_is_not_guessed(tmp_path: Path) -> None:
    root = data_set(tmp_path, "participant_id\tage\n8\t61\n", "sub-08", "sub-8")
    assert facts(root) == {"sub-08": ("", ""), "sub-8": ("", "")}
    assert "1 row (line 2) met several subjects" in notices(root)
    (root / "participants.tsv").write_text("participant_id\tage\nsub-8\t61\nsub-08\t62\n", encoding="utf-8")
    assert facts(root) == {"sub-08": ("62", ""), "sub-8": ("61", "")}
    assert notices(root) == ""


@pytest.mark.parametrize("rows", ["8\t61\n08\t62\n", "sub-008\t61\n8\t62\n"])
def test_two_rows_that_meet_one_subject_by_number_are_not_guessed(tmp_path: Path, rows: str) -> None:
    root = data_set(tmp_path, f"participant_id\tage\n{rows}", "sub-008")
    assert facts(root)["sub-008"][0] == ("61" if "sub-" in rows else "")
    assert "were not used" in notices(root)


def test_codes_are_unknown_and_named_but_words_are_not_repeated(tmp_path: Path) -> None:
    rows = ["sub-01\t999\t1", "sub-02\t-4\t2", "sub-03\tn/a\tn/a", "sub-04\tVandermeer\t0", "sub-05\t-1\tF"]
    root = data_set(tmp_path, "\n".join(("participant_id\tage\tsex", *rows)), *(row.split("\t")[0] for row in rows))
    assert set(facts(root).values()) == {("", ""), ("", "F")}
    assert "4 rows (line 2, 3, 5, 6) held the codes -4, -1, 999 in column age, which count as unknown" in notices(root)
    assert "3 rows (line 2, 3, 5) held the codes 0, 1, 2 in column sex, which count as unknown; expected a word" in notices(root)
    assert "Vandermeer" not in notices(root)


def test_subjects_without_a_row_are_named_by_case_id_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = data_set(tmp_path / "source", "participant_id\tage\nsub-01\t61\nsub-77\t62\n", "sub-01", "sub-48213371")
    config = write_config(tmp_path / "config", source)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    indexes = [read_raw_index(path) for path in (tmp_path / "data" / "raw" / "mine").glob("*/files.json")]
    (without,) = (index.case_id for index in indexes if index.record is None)
    shown = capsys.readouterr().out.splitlines()[1:]
    assert shown == [
        "participants.tsv: 1 row (line 3) met no subject with scans",
        f"participants.tsv: 1 of 2 cases met no row: {without}",
    ]


@pytest.mark.parametrize("content", [b"id\tage\nsub-01\t61\n", b"", b"\x00\xff" * 50])
def test_a_table_without_ids_is_named(tmp_path: Path, content: bytes) -> None:
    root = data_set(tmp_path, "", "sub-01")
    (root / "participants.tsv").write_bytes(content)
    assert facts(root) == {"sub-01": ("", "")}
    assert notices(root) == "participants.tsv was not used: expected a table with the column participant_id"
