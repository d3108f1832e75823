"""Choice and display of slices: content, three planes, around the lesion, montages, side marks and sizes."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import SimpleITK as sitk
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cut_slices import main as cut_slices
from fixtures.commands import settings
from fixtures.imaging import LESION_MM, LESION_RADIUS_MM, Shot, nine_scans, normalise, part_of, write_shots
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.known_lesions import read_known_lesion
from neuralmedbench.files.nifti import Volume, write_nifti
from neuralmedbench.files.volumes import read_volume
from neuralmedbench.imaging.choose import content_slices, lesion_slices, slice_scores, uniform_slices
from neuralmedbench.imaging.pictures import letterbox, montage, resize
from neuralmedbench.imaging.side_letters import mark_sides
from neuralmedbench.records.case import CaseRecord, Plane, Sequence, Slice

pytestmark = pytest.mark.slow


def cut(normalised: Path, out: Path, config: Path = Path("config"), *, at_lesion: bool = False, **slices: object) -> CaseRecord:
    """Cut the pictures of a case as the rule does."""
    pictures = ["--out-pictures", str(out / "png"), "--out", str(out / "case.json")]
    chosen = settings(slices={"per_sequence": 5, **slices}, at_lesion=at_lesion)
    words = ["--case", str(normalised), "--config", str(config), *chosen, *pictures]
    assert cut_slices(words) == 0
    return read_case(out / "case.json")


def grey_of(out: Path, entry: Slice) -> np.ndarray:
    return np.asarray(Image.open(out / entry.path))


@pytest.fixture(scope="module")
def normalised(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    folder = tmp_path_factory.mktemp("policies") / "normalised"
    part_of(nine_scans(tmp_path_factory, worker_id), folder, "T1w", "PDw", "CT")
    return folder / "case.json"


def write_answers(folder: Path, position: str = "38 10 22", case_id: str = "case01", *, beside: bool = False) -> dict[str, Any]:
    """Write a configuration whose benchmark names an answers table; return the options, for the policy or for oracle slices beside others."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "answers.csv").write_text(f"case_id,diagnosis,lesion_size_mm,lesion_position_mm\n{case_id},glioma,22,{position}\n")
    (folder / "benchmarks" / "demo.yaml").write_text(f"title: Demo\nanswers: {folder / 'answers.csv'}\n")
    return {**({"at_lesion": True} if beside else {"policy": "lesion"}), "config": folder}


def write_mask(folder: Path) -> None:
    """Write the sphere of the lesion as marked voxels of 2 mm, and name their folder beside the answers table."""
    centre = np.array(LESION_MM)
    points = np.stack(np.meshgrid(*(2.0 * np.arange(17) - 16 + middle for middle in centre), indexing="ij"), axis=-1)
    marked = (((points - centre) ** 2).sum(axis=-1) < LESION_RADIUS_MM**2).astype(np.uint8)
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    affine[:3, 3] = centre - 16
    write_nifti(folder / "masks" / "case01.nii.gz", Volume(marked, np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine))
    yaml = folder / "benchmarks" / "demo.yaml"
    yaml.write_text(f"{yaml.read_text()}lesion_masks: {folder / 'masks'}\n")


def test_content_takes_of_every_part_the_slice_that_shows_most() -> None:
    brain = np.ones((20, 16, 16), dtype=bool)
    grey = np.full(brain.shape, 100, dtype=np.uint8)
    random = np.random.default_rng(1)
    for index in (3, 8, 14, 19):
        grey[index] = random.integers(0, 255, (16, 16))
    assert content_slices(brain, slice_scores(grey, brain), 4) == [3, 8, 14, 19]
    assert content_slices(brain, np.zeros(20), 4) == [2, 7, 12, 17], "of equal ones the middle of each part"
    with pytest.raises(DataError, match="30 were asked for"):
        content_slices(brain, np.zeros(20), 30)


def test_what_lies_outside_the_brain_has_no_say_in_content() -> None:
    brain = np.zeros((4, 12, 12), dtype=bool)
    brain[:, 3:9, 3:9] = True
    grey = np.full(brain.shape, 90, dtype=np.uint8)
    outside = np.random.default_rng(2).integers(0, 255, brain.shape).astype(np.uint8)
    assert np.array_equal(slice_scores(np.where(brain, grey, outside), brain), np.zeros(4))


@given(
    scores=st.lists(st.floats(-5, 5), min_size=8, max_size=40),
    count=st.integers(1, 8),
)
def test_content_slices_are_ascending_different_and_spread_over_the_brain(scores: list[float], count: int) -> None:
    brain = np.ones((len(scores), 3, 3), dtype=bool)
    picks = content_slices(brain, np.array(scores), count)
    assert picks == sorted(set(picks))
    assert len(picks) == count
    parts = np.array_split(np.arange(len(scores)), count)
    assert all(pick in part for pick, part in zip(picks, parts, strict=True))


