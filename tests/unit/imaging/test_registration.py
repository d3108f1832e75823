"""A known rigid motion is recovered; the error is measured over the brain, not at one point."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.imaging import Shot, brain_of, motion, scan
from neuralmedbench.files.volumes import image_like
from neuralmedbench.imaging.register import RegistrationReference, make_reference, register

pytestmark = pytest.mark.slow

T1W = Shot("T1w", "2d")
MOTIONS = {
    "20 mm": ((12.0, -9.0, 13.0), (5.0, -4.0, 2.0)),
    "20 mm and 15 degrees": ((-11.0, 8.0, -15.0), (-10.0, 8.0, 8.0)),
}


@pytest.fixture(scope="module")
def reference() -> RegistrationReference:
    fixed = scan(T1W)
    return make_reference(fixed, image_like(brain_of(T1W, fixed).astype(np.uint8), fixed), grid_mm=3.0)


@pytest.fixture(scope="module")
def brain_points() -> np.ndarray:
    """Return points of the brain every 10 mm, shape (N, 3), LPS+ in mm."""
    fixed = scan(T1W)
    indices = np.argwhere(brain_of(T1W, fixed))[:: 10 * 10 * 10 // 20]
    return np.array([fixed.TransformIndexToPhysicalPoint([int(x), int(y), int(z)]) for z, y, x in indices])


def target_registration_error_mm(matrix: np.ndarray, shot: Shot, points: np.ndarray) -> float:
    """Return the mean target registration error over the brain (Fitzpatrick 1998)."""
    truth = np.array([motion(shot).TransformPoint(point) for point in points.tolist()])
    return float(np.linalg.norm(points @ matrix[:3, :3].T + matrix[:3, 3] - truth, axis=1).mean())


@pytest.mark.parametrize(
    "sequence", ["ceT1w", "T2w", *(pytest.param(name, marks=pytest.mark.long) for name in ("FLAIR", "dwi", "PDw")), "ADC", "SWI", "CT"]
)
@pytest.mark.parametrize("way", [pytest.param("20 mm", marks=pytest.mark.long), "20 mm and 15 degrees"])
def test_a_known_motion_is_recovered_within_1_mm_over_the_brain(
    reference: RegistrationReference, brain_points: np.ndarray, sequence: str, way: str
) -> None:
    shift, turn = MOTIONS[way]
    shot = Shot(sequence, "3d" if sequence == "SWI" else "2d", turn_deg=turn, shift_mm=shift)
    header_alone = target_registration_error_mm(np.eye(4), shot, brain_points)
    found = register(reference, scan(shot))
    assert header_alone > 3, "the motion is one that matters"
    assert target_registration_error_mm(found.matrix, shot, brain_points) < 1.0
    assert found.after > found.before


def test_the_motions_reach_20_mm_and_15_degrees() -> None:
    shift, turn = MOTIONS["20 mm and 15 degrees"]
    assert np.linalg.norm(shift) == pytest.approx(20, abs=0.5)
    matrix = np.array(motion(Shot("T1w", turn_deg=turn)).GetMatrix()).reshape(3, 3)
    assert np.degrees(np.arccos((np.trace(matrix) - 1) / 2)) == pytest.approx(15, abs=0.5)
