from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk

from fixtures.imaging import LESION_MM, NINE, Shot, brain_of, motion, nine_scans, normalise, scan, write_shots
from neuralmedbench.atlas.fit import GRID_MM, fit_template
from neuralmedbench.atlas.matching import coarse_head
from neuralmedbench.config.imaging import SEQUENCE_ORDER
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.volumes import image_like
from neuralmedbench.imaging.normalise import correct_bias, find_brain, order_series
from neuralmedbench.imaging.quality import plane_of
from neuralmedbench.imaging.register import make_reference, register, rotation_deg
from neuralmedbench.imaging.scans import read_rigid
from neuralmedbench.records.case import Plane, Sequence, Series, State

pytestmark = pytest.mark.slow

T1W = Shot("T1w", "2d")


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return nine_scans(tmp_path_factory, worker_id)


def worst_error_mm(matrix: np.ndarray, shot: Shot) -> float:
    """Return the largest distance between estimated and true positions of the corners of the brain."""
    corners = np.array([(x, y, z) for x in (-60, 60) for y in (-50, 85) for z in (-40, 65)], dtype=float)
    truth = np.array([motion(shot).TransformPoint(corner) for corner in corners.tolist()])
    return float(np.linalg.norm(corners @ matrix[:3, :3].T + matrix[:3, 3] - truth, axis=1).max())


@pytest.mark.parametrize(
    "shot",
    [
        pytest.param(Shot("T2w", "2d", turn_deg=(3.0, -2.0, 4.0), shift_mm=(2.0, -3.0, 4.0)), marks=pytest.mark.long, id="a little"),
        pytest.param(Shot("FLAIR", "2d", turn_deg=(9.0, 3.0, -5.0), shift_mm=(5.0, 6.0, -17.0)), id="as the real glioma"),
        pytest.param(Shot("dwi", "2d", shift_mm=(0.0, -30.0, 45.0)), id="far"),
        pytest.param(Shot("CT", "2d", turn_deg=(-6.0, 0.0, 4.0), shift_mm=(8.0, 0.0, 10.0)), marks=pytest.mark.long, id="another modality"),
    ],
)
def test_a_known_motion_is_recovered(shot: Shot) -> None:
    fixed = scan(T1W)
    brain = image_like(brain_of(T1W, fixed).astype(np.uint8), fixed)
    found = register(make_reference(fixed, brain, grid_mm=3.0), scan(shot))
    assert worst_error_mm(found.matrix, shot) < 1.5
    assert found.after > found.before
    assert np.allclose(found.matrix[:3, :3] @ found.matrix[:3, :3].T, np.eye(3), atol=1e-4)


@pytest.mark.parametrize("sequence", ["T1w", pytest.param("T2w", marks=pytest.mark.long), "CT"])
def test_the_brain_is_outlined(sequence: str) -> None:
    shot = Shot(sequence, "2d", turn_deg=(-8.0, 3.0, 2.0))
    image = scan(shot)
    found = sitk.GetArrayFromImage(find_brain(image, fit_template(coarse_head(image, GRID_MM)), is_ct=sequence == "CT")) > 0
    truth = brain_of(shot, image)
    assert 2 * (found & truth).sum() / (found.sum() + truth.sum()) > 0.93


def test_a_bias_field_is_bias_corrected_and_the_grid_is_kept() -> None:
    image = scan(T1W)
    z, _, x = np.indices(sitk.GetArrayFromImage(image).shape) / 40 - 1
    shaded = image_like((sitk.GetArrayFromImage(image) * np.exp(0.35 * x + 0.25 * z)).astype(np.float32), image)
    flat = correct_bias(shaded, grid_mm=8.0)
    white = brain_of(T1W, image) & (sitk.GetArrayFromImage(image) > 380)

    def spread(scan: sitk.Image) -> float:
        values = sitk.GetArrayFromImage(scan)[white]
        return float(values.std() / values.mean())

    assert spread(flat) < 0.6 * spread(shaded)
    assert flat.GetPixelID() == sitk.sitkFloat32
    assert (flat.GetOrigin(), flat.GetSpacing(), flat.GetSize()) == (image.GetOrigin(), image.GetSpacing(), image.GetSize())


