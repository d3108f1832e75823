"""Real series of several vendors, cut to what shows the point; they come in where dcm2niix puts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pydicom
import pytest

from fixtures.raw import ingest
from neuralmedbench.files import dicom
from neuralmedbench.files.dcm2niix import convert
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.ingest.conversion import read_b_values, trace_image
from neuralmedbench.ingest.geometry import measure_dicom
from neuralmedbench.records.case import CaseRecord, Sequence

SCANS = Path(os.environ.get("NMB_VENDOR_SCANS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("NMB_VENDOR_SCANS"), reason="NMB_VENDOR_SCANS names no folder of scans of several vendors"
)


def files_of(folder: str, *wanted: int) -> list[Path]:
    """List files of a series, all or those at some places."""
    files = sorted((SCANS / folder).glob("*.dcm"))
    return [files[place] for place in wanted] if wanted else files


def ingested(folder: Path, case: CaseRecord) -> Volume:
    assert case.series, case.reason
    assert {fate.fate for fate in case.fates} == {"used"}
    return read_nifti(folder / "ingested" / case.series[0].path)


def convert_originals(folder: Path, files: list[Path]) -> tuple[Volume, npt.NDArray[np.float64]]:
    """Convert unchanged files with dcm2niix; return the largest volume and its b-values."""
    for path in files:
        target = folder / "in" / path.name
        target.parent.mkdir(exist_ok=True)
        target.symlink_to(path)
    results = convert(folder / "in", folder / "out")
    best = max(results, key=lambda result: result.image.stat().st_size)
    return best.read(), read_b_values(best.bval) if best.bval else np.array([])


def enhanced_slices(path: Path) -> Iterator[tuple[list[float], npt.NDArray[np.float64]]]:
    """Yield position and pixels of each frame."""
    image = pydicom.dcmread(path)
    for groups, pixels in zip(image.PerFrameFunctionalGroupsSequence, image.pixel_array, strict=True):
        yield list(groups.PlanePositionSequence[0].ImagePositionPatient), pixels


def grid_slices(path: Path) -> Iterator[tuple[list[float], npt.NDArray[np.float64]]]:
    """Yield position and pixels of each tile of a UIH grid of 64 x 64 tiles."""
    image = pydicom.dcmread(path)
    tiles = image.pixel_array.reshape(4, 64, 5, 64).swapaxes(1, 2).reshape(-1, 64, 64)
    yield from zip((list(item.ImagePositionPatient) for item in image[0x0065, 0x1051].value), tiles, strict=True)


@dataclass(frozen=True)
class Expected:
    """One series with one file a volume: how to read its slices, and its geometry in mm; direction cosines of rows, then columns."""

    folder: str
    slices_of: Callable[[Path], Iterator[tuple[list[float], npt.NDArray[np.float64]]]]
    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    b_value: float
    orientation: tuple[float, ...]


XA30 = Expected("siemens-xa30_dwi_enhanced", enhanced_slices, (72, 72, 39), (3, 3, 3), 2500, (1, 0, 0, 0, 1, 0))
UIH = Expected(
    "uih_dti_grid", grid_slices, (64, 64, 20), (3.5, 3.5, 4.2), 929.75, (0.961448, 0.273573, 0.02785, -0.273459, 0.961851, -0.007921)
)


@pytest.mark.parametrize("expected", [XA30, UIH], ids=["xa30", "uih"])
def test_diffusion_with_one_file_a_volume_lies_where_its_headers_say(tmp_path: Path, expected: Expected) -> None:
    files = files_of(expected.folder, 0, 1, 2)  # the first is not weighted
    case = ingest(tmp_path, files)
    volume = ingested(tmp_path, case)
    assert (case.series[0].sequence, case.series[0].b_value) == (Sequence.DWI, pytest.approx(expected.b_value, abs=0.01))
    assert volume.voxels.shape == expected.shape
    assert case.series[0].quality["slices"] == expected.shape[2]
    assert np.allclose(np.linalg.norm(volume.affine[:3, :3], axis=0), expected.spacing, atol=1e-3)
    # as dcm2niix makes it of the original files
    converted, b_values = convert_originals(tmp_path, files)
    assert np.allclose(volume.affine, converted.affine, atol=1e-4)
    assert np.allclose(volume.voxels, trace_image(converted.voxels, b_values)[0], atol=0.01)
    # and by the positions in the headers: each pixel is found at its place
    row, column = np.array(expected.orientation[:3]), np.array(expected.orientation[3:])
    for (position, first), (_, second) in list(zip(expected.slices_of(files[1]), expected.slices_of(files[2]), strict=True))[::5]:
        for y, x in ((20, 30), (40, 12), (33, 50)):
            place = np.array(position) + row * x * expected.spacing[0] + column * y * expected.spacing[1]
            i, j, k = np.round(np.linalg.solve(volume.affine, [*(place * [-1, -1, 1]), 1])[:3], 2).astype(int)
            assert volume.voxels[i, j, k] == pytest.approx(np.sqrt(max(first[y, x], 1e-3) * max(second[y, x], 1e-3)), rel=1e-3)


CT_BLOCKS = "ge_ct_tilted_two_blocks"


def test_ct_in_two_blocks_that_overlap_becomes_one_even_volume(tmp_path: Path) -> None:
    from scipy.ndimage import map_coordinates

    files = files_of(CT_BLOCKS, *range(9, 20))  # the blocks meet after the fifth
    case = ingest(tmp_path, files)
    volume = ingested(tmp_path, case)
    assert case.series[0].sequence is Sequence.CT
    assert set(case.series[0].flags) >= {"uneven_spacing", "gantry_tilt"}
    assert case.series[0].quality["missing_slices"] == 0
    axes = volume.affine[:3, :3] / np.linalg.norm(volume.affine[:3, :3], axis=0)
    assert np.allclose(axes.T @ axes, np.eye(3), atol=1e-6)
    # the same anatomy as in the even volume of dcm2niix; 2 mm off would be noticed
    reference, _ = convert_originals(tmp_path, files)
    grid = np.stack(
        np.meshgrid(*(np.arange(0, side, step) for side, step in zip(volume.voxels.shape, (6, 6, 1), strict=True)), indexing="ij")
    )
    places = np.tensordot(volume.affine[:3, :3], grid, 1) + volume.affine[:3, 3, None, None, None]

    def agreement(shift_mm: float) -> float:
        moved = places + np.array([0, 0, shift_mm])[:, None, None, None]
        inverse = np.linalg.inv(reference.affine)
        index = np.tensordot(inverse[:3, :3], moved, 1) + inverse[:3, 3, None, None, None]
        there = map_coordinates(reference.voxels.astype(np.float32), index, order=1, cval=-3000)
        here = volume.voxels[tuple(grid)]
        both = (there > -1000) & (here > -1000)
        return float(np.corrcoef(there[both], here[both])[0, 1])

    assert agreement(0) > 0.995
    assert max(agreement(2), agreement(-2)) < agreement(0) - 0.005


def test_a_slice_that_is_missing_from_either_block_of_a_ct_or_between_them_is_noticed() -> None:
    headers = [dicom.read_header(path.read_bytes()) for path in files_of(CT_BLOCKS)]
    assert measure_dicom(headers).quality["missing_slices"] == 0
    for gone in range(1, 27):
        assert measure_dicom(headers[:gone] + headers[gone + 1 :]).quality["missing_slices"] == 1, gone
    for gone in range(1, 26):
        assert "missing_slices" in measure_dicom(headers[:gone] + headers[gone + 2 :]).flags, gone
