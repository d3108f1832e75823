"""DICOM headers: each option of PS3.15 does what it says, nothing escapes the cleaner, and the files stay valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

from conftest import ROOT
from fixtures.deid import KEY, write_dicom_series
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.deidentification import HeaderOption
from neuralmedbench.config.load import check
from neuralmedbench.deid.headers.cleaner import HeaderCleaner, clean_series, clean_sidecar, write_dicom
from neuralmedbench.deid.headers.rules import (
    ALL_OPTIONS,
    CODES,
    METHOD,
    SAFE_PRIVATE,
    STRUCT_CODES,
    Action,
    HeaderRules,
    action_of,
    declare,
    declared,
)
from neuralmedbench.deid.values import DateShift, clean_pulse_name
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.identity import Identity, identity_pattern
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.pseudonyms import device_pseudonym, uid_pseudonym

PACKAGED = Path(pydicom.data.__file__).parent / "test_files"
SHIFTED = DateShift(-100)
YEARS = DateShift(-100, years_only=True)
EMPTIED = DateShift(-100, years_only=True, emptied=True)
DATES = {"DA", "DT", "TM"}
NOBODYS = ("1.2.840.10008.", "1.2.826.0.1.3680043.8.498")
"""UID roots of the standard and of the library that writes the files."""
VERIFIED = (
    "CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm", "MR_small_implicit.dcm", "JPEG2000.dcm", "693_J2KI.dcm",
    "SC_rgb_jpeg.dcm", "examples_overlay.dcm", "dicomdirtests/98892003/MR700/4467", "dicomdirtests/77654033/CT2/17106",
)  # fmt: skip


def rules(dates: DateShift = SHIFTED, options: tuple[str, ...] = ALL_OPTIONS, identity: Identity | None = None) -> HeaderRules:
    """Make the rules of one patient."""
    return HeaderRules(KEY, "beef00000001", dates, identity_pattern(identity) if identity else None, options)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one file of an MR series with planted identifiers."""
    return write_dicom_series(
        tmp_path_factory.mktemp("raw"), slices=1, PatientSize="1.71", PatientWeight="70", ManufacturerModelName="Avanto",
        SoftwareVersions="syngo MR B17", ContrastBolusAgent="Gadovist 7ml by Hoogland", SequenceName="*tfl3d1_16ns", SmokingStatus="NO",
    )[0]  # fmt: skip


def cleaned(path: Path, *arguments: Any, **settings: Any) -> Dataset:
    """Clean a file as it is read from disk."""
    dataset = dicom.read_dicom(path)
    HeaderCleaner(rules(*arguments, **settings)).clean(dataset)
    return dataset


def every(dataset: Dataset) -> Iterator[pydicom.DataElement]:
    """Yield all elements, including nested ones."""
    return (element for _, element in dicom.elements(dataset))


def without(code: str) -> tuple[str, ...]:
    return tuple(option for option in ALL_OPTIONS if option != code)


def test_every_option_of_the_configuration_has_a_meaning_and_the_other_way_round() -> None:
    assert set(get_args(HeaderOption)) == set(CODES) - {"113100"} == set(ALL_OPTIONS)
    assert len(METHOD) <= 64


@pytest.mark.parametrize(
    ("code", "keyword", "with_it", "without_it"),
    [
        ("113105", "SeriesDescription", "T1 SE TRA", None),
        ("113105", "SequenceName", "*tfl3d1_16ns", ""),
        ("113105", "ContrastBolusAgent", "Gadovist", "contrast agent"),
        ("113107", "StudyDate", "20301204", ""),
        ("113107", "AcquisitionDate", "20301204", ""),
        ("113107", "StudyTime", "120000", ""),
        ("113108", "PatientAge", "090Y", None),
        ("113108", "PatientSex", "F", ""),
        ("113108", "PatientSize", "1.71", None),
        ("113108", "PatientWeight", "70", None),
        ("113108", "SmokingStatus", "NO", None),
        ("113109", "ManufacturerModelName", "Avanto", None),
        ("113109", "SoftwareVersions", "syngo MR B17", None),
        ("113109", "DeviceSerialNumber", device_pseudonym(KEY, "SN-66120"), None),
        ("113109", "StationName", device_pseudonym(KEY, "OGHMR02"), None),
    ],
)
def test_an_option_keeps_what_is_gone_without_it(raw: Path, code: str, keyword: str, with_it: str, without_it: str | None) -> None:
    assert str(cleaned(raw).get(keyword)) == with_it
    other = cleaned(raw, EMPTIED if code == "113107" else SHIFTED, without(code)).get(keyword)
    assert (None if other is None else str(other)) == without_it


