"""The scans of a case show the same head: they use the fit of the one that shows it best, and the record states this."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import SimpleITK as sitk

from fixtures.deid import KEY, write_dicom_series
from fixtures.face import Head as Phantom
from fixtures.face import Scanned, first_head, scan, scan_moved
from neuralmedbench.atlas.fit import MAX_RIVAL
from neuralmedbench.deid import stage
from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.faces import locate
from neuralmedbench.deid.faces.deface import DefacedScan, deface
from neuralmedbench.deid.faces.face_measures import HeadView, on_grid, skin_depth
from neuralmedbench.deid.faces.locate import Head, defacing_order, frame_of
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.release.folder import clean_dicom_case
from neuralmedbench.deid.review.sheet import FLAGS
from neuralmedbench.deid.values import DateShift
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.files.volumes import grid_over, image_like
from neuralmedbench.records.case import CaseRecord, Sequence, Series

pytestmark = pytest.mark.slow

REAL = Path(os.environ.get("NMB_REAL_SCANS", "")) / "nifti" / "tcga-fg-6692"
LOW, MIDDLE, HIGH, BOTTOM = slice(0, 12), slice(8, 20), slice(20, 30), slice(0, 12)
"""Slices of 5 mm of slabs that show nose and ears, orbits and brain, and the vertex; and slices of 1 mm below the brain."""
TURN, SHIFT = (4.0, -3.0, 5.0), (4.0, -6.0, 5.0)
"""How the patient moved between two scans: degrees and mm."""
RULES = HeaderRules(KEY, "beef00000001", DateShift(-100))


@pytest.fixture(scope="module")
def phantom() -> Phantom:
    return first_head()


@pytest.fixture(scope="module")
def whole(phantom: Phantom) -> Head:
    defaced = deface(scan(phantom, "T1").volume, name="series-01", frame="room")
    assert defaced.head is not None
    return defaced.head


def no_fit(*_: Any) -> sitk.Transform:
    message = "no fit of its own is needed"
    raise AssertionError(message)


@cache
def moved(sequence: str) -> Scanned:
    """Make a scan of the patient after a movement."""
    return scan_moved(first_head(), sequence, TURN, SHIFT)


def cut(scanned: Scanned, slices: slice) -> Scanned:
    """Cut a slab from it."""
    affine = scanned.volume.affine.copy()
    affine[:3, 3] += affine[:3, 2] * slices.start
    return replace(scanned, volume=Volume(scanned.volume.voxels[:, :, slices], affine), slices=slices)


def face_is_gone(defaced: DefacedScan, scanned: Scanned, least: float = 0.95) -> None:
    face, brain = scanned.true("face"), scanned.true("brain")
    assert face.sum() > 1000
    assert defaced.mask[face].mean() >= least
    assert not defaced.mask[brain].any()


@pytest.mark.parametrize("sequence", [pytest.param("T2", marks=pytest.mark.long), pytest.param("DWI", marks=pytest.mark.long), "CT", "ADC"])
def test_a_second_scan_of_a_head_follows_the_first_ones_fit(whole: Head, sequence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "fit_template", no_fit)
    scanned = moved(sequence)
    defaced = deface(scanned.volume, is_map=sequence == "ADC", heads=[whole], name="series-02")
    assert defaced.flags == ()
    assert defaced.quality["deface_fit_series"] == 1
    assert defaced.quality["deface_rival"] <= MAX_RIVAL
    assert (defaced.head is None) is (sequence == "ADC"), "a map is fitted worst and lends nothing"
    face_is_gone(defaced, scanned)


@pytest.mark.parametrize(
    ("sequence", "slices", "least"),
    [
        pytest.param("FLAIR", LOW, 0.95, id="FLAIR"),
        pytest.param("DWI", LOW, 0.95, marks=pytest.mark.long, id="DWI"),
        pytest.param("CT", LOW, 0.95, id="CT"),
        pytest.param("ADC", LOW, 0.95, id="ADC"),
        pytest.param("T1C+", MIDDLE, 0.92, id="orbits alone"),
    ],
)
def test_a_slab_takes_the_fit_of_a_whole_head_and_is_flagged(whole: Head, sequence: str, slices: slice, least: float) -> None:
    scanned = cut(moved(sequence), slices)
    defaced = deface(scanned.volume, is_map=sequence == "ADC", heads=[whole], name="series-02")
    assert defaced.flags == ("face_fit_borrowed",)
    assert "of another series" in FLAGS["face_fit_borrowed"]
    assert defaced.quality["deface_fit_series"] == 1
    assert defaced.quality["deface_covered"] < locate.WHOLE_HEAD
    assert defaced.head is None
    face_is_gone(defaced, scanned, least)


def test_a_slab_alone_loses_less_of_the_face() -> None:
    scanned = cut(moved("FLAIR"), LOW)
    alone = deface(scanned.volume)
    assert alone.flags == ("outer_layer_removed",)
    assert "deface_fit_series" not in alone.quality
    assert alone.mask[scanned.true("face")].mean() < 0.9


def test_a_slab_without_overlap_is_located_by_position_only_in_the_same_frame_of_reference(phantom: Phantom, whole: Head) -> None:
    scanned = scan(phantom, "T1-3D", slices=BOTTOM)
    there = deface(scanned.volume, heads=[whole], frame="room")
    assert there.flags == ("face_fit_borrowed",)
    assert "deface_rival" not in there.quality
    assert there.mask[scanned.true("face")].mean() >= 0.95
    for frame in ("elsewhere", ""):
        assert deface(scanned.volume, heads=[replace(whole, frame=frame)], frame=frame and "room").flags == ("outer_layer_removed",)


def test_a_slab_that_shows_the_brain_is_never_located_by_position_alone(whole: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralmedbench.atlas.fit.MAX_RIVAL", 0.0)
    scanned = cut(moved("FLAIR"), MIDDLE)
    assert deface(scanned.volume, heads=[whole], frame="room").flags == ("outer_layer_removed",)


def test_a_slab_that_shows_no_face_is_treated_like_a_single_one(whole: Head) -> None:
    scanned = cut(moved("FLAIR"), HIGH)
    assert not scanned.true("face").any()
    defaced = deface(scanned.volume, heads=[whole])
    assert defaced.flags == ("outer_layer_removed",)
    assert not defaced.mask[scanned.true("brain")].any()


def test_a_scan_that_is_distorted_against_the_first_keeps_a_fit_of_its_own(whole: Head) -> None:
    scanned = moved("FLAIR")
    stretched = Volume(scanned.volume.voxels, np.diag([1.0, 1.06, 1.0, 1.0]) @ scanned.volume.affine)
    defaced = deface(stretched, heads=[whole])
    assert "deface_fit_series" not in defaced.quality
    face_is_gone(defaced, scanned)


def test_a_head_at_another_position_is_still_located(whole: Head) -> None:
    scanned = moved("FLAIR")
    far = scanned.volume.affine.copy()
    far[:3, 3] += (40.0, -150.0, 300.0)
    face_is_gone(deface(Volume(scanned.volume.voxels, far), heads=[whole]), scanned)


def test_a_borrowed_fit_that_would_leave_a_face_is_not_used(whole: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralmedbench.deid.faces.deface.what_is_left", lambda level, seen: {"face_surface_left": 0.5})
    assert deface(cut(moved("FLAIR"), LOW).volume, heads=[whole]).flags == ("outer_layer_removed",)
    with pytest.raises(DeidentificationError, match="no scalp to go by"):
        deface(cut(moved("ADC"), LOW).volume, is_map=True, heads=[whole])


def test_a_whole_head_that_would_keep_a_face_by_another_ones_fit_gets_its_own(whole: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    first = iter([{"face_surface_left": 0.5}])
    monkeypatch.setattr("neuralmedbench.deid.faces.deface.what_is_left", lambda level, seen: next(first, {}))
    defaced = deface(moved("FLAIR").volume, heads=[whole])
    assert "deface_fit_series" not in defaced.quality
    face_is_gone(defaced, moved("FLAIR"))


def series(number: int, sequence: Sequence, slices: int = 30, spacing: float = 5.0) -> Series:
    quality = {"slices": float(slices), "spacing_mm": spacing}
    return Series(series_id=f"series-{number:02d}", path=f"raw/{number}", modality="MR", sequence=sequence, quality=quality)


def test_whole_heads_come_before_slabs_and_maps_and_t1_first() -> None:
    case = [
        series(1, Sequence.ADC), series(2, Sequence.T1W, slices=12), series(3, Sequence.FLAIR), series(4, Sequence.CE_T1W),
        series(5, Sequence.T1W, slices=180, spacing=1.0), replace(series(6, Sequence.T2W), quality={}),
    ]  # fmt: skip
    assert [one.series_id[-1] for one in defacing_order(case)] == ["4", "5", "3", "6", "2", "1"]


def test_the_frame_of_reference_comes_from_the_raw_files_alone(tmp_path: Path) -> None:
    write_dicom_series(tmp_path / "1", slices=2)
    write_dicom_series(tmp_path / "2", slices=2, number=2)
    write_dicom_series(tmp_path / "3", slices=2, FrameOfReferenceUID="1.2.3")
    (tmp_path / "scan.nii").write_bytes(b"")
    assert frame_of(tmp_path / "1") == frame_of(tmp_path / "2") != ""
    assert frame_of(tmp_path / "3") == "1.2.3"
    assert frame_of(tmp_path / "scan.nii") == ""


@pytest.mark.parametrize("room", ["bids", "dicom"])
def test_the_scans_of_a_case_use_the_fits_of_earlier_ones(tmp_path: Path, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str], bool]] = []
    grid = sitk.Image([2, 2, 2], sitk.sitkFloat32)

    def fake(volume: Volume, *, is_map: bool, heads: list[Head], name: str, frame: str, hidden: object) -> DefacedScan:
        asked.append((name, [head.name for head in heads], frame == frame_of(tmp_path / "raw" / "1")))
        mask = np.zeros(volume.voxels.shape, bool)
        quality = {"face_removed": 0.0} | ({"deface_fit_series": float(heads[0].name[-2:])} if heads else {})
        return DefacedScan(volume, (), quality, mask, None if is_map else Head(name, frame, grid, sitk.AffineTransform(3)))

    kinds = (Sequence.ADC, Sequence.FLAIR, Sequence.T1W)
    for number in (1, 2, 3):
        write_dicom_series(tmp_path / "raw" / str(number), number=number)
    case = CaseRecord(
        benchmark="mine", case_id="c0ffee", patient_id="beef00000001", stage="ingest",
        series=tuple(replace(series(number, kind), quality={}) for number, kind in enumerate(kinds, start=1)),
    )  # fmt: skip
    monkeypatch.setattr(f"neuralmedbench.deid.{'stage' if room == 'bids' else 'release.folder'}.deface", fake)
    cleaning = Cleaning(case=case, source=tmp_path, out=tmp_path / "out", rules=RULES)
    if room == "bids":
        written = stage.clean_scans(cleaning)
        assert [(one.series_id, one.quality.get("deface_fit_series")) for one in written] == [
            ("series-01", 3.0),
            ("series-02", 3.0),
            ("series-03", None),
        ]
    else:
        assert clean_dicom_case(cleaning) == {}
    assert asked == [("series-03", [], True), ("series-02", ["series-03"], True), ("series-01", ["series-03", "series-02"], True)]


def test_the_depth_below_the_skin_is_the_distance_to_the_air_outside() -> None:
    z, y, x = np.ogrid[-80:81:2, -80:81:2, -80:81:2]
    radius = np.sqrt(z**2 + y**2 + x**2)
    voxels = np.where((radius < 60) & (np.sqrt(z**2 + y**2 + (x - 20) ** 2) > 12), 100.0, 0.0).astype(np.float32)
    image = sitk.GetImageFromArray(voxels)
    image.SetSpacing([2.0] * 3)
    depth = sitk.GetArrayFromImage(skin_depth(image))
    assert abs(depth[40, 40, 40] - 60) <= 3, "a cavity is no air outside"
    assert np.abs(depth - np.clip(60 - radius, 0, None)).max() <= 4
    assert (depth[radius > 62] == 0).all()
    cut = sitk.GetArrayFromImage(skin_depth(image[:, :, :40]))
    assert abs(cut[-1, 40, 40] - 60) <= 3, "the edge of the field of view is no skin"


def test_a_face_is_carried_to_the_grid_of_the_scan_as_by_linear_interpolation() -> None:
    image = sitk.Image([31, 40, 9], sitk.sitkFloat32)
    image.SetSpacing([1.3, 0.9, 5.0])
    image.SetDirection(sitk.Euler3DTransform((0.0, 0.0, 0.0), 0.2, -0.1, 0.3).GetMatrix())
    image.SetOrigin([3.0, -7.0, 11.0])
    grid = grid_over(image, 2.0)
    level = np.random.default_rng(1).normal(size=grid.GetSize()[::-1]).astype(np.float32)
    seen = HeadView(grid, level, level, level, level, level)
    expected = sitk.GetArrayFromImage(sitk.Resample(image_like(level, grid), image, sitk.Transform(), sitk.sitkLinear, np.nan))
    inside = np.isfinite(expected)
    assert inside.mean() > 0.9
    assert np.array_equal(on_grid(level, seen, image).T[inside], expected[inside] <= 0)


@pytest.mark.skipif(not os.environ.get("NMB_REAL_SCANS"), reason="NMB_REAL_SCANS names no folder of real scans")
def test_a_real_slab_follows_the_other_scans_of_its_patient_and_loses_no_voxel_of_the_brain() -> None:
    first = deface(read_nifti(REAL / "tcga-fg-6692_T1w.nii.gz"), name="series-01")
    assert first.head is not None
    flair = deface(read_nifti(REAL / "tcga-fg-6692_FLAIR.nii.gz"), heads=[first.head], name="series-02")
    assert flair.quality["deface_fit_series"] == 1
    assert flair.quality["face_surface_left"] < 0.05
    after = read_nifti(REAL / "tcga-fg-6692_ce-gad_T1w.nii.gz")
    brain = read_nifti(REAL / "tcga-fg-6692_space-ceT1w_brainmask.nii.gz").voxels[:, :, :13] > 0
    slab = deface(Volume(after.voxels[:, :, :13], after.affine), heads=[first.head], name="series-03")
    assert slab.flags == ("face_fit_borrowed",)
    assert slab.quality["face_surface_left"] < 0.05
    assert brain.sum() > 100_000
    assert not slab.mask[brain].any()
