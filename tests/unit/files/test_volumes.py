from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk

from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import as_stored, centre_of, grid_over, read_volume, resample_to, write_volume


def volume(seed: int = 1) -> sitk.Image:
    image = sitk.GetImageFromArray(np.random.default_rng(seed).integers(0, 900, (5, 6, 7)).astype(np.float32))
    image.SetSpacing((1.0, 2.0, 3.0))
    image.SetOrigin((-3.0, -6.0, -7.0))
    return image


@pytest.mark.parametrize("order", ["LPS", "RAS", "LAS", "RPI", "ASL", "SPR"])
def test_every_index_order_reads_as_the_same_lps_array(tmp_path: Path, order: str) -> None:
    sitk.WriteImage(sitk.DICOMOrient(volume(), order), (tmp_path / "scan.nii.gz").as_posix())
    read = read_volume(tmp_path / "scan.nii.gz")
    assert np.array_equal(sitk.GetArrayFromImage(read), sitk.GetArrayFromImage(volume()))
    assert read.GetSpacing() == pytest.approx((1.0, 2.0, 3.0))
    assert read.GetOrigin() == pytest.approx((-3.0, -6.0, -7.0), abs=1e-4)


def test_of_a_series_of_volumes_the_first_is_read(tmp_path: Path) -> None:
    sitk.WriteImage(sitk.JoinSeries([volume(1), volume(2)]), (tmp_path / "dwi.nii.gz").as_posix())
    assert np.array_equal(sitk.GetArrayFromImage(read_volume(tmp_path / "dwi.nii.gz")), sitk.GetArrayFromImage(volume(1)))


def test_a_voxel_that_is_no_number_is_zero(tmp_path: Path) -> None:
    voxels = sitk.GetArrayFromImage(volume())
    voxels[0, 0, :3] = np.nan, np.inf, -np.inf
    sitk.WriteImage(sitk.GetImageFromArray(voxels), (tmp_path / "scan.nii").as_posix())
    read = sitk.GetArrayFromImage(read_volume(tmp_path / "scan.nii"))
    assert np.isfinite(read).all()
    assert np.count_nonzero(read == 0) >= 3


@pytest.mark.parametrize("kind", ["absent", "text", "flat", "one slice"])
def test_what_is_no_scan_is_refused_without_telling_where_it_lay(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "DOE_JANE" / "scan.nii.gz"
    path.parent.mkdir()
    if kind == "text":
        path.write_text("no scan")
    elif kind == "flat":
        sitk.WriteImage(volume() * 0, path.as_posix())
    elif kind == "one slice":
        sitk.WriteImage(volume()[:, :, :1], path.as_posix())
    with pytest.raises(DataError, match=r"^scan\.nii\.gz: ") as caught:
        read_volume(path)
    assert "DOE" not in str(caught.value)


def test_equal_volumes_are_equal_bytes_and_rounding_never_loses_a_small_range(tmp_path: Path) -> None:
    for name in ("a.nii.gz", "b.nii.gz"):
        write_volume(tmp_path / name, volume())
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()
    assert sitk.ReadImage((tmp_path / "a.nii.gz").as_posix()).GetPixelID() == sitk.sitkInt16
    small = sitk.Cast(volume() / 1e6, sitk.sitkFloat32)
    write_volume(tmp_path / "adc.nii", small)
    assert np.array_equal(sitk.GetArrayFromImage(sitk.ReadImage((tmp_path / "adc.nii").as_posix())), sitk.GetArrayFromImage(small))


def test_a_coarse_grid_keeps_centre_and_mean() -> None:
    image = sitk.GetImageFromArray(np.full((10, 40, 40), 5.0, dtype=np.float32))
    image.SetSpacing((1.0, 1.0, 5.0))
    image.SetOrigin((10.0, 20.0, 30.0))
    grid = grid_over(image, 4.0)
    middle = [grid.TransformContinuousIndexToPhysicalPoint([(side - 1) / 2 for side in grid.GetSize()])]
    assert middle[0] == pytest.approx((29.5, 39.5, 52.5))
    assert sitk.GetArrayFromImage(resample_to(image, grid)) == pytest.approx(5.0)


def test_what_was_rounded_for_the_disk_is_not_rounded_again() -> None:
    stored = as_stored(volume())
    assert stored.GetPixelID() == sitk.sitkInt16
    assert as_stored(stored) is stored
    few = sitk.Cast(volume() > 400, sitk.sitkInt16)
    assert as_stored(few) is few


def test_the_centre_of_a_mask_is_the_mean_place_of_its_voxels() -> None:
    mask = np.random.default_rng(3).random((7, 9, 11)) > 0.8
    assert centre_of(mask) == tuple(float(axis.mean()) for axis in np.nonzero(mask))
