"""Objects of a study other than scans: the reason names the kind of each, and the scans are used."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fixtures.raw import AXIAL, CORONAL, SAGITTAL, Stack, ball, ct_tags, ingest, make_slice, save, write_series
from neuralmedbench.files.case_flow import NO_HEAD, PHANTOM, counts_as_patient
from neuralmedbench.ingest.raw_series import OBJECT_NAMES
from neuralmedbench.records.case import State

STORAGE = "1.2.840.10008.5.1.4.1.1."


@pytest.mark.parametrize(
    ("kind", "tags", "reason"),
    [
        ("7", {}, "screenshot (secondary capture)"),
        ("7.4", {}, "screenshot (secondary capture)"),
        ("7", {"SeriesDescription": "Dose Report", "Modality": "CT"}, "dose report"),
        ("7", {"SeriesDescription": "Patient Protocol", "Modality": "CT"}, "dose report"),
        ("88.67", {"Modality": "SR"}, "dose report"),
        ("88.33", {"Modality": "SR"}, "structured report"),
        ("88.59", {"Modality": "KO"}, "key object selection"),
        ("11.1", {"Modality": "PR"}, "presentation state"),
        ("104.1", {"Modality": "DOC"}, "document (encapsulated PDF or other file)"),
        ("481.3", {"Modality": "RTSTRUCT"}, "radiotherapy object"),
        ("481.2", {"Modality": "RTDOSE"}, "radiotherapy object"),
        ("66.4", {"Modality": "SEG"}, "segmentation mask"),
        ("66.1", {"Modality": "REG"}, "registration, fiducials or raw data"),
        ("30", {"Modality": "MR"}, "parametric map"),
        ("4.2", {"Modality": "MR"}, "spectroscopy"),
        ("9.1.1", {"Modality": "ECG"}, "waveform"),
        ("128", {"Modality": "PT"}, "PET image"),
        ("20", {"Modality": "NM"}, "nuclear medicine image"),
        ("1", {"Modality": "CR"}, "radiograph"),
        ("6.1", {"Modality": "US"}, "ultrasound"),
        ("77.1.4", {"Modality": "XC"}, "photograph or video"),
        ("4", {"BurnedInAnnotation": "YES"}, "text is burned into the image (BurnedInAnnotation)"),
        ("4", {"ImageType": ["DERIVED", "SECONDARY", "SCREEN SAVE"]}, "screenshot (secondary capture)"),
        ("4", {"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "localizer"),
        ("4", {"SeriesDescription": "AAHead_Scout_64ch"}, "localizer"),
        ("2", {"SeriesDescription": "Topogram 0.6 T20s", "Modality": "CT"}, "localizer"),
        ("4", {"SamplesPerPixel": 3}, "colour picture, not a scan"),
        ("4", {"NumberOfFrames": 8}, "several frames in one object that does not say where each of them lies"),
        ("4", {"Rows": None}, "cut off before its image, or an object without one"),
        ("4", {"ImagePositionPatient": None}, "slice without a position in space"),
    ],
)
def test_each_kind_of_object_is_named_in_its_reason(tmp_path: Path, kind: str, tags: dict[str, Any], reason: str) -> None:
    other = make_slice(ball(1)[0], (0, 0, 0), 1, 9, **{"SOPClassUID": STORAGE + kind, **tags})
    files = [*write_series(tmp_path / "raw"), save(other, tmp_path / "raw" / "odd")]
    case = ingest(tmp_path, files)
    assert case.state is State.OK
    assert case.fates[-1].reason == reason
    assert [fate.fate for fate in case.fates].count("used") == 8


def test_the_directory_of_a_medium_is_no_scan_even_under_another_name(tmp_path: Path) -> None:
    import pydicom

    files = write_series(tmp_path / "raw")
    directory = Path(pydicom.__file__).parent / "data" / "test_files" / "dicomdirtests" / "DICOMDIR"
    (tmp_path / "raw" / "index.dcm").write_bytes(directory.read_bytes())
    case = ingest(tmp_path, [*files, tmp_path / "raw" / "index.dcm"])
    assert case.fates[-1].fate == "set_aside"
    assert case.fates[-1].reason == "not a scan: directory of a medium (DICOMDIR)"


def test_dicom_without_a_class_is_not_called_damaged_for_sure(tmp_path: Path) -> None:
    """Scanners write files of their own in this form; an index without records is one."""
    import pydicom

    files = write_series(tmp_path / "raw")
    own = pydicom.Dataset()
    own.Manufacturer, own.FileSetID = "Philips Medical Systems", "Vandermeer"
    path = tmp_path / "raw" / "DIRFILE"
    own.preamble = b"\0" * 128
    pydicom.dcmwrite(path, own, implicit_vr=False, little_endian=True)
    case = ingest(tmp_path, [*files, path])
    assert case.fates[-1].reason == "not a scan: DICOM that is no image (no SOP Class UID): a file of the scanner itself, or a damaged one"


@pytest.mark.parametrize(
    "tags",
    [
        {"ImageType": ["DERIVED", "SECONDARY", "MPR"]},
        {"ImageType": ["DERIVED", "SECONDARY", "OTHER", "CSA MPR"]},
        {"ImageType": ["DERIVED", "SECONDARY", "REFORMATTED", "AVERAGE"]},
        {"ImageType": ["DERIVED", "SECONDARY", "M"], "SeriesDescription": "t1 reformat cor"},
        {"ImageType": ["DERIVED", "PRIMARY", "PROJECTION IMAGE"], "SeriesDescription": "t1 mip"},
    ],
)
def test_what_was_computed_from_another_series_of_the_case_is_set_aside(tmp_path: Path, tags: dict[str, Any]) -> None:
    files = write_series(tmp_path / "raw" / "1", **ct_tags())
    files += write_series(tmp_path / "raw" / "2", Stack(orientation=CORONAL), series=2, **{**ct_tags(), **tags})
    case = ingest(tmp_path, files)
    assert [series.series_id for series in case.series] == ["series-01"]
    assert any(words in case.fates[-1].reason for words in ("reformatted from another series", "projection of a scan"))


def test_a_reformatted_series_is_used_when_its_source_is_not_there(tmp_path: Path) -> None:
    tags = {**ct_tags(), "ImageType": ["DERIVED", "SECONDARY", "MPR"]}
    assert ingest(tmp_path, write_series(tmp_path / "raw", **tags)).state is State.OK


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("SUBTRACTION", "subtraction of scans"), ("MIP", "projection of a scan"), ("MINIP", "projection of a scan"), ("PHASE", "phase image")],
)
def test_maps_and_projections_are_no_scans_even_alone(tmp_path: Path, kind: str, reason: str) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", ImageType=["DERIVED", "SECONDARY", kind]))
    assert reason in case.reason
    assert not counts_as_patient(case)


GRADIENT_ECHO = {"ScanningSequence": "GR", "RepetitionTime": 650, "EchoTime": 7.0, "FlipAngle": 80}


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({**GRADIENT_ECHO, "SeriesDescription": "Dual-echo_iso"}, "field map"),
        ({**GRADIENT_ECHO, "SeriesDescription": "gre_field_mapping_2mm"}, "field map"),
        ({**GRADIENT_ECHO, "SeriesDescription": "gre_fm_baseline"}, "field map"),
        ({**GRADIENT_ECHO, "SeriesDescription": "3DB0Map"}, "field map"),
        ({**GRADIENT_ECHO, "SeriesDescription": "B0 NS"}, "field map"),
        ({**GRADIENT_ECHO, "SeriesDescription": "", "SequenceName": "*fm2d2r"}, "field map"),
        ({"SeriesDescription": "fcMRI Field Mapping"}, "field map"),
        ({"SeriesDescription": "WIP SOURCE - 3DpCASL", "RepetitionTime": 4250}, "perfusion scan"),
        ({"SeriesDescription": "rest_fMRI", "ScanningSequence": "EP"}, "functional scan"),
        ({"SeriesDescription": "FA colour"}, "map computed from scans"),
        ({**ct_tags(), "SeriesDescription": "Mono 70 keV"}, "computed from a dual-energy CT"),
    ],
)
def test_a_scan_of_another_kind_is_named(tmp_path: Path, tags: dict[str, Any], reason: str) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", **tags))
    assert case.reason.startswith(f"no usable series among 8 files: {reason}: name it in `sequence_map`")
    assert not counts_as_patient(case)


@pytest.mark.parametrize("second", [{"EchoTime": 10.0}, {"ImageType": ["ORIGINAL", "PRIMARY", "P", "ND"]}], ids=["echo", "phase"])
def test_a_gradient_echo_with_a_second_echo_or_a_phase_is_a_field_map_whatever_it_is_called(tmp_path: Path, second: dict[str, Any]) -> None:
    """Its magnitude has the timing of a T1-weighted scan."""
    tags = {**GRADIENT_ECHO, "SeriesDescription": "shimcheck"}
    alone = write_series(tmp_path / "raw" / "1", **tags)
    assert [series.flags for series in ingest(tmp_path / "alone", alone).series] == [("kind_by_physics_alone",)]
    pair = write_series(tmp_path / "raw" / "2", series=2, voxels=ball(8) + 5, **{**tags, **second})
    assert "field map" in ingest(tmp_path, alone + pair).reason


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ("KNEE", "knee"), ("LSPINE", "spine"), ("CSPINE", "spine"), ("LIVER", "abdomen"), ("CHEST", "chest"), ("ABDOMEN", "abdomen"),
        ("CHESTABDOMEN", "chest"), ("HAND", "shoulder or arm"), ("L SPINE", "spine"), ("Right Knee", "knee"), ("LWS", "spine"),
        ("GENOU", "knee"), ("FOOT", "leg"), ("HIP", "pelvis"), ("LUMBAR SPINE", "spine"), ("ABDOMEN_PELVIS", "abdomen"),
    ],
)  # fmt: skip
def test_a_series_of_another_part_of_the_body_is_no_head(tmp_path: Path, part: str, word: str) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", BodyPartExamined=part))
    assert case.reason.startswith(f"no usable series among 8 files: shows another part of the body: {word} (BodyPartExamined)")
    assert not counts_as_patient(case)
    named = ingest(tmp_path / "named", write_series(tmp_path / "raw", BodyPartExamined=part), overrides="series-01=T1w")
    assert named.state is State.OK


@pytest.mark.parametrize(
    "part", ["HEAD", "BRAIN", "SKULL", "NECK", "HEADNECK", "HEAD AND NECK", "NECKCHEST", "WHOLEBODY", "ORBIT", "IAC", "", "KOPF", "X9"]
)
def test_a_part_with_the_head_or_an_unknown_word_passes(tmp_path: Path, part: str) -> None:
    assert ingest(tmp_path, write_series(tmp_path / "raw", BodyPartExamined=part)).state is State.OK


def test_a_few_slices_in_three_planes_are_a_localizer_whatever_they_are_called(tmp_path: Path) -> None:
    files = []
    for number, orientation in enumerate(((1, 0, 0, 0, 1, 0), SAGITTAL, CORONAL)):
        stack = Stack(slices=3, orientation=orientation)
        files += write_series(tmp_path / str(number), stack, first=1 + 3 * number, SeriesInstanceUID="1.2.3")
    assert "localizer (few slices in several planes)" in ingest(tmp_path, files).reason


@pytest.mark.parametrize(
    ("pictures", "first"),
    [((SAGITTAL,), 30), ((SAGITTAL,), -5), ((SAGITTAL, CORONAL), 30), ((CORONAL, CORONAL, CORONAL), 30)],
    ids=["last", "first", "two planes", "three"],
)
def test_reference_pictures_in_another_plane_are_the_localizer_of_a_stack(
    tmp_path: Path, pictures: tuple[tuple[int, ...], ...], first: int
) -> None:
    """Toshiba and Canon write one into each series."""
    files = write_series(tmp_path / "raw", Stack(slices=20), SeriesInstanceUID="1.2.3")
    for number, orientation in enumerate(pictures):
        files += write_series(tmp_path / "raw", Stack(slices=1, orientation=orientation), first=first + number, SeriesInstanceUID="1.2.3")
    case = ingest(tmp_path, files)
    assert [series.quality["slices"] for series in case.series] == [20]
    reason = f"localizer ({len(pictures)} of {20 + len(pictures)} images, in another plane)"
    assert case.raw_files == {"used": 20, reason: len(pictures)}


def test_a_reference_picture_in_the_same_plane_is_no_slice_of_the_stack(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw", Stack(slices=20), SeriesInstanceUID="1.2.3")
    files += write_series(tmp_path / "raw", Stack(slices=1), first=30, SeriesInstanceUID="1.2.3", PixelSpacing=[8, 8], voxels=ball(1) + 1)
    assert ingest(tmp_path, files).raw_files == {"fewer than 3 slices": 1, "used": 20}


def test_three_planes_of_fifteen_images_are_a_localizer(tmp_path: Path) -> None:
    files = []
    for number, orientation in enumerate((AXIAL, SAGITTAL, CORONAL)):
        files += write_series(tmp_path / "raw", Stack(slices=15, orientation=orientation), first=1 + 15 * number, SeriesInstanceUID="1.2.3")
    assert ingest(tmp_path, files).raw_files == {"localizer (few slices in several planes)": 45}


def test_different_images_with_one_uid_are_used_by_position_and_copies_are_not(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "1", Stack(slices=12), SOPInstanceUID="1.2.3")
    files += [shutil.copy(path, tmp_path / "raw" / f"again-{path.name}") for path in files[:2]]
    case = ingest(tmp_path, files)
    assert case.series[0].quality["slices"] == 12
    assert case.raw_files == {"duplicate of another file": 2, "used": 12}


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "localizer"),
        ({"SeriesDescription": "t1 map"}, "map computed from scans"),
    ],
)
def test_a_copy_of_an_excluded_file_has_the_reason_of_that_file(tmp_path: Path, tags: dict[str, Any], reason: str) -> None:
    files = write_series(tmp_path / "raw" / "1", **tags)
    files += [shutil.copy(path, tmp_path / "raw" / f"{number}-{path.name}") for path in files for number in range(3)]
    case = ingest(tmp_path, files)
    assert case.reason.startswith(f"no usable series among 32 files: {reason}")
    assert not counts_as_patient(case)


def test_a_case_with_files_of_two_patients_is_quarantined_without_naming_them(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "1") + write_series(tmp_path / "raw" / "2", series=2, PatientID="OKA-777")
    case = ingest(tmp_path, files)
    assert case.state is State.QUARANTINED
    assert "files of more than one patient in one case: 2 different entries for the patient id" in case.reason
    assert "777" not in case.reason


@pytest.mark.parametrize(("keyword", "values"), [("PatientBirthDate", ("19590914", "19800101")), ("PatientSex", ("F", "M"))])
def test_one_id_with_two_birth_dates_or_sexes_is_two_patients(tmp_path: Path, keyword: str, values: tuple[str, str]) -> None:
    files = [path for number, value in enumerate(values) for path in write_series(tmp_path / value, series=number, **{keyword: value})]
    assert "more than one patient" in ingest(tmp_path, files).reason


@pytest.mark.parametrize(
    ("tags", "counts"),
    [
        ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, False),
        ({"SeriesDescription": "ep2d_bold_rest", "ScanningSequence": "EP", "EchoTime": 30, "RepetitionTime": 2000}, False),
        ({"ImagePositionPatient": None}, True),
    ],
    ids=["localizer", "functional", "a head without positions"],
)
def test_a_case_without_any_head_scan_does_not_count_as_a_patient(tmp_path: Path, tags: dict[str, Any], counts: bool) -> None:
    case = ingest(tmp_path, [save(make_slice(ball(1)[0], (0, 0, 5 * n), n, **tags), tmp_path / "raw" / f"{n}.dcm") for n in range(4)])
    assert case.state is State.QUARANTINED
    assert counts_as_patient(case) is counts


def test_every_kind_of_object_that_is_no_scan_is_known_as_no_head() -> None:
    assert [name for _, name in OBJECT_NAMES if not NO_HEAD.search(name)] == []


@pytest.mark.parametrize(("name", "is_one"), [("ACR^Phantom", True), ("PHANTOM_2", True), ("Vandermeer^Johanna", False)])
def test_a_phantom_is_known_by_the_words_of_its_header(tmp_path: Path, name: str, is_one: bool) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", PatientName=name))
    assert case.state is State.OK
    assert (PHANTOM in case.quality) is is_one
