"""Geometry of slices: gaps, tilted gantries, two spacings, several images in one series."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fixtures.raw import AXIAL, CORONAL, PIXEL_MM, SAGITTAL, Stack, ball, ct_tags, ingest, write_series
from neuralmedbench.errors import DataError
from neuralmedbench.files.dcm2niix import ConversionOutput
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.ingest.conversion import regrid
from neuralmedbench.ingest.geometry import missing_slices
from neuralmedbench.records.case import Plane, Sequence, State

ROD_MM = (10.0, 20.0)
FROM_ABOVE = (1, 0, 0, 0, -1, 0)
"""Position of a straight rod along the body, LPS+: left of the middle and behind it."""


def rod(stack: Stack, rows: int = 48, columns: int = 40) -> npt.NDArray[np.uint16]:
    """Return pixels of slices that cut a rod along the patient's axis, for any slice positions."""
    y, x = np.mgrid[0:rows, 0:columns]
    slices = []
    for position in stack.positions():
        column, row = (ROD_MM[0] - position[0]) / PIXEL_MM, (ROD_MM[1] - position[1]) / PIXEL_MM
        slices.append(2000 * np.exp(-((x - column) ** 2 + (y - row) ** 2) / (2 * 1.5**2)))
    return np.round(slices).astype(np.uint16)


def centres(volume: Volume) -> npt.NDArray[np.float64]:
    """Return the centre of mass of every slice, LPS+, mm, shape (slices, 3)."""
    found = []
    for place in range(volume.voxels.shape[2]):
        grey = volume.voxels[..., place].astype(float) - float(volume.voxels.min())
        i, j = np.mgrid[0 : grey.shape[0], 0 : grey.shape[1]]
        ras = volume.affine @ [(i * grey).sum() / grey.sum(), (j * grey).sum() / grey.sum(), place, 1]
        found.append(ras[:3] * [-1, -1, 1])
    return np.array(found)


@pytest.mark.parametrize("shear", [1.5, -1.5, 0.4])
@pytest.mark.parametrize("bits", [12, 16])
@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_a_tilted_scan_is_straightened_and_stays_where_it_was(tmp_path: Path, shear: float, bits: int, modality: str) -> None:
    stack = Stack(slices=20, shear_mm=shear)
    tags = ct_tags() if modality == "CT" else {}
    tags |= {"BitsStored": bits, "HighBit": bits - 1, "GantryDetectorTilt": float(np.degrees(np.arctan2(shear, 5)))}
    case = ingest(tmp_path, write_series(tmp_path / "raw", stack, voxels=rod(stack), **tags))
    assert case.series[0].flags == ("gantry_tilt",)
    assert abs(case.series[0].quality["tilt_deg"]) == pytest.approx(abs(np.degrees(np.arctan2(shear, 5))), abs=0.01)
    found = centres(read_nifti(tmp_path / "ingested" / case.series[0].path))
    assert np.abs(found[:, :2] - ROD_MM).max() < 0.1
    assert np.allclose(found[:, 2], 5.0 * np.arange(20), atol=0.01)


def test_a_sagittal_stack_that_is_tilted_is_straightened_too(tmp_path: Path) -> None:
    stack = Stack(slices=10, shear_mm=1.0, orientation=SAGITTAL)
    case = ingest(tmp_path, write_series(tmp_path / "raw", stack))
    volume = read_nifti(tmp_path / "ingested" / case.series[0].path)
    axes = volume.affine[:3, :3] / np.linalg.norm(volume.affine[:3, :3], axis=0)
    assert np.allclose(axes.T @ axes, np.eye(3), atol=1e-6)
    assert case.series[0].plane is Plane.SAGITTAL


def test_slices_in_two_blocks_of_different_spacing_are_resampled_and_flagged(tmp_path: Path) -> None:
    """Head CT used to be planned with thin slices through the skull base and thick ones above."""
    stack = Stack(slices=16, spacing_mm=5.0)
    paths = write_series(tmp_path / "raw", stack, voxels=ball(16), **ct_tags())
    kept = paths[:8] + paths[9::2]
    case = ingest(tmp_path, kept)
    assert set(case.series[0].flags) >= {"uneven_spacing"}
    volume = read_nifti(tmp_path / "ingested" / case.series[0].path)
    assert volume.affine[2, 2] == pytest.approx(case.series[0].quality["spacing_mm"])
    # original slices are unchanged, and one between two others is their mean
    first = volume.voxels[:, ::-1, 0].T
    assert np.allclose(first, ball(16)[0].astype(float) - 1024)


