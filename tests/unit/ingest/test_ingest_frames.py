"""Enhanced multi-frame objects: geometry, timing and b-values are in functional groups, and none is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fixtures.raw import AXIAL, CORONAL, SAGITTAL, Stack, ball, clean_and_convert, compressed, ingest, write_enhanced, write_series
from neuralmedbench.files import dicom
from neuralmedbench.files.nifti import read_nifti
from neuralmedbench.records.case import Plane, Sequence


@pytest.mark.parametrize(("modality", "kind"), [("MR", Sequence.T1W), ("CT", Sequence.CT)])
def test_a_multi_frame_object_is_converted_after_cleaning_as_the_plain_series_is(tmp_path: Path, modality: str, kind: Sequence) -> None:
    words = "Head 5.0" if modality == "CT" else "t1_se_tra"
    frames = ingest(tmp_path / "frames", [write_enhanced(tmp_path / "raw" / "e", modality=modality, SeriesDescription=words)])
    plain = ingest(tmp_path / "plain", write_series(tmp_path / "raw" / "plain"))
    assert [series.sequence for series in frames.series] == [kind]
    assert frames.series[0].quality == plain.series[0].quality
    assert frames.series[0].plane is Plane.AXIAL
    assert [fate.reason for fate in frames.fates] == ["series-01"]
    volume = clean_and_convert(tmp_path / "frames", frames, "series-01")
    expected = clean_and_convert(tmp_path / "plain", plain, "series-01")
    assert np.allclose(volume.affine, expected.affine)
    shift = -1024 if modality == "CT" else 0
    assert np.array_equal(volume.voxels, expected.voxels.astype(int) + shift)


def test_frames_in_any_order_are_sorted_by_their_positions(tmp_path: Path) -> None:
    import pydicom

    path = write_enhanced(tmp_path / "raw" / "e.dcm")
    image = pydicom.dcmread(path)
    order = [3, 0, 7, 1, 6, 2, 5, 4]
    image.PerFrameFunctionalGroupsSequence = [image.PerFrameFunctionalGroupsSequence[number] for number in order]
    image.PixelData = ball(8)[order].astype("<u2").tobytes()
    image.save_as(path)
    case = ingest(tmp_path, [path])
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert np.array_equal(volume.voxels[::1, ::-1, :].transpose(2, 1, 0), ball(8))


@pytest.mark.parametrize("syntax", ["jpeg2000", "jpeglossless", "rle", "deflated", "bigendian"])
def test_a_compressed_multi_frame_object_keeps_every_pixel(tmp_path: Path, syntax: str) -> None:
    path = write_enhanced(tmp_path / "raw" / "e.dcm")
    compressed([path], syntax)
    case = ingest(tmp_path, [path])
    assert case.series, case.fates
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert np.array_equal(volume.voxels[:, ::-1, :].transpose(2, 1, 0), ball(8))


def test_of_a_multi_frame_diffusion_object_the_strongest_weighting_is_used(tmp_path: Path) -> None:
    path = write_enhanced(tmp_path / "raw" / "e.dcm", b_values=(0, 500, 1000), SeriesDescription="DWI")
    case = ingest(tmp_path, [path])
    assert [(series.sequence, series.b_value) for series in case.series] == [(Sequence.DWI, 1000.0)]
    volume = clean_and_convert(tmp_path, case, "series-01")
    assert volume.voxels.max() == round(907 * np.exp(-1000 / 1500))


def test_several_directions_of_one_weighting_become_their_trace(tmp_path: Path) -> None:
    path = write_enhanced(tmp_path / "raw" / "e.dcm", b_values=(0, 1000, 1001, 999), SeriesDescription="DWI")
    case = ingest(tmp_path, [path])
    assert [(series.sequence, series.b_value) for series in case.series] == [(Sequence.DWI, 1001.0)]
    assert case.series[0].path.endswith(".nii.gz")


def test_volumes_that_came_in_one_object_each_stay_volumes(tmp_path: Path) -> None:
    """Frames are numbered from 1 in each object; equal numbers would be slices of one place to the converter."""
    weights = (0, 1000, 1001)
    files = [
        write_enhanced(tmp_path / "raw" / f"{name}.dcm", b_values=(weight,), SeriesDescription="DWI", InstanceNumber=number,
                       SOPInstanceUID=f"1.2.{number}")
        for name, number, weight in zip("bca", (1, 2, 3), weights, strict=True)
    ]  # fmt: skip
    case = ingest(tmp_path, sorted(files))
    assert [(series.sequence, series.b_value) for series in case.series] == [(Sequence.DWI, 1001.0)], case.reason
    volume = read_nifti(tmp_path / "ingested" / case.series[0].path)
    assert np.allclose(np.linalg.norm(volume.affine[:3, :3], axis=0), (4, 4, 5))
    assert np.allclose(volume.voxels[:, ::-1, :].transpose(2, 1, 0), np.round(ball(8) * np.exp(-1000 / 1500)), atol=1)
    # a volume that is cut off is left out, the others are used
    files[2].write_bytes(files[2].read_bytes()[:-2000])
    case = ingest(tmp_path / "cut", sorted(files))
    assert [(series.b_value, series.flags) for series in case.series] == [(1000.0, ("cut_off_files",))]
    assert [fate.reason for fate in case.fates] == ["series-01: cut off; copy it again", "series-01", "series-01"]


def test_frames_in_several_planes_are_a_localizer_and_a_series_of_volumes_is_refused(tmp_path: Path) -> None:
    import pydicom

    path = write_enhanced(tmp_path / "raw" / "loc.dcm", Stack(slices=9))
    image = pydicom.dcmread(path)
    del image.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence
    for number, groups in enumerate(image.PerFrameFunctionalGroupsSequence):
        groups.PlaneOrientationSequence = [pydicom.Dataset()]
        groups.PlaneOrientationSequence[0].ImageOrientationPatient = list([AXIAL, SAGITTAL, CORONAL][number % 3])
    image.save_as(path)
    several = write_enhanced(tmp_path / "raw" / "several.dcm", b_values=(0, 0), ImageType=["ORIGINAL", "PRIMARY", "M"], SeriesNumber=2,
                             SeriesInstanceUID="1.2.3", SOPInstanceUID="1.2.4")  # fmt: skip
    reasons = [fate.reason for fate in ingest(tmp_path, [path, several]).fates]
    assert reasons[0] == "localizer (few slices in several planes)"
    assert "2 volumes that is no diffusion scan" in reasons[1]


def test_a_frame_without_groups_is_refused_with_a_reason(tmp_path: Path) -> None:
    import pydicom

    path = write_enhanced(tmp_path / "raw" / "e.dcm")
    image = pydicom.dcmread(path)
    del image.PerFrameFunctionalGroupsSequence
    image.save_as(path)
    assert "does not say where each of them lies" in ingest(tmp_path, [path]).fates[0].reason


def test_the_names_of_a_multi_frame_object_are_searched_for_too(tmp_path: Path) -> None:
    import json

    path = write_enhanced(tmp_path / "raw" / "e.dcm")
    uid = dicom.text(dicom.read_header(path.read_bytes()), "SOPInstanceUID")
    ingest(tmp_path, [path])
    identity = json.loads((tmp_path / "ingested" / "identity.json").read_text(encoding="utf-8"))
    assert uid in identity["uids"]
    assert "Vandermeer^Johanna" in identity["names"]
