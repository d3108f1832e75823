"""Nothing vanishes: every series that came in stands on the sheet of its case, and a preview shows no more than a scan that is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest

import deidentify_case
import ingest_case
from fixtures.commands import settings
from fixtures.deid import PLANTED, flat_deface, write_config, write_dicom_series, write_index, write_nifti_file
from neuralmedbench.deid.faces.deface import DefacedScan
from neuralmedbench.deid.leaks import find_leaks
from neuralmedbench.deid.review import previews
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, case_sheet
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.identity import Identity
from neuralmedbench.files.nifti import Volume
from neuralmedbench.records.case import CaseRecord, SeriesFate, State

assert flat_deface
BOLD = {"SeriesDescription": "ep2d bold Vandermeer", "ProtocolName": "ep2d bold", "StudyTime": "091200"}
FUNCTIONAL = "functional scan: name it in `sequence_map`, or in `sequence_overrides` of the case table, if it shall be used"


def defaced(volume: Volume, **_: Any) -> DefacedScan:
    return DefacedScan(volume, (), {}, np.zeros(volume.voxels.shape, bool))


@pytest.fixture
def study(tmp_path: Path) -> list[Path]:
    """Write a T1, the same one normalised, an fMRI, a localizer in two planes, and the T1 sent again."""
    files = write_dicom_series(tmp_path / "raw" / "1", number=1, slices=6)
    normalised = write_dicom_series(tmp_path / "raw" / "2", number=2, slices=6, ImageType=["ORIGINAL", "PRIMARY", "M", "ND", "NORM"])
    bold = write_dicom_series(tmp_path / "raw" / "3", number=3, slices=6, **BOLD)
    for gain, paths in ((1.25, normalised), (0.8, bold)):  # other pixels than the first
        for path in paths:
            image = pydicom.dcmread(path)
            image.PixelData = (image.pixel_array * gain).astype("<u2").tobytes()
            image.save_as(path)
    localizer = write_dicom_series(tmp_path / "raw" / "4", number=4, slices=2, SeriesDescription="localizer")
    return [*files, *normalised, *bold, *localizer, *write_dicom_series(tmp_path / "raw" / "5", number=5, slices=6)]


def clean(tmp_path: Path, files: list[Path], overrides: str = "") -> CaseRecord:
    config = write_config(tmp_path / "config", tmp_path, deidentification={"options": [113101, 113102, 113105]})
    first, second = tmp_path / "ingested" / "case.json", tmp_path / "deidentified" / "case.json"
    arguments = ["--benchmark", "mine", "--case", "c0ffee", "--files", str(write_index(tmp_path, files))]
    assert ingest_case.main([*arguments, *settings(overrides=overrides), "--out", str(first)]) == 0
    arguments = ["--benchmark", "mine", "--config", str(config), "--case", str(first), "--out", str(second)]
    assert deidentify_case.main(arguments) == 0
    return read_case(second)


def sheet(case: CaseRecord, folder: Path) -> str:
    stage = CaseStage(case, folder)
    return case_sheet(
        CaseStages(stage, CaseStage(case, folder / "none"), CaseStage(case, folder / "none")), ("", ""), folder / "sheet.html"
    )


def test_every_series_stands_on_the_sheet_used_or_not_with_its_reason_and_a_preview(
    tmp_path: Path, study: list[Path], flat_deface: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "deface", defaced)
    case = clean(tmp_path, study)
    again = {"reason": "the same images as series-01, sent again", "no_preview": "the same images as series-01"}
    assert case.raw_series == (
        SeriesFate(series_id="series-01", files=6, same_acquisition=("series-02",)),
        SeriesFate(series_id="series-02", files=6, same_acquisition=("series-01",), variant="intensity normalised"),
        SeriesFate(series_id="series-03", files=6, reason=FUNCTIONAL),
        SeriesFate(series_id="series-04", files=6, **again),
        SeriesFate(series_id="other-01", files=2, reason="localizer", no_preview="neither a face nor text could be removed from it"),
    )
    review = tmp_path / "deidentified" / "review"
    assert sorted(path.name for path in review.glob("*_preview.png")) == [f"series-0{number}_preview.png" for number in (1, 2, 3)]
    page = sheet(case, tmp_path / "deidentified")
    assert "Series that came in: 5, of which 2 are used" in page
    for line in (f"not used: {FUNCTIONAL}", "not used: the same images as series-01, sent again", "not used: localizer", "ep2d, 6 files"):
        assert line in page, line
    assert page.count("the same acquisition as") == 4  # both, under Look twice and in the list
    assert "series-02=none" in page
    # the raw description and the raw images stay in the private zone
    written = [path for path in (tmp_path / "deidentified").rglob("*") if path.is_file()]
    assert not [path for path in written for value in PLANTED if value.encode() in path.read_bytes()]
    assert "Vandermeer" in (tmp_path / "ingested" / "descriptions.json").read_text(encoding="utf-8")


def no_face(volume: Volume, **_: Any) -> DefacedScan:
    raise DeidentificationError


def front_alone(volume: Volume, **_: Any) -> DefacedScan:
    return DefacedScan(volume, ("outer_layer_removed",), {}, np.zeros(volume.voxels.shape, bool))


def bug(volume: Volume, **_: Any) -> DefacedScan:
    raise IndexError


@pytest.mark.usefixtures("flat_deface")
@pytest.mark.parametrize(
    ("deface", "why"),
    [
        (no_face, "its face could not be located"),
        (front_alone, "its face could not be located"),
        (bug, "its images cannot be converted"),
    ],
)
def test_an_unused_series_whose_face_is_not_located_has_no_preview_and_says_so(
    tmp_path: Path, study: list[Path], monkeypatch: pytest.MonkeyPatch, deface: Any, why: str
) -> None:
    monkeypatch.setattr(previews, "deface", deface)
    case = clean(tmp_path, study[:6] + study[12:18])
    assert not (tmp_path / "deidentified" / "review" / "series-02_preview.png").exists()
    assert f"no preview: {why}" in sheet(case, tmp_path / "deidentified")


def test_an_unused_series_with_text_in_its_pixels_has_no_preview(
    tmp_path: Path, study: list[Path], flat_deface: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image, ImageDraw

    monkeypatch.setattr(previews, "deface", defaced)
    for path in study[12:18]:
        image = pydicom.dcmread(path)
        pixels = np.kron(image.pixel_array, np.ones((4, 4), dtype=np.uint16))
        words = Image.new("L", pixels.shape[::-1], 0)
        ImageDraw.Draw(words).text((4, 4), "VANDERMEER 48213371", fill=255)
        pixels[np.asarray(words) > 128] = 1800
        image.Rows, image.Columns, image.PixelSpacing, image.PixelData = *pixels.shape, [0.875, 0.875], pixels.astype("<u2").tobytes()
        image.save_as(path)
    case = clean(tmp_path, study[:6] + study[12:18])
    assert not (tmp_path / "deidentified" / "review" / "series-02_preview.png").exists()
    assert "no preview: text may be burned into it" in sheet(case, tmp_path / "deidentified")


def test_the_series_of_a_case_that_is_kept_back_are_named_too(tmp_path: Path, study: list[Path], flat_deface: None) -> None:
    case = clean(tmp_path, study[12:18])
    page = sheet(case, tmp_path / "deidentified")
    assert "Series that came in: 1, of which 0 are used" in page
    assert f"not used: {FUNCTIONAL}" in page
    assert "no preview: its case is kept back" in page


def test_an_unused_nifti_of_several_volumes_shows_its_first(tmp_path: Path, flat_deface: None, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, ...]] = []

    def seen(volume: Volume, **_: Any) -> DefacedScan:
        shown.append(volume.voxels.shape)
        return defaced(volume)

    monkeypatch.setattr(previews, "deface", seen)
    files = write_dicom_series(tmp_path / "raw", slices=6)
    values = np.random.default_rng(1).integers(0, 900, (24, 28, 10, 3)).astype(np.int16)
    case = clean(tmp_path, [*files, write_nifti_file(tmp_path / "raw" / "c0ffee_bold.nii.gz", values)])
    assert [fate.series_id for fate in case.raw_series if fate.reason] == ["series-02"]
    assert shown == [(24, 28, 10)]


def test_what_the_list_of_series_says_by_itself_is_no_leak_and_what_it_took_from_the_input_is(
    tmp_path: Path, study: list[Path], flat_deface: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "deface", no_face)
    for path in study:
        image = pydicom.dcmread(path)
        image.PatientName = "Series^Preview^Face^Description"
        image.save_as(path)
    case = clean(tmp_path, study[:6] + study[12:18])
    assert (case.state, case.checks["leaks"]) == (State.OK, 0)
    listed = tmp_path / "deidentified" / "review" / "series.json"
    listed.write_text(listed.read_text(encoding="utf-8").replace("T1 SE TRA", "T1 SE Vandermeer"), encoding="utf-8")
    (leak,) = find_leaks(tmp_path / "deidentified", Identity(names=("Vandermeer^Johanna",)))
    assert (leak.file, leak.place) == ("review/series.json", "series-01 > description")
