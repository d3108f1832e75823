"""Pictures of input layouts, byte by byte against plain NumPy, and their way through the stage and the gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conftest import ROOT
from fixtures.prompt import picture, question
from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.layouts import Layout, LayoutConfig
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.plain_pictures import open_picture, write_grey
from neuralmedbench.imaging.alter import alter_pictures, compose, to_square
from neuralmedbench.imaging.pictures import to_grey
from neuralmedbench.imaging.windows import CT_WINDOWS, window_of
from neuralmedbench.prompts.coverage import check_altered
from neuralmedbench.records.case import Sequence as Kind

WINDOWS = ("wide", "soft-tissue", "brain")
MAKERS = ((-1024, 1024), (-135, 215), (0, 80))
"""Limits of red, green and blue in HU, as MedGemma's notebook has them."""
PRECISION = 22
"""Bits of a weight in Pillow's resampling."""


@pytest.fixture
def medgemma():
    """The arm of MedGemma's layout."""
    return load_arms(ROOT / "config", ["layout-medgemma"], "b")["layout-medgemma"]


def slice_in_hu(seed: int, side: int = 24) -> np.ndarray:
    """Draw a slice of whole HU, as scanners store them, with air, fat, brain and bone."""
    return np.random.default_rng(seed).integers(-1100, 2100, (side, side)).astype(np.float32)


def on_channels(hu: np.ndarray) -> np.ndarray:
    """Put the maker's windows on three channels, with NumPy alone."""
    parts = [(np.clip(hu, low, high) - low) / np.float32(high - low) * np.float32(255) for low, high in MAKERS]
    return np.stack([np.round(part) for part in parts], axis=-1).astype(np.uint8)


def scaled(grey: np.ndarray, side: int) -> np.ndarray:
    """Scale a square picture with the triangle filter in whole numbers, row by row and then column by column, with NumPy alone."""
    size = grey.shape[0]
    scale = size / side
    reach = max(scale, 1.0)
    weights = np.zeros((side, size), dtype=np.int64)
    for place in range(side):
        middle = (place + 0.5) * scale
        first, last = max(0, int(middle - reach + 0.5)), min(size, int(middle + reach + 0.5))
        share = np.array([max(0.0, 1 - abs((index - middle + 0.5) / reach)) for index in range(first, last)])
        weights[place, first:last] = np.floor(share / share.sum() * (1 << PRECISION) + 0.5)
    half = 1 << (PRECISION - 1)
    across = np.clip((grey.astype(np.int64) @ weights.T + half) >> PRECISION, 0, 255)
    return np.clip((weights @ across + half) >> PRECISION, 0, 255).astype(np.uint8)


def stored(folder: Path, grey: np.ndarray, name: str, **changes):
    """Write a picture and return its record."""
    path = folder / f"{name}.png"
    write_grey(path, grey)
    return replace(picture(name), path=path.as_posix(), sha256=sha256_of(path), **changes)


def ct_slice(folder: Path, number: int, windows=WINDOWS, side: int = 24):
    """Return the pictures of one CT slice, one a window, as they are cut."""
    hu = slice_in_hu(number, side)
    named = {"sequence": "CT", "position_mm": float(number), "volume_sha256": "scan"}
    return [
        stored(folder, to_grey(hu, CT_WINDOWS[name]), f"ct-{name}-{number}", window="" if name == "brain" else name, **named)
        for name in windows
    ]


def test_the_windows_on_red_green_and_blue_are_those_of_the_makers_notebook(medgemma) -> None:
    windows = medgemma.layout.config.windows
    assert tuple(CT_WINDOWS[name] for name in windows) == MAKERS
    for seed in range(20):
        hu = slice_in_hu(seed)
        bare = replace(medgemma.layout, config=medgemma.layout.config.model_copy(update={"square_px": None}))
        made = compose([to_grey(hu, CT_WINDOWS[name]) for name in windows], bare)
        assert made.tobytes() == on_channels(hu).tobytes()


@pytest.mark.parametrize(("shape", "side"), [((24, 24), 24), ((24, 24), 48), ((40, 40), 13), ((20, 31), 31), ((31, 20), 16), ((9, 14), 28)])
def test_a_picture_is_padded_with_black_in_the_middle_and_scaled_as_plain_numpy_does(shape, side) -> None:
    grey = np.random.default_rng(sum(shape)).integers(1, 256, shape, dtype=np.uint8)
    largest = max(shape)
    top, left = (largest - shape[0]) // 2, (largest - shape[1]) // 2
    padded = np.pad(grey, ((top, largest - shape[0] - top), (left, largest - shape[1] - left)))
    assert to_square(grey, side).tobytes() == (padded if largest == side else scaled(padded, side)).tobytes()
    coloured = np.stack([grey, 255 - grey, grey], axis=-1)
    for channel, one in enumerate((grey, 255 - grey, grey)):
        assert np.array_equal(to_square(coloured, side)[..., channel], to_square(one, side))


