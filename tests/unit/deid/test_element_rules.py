"""Own rules for single header elements, and the dry run that says what is done to each: stricter at will, looser within bounds, no value shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

import deidentify_case
import ingest_case
from fixtures.deid import KEY, PLANTED, flat_deface, head_voxels, write_config, write_dicom_series, write_index, write_nifti_file
from neuralmedbench.cli.deid import show_dry_run
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.deidentification import (
    MAY_BE_KEPT,
    NEEDED,
    OURS,
    DeidentificationConfig,
    ElementRule,
    actions_by_tag,
)
from neuralmedbench.config.load import check
from neuralmedbench.deid.audit import AuditRules, audit_cases, own_rules
from neuralmedbench.deid.headers.cleaner import HeaderCleaner, clean_series, clean_sidecar
from neuralmedbench.deid.headers.diff import changes, snapshot
from neuralmedbench.deid.headers.rules import ALL_OPTIONS, METHOD, OWN_RULES, HeaderRules
from neuralmedbench.deid.leaks import find_leaks
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, case_sheet
from neuralmedbench.deid.review.signature import reviewed_files
from neuralmedbench.deid.review.write import index_page
from neuralmedbench.deid.values import DateShift
from neuralmedbench.errors import ConfigError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.identity import Identity, identity_pattern
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.records.case import State

assert flat_deface
BASE = {"title": "Mine", "kind": "scans", "axis": "depth", "source": "/scans"}
SIGNED = {"reason": "read in all cases", "reviewer": "AB"}
IDENTITY = Identity(
    names=("Vandermeer^Johanna=山田^太郎", "Hoogland^Maarten", "Brandsma^Sietske"),
    places=("Oosterhaven General Hospital", "OGHMR02"),
    numbers=("48213371", "A20310417", "SN-66120", "19590914"),
)
IDENTIFIERS = (
    "PatientName", "PatientID", "OtherPatientIDs", "OtherPatientNames", "IssuerOfPatientID", "PatientBirthDate", "PatientBirthTime", "PatientBirthName",
    "PatientMotherBirthName", "PatientAddress", "PatientTelephoneNumbers", "PatientTelecomInformation", "PatientComments", "PatientInsurancePlanCodeSequence",
    "MedicalRecordLocator", "MilitaryRank", "EthnicGroup", "Occupation", "PatientReligiousPreference", "ReferringPhysicianName",
    "PerformingPhysicianName", "OperatorsName", "RequestingPhysician", "NameOfPhysiciansReadingStudy", "ResponsiblePerson", "InstitutionName",
    "InstitutionAddress", "InstitutionalDepartmentName", "StationName", "DeviceSerialNumber", "DeviceUID", "AccessionNumber", "StudyID",
    "StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID", "StudyDate", "SeriesDate", "AcquisitionDateTime", "StudyTime",
    "AdmissionID", "CurrentPatientLocation", "AdditionalPatientHistory", "RequestAttributesSequence", "IconImageSequence", "PixelData",
    "EncryptedContent", "OriginalAttributesSequence", "TimezoneOffsetFromUTC", "BarcodeValue", "GPSLatitude", "IdentifyingComments", "TextValue",
)  # fmt: skip


def elements(*rules: dict[str, str]) -> tuple[ElementRule, ...]:
    return check(DeidentificationConfig, {"elements": list(rules)}, "mine.yaml").elements


def rules_with(*rules: dict[str, str], options: tuple[str, ...] = ALL_OPTIONS) -> HeaderRules:
    return HeaderRules(KEY, "beef00000001", DateShift(-100), identity_pattern(IDENTITY), options, actions_by_tag(elements(*rules)))


def keep(element: str) -> dict[str, str]:
    return {"element": element, "action": "keep", **SIGNED}


# configuration


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ({"element": "StationNam", "action": "remove"}, "the standard has no element StationNam; did you mean StationName?"),
        ({"element": "qqqq", "action": "remove"}, "the standard has no element qqqq; give its keyword or tag"),
        ({"element": "0029,1010", "action": "keep", **SIGNED}, "no rule is possible for the private element 0029,1010"),
        ({"element": "StationName", "action": "blank"}, "expected 'remove', 'replace' or 'keep', found 'blank'"),
        ({"element": "ImageComments", "action": "keep"}, "to keep ImageComments, which profile and options do not, give a `reason` and a `reviewer`"),
        ({"element": "ImageComments", "action": "keep", "reason": "x", "reviewer": " "}, "give a `reason` and a `reviewer`"),
        ({"element": "InstitutionName", "action": "keep", **SIGNED}, "the element InstitutionName cannot be kept: it can identify a person"),
        ({"element": "PatientName", "action": "keep", **SIGNED}, "the element PatientName is written by de-identification itself"),
        ({"element": "PixelSpacing", "action": "remove"}, "the element PixelSpacing cannot be removed: without it the scan cannot be read"),
        ({"element": "EchoTime", "action": "replace"}, "the element EchoTime cannot be replaced, as it holds no words; use remove"),
        ({"action": "remove"}, "the key 'deidentification.elements.0.element' is missing"),
        ({"element": "StationName", "action": "remove", "why": "x"}, "unknown key 'deidentification.elements.0.why'"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_refused_in_one_line(rule: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(BenchmarkConfig, {**BASE, "deidentification": {"elements": [rule]}}, "mine.yaml")
    message = str(raised.value).replace("input should be", "expected")
    assert line in message
    assert "\n" not in message


def test_rules_for_headers_are_refused_where_there_are_none() -> None:
    own = {"elements": [{"element": "StationName", "action": "remove"}]}
    assert check(BenchmarkConfig, {**BASE, "deidentification": own}, "mine.yaml").deidentification.elements
    with pytest.raises(ConfigError, match="own rules are for the headers of scans, and this benchmark has none"):
        check(BenchmarkConfig, {**BASE, "kind": "pictures", "deidentification": own}, "mine.yaml")


def test_all_bad_rules_are_named_at_once_and_an_element_has_one_rule() -> None:
    bad = [
        {"element": "InstitutionName", "action": "keep", **SIGNED},
        {"element": "Rows", "action": "remove"},
        {"element": "X", "action": "remove"},
    ]
    with pytest.raises(ConfigError, match=r"^3 mistakes\n"):
        check(BenchmarkConfig, {**BASE, "deidentification": {"elements": bad}}, "mine.yaml")
    with pytest.raises(ConfigError, match="the element StationName has two rules; leave one"):
        elements({"element": "0008,1010", "action": "remove"}, {"element": "StationName", "action": "replace"})


@pytest.mark.parametrize("keyword", IDENTIFIERS)
def test_a_direct_identifier_can_never_be_kept(keyword: str) -> None:
    with pytest.raises(ConfigError):
        elements(keep(keyword))


def test_of_all_elements_of_the_standard_only_descriptions_may_be_kept() -> None:
    from pydicom.datadict import dictionary_VR, keyword_dict

    def is_kept(keyword: str) -> bool:
        try:
            ElementRule.model_validate(keep(keyword))
        except ValueError:
            return False
        return True

    assert {keyword for keyword in keyword_dict if keyword and is_kept(keyword)} == MAY_BE_KEPT
    assert {dictionary_VR(keyword_dict[keyword]) for keyword in MAY_BE_KEPT} <= {"LO", "SH", "ST", "LT", "UT", "CS", "AS", "DS"}
    assert not MAY_BE_KEPT & set(IDENTIFIERS)
    assert not OURS & (MAY_BE_KEPT | NEEDED)


# headers


def test_stricter_rules_remove_and_replace_what_the_profile_keeps(tmp_path: Path) -> None:
    path = write_dicom_series(tmp_path, slices=1, ManufacturerModelName="Avanto", SoftwareVersions="B17")[0]
    dataset = dicom.read_dicom(path)
    part = Dataset()
    part.CodeValue, part.CodingSchemeDesignator, part.CodeMeaning = "69536005", "SCT", "Head"
    dataset.AnatomicRegionSequence = Sequence([part])
    actions = {
        "ManufacturerModelName": "replace",
        "SoftwareVersions": "remove",
        "EchoTime": "remove",
        "CodeMeaning": "remove",
    }
    counts = HeaderCleaner(rules_with(*({"element": name, "action": action} for name, action in actions.items()))).clean(dataset)
    assert dataset.ManufacturerModelName == "REMOVED"
    assert "SoftwareVersions" not in dataset
    assert "EchoTime" not in dataset
    assert "CodeMeaning" not in dataset.AnatomicRegionSequence[0]
    assert counts["own_rules"] == 4
    assert dataset.DeidentificationMethod == METHOD  # nothing is looser than the profile


@pytest.mark.parametrize(
    ("value", "stays"),
    [
        ("motion, repeated once", True),
        ("seen with Vandermeer", False),
        ("id 48213371", False),
        ("call Dr Smith", False),
        ("repeated on 12.03.2031", False),
        ("tel 020 7946 0018", False),
        ("Müller", False),
        ("Smith^John", False),
    ],
)
def test_what_a_rule_keeps_is_kept_unless_it_names_somebody_or_holds_a_date_or_number(tmp_path: Path, value: str, stays: bool) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1, ImageComments=value)[0])
    HeaderCleaner(rules_with(keep("ImageComments"))).clean(dataset)
    assert (dataset.get("ImageComments") == value) is stays
    assert list(dataset.DeidentificationMethod) == [METHOD, OWN_RULES]


def test_keeping_everything_that_may_be_kept_leaves_no_planted_identifier(tmp_path: Path) -> None:
    planted = ("Vandermeer", "HEAD 48213371", "J. Hoogland 14.03.2031", "Oosterhaven General Hospital")
    words = MAY_BE_KEPT - {"PatientAge", "PatientSize", "PatientWeight", "PatientSex", "Manufacturer", "BodyPartExamined", "SmokingStatus"}
    rules = rules_with(*(keep(keyword) for keyword in sorted(MAY_BE_KEPT)))
    for number, value in enumerate(planted):
        write_dicom_series(tmp_path / f"{number}", slices=1, **dict.fromkeys(words, value), PatientSize="1.71")
        clean_series(tmp_path / f"{number}", tmp_path / "case" / f"series-{number:02d}", rules)
        path = next((tmp_path / "case" / f"series-{number:02d}").glob("*.dcm"))
        header = dicom.read_dicom(path.rename(path.with_name("000001.dcm")))
        assert header.PatientAge == "090Y"  # of 94
    assert find_leaks(tmp_path / "case", IDENTITY) == ()


def test_a_kept_description_stands_in_the_sidecar_as_it_is(tmp_path: Path) -> None:
    write_json(
        tmp_path / "a.json", {"SeriesDescription": "t1 repeated once", "ImageComments": "motion", "ManufacturersModelName": "Avanto"}
    )
    plain = clean_sidecar(tmp_path / "a.json", modality="MR")
    assert "SeriesDescription" not in plain
    assert len(plain["DeidentificationMethod"]) == 2
    kept = clean_sidecar(tmp_path / "a.json", modality="MR", kept_elements=("SeriesDescription", "ManufacturerModelName"))
    assert (kept["SeriesDescription"], kept["ManufacturersModelName"]) == ("t1 repeated once", "Avanto")
    assert "ImageComments" not in kept
    assert OWN_RULES in kept["DeidentificationMethod"]


def test_rules_act_in_the_stage_and_stand_on_sheet_and_audit(tmp_path: Path, flat_deface: None, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_dicom_series(tmp_path / "raw", slices=8, SeriesDescription="T1 repeated once", ManufacturerModelName="Avanto")
    first, second = (tmp_path / stage / "case.json" for stage in ("ingested", "deidentified"))
    ingest_case.main(["--benchmark", "mine", "--case", "c0ffee", "--files", str(write_index(tmp_path, files)), "--out", str(first)])
    own = [keep("SeriesDescription"), {"element": "ManufacturerModelName", "action": "remove"}]
    config = write_config(tmp_path / "config", tmp_path, deidentification={"elements": own})
    arguments = [
        "--config",
        str(config),
        "--case",
        str(first),
        "--out",
        str(second),
    ]
    deidentify_case.main(["--benchmark", "mine", *arguments])
    case = read_case(second)
    assert case.state is State.OK, case.reason
    sidecar = read_json(second.parent / "anat" / "sub-c0ffee_T1w.json")
    assert sidecar["SeriesDescription"] == "T1 repeated once"
    assert "ManufacturersModelName" not in sidecar
    sheet = case_sheet(CaseStages(*(CaseStage(case, second.parent) for _ in range(3))), ("", ""), tmp_path / "a.html")
    assert "<td>SeriesDescription</td><td>T1 repeated once</td>" in sheet
    rules = AuditRules(benchmark="mine", profile="pseudonymised", subjects="patient", elements=own_rules(elements(*own)))
    audit = audit_cases(rules, [(case, second.parent)])
    assert [(rule.element, rule.action, rule.reason, rule.reviewer) for rule in audit.element_rules] == [
        ("SeriesDescription", "keep", "read in all cases", "AB"),
        ("ManufacturerModelName", "remove", "", ""),
    ]
    assert audit.checks["header_own_rules"] == 16
    page = index_page(audit, reviewed_files("mine", "pseudonymised", {}), [])
    assert "<td>SeriesDescription</td><td>keep</td><td>read in all cases</td><td>AB</td>" in page


# dry run


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    """Make a folder of one patient with a series, a scan that is not used, a NIfTI file of another patient and a note."""
    folder = tmp_path / "hospital" / "VANDERMEER"
    write_dicom_series(folder / "1", slices=3, ImageComments="motion, repeated once", SoftwareVersions="B17")
    write_dicom_series(folder / "2", slices=1, number=2, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"], SeriesDescription="localizer")
    (folder / "note.txt").write_text("Seen today.", encoding="utf-8")
    write_nifti_file(tmp_path / "hospital" / "nifti" / "p99_T1w.nii.gz", head_voxels(), description="Vandermeer")
    return tmp_path / "hospital"


def listing_of(folder: Path) -> dict[str, tuple[int, float]]:
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime) for path in folder.rglob("*")}


def lines_of(capsys: pytest.CaptureFixture[str], *arguments: Any) -> list[str]:
    assert show_dry_run.main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_dry_run_says_what_would_be_done_and_why_and_shows_no_value_and_writes_nothing(
    hospital: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = listing_of(tmp_path)
    lines = lines_of(capsys, "--in", hospital)
    assert listing_of(tmp_path) == before
    text = "\n".join(lines)
    assert "nothing was written, and no value is shown" in lines[0]
    rows = {" ".join(line.split()) for line in lines}
    files = next(line for line in lines if "InstitutionName" in line).split()[1]
    assert f"InstitutionName {files} files basic profile (113100)" in rows
    assert f"PatientID {files} files pseudonym of the patient" in rows
    assert any(row.startswith(f"StudyDate {files} files 113107: dates move") for row in rows)
    assert any(row.startswith(f"PatientAge {files} files 113108") for row in rows)
    assert any(row.startswith("NIfTI files: voxels and geometry stay") for row in rows)
    places = [
        place
        for place, line in enumerate(lines)
        if line.endswith(")") and line.split(" (")[0] in {"removed", "replaced", "shifted", "kept"}
    ]
    assert len(places) == 4  # grouped by decision
    assert [value for value in (*PLANTED, "motion", "VANDERMEER", "B17", "2031", "山田") if value.casefold() in text.casefold()] == []


def test_the_dry_run_and_the_cleaner_do_the_same_to_every_file(hospital: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yaml").write_text(
        "elements:\n- {element: ImageComments, action: keep, reason: read, reviewer: AB}\n- {element: SoftwareVersions, action: remove}\n",
        encoding="utf-8",
    )
    head, *lines = lines_of(capsys, "--in", hospital, "--elements", tmp_path / "own.yaml", "--files")
    assert head == "case\tfile\tdecision\telement\treason"
    cells = [line.split("\t") for line in lines]
    by_file = {
        (case, file): {(row[3], row[2]) for row in cells if row[:2] == [case, file]} for case, file in {(row[0], row[1]) for row in cells}
    }
    rules = rules_with(keep("ImageComments"), {"element": "SoftwareVersions", "action": "remove"})
    done = []
    for path in sorted((hospital / "VANDERMEER").rglob("*.dcm")):
        dataset = dicom.read_dicom(path)
        old = snapshot(dicom.read_dicom(path))
        HeaderCleaner(rules).clean(dataset)
        done.append(frozenset(changes(old, dataset)) | {("PixelData", "cleaned")})
    shown = [frozenset((name, "kept" if action == "empty already" else action) for name, action in file) for file in by_file.values()]
    assert set(shown) <= set(done)
    assert len(shown) in {3, 4}  # the localizer may be left out
    reasons = {row[3]: row[4] for row in cells}
    assert (reasons["ImageComments"], reasons["SoftwareVersions"]) == ("own rule (keep)", "own rule (remove)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "safe_harbor"], {"StudyDate": "profile safe_harbor: dates keep their year", "DeviceSerialNumber": "113109"}),
        (["--options", "113101", "113102"], {"StudyDate": "113107 is not applied", "SeriesDescription": "113105 is not applied", "PatientAge": "113108 is not applied"}),
    ],
)  # fmt: skip
def test_the_reason_follows_profile_and_options(
    hospital: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: dict[str, str]
) -> None:
    reasons = {line.split("\t")[3]: line.split("\t")[4] for line in lines_of(capsys, "--in", hospital, "--files", *arguments)}
    assert dict.fromkeys(words, True) == {name: text in reasons[name] for name, text in words.items()}


def test_a_benchmark_is_run_dry_with_its_own_settings(hospital: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = "deidentification: {elements: [{element: SoftwareVersions, action: remove}]}"
    write_config(tmp_path / "config", tmp_path)
    path = tmp_path / "config" / "benchmarks" / "mine.yaml"
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("source:", "deidentification:"))]
    path.write_text("\n".join([*lines, f"source: {json.dumps(str(hospital))}", own]) + "\n", encoding="utf-8")
    rows = {" ".join(line.split()) for line in lines_of(capsys, "--benchmark", "mine", "--config", tmp_path / "config")}
    assert any(row.startswith("SoftwareVersions") and row.endswith("own rule (remove)") for row in rows)
    with pytest.raises(ConfigError, match="belong to --in"):
        lines_of(capsys, "--benchmark", "mine", "--config", tmp_path / "config", "--options", "113101", "113102")
    with pytest.raises(ConfigError, match="belong to --in"):
        lines_of(capsys, "--benchmark", "mine", "--config", tmp_path / "config", "--profile", "safe_harbor")
    with pytest.raises(ConfigError, match="113107 shifts dates"):
        lines_of(capsys, "--in", hospital, "--profile", "safe_harbor", "--options", "113101", "113102", "113107")
    with pytest.raises(ConfigError, match=r"^--in: expected a folder with scans"):
        lines_of(capsys, "--in", tmp_path / "absent")
    (tmp_path / "bad.yaml").write_text("rules: []\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^bad\.yaml: expected the key `elements` with a list of rules and nothing else$"):
        lines_of(capsys, "--in", hospital, "--elements", tmp_path / "bad.yaml")
