"""Published data are valid BIDS data sets: the de-identified tree as raw data, the normalised one as a derivative."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from describe_scans import main as describe_scans
from fixtures.imaging import nine_scans, normalise, part_of
from neuralmedbench.cli.cases import export_bids
from neuralmedbench.deid.file_names import bids_names
from neuralmedbench.deid.headers.cleaner import clean_sidecar
from neuralmedbench.files.bids import NOT_BIDS, Participant, describe_participant
from neuralmedbench.files.cases import CaseRow, read_case, write_case, write_case_table
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.json_files import write_json
from neuralmedbench.records.case import CaseRecord, Sequence, State
from neuralmedbench.runtime.atomic_write import write_text

pytestmark = pytest.mark.slow

SEQUENCES = {"one": ("T1w", "ceT1w", "dwi", "ADC", "SWI"), "two": ("CT",)}
VALIDATOR = shutil.which("bids-validator-deno")


def write_case_folder(root: Path, case_id: str, scans: Path) -> CaseRecord:
    """Write a de-identified case of some of the nine scans as its stage does: names, sidecars, texts and pictures for the reviewer."""
    series = tuple(
        replace(entry, path="", b_value=1000.0)
        for entry in read_case(scans / "sub-case01" / "case.json").series
        if entry.sequence in SEQUENCES[case_id]
    )
    case = CaseRecord(benchmark="demo", case_id=case_id, patient_id=f"p-{case_id}", stage="deidentify", series=series)
    folder, names = root / f"sub-{case_id}", bids_names(case)
    for entry in series:
        stem = folder / names[entry.series_id]
        stem.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(next(scans.glob(f"sub-case01/anat/*_{entry.sequence.value}.nii.gz")), stem.with_name(f"{stem.name}.nii.gz"))
        write_json(stem.with_name(f"{stem.name}.json"), clean_sidecar(None, modality=entry.modality))
        if entry.sequence is Sequence.DWI:
            write_text(stem.with_name(f"{stem.name}.bval"), "1000\n")
            write_text(stem.with_name(f"{stem.name}.bvec"), "0\n0\n0\n")
    age = {"one": "93", "two": "54.5"}[case_id]
    write_text(folder / "text" / "record.tsv", f"variable\tvalue\tunit\tdays_from_scan\nage\t{age}\tyears\t0\nsex\tfemale\t\t0\n")
    write_text(folder / "text" / "note-01.txt", "Headache.\n")
    write_text(folder / "review" / "series-01.png", "")
    done = replace(
        case, record="text/record.tsv", series=tuple(replace(entry, path=f"{names[entry.series_id]}.nii.gz") for entry in series)
    )
    write_case(folder / "case.json", done)
    return done


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Two cases and a quarantined one, de-identified, described, normalised and exported."""
    folder = tmp_path_factory.mktemp("bids")
    raw, table = folder / "data" / "deidentified" / "demo", folder / "config" / "benchmarks" / "demo.cases.tsv"
    scans, normalised = nine_scans(tmp_path_factory, worker_id), folder / "data" / "normalised" / "demo"
    for case_id in SEQUENCES:
        write_case_folder(raw, case_id, scans)
    record = part_of(scans, normalised / "sub-one", *SEQUENCES["one"], case_id="one")
    write_case(normalised / "sub-one" / "case.json", replace(record, series=tuple(replace(one, b_value=1000.0) for one in record.series)))
    normalise(raw / "sub-two" / "case.json", normalised / "sub-two")
    lost = CaseRecord(benchmark="demo", case_id="lost", patient_id="p", stage="deidentify", state=State.QUARANTINED, reason="no series")
    for stage in ("deidentified", "normalised"):
        (folder / "data" / stage / "demo" / "sub-lost").mkdir()
        write_case(folder / "data" / stage / "demo" / "sub-lost" / "case.json", lost)
    rows = [CaseRow(case_id=name, patient_id=name, source_sha256="", sequence_overrides={}, exclude="") for name in ("one", "two", "lost")]
    write_case_table(table, rows)
    write_json(raw / "audit.json", {})
    assert describe_scans(["--benchmark", "demo", "--table", str(table), "--out", str(raw / "dataset_description.json")]) == 0
    export(folder, folder / "derivative")
    return folder


def export(project: Path, out: Path) -> None:
    """Run the command."""
    arguments = ["--benchmark", "demo", "--config", str(project / "config"), "--data", str(project / "data"), "--out", str(out)]
    assert export_bids.main(arguments) == 0