def test_a_scan_is_normalised_the_same_twice_whatever_is_beside_it(scans: Path, tmp_path: Path) -> None:
    whole = read_case(scans / "sub-case01" / "case.json")
    kept = ("T1w", "ceT1w", "PDw", "CT")
    write_case(tmp_path / "case.json", replace(whole, series=tuple(entry for entry in whole.series if entry.sequence in kept)))
    shutil.copytree(scans / "sub-case01" / "anat", tmp_path / "anat")
    again, first = normalise(tmp_path / "case.json", tmp_path / "again"), read_case(scans / "normalised" / "case.json")
    assert [entry.sequence.value for entry in again.series] == list(kept)
    assert again.series == tuple(entry for entry in first.series if entry.sequence in kept)
    assert again.quality == first.quality
    one, two = (written(folder) for folder in (scans / "normalised", tmp_path / "again"))
    numbers, less = (json.loads(files.pop("review/quality.json")) for files in (one, two))
    assert less.items() <= numbers.items()
    assert len(less) == len(again.series) + 1
    assert len(two) > 20
    assert two.items() <= one.items()
    packed, fewer = (zipfile.ZipFile(folder / "review.zip") for folder in (scans / "normalised", tmp_path / "again"))
    for member in fewer.infolist():
        assert (member.date_time, member.external_attr) == ((1980, 1, 1, 0, 0, 0), packed.getinfo(member.filename).external_attr)
        if member.filename != "quality.json":
            assert fewer.read(member) == two[f"review/{member.filename}"]


def written(folder: Path) -> dict[str, bytes]:
    """Return the files of a normalised case, but for its record and its pack, which are of all series."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name not in ("case.json", "review.zip")}


def test_what_is_written_of_a_case_leads_back_to_its_scans(scans: Path) -> None:
    record, folder = read_case(scans / "normalised" / "case.json"), scans / "normalised"
    moved = next(shot for shot in NINE if shot.sequence == "PDw")
    sources = {entry.series_id: scans / "sub-case01" / entry.path for entry in read_case(scans / "sub-case01" / "case.json").series}
    assert all(entry.volume_sha256 == sha256_of(sources[entry.series_id]) for entry in record.series)
    reference, scan_moved, ct = (next(entry for entry in record.series if entry.sequence == name) for name in ("T1w", "PDw", "CT"))
    assert reference is record.series[0]
    assert np.array_equal(read_rigid(folder, reference), np.eye(4))
    assert worst_error_mm(read_rigid(folder, scan_moved), moved) < 1.5
    assert scan_moved.quality["shift_mm"] > 10
    assert "patient_moved" in scan_moved.flags
    assert (scan_moved.plane, ct.plane) == (Plane.AXIAL, Plane.AXIAL)
    native = sitk.GetArrayFromImage(sitk.ReadImage((folder / ct.path).as_posix()))
    raw = sitk.GetArrayFromImage(sitk.ReadImage(sources[ct.series_id].as_posix()))
    assert np.array_equal(native, raw), "Hounsfield units stay what they are"
    copy = sitk.ReadImage((folder / "volumes" / f"{scan_moved.series_id}_space-ref.nii").as_posix())
    lesion = copy.TransformPhysicalPointToIndex(LESION_MM)
    assert copy[lesion] > 1.5 * np.median(sitk.GetArrayFromImage(copy)[brain_of(T1W, copy)])


def test_a_damaged_scan_quarantines_the_case_and_leaves_no_volume(tmp_path: Path) -> None:
    case = write_shots(tmp_path, [T1W])
    next(case.parent.rglob("*.nii.gz")).write_bytes(b"damaged")
    record = normalise(case, tmp_path / "out")
    assert record.state is State.QUARANTINED
    assert record.quarantined_by == "normalise"
    assert "not a volume" in record.reason
    assert list((tmp_path / "out" / "volumes").iterdir()) == []


def test_the_reference_is_the_first_known_sequence_of_the_order() -> None:
    def entry(number: int, sequence: str) -> Series:
        return Series(series_id=f"series-{number:02d}", path="x", modality="MR", sequence=Sequence(sequence))

    series = (entry(1, "unknown"), entry(2, "ADC"), entry(3, "FLAIR"), entry(4, "T1w"))
    assert [scan.series_id for scan in order_series(series, SEQUENCE_ORDER)] == ["series-04", "series-02", "series-03"]
    with pytest.raises(DataError, match=r"no series can be the reference: found ADC, unknown"):
        order_series(series[:2], SEQUENCE_ORDER)


@pytest.mark.parametrize(
    ("spacing", "plane"),
    [
        ((0.9, 0.9, 5.5), Plane.AXIAL),
        ((5.0, 0.9, 0.9), Plane.SAGITTAL),
        ((0.9, 4.0, 0.9), Plane.CORONAL),
        ((1.0, 0.5, 0.5), None),
        ((3.0, 3.0, 3.0), None),
    ],
)
def test_the_plane_is_the_one_across_the_thickest_side(spacing: tuple[float, ...], plane: Plane | None) -> None:
    assert plane_of(spacing) is plane


def test_a_turn_is_measured_in_degrees() -> None:
    turn = np.eye(4)
    turn[:3, :3] = np.array(sitk.Euler3DTransform((0, 0, 0), 0.0, 0.0, np.radians(12)).GetMatrix()).reshape(3, 3)
    assert rotation_deg(turn) == pytest.approx(12)
