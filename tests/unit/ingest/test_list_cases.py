"""Folders of users: cases are grouped by headers and names, without an identifier in anything shareable."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.deid import KEY, NOTE, head_voxels, write_config, write_dicom_series, write_index, write_nifti_file
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import read_case_table, write_case_table
from neuralmedbench.files.dicom import read_dicom
from neuralmedbench.files.pseudonyms import date_shift_days
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.ingest import case_tables
from neuralmedbench.ingest.cases import collect_identity
from neuralmedbench.ingest.listing import find_cases
from neuralmedbench.ingest.persons_labels import listed_series, series_of_case
from neuralmedbench.ingest.raw_files import load_raw_files, read_raw_file
from neuralmedbench.ingest.raw_series import sort_into_series
from neuralmedbench.ingest.sequences import b_value_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with two DICOM studies of one patient, one of another, and two NIfTI subjects."""
    folder = tmp_path / "source"
    write_dicom_series(folder / "deep" / "er" / "a", slices=4)
    write_dicom_series(folder / "deep" / "b", slices=4, StudyInstanceUID="1.2.3", AccessionNumber="A20310418")
    write_dicom_series(folder / "other", slices=4, PatientID="OKA-777", PatientName="Okafor^Ngozi")
    for name in ("sub-01_T1w", "sub-01_FLAIR", "p99_T2w"):
        write_nifti_file(folder / "nifti" / f"{name}.nii.gz", head_voxels())
    (folder / "deep" / "b" / "note.txt").write_text(NOTE, encoding="utf-8")
    (folder / "nifti" / "p99_note.md").write_text("A note.", encoding="utf-8")
    (folder / "other" / "record.csv").write_text("variable,value\nage,50\n", encoding="utf-8")
    return folder


def run(tmp_path: Path, source: Path, **settings: str) -> list[str]:
    config = write_config(tmp_path / "config", source, **settings)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    return [row.case_id for row in read_case_table(config / "benchmarks" / "mine.cases.tsv")]


