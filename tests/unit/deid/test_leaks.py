"""The search for a patient's own values: none of the project's words is a leak, and everything that came from the patient is."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import deidentify_case
import ingest_case
from conftest import ROOT
from fixtures.deid import KEY, flat_deface, write_config, write_dicom_series, write_index
from neuralmedbench.cli.deid import accept_leaks
from neuralmedbench.deid.audit import AuditRules, audit_cases
from neuralmedbench.deid.file_names import input_part
from neuralmedbench.deid.headers.cleaner import clean_series, clean_sidecar
from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.deid.headers.rules import ALL_OPTIONS, CODES, MANUFACTURERS, HeaderRules
from neuralmedbench.deid.leaks import accept_leaks as mark_accepted
from neuralmedbench.deid.leaks import find_leaks, require_no_leaks
from neuralmedbench.deid.notes.patterns import PLACEHOLDERS
from neuralmedbench.deid.review.accepted import accept
from neuralmedbench.deid.review.pieces import write_header_piece, write_tools_piece
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, case_sheet
from neuralmedbench.deid.stage import empty_outputs
from neuralmedbench.deid.values import DateShift
from neuralmedbench.errors import ConfigError, IdentityLeaksError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.identity import Identity, identity_pattern, name_parts
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.nifti import Volume, write_nifti
from neuralmedbench.records.case import CaseRecord, State
from neuralmedbench.records.columns import RECORD_COLUMNS
from neuralmedbench.records.review import AcceptedIdentityLeak, AcceptedIdentityLeaks

assert flat_deface

SEEN = (
    "Philips", "List", "Face", "Space", "Native", "Clean", "Basic", "Text", "Data", "Series", "Review", "Tools", "REMOVED", "dcm2niix", "sub-01",
)  # fmt: skip
"""Names whose bearers could not pass: those of the test patients of public scans, and surnames among the project's words."""
SURNAMES = (
    *SEEN,
    "Vandermeer",
    "Lo",
    "Müller",
    "O'Neill",
    "Lopes-Silva",
    "Norm",
    "Canon",
    "Head",
    "Gad",
    "Option",
    "Modified",
    "Variable",
    "Note",
)
CASE, SCAN = "0123456789ab", "anat/sub-0123456789ab_ce-gadolinium_run-2_T1w"
CONVERTED = {
    "Manufacturer": "Philips", "ManufacturersModelName": "Ingenia", "ConversionSoftware": "dcm2niix", "ConversionSoftwareVersion": "v1.0.20250506",
    "ImageType": ["ORIGINAL", "PRIMARY", "REMOVED", "ND"], "EchoTime": 0.009, "MagneticFieldStrength": 3, "SeriesDescription": "T1 TRA",
}  # fmt: skip


def write_case(folder: Path) -> Path:
    """Write a cleaned case of one scan with the functions that write it in the stage; nothing in it comes from a patient."""
    write_nifti(folder / f"{SCAN}.nii.gz", Volume(np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.eye(4)))
    write_json(folder / "converted.json", CONVERTED)
    sidecar = clean_sidecar(folder / "converted.json", modality="MR", codes=ALL_OPTIONS, acquired="120000")
    (folder / "converted.json").unlink()
    write_json(folder / f"{SCAN}.json", sidecar)
    (folder / f"{SCAN}.bval").write_text("0\n", encoding="utf-8")
    (folder / "text").mkdir()
    (folder / "text" / "note-01.txt").write_text(f"Seen on 12 May. {' '.join(PLACEHOLDERS)}\nWell since.\n", encoding="utf-8")
    (folder / "text" / "record.tsv").write_text("\t".join(RECORD_COLUMNS) + "\nage\t58\tyears\t0\n", encoding="utf-8")
    changed = Counter({("Manufacturer", "kept"): 3, ("RequestAttributesSequence > ScheduledProcedureStepID", "removed"): 3})
    write_header_piece(folder, "series-02", changed + Counter({("private element", action): 1 for action in ACTIONS}))
    write_tools_piece(folder)
    for view in ("surface", "border"):
        (folder / "review" / f"series-02_{view}.png").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_case(tmp_path_factory.mktemp("case"))


