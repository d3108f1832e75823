"""Simulated scans: geometry, conversion and reproducibility."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import nibabel as nib
import numpy as np
import pydicom
import pytest

from neuralmedbench.demo.brain import BrainShape, make_brain
from neuralmedbench.demo.cohort import FOLDER, Cut, read_patient
from neuralmedbench.demo.dicom import write_keyed_series
from neuralmedbench.demo.grid import BRAIN, HEAD, Grid, ellipsoid, lps, smooth_noise
from neuralmedbench.demo.pictures import cut_picture
from neuralmedbench.demo.scanner import ISOTROPIC, PROTOCOLS, Pose, ScanGrid, SliceStack, acquire, resample

pytestmark = pytest.mark.slow

POSE = Pose((3.0, -4.0, 5.0), (2.0, -3.0, 1.0), (0.95, 0.93, 0.96))
LEFT = (-40.0, 10.0, 20.0)
STILL = Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def ball(grid: Grid = HEAD) -> np.ndarray:
    """Draw a bright ball on the patient's left."""
    return 100 * (ellipsoid(grid, LEFT, (12, 12, 12)) < 1).astype(np.float32)


def centre(voxels: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Return the centre of the bright voxels, RAS+ mm."""
    bright = np.argwhere(voxels > voxels.max() / 2)
    return (affine @ [*bright.mean(axis=0), 1])[:3]


@pytest.mark.parametrize("grid", [ScanGrid((-103.5, -121.5, -66.0), (30, 240, 208), (1, 1, 5)), ISOTROPIC], ids=["2d", "3d"])
def test_a_point_of_the_head_is_scanned_where_the_pose_puts_it(grid: ScanGrid) -> None:
    seen = resample(ball(), POSE, grid)
    z, y, x = np.argwhere(seen > 50).mean(axis=0) * grid.spacing[::-1] + grid.origin[::-1]
    assert np.allclose((x, y, z), POSE.place(lps(LEFT)), atol=0.7)


def test_a_field_of_the_brain_alone_is_sampled_like_one_of_the_whole_head() -> None:
    grid = ScanGrid((-40.0, -40.0, -10.0), (8, 60, 60), (1, 1, 5))
    assert np.allclose(resample(ball(), POSE, grid), resample(ball(BRAIN), POSE, grid), atol=1e-3)


@pytest.mark.parametrize("sequence", ["T1", "DWI", "ADC", "SWI", "T1-3D", "CT"])
def test_the_converter_makes_one_volume_of_a_series_and_finds_the_left_on_the_left(tmp_path: Path, sequence: str) -> None:
    """2-D and 3-D series are stored with opposite x: a mirrored brain is a wrong diagnosis."""
    spacing = (2.0, 2.0, 2.0) if sequence == "T1-3D" else (2.0, 2.0, 6.0)
    grid = ScanGrid((-80.0, -60.0, -40.0), (60, 60, 80) if sequence == "T1-3D" else (20, 60, 80), spacing)
    stack = SliceStack(grid, np.rint(resample(ball(), STILL, grid)).astype(np.int16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = write_keyed_series(tmp_path, read_patient(FOLDER / "sclerosis.yaml"), 1, PROTOCOLS[sequence], stack).files
    times = {pydicom.dcmread(path).AcquisitionTime for path in files}
    assert len(times) == (1 if sequence == "T1-3D" else len(files))
    tool = Path(sys.executable).with_name("dcm2niix")
    done = subprocess.run([tool, "-f", "scan", "-z", "n", tmp_path], capture_output=True, text=True, check=True)
    assert "Warning" not in done.stdout
    assert [path.name for path in tmp_path.glob("*.nii")] == ["scan.nii"]
    image = nib.load(tmp_path / "scan.nii")
    assert np.allclose(centre(np.asarray(image.dataobj), image.affine), LEFT, atol=1.5)
    assert (tmp_path / "scan.bval").exists() == (sequence == "DWI")


def test_burned_in_text_is_the_same_in_every_slice_and_changes_nothing_else(tmp_path: Path) -> None:
    grid = ScanGrid((-80.0, -60.0, -40.0), (3, 60, 80), (2.0, 2.0, 6.0))
    stack = SliceStack(grid, np.random.default_rng(0).integers(0, 300, grid.shape).astype(np.int16))
    stack.voxels[:, -1, -1] = 900
    patient = read_patient(FOLDER / "stroke.yaml")
    series = {}
    for burned in (True, False):
        (tmp_path / str(burned)).mkdir()
        series[burned] = write_keyed_series(tmp_path / str(burned), patient, 2, PROTOCOLS["T2"], stack, burned=burned)
    marked, plain = (np.stack([pydicom.dcmread(path).pixel_array for path in series[burned].files]) for burned in (True, False))
    (box,) = series[True].key.boxes
    assert (box.text, series[False].key.boxes) == (("VANDERMEER", "48213371"), ())
    letters = marked != plain
    assert 100 < letters[0].sum() < 800
    assert not letters[:, : box.top].any()
    assert not letters[:, box.bottom :].any()
    assert not letters[:, :, box.right :].any()
    drawn = marked == plain.max()
    assert all(np.array_equal(drawn[0, : box.bottom, : box.right], one[: box.bottom, : box.right]) for one in drawn)
    assert (marked[letters] == plain.max()).all()


@pytest.mark.parametrize("plane", ["axial", "coronal"])
def test_a_lesion_on_the_patients_left_is_on_the_right_of_a_picture(plane: str) -> None:
    grid = ScanGrid((-100.0, -100.0, -60.0), (25, 200, 200), (1, 1, 5))
    seen = resample(ball(), POSE, grid)
    stack = SliceStack(grid, seen.astype(np.int16))
    picture, area = cut_picture(stack, seen > 1, seen > 50, POSE, Cut(sequence="T2", plane=plane, at=LEFT[1 if plane == "coronal" else 2]))
    rows, columns = np.nonzero(picture > 60)
    assert columns.mean() > 128 + 20
    assert rows.mean() < 128 + 15
    assert 200 < area < 600


def test_a_scan_is_the_same_every_time_and_noise_differs_between_series() -> None:
    ideal = ball()
    grids = [acquire(ideal, PROTOCOLS["FLAIR"], POSE, np.random.default_rng(seed)).voxels for seed in (1, 1, 2)]
    assert np.array_equal(grids[0], grids[1])
    assert not np.array_equal(grids[0], grids[2])


def test_smooth_noise_has_zero_mean_and_changes_slowly() -> None:
    field = smooth_noise(Grid((0, 0, 0), (60, 60, 60)), np.random.default_rng(0), 20)
    assert abs(float(field.mean())) < 0.5
    assert float(np.abs(np.diff(field, axis=0)).max()) < 0.6


def test_hydrocephalus_has_wide_ventricles_and_tight_sulci_at_the_top() -> None:
    normal, wide = (
        make_brain(shape, np.random.default_rng(5)) for shape in (BrainShape(), BrainShape(ventricles_mm=7, convexity_sulci=0.3))
    )
    high = slice(-BRAIN.low[0] + 52, -BRAIN.low[0] + 66)
    deep = normal.depth > 25
    assert (wide.csf[deep] > 0.5).sum() > 2 * (normal.csf[deep] > 0.5).sum()
    inner = normal.depth[high] > 4
    assert wide.csf[high][inner].sum() < 0.7 * normal.csf[high][inner].sum()
    assert float((wide.gm + wide.wm + wide.csf).max()) <= 1.001
