"""One series never becomes several patients, and studies that may be one visit are named; a person joins both in `files.csv`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.deid import write_config, write_dicom_series
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.dicom import read_dicom
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.ingest.cases import ingest_case, new_case
from neuralmedbench.ingest.persons_labels import NamedKinds
from neuralmedbench.records.case import State

FOUND = Path(os.environ.get("NMB_FOUND_INPUTS", ""))
given = pytest.mark.skipif(not os.environ.get("NMB_FOUND_INPUTS"), reason="NMB_FOUND_INPUTS names no folder of inputs")
IDS = "MRN0047291", "mrn0047291", "MRN 47291 ", "MRN^0047291", "MRN0047291\0"
NAMES = "Vandermeer", "VANDERMEER", "Johanna", "47291"
HELD_BACK = "one series names several patients: 1 case of 6 files is held back"
ONE_VISIT = "several studies may be one visit (same patient and day, same accession number or frame of reference), and are not joined"


def relabel(paths: list[Path], tags: Callable[[int], dict[str, Any]]) -> None:
    """Set elements of files, by their place in a series."""
    for place, path in enumerate(paths):
        image: Any = read_dicom(path)
        for keyword, value in tags(place).items():
            setattr(image, keyword, value)
        image.save_as(path)


def one_series(folder: Path, *ids: str, name: str = "Vandermeer^Johanna", **tags: Any) -> list[Path]:
    """Write a series of six images whose files have these PatientIDs in turn."""
    paths = write_dicom_series(folder, slices=6, **tags)
    relabel(paths, lambda place: {"PatientID": ids[place % len(ids)], "PatientName": name})
    return paths


def listed(tmp_path: Path, source: Path) -> Path:
    """List the cases of a folder; return their private folder."""
    config = write_config(tmp_path / "config", source)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    return tmp_path / "data" / "raw" / "mine"


def ingested(tmp_path: Path, private: Path) -> list[tuple[State, str, int]]:
    """Ingest all listed cases; return state, reason and number of series."""
    shutil.rmtree(tmp_path / "ingested", ignore_errors=True)
    cases = []
    for path in sorted(private.glob("*/files.json")):
        index, out = read_raw_index(path), tmp_path / "ingested" / path.parent.name
        out.mkdir(parents=True)
        case = ingest_case(new_case("mine", index.case_id, index), index, path.parent, out, NamedKinds())
        cases.append((case.state, case.reason, len(case.series)))
    return cases


def test_spellings_of_one_id_in_one_series_are_one_patient(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one_series(tmp_path / "source" / "mixed", *IDS)
    write_dicom_series(tmp_path / "source" / "later", slices=6, PatientID=IDS[1], StudyInstanceUID="1.2.9", StudyDate="20310401")
    private = listed(tmp_path, tmp_path / "source")
    assert capsys.readouterr().out.splitlines() == [
        "2 cases, 1 patients, 12 files, 0 nifti, 0 notes, 0 records, 0 overrides, 0 files left out"
    ]
    assert [(state, series) for state, _, series in ingested(tmp_path, private)] == [(State.OK, 1)] * 2


def test_the_ids_of_a_folder_do_not_change_where_no_study_has_two_spellings(tmp_path: Path) -> None:
    """0042 in one study and 42 in another may be two persons."""
    for number, written in enumerate(("0042", "42")):
        write_dicom_series(tmp_path / "source" / written, slices=1, PatientID=written, StudyInstanceUID=f"1.2.{number}")
    listed(tmp_path, tmp_path / "source")
    assert len({row.patient_id for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")}) == 2


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (("MRN0047291", ""), ("Vandermeer^Johanna",)),
        (("47291", "H1-47291"), ("Vandermeer^Johanna",)),
        (("47291", "MRN0047291", "mrn0047291"), ("Vandermeer^Johanna",)),
        (("47291", "OKA-777"), ("Vandermeer^Johanna", "Okafor^Ngozi")),
        (("", ""), ("Vandermeer^Johanna", "Okafor^Ngozi")),
    ],
    ids=["empty in every second file", "prefix", "prefix in a third", "another patient", "names alone"],
)
def test_a_series_under_several_ids_is_held_back_until_a_person_joins_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ids: tuple[str, ...], names: tuple[str, ...]
) -> None:
    paths = one_series(tmp_path / "source" / "Vandermeer 47291", *ids)
    relabel(paths, lambda place: {"PatientName": names[place % len(names)]})
    write_dicom_series(tmp_path / "source" / "other", slices=6, PatientID="P-1", StudyInstanceUID="1.2.9")
    private = listed(tmp_path, tmp_path / "source")
    summary, notice, hint = capsys.readouterr().out.splitlines()
    assert summary.startswith("2 cases, 2 patients, 12 files")
    assert notice.startswith(HELD_BACK)
    assert not any(name in notice + hint.replace(private.as_posix(), "") for name in NAMES)
    reasons = [reason for state, reason, _ in ingested(tmp_path, private) if state is State.QUARANTINED]
    assert reasons == ["one series names several patients: name its case and patient in files.csv, and list the cases again"]
    # the rows of the private zone join it
    assert (private / "joins.csv").stat().st_mode & 0o077 == 0
    shutil.copy(private / "joins.csv", tmp_path / "source" / "files.csv")
    private = listed(tmp_path, tmp_path / "source")
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert [(state, series) for state, _, series in ingested(tmp_path, private)] == [(State.OK, 1)] * 2
    assert not (private / "joins.csv").exists()


def test_another_series_of_another_patient_is_not_joined_by_files_csv(tmp_path: Path) -> None:
    """A stray file of another patient in a folder that a person named is found as before."""
    write_dicom_series(tmp_path / "source" / "one", slices=6)
    write_dicom_series(tmp_path / "source" / "one" / "stray", slices=6, number=2, PatientID="OKA-777", StudyInstanceUID="1.2.9")
    (tmp_path / "source" / "files.csv").write_text("path,case,patient\none,visit,someone\n", encoding="utf-8")
    ((state, reason, _),) = ingested(tmp_path, listed(tmp_path, tmp_path / "source"))
    assert state is State.QUARANTINED
    assert "2 different entries for the patient id" in reason


@pytest.mark.parametrize(
    ("tags", "joins"),
    [
        ({}, True),
        ({"AccessionNumber": "B2"}, False),
        ({"AccessionNumber": "B2", "FrameOfReferenceUID": "1.2.3.4"}, True),
        ({"AccessionNumber": "", "FrameOfReferenceUID": ""}, False),
        ({"PatientID": " 048213371"}, True),
        ({"StudyDate": "20310315"}, False),
        ({"StudyDate": ""}, False),
        ({"PatientID": "OKA-777"}, False),
        ({"PatientID": ""}, False),
    ],
    ids=[
        "accession",
        "none",
        "frame of reference",
        "neither is stated",
        "another spelling",
        "another day",
        "no day",
        "another patient",
        "no patient",
    ],
)
def test_two_studies_of_one_visit_are_named_and_joined_by_a_person_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tags: dict[str, str], joins: bool
) -> None:
    source = tmp_path / "source"
    frame = {"FrameOfReferenceUID": "1.2.3.4"} if "1.2.3.4" in tags.values() else {}
    write_dicom_series(source / "before", slices=6, **frame)
    write_dicom_series(source / "after", slices=6, number=2, StudyInstanceUID="1.2.9", **tags)
    private = listed(tmp_path, source)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("2 cases")
    assert len(lines) == 2 * joins
    if not joins:
        return
    assert lines[0].startswith(ONE_VISIT)
    assert not any(word in lines[0] for word in (*NAMES, "48213371", "2031", "A20310417", "1.2.3.4"))
    shutil.copy(private / "joins.csv", source / "files.csv")
    private = listed(tmp_path, source)
    assert [line.split(", ")[:2] for line in capsys.readouterr().out.splitlines()] == [["1 cases", "1 patients"]]
    assert [state for state, _, _ in ingested(tmp_path, private)] == [State.OK]


def test_files_of_two_cases_in_one_folder_are_joined_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source"
    for number, study in enumerate(("1.2.8", "1.2.9"), start=1):
        write_dicom_series(source / "all", slices=6, number=number, StudyInstanceUID=study)
    write_dicom_series(source / "all", slices=6, number=3, PatientID="P-1", StudyInstanceUID="1.2.10", AccessionNumber="C3")
    private = listed(tmp_path, source)
    assert len((private / "joins.csv").read_text(encoding="utf-8").splitlines()) == 13
    shutil.copy(private / "joins.csv", source / "files.csv")
    capsys.readouterr()
    listed(tmp_path, source)
    assert capsys.readouterr().out.startswith("2 cases, 2 patients, 18 files")


@given
def test_the_given_series_in_three_spellings_is_held_back_and_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(FOUND / "11-one-series-three-spellings" / "scans", tmp_path / "source", copy_function=shutil.copyfile)
    tmp_path.joinpath("source").chmod(0o700)
    private = listed(tmp_path, tmp_path / "source")
    summary, notice, _ = capsys.readouterr().out.splitlines()
    assert summary.startswith("1 cases, 1 patients, 12 files")
    assert notice.startswith("one series names several patients: 1 case of 12 files is held back")
    shutil.copy(private / "joins.csv", tmp_path / "source" / "files.csv")
    private = listed(tmp_path, tmp_path / "source")
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert [(state, series) for state, _, series in ingested(tmp_path, private)] == [(State.OK, 1)]


@given
def test_the_given_visit_in_two_studies_is_named_and_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(FOUND / "12-console-reboot" / "scans", tmp_path / "source", copy_function=shutil.copyfile)
    tmp_path.joinpath("source").chmod(0o700)
    private = listed(tmp_path, tmp_path / "source")
    assert capsys.readouterr().out.splitlines()[1].startswith(ONE_VISIT)
    assert [row.partition(",")[0] for row in (private / "joins.csv").read_text(encoding="utf-8").splitlines()] == [
        "path",
        "after",
        "before",
    ]
    shutil.copy(private / "joins.csv", tmp_path / "source" / "files.csv")
    private = listed(tmp_path, tmp_path / "source")
    assert capsys.readouterr().out.startswith("1 cases, 1 patients, 24 files")
    assert [(state, series) for state, _, series in ingested(tmp_path, private)] == [(State.OK, 3)]
