"""Own data, end to end, on real head scans: the folder named by NMB_REAL_SCANS, with the expected outcome per scan."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import NMB, copy_project
from fixtures.leak import unpacked
from neuralmedbench.files.cases import read_case, read_case_table, write_case_table
from neuralmedbench.records.case import CaseRecord, State

SCANS = os.environ.get("NMB_REAL_SCANS", "")
pytestmark = [
    pytest.mark.workflow,
    pytest.mark.long,
    pytest.mark.skipif(not SCANS, reason="NMB_REAL_SCANS names no folder of real scans"),
]

BENCHMARK = """\
title: Real scans
kind: scans
axis: depth
source: {source}
answers: answers.csv
private: true
subjects: public
key_file: own.key
arms: [full, no_image]
samples: 2
"""

RUN = """\
benchmarks: [own]
models: [text, image]
graders: [rubric]
statistics: {resamples: 200}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, run_snakemake: Callable[..., subprocess.CompletedProcess[str]]) -> Path:
    """Run a benchmark of the real scans from the folder to the report, as described in the README."""
    folder = copy_project(tmp_path_factory.mktemp("own") / "project")
    (folder / "config" / "benchmarks" / "own.yaml").write_text(BENCHMARK.format(source=SCANS))
    (folder / "config" / "own-run.yaml").write_text(RUN)
    for arguments in (["--new-key", "own.key"], ["--benchmark", "own"]):
        command = [*NMB, "cases", "list", *arguments]
        listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert listed.returncode == 0, listed.stderr
    cases = cases_by_place(folder)
    say_that_the_schwannoma_has_contrast(folder, cases["vs-seg-001_t1c"])
    with (folder / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case_id", "diagnosis", "established"])
        writer.writerow([cases["tcga-fg-6692"], "glioma", "histology"])
        writer.writerow([cases["vs-seg-001_t1c"], "D33.3", "histology"])
    done = run_snakemake(folder, "--configfile", "config/own-run.yaml")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder


def say_that_the_schwannoma_has_contrast(folder: Path, case: str) -> None:
    """Override the label as a person would: the header of this series names no contrast agent."""
    table = folder / "config" / "benchmarks" / "own.cases.tsv"
    rows = [replace(row, sequence_overrides={"series-01": "ceT1w"}) if row.case_id == case else row for row in read_case_table(table)]
    write_case_table(table, rows)


def cases_by_place(folder: Path) -> dict[str, str]:
    """Return case ids by the last part of their path in the private listing."""
    with (folder / "data" / "raw" / "own" / "listing.tsv").open() as file:
        return {row["place"].rpartition("/")[2]: row["case_id"] for row in csv.DictReader(file, delimiter="\t")}


def case_at(folder: Path, stage: str, place: str) -> CaseRecord:
    """Return the record of the case from a path."""
    return read_case(folder / "data" / stage / "own" / f"sub-{cases_by_place(folder)[place]}" / "case.json")


def sequences(case: CaseRecord) -> list[str]:
    """Return the sequence labels of a case."""
    return sorted(series.sequence.value for series in case.series)


def test_the_glioma_case_is_used_with_four_sequences_that_are_aligned(own: Path) -> None:
    case = case_at(own, "normalised", "tcga-fg-6692")
    assert case.state is State.OK
    assert sequences(case) == ["FLAIR", "T1w", "T2w", "ceT1w"]
    moved = {series.sequence.value: series.quality["shift_mm"] for series in case.series[1:]}
    assert moved["FLAIR"] > 10
    assert moved["T2w"] > 10
    assert moved["ceT1w"] < 5
    for series in case.series[1:]:
        if series.sequence.value in {"FLAIR", "T2w"}:
            assert series.quality["agreement_before"] < 0.15, "by the headers alone they are about 17 mm off"
            assert series.quality["agreement_after"] > 3 * series.quality["agreement_before"]
    assert case.set_aside == {}


def test_the_pictures_of_the_glioma_case_show_the_same_places_in_all_sequences(own: Path) -> None:
    case = case_at(own, "slices", "tcga-fg-6692")
    places = {
        name: [entry.position_mm for entry in case.slices if entry.sequence.value == name] for name in ("T1w", "ceT1w", "T2w", "FLAIR")
    }
    for name, positions in places.items():
        assert len(positions) == 8
        off = [abs(one - other) for one, other in zip(positions, places["T1w"], strict=True)]
        assert max(off) <= 2.75 + 0.1, f"{name}: more than half a slice of 5.5 mm"
    windows = {series.sequence.value: "shared_window" in series.flags for series in case.series}
    assert windows == {"T1w": True, "ceT1w": True, "T2w": False, "FLAIR": False}


def test_the_schwannoma_series_is_used(own: Path) -> None:
    case = case_at(own, "slices", "vs-seg-001_t1c")
    assert case.state is State.OK
    assert sequences(case) == ["ceT1w"]
    assert len(case.slices) > 0


def test_positions_win_over_the_headers_of_the_defaced_t1(own: Path) -> None:
    import SimpleITK as sitk

    case = case_at(own, "deidentified", "studyforrest_t1_stride8")
    assert case.state is State.OK
    assert "positions_and_thickness_disagree" in case.series[0].flags
    volume = own / "data" / "deidentified" / "own" / f"sub-{case.case_id}" / case.series[0].path
    assert max(sitk.ReadImage(str(volume)).GetSpacing()) == pytest.approx(5.333, abs=0.01)
    pictures = case_at(own, "slices", "studyforrest_t1_stride8").slices
    steps = {(b.position_mm - a.position_mm) / (b.index - a.index) for a, b in pairwise(pictures)}
    assert all(abs(step) == pytest.approx(5.333, rel=0.03) for step in steps), "SliceThickness says 0.667"


@pytest.mark.parametrize(("place", "sequence"), [("mr", "ceT1w"), ("stroke", "T2w")])
def test_a_skull_stripped_volume_is_used(own: Path, place: str, sequence: str) -> None:
    case = case_at(own, "slices", place)
    assert case.state is State.OK
    assert sequences(case) == [sequence]


def test_the_thresholded_angiogram_is_loaded_or_quarantined_with_a_reason(own: Path) -> None:
    case = case_at(own, "slices", "ct")
    assert case.slices or (case.state is State.QUARANTINED and len(case.reason) > 20)


def test_a_mask_is_no_scan(own: Path) -> None:
    case = case_at(own, "ingested", "mni")
    assert case.state is State.QUARANTINED
    assert "no usable series" in case.reason


def test_no_place_and_no_identity_of_the_raw_scans_is_in_the_shareable_zone(own: Path) -> None:
    words = [b"Jane_Doe", b"studyforrest", b"tcga-fg", b"TCGA", b"vs-seg", b"VS-SEG", SCANS.encode()]
    shareable = [
        own / "results",
        own / "logs",
        *(own / "data" / part for part in ("deidentified", "normalised", "slices", "reviews", "items", "prompts")),
    ]
    shareable.append(own / "config" / "benchmarks" / "own.cases.tsv")
    files = [path for top in shareable for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file()]
    leaks = [
        str(path.relative_to(own))
        for path in files
        for content in [b"\n".join([str(path).encode(), path.read_bytes(), *unpacked(path.read_bytes())])]
        if any(word in content for word in words)
    ]
    assert leaks == []


def test_cases_without_an_answer_run_and_are_reported_as_not_scored(own: Path) -> None:
    metrics = json.loads((own / "results" / "own-run" / "metrics.json").read_text())
    assert metrics["own"]["text"]
    with (own / "results" / "own-run" / "tables" / "leaderboard.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "image"]
    assert rows[0]["n_patients"] == "2"
