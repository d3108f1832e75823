"""De-identification of a folder without the workflow: the output identifies nobody."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest

import deidentify_scans
from conftest import ROOT
from fixtures.deid import KEY, NOTE, PLANTED, RECORD, head_voxels, write_dicom_series, write_images, write_nifti_file
from neuralmedbench.deid import stage
from neuralmedbench.deid.faces.deface import DefacedScan
from neuralmedbench.deid.headers.rules import HeaderRules, declared
from neuralmedbench.deid.release import folder as folder_release
from neuralmedbench.deid.release.folder import clean_dicom_series, stack_images
from neuralmedbench.deid.values import DateShift
from neuralmedbench.errors import ConfigError, DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.nifti import Volume
from neuralmedbench.files.pseudonyms import date_shift_days, patient_pseudonym
from neuralmedbench.runtime.commands import run_command

pytestmark = pytest.mark.slow

RULES = HeaderRules(KEY, "beef00000001", DateShift(-100))


def removed_front(volume: Volume, **_: Any) -> DefacedScan:
    """Remove a block at the front instead: the tiny heads have no face that the template would fit."""
    mask = np.zeros(volume.voxels.shape, bool)
    mask[20:28, :6] = True
    voxels = volume.voxels.copy()
    voxels[mask] = voxels.min()
    return DefacedScan(Volume(voxels, volume.affine), (), {"face_removed": float(mask.mean())}, mask)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (folder_release, stage):
        monkeypatch.setattr(room, "deface", removed_front)


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    """Make a folder of one patient with two series, notes and a record, and a key next to it."""
    folder = tmp_path / "hospital" / "VANDERMEER"
    write_dicom_series(folder / "1", number=1, slices=6)
    write_dicom_series(
        folder / "2",
        number=2,
        slices=6,
        spacing=6.5,
        SeriesDescription="T2 TSE Vandermeer",
        ProtocolName="T2",
        RepetitionTime=4000,
        EchoTime=98,
    )
    (folder / "note.txt").write_text(NOTE, encoding="utf-8")
    (folder / "record.csv").write_text(RECORD, encoding="utf-8")
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "letter.txt").write_text(NOTE, encoding="utf-8")
    return tmp_path / "hospital"


@pytest.fixture
def release(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run the command into `tmp_path`/out and return the audit."""

    def run(source: Path, form: str, *arguments: str) -> dict[str, Any]:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert deidentify_scans.main([*command(tmp_path, source, form), *arguments]) == 0
        audit: dict[str, Any] = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
        return audit

    return run


def command(folder: Path, source: Path, form: str) -> list[str]:
    places = {"--in": source, "--out": folder / "out", "--key-file": folder / "key", "--audit": folder / "audit.json"}
    return [*(str(part) for place in places.items() for part in place), "--format", form]


