"""Windows: black and white, their units, and the contrast of a small lesion in the picture."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import SimpleITK as sitk
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from fixtures.imaging import CE_GAIN, CE_OFFSET, LESION_MM, Shot, brain_of, nine_scans, part_of, scan, write_shots
from neuralmedbench.config.imaging import ImagingConfig, SlicesConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.volumes import image_like, read_volume
from neuralmedbench.imaging import normalise as stage
from neuralmedbench.imaging.pictures import resize, square, to_grey
from neuralmedbench.imaging.slices import cut_slices
from neuralmedbench.imaging.windows import CT_WINDOWS, match_units, share_window, shared_window, window_of
from neuralmedbench.records.case import CaseRecord, Sequence, Series

FOUND = os.environ.get("NMB_FOUND_SCANS", "")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, CaseRecord]:
    folder = tmp_path_factory.mktemp("windows") / "normalised"
    return folder, part_of(nine_scans(tmp_path_factory, worker_id), folder, "T1w", "ceT1w", "ADC", "dwi")


@pytest.fixture
def head() -> tuple[np.ndarray, np.ndarray]:
    """A brain with values from 100 to 200, and scalp fat of 5000 beside it."""
    voxels = np.full((4, 20, 20), 100.0, dtype=np.float32)
    voxels[:, :10] += np.linspace(0, 100, 20, dtype=np.float32)
    voxels[:, 15:] = 5000
    brain = np.zeros(voxels.shape, dtype=bool)
    brain[:, :10] = True
    return voxels, brain


def test_a_window_is_of_the_brain_and_not_of_the_scalp(head: tuple[np.ndarray, np.ndarray]) -> None:
    voxels, brain = head
    assert window_of(Sequence.T1W, voxels, brain) == (100.0, 200.0)
    with pytest.raises(DataError, match="no brain"):
        window_of(Sequence.T1W, voxels, brain & False)
    with pytest.raises(DataError, match="one grey value"):
        window_of(Sequence.T1W, np.ones_like(voxels), brain)


def test_ct_has_fixed_windows_in_hounsfield_units(head: tuple[np.ndarray, np.ndarray]) -> None:
    assert window_of(Sequence.CT, *head) == (0.0, 80.0) == CT_WINDOWS["brain"], "centre 40, width 80"
    assert window_of(Sequence.CT, head[0] * 3, head[1]) == (0.0, 80.0)
    assert CT_WINDOWS["blood"] == (-20.0, 180.0), "centre 80, width 200"


def test_a_bright_infarct_does_not_turn_the_brain_of_a_diffusion_picture_black(head: tuple[np.ndarray, np.ndarray]) -> None:
    voxels, brain = head
    voxels[0, :4, :16] = 4000
    low, high = window_of(Sequence.DWI, voxels, brain)
    assert (low, high) == (0.0, pytest.approx(2.5 * np.median(voxels[brain]), rel=1e-3))


@pytest.mark.parametrize(("unit", "white"), [(1e-6, 2000.0), (1e-3, 2.0), (1.0, 0.002)])
def test_adc_has_one_fixed_window_whatever_its_unit(unit: float, white: float) -> None:
    values = (np.random.default_rng(1).normal(800, 150, (4, 10, 10)) * 1e-6 / unit).astype(np.float32)
    assert window_of(Sequence.ADC, values, np.ones(values.shape, dtype=bool)) == (0.0, pytest.approx(white))
    infarct = values / 2
    assert window_of(Sequence.ADC, np.concatenate([values, values, infarct]), np.ones((12, 10, 10), dtype=bool))[1] == pytest.approx(white)


def test_an_adc_map_without_a_known_unit_is_refused() -> None:
    values = np.full((2, 5, 5), 40.0, dtype=np.float32)
    with pytest.raises(DataError, match="median of 40, which fits no unit of diffusion"):
        window_of(Sequence.ADC, values, np.ones(values.shape, dtype=bool))


def test_the_units_of_two_scans_are_matched_although_a_fifth_of_the_brain_enhances() -> None:
    random = np.random.default_rng(3)
    t1 = random.choice([90.0, 260.0, 380.0], 20_000, p=[0.15, 0.45, 0.4]) + random.normal(0, 15, 20_000)
    after = 1.6 * t1 + 25 + random.normal(0, 15, t1.size)
    after[:4000] += random.uniform(100, 900, 4000)
    match = match_units(t1.astype(np.float32), after.astype(np.float32))
    assert match is not None
    assert match.gain == pytest.approx(1.6, rel=0.03)
    assert pytest.approx(match.gain * 300 + match.offset, rel=0.01) == 1.6 * 300 + 25
    assert match_units(t1[:50].astype(np.float32), after[:50].astype(np.float32)) is None
    unlike = match_units(t1.astype(np.float32), (600 - t1).astype(np.float32))
    assert unlike is None or unlike.likeness < 0.5


def test_a_shared_window_reaches_from_the_darkest_black_to_the_brightest_white() -> None:
    windows = shared_window((100.0, 500.0), {"series-02": (185.0, 1625.0)}, {"series-02": (1.6, 25.0)})
    assert windows == {"t1": (100.0, 1000.0), "series-02": (185.0, 1625.0)}


def test_what_does_not_enhance_looks_alike_before_and_after_contrast_agent(case: tuple[Path, CaseRecord]) -> None:
    folder, record = case
    t1, after = (next(series for series in record.series if series.sequence == name) for name in ("T1w", "ceT1w"))
    assert "shared_window" in t1.flags
    assert "shared_window" in after.flags
    assert after.quality["t1_gain"] * 300 + after.quality["t1_offset"] == pytest.approx(CE_GAIN * 300 + CE_OFFSET, rel=0.05)
    grey = {}
    for series in (t1, after):
        copy = read_volume(folder / "volumes" / f"{series.series_id}_space-ref.nii")
        grey[series.sequence] = to_grey(sitk.GetArrayFromImage(copy), series.window).astype(int)
    mask = read_volume(folder / "volumes" / f"{t1.series_id}_brain.nii")
    inside = sitk.GetArrayFromImage(sitk.Resample(mask, copy, sitk.Transform(), sitk.sitkNearestNeighbor)) > 0
    difference = grey["ceT1w"] - grey["T1w"]
    assert np.abs(np.median(difference[inside])) < 6
    x, y, z = copy.TransformPhysicalPointToIndex(LESION_MM)
    assert difference[z, y, x] > 100, "and what enhances is brighter"


def pair_through_windows(t1: np.ndarray, after: np.ndarray, brain: np.ndarray) -> tuple[list[Series], list[np.ndarray]]:
    """Return the two scans with their windows, and their greys."""
    series = []
    with TemporaryDirectory() as folder:
        for number, (sequence, voxels) in enumerate({Sequence.T1W: t1, Sequence.CE_T1W: after}.items(), start=1):
            name = f"series-{number:02d}"
            stage.write_volume(Path(folder, f"{name}_space-ref.nii"), sitk.GetImageFromArray(voxels))
            window = window_of(sequence, voxels, brain)
            series.append(Series(series_id=name, path=f"{name}.nii", modality="MR", sequence=sequence, window=window))
        done = share_window(series, Path(folder), sitk.GetImageFromArray(brain.astype(np.uint8)))
    greys = [to_grey(voxels, entry.window).astype(int) for voxels, entry in zip((t1, after), done, strict=True)]
    return done, greys


def shown_well(grey: np.ndarray, brain: np.ndarray) -> bool:
    """Air is black, and the brain has at least half of the grey scale."""
    low, high = np.percentile(grey[brain], (1, 99))
    return bool(np.percentile(grey[~brain], 5) <= 10 and high - low >= 127)


@settings(max_examples=25)
@given(gain=st.floats(0.3, 3.0), offset=st.floats(-500, 500), stripped=st.booleans())
def test_air_is_black_and_the_brain_has_half_of_the_greys_whatever_the_units_of_a_pair(gain: float, offset: float, stripped: bool) -> None:
    shot = Shot("T1w", "3d")
    image = scan(shot)
    brain = brain_of(shot, image) > 0
    t1 = np.where(brain | (not stripped), sitk.GetArrayFromImage(image), 0).astype(np.float32)
    enhanced = brain & (np.linalg.norm(np.indices(brain.shape) - np.argwhere(brain).mean(axis=0)[:, None, None, None], axis=0) < 4)
    after = (gain * (t1 + 350 * enhanced) + offset).astype(np.float32)
    _, greys = pair_through_windows(t1, after, brain)
    assert shown_well(greys[0], brain)
    assert shown_well(greys[1], brain)
    assert np.median(greys[1][enhanced]) > np.median(greys[1][brain]) + 60


def test_a_pair_of_equal_units_has_the_window_from_the_darkest_black_to_the_brightest_white() -> None:
    shot = Shot("T1w", "3d")
    brain, t1 = brain_of(shot, scan(shot)) > 0, sitk.GetArrayFromImage(scan(shot))
    done, _ = pair_through_windows(t1, t1 + 1, brain)
    assert [entry.flags for entry in done] == [("shared_window",)] * 2
    alone = [window_of(Sequence.T1W, t1, brain), window_of(Sequence.CE_T1W, t1 + 1, brain)]
    assert done[0].window == pytest.approx((min(alone[0][0], alone[1][0] - 1), max(alone[0][1], alone[1][1] - 1)), abs=0.5)


@pytest.mark.skipif(not FOUND, reason="NMB_FOUND_SCANS names no folder of scans that failed")
def test_a_pair_in_which_one_window_would_show_grey_air_keeps_two() -> None:
    folder = Path(FOUND, "window-of-a-pair")
    t1, after = (sitk.GetArrayFromImage(read_volume(folder / f"pair_{name}.nii.gz")) for name in ("T1w", "ce-gad_T1w"))
    brain = t1 > 0
    done, greys = pair_through_windows(t1, after, brain)
    assert [entry.flags for entry in done] == [(), ("t1_in_other_units",)]
    assert shown_well(greys[0], brain)
    assert shown_well(greys[1], brain)


def test_only_sequences_with_shading_lose_their_bias_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Diffusion and susceptibility scans keep their values: a bias correction would remove part of the lesion."""
    seen = []
    monkeypatch.setattr(stage, "correct_bias", lambda image, *, grid_mm: seen.append(image.GetSize()) or image)
    sequences = [*["T1w", "ceT1w", "T2w", "FLAIR", "PDw"], *["dwi", "ADC", "SWI", "T2starw", "CT", "ceCT"]]
    settings = ImagingConfig(reference_order=("T1w",), bias_grid_mm=16.0, registration_grid_mm=3.0)
    write_shots(tmp_path, [Shot("T1w", "2d")])
    (path,) = tmp_path.rglob("*.nii.gz")
    for sequence in sequences:
        series = stage.Series(series_id="series-01", path=path.name, modality="MR", sequence=Sequence(sequence))
        before = len(seen)
        stage._bias_corrected(series, path.parent, settings)
        assert (len(seen) > before) is (sequence in sequences[:5]), sequence


