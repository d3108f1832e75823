"""The files of a simulated series are complete, although shared elements are encoded once."""

from __future__ import annotations

import numpy as np
import pydicom
import pytest

from neuralmedbench.demo import dicom
from neuralmedbench.demo.cohort import FOLDER, find_patient, read_patient
from neuralmedbench.demo.dicom import OF_SLICE, write_keyed_series
from neuralmedbench.demo.scanner import PROTOCOLS, ScanGrid, SliceStack
from neuralmedbench.errors import ConfigError

GRID = ScanGrid((-10.0, -12.0, -6.0), (4, 8, 10), (1.0, 1.0, 5.0))


@pytest.mark.parametrize(("sequence", "burned"), [("T2", False), ("CT", False), ("FLAIR", True)])
def test_every_file_of_a_series_is_the_one_that_its_whole_header_gives(tmp_path, monkeypatch, sequence, burned) -> None:
    patient = read_patient(FOLDER / "stroke.yaml")
    shape = (4, 64, 200) if burned else GRID.shape
    grid = ScanGrid(GRID.origin, shape, GRID.spacing)
    stack = SliceStack(grid, np.random.default_rng(1).integers(0, 900, shape).astype(np.int16))
    contents = []
    for name in ("shared", "whole"):
        (tmp_path / name).mkdir()
        written = write_keyed_series(tmp_path / name, patient, 2, PROTOCOLS[sequence], stack, burned=burned, graphics=True)
        contents.append([path.read_bytes() for path in written.files])
        monkeypatch.setattr(dicom, "read_encoded", lambda _: None)
    assert len(contents[0]) == len({*contents[0]}) == 4
    assert contents[0] == contents[1]


def test_the_files_of_a_series_differ_in_what_belongs_to_a_slice_and_in_nothing_else(tmp_path) -> None:
    patient = read_patient(FOLDER / "stroke.yaml")
    stack = SliceStack(GRID, np.random.default_rng(1).integers(0, 900, GRID.shape).astype(np.int16))
    first, second, *_ = (pydicom.dcmread(path) for path in write_keyed_series(tmp_path, patient, 1, PROTOCOLS["T2"], stack).files)
    assert {element.keyword for element in first if second[element.tag] != element} == set(OF_SLICE)
    assert [element.tag for element in first] == [element.tag for element in second]


def test_a_case_id_of_another_key_is_nobody() -> None:
    with pytest.raises(ConfigError, match="not a case of the demo"):
        find_patient("000000000000", b"key")
