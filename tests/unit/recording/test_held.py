"""The command that lists the traces of withdrawn patients."""

from __future__ import annotations

import gzip
from base64 import urlsafe_b64encode
from pathlib import Path

import pandas as pd
import pytest

from neuralmedbench.cli.cases import list_held, remove_cases
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CaseRow, write_case_table
from neuralmedbench.recording.patient_traces import PatientTrace, find_traces, withdrawn_ids


def row(case_id: str, patient_id: str, exclude: str = "") -> CaseRow:
    return CaseRow(case_id=case_id, patient_id=patient_id, source_sha256="", sequence_overrides={}, exclude=exclude)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a folder in which one case left every kind of trace, next to another case."""
    for case in ("gone00000001", "kept00000001"):
        folder = tmp_path / "data" / "normalised" / "own" / f"sub-{case}"
        (folder / "volumes").mkdir(parents=True)
        (folder / "case.json").write_text("{}")
        (folder / "volumes" / "a.nii").write_bytes(b"1")
        record = urlsafe_b64encode(f"data/normalised/own/sub-{case}/case.json".encode()).decode()
        (tmp_path / ".snakemake" / "metadata").mkdir(parents=True, exist_ok=True)
        (tmp_path / ".snakemake" / "metadata" / record).write_text("{}")
    (tmp_path / "data" / "ledger" / "own").mkdir(parents=True)
    lines = ['{"item_id": "own/gone00000001/x"}', '{"item_id": "own/kept00000001/x"}', '{"item_id": "own/gone00000001/y"}']
    (tmp_path / "data" / "ledger" / "own" / "m.jsonl").write_text("\n".join(lines) + "\n")
    cache = tmp_path / ".dvc" / "cache" / "files" / "md5" / "ab"
    cache.mkdir(parents=True)
    pd.DataFrame({"item": ["own/gone00000001/x", "own/kept00000001/x"], "images": [["a"], ["b"]]}).to_parquet(cache / "cdef")
    (cache / "0123").write_bytes(gzip.compress(b"gone00000001"))
    return tmp_path


def test_every_kind_of_place_that_holds_a_withdrawn_case_is_listed(root: Path) -> None:
    found = find_traces(root, {"gone00000001"})
    assert [(entry.path.rpartition("/")[2], entry.what) for entry in found if "metadata" not in entry.path] == [
        ("cdef", "1 row"),
        ("m.jsonl", "2 lines"),
        ("sub-gone00000001", "2 files"),
    ]
    assert [entry.what for entry in found if "metadata" in entry.path] == ["record of Snakemake"]


def test_a_record_with_a_name_that_is_long_or_has_signs_for_addresses_is_found(tmp_path: Path) -> None:
    names = [f"results/?>{'a' * 200}/gone00000001.csv", "data/ü~/gone00000001/x"]
    encoded = [urlsafe_b64encode(name.encode()).decode() for name in names]
    assert any(set("-_") & set(name) for name in encoded)
    # Snakemake splits a long name into folders that begin with @
    long, short = encoded
    for record in (Path(f"@{long[:100]}", long[100:]), Path(short), Path("no record")):
        path = tmp_path / ".snakemake" / "metadata" / record
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert [entry.what for entry in find_traces(tmp_path, {"gone00000001"})] == ["record of Snakemake"] * 2


def test_nothing_is_listed_when_no_case_is_excluded(root: Path) -> None:
    assert find_traces(root, withdrawn_ids([row("gone00000001", "p1")])) == []


def test_a_patient_with_another_case_in_use_is_not_searched_by_the_patients_id() -> None:
    table = [row("c1", "p1", "withdrawn"), row("c2", "p1"), row("c3", "p3", "withdrawn")]
    assert withdrawn_ids(table) == {"c1", "c3", "p3"}


def test_the_command_prints_a_place_a_line(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "config" / "benchmarks").mkdir(parents=True)
    write_case_table(root / "config" / "benchmarks" / "own.cases.tsv", [row("gone00000001", "p1", "withdrawn"), row("kept00000001", "p2")])
    monkeypatch.chdir(root)
    assert list_held.main(["--benchmark", "own"]) == 0
    said = capsys.readouterr()
    assert "1 of 2 cases are excluded, 0 are no longer listed; 4 places" in said.err
    assert PatientTrace("data/normalised/own/sub-gone00000001", "2 files") in [
        PatientTrace(*line.split("\t")) for line in said.out.splitlines()
    ]


def test_a_case_that_was_taken_out_of_the_folder_is_named_with_the_command_that_removes_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "config" / "benchmarks").mkdir(parents=True)
    write_case_table(root / "config" / "benchmarks" / "own.cases.tsv", [row("kept00000001", "p2")])
    monkeypatch.chdir(root)
    assert list_held.main(["--benchmark", "own"]) == 0
    said = capsys.readouterr()
    assert "0 of 1 cases are excluded, 1 are no longer listed; 4 places" in said.err
    assert "nmb cases remove --benchmark own gone00000001\n" in said.err
    log = root / "logs" / "study" / "ingest_case" / "own_gone00000001.log"  # of the run config/study.yaml
    log.parent.mkdir(parents=True)
    log.write_text("", encoding="utf-8")
    assert remove_cases.main(["--benchmark", "own", "gone00000001"]) == 0
    gone = "deleted data/normalised/own/sub-gone00000001\ndeleted logs/study/ingest_case/own_gone00000001.log\n"
    assert capsys.readouterr().out == gone
    assert sorted(path.name for path in (root / "data" / "normalised" / "own").iterdir()) == ["sub-kept00000001"]
    # answers stand in a file with those of others: they are listed, not deleted
    assert list_held.main(["--benchmark", "own", "--case", "gone00000001"]) == 0
    assert "data/ledger/own/m.jsonl\t2 lines" in capsys.readouterr().out


def test_a_case_in_use_is_not_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "config" / "benchmarks").mkdir(parents=True)
    write_case_table(root / "config" / "benchmarks" / "own.cases.tsv", [row("kept00000001", "p2")])
    monkeypatch.chdir(root)
    with pytest.raises(ConfigError, match="kept00000001: not a withdrawn case of own, nothing was deleted"):
        remove_cases.main(["--benchmark", "own", "gone00000001", "kept00000001"])
    assert (root / "data" / "normalised" / "own" / "sub-gone00000001").is_dir()


def test_the_id_of_a_case_is_not_found_in_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "data" / "slices" / "own" / "sub-case12").mkdir(parents=True)
    (tmp_path / "data" / "slices" / "own" / "sub-case12" / "case.json").write_text("{}")
    assert find_traces(tmp_path, {"case1"}) == []
