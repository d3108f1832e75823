"""One generated patient, from raw files to tables: listing, planted identifiers, answer, pictures."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image

from conftest import ROOT
from gather_answers import main as gather_answers
from neuralmedbench.demo.cohort import FOLDER, read_patient
from neuralmedbench.demo.generate import generate_case
from neuralmedbench.demo.pictures import IMAGE_COLUMNS, collect_pictures
from neuralmedbench.errors import DataError
from neuralmedbench.files.answer_key import read_answer_key
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.known_lesions import read_lesion_mask
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.records.columns import ANSWER_COLUMNS

pytestmark = pytest.mark.slow

KEY = read_key(ROOT / "config" / "demo.key")
PATIENT = read_patient(FOLDER / "haemorrhage.yaml")
CASE = PATIENT.case_id(KEY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the only patient with just a CT, the fastest to make."""
    out = tmp_path_factory.mktemp("demo") / CASE
    generate_case(PATIENT, CASE, PATIENT.patient_id(KEY), out, answer=out.with_name("answer.json"))
    return out


def head_ct(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the CT in Hounsfield units, (Z, Y, X), and the position of its first voxel, (x, y, z)."""
    files = sorted((folder / "dicom").glob("01_*/*.dcm"))
    slices = [pydicom.dcmread(path) for path in files]
    voxels = np.stack([one.pixel_array * one.RescaleSlope + one.RescaleIntercept for one in slices])
    return voxels, np.array(slices[0].ImagePositionPatient, dtype=float)


def test_a_regenerated_case_has_the_digest_of_the_committed_table(folder: Path) -> None:
    """After an intended change of the generator: nmb cases phantoms --out config/benchmarks/demo.cases.tsv (and --tiny)."""
    row = next(row for row in read_case_table(ROOT / "config" / "benchmarks" / "demo.cases.tsv") if row.case_id == CASE)
    assert read_raw_index(folder / "files.json").source_sha256 == row.source_sha256


def test_the_listing_names_every_raw_file_with_its_digest(folder: Path) -> None:
    listing = read_json(folder / "files.json")
    entries = [*listing["files"], *listing["notes"], listing["record"]]
    raw = {path.relative_to(folder).as_posix() for part in ("dicom", "notes") for path in (folder / part).rglob("*") if path.is_file()}
    assert {entry["path"] for entry in entries} == raw | {"record.csv"}
    assert all(sha256_of(folder / entry["path"]) == entry["sha256"] for entry in entries)
    assert (listing["case_id"], listing["patient_id"]) == (CASE, PATIENT.patient_id(KEY))


def test_every_planted_identifier_stands_in_the_raw_files(folder: Path) -> None:
    paths = [folder / "record.csv", *(folder / "notes").iterdir(), *(folder / "dicom").rglob("*.dcm")]
    content = b"\n".join(path.read_bytes() for path in paths) + " ".join(path.name for path in paths).encode()
    planted = read_json(folder / "planted.json")
    assert len(planted) >= 35
    assert [value for value in planted if value.encode() not in content] == []


def test_headers_carry_the_identity_in_standard_nested_and_private_places(folder: Path) -> None:
    header = pydicom.dcmread(next((folder / "dicom").glob("01_*/*.dcm")))
    assert str(header.PatientName) == "Osei-Bonsu^Kwabena"
    assert PATIENT.identity.family.upper() in header.StudyDescription
    assert PATIENT.identity.family in header.RequestAttributesSequence[0].RequestedProcedureDescription
    assert PATIENT.identity.mrn in header.private_block(0x0029, "DEMO PHANTOM HEADER")[0x01].value
    assert header.PatientAge == "058Y"


def test_the_answer_key_is_private_labelled_and_names_what_has_to_go_and_to_stay(folder: Path) -> None:
    key = read_answer_key(folder / "answer_key.json")
    assert "phantom" in key.label
    assert [name for name in ("answer_key.json", "planted.json") if (folder / name).stat().st_mode & 0o077] == []
    assert [(series.kept, series.files) for series in key.series] == [(True, 30), (False, 1)]
    rules = {(rule.path, rule.action) for rule in key.series[0].rules}
    assert {("00181088", "text_removed"), ("0028FFF0", "text_removed"), ("60003000", "text_removed"), ("FFFCFFFC", "text_removed")} <= rules
    assert {("00880200/0/7FE00010", "text_removed"), ("00400275/0/00400008/0/00400440/0/0040A123", "text_removed")} <= rules
    assert {
        ("00280010", "tag_retained"),
        ("00180060", "text_retained"),
        ("00400244", "date_shifted"),
        ("00200052", "uid_consistent"),
    } <= rules
    assert not any(rule.action == "text_retained" for rule in key.series[1].rules), "of a screenshot nothing has to stay"


def test_no_planted_value_of_a_header_is_without_a_rule(folder: Path) -> None:
    key = read_answer_key(folder / "answer_key.json")
    removed = {rule.path for rule in key.series[0].rules if rule.action in {"text_removed", "date_shifted", "uid_changed"}}
    header = pydicom.dcmread(next((folder / "dicom").glob("01_*/*.dcm")))

    def unruled(dataset: pydicom.Dataset, above: str = "") -> list[str]:
        found = []
        for element in dataset:
            path = f"{above}{element.tag.group:04X}{element.tag.element:04X}"
            if element.VR == "SQ":
                found += [one for place, item in enumerate(element.value) for one in unruled(item, f"{path}/{place}/")]
            elif path not in removed and any(word.encode() in str(element.value).encode() for word in key.strings):
                found.append(path)
        return found

    assert unruled(header) == []


def test_the_screenshot_says_that_a_name_is_burned_in(folder: Path) -> None:
    (path,) = (folder / "dicom").glob("*SCREENSHOT/*.dcm")
    shot = pydicom.dcmread(path)
    assert (shot.BurnedInAnnotation, shot.ImageType[2], shot.SamplesPerPixel) == ("YES", "SCREEN SAVE", 3)
    assert (shot.pixel_array[:24] == (255, 255, 0)).all(axis=-1).sum() > 100


def test_the_answer_says_where_the_blood_lies(folder: Path) -> None:
    answer = read_json(folder.with_name("answer.json"))
    x, y, z = (float(part) for part in answer["lesion_position_mm"].split())
    voxels, origin = head_ct(folder)
    at = np.rint((np.array([z, y, x]) - origin[::-1]) / (5, 1, 1)).astype(int)
    near = voxels[at[0], at[1] - 2 : at[1] + 3, at[2] - 2 : at[2] + 3]
    assert 60 < near.mean() < 78
    assert answer["lesion_side"] == "right"
    assert x < 0, "LPS+: the patient's right is negative"
    assert 25 < float(answer["lesion_size_mm"]) < 70
    mask = read_lesion_mask(folder.parent, CASE)
    assert mask is not None
    marked = np.argwhere(mask.voxels) @ mask.affine[:3, :3].T + mask.affine[:3, 3]
    assert marked.mean(axis=0) == pytest.approx([x, y, z], abs=0.06)


def test_the_head_has_a_face_with_a_nose_in_front_of_the_skull(folder: Path) -> None:
    voxels, _ = head_ct(folder)
    front = np.array([np.flatnonzero((plane > -300).any(axis=1))[0] if (plane > -300).any() else 999 for plane in voxels])
    nose, forehead = front[2:10].min(), front[16]
    assert nose < forehead - 8
    skull = voxels > 700
    assert skull.sum() > 20_000


def test_gathered_answers_have_the_columns_of_the_answers_table(folder: Path, tmp_path: Path) -> None:
    # a phantom names no rivals of its own
    assert set(read_json(folder.with_name("answer.json"))) == set(ANSWER_COLUMNS) - {"rivals"}
    gather_answers(["--answers", str(folder.with_name("answer.json")), "--out", str(tmp_path / "answers.csv")])
    rows = list(csv.DictReader((tmp_path / "answers.csv").open(encoding="utf-8")))
    assert [tuple(row) for row in rows] == [ANSWER_COLUMNS]
    with pytest.raises(DataError, match="the file is not there"):
        gather_answers(["--answers", str(folder / "answer.json"), "--out", str(tmp_path / "answers.csv")])


def test_only_pictures_that_show_the_disease_are_collected(folder: Path, tmp_path: Path) -> None:
    listed = read_json(folder / "slices" / "slices.json")
    assert len(listed) == len(PATIENT.cuts)
    assert all(entry["shows_lesion"] for entry in listed)
    write_json(folder / "slices" / "slices.json", [listed[0] | {"shows_lesion": False}, *listed[1:]])
    collect_pictures([folder / "slices"], KEY, tmp_path / "pictures", tmp_path / "images.csv")
    write_json(folder / "slices" / "slices.json", listed)
    rows = list(csv.DictReader((tmp_path / "images.csv").open(encoding="utf-8")))
    assert tuple(rows[0]) == IMAGE_COLUMNS
    assert len(rows) == len(list((tmp_path / "pictures").iterdir())) == len(listed) - 1
    for row in rows:
        with Image.open(tmp_path / row["file_path"]) as picture:
            assert (picture.size, picture.mode, picture.info) == ((256, 256), "L", {})
        assert (row["class"], row["subclass"], row["modality"], row["modality_subtype"]) == ("stroke", "hemorrhagic", "CT", "")
