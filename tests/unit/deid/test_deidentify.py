"""De-identification removes everything planted and keeps everything needed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

import deidentify_case
import ingest_case
from fixtures.deid import (
    KEY,
    NOTE,
    PLANTED,
    RECORD,
    flat_deface,
    head_voxels,
    write_config,
    write_dicom_series,
    write_index,
    write_nifti_file,
)
from neuralmedbench.deid import stage
from neuralmedbench.deid.faces.deface import DefacedScan, require_brain
from neuralmedbench.deid.headers.cleaner import HeaderCleaner
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.leaks import find_leaks
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, case_sheet
from neuralmedbench.deid.texts import clean_record
from neuralmedbench.deid.values import DateShift, clean_descriptor, top_code_age
from neuralmedbench.errors import ConfigError, DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.dcm2niix import ConversionOutput, convert, convert_largest
from neuralmedbench.files.identity import Identity, identity_pattern
from neuralmedbench.files.nifti import Volume
from neuralmedbench.files.pseudonyms import case_pseudonym, date_shift_days, patient_pseudonym, read_key, uid_pseudonym, write_new_key
from neuralmedbench.records.case import CaseRecord, State

assert flat_deface
OPTIONS = ("113101", "113102", "113103", "113104", "113105", "113107", "113108", "113109", "113111")
RULES = HeaderRules(KEY, "beef00000001", DateShift(-100))


@pytest.fixture
def run(tmp_path: Path, flat_deface: None) -> Callable[..., CaseRecord]:
    """Ingest and de-identify a case of the given files."""

    def run_case(
        files: list[Path],
        *,
        notes: tuple[Path, ...] = (),
        record: Path | None = None,
        profile: str = "pseudonymised",
        **rules: object,
    ) -> CaseRecord:
        config = write_config(tmp_path / "config", tmp_path, profile=profile, deidentification=rules)
        first, second = tmp_path / "ingested" / "case.json", tmp_path / "deidentified" / "case.json"
        index = write_index(tmp_path, files, notes, record)
        ingest_case.main(["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--out", str(first)])
        arguments = ["--benchmark", "mine", "--config", str(config), "--case", str(first), "--out", str(second)]
        assert deidentify_case.main(arguments) == 0
        return read_case(second)

    return run_case


def everything_readable(folder: Path) -> str:
    """Return names and contents of all files, NIfTI decompressed."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        parts.append(f"{path.relative_to(folder)}\n{content.decode('latin-1')}")
    return "\n".join(parts)


def text_files(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "note.txt").write_text(NOTE, encoding="utf-8")
    (folder / "record.csv").write_text(RECORD, encoding="utf-8")
    return folder / "note.txt", folder / "record.csv"