def test_the_manufacturer_stays_with_every_choice_because_conversion_needs_it(raw: Path) -> None:
    assert cleaned(raw, EMPTIED, ()).Manufacturer == "SIEMENS"


@pytest.mark.parametrize("dates", [SHIFTED, YEARS, EMPTIED])
@pytest.mark.parametrize("options", [ALL_OPTIONS, (), without("113105")])
def test_a_header_declares_what_was_done_to_it_and_no_more(raw: Path, dates: DateShift, options: tuple[str, ...]) -> None:
    dataset = cleaned(raw, dates, options)
    expected = {"113100", *options} - {"113101", "113102"} - ({"113107"} if dates.years_only else set())
    assert set(declared(dataset)) == expected
    for item in dataset.DeidentificationMethodCodeSequence:
        assert (item.CodingSchemeDesignator, item.CodeMeaning) == ("DCM", CODES[item.CodeValue])
    assert dataset.LongitudinalTemporalInformationModified == ("MODIFIED" if "113107" in expected else "REMOVED")
    assert "RecognizableVisualFeatures" not in dataset
    assert (dataset.PatientIdentityRemoved, dataset.DeidentificationMethod) == ("YES", METHOD)


def test_the_steps_that_clean_pixels_declare_their_options(raw: Path, tmp_path: Path) -> None:
    dataset = cleaned(raw)
    declare(dataset, {*declared(dataset), "113101", "113102"})
    write_dicom(tmp_path / "a.dcm", dataset, "it")
    again = dicom.read_dicom(tmp_path / "a.dcm")
    assert {"113101", "113102", "113105"} < set(declared(again))
    assert again.RecognizableVisualFeatures == "NO"


def test_with_years_only_every_date_is_the_first_of_its_year_and_no_device_is_named(raw: Path) -> None:
    dataset = cleaned(raw, YEARS)
    days = {element.value for element in every(dataset) if element.VR == "DA" and element.value}
    assert days == {"20310101"}
    assert {element.value for element in every(dataset) if element.VR == "TM" and element.value} == {"000000"}
    assert "StationName" not in dataset
    assert "DeviceSerialNumber" not in dataset


def timed(folder: Path, **elements: Any) -> Path:
    """Write a file of a study that began on 2031-03-14 at 09:12, with other dates and times."""
    return write_dicom_series(folder, slices=1, **{"StudyDate": "20310314", "StudyTime": "091200.25", **elements})[0]


def test_with_modified_dates_intervals_are_kept_to_the_second_and_the_hour_of_the_day_is_lost(tmp_path: Path) -> None:
    """Option 113107 keeps intervals but not the time of day."""
    item = Dataset()
    item.ContentDate, item.ContentTime = "20310313", "231200"
    dataset = cleaned(timed(
        tmp_path, SeriesDate="20310314", SeriesTime="092030", AcquisitionDate="20310314", AcquisitionTime="0921", ContentTime="092215.5",
        ContrastBolusStartTime="092100", AcquisitionDateTime="20310314092100.5+0100", ReferencedImageSequence=Sequence([item]),
    ))  # fmt: skip
    assert (dataset.StudyDate, dataset.StudyTime) == ("20301204", "120000")
    assert (dataset.SeriesTime, dataset.AcquisitionTime, dataset.ContentTime) == ("120830", "120900", "121015")
    assert (dataset.ContrastBolusStartTime, dataset.AcquisitionDateTime) == ("120900", "20301204120900")
    assert "0912" not in str(dataset)
    inner = dataset.ReferencedImageSequence[0]
    assert (inner.ContentDate, inner.ContentTime) == ("20301204", "020000")


def test_a_scan_over_midnight_keeps_its_distance_from_the_start_of_the_study(tmp_path: Path) -> None:
    dataset = cleaned(
        timed(tmp_path, StudyTime="235000", SeriesDate="20310315", SeriesTime="001000", ContentDate="20310315", ContentTime="")
    )
    assert (dataset.StudyDate, dataset.StudyTime) == ("20301204", "120000")
    assert (dataset.SeriesDate, dataset.SeriesTime) == ("20301204", "122000")
    assert dataset.ContentDate == "20301205"