@given(index=st.floats(-5, 45), reach=st.floats(0, 30), count=st.integers(1, 12), total=st.integers(2, 40))
def test_slices_around_a_lesion_are_different_and_inside_and_hold_the_nearest(index: float, reach: float, count: int, total: int) -> None:
    picks = lesion_slices(index, reach, count, total)
    assert picks == sorted(set(picks))
    assert len(picks) == min(count, total)
    assert picks[0] >= 0
    assert picks[-1] < total
    if count == 1:
        assert abs(picks[0] - np.clip(index, 0, total - 1)) <= 0.5 + 1e-6


def test_content_pictures_show_the_same_places_in_every_sequence_and_are_the_same_twice(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path / "one", policy="content")
    cut(normalised, tmp_path / "two", policy="content")
    assert sha256_of_files(tmp_path / "one") == sha256_of_files(tmp_path / "two")
    uniform = cut(normalised, tmp_path / "uniform")
    places = {
        sequence: [entry.position_mm for entry in record.slices if entry.sequence is sequence] for sequence in (Sequence.T1W, Sequence.PDW)
    }
    assert np.allclose(places[Sequence.T1W], places[Sequence.PDW], atol=2.6)
    assert places[Sequence.T1W] != [entry.position_mm for entry in uniform.slices if entry.sequence is Sequence.T1W]
    assert not any(entry.oracle for entry in record.slices)


def test_three_planes_are_native_where_the_scan_is_isotropic_and_say_so_where_it_is_not(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path, policy="three_plane")
    for sequence, resampled in ((Sequence.T1W, False), (Sequence.PDW, True)):
        planes = {plane: [entry for entry in record.slices if (entry.sequence, entry.plane) == (sequence, plane)] for plane in Plane}
        assert [len(entries) for entries in planes.values()] == [5, 5, 5]
        assert not any(entry.resampled for entry in planes[Plane.AXIAL])
        assert all(entry.resampled is resampled for plane in (Plane.CORONAL, Plane.SAGITTAL) for entry in planes[plane])
    coronal = next(entry for entry in record.slices if (entry.sequence, entry.plane) == (Sequence.PDW, Plane.CORONAL))
    assert coronal.native_mm_per_px == pytest.approx((5.0, 2.0))
    assert coronal.mm_per_px == pytest.approx(2.0), "the thick rows are interpolated, the head keeps its shape"
    assert grey_of(tmp_path, coronal).shape == (115, 115)


def test_a_head_has_the_same_shape_in_a_thin_and_a_thick_scan(normalised: Path, tmp_path: Path) -> None:
    """True aspect: the height of the brain in a coronal picture of 5 mm slices is that of the 2.4 mm scan."""
    record = cut(normalised, tmp_path, policy="three_plane", sent_px=230)
    heights = {}
    for sequence in (Sequence.T1W, Sequence.PDW):
        middle = [entry for entry in record.slices if (entry.sequence, entry.plane) == (sequence, Plane.CORONAL)][2]
        rows = np.flatnonzero((grey_of(tmp_path, middle) > 60).sum(axis=1) > 20)
        heights[sequence] = rows[-1] - rows[0]
        assert middle.mm_per_px == pytest.approx(1.0, abs=0.02)
    assert heights[Sequence.T1W] == pytest.approx(heights[Sequence.PDW], abs=14)


def test_slices_around_the_lesion_are_marked_as_oracle(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path / "out", **write_answers(tmp_path / "config"))
    assert all(entry.oracle for entry in record.slices)
    for sequence in (Sequence.T1W, Sequence.PDW):
        positions = [entry.position_mm for entry in record.slices if entry.sequence is sequence]
        assert len(positions) >= 4
        assert all(abs(position - LESION_MM[2]) <= 11 + 2.6 for position in positions)
        assert max(positions) - min(positions) > 15, "spread over the lesion"


def test_a_case_without_a_lesion_is_cut_evenly_and_is_oracle_too(normalised: Path, tmp_path: Path) -> None:
    """The absence of a lesion is part of the answer."""
    record = cut(normalised, tmp_path / "out", **write_answers(tmp_path / "config", case_id="another"))
    uniform = cut(normalised, tmp_path / "uniform")
    assert [entry.position_mm for entry in record.slices] == [entry.position_mm for entry in uniform.slices]
    assert all(entry.oracle for entry in record.slices)


