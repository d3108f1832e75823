"""Burned-in text is detected and hidden, and anatomy is not taken for text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fixtures.deid import write_nifti_file
from neuralmedbench.deid.burned_in import hide, ocr
from neuralmedbench.deid.burned_in.constancy import closing, opening
from neuralmedbench.deid.burned_in.hide import (
    TextFoundError,
    count_text,
    find_burned_in,
    has_suspect_header,
    hide_burned_in,
    hide_text,
    reported_checks,
    stacked_along,
)
from neuralmedbench.deid.burned_in.lines import find_lines
from neuralmedbench.deid.pictures import without_text
from neuralmedbench.errors import DeidentificationError

pytestmark = pytest.mark.slow

NAME = "VANDERMEER 4821337"
SCANS = os.environ.get("NMB_REAL_SCANS", "")
FOUND = os.environ.get("NMB_FOUND_SCANS", "")


def head(kind: str = "mr", *, slices: int = 12, side: int = 160, seed: int = 0) -> np.ndarray:
    """Make a noisy ellipsoid whose content changes from slice to slice, shape (rows, columns, slices)."""
    return drawn_head(kind, slices, side, seed).copy()


@cache
def drawn_head(kind: str, slices: int, side: int, seed: int) -> np.ndarray:
    """Draw such an ellipsoid, once."""
    random = np.random.default_rng(seed)
    down, across, up = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side), np.linspace(-0.7, 0.7, slices), indexing="ij")
    radius = np.sqrt((down / 0.6) ** 2 + (across / 0.5) ** 2 + up**2)
    folds = np.sin(22 * down + 9 * up) * np.cos(19 * across - 13 * up)
    voxels = np.where(radius < 0.85, 500 + 90 * folds, np.where(radius < 0.95, 120, np.where(radius < 1.05, 850, 0)))
    if kind == "ct":
        return np.rint(np.where(radius < 1.05, np.where((radius > 0.85) & (radius < 0.95), 1200, 35 + 6 * folds), -1000)
                       + random.normal(0, 6, voxels.shape)).astype(np.int16)  # fmt: skip
    noise = random.normal(0, 9, (2, *voxels.shape))
    return np.rint(np.hypot(voxels + noise[0], noise[1])).astype(np.uint16)


def letters(text: str, size: int, *, rotated: bool = False) -> np.ndarray:
    """Return the opacity of a drawn text, 0 to 1: the packaged bitmap font for size 0, antialiased outlines otherwise."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size) if size else ImageFont.load_default_imagefont()
    picture = Image.new("L", (900, 80))
    ImageDraw.Draw(picture).text((2, 2), text, fill=255, font=font)
    drawn = np.asarray(picture, dtype=np.float32) / 255
    drawn = drawn[drawn.any(axis=1)][:, drawn.any(axis=0)]
    return np.rot90(drawn) if rotated else drawn