@pytest.mark.parametrize("start", ["", "late", "2561"])
def test_without_a_start_of_the_study_times_of_day_become_midnight(tmp_path: Path, start: str) -> None:
    dataset = cleaned(timed(tmp_path, StudyTime=start, SeriesTime="092030"))
    assert dataset.SeriesTime == "000000"
    assert str(dataset.StudyTime) in {"", "000000"}


@pytest.mark.parametrize(("dates", "shown"), [(YEARS, "000000"), (EMPTIED, None)])
def test_without_the_option_no_time_of_day_and_no_interval_is_left(tmp_path: Path, dates: DateShift, shown: str | None) -> None:
    dataset = cleaned(timed(tmp_path, SeriesTime="092030", ContentTime="092215"), dates, without("113107"))
    left = {element.value for element in every(dataset) if element.VR == "TM" and element.value}
    assert left == ({shown} if shown else set())


def nested(depth: int) -> Dataset:
    """Make an item with identifiers, nested to a given depth."""
    item = Dataset()
    item.ReferencedSOPInstanceUID = f"1.2.826.0.1.3680043.48213371.{depth}"
    item.PersonName, item.PatientName, item.RequestedProcedureDescription = "Hoogland^Maarten", "Vandermeer^Johanna", "HEAD VANDERMEER"
    item.AcquisitionDateTime, item.ContentDate, item.AcquisitionTime = "20310314091200.5+0100", "20310314", "091200"
    item.TextValue, item.PatientComments = "seen with Johanna", "Sequoia"
    item.add_new(0x00291001, "UN", b"Vandermeer")
    item.add_new(0x00290010, "LO", "VANDERMEER HEADER")
    if depth:
        item.PurposeOfReferenceCodeSequence = Sequence([nested(depth - 1)])
    return item


@pytest.mark.parametrize("implicit", [False, True])
def test_nothing_hides_in_nested_sequences_of_any_depth(tmp_path: Path, implicit: bool) -> None:
    path = write_dicom_series(tmp_path, slices=1, ReferencedImageSequence=Sequence([nested(7)]))[0]
    if implicit:
        stored = pydicom.dcmread(path)
        stored.file_meta.TransferSyntaxUID = pydicom.uid.ImplicitVRLittleEndian
        stored.save_as(path, implicit_vr=True, little_endian=True)
    dataset = cleaned(path)
    write_dicom(tmp_path / "out.dcm", dataset, "it")
    content = (tmp_path / "out.dcm").read_bytes()
    for value in (b"Vandermeer", b"VANDERMEER", b"Johanna", b"Hoogland", b"Sequoia", b"48213371", b"20310314", b"0912"):
        assert value not in content, value
    inner = dataset.ReferencedImageSequence[0]
    for _ in range(7):
        inner = inner.PurposeOfReferenceCodeSequence[0]
    assert inner.ReferencedSOPInstanceUID == uid_pseudonym(KEY, "1.2.826.0.1.3680043.48213371.0")
    assert (inner.ContentDate, inner.AcquisitionDateTime) == ("20301204", "20301204120000")


def test_overlays_curves_icons_and_annotations_are_removed_and_functional_groups_kept(tmp_path: Path) -> None:
    dataset: Any = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    for group in (0x6000, 0x601E, 0x5004):
        dataset.add_new(group << 16 | 0x0022, "LO", "Vandermeer")
        dataset.add_new(group << 16 | 0x3000, "OW", b"Vandermeer")
    icon = Dataset()
    icon.Rows, icon.Columns, icon.PixelData = 2, 2, b"face"
    icon["PixelData"].VR = "OB"
    dataset.IconImageSequence = dataset.GraphicAnnotationSequence = Sequence([icon])
    held = Dataset()
    held.PlanePositionSequence = Sequence([Dataset()])
    held.PlanePositionSequence[0].ImagePositionPatient = [1, 2, 3]
    held.IconImageSequence = Sequence([icon])
    dataset.PerFrameFunctionalGroupsSequence = Sequence([held])
    HeaderCleaner(rules()).clean(dataset)
    assert not [element for element in every(dataset) if element.tag.group in {0x6000, 0x601E, 0x5004}]
    assert not {"IconImageSequence", "GraphicAnnotationSequence"} & {element.keyword for element in every(dataset)}
    assert dataset.PerFrameFunctionalGroupsSequence[0].PlanePositionSequence[0].ImagePositionPatient == [1, 2, 3]
    assert len([element for element in every(dataset) if element.keyword == "PixelData"]) == 1


