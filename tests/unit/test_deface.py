"""Defacing: the face goes, the brain stays, whatever the orientation on disk."""

from __future__ import annotations

import numpy as np
import pytest

from neuralmedbench.deid.deface import deface
from neuralmedbench.demo.cohort import read_cohort
from neuralmedbench.demo.contrast import PROTOCOLS
from neuralmedbench.demo.grid import HEAD, ellipsoid
from neuralmedbench.demo.head import EARS, FACE, Tissue
from neuralmedbench.demo.phantom import Phantom, make_phantom
from neuralmedbench.demo.scanner import AXIAL, acquire, resample
from neuralmedbench.io.nifti import Volume

FEATURES = (*FACE[2:10], *EARS)
"""Chin, lips, nose and ears."""
AFFINE = np.array([[-1.0, 0, 0, 103.5], [0, -1.0, 0, 121.5], [0, 0, 5.0, -66.0], [0, 0, 0, 1]])
"""RAS+ affine of the grid AXIAL, stored as (X, Y, Z) in LPS+ order."""


@pytest.fixture(scope="module")
def phantom() -> Phantom:
    return make_phantom(read_cohort()[0])


def scan(phantom: Phantom, sequence: str) -> np.ndarray:
    """Scan the phantom; (X, Y, Z)."""
    return acquire(phantom.ideal(sequence), PROTOCOLS[sequence], phantom.pose, np.random.default_rng(1)).voxels.T


def shown(phantom: Phantom, field: np.ndarray) -> np.ndarray:
    return (resample(field.astype(np.float32), phantom.pose, AXIAL) > 0.5).T


@pytest.mark.parametrize("sequence", ["T1", "CT"])
def test_the_face_is_gone_and_no_voxel_of_the_brain(phantom: Phantom, sequence: str) -> None:
    head = phantom.labels != Tissue.AIR
    eyes = (phantom.labels == Tissue.VITREOUS) | (phantom.labels == Tissue.LENS)
    face = shown(phantom, eyes | (head & np.any([ellipsoid(HEAD, centre, radii) < 1 for centre, radii in FEATURES], axis=0)))
    voxels = scan(phantom, sequence)
    defaced = deface(Volume(voxels, AFFINE))
    removed = defaced.volume.voxels != voxels
    assert (defaced.volume.voxels[face] == voxels.min()).mean() >= 0.95
    assert not removed[shown(phantom, phantom.inside())].any()
    assert np.array_equal(defaced.volume.affine, AFFINE)


def test_the_order_of_axes_on_disk_does_not_matter(phantom: Phantom) -> None:
    voxels = scan(phantom, "T1")
    turned = Volume(
        voxels[::-1, ::-1].transpose(1, 0, 2), np.array([[0, 1.0, 0, -103.5], [1.0, 0, 0, -117.5], [0, 0, 5.0, -66.0], [0, 0, 0, 1]])
    )
    one = deface(Volume(voxels, AFFINE)).volume.voxels
    other = deface(turned).volume.voxels.transpose(1, 0, 2)[::-1, ::-1]
    assert (one != other).mean() < 0.02


def test_a_brain_without_its_head_is_left_as_it_is(phantom: Phantom) -> None:
    stripped = np.where(shown(phantom, phantom.inside()), scan(phantom, "T1"), 0)
    defaced = deface(Volume(stripped, AFFINE))
    assert defaced.flags == ("no_head_outside_brain",)
    assert np.array_equal(defaced.volume.voxels, stripped)


def test_a_slab_loses_the_skin_of_the_front_and_no_brain(phantom: Phantom) -> None:
    voxels, brain = scan(phantom, "T1")[:, :, 4:13], shown(phantom, phantom.inside())[:, :, 4:13]
    slab = AFFINE.copy()
    slab[2, 3] += 4 * 5.0
    defaced = deface(Volume(voxels, slab))
    removed = defaced.volume.voxels != voxels
    assert removed.any()
    assert not removed[brain].any()


def test_vessels_over_a_threshold_show_no_face(phantom: Phantom) -> None:
    voxels = np.zeros(AXIAL.shape[::-1], dtype=np.int16)
    voxels[100:104, 100:140, 5:25] = 300
    assert deface(Volume(voxels, AFFINE)).flags == ("no_surface",)