def test_the_mask_sets_the_window_and_never_blanks_the_display(case: tuple[Path, CaseRecord], tmp_path: Path) -> None:
    folder, record = case
    policy = SlicesConfig(policy="uniform", per_sequence=3, field_of_view_mm=230.0)
    slices = cut_slices(record, folder, tmp_path / "png", policy)
    for entry in slices:
        series = next(series for series in record.series if series.sequence is entry.sequence)
        brain = sitk.GetArrayFromImage(sitk.ReadImage((folder / "volumes" / f"{series.series_id}_brain.nii").as_posix()))[entry.index] > 0
        native = sitk.GetArrayFromImage(read_volume(folder / series.path))[entry.index]
        shown = np.asarray(Image.open(tmp_path / entry.path))
        outside = to_grey(native, entry.window)[~brain]
        assert entry.sequence is Sequence.ADC or (outside > 60).sum() > 500, "the scalp is there (of the phantom's ADC there is none)"
        whole = (shown > 60).sum()
        assert whole == pytest.approx((to_grey(native, entry.window) > 60).sum(), rel=0.02), "all of the slice is in the picture"


TISSUE = {Sequence.FLAIR: (300.0, 370.0, 90.0), Sequence.T2W: (300.0, 400.0, 800.0), Sequence.CE_T1W: (300.0, 230.0, 90.0)}
"""White matter, grey matter and fluid, as in the phantoms of the demo."""


