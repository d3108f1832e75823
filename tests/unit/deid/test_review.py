"""The review before data may be used: deliberate errors must be visible, and the sheets must be safe to open."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fixtures.deid import KEY, PLANTED, head_voxels, write_dicom_series
from neuralmedbench.deid.audit import AuditRules, audit_cases
from neuralmedbench.deid.headers.cleaner import HeaderCleaner, clean_series
from neuralmedbench.deid.headers.diff import ACTIONS, changes, snapshot
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.deid.review.pieces import border_views, surface_views, upright, write_header_piece, write_scan_pieces
from neuralmedbench.deid.review.sheet import CaseStage, CaseStages, brain_line, case_sheet
from neuralmedbench.deid.review.signature import reviewed_files
from neuralmedbench.deid.review.write import IndexLine, index_page
from neuralmedbench.deid.score.tally import ScoreTally, sum_scores
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files import dicom
from neuralmedbench.files.json_files import read_json, write_json
from neuralmedbench.files.nifti import Volume
from neuralmedbench.files.pages.page import STYLE
from neuralmedbench.files.plain_pictures import COLOUR, GREYS, LETTER_PX, lettered, outlined, side_by_side, to_levels, write_levels
from neuralmedbench.files.volumes import image_like, write_volume
from neuralmedbench.imaging import review_pieces as imaging_pieces
from neuralmedbench.imaging.review_pieces import mirror_reference, mirrored_margin
from neuralmedbench.records.case import CaseRecord, Plane, Sequence, Series, Slice, State, Tile
from neuralmedbench.runtime.atomic_write import write_text

RULES = HeaderRules(KEY, "beef00000001", DateShift(-100))
SIZES = (3.5, 3.5, 7.0)
AFFINE = np.diag([3.5, 3.5, 7.0, 1.0])


# changes of a header


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str]]:
    """Clean a series with identifiers in every part of the header; returns the changes."""
    folder, found = tmp_path_factory.mktemp("headers"), Counter[tuple[str, str]]()
    write_dicom_series(folder / "raw", slices=3)
    clean_series(folder / "raw", folder / "clean", RULES, found)
    return found


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("PatientAddress", {"removed"}),
        ("private element", {"removed"}),
        ("PatientBirthDate", {"removed", "emptied"}),
        ("PatientID", {"replaced"}),
        ("StudyInstanceUID", {"replaced"}),
        ("StudyDate", {"shifted"}),
        ("StudyDescription", {"cleaned"}),
        ("PatientIdentityRemoved", {"added"}),
        ("EchoTime", {"kept"}),
    ],
)
def test_the_header_diff_names_the_action_on_an_element(changed: Counter[tuple[str, str]], name: str, actions: set[str]) -> None:
    found = {action for other, action in changed if other == name}
    assert found
    assert found <= actions


def test_the_header_diff_names_elements_and_never_shows_a_value(tmp_path: Path, changed: Counter[tuple[str, str]]) -> None:
    write_header_piece(tmp_path, "series-01", changed)
    text = (tmp_path / "review" / "series-01_headers.json").read_text(encoding="utf-8")
    assert [value for value in (*PLANTED, "山田", "203103", "203012") if value.casefold() in text.casefold()] == []
    assert set(read_json(tmp_path / "review" / "series-01_headers.json")) <= set(ACTIONS)


def test_the_header_diff_is_made_by_comparing_and_sees_what_a_cleaner_forgot(tmp_path: Path) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    before = snapshot(dataset)
    HeaderCleaner(RULES).clean(dataset)
    dataset.InstitutionName = "Oosterhaven General Hospital"
    assert changes(before, dataset)["InstitutionName", "kept"] == 1


def test_an_element_that_only_a_later_file_holds_is_compared_too(tmp_path: Path) -> None:
    write_dicom_series(tmp_path / "raw", slices=2)
    path = sorted((tmp_path / "raw").glob("*.dcm"))[1]
    dataset = dicom.read_dicom(path)
    dataset.PatientMotherBirthName = "Vandermeer"
    dataset.save_as(path)
    found: Counter[tuple[str, str]] = Counter()
    clean_series(tmp_path / "raw", tmp_path / "clean", RULES, found)
    assert found["PatientMotherBirthName", "removed"] == 1


def test_elements_in_a_sequence_are_named_by_their_path_and_counted_with_it_if_it_is_removed(tmp_path: Path) -> None:
    dataset = dicom.read_dicom(write_dicom_series(tmp_path, slices=1)[0])
    before = snapshot(dataset)
    assert ("RequestAttributesSequence > RequestedProcedureDescription", "LO") in {(name, kind) for name, kind, _ in before.values()}
    del dataset.RequestAttributesSequence
    assert [name for name, action in changes(before, dataset) if action == "removed"] == ["RequestAttributesSequence"]


# faces and burned-in text


def test_a_nose_stands_out_in_the_profile_of_a_surface() -> None:
    def profile(voxels: np.ndarray) -> int:
        views = surface_views(voxels.astype(np.float32), SIZES)
        from_right = views[:, views.shape[1] // 3 : 2 * views.shape[1] // 3]
        return int(np.flatnonzero((from_right > 0).any(axis=0)).max())

    face = head_voxels((48, 56, 20), face=False)
    nosed = face.copy()
    nosed[22:27, 50:55, 6:10] = 800
    assert profile(nosed) > profile(face) + 3


def test_the_surface_is_shown_from_the_front_the_right_and_the_left() -> None:
    voxels = np.zeros((40, 60, 40), dtype=np.float32)
    voxels[10:30, 10:50, 5:35] = 100
    voxels[5:12, 25:30, 18:22] = 100  # something at the patient's left ear (RAS: x runs to the right)
    views = surface_views(voxels, (1.5, 1.5, 1.5))
    front, right, left = views[:, :40], views[:, 44:104], views[:, 108:]
    columns = np.flatnonzero((front > 0).any(axis=0))
    assert columns.mean() > front.shape[1] / 2, "the patient's left is at the right of the front view"
    rough = [float(np.abs(np.diff(view.astype(int), axis=1)).sum()) for view in (right, left)]
    assert rough[1] > rough[0], "the left view shows it, the right one does not"


@pytest.mark.parametrize("stored", ["RAS", "LPS"])
def test_a_scan_is_brought_upright_whatever_its_axes(stored: str) -> None:
    voxels, affine = head_voxels(), AFFINE.copy()
    if stored == "LPS":
        voxels, affine = voxels[::-1, ::-1], np.diag([-3.5, -3.5, 7.0, 1.0])
    turned, sizes = upright(Volume(voxels, affine))
    assert np.array_equal(turned, head_voxels())
    assert sizes == SIZES


@pytest.mark.parametrize("thick", [True, False])
def test_dim_letters_on_the_rim_show_beside_a_bright_head_and_a_clean_rim_is_dark(thick: bool) -> None:
    generator = np.random.default_rng(1)
    clean = np.abs(generator.normal(0, 5, (120, 120, 30))).astype(np.float32)
    clean[30:90, 15:105, 3:27] += 1000
    letters = np.array(Image.new("L", (120, 120)))
    letters[4:14:3, 8:60] = 1
    written = clean + 120 * letters.T[:, ::-1, None]
    sizes = (1.0, 1.0, 5.0) if thick else (1.0, 1.0, 1.0)
    plain, marks = border_views(clean, sizes), border_views(written, sizes)
    assert plain.shape == marks.shape
    assert int((marks.astype(int) - plain > GREYS // 5).sum()) > 100
    assert int((plain[:12] > GREYS // 5).sum()) < 20 if thick else plain.shape[1] > plain.shape[0]


def test_pieces_of_a_scan_are_small_pictures_without_any_text(tmp_path: Path) -> None:
    write_scan_pieces(tmp_path, "series-01", Volume(head_voxels(), AFFINE))
    for name in ("surface", "border"):
        path = tmp_path / "review" / f"series-01_{name}.png"
        with Image.open(path) as picture:
            assert picture.mode == "P"
            assert set(picture.info) <= {"transparency"}
        assert path.stat().st_size < 20_000
        assert b"tEXt" not in path.read_bytes()


# sides, outline, registration


def test_levels_outlines_and_letters() -> None:
    levels = to_levels(np.linspace(0, 1, 100).reshape(10, 10), 0.0, 1.0)
    assert (levels.min(), levels.max()) == (0, GREYS - 1)
    mask = np.zeros((10, 10), dtype=bool)
    mask[2:8, 2:8] = True
    drawn = outlined(levels, mask) == COLOUR
    assert drawn.sum() == 20
    assert not drawn[4, 4]
    sheet = lettered(levels, ("R", "L", "A", "P"))
    assert sheet.shape == (10 + 2 * LETTER_PX, 10 + 2 * LETTER_PX)
    sides = (sheet[:, :LETTER_PX], sheet[:, -LETTER_PX:], sheet[:LETTER_PX], sheet[-LETTER_PX:])
    assert all((side == COLOUR).any() for side in sides)
    assert side_by_side([levels, sheet]).shape == (sheet.shape[0], 10 + 4 + sheet.shape[1])


def lopsided(shift: int = 0, *, mirrored: bool = False) -> np.ndarray:
    """Make a head with a structure on its left, shape (Z, Y, X), LPS+."""
    voxels = head_voxels((48, 56, 40), face=False).astype(np.float32)
    voxels[6:16, 20:32, 12:24] = 250
    voxels[12:18, 8:14, 24:30] = 1200
    array = np.roll(voxels.T[:, ::-1, ::-1], shift, axis=2)
    return np.ascontiguousarray(array[:, :, ::-1] if mirrored else array)


def volume(voxels: np.ndarray) -> Any:
    """Convert an array (Z, Y, X) to a SimpleITK image with 3.5 mm voxels."""
    import SimpleITK as sitk

    image = sitk.GetImageFromArray(voxels)
    image.SetSpacing((3.5, 3.5, 3.5))
    return image


@pytest.fixture(scope="module")
def normalised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a normalised case: a reference, a series that fits, one that is 7 mm off, and one that is mirrored."""
    folder = tmp_path_factory.mktemp("normalised")
    made = {"series-01": lopsided(), "series-02": lopsided() * 0.5, "series-03": lopsided(2), "series-04": lopsided(mirrored=True)}
    entries = []
    for name, voxels in made.items():
        image = volume(voxels)
        write_volume(folder / "volumes" / f"{name}.nii", image)
        write_volume(folder / "volumes" / f"{name}_brain.nii", image_like((lopsided() > 400).astype(np.uint8), image))
        write_json(folder / "volumes" / f"{name}_rigid.json", np.eye(4).tolist())
        window = (0.0, float(voxels.max()))
        entries.append(
            Series(
                series_id=name, path=f"volumes/{name}.nii", modality="MR", sequence=Sequence.T1W, window=window, quality={"covered": 0.5}
            )
        )
    case = CaseRecord(benchmark="mine", case_id="c1", patient_id="p1", stage="normalise", series=tuple(entries))
    imaging_pieces.write_case_pieces(case, folder)
    return folder