@pytest.mark.parametrize(
    ("gone", "orientation", "missing"),
    [
        ((7,), AXIAL, "1 slice is missing between slices 7 and 8 (30 to 40 mm), counted from the feet end"),
        ((7,), FROM_ABOVE, "1 slice is missing between slices 7 and 8 (30 to 40 mm), counted from the head end"),
        ((7,), CORONAL, "1 slice is missing between slices 7 and 8 (30 to 40 mm), counted from the front end"),
        ((3, 9), AXIAL, "2 slices are missing between slices 3 and 4 (10 to 20 mm), 8 and 9 (40 to 50 mm), counted from the feet end"),
        ((5, 6), SAGITTAL, "2 slices are missing between slices 5 and 6 (20 to 35 mm), counted from the left end"),
    ],
)
def test_missing_slices_are_a_reason_that_says_where_and_the_rest_goes_on(
    tmp_path: Path, gone: tuple[int, ...], orientation: tuple[int, ...], missing: str
) -> None:
    files = write_series(tmp_path / "raw" / "1", Stack(slices=14, orientation=orientation), voxels=ball(14))
    files = [path for number, path in enumerate(files) if number not in gone]
    files += write_series(tmp_path / "raw" / "2", series=2)
    case = ingest(tmp_path, files)
    assert [series.series_id for series in case.series] == ["series-02"]
    assert case.fates[0].reason == f"series-01: {missing}; copy the whole series again"


def test_slices_that_lack_at_the_ends_cannot_be_noticed(tmp_path: Path) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", Stack(slices=14), voxels=ball(14))[2:-1])
    assert case.state is State.OK
    assert case.series[0].quality["slices"] == 11


def test_positions_that_are_rounded_in_the_header_are_even_enough(tmp_path: Path) -> None:
    import pydicom

    files = write_series(tmp_path / "raw", Stack(slices=12, spacing_mm=0.625), voxels=ball(12))
    for number, path in enumerate(files):
        image = pydicom.dcmread(path)
        image.ImagePositionPatient = [-60, -60, round(0.625 * number, 1)]
        image.save_as(path)
    assert ingest(tmp_path, files).series[0].flags == ()


def test_images_of_two_echoes_in_one_series_become_two_scans(tmp_path: Path) -> None:
    words = {"SeriesDescription": "pd+t2_tse_tra", "RepetitionTime": 3000, "SeriesInstanceUID": "1.2.3"}
    files = write_series(tmp_path / "raw" / "1", EchoTime=14, **words)
    files += write_series(tmp_path / "raw" / "2", EchoTime=96, first=100, voxels=ball(8) + 7, **words)
    case = ingest(tmp_path, files)
    assert {series.sequence for series in case.series} == {Sequence.PDW, Sequence.T2W}


def test_two_series_with_one_name_stay_two(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "a") + write_series(tmp_path / "raw" / "b", series=2, voxels=ball(8) + 2)
    case = ingest(tmp_path, files)
    assert [(series.series_id, series.sequence) for series in case.series] == [("series-01", Sequence.T1W), ("series-02", Sequence.T1W)]
    assert sorted(path.name for path in (tmp_path / "ingested" / "series").iterdir()) == ["series-01", "series-02"]


def test_two_series_that_share_a_uid_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    files = write_series(tmp_path / "raw" / "a", SeriesInstanceUID="1.2.3")
    files += write_series(tmp_path / "raw" / "b", series=2, first=50, SeriesInstanceUID="1.2.3", voxels=ball(8) + 2)
    assert [series.series_id for series in ingest(tmp_path, files).series] == ["series-01", "series-02"]