def errors_of(folder: Path) -> list[str]:
    """Return the errors of the validator, and its exit status if it is not 0."""
    assert VALIDATOR
    done = subprocess.run([VALIDATOR, str(folder), "--format", "json"], capture_output=True, text=True, check=False)
    issues = json.loads(done.stdout)["issues"]["issues"]
    found = [f"{issue['code']} {issue.get('subCode', '')} {issue.get('location', '')}" for issue in issues if issue["severity"] == "error"]
    return [*found, *([f"exit {done.returncode}"] if done.returncode else [])]


@pytest.mark.skipif(VALIDATOR is None, reason="bids-validator-deno is not installed")
@pytest.mark.parametrize("tree", ["data/deidentified/demo", "derivative"])
def test_the_bids_validator_has_no_error(project: Path, tree: str) -> None:
    assert errors_of(project / tree) == []


@pytest.mark.skipif(VALIDATOR is None, reason="bids-validator-deno is not installed")
@pytest.mark.parametrize("tree", ["data/deidentified/demo", "derivative"])
def test_the_validator_looks_at_the_scans_and_finds_a_wrong_name(project: Path, tmp_path: Path, tree: str) -> None:
    """Ignoring the pipeline's additional files must not ignore everything."""
    shutil.copytree(project / tree, tmp_path / "copy")
    scan_file = next((tmp_path / "copy" / "sub-one" / "anat").glob("*_ce-gadolinium*T1w.nii.gz"))
    scan_file.rename(scan_file.with_name("sub-one_FLARE.nii.gz"))
    assert any("NOT_INCLUDED" in error and "FLARE" in error for error in errors_of(tmp_path / "copy"))


def test_participants_are_the_cases_and_ages_are_top_coded(project: Path) -> None:
    with (project / "data" / "deidentified" / "demo" / "participants.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows == [
        {
            "participant_id": "sub-lost",
            "patient_id": "p",
            "age": "n/a",
            "sex": "n/a",
            "scanner": "n/a",
            "field_strength": "n/a",
            "state": "quarantined",
        },
        {
            "participant_id": "sub-one",
            "patient_id": "p-one",
            "age": "89+",
            "sex": "F",
            "scanner": "n/a",
            "field_strength": "n/a",
            "state": "ok",
        },
        {
            "participant_id": "sub-two",
            "patient_id": "p-two",
            "age": "54",
            "sex": "F",
            "scanner": "n/a",
            "field_strength": "n/a",
            "state": "ok",
        },
    ]


@pytest.mark.parametrize(("age", "written"), [("88", "88"), ("89", "89+"), ("90+", "89+"), ("102 years", "89+"), ("unknown", "n/a")])
def test_an_age_is_written_as_bids_wants_it(tmp_path: Path, age: str, written: str) -> None:
    write_text(tmp_path / "record.tsv", f"variable\tvalue\tunit\tdays_from_scan\nAge\t{age}\tyears\t0\n")
    case = CaseRecord(benchmark="b", case_id="one", patient_id="p", stage="deidentify", record="record.tsv")
    assert describe_participant(case, tmp_path) == Participant(age=written)
    assert describe_participant(replace(case, record=""), tmp_path) == Participant()


def test_only_kinds_of_scan_that_bids_has_no_place_for_are_passed_over(project: Path) -> None:
    patterns = (project / "derivative" / ".bidsignore").read_text().split()
    assert patterns == [pattern for name in NOT_BIDS for pattern in (f"**/{name}", f"**/{name}/**")]


def test_a_derivative_keeps_the_name_of_its_scan_and_says_how_it_was_made(project: Path) -> None:
    anat = project / "derivative" / "sub-one" / "anat"
    assert sorted(path.name for path in anat.glob("*.nii.gz")) == [
        "sub-one_ce-gadolinium_desc-preproc_T1w.nii.gz",
        "sub-one_ce-gadolinium_space-reference_desc-preproc_T1w.nii.gz",
        "sub-one_desc-brain_mask.nii.gz",
        "sub-one_desc-preproc_T1w.nii.gz",
        "sub-one_space-reference_desc-preproc_T1w.nii.gz",
    ]
    sidecar = json.loads((anat / "sub-one_ce-gadolinium_desc-preproc_T1w.json").read_text())
    assert sidecar["Sources"] == ["bids:raw:sub-one/anat/sub-one_ce-gadolinium_T1w.nii.gz"]
    assert sidecar["SkullStripped"] is False
    assert len(sidecar["RigidFromReference"]) == 4
    assert not (project / "derivative" / "sub-lost").exists()


def test_an_export_is_the_same_twice(project: Path, tmp_path: Path) -> None:
    export(project, tmp_path / "again")
    assert sha256_of_files(tmp_path / "again") == sha256_of_files(project / "derivative")