def test_no_planted_identifier_remains_anywhere_in_a_dicom_case(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    note, record = text_files(tmp_path / "raw")
    case = run(write_dicom_series(tmp_path / "raw" / "1"), notes=(note,), record=record)
    assert case.state is State.OK, case.reason
    left = everything_readable(tmp_path / "deidentified")
    assert [value for value in PLANTED if value.casefold() in left.casefold()] == []
    assert "2031-03-14" not in left
    assert "20310314" not in left


@pytest.mark.parametrize("profile", ["pseudonymised", "safe_harbor"])
def test_dates_of_notes_move_by_the_days_of_the_headers(tmp_path: Path, run: Callable[..., CaseRecord], profile: str) -> None:
    note, record = text_files(tmp_path / "raw")
    run(write_dicom_series(tmp_path / "raw" / "1"), notes=(note,), record=record, profile=profile)
    text = (tmp_path / "deidentified" / "text" / "note-01.txt").read_text(encoding="utf-8")
    days = date_shift_days(KEY, "beef00000001")
    moved = date.fromordinal(date(2031, 3, 14).toordinal() + days).isoformat()
    assert (moved in text) is (profile == "pseudonymised")
    assert ("2031" in text) is (profile == "safe_harbor") or moved.startswith("2031")
    assert "NIHSS 16, b=1000, no Babinski" in text
    assert "94" not in text
    assert (tmp_path / "deidentified" / "text" / "record.tsv").read_text(encoding="utf-8").splitlines() == [
        "variable\tvalue\tunit\tdays_from_scan",
        "age\t90+\tyears\t0",
        "NIHSS\t16\tpoints\t0",
    ]


def test_a_mark_on_the_patients_left_is_where_it_was_in_space(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    case = run(write_dicom_series(tmp_path / "raw", spacing=4.0))
    image = nibabel.load(tmp_path / "deidentified" / case.series[0].path)
    voxels = np.asanyarray(image.dataobj)
    centre = image.affine @ [*np.argwhere(voxels == 1500).mean(axis=0), 1]
    assert centre[0] < -30  # RAS+: the patient's left is negative
    assert np.allclose(sorted(image.header.get_zooms()), [3.5, 3.5, 4.0], atol=0.01)


def test_nifti_headers_hold_geometry_and_nothing_else(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    source = write_nifti_file(tmp_path / "raw" / "p7_T1w.nii.gz", head_voxels())
    case = run([source])
    image, before = nibabel.load(tmp_path / "deidentified" / case.series[0].path), nibabel.load(source)
    assert np.array_equal(np.asanyarray(image.dataobj), np.asanyarray(before.dataobj))
    assert np.allclose(image.affine, before.affine)
    assert "Vandermeer" not in everything_readable(tmp_path / "deidentified")
    assert not image.header.extensions
    assert all(not image.header[field].tobytes().strip(b"\0") for field in ("descrip", "aux_file", "intent_name", "db_name"))


def test_running_twice_gives_equal_bytes(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    files = write_dicom_series(tmp_path / "raw", slices=6)
    assert run(files).files == run(files).files


def test_two_series_of_a_kind_are_kept_as_runs_with_allowed_sidecar_keys(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    files += write_dicom_series(tmp_path / "raw" / "2", number=2, slices=6, spacing=6.5)  # identical images would be excluded as a copy
    case = run(files)
    assert [series.path for series in case.series] == ["anat/sub-c0ffee_T1w.nii.gz", "anat/sub-c0ffee_run-2_T1w.nii.gz"]
    sidecar = json.loads((tmp_path / "deidentified" / "anat" / "sub-c0ffee_T1w.json").read_text(encoding="utf-8"))
    assert sidecar["SeriesDescription"] == "T1 SE TRA"
    assert not {"InstitutionName", "AcquisitionDateTime", "StationName", "DeviceSerialNumber", "StudyDescription"} & set(sidecar)
    assert sidecar["AcquisitionTime"] == "12:00:00", "counted from the start of the study"


def test_a_case_with_a_remaining_identifier_is_quarantined_with_nothing_written(
    tmp_path: Path, run: Callable[..., CaseRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "clean_sidecar", lambda path, **_: {"SeriesDescription": "Vandermeer"})
    case = run(write_dicom_series(tmp_path / "raw", slices=6))
    assert case.state is State.QUARANTINED
    assert "identifying values" in case.reason
    assert "Vandermeer" not in case.reason
    assert [path.name for path in (tmp_path / "deidentified").rglob("*") if path.is_file()] == ["case.json"]


def test_a_note_in_another_script_or_language_is_withheld(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    (tmp_path / "ja.txt").write_text("患者は山田太郎さんです。頭痛を訴えています。", encoding="utf-8")
    (tmp_path / "de.txt").write_text(
        "Der Patient wurde mit Kopfschmerzen in die Klinik gebracht und ist seit gestern nicht ansprechbar", encoding="utf-8"
    )
    case = run(write_dicom_series(tmp_path / "raw", slices=6), notes=(tmp_path / "ja.txt", tmp_path / "de.txt"))
    assert case.notes == ()
    assert case.checks["notes_withheld"] == 2


def sheet_of(case: CaseRecord, root: Path) -> str:
    """Build the review sheet of a case that has been de-identified and goes no further."""
    clean = CaseStage(case, root / "deidentified")
    later = CaseStage(replace(case, state=State.QUARANTINED), root / "deidentified")
    return case_sheet(CaseStages(clean, later, later), ("", ""), root / "reviews" / "sheets" / "case.html")


def test_notes_beside_scans_without_a_name_in_any_header_are_marked_for_the_reviewer(
    tmp_path: Path, run: Callable[..., CaseRecord]
) -> None:
    (tmp_path / "note.txt").write_text("Fergus Brannigan was seen with a headache.", encoding="utf-8")
    volume = write_nifti_file(tmp_path / "raw" / "p99_T1w.nii.gz", head_voxels())
    nifti = run([volume], notes=(tmp_path / "note.txt",))
    assert nifti.checks["notes_without_known_names"] == 1
    assert "detected by pattern alone" in sheet_of(nifti, tmp_path)
    dicom_case = run(write_dicom_series(tmp_path / "dicom", slices=6), notes=(tmp_path / "note.txt",))
    assert "detected by pattern alone" not in sheet_of(dicom_case, tmp_path)
    assert "100,000 characters" not in sheet_of(dicom_case, tmp_path)
    (tmp_path / "deidentified" / dicom_case.notes[0]).write_text("Well. " * 20_000, encoding="utf-8")
    assert "have more than 100,000 characters (the longest 120,000)" in sheet_of(dicom_case, tmp_path)


def test_a_cleaned_header_holds_no_value_of_the_patient_and_only_valid_dates(tmp_path: Path) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    instance, study = str(dataset.SOPInstanceUID), str(dataset.StudyInstanceUID)
    HeaderCleaner(RULES).clean(dataset)
    shown = str(dataset) + str(dataset.file_meta)
    assert [value for value in (*PLANTED, "山田", instance, study) if value.casefold() in shown.casefold()] == []
    assert dataset.PatientID == str(dataset.PatientName) == "beef00000001"
    assert (dataset.PatientAge, dataset.PatientSex, dataset.PatientIdentityRemoved) == ("090Y", "F", "YES")
    assert dataset.StudyDate == dataset.SeriesDate == "20301204"
    assert not [
        element for element in dataset.iterall() if element.VR == "DA" and element.value and not re.fullmatch(r"\d{8}", element.value)
    ]
    assert not [element for element in dataset.iterall() if element.tag.is_private]
    assert dataset.file_meta.MediaStorageSOPInstanceUID == dataset.SOPInstanceUID == uid_pseudonym(KEY, instance)
    assert dataset.StudyInstanceUID == uid_pseudonym(KEY, study)
    assert {item.CodeValue for item in dataset.DeidentificationMethodCodeSequence} >= {"113100", "113105", "113107"}
    assert (dataset.RepetitionTime, dataset.EchoTime, dataset.SOPClassUID) == (500, 9, "1.2.840.10008.5.1.4.1.1.4")


def test_pseudonyms_are_stable_and_differ_with_key_and_patient() -> None:
    other = b"another key of the tests, long"
    assert patient_pseudonym(KEY, "7") == patient_pseudonym(KEY, "7") != patient_pseudonym(other, "7")
    assert case_pseudonym(KEY, "7", "1.2") not in {
        case_pseudonym(KEY, "8", "1.2"),
        case_pseudonym(KEY, "7", "1.3"),
        patient_pseudonym(KEY, "7"),
    }
    assert uid_pseudonym(KEY, "1.2") != uid_pseudonym(other, "1.2")
    assert re.fullmatch(r"2\.25\.\d{1,39}", uid_pseudonym(KEY, "1.2.3"))
    assert all(-365 <= date_shift_days(KEY, str(patient)) <= -1 for patient in range(500))


def test_own_data_are_refused_without_a_valid_key(tmp_path: Path) -> None:
    for path in (None, tmp_path / "absent"):
        with pytest.raises(ConfigError, match="--new-key"):
            read_key(path)
    (tmp_path / "short").write_bytes(b"short")
    with pytest.raises(ConfigError, match="5 bytes"):
        read_key(tmp_path / "short")
    write_new_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="exists"):
        write_new_key(tmp_path / "key")
    assert len(read_key(tmp_path / "key")) == 64


def test_leaks_are_found_in_names_headers_and_texts(tmp_path: Path) -> None:
    identity = Identity(names=("Hall^Ana",), numbers=("48213371", "1960"), places=("Oosterhaven General Hospital",))
    write_nifti_file(tmp_path / "a.nii.gz", head_voxels(), description="Hall")
    assert sum(leak.count for leak in find_leaks(tmp_path, identity)) >= 3  # descrip and the others, and the extension
    (tmp_path / "a.nii.gz").unlink()
    (tmp_path / "note.txt").write_text("She shall walk in the hall 0.48213371 of length; 148213371", encoding="utf-8")
    assert sum(leak.count for leak in find_leaks(tmp_path, identity)) == 1
    (tmp_path / "sub-48213371.json").write_text("{}", encoding="utf-8")
    assert sum(leak.count for leak in find_leaks(tmp_path, identity)) == 2


def test_names_are_found_without_their_accents_and_in_other_scripts() -> None:
    from neuralmedbench.files.identity import fold

    pattern = identity_pattern(Identity(names=("Müller^Zoë=山田^太郎",)))
    assert pattern is not None
    for text in ("MULLER", "Müller", "zoe", "山田", "太郎", "山田太郎"):
        assert pattern.search(fold(text)), text
    assert not pattern.search(fold("mullers"))


def test_an_id_of_several_words_is_one_number_and_leaves_no_word_behind() -> None:
    """Seen in a public scan: its id was cited whole in a note, of which the shortest word stayed."""
    pattern = identity_pattern(Identity(names=("Varga Lab Rev",), numbers=("Varga Lab Rev", "MRI brain")))
    assert pattern is not None
    text = "record number VARGA  Lab Rev; an MRI brain was made"
    assert [(match.lastgroup, match[0]) for match in pattern.finditer(text)] == [("number", "VARGA  Lab Rev")]


def test_short_names_and_names_that_are_words_count_with_a_capital_letter_only() -> None:
    pattern = identity_pattern(Identity(names=("Te^Young",)))
    assert pattern is not None
    assert [match[0] for match in pattern.finditer("Te was young, TE 110, says Young")] == ["Te", "Young"]


def test_one_series_that_cannot_be_converted_does_not_stop_the_others(
    tmp_path: Path, run: Callable[..., CaseRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert_but_seven(source: Path, target: Path) -> tuple[Volume, ConversionOutput]:
        if len(list(source.glob("*.dcm"))) == 7:
            message = "no program can read it"
            raise DataError(message)
        return convert_largest(source, target)

    monkeypatch.setattr(stage, "convert_largest", convert_but_seven)
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    files += write_dicom_series(tmp_path / "raw" / "2", number=2, slices=7, SeriesDescription="T2", ProtocolName="T2")
    case = run(files)
    assert [series.path for series in case.series] == ["anat/sub-c0ffee_T1w.nii.gz"]
    assert case.checks["series_not_convertible"] == 1
    assert case.set_aside == {"series-02": "T2w: no program can read it"}


def test_an_angiogram_is_named_as_bids_does(tmp_path: Path, run: Callable[..., CaseRecord]) -> None:
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    files += write_dicom_series(tmp_path / "raw" / "2", number=2, slices=7, SeriesDescription="TOF 3D", ProtocolName="TOF")
    assert [series.path for series in run(files).series] == ["anat/sub-c0ffee_T1w.nii.gz", "anat/sub-c0ffee_angio.nii.gz"]


def test_a_series_of_whose_brain_too_much_would_be_lost_is_left_out_with_this_reason(
    tmp_path: Path, run: Callable[..., CaseRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(volume: Volume, *, name: str, hidden: object, **_: object) -> DefacedScan:
        if name == "series-02":
            require_brain({"brain_ml": 1350.0, "brain_removed_ml": 0.0, "brain_hidden_ml": 135.0})
        return DefacedScan(volume, (), {"face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))

    monkeypatch.setattr(stage, "deface", lose)
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    files += write_dicom_series(tmp_path / "raw" / "2", number=2, slices=7, SeriesDescription="T2", ProtocolName="T2")
    case = run(files)
    assert [series.path for series in case.series] == ["anat/sub-c0ffee_T1w.nii.gz"]
    assert case.checks["series_with_brain_lost"] == 1
    assert "series_not_convertible" not in case.checks
    assert case.set_aside["series-02"].startswith("T2w: text that is burned into the pixels covers 135 ml (10.0%) of the brain")
    assert not list((tmp_path / "deidentified").rglob("*T2w*"))


@pytest.mark.parametrize("step", ["deface", "write_scan_pieces"])
def test_a_series_in_which_a_face_may_remain_is_left_out_with_all_its_files(
    tmp_path: Path, run: Callable[..., CaseRecord], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    usual = getattr(stage, step)

    def fail_for_seven(*arguments: Any, **more: Any) -> Any:
        done = usual(*arguments, **more)
        volume = next(argument for argument in arguments if isinstance(argument, Volume))
        if volume.voxels.shape[2] == 7:
            message = "the face could not be located"
            raise DeidentificationError(message)
        return done

    monkeypatch.setattr(stage, step, fail_for_seven)
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    files += write_dicom_series(tmp_path / "raw" / "2", number=2, slices=7, SeriesDescription="T2", ProtocolName="T2")
    case = run(files)
    assert [series.path for series in case.series] == ["anat/sub-c0ffee_T1w.nii.gz"]
    assert case.set_aside == {"series-02": "T2w: the face could not be located"}
    assert case.checks["series_not_deidentified"] == 1
    assert not [path for path in (tmp_path / "deidentified").rglob("*") if "T2w" in path.name or "series-02" in path.name]


def test_a_case_of_whose_series_none_is_left_names_one(
    tmp_path: Path, run: Callable[..., CaseRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_face(*_: Any, **__: Any) -> DefacedScan:
        message = "the face could not be located"
        raise DeidentificationError(message)

    monkeypatch.setattr(stage, "deface", no_face)
    case = run(write_dicom_series(tmp_path / "raw", slices=6))
    assert case.state is State.QUARANTINED
    assert case.reason == "series-01, T1w: the face could not be located"
    assert not [path for path in (tmp_path / "deidentified").rglob("*.*") if path.name != "case.json"]


def write_into_pixels(paths: list[Path], text: str) -> None:
    """Burn a text into the upper left corner of every file."""
    import pydicom
    from PIL import Image, ImageDraw, ImageFont

    for path in paths:
        image = pydicom.dcmread(path)
        pixels = image.pixel_array.copy()
        ink = Image.new("1", pixels.shape[::-1])
        ImageDraw.Draw(ink).text((2, 1), text, fill=1, font=ImageFont.load_default_imagefont())
        pixels[np.asarray(ink)] = 2500
        image.PixelData = pixels.tobytes()
        image.save_as(path)


@pytest.mark.parametrize("policy", ["hide", "drop"])
def test_a_series_that_is_dropped_for_its_burned_in_text_leaves_the_rest_of_its_case_usable(
    tmp_path: Path, run: Callable[..., CaseRecord], policy: str
) -> None:
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=12)
    marked = write_dicom_series(tmp_path / "raw" / "2", number=2, slices=12, SeriesDescription="T2", ProtocolName="T2")
    write_into_pixels(marked, "DOE 571")
    case = run(files + marked, burned_in=policy)
    assert case.state is State.OK
    assert case.checks["burned_in_series_searched"] == 2
    folder = tmp_path / "deidentified"
    if policy == "hide":
        assert [series.flags.count("burned_in_text_hidden") for series in case.series] == [0, 1]
        assert case.checks["burned_in_series_hidden"] == 1
        return
    assert [series.path for series in case.series] == ["anat/sub-c0ffee_T1w.nii.gz"]
    assert case.checks["burned_in_series_dropped"] == 1
    assert list(case.set_aside) == ["series-02"]
    assert "text is burned into the pixels" in case.set_aside["series-02"]
    assert not [path for path in folder.rglob("*") if "T2w" in path.name or "series-02" in path.name]


def test_an_overlay_drawn_over_the_slices_does_not_become_a_scan(tmp_path: Path) -> None:
    import pydicom

    paths = write_dicom_series(tmp_path / "raw", slices=6)
    for path in paths:
        image = pydicom.dcmread(path)
        drawn = np.zeros(image.pixel_array.shape, dtype=np.uint8)
        drawn[10:14, 8:40] = 1
        for element, kind, value in ((0x10, "US", drawn.shape[0]), (0x11, "US", drawn.shape[1]), (0x40, "CS", "G"), (0x50, "SS", [1, 1])):
            image.add_new((0x6000, element), kind, value)
        image.add_new((0x6000, 0x0100), "US", 1)
        image.add_new((0x6000, 0x0102), "US", 0)
        image.add_new((0x6000, 0x3000), "OW", np.packbits(drawn.ravel(), bitorder="little").tobytes())
        image.save_as(path)
    results = convert(tmp_path / "raw", tmp_path / "out")
    written = {path.name for path in (tmp_path / "out").glob("*.nii")}
    masks = {name for name in written if "_ROI" in name}
    assert masks
    assert {result.image.name for result in results} == written - masks


def test_a_record_keeps_plain_values_and_drops_what_names_a_person() -> None:
    text = "variable,value,unit,date\nGlucose,7.9,mmol/L,2031-03-10\nnext of kin,Anna,,\nhistory,seen by Dr Smith,,\nphone,555,,\nnote,see 48213371,,\n"
    record = clean_record(text, DateShift(-3), identity_pattern(Identity(numbers=("48213371",))), date(2031, 3, 14))
    assert record.text.splitlines()[1:] == ["Glucose\t7.9\tmmol/L\t-4"]
    assert record.counts["record_rows_dropped"] == 4


def test_descriptors_keep_words_about_scans_and_ages_are_top_coded() -> None:
    assert clean_descriptor("AX T2_FLAIR Vandermeer 4821337 5mm") == "AX T2 FLAIR 5mm"
    assert clean_descriptor("AX T1post Vandermeer") == "AX T1post"
    assert [top_code_age(age) for age in ("094Y", "089Y", "007M", "x")] == ["090Y", "089Y", "007M", ""]
