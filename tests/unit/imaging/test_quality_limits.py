"""A series beyond the limits is excluded with a reason; the case is quarantined only if its reference fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk

from fixtures.imaging import Shot, normalise, write_shots
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.files.volumes import image_like
from neuralmedbench.imaging.quality import REFERENCE_LIMITS, SERIES_LIMITS, check_limits
from neuralmedbench.records.case import Sequence, State

pytestmark = pytest.mark.slow

GOOD = {"covered": 1.0, "agreement_where_covered": 0.8, "rotation_deg": 3.0, "shift_mm": 17.0, "contrast": 0.8}


def rewrite(case: Path, sequence: str, change: str) -> None:
    """Spoil one scan of a case."""
    path = next(case.parent.rglob(f"*_{sequence}.nii.gz"))
    scan = sitk.ReadImage(path.as_posix())
    voxels = sitk.GetArrayFromImage(scan).astype(np.float32)
    if change == "damaged":
        path.write_bytes(b"no scan")
        return
    if change == "noise":
        voxels = np.random.default_rng(4).uniform(0, 900, voxels.shape)
    if change == "other units":
        voxels *= 0.05
    if change == "0 to 1":
        voxels = np.clip(voxels, 0, None) / voxels.max()
    if change == "8 bits":
        voxels = np.round(255 * (voxels - voxels.min()) / np.ptp(voxels))
    if change == "no negative voxels":
        voxels += 1024
    sitk.WriteImage(image_like(voxels.astype(np.float32), scan), path.as_posix())


@pytest.mark.parametrize(
    ("sequence", "change", "says"),
    [
        ("FLAIR", "damaged", "not a volume that can be read"),
        ("FLAIR", "noise", "could not be registered to the reference"),
        ("ADC", "other units", "fits no unit of diffusion"),
    ],
)
def test_a_series_that_fails_is_set_aside_and_the_others_go_on(tmp_path: Path, sequence: str, change: str, says: str) -> None:
    case = write_shots(tmp_path, [Shot("T1w", "2d"), Shot(sequence, "2d")])
    rewrite(case, sequence, change)
    record = normalise(case, tmp_path / "out")
    assert record.state is State.OK, record.reason
    excluded = next(series.series_id for series in read_case(case).series if series.sequence == sequence)
    assert list(record.set_aside) == [excluded]
    assert record.set_aside[excluded].startswith(f"{sequence}: ")
    assert says in record.set_aside[excluded]
    assert [series.sequence for series in record.series] == [Sequence.T1W]
    assert record.quality["series_set_aside"] == 1
    assert not list((tmp_path / "out" / "volumes").glob(f"{excluded}*")), "nothing of it is left"
    assert read_case(tmp_path / "out" / "case.json") == record


@pytest.mark.parametrize("change", ["damaged", "noise"])
def test_a_case_whose_reference_fails_is_kept_back(tmp_path: Path, change: str) -> None:
    case = write_shots(tmp_path, [Shot("T1w", "2d")])
    rewrite(case, "T1w", change)
    record = normalise(case, tmp_path / "out")
    assert record.state is State.QUARANTINED
    assert record.quarantined_by == "normalise"
    assert len(record.reason) > 20
    assert list((tmp_path / "out" / "volumes").iterdir()) == []


@pytest.mark.parametrize("change", ["none", "0 to 1", "8 bits", "no negative voxels"])
def test_a_ct_that_is_not_in_hounsfield_units_is_no_black_or_white_picture_but_refused(tmp_path: Path, change: str) -> None:
    case = write_shots(tmp_path, [Shot("CT", "2d")])
    rewrite(case, "CT", change)
    record = normalise(case, tmp_path / "out")
    assert (record.state, record.reason == "") == ((State.OK, True) if change == "none" else (State.QUARANTINED, False))
    assert change == "none" or "no values of tissue in Hounsfield units" in record.reason


def test_a_series_of_unknown_kind_is_named_among_those_set_aside(tmp_path: Path) -> None:
    case = write_shots(tmp_path, [Shot("T1w", "2d")])
    record = read_case(case)
    unlabelled = replace(record.series[0], series_id="series-09", sequence=Sequence.UNKNOWN)
    write_case(case, replace(record, series=(*record.series, unlabelled)))
    assert normalise(case, tmp_path / "out").set_aside == {"series-09": "its kind is not known: name it in `sequence_overrides`"}


@pytest.mark.parametrize(
    ("number", "value"),
    [("covered", 0.01), ("agreement_where_covered", 0.01), ("rotation_deg", 60.0), ("shift_mm", 300.0), ("contrast", 0.01)],
)
def test_every_limit_of_a_series_has_its_reason_and_its_number(number: str, value: float) -> None:
    check_limits(GOOD, SERIES_LIMITS)
    with pytest.raises(DataError, match=rf"\({number} {value:g}, at (least|most) "):
        check_limits(GOOD | {number: value}, SERIES_LIMITS)


def test_limits_name_each_number_once_and_a_range_that_can_be_kept() -> None:
    for limits in (REFERENCE_LIMITS, SERIES_LIMITS):
        assert len({limit.number for limit in limits}) == len(limits)
        assert all(limit.least < limit.most and len(limit.reason) > 15 for limit in limits)