def everything(folder: Path) -> bytes:
    """Return names and bytes of all files, decompressed."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        parts += [str(path.relative_to(folder)).encode(), gzip.decompress(content) if path.suffix == ".gz" else content]
    return b"\n".join(parts)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("form", ["dicom", "bids"])
def test_nothing_private_remains_in_any_byte_written(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]], form: str
) -> None:
    audit = release(hospital, form, "--notes", str(tmp_path / "letter.txt"))
    written = everything(tmp_path / "out").lower() + (tmp_path / "audit.json").read_bytes().lower()
    uids = {str(value) for path in hospital.rglob("*.dcm") for value in uids_of(path)}
    assert [value for value in (*PLANTED, *uids, "20310314", "2031-03-14", "14/09/1959") if value.lower().encode() in written] == []
    assert {path.relative_to(tmp_path / "out").as_posix(): sha256_of(path) for path in files_of(tmp_path / "out")} == audit["files"]
    assert sum(audit["file_kinds"].values()) == len(audit["files"])
    assert audit["file_kinds"].get("dicom", 0) == (12 if form == "dicom" else 0)
    (case,) = audit["cases"].values()
    assert case["series"] == {"series-01": "T1w", "series-02": "T2w"}
    assert (case["state"], case["checks"]["faces_removed"], case["checks"]["leaks"]) == ("ok", 2, 0)
    assert "NIHSS 16, b=1000, no Babinski" in (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")


def uids_of(path: Path) -> list[str]:
    header = dicom.read_dicom(path)
    return [dicom.text(header, name) for name in ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")]


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("quick")
def test_cleaned_dicom_keeps_its_physics_and_says_what_was_done(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    release(hospital, "dicom")
    (case,) = (tmp_path / "out").glob("sub-*")
    images = [pydicom.dcmread(path) for path in sorted((case / "series-01").glob("*.dcm"))]
    assert [path.name for path in sorted((case / "series-01").iterdir())] == [f"{number:06d}.dcm" for number in range(1, 7)]
    assert {image.PatientID for image in images} == {patient_pseudonym(KEY, "48213371")}
    assert len({image.SOPInstanceUID for image in images}) == 6
    assert len({image.StudyInstanceUID for image in images}) == 1
    for image in images:
        assert (image.RepetitionTime, image.EchoTime, image.SeriesDescription, image.BurnedInAnnotation) == (500, 9, "T1 SE TRA", "NO")
        assert {"113100", "113101", "113102", "113105", "113107"} <= set(declared(image))
        assert (image.pixel_array[:6, 20:28] == 0).all()
    assert (images[3].pixel_array[10:, :] > 0).any()


@pytest.mark.usefixtures("quick")
def test_a_bids_tree_comes_with_description_and_participants(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    audit = release(hospital, "bids", "--notes", str(tmp_path / "letter.txt"))
    out = tmp_path / "out"
    assert json.loads((out / "dataset_description.json").read_text(encoding="utf-8"))["DatasetType"] == "raw"
    (case,) = audit["cases"]
    rows = (out / "participants.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[0] for row in rows] == ["participant_id", f"sub-{case}"]
    assert (out / f"sub-{case}" / "anat" / f"sub-{case}_T1w.nii.gz").is_file()
    assert "notes.txt" in (out / ".bidsignore").read_text(encoding="utf-8").splitlines()
    sidecar = json.loads((out / f"sub-{case}" / "anat" / f"sub-{case}_T1w.json").read_text(encoding="utf-8"))
    assert {item["CodeValue"] for item in sidecar["DeidentificationMethodCodeSequence"]} >= {"113100", "113102", "113107"}
    assert sidecar["AcquisitionTime"] == "12:00:00", "when the study began, as its raw headers have it"
    validator = shutil.which("bids-validator-deno", path=str(Path(sys.executable).parent))
    if validator is not None:
        done = subprocess.run([validator, "--format", "json", str(out)], capture_output=True, text=True, check=False)
        issues = json.loads(done.stdout)["issues"]["issues"]
        assert [issue for issue in issues if issue["severity"] == "error"] == []


@pytest.mark.usefixtures("quick")
def test_age_and_sex_of_a_bids_source_stay_with_its_scans(tmp_path: Path, release: Callable[..., dict[str, Any]]) -> None:
    """Even without a case list: this command reads `participants.tsv` of the data set as `nmb cases list` does."""
    source = tmp_path / "bids"
    write_nifti_file(source / "sub-01" / "anat" / "sub-01_T1w.nii.gz", head_voxels())
    (source / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.10.0"}', encoding="utf-8")
    (source / "participants.tsv").write_text("participant_id\tage\tsex\tname\nsub-01\t93\tF\tVandermeer\n", encoding="utf-8")
    (tmp_path / "key").write_bytes(KEY)
    release(source, "bids")
    (row,) = (tmp_path / "out" / "participants.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert row.split("\t")[2:4] == ["89+", "F"]
    assert b"Vandermeer" not in everything(tmp_path / "out")


@pytest.mark.usefixtures("quick")
def test_dates_of_a_letter_move_with_the_scans_of_the_one_patient(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    release(hospital, "dicom", "--notes", str(tmp_path / "letter.txt"))
    moved = date(2031, 3, 14) + timedelta(days=date_shift_days(KEY, patient_pseudonym(KEY, "48213371")))
    (first, *_) = sorted((tmp_path / "out").rglob("*.dcm"))
    assert pydicom.dcmread(first).StudyDate == f"{moved:%Y%m%d}"
    assert moved.isoformat() in (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")


@pytest.mark.usefixtures("quick")
def test_a_letter_about_several_patients_shows_years_alone(tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]) -> None:
    write_dicom_series(hospital / "other", slices=6, PatientID="77310042", PatientName="Okonkwo^Chidi")
    (tmp_path / "letter.txt").write_text("Chidi Okonkwo was seen on 14 March 2031, and Johanna Vandermeer too.", encoding="utf-8")
    audit = release(hospital, "dicom", "--notes", str(tmp_path / "letter.txt"))
    text = (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")
    assert not re.search(r"Chidi|Okonkwo|Vandermeer|Johanna|March|\d{4}-\d\d", text)
    assert "2031" in text
    assert len({case["patient_id"] for case in audit["cases"].values()}) == 2


@pytest.mark.usefixtures("quick")
def test_safe_harbor_gives_random_ids_from_a_private_table_and_years_only(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    arguments = ["--profile", "safe_harbor", "--linkage", str(tmp_path / "linkage.json"), "--notes", str(tmp_path / "letter.txt")]
    one = release(hospital, "dicom", *arguments)
    assert release(hospital, "dicom", *arguments)["files"] == one["files"]
    assert (tmp_path / "linkage.json").stat().st_mode & 0o777 == 0o600
    (case,) = one["cases"].values()
    assert case["patient_id"] != patient_pseudonym(KEY, "48213371")
    (tmp_path / "linkage.json").unlink()
    assert set(release(hospital, "dicom", *arguments)["cases"]) != set(one["cases"])
    for path in (tmp_path / "out").rglob("*.dcm"):
        image = pydicom.dcmread(path)
        values = [str(element.value) for element in image.iterall() if element.VR in {"DA", "DT"} and element.value]
        assert set(values) == {"20310101"}
        assert "113107" not in declared(image)
        assert "DeviceSerialNumber" not in image
        assert (image.PatientAge, image.LongitudinalTemporalInformationModified) == ("090Y", "REMOVED")
    text = (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")
    assert "2031" in text
    assert not re.search(r"March|\d{4}-\d\d", text)


@pytest.mark.usefixtures("quick")
def test_without_options_only_the_basic_profile_and_the_pixels_are_done(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    arguments = ["--options", "113101", "113102", "--notes", str(tmp_path / "letter.txt")]
    assert release(hospital, "dicom", *arguments)["options"] == ["113101", "113102"]
    for path in (tmp_path / "out").rglob("*.dcm"):
        image = pydicom.dcmread(path)
        assert set(declared(image)) == {"113100", "113101", "113102"}
        assert {"SeriesDescription", "PatientAge", "SoftwareVersions", "StationName"} & set(image.dir()) == set()
        assert (image.StudyDate, image.PatientSex, image.Manufacturer) == ("", "", "SIEMENS")
    text = (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8")
    assert "2031" in text
    assert not re.search(r"March|\d{4}-\d\d", text)
    release(hospital, "bids", *arguments)
    sidecars = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "out").rglob("anat/*.json")]
    assert sidecars
    for sidecar in sidecars:
        assert {item["CodeValue"] for item in sidecar["DeidentificationMethodCodeSequence"]} == {"113100", "113101", "113102"}
        assert "SeriesDescription" not in sidecar


def test_two_processes_with_one_key_write_the_same_bytes(tmp_path: Path) -> None:
    sparse = np.zeros((40, 40, 5), np.uint16)  # only vessels: no template fit is needed
    np.put(sparse, np.random.default_rng(7).choice(sparse.size, 600, replace=False), 300)
    write_images(tmp_path / "in", sparse)
    (tmp_path / "key").write_bytes(KEY)
    found, arguments = [], command(tmp_path, tmp_path / "in", "dicom")
    for another in (False, True):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        if another:
            subprocess.run([sys.executable, "scripts/deidentify_scans.py", *arguments], cwd=ROOT, check=True, capture_output=True)
        else:
            assert deidentify_scans.main(arguments) == 0
        found.append((everything(tmp_path / "out"), (tmp_path / "audit.json").read_bytes()))
    assert found[0] == found[1]
    assert found[0][0].count(b".dcm") == 5


def fail(message: str) -> Callable[..., DefacedScan]:
    def deface(volume: Volume, **_: Any) -> DefacedScan:
        if volume.voxels.shape[2] == 6:
            raise DeidentificationError(message)
        return removed_front(volume)

    return deface


@pytest.mark.parametrize("form", ["dicom", "bids"])
def test_a_series_that_cannot_be_defaced_is_left_out_with_its_reason(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    write_dicom_series(hospital / "VANDERMEER" / "3", number=3, slices=8)
    monkeypatch.setattr(folder_release if form == "dicom" else stage, "deface", fail("the face could not be located"))
    (case,) = release(hospital, form)["cases"].values()
    assert case["series"] == {"series-03": "T1w"}
    assert set(case["series_left_out"]) == {"series-01", "series-02"}
    assert all("the face could not be located" in reason for reason in case["series_left_out"].values())
    written = [path for path in (tmp_path / "out").rglob("*") if path.name.endswith((".dcm", ".nii.gz"))]
    assert {path.parent.name for path in written} == ({"series-03"} if form == "dicom" else {"anat"})
    assert form == "dicom" or len(written) == 1


@pytest.mark.usefixtures("quick")
def test_images_that_share_a_uid_are_not_written_as_dicom(hospital: Path, release: Callable[..., dict[str, Any]]) -> None:
    """An archive would keep one of them."""
    shutil.rmtree(hospital / "VANDERMEER")
    write_dicom_series(hospital / "VANDERMEER" / "1", slices=8)
    write_dicom_series(hospital / "VANDERMEER" / "3", number=3, slices=9, SOPInstanceUID="1.2.3")
    (case,) = release(hospital, "dicom")["cases"].values()
    assert case["series"] == {"series-01": "T1w"}
    assert case["series_left_out"]["series-02"].startswith("9 different images share SOPInstanceUIDs: export the series again")


def test_a_release_of_which_nothing_is_left_fails_and_its_audit_says_why(
    tmp_path: Path, hospital: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_release, "deface", fail("the face could not be located"))
    with pytest.raises(DataError, match="none of 1 cases could be released: no series can be given as DICOM: series-01, T1w: the face"):
        deidentify_scans.main(command(tmp_path, hospital, "dicom"))
    (case,) = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["cases"].values()
    assert case["state"] == "quarantined"
    assert not [path for path in files_of(tmp_path / "out") if path.suffix == ".dcm"]


@pytest.mark.usefixtures("quick")
def test_files_that_are_not_scans_are_counted_and_never_copied(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    packaged = Path(pydicom.data.__file__).parent / "test_files"
    shutil.copyfile(packaged / "dicomdirtests" / "DICOMDIR", hospital / "DICOMDIR")
    shutil.copyfile(packaged / "dicomdirtests" / "DICOMDIR", hospital / "VANDERMEER" / "index.dcm")
    shutil.copyfile(packaged / "dicomdirtests" / "README.txt", hospital / "VANDERMEER" / "Vandermeer.pdf")
    write_dicom_series(hospital / "VANDERMEER" / "9", number=9, slices=1, SOPClassUID="1.2.840.10008.5.1.4.1.1.7", Modality="OT")
    write_nifti_file(hospital / "elsewhere" / "p7_T1w.nii.gz", head_voxels())
    audit = release(hospital, "dicom")
    assert not [name for name in audit["files"] if "DICOMDIR" in name or "index" in name or name.endswith((".pdf", ".nii.gz"))]
    assert sum(audit["files_of_no_case"].values()) >= 1
    reasons = [reason for case in audit["cases"].values() for reason in case["raw_files_left_out"]]
    assert any("screenshot" in reason for reason in reasons)
    assert "VANDERMEER" not in json.dumps(audit).upper()


def test_pixels_are_stored_as_they_were_in_every_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_release, "deface", removed_front)
    paths = write_dicom_series(tmp_path / "plain", slices=4)
    before = np.stack([pydicom.dcmread(path).pixel_array for path in paths])
    for name, syntax in (("big", pydicom.uid.ExplicitVRBigEndian), ("rle", pydicom.uid.RLELossless), ("implicit", "1.2.840.10008.1.2")):
        (tmp_path / name).mkdir()
        for path, plane in zip(paths, before, strict=True):
            image: Any = pydicom.Dataset()
            for element in (read := pydicom.dcmread(path)):
                image.add(element)
            image.file_meta = read.file_meta
            image.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1" if name == "rle" else syntax
            if name == "rle":
                image.compress(syntax)
            elif name == "big":
                image.PixelData = plane.astype(">u2").tobytes()
            image.save_as(tmp_path / name / path.name, enforce_file_format=True)
        clean_dicom_series(tmp_path / name, tmp_path / f"{name}-out", RULES, Counter())
        after = np.stack([pydicom.dcmread(path).pixel_array for path in sorted((tmp_path / f"{name}-out").iterdir())])
        assert (after[:, :6, 20:28] == before.min()).all(), name
        after[:, :6, 20:28] = before[:, :6, 20:28]
        assert np.array_equal(after, before), name


def test_an_overlay_in_unused_bits_of_the_pixels_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_release, "deface", removed_front)
    (tmp_path / "raw").mkdir()
    for path in write_dicom_series(tmp_path / "plain", slices=4):
        image = pydicom.dcmread(path)
        marked = image.pixel_array.copy()
        marked[30:34, 5:40] |= 0x8000  # BitsStored is 12
        image.PixelData = marked.tobytes()
        image.save_as(tmp_path / "raw" / path.name)
    clean_dicom_series(tmp_path / "raw", tmp_path / "out", RULES, Counter())
    assert max(int(pydicom.dcmread(path).pixel_array.max()) for path in (tmp_path / "out").iterdir()) < 4096


def test_a_stack_lies_where_its_images_lie(tmp_path: Path) -> None:
    images = [dicom.read_dicom(path) for path in write_dicom_series(tmp_path, slices=5, RescaleSlope="2", RescaleIntercept="-10")]
    stack = stack_images(images[::-1])
    assert stack.volume.voxels.shape == (48, 56, 5)
    corner = stack.volume.affine @ [3, 2, 1, 1]
    assert np.allclose(corner[:3], [84 - 3 * 3.5, 98 - 2 * 3.5, -63])
    assert stack.volume.voxels[9, 20, 3] == 2 * float(images[3].pixel_array[20, 9]) - 10
    images[2].ImagePositionPatient = [-84.0, -98.0, -58.0]
    with pytest.raises(DataError, match="even grid"):
        stack_images(images)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--in": "absent"}, "--in: expected a folder with scans"),
        ({"--out": "hospital/out"}, "are nested"),
        ({"--out": "."}, "are nested"),
        ({"--out": "full"}, "it is not empty"),
        ({"--key-file": "absent"}, "cannot be read"),
        ({"--key-file": "short"}, "at least 16 are needed"),
        ({"--key-file": "config/demo.key"}, "key of the demo is public"),
        ({"--audit": "hospital/audit.json"}, "--audit lies in --in"),
        ({"--notes": "absent.txt"}, "--notes: expected a text file"),
        ({"--work": "absent"}, "--work: expected a folder"),
        ({"--work": "hospital"}, "--work lies in --in"),
        ({"--profile": "safe_harbor", "--linkage": "letter.txt"}, "--linkage: the table of the ids cannot be read"),
        ({"--in": "full"}, "no DICOM or NIfTI file was found"),
        ({"--linkage": "out/linkage.json"}, "--linkage lies in --out"),
        ({"--profile": "safe_harbor"}, "--linkage FILE"),
        ({"--options": "113101 113102 113106"}, "113106 is not offered"),
        ({"--options": "113105"}, "113101 cannot be left out"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_nothing_is_written(
    tmp_path: Path, hospital: Path, change: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "scan").touch()
    (tmp_path / "short").write_text("short")
    arguments = command(tmp_path, hospital, "dicom")
    for name, value in change.items():
        words = value.split() if name == "--options" else [value]
        if name not in {"--options", "--profile"}:
            words = [str(ROOT / value if value == "config/demo.key" else tmp_path / value)]
        arguments = [*arguments, name, *words]
    before = sorted(tmp_path.rglob("*"))
    assert run_command(deidentify_scans.main, arguments) == ConfigError.exit_code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_letter_is_refused_without_a_word_of_it(tmp_path: Path, hospital: Path, quick: None) -> None:
    (tmp_path / "letter.txt").write_bytes(b"\x89PNG Vandermeer \0\0")
    with pytest.raises(DataError, match="expected plain text"):
        deidentify_scans.main([*command(tmp_path, hospital, "dicom"), "--notes", str(tmp_path / "letter.txt")])


@pytest.mark.skipif(shutil.which("dciodvfy") is None, reason="dciodvfy (Debian package dicom3tools) is not installed")
@pytest.mark.usefixtures("quick")
def test_released_dicom_has_no_error_that_the_raw_file_did_not_have(
    tmp_path: Path, hospital: Path, release: Callable[..., dict[str, Any]]
) -> None:
    release(hospital, "dicom")

    def errors(path: Path) -> set[str]:
        done = subprocess.run(["dciodvfy", str(path)], capture_output=True, check=False)
        return {re.sub(rb"[0-9.]{6,}", b"", line).decode("latin-1") for line in done.stderr.splitlines() if line.startswith(b"Error")}

    raw = errors(min(hospital.rglob("*.dcm")))
    for path in sorted((tmp_path / "out").rglob("*.dcm"))[:2]:
        assert errors(path) <= raw
