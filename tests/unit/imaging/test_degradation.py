"""Degraded pictures: formulas against their published properties, levels on real slices, determinism, and what is not part of the scan."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from neuralmedbench.errors import ConfigError
from neuralmedbench.imaging.alter import entropy_focus, psnr, quality_numbers, ssim
from neuralmedbench.imaging.degradation import (
    DEGRADATIONS,
    GHOSTS,
    bias_field,
    blur,
    degrade,
    ghosting,
    gibbs,
    rician_noise,
    seed_of,
    streaks,
    undersampling,
)
from neuralmedbench.imaging.pictures import letterbox, montage, tile_boxes, to_grey
from neuralmedbench.imaging.side_letters import mark_sides
from neuralmedbench.imaging.windows import CT_WINDOWS
from neuralmedbench.records.case import Plane, Sequence

SCANS, VENDORS = (Path(os.environ.get(name, "")) for name in ("NMB_REAL_SCANS", "NMB_VENDOR_SCANS"))
SLICES = {
    "ceT1w": SCANS / "nifti/tcga-fg-6692/tcga-fg-6692_ce-gad_T1w.nii.gz",
    "FLAIR": SCANS / "nifti/tcga-fg-6692/tcga-fg-6692_FLAIR.nii.gz",
    "T2w": SCANS / "nifti/tcga-fg-6692/tcga-fg-6692_T2w.nii.gz",
    "PDw": SCANS / "nifti/other/niivue_register_T2w.nii.gz",
    "CT": VENDORS / "ge_ct_tilted_two_blocks/20.dcm",
    "ceCT": VENDORS / "ge_ct_tilted_two_blocks/08.dcm",
}
"""Real slices: the middle one of a file. No scan with contrast agent is among the CTs; its name stands for a slice at the skull base."""


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def phantom(rows: int = 120, columns: int = 100) -> np.ndarray:
    """A head of a bright rim, grey inside, and a bright and a dark spot."""
    down, right = np.mgrid[0:rows, 0:columns]
    radius = np.hypot((down - rows / 2) / (rows * 0.42), (right - columns / 2) / (columns * 0.4))
    picture = np.where(radius < 1, 230, 0)
    picture[radius < 0.9] = 110
    picture[rows // 3 : rows // 3 + 6, columns // 3 : columns // 3 + 6] = 190
    picture[rows // 2 : rows // 2 + 12, columns // 2 : columns // 2 + 9] = 40
    return picture.astype(np.uint8)


def real_slice(name: str) -> np.ndarray:
    """Return the middle slice of a real scan as a grey picture."""
    if not SLICES[name].is_file():
        pytest.skip(f"{'NMB_VENDOR_SCANS' if 'CT' in name else 'NMB_REAL_SCANS'} names no folder of real scans")
    voxels = sitk.GetArrayFromImage(sitk.ReadImage(str(SLICES[name]))).astype(np.float32)
    cut = voxels[len(voxels) // 2]
    return to_grey(cut, CT_WINDOWS["brain"] if "CT" in name else (0.0, float(np.percentile(voxels[voxels > voxels.mean()], 99.5))))


@pytest.mark.parametrize("operator", DEGRADATIONS)
def test_level_0_is_the_picture_byte_for_byte_and_others_keep_its_shape(operator: str) -> None:
    picture = phantom()
    assert degrade(picture, operator, 0, seed=1).tobytes() == picture.tobytes()
    for level in (1, 2):
        degraded = degrade(picture, operator, level, seed=1)
        assert degraded.shape == picture.shape
        assert degraded.dtype == np.uint8
        assert not np.array_equal(degraded, picture)


@pytest.mark.parametrize("name", SLICES)
def test_each_level_of_a_real_slice_is_worse_than_the_one_before(name: str) -> None:
    picture = real_slice(name)
    for operator, known in DEGRADATIONS.items():
        if not known.applies_to(name):
            continue
        seed = seed_of(name, operator)
        mild, severe = (quality_numbers(picture, degrade(picture, operator, level, seed=seed)) for level in (1, 2))
        assert 1 > mild["ssim"] > severe["ssim"], operator
        assert mild["psnr_db"] > severe["psnr_db"], operator
        # severe, but the head is still there: half of the error of a black picture, and structure in common
        black = psnr(picture, np.zeros_like(picture))
        assert black is not None
        assert severe["psnr_db"] > black + 3, operator
        assert severe["ssim"] > 0.15, operator
        if operator not in {"bias_field", "jpeg"}:  # a field moves light, and JPEG saves it; the others spread it
            assert mild["entropy_focus_original"] < mild["entropy_focus"] < severe["entropy_focus"], operator


@settings(max_examples=25)
@given(
    operator=st.sampled_from(sorted(DEGRADATIONS)),
    rows=st.integers(16, 70),
    columns=st.integers(16, 70),
    seed=st.integers(0, 2**64 - 1),
    grey=st.integers(0, 255),
)
def test_any_picture_can_be_degraded(operator: str, rows: int, columns: int, seed: int, grey: int) -> None:
    for picture in (
        np.full((rows, columns), grey, np.uint8),
        np.random.default_rng(seed).integers(0, 256, (rows, columns), dtype=np.uint8),
    ):
        for level in (1, 2):
            degraded = degrade(picture, operator, level, seed=seed)
            assert degraded.shape == picture.shape
            assert np.array_equal(degraded, degrade(picture, operator, level, seed=seed))


DIGESTS = """
import hashlib, sys
import numpy as np
from neuralmedbench.imaging.degradation import DEGRADATIONS, degrade, seed_of
picture = np.load(sys.argv[1])
for operator in DEGRADATIONS:
    for level in (1, 2):
        print(operator, level, hashlib.sha256(degrade(picture, operator, level, seed=seed_of("a", operator)).tobytes()).hexdigest()[:12])
