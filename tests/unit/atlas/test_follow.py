"""Transfer of a fit between scans of a head: it is correct, or reported as ambiguous."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import SimpleITK as sitk

from fixtures.imaging import Shot, brain_of, scan
from neuralmedbench.atlas.fit import GRID_MM, _rigid_part, brain_depth, fit_template, is_best_here, shape_gain, transfer_fit
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.files.volumes import as_matrix, as_transform, image_like

pytestmark = pytest.mark.slow

FIRST = Shot("T1w", "2d")
OTHERS = [
    Shot("T2w", "2d", turn_deg=(-5.0, 4.0, 3.0), shift_mm=(4.0, -6.0, 9.0)),
    Shot("dwi", "2d", turn_deg=(3.0, -2.0, -6.0), shift_mm=(0.0, 7.0, -20.0)),
]
SLAB = slice(10, 20)


@cache
def taken(shot: Shot) -> tuple[sitk.Image, sitk.Image]:
    """Return a scan, and the same on the coarse grid."""
    image = sitk.DICOMOrient(scan(shot), "LPS")
    return image, coarse_head(image, GRID_MM)


@cache
def fit() -> sitk.Transform:
    return fit_template(taken(FIRST)[1])


def dice(one: np.ndarray, two: np.ndarray) -> float:
    return float(2 * (one & two).sum() / (one.sum() + two.sum()))


@pytest.mark.parametrize("part", ["whole", "slab"])
@pytest.mark.parametrize("shot", OTHERS, ids=lambda shot: shot.sequence)
def test_the_brain_is_found_in_another_scan_of_the_head_and_in_a_slab_of_it(shot: Shot, part: str) -> None:
    image = taken(shot)[0] if part == "whole" else taken(shot)[0][:, :, SLAB]
    followed = transfer_fit(coarse_head(image, GRID_MM), taken(FIRST)[1], fit())
    assert followed.sure
    assert followed.rival < 0.8
    assert dice(sitk.GetArrayFromImage(brain_depth(image, followed.transform)) <= 0, brain_of(shot, image)) > 0.93


def test_an_own_fit_is_the_start_if_the_positions_are_useless() -> None:
    far = sitk.Image(taken(OTHERS[0])[0])
    far.SetOrigin(np.add(far.GetOrigin(), (60.0, -150.0, 300.0)).tolist())
    rough = coarse_head(far, GRID_MM)
    assert not transfer_fit(rough, taken(FIRST)[1], fit()).sure
    followed = transfer_fit(rough, taken(FIRST)[1], fit(), fit_template(rough))
    assert followed.sure
    assert dice(sitk.GetArrayFromImage(brain_depth(far, followed.transform)) <= 0, brain_of(OTHERS[0], taken(OTHERS[0])[0])) > 0.93


def test_noise_and_slabs_that_are_too_thin_are_never_sure() -> None:
    image, rough = taken(FIRST)
    noise = np.random.default_rng(1).uniform(0, 255, rough.GetSize()[::-1]).astype(np.float32)
    assert not transfer_fit(image_like(noise, rough), rough, fit()).sure
    assert not transfer_fit(coarse_head(image[:, :, 12:15], GRID_MM), rough, fit()).sure
    assert not transfer_fit(image_like(np.zeros_like(noise), rough), rough, fit()).sure


def test_the_pose_of_a_rigid_movement_is_recovered() -> None:
    pose, centre = (0.2, -0.1, 0.3, 5.0, -4.0, 12.0), (10.0, 20.0, -30.0)
    assert np.allclose(_rigid_part(as_matrix(sitk.Euler3DTransform(centre, *pose[:3], pose[3:])), np.array(centre)), pose)
    stretched = as_matrix(sitk.Euler3DTransform(centre, *pose[:3], pose[3:])) @ np.diag([1.05, 1.05, 1.05, 1.0])
    assert np.allclose(_rigid_part(stretched, np.array(centre))[:3], pose[:3])


def test_a_stretched_head_would_agree_better_with_another_shape() -> None:
    rough = taken(FIRST)[1]
    assert shape_gain(rough, fit()) < 1.03
    stretched = as_transform(as_matrix(fit()) @ np.diag([1.0, 1.1, 1.0, 1.0]))
    assert shape_gain(rough, stretched) > 1.06
    nowhere = as_transform(as_matrix(fit()) + np.array([[0, 0, 0, 900.0], [0] * 4, [0] * 4, [0] * 4]))
    assert shape_gain(rough, nowhere) == float("inf")
    assert not is_best_here(rough, nowhere)