def write(
    voxels: np.ndarray, text: str | Callable[[int], str], colour: float, *, size: int = 12, at: str = "top", rotated: bool = False,
    slices: range | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Burn text into slices; returns the series and the mask of its letters."""
    done, where = voxels.copy(), np.zeros(voxels.shape, dtype=bool)
    for index in slices or range(voxels.shape[2]):
        ink = letters(text if isinstance(text, str) else text(index), size, rotated=rotated)[: voxels.shape[0] - 8, : voxels.shape[1] - 8]
        top = {"top": 4, "bottom": voxels.shape[0] - ink.shape[0] - 4, "middle": (voxels.shape[0] - ink.shape[0]) // 2}[at]
        area = (slice(top, top + ink.shape[0]), slice(4, 4 + ink.shape[1]), index)
        done[area] = np.rint(done[area] * (1 - ink) + colour * ink)
        where[area] = ink > 0.5
    return done, where


def recall(voxels: np.ndarray, where: np.ndarray) -> float:
    return float((find_burned_in(voxels).mask & where).sum() / where.sum())


@pytest.mark.parametrize("kind", ["mr", "ct"])
def test_a_scan_without_text_is_left_as_it_is(kind: str) -> None:
    voxels = head(kind)
    found = find_burned_in(voxels, None)
    assert not found
    assert not found.mask.any()
    assert hide_text(voxels).voxels is voxels


@pytest.mark.parametrize("kind", ["mr", "ct"])
@pytest.mark.parametrize(
    ("size", "colour", "at", "rotated"),
    [
        (0, 1.0, "top", False),
        (12, 1.0, "bottom", False),
        (16, 0.6, "top", False),
        (10, 2.5, "top", False),
        (12, 0.3, "top", False),
        (14, 1.0, "middle", False),
        (14, 0.0, "middle", False),
        (12, 1.0, "top", True),
    ],
    ids=["bitmap", "soft", "grey", "above the range", "dark grey", "over the brain", "dark over the brain", "rotated"],
)
def test_text_that_stands_in_every_slice_is_hidden(kind: str, size: int, colour: float, at: str, rotated: bool) -> None:
    plain = head(kind)
    low, high = float(plain.min()), float(plain.max())
    voxels, where = write(plain, NAME, low + colour * (high - low), size=size, at=at, rotated=rotated)
    found = find_burned_in(voxels)
    # dark letters outside the head lie on equally dark air and cannot be read
    seen = where & (np.abs(voxels.astype(float) - plain) > 0.1 * (high - low))
    assert (found.mask & seen).sum() >= 0.98 * seen.sum()
    clean = hide_burned_in(voxels, found)
    assert clean.dtype == voxels.dtype
    assert (clean[~found.mask] == voxels[~found.mask]).all()
    assert len(np.unique(clean[found.mask])) == 1


@pytest.mark.parametrize("size", [0, 14])
def test_text_that_changes_from_slice_to_slice_is_hidden(size: int) -> None:
    voxels, where = write(head(), lambda index: f"12:{7 * index % 60:02d}:{index:02d} {index}/12", 700, size=size)
    assert recall(voxels, where) >= 0.98


@pytest.mark.parametrize("slices", [range(3, 7), range(5, 6)], ids=["a few", "one"])
@pytest.mark.parametrize("size", [0, 14])
def test_text_in_some_slices_is_hidden_there_and_nowhere_else(slices: range, size: int) -> None:
    voxels, where = write(head(), NAME, 700, size=size, slices=slices)
    mask = find_burned_in(voxels).mask
    assert (mask & where).sum() >= 0.98 * where.sum()
    assert set(np.flatnonzero(mask.any(axis=(0, 1)))) == set(slices)


def test_text_that_a_lossy_compression_blurred_is_hidden() -> None:
    voxels, where = write(head(), NAME, 800, size=16)
    noisy = np.clip(voxels + np.random.default_rng(1).normal(0, 15, voxels.shape), 0, None).astype(np.uint16)
    assert recall(noisy, where) >= 0.98


def test_a_side_marker_is_hidden_and_counted_separately() -> None:
    voxels, where = write(head(), "L", 900, size=16)
    found = find_burned_in(voxels)
    assert (found.mask & where).sum() == where.sum()
    assert found.evidence["single_marks"] >= 1
    checks: Counter[str] = Counter()
    count_text(checks, found, "hide", "series")
    assert (checks["burned_in_series_searched"], checks["burned_in_series_hidden"]) == (1, 1)
    assert checks["burned_in_single_marks"] >= 1


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_dtype_and_any_order_of_axes_works(dtype: type, axis: int) -> None:
    voxels, where = write(head(slices=8), NAME, 900, size=0)
    turned: np.ndarray = np.moveaxis(voxels, 2, axis).astype(dtype)
    found = find_burned_in(turned, axis)
    assert (found.mask & np.moveaxis(where, 2, axis)).sum() == where.sum()


def test_duplicate_slices_and_a_constant_volume_are_not_text() -> None:
    assert not find_burned_in(np.repeat(head(slices=2), 6, axis=2))
    assert not find_burned_in(np.full((40, 40, 10), 7, dtype=np.int16))
    assert not find_burned_in(np.full((40, 40, 10), np.nan, dtype=np.float32))


def test_a_frame_of_padding_is_not_text() -> None:
    voxels = head("ct")
    down, across = np.ogrid[-1:1:160j, -1:1:160j]
    voxels[down**2 + across**2 > 1] = -2000
    voxels[:, 0] = voxels[-1] = 300
    assert not find_burned_in(voxels)


def test_text_that_remains_after_hiding_quarantines_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    voxels, _ = write(head(), NAME, 900, size=0)
    monkeypatch.setattr(hide, "hide_burned_in", lambda voxels, found: voxels.copy())
    found = find_burned_in(voxels)
    nothing_known = hide.BurnedInText(np.zeros_like(found.mask), found.boxes, found.evidence)
    monkeypatch.setattr(hide, "find_burned_in", lambda *_, **__: nothing_known)
    with pytest.raises(DeidentificationError, match="text remains"):
        hide_text(voxels)


@pytest.mark.parametrize(("size", "colour"), [(0, 255), (16, 255), (14, 120)])
def test_text_in_a_single_picture_is_hidden_without_tesseract(monkeypatch: pytest.MonkeyPatch, size: int, colour: int) -> None:
    from PIL import Image

    monkeypatch.setattr(hide, "ocr_available", lambda: False)
    plain = np.clip(head()[:, :, 6] / 4, 0, 255).astype(np.uint8)[:, :, np.newaxis]
    assert not without_text(Image.fromarray(plain[:, :, 0]))[1]
    written, where = write(plain, NAME, colour, size=size)
    picture, found = without_text(Image.fromarray(written[:, :, 0]))
    assert found.ocr is False
    assert (found.mask & where).sum() >= 0.98 * where.sum()
    assert (np.asarray(picture)[~found.mask[:, :, 0]] == written[:, :, 0][~found.mask[:, :, 0]]).all()


def test_coloured_text_on_a_grey_picture_is_hidden() -> None:
    from PIL import Image

    grey = np.clip(head()[:, :, 6] / 4, 0, 255).astype(np.uint8)
    _, where = write(grey[:, :, np.newaxis], NAME, 255, size=14)
    colours = np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    colours[where[:, :, 0]] = (200, 200, 0)
    picture, found = without_text(Image.fromarray(colours))
    assert picture.mode == "RGB"
    assert (found.mask & where).sum() >= 0.98 * where.sum()


@pytest.mark.skipif(not ocr.ocr_available(), reason="tesseract with its English data is not installed")
def test_tesseract_reads_what_it_is_sure_of_and_no_letter_is_kept() -> None:
    page = np.full((160, 400), 20, dtype=np.uint8)
    ink = letters("VANDERMEER", 20)
    page[20 : 20 + ink.shape[0], 30 : 30 + ink.shape[1]] = 20 + 200 * ink
    words, nothing = ocr.read_pages([page, np.clip(head()[:, :, 6] / 4, 0, 255).astype(np.uint8)])
    assert words is not None
    assert len(words) == 1
    assert nothing == []
    assert 9 <= words[0].length <= 11
    top, bottom, left, right = words[0].box
    assert top <= 24 <= bottom
    assert left <= 40 <= right
    assert not any(isinstance(value, str) for value in vars(words[0]).values())


@pytest.mark.skipif(not ocr.ocr_available(), reason="tesseract with its English data is not installed")
def test_many_pages_are_read_as_each_alone_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = []
    for number, text in enumerate(("VANDERMEER", "", "Oosterhaven", "MRN 48213371")):
        page = np.full((120 + 10 * number, 300), 20, dtype=np.uint8)
        ink = letters(text, 18) if text else np.zeros((1, 1))
        page[20 : 20 + ink.shape[0], 30 : 30 + ink.shape[1]] = 20 + 200 * ink
        pages.append(page)
    alone = [ocr.read_pages([page])[0] for page in pages]
    calls = []
    rows_of = ocr._rows_of

    def counted(some: list[ocr._Page]) -> list[dict[str, str]]:
        calls.append(len(some))
        return rows_of(some)

    monkeypatch.setattr(ocr, "_rows_of", counted)
    assert ocr.read_pages(pages) == alone
    assert [bool(words) for words in alone] == [True, False, True, True]
    assert calls == [4]


def test_a_page_at_which_tesseract_fails_affects_no_other_and_does_not_count_as_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_of(pages: list[ocr._Page]) -> list[dict[str, str]]:
        return [] if any(page.values.shape[0] > 300 for page in pages) else [{"level": "1", "page_num": "1", "text": ""} for _ in pages]

    monkeypatch.setattr(ocr, "ocr_available", lambda: True)
    monkeypatch.setattr(ocr, "_rows_of", rows_of)
    small, large = np.zeros((20, 20), dtype=np.uint8), np.zeros((500, 500), dtype=np.uint8)
    monkeypatch.setattr(ocr, "WANTED_SIDE_PX", 100)
    assert ocr.read_pages([small, large, small]) == [[], None, []]
    monkeypatch.setattr(hide, "ocr_available", lambda: True)
    with pytest.raises(DeidentificationError, match="tesseract failed"):
        find_burned_in(head()[:, :, 6:7], words=[None])


@pytest.mark.skipif(not ocr.ocr_available(), reason="tesseract with its English data is not installed")
def test_tesseract_is_used_if_the_header_is_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    for test in ("same_in_every_slice", "same_in_neighbours", "nearly_same", "one_colour"):
        monkeypatch.setattr(hide, test, named(test))
    monkeypatch.setattr(hide, "suspicious_lines", lambda *_: [])
    voxels, where = write(head(slices=6, side=256), "VANDERMEER", 1000, size=24)
    assert not find_burned_in(voxels)
    found = find_burned_in(voxels, suspect=True)
    assert found.ocr is True
    assert (found.mask & where).sum() >= 0.9 * where.sum()


def named(test: str) -> Callable[..., list[object]]:
    """Replace a detector by one that finds nothing."""

    def nothing(*_: object) -> list[object]:
        return []

    nothing.__name__ = test
    return nothing


@pytest.mark.parametrize("installed", [True, False])
def test_the_checks_of_patients_record_whether_tesseract_was_available_when_needed(
    monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    monkeypatch.setattr(hide, "ocr_available", lambda: installed)
    monkeypatch.setattr(hide, "words_in", lambda *_: [])
    checks: Counter[str] = Counter()
    for suspect in (False, True):
        count_text(checks, find_burned_in(head(), suspect=suspect), "hide", "series")
    told = reported_checks(checks, "patient")
    assert told["burned_in_series_searched"] == 2
    assert {name: number for name, number in told.items() if "ocr" in name} == {
        f"burned_in_series_{'read_by' if installed else 'without'}_ocr": 1
    }
    assert not [name for kind in ("phantom", "public") for name in reported_checks(checks, kind) if "ocr" in name]


def test_a_series_that_will_be_dropped_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    voxels, _ = write(head(), NAME, 900, size=0)
    searches = []

    def counted(planes: np.ndarray, *more: int, **settings: bool) -> hide.BurnedInText:
        searches.append(planes)
        return find_burned_in(planes, *more)

    monkeypatch.setattr(hide, "find_burned_in", counted)
    dropped = hide_text(voxels, policy="drop")
    assert dropped.burned_in
    assert dropped.voxels is voxels
    assert len(searches) == 1


@pytest.mark.parametrize(("size", "colour"), [(0, 255), (17, 255), (17, 190)])
def test_typed_lines_over_the_head_of_a_single_picture_are_hidden(monkeypatch: pytest.MonkeyPatch, size: int, colour: int) -> None:
    monkeypatch.setattr(hide, "ocr_available", lambda: False)
    plain = np.clip(head(side=256)[:, :, 6:7] / 4, 0, 255).astype(np.uint8)
    written, where = write(plain, NAME, colour, size=size, at="middle")
    assert not find_burned_in(plain)
    found = find_burned_in(written)
    assert (found.mask & where).sum() >= 0.9 * where.sum()
    assert found.mask.mean() < 0.12


@pytest.mark.parametrize("side", [3, 15])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_openings_and_closings_are_those_of_scipy(dtype: type, side: int) -> None:
    from scipy import ndimage

    for shape in ((40, 50), (2, 9), (1, 1)):
        plane: np.ndarray = np.random.default_rng(0).normal(0, 60, shape).astype(dtype)
        assert (opening(plane, side) == ndimage.grey_opening(plane, size=(side, side))).all()
        assert (closing(plane, side) == ndimage.grey_closing(plane, size=(side, side))).all()


@pytest.mark.parametrize(
    ("tags", "suspect"),
    [
        ({"ImageType": ["ORIGINAL", "PRIMARY", "M"]}, False),
        ({"ImageType": ["DERIVED", "PRIMARY", "DIFFUSION", "ADC"]}, False),
        ({"ImageType": ["DERIVED", "SECONDARY"]}, True),
        ({"BurnedInAnnotation": "YES"}, True),
        ({"ConversionType": "WSD"}, True),
        ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7"}, True),
        ({"BitsStored": 8}, True),
    ],
)
def test_a_header_may_ask_for_a_second_opinion(tags: dict[str, object], suspect: bool) -> None:
    from pydicom.dataset import Dataset

    header = Dataset()
    for keyword, value in tags.items():
        setattr(header, keyword, value)
    assert has_suspect_header(header) is suspect


def test_the_slice_axis_follows_from_the_number_of_files_or_the_spacing() -> None:
    assert stacked_along((180, 240, 192), np.eye(4), 180) == 0
    assert stacked_along((64, 64, 20), np.diag([1, 1, 5, 1.0])) == 2
    assert stacked_along((64, 64, 64), np.eye(4), 64) is None


def test_stripes_and_blobs_are_not_lines_of_text() -> None:
    marks = np.zeros((80, 80), dtype=bool)
    marks[10:70, ::20] = True
    marks[30:50, 30:50] = True
    assert find_lines(marks) == []


@pytest.mark.parametrize("policy", ["hide", "drop"])
def test_a_series_with_text_is_hidden_or_dropped_by_config(tmp_path: Path, policy: hide.Policy) -> None:
    from neuralmedbench.deid.cleaning import Cleaning
    from neuralmedbench.deid.headers.rules import HeaderRules
    from neuralmedbench.deid.stage import _without_text
    from neuralmedbench.deid.values import DateShift
    from neuralmedbench.files.nifti import read_nifti
    from neuralmedbench.records.case import CaseRecord, Sequence, Series

    voxels, where = write(head(), NAME, 900, size=0)
    volume = read_nifti(write_nifti_file(tmp_path / "scan.nii.gz", voxels.astype(np.int16)))
    series = Series(series_id="series-01", path="scan.nii.gz", modality="MR", sequence=Sequence.T1W)
    case = CaseRecord(benchmark="mine", case_id="c0ffee", patient_id="beef00000001", stage="ingest", series=(series,))
    rules = HeaderRules(b"a key of the tests, long enough", "beef00000001", DateShift(-100))
    cleaning = Cleaning(case=case, source=tmp_path, out=tmp_path / "out", rules=rules, burned_in=policy)
    if policy == "drop":
        with pytest.raises(TextFoundError, match="series-01"):
            _without_text(series, volume, cleaning)
        assert cleaning.checks["burned_in_series_dropped"] == 1
        return
    clean, hidden = _without_text(series, volume, cleaning)
    assert hidden is not None
    assert hidden[where].all()
    assert cleaning.checks["burned_in_series_hidden"] == 1
    assert len(np.unique(clean.voxels[where])) == 1


@pytest.mark.skipif(not SCANS, reason="NMB_REAL_SCANS names no folder of real scans")
def test_no_text_is_found_in_real_scans_that_have_none() -> None:
    """A stereotactic frame, a skull-stripped brain in integers, thresholded vessels, a padded series."""
    import nibabel
    import pydicom

    wrong = []
    files = [pydicom.dcmread(path) for path in Path(SCANS, "dicom", "vs-seg-001_t1c").glob("*.dcm")]
    files.sort(key=lambda file: int(file.InstanceNumber))
    if find_burned_in(np.stack([file.pixel_array for file in files], axis=2)):
        wrong.append("vs-seg-001_t1c")
    for name in ("other/stroke_M2208_T2w", "other/ct_avm_cta", "other/niivue_register_T2w"):
        path = Path(SCANS, "nifti", f"{name}.nii.gz")
        if find_burned_in(np.asanyarray(nibabel.Nifti1Image.from_filename(path).dataobj)):
            wrong.append(path.name)
    assert wrong == []


@cache
def few_greys(*, levels: int, clipped: float = 1.0) -> np.ndarray:
    """Make a smooth isotropic head of few grey levels, in which neighbouring planes have equal values by chance."""
    from scipy import ndimage

    random = np.random.default_rng(0)
    radius = np.linalg.norm(np.stack(np.meshgrid(*(np.linspace(-1, 1, 96) / half for half in (0.8, 0.9, 0.75)), indexing="ij")), axis=0)
    folds = ndimage.gaussian_filter(random.normal(0, 1, radius.shape), 2.0)
    brain = 0.55 + 0.12 * np.tanh(folds / folds.std())
    voxels = ndimage.gaussian_filter(np.where(radius < 0.85, brain, np.where(radius < 0.92, 0.1, np.where(radius < 1, 0.95, 0.0))), 0.8)
    return np.rint(np.clip(voxels + np.abs(random.normal(0, 0.004, voxels.shape)), 0, clipped) / clipped * levels).astype(np.uint8)


@pytest.mark.parametrize("levels", [60, 100, 255])
def test_equal_values_of_neighbouring_planes_are_chance_in_a_scan_of_few_grey_levels(levels: int) -> None:
    assert find_burned_in(few_greys(levels=levels), None).boxes == ()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("colour", [1.0, 0.6], ids=["white", "grey of the brain"])
def test_text_in_three_slices_of_such_a_scan_is_found_along_every_axis(axis: int, colour: float) -> None:
    plain = few_greys(levels=100)
    voxels, where = write(plain, "DOE 48213", 100 * colour, size=0, at="middle", slices=range(40, 43))
    found = find_burned_in(np.moveaxis(voxels, 2, axis), axis)
    assert (found.mask & np.moveaxis(where, 2, axis)).sum() >= 0.95 * where.sum()
    assert found.mask.mean() < 0.02


def test_greys_that_are_clipped_in_every_slice_are_not_text() -> None:
    assert find_burned_in(few_greys(levels=255, clipped=0.6)[:, :, 40:52]).boxes == ()


def cut_off_at_zero(level: float, blur: float, seed: int) -> np.ndarray:
    """Make a series with noise clipped at zero: in air, zeros of neighbouring slices coincide by chance in spots that look like letters."""
    from scipy import ndimage

    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(0, 1, (200, 200, 12)), (blur, blur, 0))
    voxels = head(slices=12, side=200, seed=seed) / 8
    voxels[voxels < 5] = 0
    return np.clip(np.rint(voxels + 4.5 / noise.std() * noise + 4 * level), 0, None).astype(np.uint16)


# seeds, out of many, for which the test of neighbouring slices once detected text
@pytest.mark.parametrize(("level", "blur", "seed"), [(0.4, 0.6, 1), (0.4, 1.2, 0), (0.5, 1.2, 0)])
def test_noise_clipped_at_zero_is_not_text(level: float, blur: float, seed: int) -> None:
    assert not find_burned_in(cut_off_at_zero(level, blur, seed)).boxes


def test_letters_in_a_few_slices_of_such_a_series_are_still_found() -> None:
    voxels, where = write(cut_off_at_zero(0.5, 1.2, 1), NAME, 120, slices=range(5, 8))
    found = find_burned_in(voxels)
    assert (found.mask & where).sum() >= 0.9 * where.sum()
    assert found.mask.mean() < 0.05


@cache
def flat_brain() -> np.ndarray:
    """Make a smooth brain without skull on empty ground, grey matter 0.65 and white matter 1, shape (96, 96, 96)."""
    from scipy import ndimage

    random = np.random.default_rng(3)
    radius = np.linalg.norm(np.stack(np.meshgrid(*(np.linspace(-1, 1, 96) / half for half in (0.8, 0.9, 0.75)), indexing="ij")), axis=0)
    folds = ndimage.gaussian_filter(random.normal(0, 1, radius.shape), 3.0)
    white = ndimage.gaussian_filter((radius + 0.3 * folds / folds.std() < 0.75).astype(float), 1.0)
    return np.where(radius < 0.9, 0.65 + 0.35 * white, 0.0)


def saturated(kind: str) -> np.ndarray:
    """Return the brain in 8 bits: normalised (flat white matter), clipped, or saturated by a coil on one side."""
    brain = flat_brain()
    if kind == "coil":
        return np.rint(255 * np.clip(brain * np.exp(np.linspace(-0.7, 0.7, 96))[:, np.newaxis, np.newaxis], 0, 1)).astype(np.uint8)
    top, white = {"normalised": (1.6, 1.0), "clipped": (0.8, 1.0), "window of 100 greys": (2.55, 1.0)}[kind]
    return np.rint(255 * np.clip(brain / top, 0, white)).astype(np.uint8)


@pytest.mark.parametrize("kind", ["normalised", "clipped", "window of 100 greys", "coil"])
@pytest.mark.parametrize("slab", [False, True], ids=["whole", "slab"])
def test_flat_or_clipped_white_matter_is_not_text(kind: str, slab: bool) -> None:
    voxels = saturated(kind)
    part = voxels[20:76, 20:76, 35:60] if slab else voxels
    for axis in (0, 1, 2):
        assert find_burned_in(part, axis).boxes == ()


@pytest.mark.parametrize("kind", ["normalised", "clipped", "coil"])
def test_letters_beside_such_a_brain_are_found(kind: str) -> None:
    voxels, where = write(np.pad(saturated(kind), ((24, 0), (0, 0), (0, 0))), "DOE 48213", 200, size=0, slices=range(40, 43))
    found = find_burned_in(voxels)
    assert (found.mask & where).sum() == where.sum()
    assert found.mask.mean() < 0.01


@pytest.mark.skipif(not FOUND, reason="NMB_FOUND_SCANS names no folder of scans that failed")
def test_no_text_is_found_over_a_normalised_brain_of_8_bits() -> None:
    import nibabel

    voxels = np.asanyarray(nibabel.Nifti1Image.from_filename(Path(FOUND, "8bit-saturated-brain", "eun_T1w.nii.gz")).dataobj)
    assert hide_text(voxels, None).voxels is voxels


@pytest.mark.parametrize("at", ["top", "middle"])
@pytest.mark.parametrize("colour", [33, 75, 117, 159, 201, 243])
@pytest.mark.parametrize("window", [(0, 80), (-135, 215)])
def test_letters_of_any_grey_in_a_few_slices_of_a_windowed_ct_are_found(window: tuple[int, int], colour: int, at: str) -> None:
    """Air and bone are clipped, so that their values stay in place for another reason than text, and touch letters."""
    low, high = window
    plain = np.rint(255 * np.clip((head("ct") - low) / (high - low), 0, 1)).astype(np.uint8)
    voxels, where = write(plain, "DOE 48213", colour, size=0, at=at, slices=range(5, 8))
    seen = where & (np.abs(voxels.astype(int) - plain) > 25)
    found = find_burned_in(voxels)
    assert (found.mask & seen).sum() >= 0.9 * seen.sum()
    assert not find_burned_in(plain)


@pytest.mark.parametrize("corner", ["first", "last"])
@pytest.mark.parametrize("size", [0, 10, 13])
def test_boxes_fit_lines_of_text_in_a_corner_of_an_echo_planar_scan(size: int, corner: str) -> None:
    """Coarse pixels shown large: noise of the air and the head's ghost lie beside the letters."""
    small = head(slices=20, side=72, seed=4)
    ghost = np.rint(0.08 * np.roll(small, 36, axis=0))
    voxels = np.repeat(np.repeat(np.clip(small + ghost - 12, 0, None), 3, axis=0), 3, axis=1).astype(np.uint16)
    inks = [letters(text, size) for text in ("VANDERMEER", "12.03.1961")]
    high, wide = sum(ink.shape[0] for ink in inks) + 3, max(ink.shape[1] for ink in inks)
    top, left = (3, 3) if corner == "first" else (voxels.shape[0] - high - 3, voxels.shape[1] - wide - 3)
    row = top
    for ink in inks:
        area = (slice(row, row + ink.shape[0]), slice(left, left + ink.shape[1]))
        voxels[area] = np.rint(voxels[area] * (1 - ink[:, :, np.newaxis]) + 700 * ink[:, :, np.newaxis])
        row += ink.shape[0] + 3
    mask = find_burned_in(voxels).mask.any(axis=2)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    assert top - 5 <= rows[0] <= top
    assert top + high <= rows[-1] + 1 <= top + high + 5
    assert left - 5 <= columns[0] <= left
    assert left + wide <= columns[-1] + 1 <= left + wide + 5
