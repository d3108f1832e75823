"""The view service: a view is the slice of the volume, byte for byte, and nothing else is ever shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from PIL import Image

from cut_slices import main as cut_slices
from fixtures.commands import settings
from fixtures.imaging import LESION_MM, nine_scans, part_of
from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.imaging.scans import load_scan
from neuralmedbench.imaging.views import ViewService, list_views, places_of
from neuralmedbench.imaging.windows import CT_WINDOWS
from neuralmedbench.records.case import CaseRecord, Plane
from neuralmedbench.records.views import CT_WINDOW_NAMES, MR_WINDOWS, SliceView, ViewRules, ViewScan

pytestmark = pytest.mark.slow

RULES = ViewRules(planes=("axial", "coronal", "sagittal"), windows=(*MR_WINDOWS, *CT_WINDOW_NAMES), zooms=(1, 2, 4))
POLICY = SlicesConfig(policy="uniform", per_sequence=6, field_of_view_mm=230.0)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Give a project with one normalised case, and its slices in `cut/`."""
    root = tmp_path_factory.mktemp("views")
    folder = root / "data/normalised/demo/sub-case01"
    part_of(nine_scans(tmp_path_factory, worker_id), folder, "T1w", "PDw", "dwi")
    arguments = ["--case", str(folder / "case.json"), *settings(slices={"per_sequence": 6})]
    assert cut_slices([*arguments, "--out-pictures", str(root / "cut/png"), "--out", str(root / "cut/case.json")]) == 0
    return root


@pytest.fixture(scope="module")
def case(root: Path) -> CaseRecord:
    return read_case(root / "data/normalised/demo/sub-case01/case.json")


@pytest.fixture(scope="module")
def scans(root: Path, case: CaseRecord) -> dict[str, ViewScan]:
    """Give what may be shown, by name."""
    return {scan.name: scan for scan in list_views(case, root / "data/normalised/demo/sub-case01", RULES, POLICY)}


@pytest.fixture(scope="module")
def service(root: Path) -> ViewService:
    return ViewService(lambda _: None, root)


def view(scan: ViewScan, number: int, plane: str = "axial", **changes: object) -> SliceView:
    return SliceView(scan=scan, plane=plane, number=number, window=scan.windows[0], **changes)


def test_a_view_is_the_slice_of_the_volume_byte_for_byte(root, case, scans, service) -> None:
    """By hand, with numpy alone: take the slice, cut the square about the middle, map the window to grey."""
    series = next(entry for entry in case.series if entry.sequence == "PDw")
    folder = root / "data/normalised/demo/sub-case01"
    voxels = sitk.GetArrayFromImage(sitk.ReadImage(str(folder / series.path)))
    low, high = series.window
    place = service._opened(scans["PDw"]).places["axial"][11]
    grey = service.grey(view(scans["PDw"], 12))
    top, left = (round(middle - (len(grey) - 1) / 2) for middle in place.centre)
    expected = np.full(grey.shape, voxels.min())
    for row in range(len(grey)):
        for column in range(len(grey)):
            if 0 <= row + top < voxels.shape[1] and 0 <= column + left < voxels.shape[2]:
                expected[row, column] = voxels[11, row + top, column + left]
    by_hand = np.clip((expected - np.float32(low)) / np.float32(high - low) * 255, 0, 255).round().astype(np.uint8)
    assert np.array_equal(grey, by_hand)