def test_only_numbers_of_the_safe_list_are_kept_of_private_elements(tmp_path: Path) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    siemens = dataset.private_block(0x0019, "SIEMENS MR HEADER", create=True)
    siemens.add_new(0x0C, "IS", "1000")
    siemens.add_new(0x0E, "FD", [0.1, -0.2, 0.9])
    siemens.add_new(0x0F, "SH", "Vandermeer")
    siemens.add_new(0x0B, "DS", "12")
    ge = dataset.private_block(0x0043, "GEMS_PARM_01", create=True)
    ge.add_new(0x39, "UN", b"Vandermeer")
    philips = dataset.private_block(0x2001, "Philips Imaging DD 001 ", create=True)
    philips.add_new(0x03, "UN", np.float32(1000).tobytes() + b"NAME")
    other = dataset.private_block(0x0021, "HOSPITAL", create=True)
    other.add_new(0x0C, "IS", "1000")
    path = tmp_path / "private.dcm"
    dataset.save_as(path)
    kept = [element for element in every(cleaned(path)) if element.tag.is_private]
    assert [(int(element.tag), element.VR) for element in kept] == [
        (0x00190010, "LO"), (0x0019100B, "DS"), (0x0019100C, "IS"), (0x0019100E, "FD"),
    ]  # fmt: skip
    assert kept[0].value == "SIEMENS MR HEADER"
    assert kept[3].value == [0.1, -0.2, 0.9]
    assert not [element for element in every(cleaned(path, options=without("113111"))) if element.tag.is_private]


def test_the_safe_list_holds_numbers_that_are_known_under_this_name() -> None:
    for (creator, group, element), (kind, count) in SAFE_PRIVATE.items():
        assert pydicom.datadict.private_dictionary_VR(group << 16 | 0x1000 | element, creator) == kind
        assert kind in {"IS", "DS", *STRUCT_CODES}
        assert 1 <= count <= 6


def test_text_cannot_hide_behind_another_kind_of_value(tmp_path: Path) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    dataset["StudyDescription"].VR = "UN"
    dataset["StudyDescription"].value = b"HEAD VANDERMEER "
    dataset.add_new("BodyPartExamined", "LT", "Johanna")
    dataset.add_new("EchoNumbers", "IS", "48213371")
    dataset.add_new("AcquisitionNumber", "LO", "Vandermeer")
    for keyword, kind in (
        ("FrameAcquisitionNumber", "US"),
        ("SimpleFrameList", "UL"),
        ("DiffusionBValue", "FD"),
        ("ExposureTimeInms", "FD"),
    ):
        dataset.add_new(keyword, kind, 1000 if kind in {"US"} or keyword == "ExposureTimeInms" else 48213371)
    hidden = (("TriggerTime", "DS", "Vandermeer"), ("EchoTrainLength", "US", "Vandermeer"), ("AcquisitionMatrix", "US", "Johanna "))
    for keyword, kind, text in hidden:
        tag = pydicom.tag.Tag(keyword)
        dataset[tag] = pydicom.dataelem.RawDataElement(tag, kind, len(text), text.encode(), 0, False, True)
    dataset.ScanOptions = "VANDERMEER"
    dataset.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1"
    write_dicom(tmp_path / "hidden.dcm", dataset, "it")
    dataset = dicom.read_dicom(tmp_path / "hidden.dcm")
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "Johanna"]
    dataset.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    dataset.ReferencedImageSequence = Sequence([Dataset()])
    dataset.ReferencedImageSequence[0].ReferencedSOPClassUID = "1.2.840.10008.48213371"
    HeaderCleaner(rules(identity=Identity(names=("Vandermeer^Johanna",), numbers=("48213371",)))).clean(dataset)
    shown = str(dataset)
    for value in ("VANDERMEER", "Vandermeer", "Johanna", "48213371"):
        assert value not in shown
    assert dataset.SOPClassUID == "1.2.840.10008.5.1.4.1.1.4"
    assert "EchoTime" in dataset
    assert not {"SimpleFrameList", "DiffusionBValue", "TriggerTime", "EchoTrainLength", "AcquisitionMatrix"} & set(dataset.dir())
    assert (dataset.FrameAcquisitionNumber, dataset.ExposureTimeInms) == (1000, 1000)


