from __future__ import annotations

import numpy as np
import pytest
import SimpleITK as sitk

from fixtures.imaging import Shot, brain_of, scan
from neuralmedbench.atlas.anatomy import face_regions
from neuralmedbench.atlas.fit import GRID_MM, brain_depth, fit_quality, fit_template, is_best_here, polish_fit, template_points
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import image_like

pytestmark = pytest.mark.slow

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
    rough = coarse_head(image, GRID_MM)
    fit = fit_template(rough)
    found = sitk.GetArrayFromImage(brain_depth(image, fit)) <= 0
    assert dice(found, brain_of(shot, image)) > 0.93
    quality = fit_quality(rough, fit)
    assert 0.9 < quality["scale"] < 1.1
    assert quality["covered"] > 0.9
    assert quality["overlap"] > 0.9


def test_a_slab_is_fitted_at_its_height() -> None:
    image = sitk.DICOMOrient(scan(Shot("T1w", "2d")), "LPS")
    slab = image[:, :, 14:26]
    truth = brain_of(Shot("T1w", "2d"), slab)
    assert dice(sitk.GetArrayFromImage(brain_depth(slab, fit_template(coarse_head(slab, GRID_MM)))) <= 0, truth) > 0.9


def test_a_slab_that_leaves_too_few_samples_for_the_refinement_keeps_the_fit_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    image = sitk.DICOMOrient(scan(Shot("T1w", "2d")), "LPS")
    monkeypatch.setattr("neuralmedbench.atlas.fit.refine", lambda *_arguments, **_settings: False)
    assert (
        dice(sitk.GetArrayFromImage(brain_depth(image, fit_template(coarse_head(image, GRID_MM)))) <= 0, brain_of(Shot("T1w", "2d"), image))
        > 0.9
    )


def test_the_face_is_nose_eyes_mouth_and_ears() -> None:
    shown = [(0, -105, -45), (32, -75, -35), (-32, -75, -35), (0, -85, -85), (80, 15, -40), (-80, 15, -40)]
    kept = {"occiput": (0, 110, 0), "vertex": (0, 0, 95), "forehead": (0, -88, 30), "cerebellum": (0, 70, -40)}
    for point in (*shown, *kept.values()):
        front, ears = face_regions(*(np.float32(value) for value in point))
        assert (min(front, ears) <= 0) == (point in shown), point


def test_template_points_are_those_of_the_transform() -> None:
    image = sitk.DICOMOrient(scan(POSES[1]), "RPS")
    fit = fit_template(coarse_head(image, GRID_MM))
    x, y, z = template_points(image, fit)
    for index in ((0, 0, 0), (50, 20, 11), (99, 109, 37)):
        there = fit.TransformPoint(image.TransformIndexToPhysicalPoint(index))
        assert np.allclose([field[index[::-1]] for field in (x, y, z)], there, atol=0.01)


def test_a_polished_fit_is_better_and_better_than_its_neighbours() -> None:
    image = sitk.DICOMOrient(scan(POSES[1]), "LPS")
    rough = coarse_head(image, GRID_MM)
    found = fit_template(rough)
    polished = polish_fit(rough, found)
    assert fit_quality(rough, polished)["agreement"] >= fit_quality(rough, found)["agreement"]
    assert dice(sitk.GetArrayFromImage(brain_depth(image, polished)) <= 0, brain_of(POSES[1], image)) > 0.93
    assert is_best_here(rough, polished)
    off = sitk.AffineTransform(polished)
    off.SetTranslation(np.add(off.GetTranslation(), (0.0, 10.0, 0.0)).tolist())
    assert not is_best_here(rough, off)


def test_a_fit_is_the_same_twice() -> None:
    rough = coarse_head(sitk.DICOMOrient(scan(POSES[1]), "LPS"), GRID_MM)
    assert fit_template(rough).GetParameters() == fit_template(rough).GetParameters()


def test_a_scan_without_a_head_is_refused() -> None:
    voxels = np.zeros((20, 60, 60), dtype=np.float32)
    voxels[10, 30, 30] = 1000
    with pytest.raises(DataError, match="shows no head"):
        fit_template(image_like(voxels, sitk.Image([60, 60, 20], sitk.sitkFloat32)))