def test_oracle_slices_of_an_arm_come_beside_the_others_which_stay_byte_for_byte(normalised: Path, tmp_path: Path) -> None:
    plain = cut(normalised, tmp_path / "plain")
    record = cut(normalised, tmp_path / "out", **write_answers(tmp_path / "config", beside=True))
    policy = cut(normalised, tmp_path / "policy", policy="lesion", config=tmp_path / "config")
    assert tuple(entry for entry in record.slices if not entry.oracle) == plain.slices
    for entry in plain.slices:
        assert (tmp_path / "out" / entry.path).read_bytes() == (tmp_path / "plain" / entry.path).read_bytes()
    beside = [entry for entry in record.slices if entry.oracle]
    assert [entry.sha256 for entry in beside] == [entry.sha256 for entry in policy.slices], "those of the policy lesion"
    assert [entry.image_id for entry in beside] == [f"oracle-{entry.image_id}" for entry in policy.slices]
    assert len(list((tmp_path / "out" / "png").iterdir())) == len(record.slices)


def test_a_case_without_a_place_has_no_oracle_slices(normalised: Path, tmp_path: Path) -> None:
    plain = cut(normalised, tmp_path / "plain")
    for name, answers in (("no row", {"case_id": "another"}), ("no place", {"position": ""})):
        assert cut(normalised, tmp_path / name, **write_answers(tmp_path / f"{name} config", beside=True, **answers)).slices == plain.slices


def test_marked_voxels_give_the_place_where_the_table_has_none(normalised: Path, tmp_path: Path) -> None:
    words = write_answers(tmp_path / "config", position="", beside=True)
    write_mask(tmp_path / "config")
    place = read_known_lesion(tmp_path / "config", "demo", "case01")
    assert place is not None
    assert place.position_mm == pytest.approx(LESION_MM)
    assert place.extent_mm == pytest.approx((22.0, 22.0, 22.0))
    masked = cut(normalised, tmp_path / "mask", **words)
    table = cut(normalised, tmp_path / "table", **write_answers(tmp_path / "other", beside=True))
    assert masked.slices == table.slices, "a sphere is as wide as its diameter"


def test_oracle_slices_are_in_the_planes_of_the_others(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path / "out", policy="three_plane", **write_answers(tmp_path / "config", beside=True))
    for plane, place in zip(("sagittal", "coronal", "axial"), LESION_MM, strict=True):
        positions = [entry.position_mm for entry in record.slices if entry.oracle and (entry.plane, entry.sequence) == (plane, "T1w")]
        assert len(positions) == 5
        assert all(abs(position - place) <= LESION_RADIUS_MM + 1.2 for position in positions)


def test_answers_that_cannot_be_read_are_told_without_their_values(tmp_path: Path) -> None:
    write_answers(tmp_path / "config", position="left side")
    with pytest.raises(DataError, match="lesion_position_mm is three numbers") as caught:
        read_known_lesion(tmp_path / "config", "demo", "case01")
    assert "left" not in str(caught.value)
    (tmp_path / "config" / "answers.csv").write_text("case_id,rationale\ncase01," + "x" * 200_000, encoding="utf-8")
    with pytest.raises(ConfigError, match="demo: the answers table is not a CSV file in UTF-8"):
        read_known_lesion(tmp_path / "config", "demo", "case01")
    (tmp_path / "config" / "answers.csv").unlink()
    with pytest.raises(ConfigError, match="no answers table"):
        read_known_lesion(tmp_path / "config", "demo", "case01")


def test_a_montage_holds_the_single_pictures_with_gaps_and_lists_their_places(normalised: Path, tmp_path: Path) -> None:
    single = cut(normalised, tmp_path / "single")
    whole = cut(normalised, tmp_path / "montage", layout="montage")
    (entry,) = [entry for entry in whole.slices if entry.sequence is Sequence.PDW]
    parts = [part for part in single.slices if part.sequence is Sequence.PDW]
    assert [(tile.index, tile.position_mm) for tile in entry.tiles] == [(part.index, part.position_mm) for part in parts]
    grey, side = grey_of(tmp_path / "montage", entry), grey_of(tmp_path / "single", parts[0]).shape[0]
    assert grey.shape == (2 * side + 4, 3 * side + 4 * 2), "five tiles: three columns, two rows"
    for number, part in enumerate(parts):
        top, left = (place * (side + 4) for place in divmod(number, 3))
        assert np.array_equal(grey[top : top + side, left : left + side], grey_of(tmp_path / "single", part))
    assert not grey[side : side + 4].any()
    assert not grey[side + 4 :, 2 * (side + 4) :].any(), "no sixth tile"


@pytest.mark.parametrize("layout", ["single", "montage"])
def test_a_picture_has_the_size_that_is_sent_and_is_never_stretched(normalised: Path, tmp_path: Path, layout: str) -> None:
    record = cut(normalised, tmp_path, layout=layout, sent_px=512)
    for entry in record.slices:
        assert grey_of(tmp_path, entry).shape == (512, 512)
        columns = 3 if layout == "montage" else 1
        tile = (512 - (columns - 1) * 4) // columns
        assert entry.mm_per_px == pytest.approx(230 / tile, rel=0.01)
        assert entry.native_mm_per_px == pytest.approx((2.4, 2.4) if entry.sequence is Sequence.T1W else (2.0, 2.0))


