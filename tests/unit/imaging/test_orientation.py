"""The worst error, a mirrored brain: converters store 2-D and 3-D series with opposite x, and rotate planes differently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from fixtures.imaging import LESION_MM, NINE, Shot, nine_scans, normalise, write_shots
from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.known_lesions import KnownLesion
from neuralmedbench.imaging.alter import mirrored
from neuralmedbench.imaging.pictures import tile_boxes
from neuralmedbench.imaging.side_letters import LETTERS, find_letters
from neuralmedbench.imaging.slices import cut_slices
from neuralmedbench.records.case import Plane, Slice
from neuralmedbench.records.items import ItemImage

pytestmark = pytest.mark.slow

POLICIES = ("uniform", pytest.param("content", marks=pytest.mark.long), "three_plane", "lesion")
DARK = ("T1w", "ADC", "SWI")
"""Sequences in which the lesion is dark."""
WELL_INSIDE_MM = 6.0
"""The lesion is a ball of 11 mm: a slice this near to its centre shows most of it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A case with a lesion on the patient's left, in nine sequences, planes and index orders."""
    return nine_scans(tmp_path_factory, worker_id)


@pytest.fixture(scope="module", params=POLICIES)
def cut(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Slice, ...]]:
    policy = SlicesConfig(policy=request.param, per_sequence=14, field_of_view_mm=230.0, side_marker=True, sent_px=224)
    case = read_case(folder / "normalised" / "case.json")
    out = tmp_path_factory.mktemp(request.param)
    return out, cut_slices(case, folder / "normalised", out / "png", policy, KnownLesion(LESION_MM, 22.0))


def item_image(entry: Slice) -> ItemImage:
    """Return a picture in the form of an item."""
    return ItemImage(
        image_id=entry.image_id, path=entry.path, sha256=entry.sha256, volume_sha256=entry.volume_sha256, sequence=entry.sequence,
        plane=entry.plane, role="slice", position_mm=entry.position_mm, mm_per_px=entry.mm_per_px, oracle=entry.oracle,
        tiles_mm=tuple(tile.position_mm for tile in entry.tiles) if len(entry.tiles) > 1 else (),
    )  # fmt: skip


def signed(grey: np.ndarray, entry: Slice) -> np.ndarray:
    """Return grey values with a bright lesion, inverted for sequences in which it is dark."""
    return grey.astype(float) * (-1 if entry.sequence.value in DARK else 1)


def brightest(values: np.ndarray, entry: Slice) -> tuple[float, float, float]:
    """Return row and column of the maximum in the inner 12 cm, in mm from the middle, and its value."""
    reach, middle = round(60 / entry.mm_per_px), values.shape[0] // 2
    inner = values[middle - reach : middle + reach, middle - reach : middle + reach]
    row, column = (np.array(np.unravel_index(inner.argmax(), inner.shape)) - reach) * entry.mm_per_px
    return float(row), float(column), float(inner.max())


def lopsided(grey: np.ndarray, entry: Slice) -> tuple[float, float, float]:
    """Return where the picture is brighter than its mirror image by most; the phantom without its lesion is symmetric."""
    smooth = gaussian_filter(signed(grey, entry), 4 / entry.mm_per_px)
    return brightest(smooth - smooth[:, ::-1], entry)


def relief(grey: np.ndarray, entry: Slice) -> np.ndarray:
    """Return how much brighter each pixel is than its surroundings."""
    values = signed(grey, entry)
    return gaussian_filter(values, 5 / entry.mm_per_px) - gaussian_filter(values, 15 / entry.mm_per_px)


def test_a_lesion_on_the_patients_left_is_on_the_right_half_of_every_picture(cut: tuple[Path, tuple[Slice, ...]]) -> None:
    out, slices = cut
    seen = set()
    for entry in slices:
        if entry.plane is Plane.SAGITTAL or abs(entry.position_mm - LESION_MM["xyz".index(entry.plane.axis)]) > WELL_INSIDE_MM:
            continue
        _, column, height = lopsided(np.asarray(Image.open(out / entry.path)), entry)
        assert height > 25, f"{entry.image_id}: the lesion is not there"
        assert LESION_MM[0] - 18 < column < LESION_MM[0] + 12, f"{entry.image_id}: the lesion is not on the viewer's right"
        seen.add(entry.sequence.value)
    assert seen >= {shot.sequence for shot in NINE} - {"T2w"}, "the sagittal scan is looked at below"