def test_views_equal_the_pictures_of_the_slices_stage(root, scans, service) -> None:
    cut = read_case(root / "cut/case.json").slices
    other = [entry for entry in cut if service(view(scans[entry.sequence], entry.index + 1)) != entry.sha256]
    assert len(cut) >= 16
    assert {entry.sequence for entry in cut} == {"T1w", "PDw", "dwi"}
    # a thick turned slice lies under two thin ones of the scan that leads; the middle of one of them may be a pixel beside that of the other
    assert len(other) <= 1
    for entry in other:
        assert entry.sequence == "PDw"
        one, two = np.asarray(Image.open(root / "cut" / entry.path)), service.grey(view(scans["PDw"], entry.index + 1))
        shifts = [np.roll(two, (down, right), (0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1)]
        assert any(np.array_equal(one[2:-2, 2:-2], moved[2:-2, 2:-2]) for moved in shifts)
    written = root / view(scans["T1w"], cut[0].index + 1).path
    assert written.read_bytes() == (root / "cut" / cut[0].path).read_bytes()


def test_a_new_service_cuts_equal_bytes(root, scans, service) -> None:
    asked = view(scans["dwi"], 20, "coronal", zoom=2, at=(700, 450))
    first = service(asked), (root / asked.path).read_bytes()
    (root / asked.path).unlink()
    again = ViewService(lambda _: None, root)
    assert (again(asked), (root / asked.path).read_bytes()) == first


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
@pytest.mark.parametrize("name", ["T1w", "PDw"])
def test_a_place_in_the_patient_is_where_the_list_says(scans, service, plane, name) -> None:
    """The lesion is brightest (darkest in T1) at the place that the listed geometry gives, also in a zoomed view about it."""
    scan = scans[name]
    slices = scan.of_plane(plane)
    number = slices.nearest(LESION_MM["xyz".index({"axial": "z", "coronal": "y", "sagittal": "x"}[plane])])
    corner = np.array(slices.corner_mm) + (number - 1) * np.array(slices.next_mm)
    x, y = (float((np.array(LESION_MM) - corner) @ edge / (edge @ edge)) for edge in (np.array(slices.right_mm), np.array(slices.down_mm)))
    assert view(scan, number, plane).shows(LESION_MM)
    for zoom in (1, 4):
        asked = view(scan, number, plane, zoom=zoom, at=(round(1000 * x), round(1000 * y)) if zoom > 1 else (500, 500))
        grey = service.grey(asked)
        column, row = (int(part * len(grey)) for part in ((x, y) if zoom == 1 else (0.5, 0.5)))
        around = grey[row - 2 : row + 3, column - 2 : column + 3]
        assert (around.max() < 60) if name == "T1w" else (around.min() > 220)
        assert asked.shows(LESION_MM)
    assert not view(scan, number, plane, zoom=4, at=(round(1000 * x) - 200, round(1000 * y))).shows(LESION_MM)


def test_every_slice_has_its_own_place_even_if_the_scan_that_leads_has_one_slice(root, case) -> None:
    scan = load_scan(case.series[1], root / "data/normalised/demo/sub-case01")
    single = replace(scan, image=scan.image[:, :, 10:11], brain=scan.brain[10:11])
    for leader in (single, scan):
        assert [place.index for place in places_of(scan, leader, Plane.AXIAL)] == list(range(len(scan.brain)))


def test_only_what_the_rules_name_is_listed(root, case) -> None:
    rules = ViewRules(planes=("coronal",), windows=("own", "brain"), zooms=(1,))
    listed = list_views(case, root / "data/normalised/demo/sub-case01", rules, POLICY)
    assert {(scan.windows, tuple(entry.plane for entry in scan.planes)) for scan in listed} == {(("own",), ("coronal",))}
    assert set(CT_WINDOW_NAMES) == set(CT_WINDOWS)
    assert all(1 <= entry.first_in_head < entry.last_in_head <= entry.slices for scan in listed for entry in scan.planes)


def test_a_window_brightens_what_is_dark(scans, service) -> None:
    means = [service.grey(replace(view(scans["PDw"], 15), window=name)).mean() for name in ("dark", "own", "bright")]
    assert means[0] > means[1] > means[2]


def test_nothing_is_cut_that_may_not_be_shown_and_no_other_volume(root, scans) -> None:
    def refuse(_: SliceView) -> None:
        message = "pending"
        raise DeidentificationError(message)

    asked = view(scans["dwi"], 3)
    (root / asked.path).unlink(missing_ok=True)
    with pytest.raises(DeidentificationError):
        ViewService(refuse, root)(asked)
    assert not (root / asked.path).exists()
    for other in (replace(scans["dwi"], case_sha256="0" * 64), replace(scans["dwi"], volume_sha256="0" * 64)):
        with pytest.raises(DataError, match="no longer those of the prompts"):
            ViewService(lambda _: None, root)(view(other, 3))
    volume = next((root / "data/normalised/demo/sub-case01").rglob(f"{scans['dwi'].series_id}.nii"))
    before = volume.read_bytes()
    volume.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(DataError, match="not the file of its record"):
        ViewService(lambda _: None, root)(asked)
    volume.write_bytes(before)
    assert ViewService(lambda _: None, root)(asked) == sha256_of(root / asked.path)
    assert np.asarray(Image.open(root / asked.path)).ndim == 2
