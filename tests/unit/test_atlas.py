from __future__ import annotations

import numpy as np
import pytest
import SimpleITK as sitk

from imaging_fixtures import Shot, brain_of, scan
from neuralmedbench.atlas.fit import brain_depth, face_mask, fit_quality, fit_template
from neuralmedbench.errors import DataError
from neuralmedbench.io.volumes import image_like

POSES = [
    Shot("T1w", "3d"),
    Shot("T2w", "2d", turn_deg=(-14.0, 4.0, 6.0), shift_mm=(6.0, -12.0, 35.0)),
    Shot("CT", "2d", turn_deg=(12.0, -3.0, 5.0), shift_mm=(-8.0, 15.0, -60.0)),
    Shot("dwi", "2d", turn_deg=(-8.0, 0.0, -6.0), shift_mm=(0.0, 30.0, 10.0)),
]


def dice(one: np.ndarray, two: np.ndarray) -> float:
    return float(2 * (one & two).sum() / (one.sum() + two.sum()))


@pytest.mark.parametrize("shot", POSES, ids=lambda shot: shot.sequence)
def test_the_brain_is_found_in_every_contrast_and_pose(shot: Shot) -> None:
    image = sitk.DICOMOrient(scan(shot), "LPS")
    fit = fit_template(image)
    found = sitk.GetArrayFromImage(brain_depth(image, fit)) <= 0
    assert dice(found, brain_of(shot, image)) > 0.93
    quality = fit_quality(image, fit)
    assert 0.9 < quality["scale"] < 1.1
    assert quality["covered"] > 0.9
    assert quality["overlap"] > 0.9


def test_a_slab_is_put_at_its_height() -> None:
    image = sitk.DICOMOrient(scan(Shot("T1w", "2d")), "LPS")
    slab = image[:, :, 14:26]
    truth = brain_of(Shot("T1w", "2d"), slab)
    assert dice(sitk.GetArrayFromImage(brain_depth(slab, fit_template(slab))) <= 0, truth) > 0.9


def test_the_face_is_nose_eyes_mouth_and_ears_and_never_brain() -> None:
    grid = sitk.Image([90, 110, 110], sitk.sitkFloat32)
    grid.SetSpacing([2.5] * 3)
    grid.SetOrigin([-112.0, -140.0, -160.0])
    here = sitk.Transform(3, sitk.sitkIdentity)
    face, brain = face_mask(grid, here), brain_depth(grid, here) <= 0
    assert not (sitk.GetArrayFromImage(face) & sitk.GetArrayFromImage(brain)).any()
    shown = {
        "nose": (0, -105, -45),
        "left eye": (32, -75, -35),
        "right eye": (-32, -75, -35),
        "mouth": (0, -85, -85),
        "left ear": (80, 15, -40),
        "right ear": (-80, 15, -40),
    }
    kept = {"occiput": (0, 110, 0), "vertex": (0, 0, 95), "forehead": (0, -88, 30), "cerebellum": (0, 70, -40)}
    for name, point in (shown | kept).items():
        inside = face[grid.TransformPhysicalPointToIndex(point)]
        assert inside == (name in shown), name


def test_a_fit_is_the_same_twice() -> None:
    image = sitk.DICOMOrient(scan(POSES[1]), "LPS")
    assert fit_template(image).GetParameters() == fit_template(image).GetParameters()


def test_a_scan_without_a_head_is_refused() -> None:
    voxels = np.zeros((20, 60, 60), dtype=np.float32)
    voxels[10, 30, 30] = 1000
    with pytest.raises(DataError, match="shows no head"):
        fit_template(image_like(voxels, sitk.Image([60, 60, 20], sitk.sitkFloat32)))