def greys(path: Path) -> np.ndarray:
    """Read the grey levels of a review picture, letters and outline as black."""
    with Image.open(path) as picture:
        levels = np.asarray(picture)
    return np.where(levels == COLOUR, 0, levels).astype(int)


def test_a_series_that_is_off_breaks_the_edges_of_the_checkerboard(normalised: Path) -> None:
    own = greys(normalised / "review" / "series-01_planes.png")
    off = {name: np.abs(greys(normalised / "review" / f"{name}_registration.png") - own).mean() for name in ("series-02", "series-03")}
    assert off["series-03"] > 2 * off["series-02"]


def test_a_mirrored_series_is_distinguished_from_one_that_fits(normalised: Path) -> None:
    numbers = read_json(normalised / "review" / "quality.json")
    margins = {name: entry["value"] for name, found in numbers.items() for entry in found if entry["number"] == "mirrored_margin"}
    assert set(margins) == {"series-02", "series-03", "series-04"}
    assert min(margins["series-02"], margins["series-03"]) > 0 > margins["series-04"]


def test_a_symmetric_head_has_no_margin_between_its_sides() -> None:
    import SimpleITK as sitk

    half = lopsided()[:, :, :24]
    whole = volume(np.concatenate([half, half[:, :, ::-1]], axis=2))
    assert mirrored_margin(mirror_reference(whole, sitk.Cast(whole > 400, sitk.sitkUInt8)), whole) == pytest.approx(0, abs=0.02)