def test_of_several_codes_only_the_identifying_one_is_removed(tmp_path: Path) -> None:
    tags = {
        "ScanOptions": ["FS", "VANDERMEER"],
        "ImageType": ["ORIGINAL", "PRIMARY", "JOHANNA", "ND"],
        "ContrastBolusRoute": "IV by Hoogland",
    }
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1, **tags)[0])
    HeaderCleaner(rules(identity=Identity(names=("Vandermeer^Johanna",)))).clean(dataset)
    assert dataset.ScanOptions == "FS"
    assert list(dataset.ImageType) == ["ORIGINAL", "PRIMARY", "REMOVED", "ND"]
    assert dataset.ContrastBolusRoute == "IV"


def test_a_name_that_is_also_a_word_about_scans_is_removed_from_descriptions() -> None:
    dataset = Dataset()
    dataset.SOPClassUID, dataset.SOPInstanceUID, dataset.SeriesDescription = "1.2.840.10008.5.1.4.1.1.4", "1.2.3", "T1 SPACE POST Head"
    HeaderCleaner(rules(identity=Identity(names=("Space^Ann",)))).clean(dataset)
    assert dataset.SeriesDescription == "T1 POST Head"


def test_the_meaning_of_a_code_is_looked_up_and_never_taken_from_the_header(tmp_path: Path) -> None:
    items = []
    for scheme, code, meaning in (
        ("DCM", "113100", "head of Johanna"),
        ("SRT", "T-A0100", "Brain"),
        ("99OGH", "H1", "head Brandsma axial"),
    ):
        item = Dataset()
        item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = code, scheme, meaning
        items.append(item)
    path = write_dicom_series(tmp_path, slices=1, ProcedureCodeSequence=Sequence(items))[0]
    assert [item.CodeMeaning for item in cleaned(path).ProcedureCodeSequence] == [
        "Basic Application Confidentiality Profile", "Brain", "head axial",
    ]  # fmt: skip


def test_file_meta_and_preamble_hold_nothing_of_the_sender(tmp_path: Path) -> None:
    dataset: Any = pydicom.dcmread(write_dicom_series(tmp_path / "raw", slices=1)[0])
    dataset.preamble = b"Vandermeer".ljust(128, b"\0")
    dataset.file_meta.PrivateInformationCreatorUID, dataset.file_meta.PrivateInformation = "1.2.3.4.48213371", b"Vandermeer"
    dataset.file_meta.SendingApplicationEntityTitle = "OGHMR02"
    (tmp_path / "in").mkdir()
    dataset.save_as(tmp_path / "in" / "000001.dcm")
    clean_series(tmp_path / "in", tmp_path / "out", rules())
    content = (tmp_path / "out" / "000001.dcm").read_bytes()
    assert content[:128] == b"\0" * 128
    for value in (b"Vandermeer", b"OGHMR02", b"48213371"):
        assert value not in content
    meta = pydicom.filereader.read_file_meta_info(tmp_path / "out" / "000001.dcm")
    assert meta.MediaStorageSOPInstanceUID == uid_pseudonym(KEY, str(dataset.SOPInstanceUID))


def test_another_process_gives_the_same_uids_and_the_same_bytes(raw: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from neuralmedbench.deid.headers.cleaner import HeaderRules, clean_series;"
        "from neuralmedbench.deid.values import DateShift;"
        f"clean_series(Path(sys.argv[1]), Path(sys.argv[2]), HeaderRules({KEY!r}, 'beef00000001', DateShift(-100)))"
    )
    (tmp_path / "in").mkdir()
    shutil.copyfile(raw, tmp_path / "in" / "000001.dcm")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "in"), str(tmp_path / "out")], cwd=ROOT / "scripts", check=True)
    clean_series(tmp_path / "in", tmp_path / "here", rules())
    assert (tmp_path / "out" / "000001.dcm").read_bytes() == (tmp_path / "here" / "000001.dcm").read_bytes()


