"""From a pixel of a picture to the patient and back: through crop, padding, montage, another plane, and a mirrored display."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from PIL import Image

from fixtures.imaging import LESION_MM, LESION_RADIUS_MM, nine_scans, normalise, part_of
from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.files.cases import read_case, write_case
from neuralmedbench.imaging.scans import Scan, centre_points, load_scan, nearest_slices, transform_points
from neuralmedbench.imaging.slices import cut_slices, describe, draw
from neuralmedbench.records.case import CaseRecord, Plane, Sequence, Series, Slice, Tile
from neuralmedbench.records.coordinates import (
    Convention,
    from_fractions,
    full_scale,
    mirrored,
    to_fractions,
    to_patient,
    to_picture,
)

BOXES = 500
CONVENTIONS = tuple(Convention)


def tile_at(tiles: Iterable[Tile], x: float, y: float) -> Tile | None:
    """Return the slice of a picture that shows a point (pixels of the picture); None in the black between and around the slices."""
    return next((tile for tile in tiles if 0 <= x - tile.left_px <= tile.side_px and 0 <= y - tile.top_px <= tile.side_px), None)


def random_scan(rng: np.random.Generator) -> Scan:
    """Make a black scan of random size, voxels, tilt and motion, with a brain that is not in its middle."""
    size = rng.integers(24, 48, 3).tolist()
    image = sitk.Image(size, sitk.sitkFloat32)
    image.SetSpacing(rng.choice([(1.0, 1.0, 1.0), (1.5, 1.5, 5.0), (0.8, 2.4, 2.4), (2.0, 2.0, 2.0), (1.1, 0.9, 3.0)]).tolist())
    image.SetOrigin(rng.uniform(-80, 20, 3).tolist())
    image.SetDirection(sitk.Euler3DTransform((0.0, 0.0, 0.0), *rng.uniform(-0.2, 0.2, 3).tolist()).GetMatrix())
    brain = np.zeros(size[::-1], dtype=bool)
    low, high = rng.integers(0, 8, 3), np.array(brain.shape) - rng.integers(0, 8, 3)
    brain[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = True
    rigid = np.eye(4)
    rigid[:3, :3] = np.array(sitk.Euler3DTransform((0.0, 0.0, 0.0), *rng.uniform(-0.2, 0.2, 3).tolist()).GetMatrix()).reshape(3, 3)
    rigid[:3, 3] = rng.uniform(-20, 20, 3)
    series = Series(series_id="series-01", path="one.nii", modality="MR", sequence=Sequence.FLAIR, window=(0.0, 1.0))
    return Scan(series, image, brain, rigid, (0.0, 1.0))


def random_policy(rng: np.random.Generator, layout: str) -> SlicesConfig:
    """Choose a crop inside the head or a frame around it, and a size of the picture (0: native)."""
    return SlicesConfig(
        policy="uniform",
        layout=layout,
        per_sequence=int(rng.integers(1, 8)),
        field_of_view_mm=float(rng.uniform(51, 140)),
        sent_px=int(rng.choice([0, 160, 224, 333, 512])),
        side_marker=False,
    )


def drawn(scan: Scan, voxels: np.ndarray, plane: Plane, indices: list[int], policy: SlicesConfig) -> tuple[np.ndarray, Slice]:
    """Draw slices of a scan as the stage does; the picture and its record."""
    places = nearest_slices(scan, plane, centre_points(scan, plane, indices))
    grey, rendered = draw(scan, voxels, plane, places, policy, window=scan.window)
    return grey, describe(scan, plane, places, (grey, rendered), policy)


def random_picture(rng: np.random.Generator) -> tuple[Scan, Slice, SlicesConfig, list[int]]:
    """Choose a scan and its slices, layout, crop and size; the scan and the record of the picture."""
    scan = random_scan(rng)
    plane = list(Plane)[rng.integers(3)]
    layout = ("single", "montage")[rng.integers(2)]
    policy = random_policy(rng, layout)
    depth = len(scan.stack(plane))
    indices = sorted(rng.choice(depth, 1 if layout == "single" else min(policy.per_sequence, depth), replace=False).tolist())
    _, record = drawn(scan, np.zeros(scan.brain.shape, np.float32), plane, indices, policy)
    return scan, record, policy, indices


def centre_of_light(grey: np.ndarray) -> tuple[float, float]:
    """Return x and y of the middle of what is not black."""
    rows, columns = np.indices(grey.shape) + 0.5
    weight = grey / grey.sum()
    return float((columns * weight).sum()), float((rows * weight).sum())


def as_written(values: tuple[float, ...], convention: Convention) -> tuple[float, ...]:
    """Round coordinates as answers do: whole numbers, or fractions with three digits."""
    return tuple(round(value, 3) if convention is Convention.FRACTION else float(round(value)) for value in values)


@cache
def pictures() -> tuple[tuple[Slice, np.random.Generator], ...]:
    return tuple((random_picture(rng)[1], rng) for rng in map(np.random.default_rng, range(BOXES)))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("mirror", [False, True], ids=["as stored", "mirrored"])
def test_a_box_comes_back_within_one_pixel_from_an_answer_to_the_patient_and_again_to_the_picture(
    convention: Convention, mirror: bool
) -> None:
    worst = written_worst = 0.0
    for record, rng in pictures():
        assert record.size_px is not None
        width, height = record.size_px
        tiles = [mirrored(tile, width) for tile in record.tiles] if mirror else list(record.tiles)
        tile = tiles[rng.integers(len(tiles))]
        xs, ys = (np.sort(rng.uniform(start, start + tile.side_px, 2)) for start in (tile.left_px, tile.top_px))
        box = (xs[0], ys[0], xs[1], ys[1])
        shrunk = (round(width / 1.7), round(height / 1.7))
        scale = full_scale(convention, (width, height), shrunk)
        stated = from_fractions(to_fractions(box, (width, height)), scale)
        for values, exact in ((stated, True), (as_written(stated, convention), False)):
            on_picture = from_fractions(to_fractions(values, scale), (width, height))
            corners = [to_patient(tile, *on_picture[:2]), to_patient(tile, *on_picture[2:])]
            assert tile_at(tiles, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2) == tile
            # back from the patient onto the picture as it is stored, whatever the display was
            stored = mirrored(tile, width) if mirror else tile
            back = [to_picture(stored, corner) for corner in corners]
            back = [(width - x, y) for x, y in back] if mirror else back
            off = max(abs(a - b) for a, b in zip([*back[0], *back[1]], box, strict=True))
            if exact:
                worst = max(worst, off)
            else:
                written_worst = max(written_worst, off)
    assert worst < 0.02, "what is stored of the geometry is rounded"
    assert written_worst <= 1.0


@pytest.mark.parametrize("seed", range(120))
def test_a_marked_voxel_is_seen_at_the_pixel_to_which_its_place_in_the_patient_maps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scan, record, policy, indices = random_picture(rng)
    # a voxel that the picture shows: the one under a random point of a random slice, if that is not in the frame around the scan
    for _ in range(100):
        tile = record.tiles[rng.integers(len(record.tiles))]
        x, y = (rng.uniform(0.2, 0.8) * tile.side_px + start for start in (tile.left_px, tile.top_px))
        native = transform_points(np.array([to_patient(tile, x, y)]), scan.rigid)[0]
        index = [round(value) for value in scan.image.TransformPhysicalPointToContinuousIndex(native.tolist())]
        if all(0 <= place < side for place, side in zip(index, scan.image.GetSize(), strict=True)):
            break
    voxels = np.zeros(scan.brain.shape, np.float32)
    voxels[tuple(index[::-1])] = 1.0
    shown, again = drawn(scan, voxels, record.plane, indices, policy)
    assert again == replace(record, pixels_sha256=again.pixels_sha256)
    assert shown.max() > 0
    # SimpleITK tells where the voxel is; the reference's space is that of the rigid transform's other side
    there = transform_points(np.array([scan.image.TransformIndexToPhysicalPoint(index)]), np.linalg.inv(scan.rigid))[0]
    seen = centre_of_light(shown)
    assert to_picture(tile, tuple(there.tolist())) == pytest.approx(seen, abs=1.0)
    assert tile_at(record.tiles, *seen) == tile
    # in a mirrored picture it is seen on the other side
    flipped = mirrored(tile, shown.shape[1])
    assert to_picture(flipped, tuple(there.tolist())) == pytest.approx((shown.shape[1] - seen[0], seen[1]), abs=1.0)


def test_the_black_between_and_around_the_slices_of_a_montage_is_no_place_in_the_patient() -> None:
    _, record = drawn(
        scan := random_scan(np.random.default_rng(3)),
        np.zeros(scan.brain.shape, np.float32),
        Plane.AXIAL,
        [2, 6, 10],
        SlicesConfig(policy="uniform", per_sequence=3, layout="montage", field_of_view_mm=60.0, sent_px=224, side_marker=False),
    )
    first, second, _ = record.tiles
    assert second.left_px - first.left_px - first.side_px == 4
    assert tile_at(record.tiles, first.left_px + first.side_px + 2, first.top_px + 5) is None
    assert tile_at(record.tiles, second.left_px + 1, second.top_px + 1) == second


@pytest.fixture(scope="module")
def phantom_case(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Give the folder of a normalised phantom, scanned in three planes and two positions."""
    folder = tmp_path_factory.mktemp("phantom") / "normalised"
    part_of(nine_scans(tmp_path_factory, worker_id), folder, "T1w", "PDw", "FLAIR", "T2w")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["single", "montage"])