def test_a_sagittal_picture_shows_the_lesion_on_the_left_of_the_patient_alone(cut: tuple[Path, tuple[Slice, ...]]) -> None:
    out, slices = cut
    sagittal = [entry for entry in slices if entry.plane is Plane.SAGITTAL and entry.sequence.value == "T2w"]
    left, right = (
        [
            (entry, relief(np.asarray(Image.open(out / entry.path)), entry))
            for entry in sagittal
            if abs(entry.position_mm - x) <= WELL_INSIDE_MM
        ]
        for x in (LESION_MM[0], -LESION_MM[0])
    )
    assert left
    for entry, heights in left:
        row, column, height = brightest(heights, entry)
        assert height > 60
        assert column == pytest.approx(LESION_MM[1] - 17.0, abs=14), "columns run from front to back"
        assert row < 5, "rows run from head to feet"
        place = tuple(round(heights.shape[0] / 2 + way / entry.mm_per_px) for way in (row, column))
        assert all(other[place] < height / 3 for _, other in right), "nothing of it on the patient's right"


def test_the_letters_stand_on_their_sides_and_off_the_brain(cut: tuple[Path, tuple[Slice, ...]]) -> None:
    out, slices = cut
    letter_r = np.array([[int(bit) for bit in line] for line in LETTERS["R"]])
    for entry in slices:
        grey = np.asarray(Image.open(out / entry.path))
        assert entry.side_marked is (entry.plane is not Plane.SAGITTAL)
        if not entry.side_marked:
            continue
        dot = round(0.05 * 224 / 7)
        edge = grey[:, 2 * dot : 7 * dot]
        found = [top for top in range(224 - 7 * dot) if (edge[top : top + 7 * dot : dot, ::dot] // 255 == letter_r).all()]
        assert found, f"{entry.image_id}: no R at the viewer's left"


@pytest.mark.parametrize("order", [*(pytest.param(order, marks=pytest.mark.long) for order in ("LPS", "LAS", "RAS", "RPI")), "SPR"])
def test_an_oblique_scan_is_the_same_picture_in_every_index_order(tmp_path: Path, order: str) -> None:
    shot = Shot("T1w", "2d", order=order, tilt_deg=(20.0, 5.0, 0.0))
    case = normalise(write_shots(tmp_path, [shot]), tmp_path / "normalised")
    policy = SlicesConfig(policy="lesion", per_sequence=1, field_of_view_mm=230.0)
    (entry,) = cut_slices(case, tmp_path / "normalised", tmp_path / "png", policy, KnownLesion(LESION_MM, 22.0))
    assert entry.plane is Plane.AXIAL
    _, column, height = lopsided(np.asarray(Image.open(tmp_path / entry.path)), entry)
    assert height > 25
    assert column == pytest.approx(LESION_MM[0], abs=8)


def test_the_mirrored_arm_shows_the_lesion_on_the_left_half_with_readable_letters(cut: tuple[Path, tuple[Slice, ...]]) -> None:
    """The pictures of the mirrored patient, as this pipeline would have cut them: only the head is mirrored, R and L stay."""
    out, slices = cut
    seen = set()
    for entry in slices:
        grey = np.asarray(Image.open(out / entry.path))
        image = item_image(entry)
        new = mirrored(grey, image, {})
        if entry.plane is Plane.SAGITTAL:
            assert new is None
            continue
        assert new is not None
        assert find_letters(new) == find_letters(grey) != []
        rest = np.ones(grey.shape, dtype=bool)
        for box in find_letters(grey):
            rest[box] = False
        assert np.array_equal(new[rest], grey[:, ::-1][rest])
        if abs(entry.position_mm - LESION_MM["xyz".index(entry.plane.axis)]) <= WELL_INSIDE_MM:
            _, column, height = lopsided(new, entry)
            assert height > 25, f"{entry.image_id}: the lesion is not there"
            assert -LESION_MM[0] - 12 < column < -LESION_MM[0] + 18, f"{entry.image_id}: the lesion is not on the viewer's left"
            seen.add(entry.sequence.value)
    assert seen >= {shot.sequence for shot in NINE} - {"T2w"}


@pytest.mark.parametrize("side_px", [0, 224])
@pytest.mark.parametrize("tiles", [2, 5])
def test_each_tile_of_a_montage_is_mirrored_in_its_place(folder: Path, tmp_path: Path, tiles: int, side_px: int) -> None:
    case = read_case(folder / "normalised" / "case.json")
    settings = {"policy": "uniform", "per_sequence": tiles, "field_of_view_mm": 230.0, "side_marker": True}
    wholes = cut_slices(case, folder / "normalised", tmp_path / "montage", SlicesConfig(**settings, layout="montage", sent_px=side_px))
    entry = next(entry for entry in wholes if entry.plane is Plane.AXIAL and len(entry.tiles) == tiles)
    whole = np.asarray(Image.open(tmp_path / entry.path))
    new = mirrored(whole, item_image(entry), {})
    assert new is not None
    boxes = tile_boxes(whole.shape, tiles)
    assert len(boxes) == tiles
    for box in boxes:
        assert np.array_equal(new[box], mirrored(whole[box], replace(item_image(entry), tiles_mm=()), {}))
        assert find_letters(new[box])
    between = np.ones(whole.shape, dtype=bool)
    for box in boxes:
        between[box] = False
    assert not new[between].any(), "the black between the tiles"
