"""Scans that came in wrongly or not at all: each is read as its files say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.raw import ingest
from neuralmedbench.files.case_flow import counts_as_patient
from neuralmedbench.records.case import Sequence

SCANS = Path(os.environ.get("NMB_FOUND_SCANS", ""))
pytestmark = pytest.mark.skipif(not os.environ.get("NMB_FOUND_SCANS"), reason="NMB_FOUND_SCANS names no folder of scans that failed once")


def files_of(folder: str) -> list[Path]:
    return sorted(path for path in (SCANS / folder).rglob("*") if path.is_file() and path.name != "README.md")


def test_a_stack_is_used_without_its_reference_picture(tmp_path: Path) -> None:
    case = ingest(tmp_path, files_of("scout-in-the-series"))
    assert case.series[0].sequence is Sequence.T2W
    assert case.raw_files == {"used": 29, "localizer (1 of 30 images, in another plane)": 1}


def test_images_with_one_uid_are_used_by_position(tmp_path: Path) -> None:
    case = ingest(tmp_path, files_of("one-uid-for-all"))
    assert case.series[0].quality["slices"] == 29
    assert case.raw_files == {"used": 29}


def test_a_few_negative_voxels_make_no_ct(tmp_path: Path) -> None:
    series = ingest(tmp_path, files_of("mr-with-negative-voxels")).series[0]
    assert (series.sequence, series.modality, series.flags) == (Sequence.T1W, "MR", ("negative_voxels",))


def test_the_magnitude_of_a_field_map_is_no_t1(tmp_path: Path) -> None:
    case = ingest(tmp_path, files_of("bottle-as-head"))
    assert case.reason.startswith("no usable series among 60 files: field map")
    assert not counts_as_patient(case)