def packaged() -> list[Path]:
    """List DICOM files packaged with pydicom: unusual VRs, private sequences, every transfer syntax."""
    paths = sorted(path for path in PACKAGED.rglob("*") if path.is_file() and "TINY_ALPHA" not in path.parts)
    return [path for path in paths if dicom.looks_like_dicom(path.read_bytes()[:132])]


def owned(dataset: Dataset) -> set[bytes]:
    """Return values of a header that identify its patient: names, ids, UIDs."""
    found: set[str] = set()
    for element in every(dataset):
        values = [str(value) for value in (element.value if element.VM > 1 else [element.value])]
        if element.VR == "PN":
            found |= {part for value in values for part in re.split(r"[\^= ]", value) if len(part) > 4}
        elif element.VR == "UI":
            found |= {value for value in values if len(value) > 8 and not value.startswith(NOBODYS)}
        elif element.keyword in {"PatientID", "AccessionNumber", "InstitutionName", "PatientAddress"}:
            found |= {value for value in values if len(value) > 4}
    found -= {"", "None", dicom.text(dataset, "Manufacturer").partition("_")[0]}  # a manufacturer's test file, recorded at its own site
    return {value.encode() for value in found}


def test_no_packaged_file_of_any_syntax_keeps_a_name_an_id_or_a_uid(tmp_path: Path) -> None:
    done = 0
    for path in packaged():
        try:
            before, dataset = dicom.read_dicom(path), dicom.read_dicom(path)
        except DataError:
            continue
        pixels = dataset.get("PixelData")
        HeaderCleaner(rules()).clean(dataset)
        write_dicom(tmp_path / "out.dcm", dataset, path.name)
        content = (tmp_path / "out.dcm").read_bytes()
        header = content.replace(pixels, b"") if pixels else content
        assert [value for value in owned(before) if value in header] == [], path.name
        again = dicom.read_dicom(tmp_path / "out.dcm")
        assert again.get("PixelData") == pixels, path.name
        assert again.PatientID == "beef00000001"
        assert not [element for element in every(again) if element.tag.is_private and str(element.value) == ""]
        assert all(re.fullmatch(r"(\d{8}(\d{6})?|\d{6})?", str(element.value)) for element in every(again) if element.VR in DATES), (
            path.name
        )
        done += 1
    assert done > 60


@pytest.mark.parametrize("name", ["DICOMDIR", "DICOMDIR-implicit"])
def test_the_directory_of_a_disc_is_not_an_image(name: str) -> None:
    with pytest.raises(DataError, match="directory of a medium"):
        dicom.read_dicom(PACKAGED / "dicomdirtests" / name)
    assert action_of(0x00041220) is Action.REMOVE


def errors(path: Path) -> list[str]:
    """Return the errors reported by dciodvfy, without UIDs."""
    done = subprocess.run(["dciodvfy", str(path)], capture_output=True, check=False)
    lines = (done.stdout + done.stderr).decode("latin-1").splitlines()
    return [re.sub(r"[0-9.]{6,}", "", line) for line in lines if line.startswith("Error")]


needs_dciodvfy = pytest.mark.skipif(shutil.which("dciodvfy") is None, reason="dciodvfy (Debian package dicom3tools) is not installed")


@needs_dciodvfy
@pytest.mark.parametrize(("dates", "options"), [(SHIFTED, ALL_OPTIONS), (YEARS, ALL_OPTIONS), (EMPTIED, ())])
def test_a_cleaned_file_has_no_error_that_it_did_not_have(tmp_path: Path, raw: Path, dates: DateShift, options: tuple[str, ...]) -> None:
    for path in (raw, *(PACKAGED / name for name in VERIFIED)):
        write_dicom(tmp_path / "out.dcm", cleaned(path, dates, options), "it")
        before = errors(path)
        assert [line for line in errors(tmp_path / "out.dcm") if line not in before] == [], path.name


@needs_dciodvfy
@pytest.mark.skipif(not os.environ.get("NMB_REAL_SCANS"), reason="NMB_REAL_SCANS names no folder of real scans")
def test_real_series_have_no_error_that_they_did_not_have(tmp_path: Path) -> None:
    folders = sorted(path for path in (Path(os.environ["NMB_REAL_SCANS"]) / "dicom").iterdir() if path.is_dir())
    assert folders
    for path in (sorted(folder.iterdir())[place] for folder in folders for place in (0, -1)):
        before, dataset = dicom.read_dicom(path), cleaned(path)
        write_dicom(tmp_path / "out.dcm", dataset, "it")
        assert [line for line in errors(tmp_path / "out.dcm") if line not in errors(path)] == []
        content = (tmp_path / "out.dcm").read_bytes()
        assert [value for value in owned(before) if value in content] == []
        for keyword in ("RepetitionTime", "EchoTime", "PixelSpacing", "ImagePositionPatient", "ImageType"):
            assert dicom.text(dataset, keyword) == dicom.text(before, keyword)