"""
FROZEN = {
    "bias_field 1": "2543737c2f91",
    "bias_field 2": "70c2a1600b83",
    "gibbs 1": "e8b788fd8412",
    "gibbs 2": "6730015e7cb5",
    "ghosting 1": "b7003b6cb21f",
    "ghosting 2": "3c33c87b2e9b",
    "undersampling 1": "c526bda10d1c",
    "undersampling 2": "57ad38bb597f",
    "rician_noise 1": "aff5acd0d3ab",
    "rician_noise 2": "2cedd3f38c81",
    "blur 1": "ffe2de1d2699",
    "blur 2": "d441188a48cf",
    "streaks 1": "44c479a7dfc6",
    "streaks 2": "eaccf531b041",
    "jpeg 1": "4420345eb79e",
    "jpeg 2": "9b1d43ffe19f",
}
"""Bytes of every machine; another version of numpy or Pillow may change them, which is another picture for the models."""


@pytest.mark.slow
def test_every_process_makes_the_same_bytes(tmp_path: Path) -> None:
    np.save(tmp_path / "picture.npy", phantom(200, 180))
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS, str(tmp_path / "picture.npy")],
            env=os.environ | {"OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        for threads in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in runs[0]} == FROZEN


def test_a_ghost_is_the_picture_shifted_by_a_part_of_its_width_and_as_weak_as_the_formula_says() -> None:
    picture = np.zeros((8, 64))
    picture[4, 10] = 200.0
    ghosts = ghosting(picture, 0.8, rng())
    # the middle line of k-space is not weakened: it adds strength / columns everywhere
    middle = 0.8 * 200 / 64
    for number in range(1, GHOSTS):
        assert ghosts[4, 10 + number * 64 // GHOSTS] == pytest.approx(0.8 * 200 / GHOSTS - middle)
    assert ghosts[4, 10] == pytest.approx(200 - 0.8 * 200 / GHOSTS + middle)
    assert ghosts[4, 12] == pytest.approx(middle)
    assert not ghosts[3].any()


def test_an_edge_overshoots_by_9_percent_of_its_height_when_k_space_is_cut_off() -> None:
    # the constant of Wilbraham and Gibbs, 0.0895 of the jump, for any number of lines
    picture = np.zeros((512, 512))
    picture[:, 128:384] = 100.0
    for lines in (32, 64, 128):
        row = gibbs(picture, lines, rng())[256]
        assert row.max() == pytest.approx(100 * 1.0895, abs=0.6)
        # the ringing is widest for the fewest lines: the first minimum is a line's width away from the edge
        assert int(row[128:256].argmax()) == pytest.approx(512 / lines, abs=1)


def test_noise_in_a_magnitude_picture_has_a_rician_distribution() -> None:
    sigma = 0.09 * 255
    for grey in (0.0, 20.0, 120.0):
        noisy = rician_noise(np.full((80, 80), grey), 0.09, rng()).ravel()
        assert stats.kstest(noisy, stats.rice(grey / sigma, scale=sigma).cdf).pvalue > 0.01


def test_a_bias_field_is_smooth_and_stays_in_its_range_in_the_head() -> None:
    flat = np.full((90, 70), 100.0)
    field = bias_field(flat, 0.4, rng()) / flat
    assert field.min() == pytest.approx(0.6)
    assert field.max() == pytest.approx(1.4)
    # a polynomial of order 3: its fourth differences are 0
    assert np.abs(np.diff(field, 4, axis=0)).max() < 1e-9
    assert np.abs(np.diff(field, 4, axis=1)).max() < 1e-9


@pytest.mark.parametrize(("acceleration", "columns"), [(2, 256), (4, 256), (4, 200), (8, 256)])
def test_undersampling_measures_its_share_of_lines_and_always_the_middle(acceleration: float, columns: int) -> None:
    shares = []
    for seed in range(20):
        spike = np.zeros((1, columns))
        spike[0, 0] = 1.0
        # the energy of the response to a spike is the share of measured lines (Parseval)
        shares.append((undersampling(spike, acceleration, np.random.default_rng(seed)) ** 2).sum())
        slow = 100 + 20 * np.cos(2 * np.pi * 3 * np.arange(columns) / columns)[None, :]
        assert np.allclose(undersampling(slow, acceleration, np.random.default_rng(seed)), slow)
    assert np.mean(shares) == pytest.approx(1 / acceleration, abs=0.03)


def test_a_higher_acceleration_measures_some_of_the_lines_of_a_lower_one() -> None:
    spike = np.zeros((1, 256))
    spike[0, 0] = 1.0
    for seed in range(10):
        line = np.cos(2 * np.pi * np.arange(256)[:, None] * np.arange(256) / 256)  # one frequency a row
        measured = [undersampling(line, acceleration, np.random.default_rng(seed)).max(axis=1) > 0.1 for acceleration in (2, 4)]
        assert not (measured[1] & ~measured[0]).any()
        assert measured[1].sum() < measured[0].sum()


def test_blur_is_the_gaussian_filter_of_scipy() -> None:
    picture = phantom().astype(np.float64)
    assert np.allclose(blur(picture, 2.5 / 120, rng()), ndimage.gaussian_filter(picture, 2.5, mode="nearest", truncate=4.0))


def test_many_views_reconstruct_a_disc_and_few_make_streaks_that_run_through_the_whole_picture() -> None:
    down, right = np.mgrid[0:101, 0:121] - np.array([50, 60])[:, None, None]
    disc = ndimage.gaussian_filter(np.where(np.hypot(down + 8, right - 12) < 25, 200.0, 0.0), 1.0)
    whole = streaks(disc, 360, rng())
    assert np.sqrt(np.mean((whole - disc) ** 2)) < 4
    assert whole[42, 72] == pytest.approx(200, rel=0.01)  # the middle of the disc: neither turned nor mirrored
    few = streaks(disc, 20, rng())
    outside = np.hypot(down + 8, right - 12) > 30
    assert few[outside].std() > 10 * whole[outside].std()
    assert few.mean() == pytest.approx(disc.mean(), rel=0.03)


@pytest.mark.parametrize(("rows", "columns", "views"), [(9, 14, 7), (12, 8, 10)])
def test_streaks_are_the_sum_over_views_of_what_is_filtered_and_projected_back(rows: int, columns: int, views: int) -> None:
    """View by view: pixels of 64 points each, and the filter of equation 61 of Kak and Slaney."""
    picture = ndimage.gaussian_filter(rng().uniform(0, 255, (rows, columns)), 1.0)
    n = np.arange(-30, 31)
    ramp = np.where(n == 0, 0.25, np.where(n % 2, -1 / (np.pi * np.where(n, n, 1)) ** 2, 0.0))
    down, right = np.mgrid[0:rows, 0:columns]
    parts = (np.arange(8) - 3.5) / 8
    expected = np.zeros_like(picture)
    for angle in np.arange(views) * np.pi / views:
        rays = right * np.cos(angle) + down * np.sin(angle)
        within = np.add.outer(parts * np.cos(angle), parts * np.sin(angle)).ravel()
        for y, x in np.ndindex(rows, columns):
            apart = np.subtract.outer(rays - rays[y, x], within)
            expected += picture[y, x] * np.interp(apart, n, ramp).mean(axis=-1) * np.pi / views
    assert np.abs(streaks(picture, views, rng()) - expected).max() < 1


def test_quality_numbers_are_those_of_scikit_image() -> None:
    # structural_similarity(gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255) and peak_signal_noise_ratio of 0.26.0
    y, x = np.mgrid[0:40, 0:60]
    first = ((x * 5 + y * 3) % 256).astype(np.uint8)
    near = np.clip(first.astype(int) + (x * 7 + y * 11) % 13 - 6, 0, 255).astype(np.uint8)
    far = ((x * y) % 200).astype(np.uint8)
    assert ssim(first, near) == pytest.approx(0.9498658855059694, abs=1e-9)
    assert psnr(first, near) == pytest.approx(36.73017734670219)
    assert ssim(first, far) == pytest.approx(0.0880040457924913, abs=1e-9)
    assert psnr(first, far) == pytest.approx(8.767846581141965)
    same = quality_numbers(first, first)
    assert same == {"ssim": 1.0, "entropy_focus": entropy_focus(first), "entropy_focus_original": entropy_focus(first)}
    colour = quality_numbers(np.stack([first] * 3, axis=-1), np.stack([near] * 3, axis=-1))
    assert colour == quality_numbers(first, near)


def test_the_entropy_focus_is_0_for_one_bright_pixel_and_1_for_a_grey_picture() -> None:
    spot = np.zeros((16, 16), np.uint8)
    assert entropy_focus(spot) == 1.0
    assert entropy_focus(spot + np.uint8(90)) == pytest.approx(1.0)
    spot[3, 3] = 255
    assert entropy_focus(spot) == 0.0


@pytest.mark.parametrize("operator", DEGRADATIONS)
def test_side_letters_are_drawn_over_the_scan_and_so_stay_sharp(operator: str) -> None:
    picture = phantom()
    marked, is_marked = mark_sides(picture, picture > 0, Plane.AXIAL)
    assert is_marked
    degraded = degrade(marked, operator, 2, seed=4)
    letters = marked != picture
    assert np.array_equal(degraded[letters], marked[letters])
    # they were not in the scanner: the head looks as without them
    assert np.array_equal(degrade(picture, operator, 2, seed=4)[30:90], degraded[30:90])


@pytest.mark.parametrize("operator", DEGRADATIONS)
@pytest.mark.parametrize("boxed", [False, True])
def test_each_tile_of_a_montage_is_degraded_for_itself(operator: str, *, boxed: bool) -> None:
    tiles = [phantom(60, 60), np.zeros((60, 60), np.uint8), np.flipud(phantom(60, 60))]
    whole = montage(tiles)
    whole = letterbox(whole, 125) if boxed else whole
    boxes = tile_boxes(whole.shape, 3)
    assert [np.array_equal(whole[box], tile) for box, tile in zip(boxes, tiles, strict=True)] == [True, True, True]
    degraded = degrade(whole, operator, 2, seed=4, tiles=3)
    between = np.ones_like(whole, dtype=bool)
    for box in boxes:
        between[box] = False
    assert not degraded[between].any()
    if operator != "rician_noise":
        assert not degraded[boxes[1]].any()  # nothing of the other tiles came into the black one


@settings(max_examples=60)
@given(side=st.integers(8, 40), number=st.integers(1, 12), extra=st.integers(0, 1))
def test_tiles_are_found_where_the_montage_put_them(side: int, number: int, extra: int) -> None:
    tiles = [np.full((side, side), place + 1, np.uint8) for place in range(number)]
    whole = montage(tiles)
    if extra:
        whole = letterbox(whole, max(whole.shape))
    assert [np.unique(whole[box]).tolist() for box in tile_boxes(whole.shape, number)] == [[place + 1] for place in range(number)]


def test_operators_apply_to_the_scans_that_can_have_them() -> None:
    names = {sequence: {name for name, operator in DEGRADATIONS.items() if operator.applies_to(sequence)} for sequence in (*Sequence, "")}
    assert names[Sequence.FLAIR] == names[Sequence.ADC] == set(DEGRADATIONS) - {"streaks"}
    assert names[Sequence.CT] == names[Sequence.CE_CT] == {"streaks", "blur", "jpeg"}
    assert names[""] == names[Sequence.UNKNOWN] == {"blur", "jpeg"}


def test_both_levels_share_a_seed_and_pictures_and_operators_do_not() -> None:
    seeds = {seed_of(sha256, operator) for sha256 in ("a", "b") for operator in DEGRADATIONS}
    assert len(seeds) == 2 * len(DEGRADATIONS)


def test_the_channels_of_a_colour_picture_are_degraded_alike() -> None:
    grey = phantom()
    degraded = degrade(np.stack([grey, grey, np.zeros_like(grey)], axis=-1), "ghosting", 2, seed=4)
    assert np.array_equal(degraded[..., 0], degrade(grey, "ghosting", 2, seed=4))
    assert np.array_equal(degraded[..., 0], degraded[..., 1])
    assert not degraded[..., 2].any()


def test_unknown_operators_and_levels_are_refused() -> None:
    with pytest.raises(ConfigError, match="no degradation 'fog'; there are bias_field"):
        degrade(phantom(), "fog", 1, seed=1)
    with pytest.raises(ConfigError, match="no level 3 of the degradation blur; levels are 0, 1, 2"):
        degrade(phantom(), "blur", 3, seed=1)
