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
from neuralmedbench.imaging.quality import REFERENCE_LIMITS, SERIES_LIMITS, check_limits, contrast, reference_flags
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
    if change == "one slice":
        sitk.WriteImage(scan[:, :, 10:11], path.as_posix())
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


SPOILED = {
    "T2w": ("damaged", "not a volume that can be read"),
    "FLAIR": ("noise", "could not be registered to the reference"),
    "ADC": ("other units", "fits no unit of diffusion"),
    "PDw": ("one slice", "at least two slices"),
}
"""What is wrong with each scan beside the reference, and what is said of it."""


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a normalised case of which only the reference is in order; one more series is of unknown kind."""
    folder = tmp_path_factory.mktemp("spoiled")
    case = write_shots(folder, [Shot("T1w", "2d"), *(Shot(sequence, "2d") for sequence in SPOILED)])
    for sequence, (change, _) in SPOILED.items():
        rewrite(case, sequence, change)
    record = read_case(case)
    unlabelled = replace(record.series[0], series_id="series-09", sequence=Sequence.UNKNOWN)
    write_case(case, replace(record, series=(*record.series, unlabelled)))
    normalise(case, folder / "out")
    return folder


def test_the_series_that_fail_are_set_aside_and_the_others_go_on(spoiled: Path) -> None:
    record = read_case(spoiled / "out" / "case.json")
    assert record.state is State.OK, record.reason
    assert [series.sequence for series in record.series] == [Sequence.T1W]
    assert record.quality["series_set_aside"] == len(record.set_aside) == len(SPOILED) + 1


@pytest.mark.parametrize("sequence", list(SPOILED))
def test_a_series_that_is_set_aside_has_its_reason_and_leaves_nothing(spoiled: Path, sequence: str) -> None:
    record = read_case(spoiled / "out" / "case.json")
    excluded = next(series.series_id for series in read_case(spoiled / "sub-case01" / "case.json").series if series.sequence == sequence)
    assert record.set_aside[excluded].startswith(f"{sequence}: ")
    assert SPOILED[sequence][1] in record.set_aside[excluded]
    assert not list((spoiled / "out" / "volumes").glob(f"{excluded}*")), "nothing of it is left"


def test_a_series_of_unknown_kind_is_named_among_those_set_aside(spoiled: Path) -> None:
    record = read_case(spoiled / "out" / "case.json")
    assert record.set_aside["series-09"] == "its kind is not known: name it in `sequence_overrides`"


@pytest.mark.parametrize("change", ["damaged", "noise"])
def test_a_case_whose_reference_fails_is_kept_back(tmp_path: Path, change: str) -> None:
    case = write_shots(tmp_path, [Shot("T1w", "2d")])
    rewrite(case, "T1w", change)
    record = normalise(case, tmp_path / "out")
    assert record.state is State.QUARANTINED
    assert record.quarantined_by == "normalise"
    assert len(record.reason) > 20
    assert list((tmp_path / "out" / "volumes").iterdir()) == []


@pytest.mark.parametrize("change", ["none", "0 to 1", "8 bits", pytest.param("no negative voxels", marks=pytest.mark.long)])
def test_a_ct_that_is_not_in_hounsfield_units_is_no_black_or_white_picture_but_refused(tmp_path: Path, change: str) -> None:
    case = write_shots(tmp_path, [Shot("CT", "2d")])
    rewrite(case, "CT", change)
    record = normalise(case, tmp_path / "out")
    assert (record.state, record.reason == "") == ((State.OK, True) if change == "none" else (State.QUARANTINED, False))
    assert change == "none" or "no values of tissue in Hounsfield units" in record.reason


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


def test_a_contrast_that_divides_by_about_zero_is_not_measured_and_flagged() -> None:
    voxels = np.zeros((4, 10, 10), np.float32)
    voxels[:, :3] = 500
    brain = sitk.GetImageFromArray(np.ones(voxels.shape, np.uint8))
    numbers = contrast(sitk.GetImageFromArray(voxels), brain)
    assert numbers == {}
    fit = {"covered": 1.0, "agreement": 0.5}
    assert reference_flags(1200.0, fit, numbers) == ("contrast_not_measurable",)
    assert reference_flags(1200.0, fit, contrast(sitk.GetImageFromArray(voxels + 300), brain)) == ()
    assert contrast(sitk.GetImageFromArray(voxels * 0), brain) == {"contrast": 0.0}, "a brain of one grey breaks its limit"