def test_measures_are_shown_with_their_limits(normalised: Path) -> None:
    covered = next(entry for entry in read_json(normalised / "review" / "quality.json")["series-02"] if entry["number"] == "covered")
    assert covered["value"] == 0.5
    assert covered["allowed"][0] is not None


def test_letters_follow_the_directions_of_the_grid() -> None:
    image = volume(lopsided())
    assert imaging_pieces._sides(image) == [("I", "S"), ("A", "P"), ("R", "L")]
    image.SetDirection((-1, 0, 0, 0, 1, 0, 0, 0, -1))
    assert imaging_pieces._sides(image) == [("S", "I"), ("A", "P"), ("L", "R")]


# the sheets


class Reader(HTMLParser):
    """Collect tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, attribute: str) -> list[str]:
        """Return the values of an attribute of a tag."""
        return [str(found[attribute]) for name, found in self.tags if name == tag and attribute in found]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, normalised: Path, changed: Counter[tuple[str, str]]) -> CaseStages:
    """Make a case of one scan with a note, all review files and one chosen slice."""
    folder = tmp_path_factory.mktemp("data")
    series = Series(
        series_id="series-01", path="a.nii.gz", modality="MR", sequence=Sequence.T1W, flags=("outer_layer_removed", "brain_hidden"),
        quality={"brain_ml": 1350.0, "brain_hidden_ml": 13.5, "brain_removed_ml": 0.0},
    )  # fmt: skip
    base = CaseRecord(benchmark="mine", case_id="c1", patient_id="p1", stage="deidentify")
    write_text(folder / "clean" / "text" / "note-01.txt", "<script>alert(1)</script> [NAME] came on 2031-03-14, aged 90+, NIHSS 12.")
    write_scan_pieces(folder / "clean", "series-01", Volume(head_voxels(), AFFINE))
    write_header_piece(folder / "clean", "series-01", changed)
    checks = {"notes_without_known_names": 1}
    clean = CaseRecord(**{**base.__dict__, "series": (series,), "notes": ("text/note-01.txt",), "checks": checks})
    placed = tuple(
        Series(series_id=name, path=f"volumes/{name}.nii", modality="MR", sequence=Sequence.T1W, volume_sha256="v")
        for name in ("series-01", "series-04")
    )
    aside = {"series-09": "it could not be registered to the reference"}
    write_levels(folder / "cut" / "png" / "t1w-z+001.png", to_levels(np.ones((300, 300)), 0, 2))
    chosen = Slice(
        image_id="t1w-z+001", path="png/t1w-z+001.png", sha256="0", pixels_sha256="", volume_sha256="v", sequence=Sequence.T1W,
        plane=Plane.AXIAL, index=1, position_mm=1.0, tiles=(Tile(index=1, position_mm=1.0),), native_mm_per_px=(1.0, 1.0), mm_per_px=1.0,
        window=(0.0, 1.0), window_name="own",
    )  # fmt: skip
    cut = CaseRecord(**{**base.__dict__, "stage": "slices", "series": placed[:1], "slices": (chosen,)})
    imaging_pieces.write_chosen_pieces(cut, folder / "cut")
    middle = CaseRecord(**{**base.__dict__, "stage": "normalise", "series": placed, "set_aside": aside})
    return CaseStages(CaseStage(clean, folder / "clean"), CaseStage(middle, normalised), CaseStage(cut, folder / "cut"))


@pytest.fixture(scope="module")
def html(stages: CaseStages) -> str:
    """Write the sheet of the case."""
    return case_sheet(stages, ("b9", "d1"), stages.cut.folder.parent / "sheets" / "sub-c1.html")


@pytest.fixture(scope="module")
def sheet(html: str) -> Reader:
    """Parse the sheet of the case."""
    return Reader(html)


def test_a_sheet_loads_nothing_runs_nothing_and_allows_its_own_style_alone(sheet: Reader) -> None:
    policy = next(found["content"] for tag, found in sheet.tags if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy")
    digest = b64encode(sha256(STYLE.read_text(encoding="utf-8").strip().encode()).digest()).decode()
    assert policy == f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not {"script", "iframe", "link", "object", "form"} & {tag for tag, _ in sheet.tags}
    assert not [name for _, found in sheet.tags for name in found if name.startswith("on") or name == "style"]
    assert all(source.startswith("data:image/png;base64,") for source in sheet.all("img", "src"))
    assert not [way for way in sheet.all("a", "href") if re.match(r"[a-z]+:|//", way)]


def test_the_style_is_what_the_policy_hashes(html: str) -> None:
    found = re.search(r"<style>(.*?)</style>", html, flags=re.DOTALL)
    assert found
    assert b64encode(sha256(found[1].encode()).digest()).decode() in html


def test_a_sheet_shows_every_piece_and_asks_for_a_look_at_each(sheet: Reader) -> None:
    assert len(sheet.all("img", "src")) == 2 + 2 + 1 + 1  # surface and border; planes of two series; one checkerboard; the chosen pictures
    assert len([tag for tag, found in sheet.tags if tag == "input" and found.get("type") == "checkbox"]) == 8
    assert all(sheet.all("img", "alt"))
    for source in sheet.all("img", "src"):
        with Image.open(BytesIO(b64decode(source.partition(",")[2]))) as picture:
            assert min(picture.size) > 8


def test_a_sheet_shows_texts_escaped_and_marks_what_was_replaced(sheet: Reader, html: str) -> None:
    assert "<script>alert(1)</script> [NAME] came on 2031-03-14" in sheet.text
    assert "&lt;/script&gt; <mark>[NAME]</mark> came on <mark>2031-03-14</mark>, aged <mark>90+</mark>, NIHSS 12." in html


def test_a_sheet_lists_what_to_look_at_twice(sheet: Reader) -> None:
    for words in (
        "the skin of the head was removed",
        "hidden text covers a small part of its brain",
        "are left and right swapped?",
        "left out: it could not be registered",
        "by pattern alone",
    ):
        assert words in sheet.text


def test_a_sheet_says_how_much_of_the_brain_was_hidden_and_removed(sheet: Reader) -> None:
    assert "13.5 of 1350 ml (1.0%) lie under hidden text; nothing was removed" in sheet.text
    assert brain_line({"brain_ml": 1350.0, "brain_hidden_ml": 0.0, "brain_removed_ml": 0.0}) == "nothing of 1350 ml was hidden or removed"
    assert (
        brain_line({"brain_ml": 1000.0, "brain_removed_ml": 1.0})
        == "nothing lies under hidden text; up to 1.0 of 1000 ml (0.1%) were removed"
    )
    assert brain_line({}) == "not measured: no brain was located"


def test_a_sheet_leads_to_its_neighbours_and_to_the_pictures_as_they_are(sheet: Reader, stages: CaseStages) -> None:
    ways = sheet.all("a", "href")
    assert {"sub-b9.html", "sub-d1.html", "../review.html"} <= set(ways)
    picture = next(way for way in ways if way.endswith(".png"))
    assert (stages.cut.folder.parent / "sheets" / picture).resolve() == (stages.cut.folder / "png" / "t1w-z+001.png").resolve()


def test_a_case_that_was_kept_back_shows_its_reason_and_nothing_else(tmp_path: Path) -> None:
    kept = CaseRecord(
        benchmark="mine", case_id="c1", patient_id="p1", stage="slices", state=State.QUARANTINED, quarantined_by="ingest",
        reason="no usable <series>",
    )  # fmt: skip
    stage = CaseStage(kept, tmp_path)
    read = Reader(case_sheet(CaseStages(stage, stage, stage), ("", ""), tmp_path / "sheets" / "sub-c1.html"))
    assert "Kept back at ingest: no usable <series>" in read.text
    assert read.all("img", "src") == []


def test_the_first_page_stays_small_with_a_thousand_cases() -> None:
    rules = AuditRules(benchmark="mine", profile="pseudonymised", subjects="patient")
    cases = [f"{number:012x}" for number in range(1000)]
    lines = [IndexLine(name=case, sheet=f"sheets/sub-{case}.html", holds="T1w, ceT1w, FLAIR; 3 texts; 40 pictures") for case in cases]
    lines[5] = IndexLine(name=cases[5], sheet=f"sheets/sub-{cases[5]}.html", holds="T1w", warnings=("it is <odd>",))
    text = index_page(audit_cases(rules, []), reviewed_files("mine", "pseudonymised", dict.fromkeys(cases, "0")), lines)
    assert len(text.encode()) < 300_000
    read = Reader(text)
    assert len([way for way in read.all("a", "href") if way.startswith("sheets/")]) == 1000
    assert read.text.index("Cases to look at first (1)") < read.text.index("Cases (999)")
    assert "it is <odd>" in read.text
    assert "planted" not in read.text


def test_the_first_page_warns_if_a_second_opinion_was_needed_but_not_available() -> None:
    rules = AuditRules(benchmark="mine", profile="pseudonymised", subjects="patient")
    warned = []
    for check in ("burned_in_pictures_without_ocr", "burned_in_pictures_read_by_ocr"):
        audit = replace(audit_cases(rules, []), checks={check: 7}, looked_for={check: ""})
        read = Reader(index_page(audit, reviewed_files("mine", "pseudonymised", {}), []))
        warned.append("7 pictures should have been read by tesseract" in read.text)
    assert warned == [True, False]


def test_the_first_page_shows_the_score_of_phantoms_and_names_what_went_wrong() -> None:
    tally = ScoreTally()
    tally.add(("header", "text_removed", "HIPAA"), 59, 60, where="00104000")
    tally.add(("note", "text_retained", "research"), 8, 8)
    tally.add(("note", "words_removed", "research"), 99, 101)
    rules = AuditRules(benchmark="demo", profile="pseudonymised", subjects="phantom")
    audit = replace(audit_cases(rules, []), score=sum_scores([tally.score("a"), ScoreTally().score("b")]))
    read = Reader(index_page(audit, reviewed_files("demo", "pseudonymised", {}), []))
    assert "Of what had to go: 59 of 60 right (0 of 1 phantoms without a fault)." in read.text
    assert "Of everything that was asked for: 67 of 68 right" in read.text
    assert "header, text removed, HIPAA: 1 of 60 wrong" in read.text
    assert "note: 2 of 101 words that were removed did not have to go" in read.text
    assert read.text.index("Score on planted identities") < read.text.index("Sign")
