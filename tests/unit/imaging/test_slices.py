from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from PIL import Image
from scipy.ndimage import uniform_filter

from cut_slices import main as cut_slices
from fixtures.commands import settings
from fixtures.imaging import nine_scans, part_of
from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.digests import sha256_of, sha256_of_files
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.volumes import image_like, read_volume, write_volume
from neuralmedbench.imaging.choose import uniform_slices
from neuralmedbench.imaging.pictures import cut_plane, square, to_grey
from neuralmedbench.imaging.slices import cut_slices as slices_of
from neuralmedbench.imaging.windows import window_of
from neuralmedbench.records.case import CaseRecord, Plane, Sequence, Series, Slice, State

pytestmark = pytest.mark.slow

FOUND = os.environ.get("NMB_FOUND_SCANS", "")
SEQUENCES = ("T1w", "ceT1w", "PDw", "dwi")


def run(normalised: Path, out: Path, per_sequence: int = 6) -> CaseRecord:
    pictures = ["--out-pictures", str(out / "png"), "--out", str(out / "case.json")]
    arguments = ["--case", str(normalised), *settings(slices={"per_sequence": per_sequence}), *pictures]
    assert cut_slices(arguments) == 0
    return read_case(out / "case.json")


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return nine_scans(tmp_path_factory, worker_id)