def named(surname: str) -> Identity:
    """Make the identity of a patient with this name and this id."""
    return Identity(names=(f"{surname}^Quirin",), numbers=(surname,))


def words_of(folder: Path) -> set[str]:
    """Return every word of names and texts of a case."""
    texts = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    texts += [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in {".json", ".tsv"}]
    return {word for text in texts for word in re.findall(r"[A-Za-z][A-Za-z0-9]+", text)}


@pytest.mark.parametrize("surname", SURNAMES)
def test_a_patient_whose_name_is_a_word_of_the_project_passes(case: Path, surname: str) -> None:
    assert find_leaks(case, named(surname)) == ()


def test_no_word_that_the_project_writes_is_a_leak_whoever_has_it_as_a_name(case: Path) -> None:
    words = words_of(case)
    assert words >= {"face", "sub", "Basic", "dcm2niix", "surface", "Manufacturer", "Philips", "variable", "DeidentificationMethod"}
    from_headers = {"Ingenia", "T1", "TRA", "ORIGINAL", "PRIMARY", "age", "years"}
    found = {word for word in words if name_parts(word) and find_leaks(case, Identity(names=(word,)))}
    assert found == from_headers


def test_an_id_like_the_version_of_an_installed_tool_is_no_leak_there_and_elsewhere_it_is(tmp_path: Path) -> None:
    folder = write_case(tmp_path)
    installed = version("dcm2niix")
    like_it = Identity(numbers=(installed,))
    assert find_leaks(folder, like_it) == ()
    tools = read_json(folder / "review" / "tools.json")
    write_json(folder / "review" / "tools.json", {**tools, "numpy": installed})
    assert [leak.place for leak in find_leaks(folder, like_it)] == ["numpy"]


def in_path(folder: Path, name: str) -> str:
    (folder / f"{SCAN}.bval").rename(folder / f"anat/sub-{CASE}_acq-{name}_T1w.bval")
    return "its name"


def in_case_label(folder: Path, name: str) -> str:
    (folder / f"{SCAN}.bval").rename(folder / f"anat/sub-{name.casefold()}_T1w.bval")
    return "its name"


