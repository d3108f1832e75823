"""Paths that lead elsewhere, invalid names, and files without a case: nothing outside the folder is ever read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.deid import NOTE, head_voxels, write_config, write_nifti_file
from fixtures.raw import Stack, ball, write_series
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.raw_folder import RawFile, RawIndex, read_raw_index, write_raw_index
from neuralmedbench.ingest.case_tables import keyed_pseudonyms
from neuralmedbench.ingest.listing import find_cases
from neuralmedbench.ingest.listing import list_cases as list_all
from neuralmedbench.records.case import State


def ingest_index(folder: Path, index: RawIndex) -> tuple[State, str]:
    """Ingest the files of an index; return state and reason."""
    import ingest_case
    from neuralmedbench.files.cases import read_case

    write_raw_index(folder / "index" / "files.json", index)
    out = folder / "out" / "case.json"
    arguments = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(folder / "index" / "files.json"), "--out", str(out)]
    assert ingest_case.main(arguments) == 0
    case = read_case(out)
    return case.state, case.reason


@pytest.mark.parametrize("kind", ["files", "notes", "record"])
@pytest.mark.parametrize("how", ["dots", "link", "loop"])
def test_an_index_that_climbs_out_of_its_folder_is_quarantined(tmp_path: Path, kind: str, how: str) -> None:
    secret = write_nifti_file(tmp_path / "elsewhere" / "x_T1w.nii.gz", head_voxels())
    good = write_nifti_file(tmp_path / "index" / "good_T2w.nii.gz", head_voxels())
    if how == "link":
        (tmp_path / "index" / "inside.nii.gz").symlink_to(secret)
    if how == "loop":
        (tmp_path / "index" / "inside.nii.gz").symlink_to("inside.nii.gz")
    bad = RawFile(path="../elsewhere/x_T1w.nii.gz" if how == "dots" else "inside.nii.gz", sha256=sha256_of(secret))
    files = (RawFile(path=good.name, sha256=sha256_of(good)),)
    index = RawIndex(
        case_id="c0ffee", patient_id="beef", files=(*files, bad) if kind == "files" else files,
        notes=(bad,) if kind == "notes" else (), record=bad if kind == "record" else None,
    )  # fmt: skip
    state, reason = ingest_index(tmp_path, index)
    assert state is State.QUARANTINED
    assert "lies outside the folder of the index" in reason
    assert "elsewhere" not in reason
    assert not list((tmp_path / "out" / "series").iterdir())


def test_links_are_followed_only_to_files_inside_that_are_not_found_otherwise(tmp_path: Path) -> None:
    outside = write_nifti_file(tmp_path / "outside" / "secret_T1w.nii.gz", head_voxels())
    source = tmp_path / "source"
    inside = write_nifti_file(source / "a_T1w.nii.gz", head_voxels())
    stored = write_nifti_file(source / ".git" / "annex" / "object.nii.gz", head_voxels())
    for name, target in {"b_T1w.nii.gz": outside, "c_T1w.nii.gz": inside, "d_T1w.nii.gz": stored, "e_T1w.nii.gz": source / "none"}.items():
        (source / name).symlink_to(target)
    (source / "f_T1w.nii.gz").symlink_to("f_T1w.nii.gz")
    (source / "folder").symlink_to(outside.parent, target_is_directory=True)
    (source / "loop").symlink_to(source, target_is_directory=True)
    found = find_cases(source)
    assert sorted(scan.path.name for case in found.cases for scan in case.scans) == ["a_T1w.nii.gz", "d_T1w.nii.gz"]
    # the name of a link has the suffix, the name in the store does not
    listed = list_all(source, keyed_pseudonyms(b"k" * 32)).cases
    assert sorted(Path(file.path).name for case in listed for file in case.index.files) == ["a_T1w.nii.gz", "d_T1w.nii.gz"]
    assert {path.name: reason for path, reason in found.left_out.items()} == {
        "b_T1w.nii.gz": "a link that leads out of the folder",
        "c_T1w.nii.gz": "a link to another file of the folder",
        "e_T1w.nii.gz": "a link to nothing",
        "f_T1w.nii.gz": "a link to nothing",
        "folder": "a link to a folder, which is not followed",
        "loop": "a link to a folder, which is not followed",
    }


@pytest.mark.parametrize(
    "name", ["x\\..\\..\\evil.dcm", "a b\tc.dcm", "x;rm -rf $HOME.dcm", "C:\\scan.dcm", "'; DROP TABLE.dcm", "山田.dcm", "-o.dcm"]
)
def test_odd_names_are_only_names(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    files = write_series(source, Stack(slices=4), voxels=ball(4))
    files[0].rename(source / name)
    config = write_config(tmp_path / "config", source)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    (path,) = (tmp_path / "data" / "raw" / "mine").glob("*/files.json")
    index = read_raw_index(path)
    assert len(index.files) == 4
    assert ingest_index(tmp_path, index) == (State.OK, "")
    assert sorted(path.name for path in (tmp_path / "out" / "series" / "series-01").iterdir()) == [f"{n:06d}.dcm" for n in range(1, 5)]


def test_a_name_that_is_no_text_is_left_out_and_listed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_series(source, Stack(slices=4), voxels=ball(4))
    try:
        Path(os.fsdecode(os.fsencode(source) + b"/Vander\xff\xfe.dcm")).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes no such name")
    config = write_config(tmp_path / "config", source)
    assert list_cases.main(["--benchmark", "mine", "--config", str(config), "--data", str(tmp_path / "data")]) == 0
    assert "its name is not valid UTF-8" in (tmp_path / "data" / "raw" / "mine" / "listing.tsv").read_text(encoding="utf-8")


def test_patients_studies_and_series_that_lie_mixed_in_one_folder_are_sorted_apart(tmp_path: Path) -> None:
    """No extensions, one flat folder, a DICOMDIR beside: two patients, one with two studies, one study with two series."""
    source = tmp_path / "source"
    tags = ({}, {"series": 2}, {"StudyInstanceUID": "1.2.3"}, {"PatientID": "OKA-777", "PatientName": "Okafor"})
    number = 0
    for place, more in enumerate(tags):
        for path in write_series(tmp_path / f"made{place}", Stack(slices=4), voxels=ball(4) + place, **more):
            number += 1
            source.mkdir(exist_ok=True)
            path.rename(source / f"IM{number * 7919 % 1000:06d}")
    (source / "DICOMDIR").write_bytes(b"anything")
    found = find_cases(source)
    assert sorted(len(case.scans) for case in found.cases) == [4, 4, 8]
    assert len({case.patient for case in found.cases}) == 2
    assert found.left_out == {}


@pytest.mark.parametrize("word", ["", "ANONYMOUS", "0", "Unknown"])
def test_people_without_an_id_of_their_own_are_not_one_person(tmp_path: Path, word: str) -> None:
    for place in range(2):
        write_series(tmp_path / str(place), Stack(slices=4), PatientID=word, StudyInstanceUID=f"1.2.{place}")
    assert len({case.patient for case in find_cases(tmp_path).cases}) == 2


def test_every_file_below_the_folder_is_in_a_case_or_left_out_with_a_reason(tmp_path: Path) -> None:
    write_series(tmp_path / "deep" / "er", Stack(slices=4))
    write_nifti_file(tmp_path / "n" / "p_T1w.nii.gz", head_voxels())
    for name in ("a.pdf", "b.zip", "c.docx", "d", "e.dcm", "f.nii", "g.json", "h.bval", "n/note.txt", "stray.md"):
        (tmp_path / name).write_text(NOTE, encoding="utf-8")
    (tmp_path / "empty.dcm").write_bytes(b"")
    found = find_cases(tmp_path)
    owned = [scan.path for case in found.cases for scan in case.scans] + [note for case in found.cases for note in case.notes]
    assert sorted([*owned, *found.left_out]) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert all(found.left_out.values())