@pytest.mark.parametrize("sent_px", [0, 224, 336, 512, 1024])
@pytest.mark.parametrize(("sequence", "of_white"), [(Sequence.FLAIR, 1.35), (Sequence.T2W, 1.45), (Sequence.CE_T1W, 1.5)])
def test_a_plaque_of_8_pixels_is_still_seen_after_display(sequence: Sequence, of_white: float, sent_px: int) -> None:
    """Eight native pixels of 0.9 mm in white matter: grey difference and contrast-to-noise at the sent size."""
    rows, columns = np.indices((256, 256)) - 128
    radius = np.hypot(rows / 80, columns / 65)
    brain = np.broadcast_to(radius < 1, (3, 256, 256))
    ventricles = (np.abs(np.abs(columns) - 10) < 5) & (np.abs(rows) < 25)
    white, grey_matter, fluid = TISSUE[sequence]
    ideal = np.select([radius > 1.25, radius > 1.12, radius > 1, ventricles, radius > 0.75], [0, 900, 20, fluid, grey_matter], white)
    plaque = np.zeros(brain.shape, dtype=bool)
    plaque[1, 126:128, 160:164] = True
    voxels = np.where(plaque, of_white * white, ideal) + np.random.default_rng(5).normal(0, 0.05 * white, brain.shape)
    window = window_of(sequence, voxels.astype(np.float32), brain)
    picture, mm_per_px = square(voxels[1].astype(np.float32), (128.0, 128.0), (0.9, 0.9), side_mm=230.0, fill=0.0)
    where, _ = square(plaque[1].astype(np.float32), (128.0, 128.0), (0.9, 0.9), side_mm=230.0, fill=0.0)
    if sent_px:
        mm_per_px *= picture.shape[0] / sent_px
        picture, where = resize(picture, sent_px), resize(where, sent_px)
    grey = to_grey(picture, window).astype(float)
    middle = np.argwhere(where >= 0.99 * where.max()).mean(axis=0)
    far = np.hypot(*(np.indices(grey.shape) - middle[:, None, None])) * mm_per_px
    inside, around = grey[where > 0.6 * where.max()], grey[(far > 4) & (far < 12)]
    assert inside.mean() - around.mean() > 40, "grey difference"
    assert (inside.mean() - around.mean()) / around.std() > 4, "contrast to noise (Rose: 3 to 5 is seen)"
    assert (around < 240).mean() > 0.95, "white matter is not white"


def test_a_volume_of_small_numbers_keeps_them(tmp_path: Path) -> None:
    """An ADC map in mm2/s must not be rounded to integers."""
    scan = image_like(np.random.default_rng(2).normal(8e-4, 1e-4, (4, 5, 6)).astype(np.float32), sitk.Image((6, 5, 4), sitk.sitkFloat32))
    stage.write_volume(tmp_path / "adc.nii", scan)
    assert np.allclose(sitk.GetArrayFromImage(read_volume(tmp_path / "adc.nii")), sitk.GetArrayFromImage(scan), rtol=1e-6)
