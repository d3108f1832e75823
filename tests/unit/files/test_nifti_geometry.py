"""NIfTI headers that contradict themselves: left and right, voxel sizes, units."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

from neuralmedbench.errors import DataError
from neuralmedbench.files.nifti import read_nifti

FOUND = {name: Path(os.environ.get(name, "")) for name in ("NMB_FOUND_INPUTS", "NMB_FOUND_SCANS")}
SIZES = (1.0, 1.25, 3.0)
PLAIN = np.array([[1.0, 0, 0, -90], [0, 1.25, 0, -126], [0, 0, 3.0, -72], [0, 0, 0, 1]])
MIRROR = np.diag([-1.0, 1, 1, 1])


def turn(degrees: float, axis: int) -> Any:
    """A rotation about x, y or z."""
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    matrix = np.eye(4)
    first, second = (place for place in range(3) if place != axis)
    matrix[first, first], matrix[first, second], matrix[second, first], matrix[second, second] = cos, -sin, sin, cos
    return matrix


def sheared(degrees: float) -> Any:
    """The plain affine with slices that slide along y, as of a tilted gantry."""
    affine = PLAIN.copy()
    affine[1, 2] = 3.0 * np.tan(np.radians(degrees))
    return affine


def write(path: Path, sform: Any = PLAIN, qform: Any = PLAIN, codes: tuple[int, int] = (1, 1), version: int = 1, **fields: Any) -> Path:
    """Write a volume with two transforms, their codes (sform, qform) and other fields of the header."""
    kind: Any = {1: nibabel.Nifti1Image, 2: nibabel.Nifti2Image}[version]
    image = kind(np.arange(180 * 4 * 12, dtype=np.int16).reshape(180, 4, 12), None)
    image.header.set_qform(qform, codes[1])
    image.header.set_sform(sform, codes[0])
    for name, value in fields.items():
        image.header[name] = value
    image.to_filename(path)
    return path


def sizes_of(path: Path, chosen: Any = None) -> list[float]:
    """Return the voxel sizes with which a file is read."""
    affine = read_nifti(path, sizes=chosen).affine
    return [round(float(size), 3) for size in np.linalg.norm(affine[:3, :3], axis=0)]


@pytest.mark.parametrize("codes", [(1, 1), (2, 1), (4, 1), (1, 2), (3, 3)])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (MIRROR, "mirror each other"),
        (np.diag([1.0, -1, 1, 1]), "mirror each other"),
        (-np.diag([1.0, 1, 1, -1]), "mirror each other"),
        (turn(180, 2), "are turned against each other by 180 degrees"),
        (turn(180, 0), "are turned against each other by 180 degrees"),
        (turn(-90, 0), "are turned against each other by 90 degrees"),
        (turn(12, 1), "are turned against each other by 12 degrees"),
        (MIRROR @ turn(8, 0), "mirror each other"),
    ],
)
def test_transforms_that_mirror_or_turn_each_other_leave_left_and_right_unknown(
    tmp_path: Path, codes: tuple[int, int], change: Any, problem: str
) -> None:
    path = write(tmp_path / "a.nii", sform=change @ PLAIN, codes=codes)
    with pytest.raises(DataError, match="left and right cannot be known") as error:
        read_nifti(path)
    assert f"sform (code {codes[0]}) and qform (code {codes[1]}) {problem}" in str(error.value)
    with pytest.raises(DataError, match="left and right cannot be known"):
        read_nifti(path, sizes="pixdim")


@pytest.mark.parametrize(
    "sform",
    [
        turn(8, 0) @ PLAIN,
        turn(-8, 2) @ PLAIN,
        PLAIN + np.array([[0, 0, 0, 40.0]] * 3 + [[0, 0, 0, 0]]),
        np.diag([1.01, 1.01, 1.01, 1]) @ PLAIN,
        sheared(20),
        sheared(30),
        sheared(-30),
    ],
)
@pytest.mark.parametrize("qform", ["plain", "same"])
def test_a_small_tilt_a_shift_a_shear_and_rounding_are_harmless(tmp_path: Path, sform: Any, qform: str) -> None:
    path = write(tmp_path / "a.nii", sform=sform, qform=PLAIN if qform == "plain" else sform)
    assert np.allclose(read_nifti(path).affine, sform, atol=1e-3)


def test_a_mirrored_stack_whose_transforms_agree_is_read(tmp_path: Path) -> None:
    """Most stacks have a left-handed qform (qfac -1)."""
    for change in (MIRROR, turn(90, 0) @ MIRROR, turn(180, 2)):
        path = write(tmp_path / "a.nii", sform=change @ PLAIN, qform=change @ PLAIN)
        assert np.allclose(read_nifti(path).affine, change @ PLAIN, atol=1e-3)


@pytest.mark.parametrize("version", [1, 2])
def test_a_transform_with_code_0_is_not_looked_at(tmp_path: Path, version: int) -> None:
    junk = np.full((4, 4), 7.0)
    path = write(tmp_path / "a.nii", codes=(0, 1), version=version)
    for row in "xyz":
        image: Any = nibabel.load(path)
        image.header[f"srow_{row}"] = junk[0]
    assert sizes_of(path) == list(SIZES)
    assert sizes_of(write(tmp_path / "b.nii", codes=(1, 0), version=version, quatern_b=0.6, qoffset_x=np.nan)) == list(SIZES)
    with pytest.raises(DataError, match="qform and sform codes are 0"):
        read_nifti(write(tmp_path / "c.nii", codes=(0, 0), version=version))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"quatern_b": np.nan}, "its header gives no volume"),
        ({"quatern_b": 0.9, "quatern_c": 0.9}, "damaged NIfTI file"),
        ({"srow_x": np.zeros(4)}, "its header gives no volume: the voxels have no extent in one direction (sform)"),
        ({"srow_y": np.array([np.inf, 0, 0, 0])}, "its header gives no volume"),
        ({"srow_z": np.array([1e35, 0, 1e35, 0])}, "its header gives no volume"),
    ],
)
def test_a_transform_that_is_none_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as error:
        read_nifti(write(tmp_path / "a.nii", **fields))
    assert words in str(error.value)


def test_signs_and_absence_of_pixdim_say_nothing_about_sizes(tmp_path: Path) -> None:
    for pixdim in ([-1, -1, 1.25, 3], [1, 0, 0, 0], [0, 1, 1.25, 3], [1, np.nan, 1.25, 3]):
        path = write(tmp_path / "a.nii", codes=(1, 0), pixdim=np.array([*pixdim, 1, 0, 0, 0]))
        assert sizes_of(path) == list(SIZES)


def test_a_qform_alone_without_voxel_sizes_gives_no_volume(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nii", codes=(0, 1), pixdim=np.array([1, 1, 0, 3, 1, 0, 0, 0]))
    with pytest.raises(DataError, match=r"the voxels have no extent in one direction \(pixdim\)"):
        read_nifti(path)


def longer(factor: float) -> Any:
    """The plain affine with slices further apart."""
    return PLAIN @ np.diag([1, 1, factor, 1])


@pytest.mark.parametrize("codes", [(1, 0), (1, 1), (4, 1), (2, 0)])
def test_sizes_that_differ_are_refused_with_both_unless_one_is_chosen(tmp_path: Path, codes: tuple[int, int]) -> None:
    path = write(tmp_path / "a.nii", sform=longer(1.25), codes=codes)
    with pytest.raises(DataError) as error:
        read_nifti(path)
    qform = f" and the qform (code {codes[1]})" if codes[1] else ""
    assert str(error.value) == (
        f"voxel sizes disagree: 1 x 1.25 x 3.75 mm by the sform (code {codes[0]}), 1 x 1.25 x 3 mm by pixdim{qform};"
        " convert the scan again from its DICOM files, or say which counts for all scans (voxel_sizes)"
    )
    assert sizes_of(path, "sform") == [1.0, 1.25, 3.75]
    assert sizes_of(path, "pixdim") == list(SIZES)
    assert sizes_of(write(tmp_path / "b.nii", sform=longer(1.015), codes=codes))[:2] == [1.0, 1.25]


def test_beside_a_template_the_scanners_transform_counts(tmp_path: Path) -> None:
    tilted = turn(8, 0) @ longer(1.015)
    assert np.allclose(read_nifti(write(tmp_path / "a.nii", sform=tilted, codes=(4, 1))).affine, PLAIN, atol=1e-3)
    for codes in ((2, 1), (1, 1), (4, 2)):
        assert np.allclose(read_nifti(write(tmp_path / "b.nii", sform=tilted, codes=codes)).affine, tilted, atol=1e-3)


@pytest.mark.parametrize(("unit", "factor"), [(0, 1.0), (1, 0.001), (2, 1.0), (3, 1000.0), (8 + 1, 0.001), (16 + 3, 1000.0), (5, 1.0)])
@pytest.mark.parametrize("codes", [(1, 1), (1, 0), (0, 1)])
@pytest.mark.parametrize("version", [1, 2])
def test_lengths_are_read_in_their_unit(tmp_path: Path, unit: int, factor: float, codes: tuple[int, int], version: int) -> None:
    scaled = np.diag([factor, factor, factor, 1]) @ PLAIN
    path = write(tmp_path / "a.nii", sform=scaled, qform=scaled, codes=codes, version=version, xyzt_units=unit)
    assert np.allclose(read_nifti(path).affine, PLAIN, atol=1e-3)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("NMB_FOUND_INPUTS/03-sides-disagree/scans/p1_T1w.nii.gz", ""),
        ("NMB_FOUND_INPUTS/03-sides-disagree/scans/p2_T1w.nii.gz", "sform (code 1) and qform (code 1) mirror each other"),
        ("NMB_FOUND_INPUTS/07-sizes-disagree/scans/p2_T1w.nii.gz", "3 x 3 x 3.75 mm by the sform (code 1), 3 x 3 x 3 mm by pixdim"),
        ("NMB_FOUND_INPUTS/14-lengths-in-metres/scans/p2_T1w.nii.gz", ""),
        ("NMB_FOUND_SCANS/sform-mirrors-qform/mirrored_T2w.nii.gz", "sform (code 2) and qform (code 1) mirror each other"),
    ],
)
def test_scans_of_others_are_read_or_refused_for_their_true_reason(place: str, reason: str) -> None:
    variable, _, rest = place.partition("/")
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no folder of scans")
    if not reason:
        assert sizes_of(FOUND[variable] / rest) == [3.0, 3.0, 3.0]
        return
    with pytest.raises(DataError) as error:
        read_nifti(FOUND[variable] / rest)
    assert reason in str(error.value)