def in_folder(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    (folder / f"{SCAN}.bval").rename(folder / name / "note-01.txt")
    return "its name"


def change_sidecar(folder: Path, change: Callable[[dict], object]) -> None:
    sidecar = read_json(folder / f"{SCAN}.json")
    change(sidecar)
    write_json(folder / f"{SCAN}.json", sidecar)


def in_key(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar.update({name: 1}) if name not in sidecar else sidecar.update({f"{name} ": 1}))
    return "a key that is not one of ours"


def in_nested_key(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar["DeidentificationMethodCodeSequence"][0].update({name: "x"}))
    return "DeidentificationMethodCodeSequence > a key that is not one of ours"


def in_value(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar.update(SeriesDescription=f"T1 {name} TRA"))
    return "SeriesDescription"


def alone_in_value(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar.update(ManufacturersModelName=name))
    return "ManufacturersModelName"


def beside_a_manufacturer(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar.update(Manufacturer=f"Philips {name}"))
    return "Manufacturer"


def within_a_method(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar["DeidentificationMethod"].insert(1, f"headers by an {name} allow-list"))
    return "DeidentificationMethod"


def after_a_method(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar.update(DeidentificationMethod=f"face removed in native space {name}"))
    return "DeidentificationMethod"


def in_an_option(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar["DeidentificationMethodCodeSequence"][0].update(CodeMeaning=f"{CODES['113100']} {name}"))
    return "DeidentificationMethodCodeSequence > CodeMeaning"


def in_a_list(folder: Path, name: str) -> str:
    change_sidecar(folder, lambda sidecar: sidecar["ImageType"].append(f"{name}_M"))
    return "ImageType"


def in_a_version(folder: Path, name: str) -> str:
    tools = read_json(folder / "review" / "tools.json")
    write_json(folder / "review" / "tools.json", {**tools, "numpy": f"{tools['numpy']} {name}"})
    return "numpy"


def among_the_tools(folder: Path, name: str) -> str:
    write_json(folder / "review" / "tools.json", {f"{name} tools": "1"})
    return "a key that is not one of ours"


def among_the_elements(folder: Path, name: str) -> str:
    write_json(folder / "review" / "series-02_headers.json", {"kept": {f"Manufacturer > {name}'s": 1}})
    return "kept > a key that is not one of ours"


def in_a_note(folder: Path, name: str) -> str:
    (folder / "text" / "note-01.txt").write_text(f"[NAME] was seen.\nSince then {name}\nis well.\n", encoding="utf-8")
    return "line 2"


def within_a_placeholder(folder: Path, name: str) -> str:
    (folder / "text" / "note-01.txt").write_text(f"[DATE]\n[NAME]\n[{name} NAME]\n", encoding="utf-8")
    return "line 3"


def in_the_head_of_the_record(folder: Path, name: str) -> str:
    (folder / "text" / "record.tsv").write_text("\t".join((*RECORD_COLUMNS, name)) + "\n", encoding="utf-8")
    return "line 1"


def in_a_row(folder: Path, name: str) -> str:
    (folder / "text" / "record.tsv").write_text("\t".join(RECORD_COLUMNS) + f"\nage\t58\t{name}\t0\n", encoding="utf-8")
    return "line 2"


def in_the_nifti(folder: Path, name: str) -> str:
    path = folder / f"{SCAN}.nii.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[148 : 148 + len(name.encode())] = name.encode()  # descrip
    path.write_bytes(gzip.compress(bytes(content)))
    return "NIfTI header"


PLANTS = (
    in_path, in_case_label, in_folder, in_key, in_nested_key, in_value, alone_in_value, beside_a_manufacturer, within_a_method, after_a_method, in_an_option,
    in_a_list, in_a_version, among_the_tools, among_the_elements, in_a_note, within_a_placeholder, in_the_head_of_the_record, in_a_row, in_the_nifti,
)  # fmt: skip
CANNOT = {(in_the_nifti, "Müller"), (in_case_label, "Lo"), (in_case_label, "Head"), (alone_in_value, "REMOVED")}
"""A NIfTI header is ASCII, short and ordinary names are known by their capital, and an element with nothing but REMOVED was written by cleaning."""


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_the_same_name_is_found_wherever_it_is_planted(case: Path, tmp_path: Path, plant: Callable[[Path, str], str]) -> None:
    for number, surname in enumerate(SURNAMES):
        if (plant, surname) in CANNOT:
            continue
        folder = shutil.copytree(case, tmp_path / str(number))
        place = plant(folder, surname)
        leaks = find_leaks(folder, named(surname))
        assert place in {leak.place for leak in leaks}, surname
        # neither file nor place repeats the name, unless it is a word of the project
        shown = " ".join(f"{leak.file} {leak.place}" for leak in leaks)
        assert surname in SEEN or not re.search(rf"\b{re.escape(surname)}\b", shown), surname


@pytest.mark.parametrize("number", ["198503124821", "19850312abcd", "4821337"])
def test_a_number_is_found_even_if_it_looks_like_a_digest_and_a_digest_that_contains_it_is_none(case: Path, number: str) -> None:
    note = case / "text" / "note-01.txt"
    identity = Identity(numbers=(number,))
    note.write_text(f"Seen as {number}.\n", encoding="utf-8")
    assert [leak.place for leak in find_leaks(case, identity)] == ["line 1"]
    note.write_text(f"Made from {'a' * 20}{number}{'b' * (44 - len(number))} and {number[:7]}f0a1c.\n", encoding="utf-8")
    assert find_leaks(case, identity) == ()


def test_what_a_cleaned_dicom_file_says_of_itself_is_no_leak_and_the_same_word_elsewhere_is(tmp_path: Path) -> None:
    identity = Identity(names=("Philips^Basic", "Clean^Retain", "Modified^REMOVED", "Head^Siemens"), numbers=("48213371",))
    rules = HeaderRules(KEY, "beef00000001", DateShift(-100), identity_pattern(identity))
    write_dicom_series(
        tmp_path / "raw",
        slices=2,
        Manufacturer="Philips Medical Systems",
        SeriesDescription="T1 Head Philips",
        ImageType=["ORIGINAL", "PRIMARY", "HEAD"],
    )
    clean_series(tmp_path / "raw", tmp_path / "case" / "series-01", rules)
    paths = sorted((tmp_path / "case" / "series-01").glob("*.dcm"))
    for number, path in enumerate(paths, start=1):
        path.rename(path.with_name(f"{number:06d}.dcm"))
    header = dicom.read_dicom(tmp_path / "case" / "series-01" / "000001.dcm")
    assert header.Manufacturer == "Philips Medical Systems"
    assert find_leaks(tmp_path / "case", identity) == ()
    header.StationName = "Philips"
    item = header.DeidentificationMethodCodeSequence[1]
    item.CodeMeaning = f"{item.CodeMeaning} Basic"
    header.save_as(tmp_path / "case" / "series-01" / "000001.dcm")
    leaks = find_leaks(tmp_path / "case", identity)
    assert {leak.file for leak in leaks} == {"series-01/000001.dcm"}
    assert {leak.place for leak in leaks} == {"StationName", "DeidentificationMethodCodeSequence > CodeMeaning"}


def test_a_manufacturer_that_no_scanner_has_is_removed_if_it_is_the_patients_name(tmp_path: Path) -> None:
    for surname, kept in (("Philips", True), ("Vandermeer", False)):
        rules = HeaderRules(KEY, "beef00000001", DateShift(-100), identity_pattern(named(surname)))
        write_dicom_series(tmp_path / surname, slices=1, Manufacturer=surname.upper())
        clean_series(tmp_path / surname, tmp_path / f"{surname} clean", rules)
        header = dicom.read_dicom(next((tmp_path / f"{surname} clean").glob("*.dcm")))
        assert (header.Manufacturer == surname.upper()) is kept
    assert all(name == name.casefold().strip() for name in MANUFACTURERS)


def test_every_placeholder_that_cleaning_writes_is_listed() -> None:
    room = ROOT / "scripts" / "neuralmedbench" / "deid"
    sources = [*(room / "notes").glob("*.py"), room / "texts.py"]
    written = {mark for path in sources for mark in re.findall(r'"(\[[A-Z]{2}[A-Z ]*\])"', path.read_text(encoding="utf-8"))}
    assert written == set(PLACEHOLDERS)


def test_no_word_that_the_stage_writes_is_a_leak_whatever_files_it_writes(tmp_path: Path, flat_deface: None) -> None:
    """A real run of the stage: a file or a key that is added to it and that the search does not know would be searched as a whole."""
    config = write_config(tmp_path / "config", tmp_path)
    files = write_dicom_series(tmp_path / "raw" / "1", slices=8, ManufacturerModelName="Avanto")
    files += write_dicom_series(
        tmp_path / "raw" / "2", slices=8, number=2, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"], SeriesDescription="localizer"
    )
    files += write_dicom_series(
        tmp_path / "raw" / "3", slices=8, number=3, ImageType=["DERIVED", "SECONDARY", "MIP"], SeriesDescription="TOF MIP"
    )
    (tmp_path / "note.txt").write_text("Seen today by Dr Smith.", encoding="utf-8")
    (tmp_path / "record.csv").write_text("variable,value\nage,58\n", encoding="utf-8")
    index = write_index(tmp_path, files, (tmp_path / "note.txt",), tmp_path / "record.csv")
    first, second = (tmp_path / stage / "case.json" for stage in ("ingested", "deidentified"))
    ingest_case.main(["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--out", str(first)])
    paths = ["--config", str(config), "--case", str(first), "--out", str(second)]
    deidentify_case.main(["--benchmark", "mine", *paths])
    assert read_case(second).state is State.OK
    folder = second.parent
    for path in (second, *folder.glob("*.zip")):  # written after the search; packs hold the same files
        path.unlink()
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {path: input_part(path, 0) for path in written if input_part(path, 0) not in {"", "c0ffee"}} == {}
    from_input = {
        "Avanto",
        "Siemens",
        "SE",
        "ORIGINAL",
        "PRIMARY",
        "MAGNITUDE",
        "T1",
        "TRA",
        "TOF",
        "MIP",
        "Seen",
        "today",
        "age",
        "c0ffee",
    }
    found = {word for word in words_of(folder) if name_parts(word) and find_leaks(folder, Identity(names=(word,)))}
    assert found <= from_input


@pytest.mark.skipif(not os.environ.get("NMB_VENDOR_SCANS"), reason="NMB_VENDOR_SCANS names no folder of scans of several vendors")
@pytest.mark.parametrize("surname", ["REMOVED", "Ge", "Siemens", "Face", "sub-01"])
@pytest.mark.parametrize("series", ["ge_ct_tilted_two_blocks", "siemens-xa30_dwi_enhanced"])
def test_the_header_of_a_real_scan_passes_whatever_its_patient_is_called(tmp_path: Path, series: str, surname: str) -> None:
    identity = named(surname)
    rules = HeaderRules(KEY, "beef00000001", DateShift(-100), identity_pattern(identity))
    (tmp_path / "raw").mkdir()
    header = dicom.read_dicom(min((Path(os.environ["NMB_VENDOR_SCANS"]) / series).glob("*.dcm")))
    for keyword in ("PixelData", "PerFrameFunctionalGroupsSequence"):  # most of the bytes, and nothing that the other elements lack
        header.pop(keyword, None)
    header.PatientName, header.PatientID = f"{surname}^Quirin", surname
    header.save_as(tmp_path / "raw" / "000001.dcm")
    clean_series(tmp_path / "raw", tmp_path / "case" / "series-01", rules)
    cleaned = dicom.read_dicom(tmp_path / "case" / "series-01" / "000001.dcm")
    assert cleaned.Manufacturer == header.Manufacturer
    assert find_leaks(tmp_path / "case", identity) == ()


def test_the_record_of_an_earlier_run_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text('{"files": {"anat/sub-c0ffee_T1w.json": "face"}}', encoding="utf-8")
    assert find_leaks(tmp_path, named("Face"))
    empty_outputs(tmp_path)
    assert find_leaks(tmp_path, named("Face")) == ()


# acceptance


def acceptance_of(folder: Path, identity: Identity) -> tuple[AcceptedIdentityLeak, ...]:
    return tuple(
        AcceptedIdentityLeak(
            case_id=CASE,
            file=leak.file,
            place=leak.place,
            digest=leak.digest,
            reason="model of the scanner",
            reviewer="AB",
            accepted_on="2031-03-14",
        )
        for leak in find_leaks(folder, identity)
    )


def test_the_message_of_a_leak_names_file_and_element_and_never_the_value(case: Path) -> None:
    with pytest.raises(IdentityLeaksError) as raised:
        require_no_leaks(case, named("Ingenia"))
    assert str(raised.value).startswith(f"1 identifying values are left after cleaning: {SCAN}.json, ManufacturersModelName; ")
    assert "Ingenia" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_accepted_leak_passes_in_this_file_and_this_element_alone(tmp_path: Path) -> None:
    folder, identity = write_case(tmp_path / "case"), named("Ingenia")
    accepted = acceptance_of(folder, identity)
    (leak,) = require_no_leaks(folder, identity, accepted)
    assert (leak.reviewer, leak.reason, leak.place) == ("AB", "model of the scanner", "ManufacturersModelName")
    # another element, another file
    for other in (
        replace(accepted[0], place="SeriesDescription"),
        replace(accepted[0], file="text/note-01.txt"),
        replace(accepted[0], digest="0" * 64),
    ):
        with pytest.raises(IdentityLeaksError):
            require_no_leaks(folder, identity, [other])
    # the file changes
    change_sidecar(folder, lambda sidecar: sidecar.update(EchoTime=0.01))
    with pytest.raises(IdentityLeaksError, match="accepted before, but the file changed since"):
        require_no_leaks(folder, identity, accepted)


def test_accepting_one_of_two_leaks_keeps_the_case_back(tmp_path: Path) -> None:
    folder, identity = write_case(tmp_path / "case"), named("Ingenia")
    accepted = acceptance_of(folder, identity)
    (folder / "text" / "note-01.txt").write_text("Mr Ingenia\n", encoding="utf-8")
    with pytest.raises(IdentityLeaksError, match=r"^1 identifying values are left after cleaning: text/note-01\.txt, line 1; ") as raised:
        require_no_leaks(folder, identity, accepted)
    assert [bool(leak.reviewer) for leak in raised.value.leaks] == [True, False]
    assert mark_accepted(raised.value.leaks, ())[0].reviewer == "AB"


def test_the_reason_of_an_acceptance_may_not_repeat_the_name(case: Path) -> None:
    identity = named("Ingenia")
    record = CaseRecord(benchmark="mine", case_id=CASE, patient_id="p", stage="deidentify", leaks=find_leaks(case, identity))
    wanted = {"places": [(f"{SCAN}.json", "ManufacturersModelName")], "reviewer": "AB"}
    nothing = AcceptedIdentityLeaks(benchmark="mine")
    for reason, words in (("Ingenia is a model", "repeats a value of the patient"), (" ", "needs --reason and --reviewer")):
        with pytest.raises(ConfigError, match=words) as raised:
            accept(nothing, record, identity, **wanted, reason=reason)
        assert "Ingenia" not in str(raised.value)
    with pytest.raises(
        ConfigError, match=rf"no identifying value was left in .*, EchoTime; found were: {SCAN}.json, ManufacturersModelName$"
    ):
        accept(nothing, record, identity, **{**wanted, "places": [(f"{SCAN}.json", "EchoTime")]}, reason="a model of the vendor")
    once = accept(nothing, record, identity, **wanted, reason="a model of the vendor")
    assert accept(once, record, identity, **wanted, reason="a model of the vendor") == once
    assert require_no_leaks(case, identity, once.accepted)


def test_a_leak_is_accepted_by_command_and_shown_on_sheet_and_audit(
    tmp_path: Path, flat_deface: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patient whose number is the repetition time: kept back, accepted, passed, and kept back again when the scan changes."""

    def run(repetition: float, echo: float = 9) -> CaseRecord:
        config = write_config(tmp_path / "config", tmp_path)
        shutil.rmtree(tmp_path / "raw", ignore_errors=True)
        files = write_dicom_series(tmp_path / "raw", slices=8, PatientID="4321", RepetitionTime=repetition, EchoTime=echo)
        index = write_index(tmp_path, files)
        first, second = (tmp_path / stage / "mine" / "sub-c0ffee" / "case.json" for stage in ("ingested", "deidentified"))
        ingest_case.main(["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--out", str(first)])
        monkeypatch.chdir(tmp_path)
        paths = ["--config", str(config), "--case", str(first), "--out", str(second)]
        assert deidentify_case.main(["--benchmark", "mine", *paths]) == 0
        return read_case(second)

    back = run(4321000)
    assert back.state is State.QUARANTINED
    assert "anat/sub-c0ffee_T1w.json, RepetitionTime" in back.reason
    assert "4321" not in back.reason
    sheet = case_sheet(CaseStages(*(CaseStage(back, tmp_path) for _ in range(3))), ("", ""), tmp_path / "sheets" / "a.html")
    assert "nmb deid accept-leaks --benchmark mine --case c0ffee" in sheet
    arguments = [
        "--benchmark",
        "mine",
        "--case",
        "c0ffee",
        "--file",
        "anat/sub-c0ffee_T1w.json",
        "--element",
        "RepetitionTime",
        "--data",
        ".",
    ]
    assert accept_leaks.main([*arguments, "--reason", "the repetition time", "--reviewer", "AB"]) == 0
    passed = run(4321000)
    assert passed.state is State.OK, passed.reason
    assert passed.checks["leaks_accepted"] == 1
    assert passed.checks["leaks"] == 0
    sheet = case_sheet(CaseStages(*(CaseStage(passed, tmp_path) for _ in range(3))), ("", ""), tmp_path / "sheets" / "a.html")
    assert "Identifying values that a person accepted" in sheet
    assert "the repetition time" in sheet
    audit = audit_cases(AuditRules(benchmark="mine", profile="pseudonymised", subjects="patient"), [(passed, tmp_path)])
    assert [(row.file, row.place, row.reason, row.reviewer) for row in audit.accepted] == [
        ("anat/sub-c0ffee_T1w.json", "RepetitionTime", "the repetition time", "AB")
    ]
    assert (audit.state, audit.leaks) == ("pending", 0)
    again = run(4321000, echo=10)
    assert "accepted before, but the file changed since" in again.reason