def test_the_listing_and_the_indexes_can_be_read_by_nobody_else(tmp_path: Path, source: Path) -> None:
    umask = os.umask(0)
    try:
        run(tmp_path, source)
    finally:
        os.umask(umask)
    zone = tmp_path / "data" / "raw"
    assert [path for path in (zone, *zone.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_a_file_that_is_known_by_its_number_has_its_path_beside_the_private_index(tmp_path: Path, source: Path) -> None:
    """Reasons name files by number alone, as they may be shown to others."""
    for case in run(tmp_path, source):
        folder = tmp_path / "data" / "raw" / "mine" / case
        rows = [line.split("\t") for line in (folder / "numbered_files.tsv").read_text(encoding="utf-8").splitlines()]
        files = read_raw_index(folder / "files.json").files
        assert rows == [["number", "path"], *([str(number), file.path] for number, file in enumerate(files, start=1))]


@pytest.mark.parametrize("profile", ["pseudonymised", "safe_harbor"])
def test_cases_are_grouped_and_nothing_shared_names_anyone(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str], profile: str
) -> None:
    cases = run(tmp_path, source, profile=profile)
    table = (tmp_path / "config" / "benchmarks" / "mine.cases.tsv").read_text(encoding="utf-8")
    shown = capsys.readouterr().out
    assert shown.startswith("5 cases, 4 patients, 15 files, 3 nifti, 2 notes, 1 records")
    for value in ("48213371", "Vandermeer", "OKA-777", "Okafor", "p99_", "nifti", "deep"):
        assert value not in table + shown.replace("3 nifti", "")
    indexes = [read_raw_index(tmp_path / "data" / "raw" / "mine" / case / "files.json") for case in cases]
    assert sorted(len(index.files) for index in indexes) == [1, 2, 4, 4, 4]
    assert [row.source_sha256 for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")] == [
        index.source_sha256 for index in indexes
    ]
    assert "deep/er/a" in (tmp_path / "data" / "raw" / "mine" / "listing.tsv").read_text(encoding="utf-8")
    assert run(tmp_path, source, profile=profile) == cases


def test_random_ids_are_written_once_however_many_cases_are_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    whole = case_tables.write_json
    monkeypatch.setattr(case_tables, "write_json", lambda path, value, **more: (written.append(len(value)), whole(path, value, **more)))
    cases = [(f"patient {number // 2}", f"study {number}") for number in range(40)]
    first = case_tables.linked_pseudonyms(tmp_path / "linkage.json")(cases)
    again = case_tables.linked_pseudonyms(tmp_path / "linkage.json")([*cases, ("another", "study 1")])
    assert (written, again[:40], len({case for _, case in again})) == ([60, 62], first, 41)


def test_what_a_person_wrote_into_the_table_stays(tmp_path: Path, source: Path) -> None:
    run(tmp_path, source)
    table = tmp_path / "config" / "benchmarks" / "mine.cases.tsv"
    rows = read_case_table(table)
    write_case_table(table, [replace(rows[0], exclude="withdrew", sequence_overrides={"series-01": "T2w"}), *rows[1:]])
    run(tmp_path, source)
    assert (read_case_table(table)[0].exclude, read_case_table(table)[0].sequence_overrides) == ("withdrew", {"series-01": "T2w"})


def test_another_key_or_folder_does_not_wipe_what_a_person_wrote(tmp_path: Path, source: Path) -> None:
    run(tmp_path, source)
    table = tmp_path / "config" / "benchmarks" / "mine.cases.tsv"
    before = table.read_bytes()
    assert list_cases.main(["--new-key", str(tmp_path / "other")]) == 0
    with pytest.raises(ConfigError, match="none of its 5 cases is in the new listing"):
        run(tmp_path, source, key_file=(tmp_path / "other").as_posix())
    assert table.read_bytes() == before


def test_an_excluded_case_stays_excluded_while_its_files_are_away(tmp_path: Path, source: Path) -> None:
    cases = run(tmp_path, source)
    table = tmp_path / "config" / "benchmarks" / "mine.cases.tsv"
    away = (source / "other").rename(tmp_path / "away")
    (gone,) = set(cases) - set(run(tmp_path, source))
    away.rename(source / "other")
    run(tmp_path, source)
    write_case_table(table, [replace(row, exclude="withdrew" if row.case_id == gone else "") for row in read_case_table(table)])
    (source / "other").rename(away)
    assert run(tmp_path, source) == cases
    away.rename(source / "other")
    run(tmp_path, source)
    assert {row.case_id for row in read_case_table(table) if row.exclude} == {gone}


def test_the_published_key_of_the_demo_is_refused(tmp_path: Path, source: Path) -> None:
    write_config(tmp_path / "config", source)
    (tmp_path / "config" / "demo.key").write_bytes((tmp_path / "config" / "key").read_bytes())
    with pytest.raises(ConfigError, match="key of the demo is public"):
        run(tmp_path, source, key_file=(tmp_path / "config" / "demo.key").as_posix())


def test_a_listing_keeps_no_bulk_of_headers_and_names_the_same_series(tmp_path: Path) -> None:
    """Private elements take 300 kB a file; a hospital's folder has tens of thousands of files."""
    paths = write_dicom_series(tmp_path / "few", slices=20)
    for place, path in enumerate(paths):
        image: Any = read_dicom(path)
        block = image.private_block(0x0019, "SIEMENS MR HEADER", create=True)
        block.add_new(0x0C, "IS", 1000 * (place % 2))
        for number in range(0x20, 0xE8):
            block.add_new(number, "OB", bytes([place, number]) * 800)
        image.save_as(path)
    whole = sort_into_series(read_raw_file(number, path) for number, path in enumerate(paths)).series
    find_cases(tmp_path / "few")  # imports
    tracemalloc.start()
    (case,) = find_cases(tmp_path / "few").cases
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 0.1 * sum(path.stat().st_size for path in paths)
    assert [listed_series(one, ()) for one in series_of_case(case)] == [listed_series(one, ()) for one in whole]
    weights = [b_value_of(scan.header) for scan in sorted(case.scans, key=lambda scan: scan.path) if scan.header is not None]
    assert weights == [0.0, 1000.0] * 10


def test_headers_without_bulk_name_the_same_identity(tmp_path: Path) -> None:
    """Of every series one header is searched as a whole, for names in sequences and private elements."""
    paths = [path for number in (1, 2) for path in write_dicom_series(tmp_path, slices=4, number=number)]
    whole = [read_raw_file(number, path) for number, path in enumerate(paths, start=1)]
    trimmed = load_raw_files(read_raw_index(write_index(tmp_path / "private", paths)), tmp_path)
    assert collect_identity(trimmed) == collect_identity(whole)
    assert [scan.header is not None and "RequestAttributesSequence" in scan.header for scan in trimmed] == [True, False, False, False] * 2


def test_files_csv_overrides_grouping_and_labels(tmp_path: Path, source: Path) -> None:
    lines = ["path,case,patient,sequence", "nifti,one,someone,", "nifti/sub-01_T1w.nii.gz,one,someone,ceT1w"]
    (source / "files.csv").write_text("\n".join(lines), encoding="utf-8")
    cases = run(tmp_path, source)
    assert len(cases) == 4
    overrides = [row.sequence_overrides for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")]
    assert {"series-03": "ceT1w"} in overrides


def test_a_word_that_is_no_patient_in_files_csv_makes_no_two_patients_one(tmp_path: Path, source: Path) -> None:
    lines = ["path,case,patient", "nifti/sub-01_T1w.nii.gz,one,unknown", "nifti/p99_T2w.nii.gz,two,unknown"]
    (source / "files.csv").write_text("\n".join(lines), encoding="utf-8")
    run(tmp_path, source)
    rows = read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")
    # the two studies of one patient are the only cases that share one
    assert len({row.case_id for row in rows}) - len({row.patient_id for row in rows}) == 1


def test_a_text_that_fits_no_case_is_left_out_and_counted(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source / "stray.txt").write_text(NOTE, encoding="utf-8")
    run(tmp_path, source)
    shown = capsys.readouterr().out
    assert "2 notes" in shown
    assert "1 files left out, 1 of them: fits no single case" in shown
    assert "\tstray.txt\tfits no single case" in (tmp_path / "data" / "raw" / "mine" / "listing.tsv").read_text(encoding="utf-8")


def test_a_file_that_is_no_readable_scan_is_named_in_the_private_listing(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "other" / "letter.dcm").write_text("no scan", encoding="utf-8")
    run(tmp_path, source)
    shown = capsys.readouterr().out
    assert "1 files left out, 1 of them: not a scan (neither readable DICOM nor NIfTI)" in shown
    assert "letter" not in shown
    assert "\tother/letter.dcm\tnot a scan" in (tmp_path / "data" / "raw" / "mine" / "listing.tsv").read_text(encoding="utf-8")


def test_a_note_in_a_folder_beside_the_scans_belongs_to_them(tmp_path: Path, source: Path) -> None:
    write_dicom_series(source / "ward" / "third" / "dicom" / "1", slices=4, PatientID="P-3", StudyInstanceUID="1.3")
    write_dicom_series(source / "ward" / "fourth" / "dicom" / "1", slices=4, PatientID="P-4", StudyInstanceUID="1.4")
    note = source / "ward" / "third" / "notes" / "admission.txt"
    apart = source / "ward" / "notes" / "fourth" / "admission.txt"
    write_dicom_series(source / "ward" / "scans" / "fifth", slices=4, PatientID="P-5", StudyInstanceUID="1.5")
    of_the_fifth = source / "ward" / "notes" / "fifth" / "admission.txt"
    write_dicom_series(source / "ward" / "sixth", slices=4, PatientID="P-6", StudyInstanceUID="1.6")
    below = source / "ward" / "sixth" / "notes" / "admission.txt"
    unclear = source / "ward" / "admission.txt"
    for path in (note, apart, of_the_fifth, below, unclear):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTE, encoding="utf-8")
    found = find_cases(source)
    assert [case.patient for case in found.cases if note in case.notes] == ["P-3"]
    assert [case.patient for case in found.cases if of_the_fifth in case.notes] == ["P-5"]
    assert [case.patient for case in found.cases if below in case.notes] == ["P-6"]
    assert {unclear, apart} <= set(found.left_out)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("file,case\n", "expected the columns path"),
        ("path,case\nnifti,one,two\n", "expected the columns path"),
        ("path,case\nabsent,one\n", "line 2: the path is not in the folder"),
        ("path,sequence\nnifti,FLARE\n", "line 2, column sequence: expected one of T1w"),
    ],
)
def test_a_wrong_files_csv_is_refused_in_one_line(tmp_path: Path, source: Path, text: str, match: str) -> None:
    (source / "files.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        run(tmp_path, source)


def test_a_record_that_fits_no_case_stops_the_listing(tmp_path: Path, source: Path) -> None:
    (source / "elsewhere").mkdir()
    (source / "elsewhere" / "record.csv").write_text("variable,value\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="a record fits no case"):
        run(tmp_path, source)


def test_own_data_without_a_key_is_told_how_to_make_one(tmp_path: Path, source: Path) -> None:
    with pytest.raises(ConfigError, match="--new-key"):
        run(tmp_path, source, key_file=(tmp_path / "absent").as_posix())
    assert list_cases.main(["--new-key", str(tmp_path / "fresh")]) == 0
    assert run(tmp_path, source, key_file=(tmp_path / "fresh").as_posix())


@pytest.mark.parametrize(
    "written", ["***", " . ", "-----", "^^^", "0000000", "00-00", "XXXXXXXX", "99999", "[removed]", "Not Available", "ANON^"]
)
def test_what_stands_in_place_of_a_removed_id_joins_no_patients(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    for number in ("1", "2"):
        write_dicom_series(
            tmp_path / "source" / number, slices=1, PatientID=written, PatientName=f"Name{number}", StudyInstanceUID=f"1.2.{number}"
        )
    cases = run(tmp_path, tmp_path / "source")
    assert capsys.readouterr().out.startswith("2 cases, 2 patients")
    patients = [row.patient_id for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")]
    assert len({date_shift_days(KEY, patient) for patient in patients}) == len(cases) == 2


@pytest.mark.parametrize("written", ["A", "00017", "9", "999", "X1", "*7*", "患者"])
def test_a_short_or_padded_id_is_an_id(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    for number in ("1", "2"):
        write_dicom_series(tmp_path / "source" / number, slices=1, PatientID=written, StudyInstanceUID=f"1.2.{number}")
    run(tmp_path, tmp_path / "source")
    assert capsys.readouterr().out.startswith("2 cases, 1 patients")


def test_a_case_that_leaves_the_folder_is_named_while_its_files_are_here(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = run(tmp_path, source)
    for case in cases:
        (tmp_path / "data" / "slices" / "mine" / f"sub-{case}").mkdir(parents=True)
    (source / "other").rename(tmp_path / "away")
    capsys.readouterr()
    (gone,) = set(cases) - set(run(tmp_path, source))
    held, remove = "`nmb cases held --benchmark mine` lists them", f"`nmb cases remove --benchmark mine {gone}` deletes them"
    notice = f"1 case is no longer listed, but its files are still in data/ ({gone}): {held}, {remove}"
    assert capsys.readouterr().out.splitlines()[1:] == [notice]


def test_identical_uids_in_two_patients_are_said_and_void_neither(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dicom_series(source / "copy", slices=4, PatientID="OKA-888", StudyInstanceUID="1.2.3")  # the UIDs of deep/b
    cases = run(tmp_path, source)
    assert len(cases) == 6
    folder = tmp_path / "data" / "raw" / "mine"
    pair = {case: read_raw_index(folder / case / "files.json").same_uids for case in cases}
    one, other = (case for case in cases if pair[case])
    assert (pair[one], pair[other]) == ((other,), (one,))
    assert f"2 cases have the same UIDs as a case of another patient (first: {one} and {other})" in capsys.readouterr().out
    # a case that loses its double is ingested again, so that its sheet says so no longer
    before = {row.case_id: row.source_sha256 for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")}
    (source / "copy").rename(tmp_path / "away")
    run(tmp_path, source)
    after = {row.case_id: row.source_sha256 for row in read_case_table(tmp_path / "config" / "benchmarks" / "mine.cases.tsv")}
    assert {case for case in after if after[case] != before[case]} < {one, other}