def test_a_compressed_picture_is_the_same_to_the_byte(tmp_path: Path) -> None:
    for name in ("MR_small_RLE.dcm", "JPEG2000.dcm", "MR_small_jpeg_ls_lossless.dcm"):
        dataset = cleaned(PACKAGED / name)
        write_dicom(tmp_path / "out.dcm", dataset, "it")
        before, after = pydicom.dcmread(PACKAGED / name), pydicom.dcmread(tmp_path / "out.dcm")
        assert (after.PixelData, after.file_meta.TransferSyntaxUID) == (before.PixelData, before.file_meta.TransferSyntaxUID)


def test_names_of_pulse_sequences_are_kept_and_other_words_in_their_place_removed() -> None:
    assert clean_pulse_name("*tse2d1_15") == "*tse2d1_15"
    assert clean_pulse_name("ep_b1000#1") == "ep_b1000#1"
    assert clean_pulse_name("Vandermeer_3") == "3"


def test_a_sidecar_keeps_what_the_options_allow_and_declares_them(tmp_path: Path) -> None:
    write_json(
        tmp_path / "a.json",
        {
            "SeriesDescription": "T1 Vandermeer",
            "ManufacturersModelName": "Avanto",
            "EchoTime": 0.009,
            "StationName": "OGHMR02",
            "ScanningSequence": "SE\\IR",
        },
    )
    full = clean_sidecar(tmp_path / "a.json", modality="MR", codes=ALL_OPTIONS)
    assert (full["SeriesDescription"], full["ManufacturersModelName"], full["EchoTime"]) == ("T1", "Avanto", 0.009)
    assert full["ScanningSequence"] == "SE\\IR"
    assert [item["CodeValue"] for item in full["DeidentificationMethodCodeSequence"]] == sorted(CODES)
    assert "AcquisitionTime" not in full
    assert clean_sidecar(tmp_path / "a.json", modality="MR", codes=ALL_OPTIONS, acquired="120830")["AcquisitionTime"] == "12:08:30"
    bare = clean_sidecar(tmp_path / "a.json", modality="MR", codes=("113102",), acquired="120830")
    assert set(bare) == {"EchoTime", "ScanningSequence", "Modality", "DeidentificationMethod", "DeidentificationMethodCodeSequence"}
    assert [item["CodeValue"] for item in bare["DeidentificationMethodCodeSequence"]] == ["113100", "113102"]


BASE = {"title": "Mine", "kind": "scans", "axis": "depth", "source": "/data"}


def test_without_a_choice_all_options_hold_that_the_profile_allows() -> None:
    assert check(BenchmarkConfig, BASE, "mine.yaml").header_options == ALL_OPTIONS
    assert check(BenchmarkConfig, {**BASE, "profile": "safe_harbor"}, "mine.yaml").header_options == without("113107")
    own = check(BenchmarkConfig, {**BASE, "deidentification": {"options": [113105, "113101", 113102]}}, "mine.yaml")
    assert own.header_options == ("113101", "113102", "113105")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deidentification": {"options": [113101, 113102, 113106]}}, "113106 is not offered: full dates fit neither profile"),
        ({"deidentification": {"options": [113101, 113102, 113110]}}, "113110 is not offered"),
        ({"deidentification": {"options": [113105]}}, "113101 cannot be left out"),
        ({"deidentification": {"options": [113101, 113102, 113102]}}, "a code is repeated"),
        ({"deidentification": {"options": [113101, 113102, "11310"]}}, "did you mean '11310"),
        ({"profile": "safe_harbor", "deidentification": {"options": [113101, 113102, 113107]}}, "safe_harbor keeps only years"),
    ],
)
def test_options_that_contradict_each_other_or_the_profile_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        check(BenchmarkConfig, {**BASE, **settings}, "mine.yaml")
    assert "\n" not in str(caught.value)
