"""Headers and files with names hidden where a cleaner may not look."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate

from fixtures.deid import KEY, write_dicom_series, write_nifti_file
from fixtures.raw import write_enhanced
from neuralmedbench.deid.faces.deface import DefacedScan
from neuralmedbench.deid.headers.cleaner import HeaderCleaner
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.release import folder as dicom_case
from neuralmedbench.deid.release.folder import clean_dicom_series, read_notes
from neuralmedbench.deid.values import DateShift, clean_descriptor
from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.identity import Identity, fold, identity_pattern
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.ingest.cases import collect_identity
from neuralmedbench.ingest.raw_files import frames_of, read_raw_file
from neuralmedbench.ingest.raw_series import exclusion_reason

OWNED = Identity(names=("Vandermeer^Johanna",), numbers=("48213371", "12-34-56"))
HIDDEN = b"Vandermeer 48213371 "


def cleaned(dataset: Any, identity: Identity = OWNED) -> Dataset:
    """Write a header, read it, clean it."""
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    again = dicom.read_header(buffer.getvalue())
    HeaderCleaner(HeaderRules(KEY, "beef00000001", DateShift(-100), identity_pattern(identity))).clean(again)
    return again


@pytest.fixture
def header(tmp_path: Path) -> Any:
    return pydicom.dcmread(write_dicom_series(tmp_path / "raw", slices=1)[0])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("T1 12-34-56", "T1"),
        ("T1_12_34_56 TRA", "T1 TRA"),
        ("DOB 14/09/59 head", "head"),
        ("T2 tel 06 12 34 56", "T2"),
        ("FLAIR 48 21/337 3", "FLAIR"),
        ("T2 TSE 3 FS 5mm", "T2 TSE 3 FS 5mm"),
        ("DWI b1000 4", "DWI b1000 4"),
    ],
)
def test_numbers_in_a_row_do_not_describe_a_scan(header: Any, text: str, kept: str) -> None:
    assert clean_descriptor(text) == kept
    header.SeriesDescription = text
    assert cleaned(header, Identity()).SeriesDescription == kept


def test_words_that_identify_a_place_only_together_are_removed(header: Any) -> None:
    header.StudyDescription = "MRI of Head Vertex clinic"
    assert cleaned(header, Identity(places=("Head Vertex",))).StudyDescription == ""


@pytest.mark.parametrize(
    ("place", "kind", "value"),
    [
        ((0x0019, "SIEMENS MR HEADER", 0x0C), "IS", b"48213371"),
        ((0x0043, "GEMS_PARM_01", 0x39), "IS", b"48213371\\0\\0\\0"),
        ((0x0019, "SIEMENS MR HEADER", 0x27), "FD", (HIDDEN * 3)[:48]),
        ((0x0019, "SIEMENS MR HEADER", 0x27), "UN", b"somebody unknown".ljust(48, b"q")),
        ((0x2001, "Philips Imaging DD 001", 0x18), "SL", (48213371).to_bytes(4, "little")),
    ],
)
def test_a_private_number_that_identifies_the_patient_is_removed(header: Any, place: tuple[int, str, int], kind: str, value: bytes) -> None:
    group, creator, element = place
    block = header.private_block(group, creator, create=True)
    tag = block.get_tag(element)
    header[tag] = pydicom.dataelem.RawDataElement(tag, kind, len(value), value, 0, False, True)
    assert tag not in cleaned(header)


def test_private_numbers_of_a_scan_stay(header: Any) -> None:
    values = {0x0C: ("IS", 1000), 0x0E: ("FD", [0.0, -0.70710678, 0.70710678]), 0x27: ("FD", [500.1, 2.5, -3.0, 480.0, 0.0, 20.25])}
    block = header.private_block(0x0019, "SIEMENS MR HEADER", create=True)
    for element, (kind, value) in values.items():
        block.add_new(element, kind, value)
    general = header.private_block(0x0043, "GEMS_PARM_01", create=True)
    general.add_new(0x39, "IS", [1000001000, 8, 0, 0])  # b = 1000 as written by GE
    after = cleaned(header)
    assert all(block.get_tag(element) in after for element in values)
    assert general.get_tag(0x39) in after


def test_lists_of_codes_hold_no_other_word(header: Any) -> None:
    header.BodyPartExamined = "QUILLFEATHER"
    header.SpecificCharacterSet = ["ISO 2022 IR 6", "ISO 2022 IR 87"]
    after = cleaned(header)
    assert "BodyPartExamined" not in after
    assert list(after.SpecificCharacterSet) == ["ISO 2022 IR 6", "ISO 2022 IR 87"]
    header.BodyPartExamined, header.SpecificCharacterSet = "Head", "ISO_IR 192"
    assert (cleaned(header).BodyPartExamined, cleaned(header).SpecificCharacterSet) == ("Head", "ISO_IR 192")
    header.SpecificCharacterSet = ["ISO 2022 IR 6", "QUILLFEATHER"]
    assert "SpecificCharacterSet" not in cleaned(header)


def test_a_number_below_the_root_of_the_standard_is_not_a_uid_of_the_standard(header: Any) -> None:
    header.FrameOfReferenceUID = "1.2.840.10008.482.133.71"
    after = cleaned(header)
    assert after.FrameOfReferenceUID != "1.2.840.10008.482.133.71"
    assert after.SOPClassUID == header.SOPClassUID


def test_settings_with_spaces_in_their_numbers_are_removed(header: Any) -> None:
    for tag, value in ((0x00180080, b"4821 3371 "), (0x00180081, b" 98.5 "), (0x00181314, b"9.0e1 ")):
        header[tag] = pydicom.dataelem.RawDataElement(pydicom.tag.Tag(tag), "DS", len(value), value, 0, False, True)
    after = cleaned(header)
    assert "RepetitionTime" not in after
    assert (float(after.EchoTime), float(after.FlipAngle)) == (98.5, 90.0)


def test_pixels_in_other_elements_are_removed(header: Any) -> None:
    header.add_new("FloatPixelData", "OF", b"\0" * 16)
    header.add_new("ExtendedOffsetTable", "OV", HIDDEN[:16])
    after = cleaned(header)
    assert not {"FloatPixelData", "ExtendedOffsetTable"} & set(after.dir())


def test_names_in_functional_groups_are_removed_from_the_notes(tmp_path: Path) -> None:
    path = write_enhanced(tmp_path / "enhanced.dcm")
    image = pydicom.dcmread(path)
    inner = Dataset()
    inner.OperatorsName = "Sysoev^Foma"
    block = image.PerFrameFunctionalGroupsSequence[3].private_block(0x2005, "Philips MR Imaging DD 005", create=True)
    block.add_new(0x0F, "SQ", [inner])
    image.save_as(path)
    assert "Sysoev^Foma" in collect_identity(frames_of(read_raw_file(1, path))).names


def test_identifiers_in_a_sidecar_are_removed_from_the_notes(tmp_path: Path) -> None:
    told = {
        "PatientName": "Vandermeer^Johanna",
        "PatientID": 48213371,
        "PatientBirthDate": "1959-09-14",
        "InstitutionName": "Oosterhaven Hospital",
        "PerformingPhysicianName": ["Hoogland^Maarten", "Brandsma^Sietske"],
        "StudyInstanceUID": "1.2.3.4.5",
        "SequenceName": "tfl3d1",
        "EchoTime": 0.003,
    }
    (tmp_path / "p_T1w.json").write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "q_T1w.json").write_text("[1, 2", encoding="utf-8")
    image = write_nifti_file(tmp_path / "p_T1w.nii.gz", np.zeros((4, 4, 4), np.int16))
    scans = [read_raw_file(number, path) for number, path in enumerate((image, *sorted(tmp_path.glob("*.json"))), start=1)]
    found = collect_identity(scans)
    assert found.names == ("Brandsma^Sietske", "Hoogland^Maarten", "Vandermeer^Johanna")
    assert {"48213371", "1959-09-14"} <= set(found.numbers)
    assert (found.places, found.uids) == (("Oosterhaven Hospital",), ("1.2.3.4.5",))


def test_a_town_after_its_postcode_is_recognised() -> None:
    pattern = identity_pattern(Identity(places=("Lindenlaan 27, 1234 AB Oosterhaven",)))
    assert pattern is not None
    assert [match[0] for match in pattern.finditer(fold("seen in Oosterhaven, at Lindenlaan, in AB"))] == ["Oosterhaven", "Lindenlaan"]


def nothing_removed(volume: Volume, **_: Any) -> DefacedScan:
    return DefacedScan(volume, (), {"face_removed": 0.0}, np.zeros(volume.voxels.shape, bool))


def test_bytes_after_the_pixels_and_unused_bits_are_removed_from_every_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dicom_case, "deface", nothing_removed)
    paths = write_dicom_series(tmp_path / "raw", slices=4)
    before = []
    for path in paths:
        image = pydicom.dcmread(path)
        before.append(image.pixel_array.copy())
        marked = before[-1].copy()
        marked[30:34, 5:40] |= 0x8000  # BitsStored is 12
        image.PixelData = marked.tobytes() + HIDDEN
        image.save_as(path)
    clean_dicom_series(tmp_path / "raw", tmp_path / "out", HeaderRules(KEY, "beef00000001", DateShift(-100)), Counter())
    after = [pydicom.dcmread(path) for path in sorted((tmp_path / "out").iterdir())]
    assert [image.PixelData for image in after] == [plane.astype("<u2").tobytes() for plane in before]


def test_a_comment_in_a_compressed_image_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(dicom_case, "deface", nothing_removed)
    before = []
    for path in write_dicom_series(tmp_path / "raw", slices=4):
        image = pydicom.dcmread(path)
        before.append(image.pixel_array.copy())
        stream = io.BytesIO()
        Image.fromarray(before[-1]).save(stream, format="JPEG2000", no_jp2=True, irreversible=False, comment=HIDDEN)
        image.file_meta.TransferSyntaxUID = pydicom.uid.JPEG2000Lossless
        image.add_new("PixelData", "OB", encapsulate([stream.getvalue()]))
        image["PixelData"].is_undefined_length = True
        image.save_as(path)
        assert HIDDEN in path.read_bytes()
    clean_dicom_series(tmp_path / "raw", tmp_path / "out", HeaderRules(KEY, "beef00000001", DateShift(-100)), Counter())
    written = sorted((tmp_path / "out").iterdir())
    assert not [path for path in written if b"Vandermeer" in path.read_bytes()]
    assert all(np.array_equal(pydicom.dcmread(path).pixel_array, plane) for path, plane in zip(written, before, strict=True))


def test_a_letter_is_read_in_every_encoding_that_notes_have(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        (tmp_path / "letter.txt").write_bytes("Seen by Müller.\r\n".encode(encoding))
        assert read_notes(tmp_path / "letter.txt") == "Seen by Müller.\n"
    (tmp_path / "letter.txt").write_bytes(b"%PDF-1.7 Vandermeer")
    with pytest.raises(DataError, match=r"--notes: expected plain text, found something else \(document\)"):
        read_notes(tmp_path / "letter.txt")


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"PixelSpacing": [0, 0]}, "pixel spacing or orientation that no image can have"),
        ({"PixelSpacing": [-3.5, 3.5]}, "pixel spacing or orientation that no image can have"),
        ({"ImageOrientationPatient": [0, 0, 0, 0, 0, 0]}, "pixel spacing or orientation that no image can have"),
        ({"ImageOrientationPatient": [1, 0, 0, 0.5, 0.8, 0]}, "pixel spacing or orientation that no image can have"),
        ({"ImageOrientationPatient": [0.9999, 0.0102, 0, -0.0102, 0.9999, 0.0004]}, ""),
        ({"PhotometricInterpretation": "MONOCHROME1"}, "inverted greys (MONOCHROME1)"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "colour picture, not a scan"),
    ],
)
def test_an_impossible_image_is_excluded_before_anything_is_computed_from_it(tmp_path: Path, tags: dict[str, Any], reason: str) -> None:
    said = exclusion_reason(dicom.read_dicom(write_dicom_series(tmp_path, slices=1, **tags)[0]))
    assert said.startswith(reason) if reason else said == ""


def test_a_nifti_file_without_extent_in_one_direction_is_damaged(tmp_path: Path) -> None:
    import nibabel

    make: Any = nibabel.Nifti1Image
    for name, affine in (
        ("flat", np.diag([1.0, 0, 1, 1])),
        ("twice", np.array([[1.0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])),
    ):
        image = make(np.arange(64, dtype=np.int16).reshape(4, 4, 4), np.eye(4))
        image.header["sform_code"], image.header["srow_x"], image.header["srow_y"], image.header["srow_z"] = 1, *affine[:3]
        (tmp_path / f"{name}.nii").write_bytes(image.header.binaryblock + b"\0" * 4 + np.arange(64, dtype=np.int16).tobytes())
        with pytest.raises(DataError, match="no extent in one direction"):
            read_nifti(tmp_path / f"{name}.nii")