@pytest.fixture(scope="module")
def folder(scans: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case with a lesion on the patient's left, in four sequences, normalised and as pictures."""
    folder = tmp_path_factory.mktemp("slices")
    part_of(scans, folder / "normalised", *SEQUENCES)
    run(folder / "normalised" / "case.json", folder / "cut")
    return folder


def pictures(folder: Path, sequence: str) -> list[tuple[Slice, np.ndarray]]:
    case = read_case(folder / "cut" / "case.json")
    return [(entry, np.asarray(Image.open(folder / "cut" / entry.path))) for entry in case.slices if entry.sequence == sequence]


def lesion_centre(grey: np.ndarray, sequence: str) -> np.ndarray:
    """Return row and column of the brightest blob (the darkest in T1)."""
    middle = slice(grey.shape[0] // 4, -grey.shape[0] // 4)
    value = grey[middle, middle].astype(float)
    value = np.where(value < 12 if sequence == "T1w" else value > 235, 255.0, 0.0)
    blurred = uniform_filter(value, size=7)
    return np.array(np.unravel_index(blurred.argmax(), blurred.shape)) + grey.shape[0] // 4


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_lesion_on_the_patients_left_is_on_the_right_of_every_picture(folder: Path, sequence: str) -> None:
    """Converters store 2-D and 3-D series with opposite x: a mirrored brain is a wrong diagnosis."""
    entry, grey = min(pictures(folder, sequence), key=lambda pair: abs(pair[0].position_mm - 22.0))
    assert abs(entry.position_mm - 22.0) < 11
    row, column = lesion_centre(grey, sequence)
    assert (column - grey.shape[1] / 2) * entry.mm_per_px == pytest.approx(38, abs=6)
    assert (row - grey.shape[0] / 2) * entry.mm_per_px == pytest.approx(10.0 - 20.0, abs=8), "rows run from front to back"


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_all_sequences_show_the_same_places(folder: Path, sequence: str) -> None:
    reference = [entry.position_mm for entry, _ in pictures(folder, "T1w")]
    shown = pictures(folder, sequence)
    assert len(shown) == 6
    for entry, wanted in zip((entry for entry, _ in shown), reference, strict=True):
        assert abs(entry.position_mm - wanted) <= 2.6, "at most half a slice away"
    positions = [entry.position_mm for entry, _ in shown]
    assert positions == sorted(positions)


def test_a_picture_is_a_native_slice_seen_through_one_window(folder: Path) -> None:
    case = read_case(folder / "normalised" / "case.json")
    series = next(entry for entry in case.series if entry.sequence is Sequence.PDW)
    voxels = sitk.GetArrayFromImage(sitk.ReadImage((folder / "normalised" / series.path).as_posix())).astype(np.float32)
    shown = pictures(folder, "PDw")
    assert len({entry.window for entry, _ in shown}) == 1
    for entry, grey in shown:
        native = to_grey(voxels[entry.index], entry.window)
        inner = grey[40:-40, 40:-40]
        windows = np.lib.stride_tricks.sliding_window_view(native, inner.shape)
        assert (windows == inner).all(axis=(2, 3)).any()
        assert entry.mm_per_px == pytest.approx(2.0)
        assert grey.shape == (115, 115)


def test_every_picture_leads_back_to_the_deidentified_volume(scans: Path, folder: Path) -> None:
    source = read_case(scans / "sub-case01" / "case.json")
    volumes = {entry.sequence: source.files[entry.path] for entry in source.series}
    case = read_case(folder / "cut" / "case.json")
    assert len({entry.image_id for entry in case.slices}) == len(case.slices) == 24
    for entry in case.slices:
        assert entry.volume_sha256 == volumes[entry.sequence]
        assert entry.sha256 == sha256_of(folder / "cut" / entry.path)
        assert entry.path == f"png/{entry.image_id}.png"
        assert not entry.oracle
        assert Image.open(folder / "cut" / entry.path).info == {}


def test_pictures_are_the_same_twice(folder: Path, tmp_path: Path) -> None:
    run(folder / "normalised" / "case.json", tmp_path)
    assert sha256_of_files(tmp_path) == sha256_of_files(folder / "cut")


def test_a_case_with_too_few_slices_is_quarantined_and_keeps_no_picture(folder: Path, tmp_path: Path) -> None:
    run(folder / "normalised" / "case.json", tmp_path)
    record = run(folder / "normalised" / "case.json", tmp_path, per_sequence=64)
    assert record.state is State.QUARANTINED
    assert record.quarantined_by == "slices"
    assert "64 were asked for" in record.reason
    assert list((tmp_path / "png").iterdir()) == []


def test_a_sagittal_scan_is_shown_in_its_own_plane_beside_axial_ones(scans: Path, tmp_path: Path) -> None:
    part_of(scans, tmp_path / "normalised", "T1w", "T2w")
    record = run(tmp_path / "normalised" / "case.json", tmp_path / "cut", per_sequence=30)
    planes = {entry.sequence: entry.plane for entry in record.slices}
    assert planes == {Sequence.T1W: Plane.AXIAL, Sequence.T2W: Plane.SAGITTAL}
    sagittal = [entry for entry in record.slices if entry.plane is Plane.SAGITTAL]
    assert len(record.slices) - len(sagittal) == 30
    assert 15 < len(sagittal) < 30, "a scan with fewer slices shows what it has"
    assert all(entry.image_id.startswith("t2w-x") for entry in sagittal)
    middle = np.asarray(Image.open(tmp_path / "cut" / min(sagittal, key=lambda entry: abs(entry.position_mm)).path)).astype(float)
    scalp = np.argwhere(middle > 250).mean(axis=0)
    assert scalp[0] < len(middle) / 2, "the phantom's scalp is its upper half: row 0 is superior"


@pytest.mark.parametrize("plane", list(Plane))
def test_a_slice_is_turned_as_a_reader_expects(plane: Plane) -> None:
    z, y, x = np.indices((3, 4, 5)).astype(np.float32)
    rows = {Plane.AXIAL: y, Plane.CORONAL: -z, Plane.SAGITTAL: -z}[plane]
    columns = {Plane.AXIAL: x, Plane.CORONAL: x, Plane.SAGITTAL: y}[plane]
    assert (np.diff(cut_plane(rows, plane, 1), axis=0) > 0).all()
    assert (np.diff(cut_plane(columns, plane, 1), axis=1) > 0).all()


def test_a_square_puts_the_centre_in_the_middle_and_keeps_true_proportions() -> None:
    cut = np.zeros((40, 100), dtype=np.float32)
    cut[10, 70] = 1000
    picture, mm_per_px = square(cut, (10.0, 70.0), (3.0, 1.0), side_mm=61.0, fill=-5.0)
    assert mm_per_px == 1.0
    assert picture.shape == (61, 61)
    assert np.unravel_index(picture.argmax(), picture.shape) == (30, 30)
    assert picture[30 - 2, 30] == pytest.approx(1000 / 3)
    assert square(cut, (10.0, 70.0), (2.0, 2.0), side_mm=200.0, fill=-5.0)[0][0, 0] == -5.0


def test_a_square_far_outside_the_slice_is_empty() -> None:
    picture, _ = square(np.ones((10, 10), dtype=np.float32), (500.0, 5.0), (1.0, 1.0), side_mm=20.0, fill=0.0)
    assert not picture.any()


def test_too_few_usable_slices_say_what_to_lower() -> None:
    brain = np.zeros((9, 4, 4), dtype=bool)
    brain[3:5] = True
    with pytest.raises(DataError, match=r"^2 slices show at least 25% .* 3 were asked for"):
        uniform_slices(brain, 3)


def outline_everything(source: Path, target: Path) -> Path:
    """Copy a normalised case, and let the brain mask of each series cover all of its grid but the outermost column."""
    shutil.copytree(source, target)
    for path in target.rglob("*_brain.nii"):
        mask = sitk.ReadImage(path.as_posix())
        wrong = np.ones(mask.GetSize()[::-1], np.uint8)
        wrong[:, :, 0] = 0
        sitk.WriteImage(image_like(wrong, mask), path.as_posix())
    return target


def blacken(folder: Path, number: str, part: float) -> None:
    """Empty the lower part of a scan, but for two dots in each slice."""
    path = folder / "volumes" / f"series-{number}.nii"
    scan = sitk.ReadImage(path.as_posix())
    voxels = sitk.GetArrayFromImage(scan)
    below, bright = voxels[: round(part * len(voxels))], voxels.max()
    below[:] = voxels.min()
    below[:, 40:43, 40:43] = below[:, 60:63, 50:53] = bright
    sitk.WriteImage(image_like(voxels, scan), path.as_posix())


def test_no_black_picture_is_chosen_whatever_the_outline_of_the_brain_says(folder: Path, tmp_path: Path) -> None:
    wrong = outline_everything(folder / "normalised", tmp_path / "normalised")
    blacken(wrong, "01", 0.5)
    case = run(wrong / "case.json", tmp_path / "cut")
    shown = [np.asarray(Image.open(tmp_path / "cut" / entry.path)) for entry in case.slices]
    assert len(shown) >= 6
    assert all((grey > 12).mean() > 0.02 for grey in shown)


def test_a_series_that_shows_nothing_is_set_aside_and_a_reference_quarantines_its_case(folder: Path, tmp_path: Path) -> None:
    second = read_case(folder / "normalised" / "case.json").series[1]
    wrong = outline_everything(folder / "normalised", tmp_path / "one")
    blacken(wrong, second.series_id.removeprefix("series-"), 1.0)
    case = run(wrong / "case.json", tmp_path / "cut")
    assert case.state is State.OK
    assert case.set_aside == {second.series_id: f"{second.sequence.value}: none of its slices at the chosen positions shows tissue"}
    assert second.sequence not in {entry.sequence for entry in case.slices}
    blacken(wrong, "01", 1.0)
    case = run(wrong / "case.json", tmp_path / "none")
    assert case.state is State.QUARANTINED
    assert "and are not black" in case.reason


@pytest.mark.skipif(not FOUND, reason="NMB_FOUND_SCANS names no folder of scans that failed")
def test_no_picture_of_an_infants_brain_is_black(tmp_path: Path) -> None:
    image = read_volume(Path(FOUND, "infant-brain", "sub-0008_T1w.nii.gz"))
    voxels = sitk.GetArrayFromImage(image)
    volumes = tmp_path / "normalised" / "volumes"
    volumes.mkdir(parents=True)
    write_volume(volumes / "series-01.nii", image)
    wrong = np.zeros(voxels.shape, np.uint8)
    wrong[40:260, 60:240, 60:240] = 1
    write_volume(volumes / "series-01_brain.nii", image_like(wrong, image))
    write_json(volumes / "series-01_rigid.json", np.eye(4).tolist())
    window = window_of(Sequence.T1W, voxels, wrong > 0)
    series = Series(
        series_id="series-01", path="volumes/series-01.nii", modality="MR", sequence=Sequence.T1W, window=window, volume_sha256="a" * 64
    )
    case = CaseRecord(benchmark="mine", case_id="c0ffee", patient_id="beef00000001", stage="normalise", series=(series,))
    slices = slices_of(
        case, tmp_path / "normalised", tmp_path / "png", SlicesConfig(policy="uniform", per_sequence=8, field_of_view_mm=230.0)
    )
    assert len(slices) == 8
    assert all((np.asarray(Image.open(tmp_path / entry.path)) > 12).mean() > 0.02 for entry in slices)