def test_a_montage_of_odd_shape_is_letterboxed() -> None:
    tiles = [np.full((10, 10), 200, dtype=np.uint8)] * 2
    whole = letterbox(montage(tiles), 24)
    assert whole.shape == (24, 24)
    assert (whole[7:17] > 0).sum() == 200
    assert not whole[:7].any()
    assert not whole[17:].any()


def test_a_smaller_picture_averages_and_a_larger_one_invents_no_grey() -> None:
    fine = np.zeros((64, 64), dtype=np.float32)
    fine[::2] = 100
    assert resize(fine, 16)[4:-4, 4:-4] == pytest.approx(50, abs=8)
    large = resize(np.random.default_rng(1).uniform(10, 20, (20, 20)).astype(np.float32), 73)
    assert large.min() >= 10
    assert large.max() <= 20


def test_ct_is_shown_in_the_windows_that_are_asked_for(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path, ct_windows=["brain", "blood", "bone"])
    ct = [entry for entry in record.slices if entry.sequence is Sequence.CT]
    assert {entry.window_name: entry.window for entry in ct} == {"brain": (0.0, 80.0), "blood": (-20.0, 180.0), "bone": (-800.0, 2000.0)}
    assert len({entry.image_id for entry in record.slices}) == len(record.slices)
    by_window = {entry.window_name: grey_of(tmp_path, entry) for entry in ct if entry.index == ct[2].index}
    assert (by_window["brain"] == 255).mean() > (by_window["bone"] == 255).mean(), "bone is not white in its own window"
    others = {(entry.sequence, entry.window_name) for entry in record.slices if entry.sequence is not Sequence.CT}
    assert others == {(Sequence.T1W, "shared"), (Sequence.PDW, "own")}, "the T1 shares its window with the one after contrast agent"


def test_letters_are_drawn_only_where_no_brain_is() -> None:
    grey = np.full((100, 100), 50, dtype=np.uint8)
    nothing = np.zeros(grey.shape, dtype=bool)
    marked, found = mark_sides(grey, nothing, Plane.AXIAL)
    assert found
    assert (marked[:20, :12] == 255).any(), "R on the viewer's left"
    assert (marked[:20, -12:] == 255).any(), "L on the viewer's right"
    top = nothing.copy()
    top[:30] = True
    below, found = mark_sides(grey, top, Plane.CORONAL)
    assert found
    assert np.array_equal(below[:30], grey[:30])
    everywhere, found = mark_sides(grey, nothing | True, Plane.AXIAL)
    assert not found
    assert np.array_equal(everywhere, grey)
    assert mark_sides(grey, nothing, Plane.SAGITTAL)[1] is False


def test_the_digest_of_the_pixels_does_not_depend_on_the_file(normalised: Path, tmp_path: Path) -> None:
    record = cut(normalised, tmp_path)
    for entry in record.slices:
        assert entry.pixels_sha256 == hashlib.sha256(grey_of(tmp_path, entry).tobytes()).hexdigest() != entry.sha256


def test_thick_slices_with_gaps_are_placed_by_their_positions(tmp_path: Path) -> None:
    """Slices are 5 mm thick and 10 mm apart: the affine has the distance, and positions follow it, regardless of a sidecar."""
    write_shots(tmp_path, [Shot("T1w", "2d")])
    (path,) = tmp_path.rglob("*.nii.gz")
    scan = sitk.ReadImage(path.as_posix())
    kept = scan[:, :, ::2]
    assert kept.GetSpacing()[2] == pytest.approx(10.0)
    sitk.WriteImage(kept, path.as_posix())
    path.with_name(path.name.replace(".nii.gz", ".json")).write_text('{"SliceThickness": 5.0, "SpacingBetweenSlices": 5.0}')
    record = normalise(tmp_path / "sub-case01" / "case.json", tmp_path / "normalised")
    entries = cut(tmp_path / "normalised" / "case.json", tmp_path / "cut").slices
    volume = read_volume(tmp_path / "normalised" / record.series[0].path)
    for entry in entries:
        assert entry.position_mm == pytest.approx(volume.TransformIndexToPhysicalPoint([0, 0, entry.index])[2], abs=0.01)
    steps = {round((b.position_mm - a.position_mm) / (b.index - a.index), 2) for a, b in pairwise(entries)}
    assert steps == {10.0}


def test_uniform_slices_of_one_is_the_first_usable() -> None:
    assert uniform_slices(np.ones((5, 2, 2), dtype=bool), 1) == [0]