@pytest.mark.parametrize(("orientation", "plane"), [(SAGITTAL, Plane.SAGITTAL), (CORONAL, Plane.CORONAL)])
def test_planes_are_known_by_their_cosines(tmp_path: Path, orientation: tuple[int, ...], plane: Plane) -> None:
    case = ingest(tmp_path, write_series(tmp_path / "raw", Stack(orientation=orientation)))
    assert case.series[0].plane is plane


def test_positions_that_do_not_fit_the_slices_are_refused() -> None:
    stack = Volume(np.zeros((4, 4, 3)), np.eye(4))
    with pytest.raises(DataError, match="do not fit"):
        regrid(stack, np.array([[0.0, 0, 0], [0, 0, 1]]), (0, 0, 1))
    with pytest.raises(DataError, match="do not fit"):  # a stack that the converter reoriented
        regrid(stack, np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 2]]), (0, 1, 0))


def test_missing_slices_are_counted_from_the_distances() -> None:
    assert missing_slices(np.array([5.0, 5.0, 15.0, 5.0])).sum() == 2


def positions(*blocks: tuple[float, int], overlap_mm: float = 1.0) -> npt.NDArray[np.float64]:
    """Return the positions of blocks of (spacing, slices), each of which begins a little above the last slice of the one before."""
    places: list[float] = []
    for spacing, slices in blocks:
        start = places[-1] + overlap_mm if places else 0.0
        places += [start + spacing * number for number in range(slices)]
    return np.array(places)


@pytest.mark.parametrize("blocks", [((4.0, 14), (7.0, 14)), ((7.0, 6), (4.0, 9)), ((2.5, 8), (5.0, 8)), ((3.0, 8), (5.0, 8), (8.0, 6))])
@pytest.mark.parametrize("overlap_mm", [0.3, 1.1, 2.0])
def test_blocks_of_different_spacing_are_complete_until_a_slice_is_taken_out(
    blocks: tuple[tuple[float, int], ...], overlap_mm: float
) -> None:
    places = positions(*blocks, overlap_mm=overlap_mm)
    numbers = np.arange(1.0, len(places) + 1)
    assert missing_slices(np.diff(places), numbers).sum() == 0
    assert missing_slices(np.diff(places)).sum() == 0
    for gone in range(1, len(places) - 1):
        assert missing_slices(np.diff(np.delete(places, gone)), np.delete(numbers, gone)).sum() == 1, gone


def test_a_block_numbered_from_above_lacks_nothing() -> None:
    places = positions((4.0, 14), (7.0, 14))
    numbers = np.array([*range(1, 15), *range(28, 14, -1)], dtype=float)
    assert missing_slices(np.diff(places), numbers).sum() == 0
    assert missing_slices(np.diff(np.delete(places, 13)), np.delete(numbers, 13)).sum() == 1


def test_an_even_series_lacks_every_slice_that_was_taken_out_of_it() -> None:
    rng = np.random.default_rng(20)
    for _ in range(200):
        places = np.arange(20) * 5 + rng.normal(0, 0.05, 20)
        gone = rng.choice(np.arange(4, 16), size=int(rng.integers(0, 4)), replace=False)
        assert missing_slices(np.diff(np.delete(places, gone))).sum() == len(gone), gone


def test_every_second_slice_missing_from_the_middle_is_no_block() -> None:
    places = np.array([0.0, 5, 10, 15, 25, 35, 45, 50, 55, 60])
    assert missing_slices(np.diff(places)).sum() == 3


def test_a_series_that_the_converter_makes_no_volume_of_is_not_called_a_wrong_nifti_file(tmp_path: Path) -> None:
    import nibabel

    content = bytearray(nibabel.Nifti1Image(np.ones((4, 4, 4), np.int16), np.eye(4)).to_bytes())
    content[254:256], content[312:328] = b"\1\0", b"\0" * 16  # sform_code, srow_z
    (tmp_path / "image.nii").write_bytes(content)
    with pytest.raises(DataError, match=r"sform"):
        read_nifti(tmp_path / "image.nii")
    with pytest.raises(DataError, match=r"^dcm2niix made no volume of a series: the positions, orientations or sizes"):
        ConversionOutput(tmp_path / "image.nii", None, None).read()