def test_the_known_lesion_of_a_phantom_maps_into_the_lesion_of_every_picture_that_shows_it(
    phantom_case: Path, tmp_path: Path, layout: str
) -> None:
    policy = SlicesConfig(policy="uniform", per_sequence=9, layout=layout, field_of_view_mm=230.0, sent_px=448, side_marker=True)
    shown = 0
    for entry in cut_slices(read_case(phantom_case / "case.json"), phantom_case, tmp_path / "png", policy):
        grey = np.asarray(Image.open(tmp_path / entry.path))
        for tile in entry.tiles:
            if abs(tile.position_mm - LESION_MM["xyz".index(entry.plane.axis)]) > LESION_RADIUS_MM / 2:
                continue
            shown += 1
            column, row = (int(value) for value in to_picture(tile, LESION_MM))
            window = grey[row - 3 : row + 4, column - 3 : column + 4]
            dark = entry.sequence is Sequence.T1W
            assert window.max() < 30 if dark else window.min() > 225, (entry.image_id, tile.position_mm)
    assert shown >= 4


REAL = os.environ.get("NMB_REAL_SCANS", "")


@pytest.fixture(scope="module")
def real_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a normalised real case."""
    folder = tmp_path_factory.mktemp("real")
    scans = sorted((Path(REAL) / "nifti" / "tcga-fg-6692").rglob("*.nii.gz"))
    case = CaseRecord(benchmark="own", case_id="c1", patient_id="p1", stage="deidentify", series=real_series(scans, folder / "sub-c1"))
    write_case(folder / "sub-c1" / "case.json", case)
    assert len(normalise(folder / "sub-c1" / "case.json", folder / "normalised").series) == 4
    return folder / "normalised"


@pytest.mark.skipif(not REAL, reason="NMB_REAL_SCANS names no folder of real scans")
@pytest.mark.parametrize("layout", ["single", "montage"])
def test_voxels_marked_in_real_scans_are_seen_at_the_pixels_to_which_they_map(real_case: Path, layout: str) -> None:
    policy = SlicesConfig(policy="uniform", per_sequence=5, layout=layout, field_of_view_mm=230.0, sent_px=448, side_marker=False)
    rng = np.random.default_rng(5)
    for series in read_case(real_case / "case.json").series:
        scan = load_scan(series, real_case)
        indices = np.flatnonzero(scan.stack(scan.plane).any(axis=(1, 2)))[3:-3:4].tolist()
        places = [indices] if layout == "montage" else [[index] for index in indices]
        for group in places:
            inside = np.argwhere(scan.brain[group[0]] if scan.plane is Plane.AXIAL else scan.stack(scan.plane)[group[0]])
            row, column = inside[rng.integers(len(inside))].tolist()
            voxels = sitk.GetArrayFromImage(scan.image) * 0.0
            where = [row, column]
            where.insert("zyx".index(scan.plane.axis), group[0])
            voxels[tuple(where)] = scan.window[1]
            grey, record = drawn(replace(scan, window=(0.0, scan.window[1])), voxels.astype(np.float32), scan.plane, group, policy)
            there = transform_points(np.array([scan.image.TransformIndexToPhysicalPoint(where[::-1])]), np.linalg.inv(scan.rigid))[0]
            assert to_picture(record.tiles[0], tuple(there.tolist())) == pytest.approx(centre_of_light(grey), abs=1.0)


def real_series(scans: list[Path], base: Path) -> tuple[Series, ...]:
    """Copy the scans of a case into a de-identified folder, and describe them."""
    kinds = {"ce-gad_T1w": Sequence.CE_T1W, "T1w": Sequence.T1W, "T2w": Sequence.T2W, "FLAIR": Sequence.FLAIR}
    found = []
    for path in scans:
        kind = next((kind for words, kind in kinds.items() if path.name.endswith(f"{words}.nii.gz")), None)
        if kind is None:
            continue
        target = base / "anat" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        found.append(Series(series_id=f"series-{len(found) + 1:02d}", path=f"anat/{path.name}", modality="MR", sequence=kind))
    return tuple(found)