def test_the_stage_writes_one_picture_a_slice_whose_channels_are_the_windows(medgemma, tmp_path) -> None:
    images = [image for number in (0, 5, 10) for image in ct_slice(tmp_path, number)]
    grey = stored(tmp_path, np.full((24, 24), 7, np.uint8), "flair", volume_sha256="another scan")
    item = question(images=(*images, grey))
    rows = alter_pictures([item], [medgemma], tmp_path / "png")
    assert sorted(len(row.sources) for row in rows) == [1, 3, 3, 3]
    for row in rows:
        pixels = np.asarray(open_picture(Path(row.path).read_bytes()))
        assert pixels.shape[:2] == (896, 896)
        if len(row.sources) == 3:
            found = [next(image for image in images if image.sha256 == source) for source in row.sources]
            assert [image.window or "brain" for image in found] == list(WINDOWS)
            assert len({image.position_mm for image in found}) == 1
            windows = [np.asarray(Image.open(image.path)) for image in found]
            assert pixels.tobytes() == np.stack([scaled(window, 896) for window in windows], axis=-1).tobytes()
            assert row.window == "red wide, green soft-tissue, blue brain"


def test_ct_with_contrast_agent_has_the_makers_windows_within_one_grey_value_although_its_grey_picture_has_a_wider_one(
    medgemma, tmp_path
) -> None:
    hu = np.concatenate([np.arange(-40, 216, dtype=np.float32), slice_in_hu(3, 31).ravel()])[: 34 * 34].reshape(34, 34)
    window = window_of(Kind.CE_CT, hu, hu > 0)
    assert window == (0, 160)
    named = {"sequence": Kind.CE_CT, "position_mm": 0.0, "volume_sha256": "scan"}
    greys = {name: to_grey(hu, window if name == "brain" else CT_WINDOWS[name]) for name in WINDOWS}
    images = tuple(stored(tmp_path, grey, name, window="" if name == "brain" else name, **named) for name, grey in greys.items())
    config = medgemma.layout.config.model_copy(update={"square_px": None})
    bare = replace(medgemma, layout=replace(medgemma.layout, config=config))
    (row,) = alter_pictures([question(images=images)], [bare], tmp_path / "png")
    pixels, expected = np.asarray(Image.open(row.path)).astype(int), on_channels(hu).astype(int)
    assert np.array_equal(pixels[..., :2], expected[..., :2])
    assert np.abs(pixels[..., 2] - expected[..., 2]).max() == 1


def test_a_picture_of_colours_passes_the_gate_only_with_all_its_sources(medgemma, tmp_path) -> None:
    item = question(images=tuple(ct_slice(tmp_path, 0)))
    (row,) = alter_pictures([item], [medgemma], tmp_path / "png")
    check_altered([row], [item])
    for place in range(3):
        sources = list(row.sources)
        sources[place] = "0" * 64
        with pytest.raises(DeidentificationError, match="was not made from pictures of the items"):
            check_altered([replace(row, sources=tuple(sources))], [item])


def test_windows_that_were_not_cut_are_named_with_the_setting_that_cuts_them(medgemma, tmp_path) -> None:
    item = question(images=tuple(ct_slice(tmp_path, 0, ("brain", "bone"))))
    with pytest.raises(ConfigError) as refused:
        alter_pictures([item], [medgemma], tmp_path / "png")
    assert "layout medgemma" in str(refused.value)
    assert "soft-tissue, wide is not cut" in str(refused.value)
    assert "ct_windows: [bone, brain, soft-tissue, wide]" in str(refused.value)


def test_a_ct_picture_whose_window_is_not_known_stays_grey(medgemma, tmp_path) -> None:
    loose = stored(tmp_path, np.full((24, 24), 9, np.uint8), "loose", sequence="CT", position_mm=None)
    (row,) = alter_pictures([question(images=(loose,))], [medgemma], tmp_path / "png")
    assert (row.sources, row.window) == ((loose.sha256,), "")


def test_a_picture_that_a_layout_does_not_change_is_not_written_again(tmp_path) -> None:
    config = LayoutConfig.model_validate({"title": "T", "square_px": 24})
    arm = replace(load_arms(ROOT / "config", ["layout-medgemma"], "b")["layout-medgemma"], layout=Layout("t", Path("t.yaml"), config))
    item = question(
        images=(stored(tmp_path, np.full((24, 24), 9, np.uint8), "same"), stored(tmp_path, np.full((12, 24), 9, np.uint8), "flat"))
    )
    rows = alter_pictures([item], [arm], tmp_path / "png")
    assert [row.sources for row in rows] == [(item.images[1].sha256,)]
