"""Pictures (not scans) of a user's patients: from a folder to prompts, without a name and not before a person signed."""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image, ImageCms, ImageDraw, ImageFont, PngImagePlugin

import assemble_prompts
import build_items
import build_review
import deidentify_pictures
import gather_audit
import ingest_pictures
from conftest import ROOT
from neuralmedbench.cli.benchmark import check_benchmark
from neuralmedbench.cli.cases import list_cases
from neuralmedbench.cli.deid import sign_review
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.deid.cleaning import CleaningPolicy, TextRules
from neuralmedbench.deid.pictures import deidentify_picture_cases
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.files.case_flow import flow_of_cases
from neuralmedbench.files.cases import CaseRow, read_audit, read_case, read_case_table, read_pictures, write_case_table
from neuralmedbench.files.tables import read_records
from neuralmedbench.ingest.listing import IN_TWO_CASES, IS_DICOM, NO_CASE, TOO_LARGE, TWICE, find_picture_cases
from neuralmedbench.ingest.pictures import ingest_picture_cases
from neuralmedbench.records.case import State
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request

NAME, NUMBER = "Zumsteg", "4471-2093"
OWN_WORDS = (NAME, "Berenike", NUMBER, "44712093", "IMG_0012", "2031-03-12", "p1/", "case1")
NOTE = f"Mrs Berenike {NAME} (MRN {NUMBER}), seen by Dr Odalys Quispe on 12 March 2031. Weakness of the left arm.\n\nImpression: infarct.\n"
RECORD = "variable,value,unit,date\nage,71,years,2031-03-12\nINR,1.0,,2031-03-11\nfollow-up,infarct,,2031-03-13\nsmoker,no,,\n"
TABLE = """path,case,patient,sequence,plane,date
p1,case1,Zumsteg-4471,,,2031-03-12
p1/b.jpg,case1,Zumsteg-4471,FLAIR,axial,2031-03-12
IMG_0012.png,case2,,CT,,
IMG_0013.png,case3,Zumsteg-4471,,,
"""


def head(seed: int) -> Image.Image:
    """Return a grey disc with texture on black."""
    rows, columns = np.mgrid[:220, :220]
    inside = (rows - 110) ** 2 + (columns - 110) ** 2 < 60**2
    noise = np.random.default_rng(seed).normal(120, 20, (220, 220))
    return Image.fromarray(np.where(inside, noise, 0).clip(0, 255).astype(np.uint8))


def lettered(seed: int) -> Image.Image:
    """Return a picture with the patient's name burned in."""
    picture = head(seed)
    ImageDraw.Draw(picture).text((6, 6), f"{NAME.upper()} {NUMBER}", fill=255, font=ImageFont.load_default(17))
    return picture


def encoded(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format=kind, **options)
    return stream.getvalue()


def fill(source: Path) -> Path:
    """Write two patients with three cases: metadata of every kind, a name burned in, a damaged picture, a note and a record."""
    (source / "p1").mkdir(parents=True)
    chunks = PngImagePlugin.PngInfo()
    chunks.add_text("PatientName", NAME)
    chunks.add_itxt("Comment", NUMBER, zip=True)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    (source / "p1" / f"{NAME}_44712093.png").write_bytes(encoded(lettered(1), pnginfo=chunks, icc_profile=profile))
    exif = Image.Exif()
    exif[0x010E] = NAME
    (source / "p1" / "b.jpg").write_bytes(encoded(head(2), "JPEG", exif=exif, comment=NAME.encode(), quality=95))
    (source / "p1" / "cut.png").write_bytes(encoded(head(3))[:900])
    (source / "p1" / "note.txt").write_text(NOTE, encoding="utf-8")
    (source / "p1" / "record.csv").write_text(RECORD, encoding="utf-8")
    (source / "IMG_0012.png").write_bytes(encoded(head(4)))
    (source / "IMG_0013.png").write_bytes(encoded(head(5)))
    (source / "files.csv").write_text(TABLE, encoding="utf-8")
    return source


def settings(root: Path, **changes: object) -> dict[str, object]:
    values: dict[str, object] = {"title": "Mine", "kind": "pictures", "axis": "depth", "source": str(root / "source")}
    return {**values, "key_file": str(root / "key"), "samples": 1, "arms": ["full", "no_image"], **changes}


def prepare(root: Path, **changes: object) -> Path:
    """Write the YAML file and a key, and list the cases."""
    (root / "config" / "benchmarks").mkdir(parents=True, exist_ok=True)
    (root / "config" / "benchmarks" / "mine.yaml").write_text(yaml.safe_dump(settings(root, **changes)), encoding="utf-8")
    if not (root / "key").exists():
        assert list_cases.main(["--new-key", str(root / "key")]) == 0
    assert list_cases.main(["--benchmark", "mine", *config_and_data(root)]) == 0
    return root


def config_and_data(root: Path) -> list[str]:
    return ["--config", str(root / "config"), "--data", str(root / "data")]


def clean(root: Path) -> Path:
    """Ingest and de-identify as the rules do; return the folder of the de-identified pictures."""
    first, second = (root / "data" / stage / "mine" / "pictures.json" for stage in ("ingested", "deidentified"))
    assert ingest_pictures.main(["--benchmark", "mine", *config_and_data(root), "--out", str(first)]) == 0
    assert (
        deidentify_pictures.main(["--benchmark", "mine", "--config", str(root / "config"), "--pictures", str(first), "--out", str(second)])
        == 0
    )
    return second.parent


def review(root: Path) -> str:
    """Build the sheets and the audit; return the state of the audit."""
    table = ["--table", str(root / "config" / "benchmarks" / "mine.cases.tsv")]
    rules = ["--benchmark", "mine", "--config", str(root / "config"), *table]
    sheets, clean_folder = root / "data" / "reviews" / "mine" / "review.json", root / "data" / "deidentified" / "mine"
    assert build_review.main([*rules, "--data", str(root / "data"), "--out", str(sheets)]) == 0
    signed = ["--shown", str(sheets), "--signed", str(root / "data" / "reviews" / "mine.json")]
    assert gather_audit.main([*rules, "--folder", str(clean_folder), *signed, "--out", str(clean_folder / "audit.json")]) == 0
    return read_audit(clean_folder / "audit.json").state


def sign(root: Path, *decisions: str) -> None:
    digest = json.loads((root / "data" / "reviews" / "mine" / "review.json").read_text(encoding="utf-8"))["digest"][:12]
    assert sign_review.main(["--benchmark", "mine", "--reviewer", "AB", "--digest", digest, *decisions, *config_and_data(root)]) == 0


def ask(root: Path) -> list[Request]:
    """Build items and prompts."""
    data = root / "data"
    tables = {name: data / name / "mine.parquet" for name in ("items", "gold", "disclosures", "exemplars", "lesions", "prompts")}
    outs = [part for name in ("items", "gold", "disclosures", "exemplars", "lesions") for part in (f"--out-{name}", str(tables[name]))]
    config = ["--benchmark", "mine", "--config", str(root / "config")]
    vocabulary = ["--vocabulary", str(ROOT / "config/vocabulary/neurology.yaml")]
    pictures = ["--folder", str(data / "deidentified" / "mine")]
    if not (root / "config" / "prompts").exists():
        shutil.copytree(ROOT / "config/prompts", root / "config" / "prompts")
    assert build_items.main([*config, *vocabulary, *pictures, *outs]) == 0
    ins = [part for name in ("items", "disclosures", "exemplars") for part in (f"--{name}", str(tables[name]))]
    audit = ["--audit", str(data / "deidentified" / "mine" / "audit.json")]
    assert assemble_prompts.main([*config, *ins, *audit, "--out", str(tables["prompts"])]) == 0
    return read_records(tables["prompts"], Request)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with three de-identified cases waiting for a signature; tests do not change it."""
    folder = tmp_path_factory.mktemp("own")
    fill(folder / "source")
    clean(prepare(folder))
    assert review(folder) == "pending"
    return folder


@pytest.fixture
def own(root: Path, tmp_path: Path) -> Path:
    """Return a copy of it whose YAML file and indexes name the copy's files."""
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    return prepare(tmp_path)


def case_of(folder: Path, name: str) -> str:
    """Look up the id of a case by the name that `files.csv` gives it."""
    listing = (folder / "data" / "raw" / "mine" / "listing.tsv").read_text(encoding="utf-8").splitlines()
    return next(line.split("\t")[0] for line in listing if f"\t{name}: " in line)


def test_ids_are_keyed_and_nothing_that_is_shared_holds_a_name_a_number_or_a_file_name(root: Path) -> None:
    rows = read_case_table(root / "config" / "benchmarks" / "mine.cases.tsv")
    assert len(rows) == 3
    assert len({row.patient_id for row in rows}) == 2
    shared = [path for part in ("deidentified", "reviews") for path in (root / "data" / part).rglob("*") if path.is_file()]
    assert len(shared) > 10
    for path in [*shared, root / "config" / "benchmarks" / "mine.cases.tsv"]:
        content = re.sub(rb"base64,[^\"]+", b"", path.read_bytes()) + path.relative_to(root).as_posix().encode()
        assert not [word for word in OWN_WORDS if word.lower().encode() in content.lower()], path.name


def test_the_same_key_gives_the_same_ids_and_another_key_others(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "source", tmp_path / "source")
    shutil.copy(root / "key", tmp_path / "key")
    names = ("case1", "case2", "case3")
    before = [case_of(root, name) for name in names]
    assert [case_of(prepare(tmp_path), name) for name in names] == before
    (tmp_path / "key").unlink()
    (tmp_path / "config" / "benchmarks" / "mine.cases.tsv").unlink()
    assert not set(before) & {case_of(prepare(tmp_path), name) for name in names}


def test_pictures_are_pixels_alone_burned_in_names_are_hidden_and_a_damaged_one_is_left_out_alone(root: Path) -> None:
    folder = root / "data" / "deidentified" / "mine"
    case = case_of(root, "case1")
    fates = [fate for fate in read_pictures(folder / "pictures.json").pictures if fate.case_id == case]
    assert [(fate.image_id, fate.sequence, fate.plane, fate.state.value) for fate in fates] == [
        (f"{case}-01", "unknown", "", "ok"), (f"{case}-02", "FLAIR", "axial", "ok"), (f"{case}-03", "unknown", "", "quarantined"),
    ]  # fmt: skip
    assert fates[0].flags == ("burned_in_text_hidden",)
    assert fates[2].reason == "not a picture, or a damaged one"
    for fate in fates[:2]:
        with Image.open(folder / fate.path) as picture:
            picture.load()
            assert not picture.info
            assert np.asarray(picture)[:30].max() < 30, "the letters are gone"
            assert np.asarray(picture)[90:130, 90:130].min() > 30, "the head is not"


def test_notes_and_record_are_cleaned_and_what_came_after_the_day_stays_out_of_the_prompt(own: Path) -> None:
    assert review(own) == "pending"
    with pytest.raises(DeidentificationError, match="waits for a person"):
        ask(own)
    sign(own, "--accept-rest")
    assert review(own) == "passed"
    requests = {(request.case_id, request.arm): request for request in ask(own)}
    case = case_of(own, "case1")
    first = requests[case, "full"].turns[0]
    assert "Weakness of the left arm." in first.text
    assert "[SECTION CUT]" in first.text
    assert "age: 71 years (on the day of the scan)\nINR: 1.0 (1 day before the scan)\nsmoker: no\n" in first.text
    assert "follow-up" not in first.text
    assert [image.label for image in first.images] == ["Picture 1: FLAIR, axial", "Picture 2"]
    assert "radiological convention" not in requests[case, "full"].system, "of a picture nobody knows the sides"
    assert not requests[case, "no_image"].turns[0].images
    items = read_records(own / "data" / "items" / "mine.parquet", Item)
    assert {item.patient_id for item in items} == {row.patient_id for row in read_case_table(own / "config/benchmarks/mine.cases.tsv")}
    sent = json.dumps([[request.system, [turn.text for turn in request.turns]] for request in requests.values()])
    assert not [word for word in OWN_WORDS if word in sent]


def test_a_case_that_a_reviewer_takes_out_is_gone_and_a_changed_note_voids_the_signature(own: Path) -> None:
    assert review(own) == "pending"
    out = case_of(own, "case2")
    sign(own, "--exclude", f"{out}=face_left", "--accept-rest")
    clean(own)
    assert review(own) == "passed"
    assert out not in {request.case_id for request in ask(own)}
    assert not [path for part in ("ingested", "deidentified") for path in (own / "data" / part).rglob(f"sub-{out}*")]
    (own / "source" / "p1" / "note.txt").write_text("Weakness of the right arm.\n", encoding="utf-8")
    prepare(own)
    clean(own)
    assert review(own) == "pending"
    assert "changed after the review was signed" in read_audit(own / "data/deidentified/mine/audit.json").reason


def test_a_picture_changed_by_hand_cannot_be_signed(own: Path) -> None:
    assert review(own) == "pending"
    next((own / "data/deidentified/mine").glob("sub-*/pictures/*.png")).write_bytes(encoded(head(9)))
    with pytest.raises(DeidentificationError, match="1 files are not those that were shown"):
        sign(own, "--accept-rest")


def test_the_sheet_shows_pictures_texts_and_what_was_left_out_and_warns_of_names(root: Path) -> None:
    sheet = (root / f"data/reviews/mine/sheets/sub-{case_of(root, 'case1')}.html").read_text(encoding="utf-8")
    for words in (
        "left out: not a picture",
        "was hidden",
        "None shows a face",
        "FLAIR, axial",
        "names in its texts were detected by pattern alone",
    ):
        assert words in sheet
    assert sheet.count("data:image/png;base64,") == 2
    assert "../../../deidentified/mine/sub-" in sheet
    assert "<script" not in sheet


def test_text_is_kept_only_when_the_yaml_says_so_and_then_the_sheet_says_where(own: Path) -> None:
    prepare(own, deidentification={"burned_in": "keep"})
    folder = clean(own)
    case = read_case(folder / f"sub-{case_of(own, 'case1')}" / "case.json")
    assert [picture.flags for picture in case.pictures] == [("burned_in_text_kept",), (), ()]
    assert case.checks["burned_in_pictures_kept"] == 1
    with Image.open(folder / f"sub-{case.case_id}" / "pictures" / "01.png") as picture:
        assert np.asarray(picture)[:30].max() == 255
        assert not picture.info
    assert review(own) == "pending", "a person signs all the same"
    assert "text is burned into it and was kept" in (own / f"data/reviews/mine/sheets/sub-{case.case_id}.html").read_text(encoding="utf-8")


def test_scans_never_keep_their_text() -> None:
    values = {"title": "T", "kind": "scans", "axis": "depth", "source": "x", "deidentification": {"burned_in": "keep"}}
    with pytest.raises(ValueError, match="keep is for single pictures"):
        BenchmarkConfig.model_validate(values)


def test_dropped_pictures_keep_a_case_back_when_none_is_left(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.png").write_bytes(encoded(lettered(1)))
    (tmp_path / "source" / "files.csv").write_text("path,case\na.png,c1\n", encoding="utf-8")
    folder = clean(prepare(tmp_path, deidentification={"burned_in": "drop"}))
    (case,) = (read_case(path) for path in folder.glob("sub-*/case.json"))
    assert (case.state, case.quarantined_by) == (State.QUARANTINED, "deidentify")
    assert case.reason == "no usable picture among 1: text is burned into the picture, and `deidentification: burned_in` says drop"
    assert [path.name for path in folder.rglob("*.png")] == []


def test_a_picture_or_a_note_that_changed_since_it_was_listed_is_kept_back_by_item(own: Path) -> None:
    (own / "source" / "p1" / "b.jpg").write_bytes(encoded(head(7), "JPEG"))
    (own / "source" / "IMG_0012.png").unlink()
    (own / "source" / "p1" / "note.txt").write_text("Other words.\n", encoding="utf-8")
    folder = clean(own)
    by_image = {fate.image_id: fate for fate in read_pictures(folder / "pictures.json").pictures}
    first, second = case_of(own, "case1"), case_of(own, "case2")
    assert read_case(folder / f"sub-{first}" / "case.json").reason.startswith("note 1 of 1 is not what was listed")
    assert by_image[f"{first}-02"].reason == "picture 2 is not what was listed (other digest); list the cases again (nmb cases list)"
    assert by_image[f"{first}-01"].reason.startswith("its case was kept back: note 1 of 1")
    assert by_image[f"{second}-01"].reason.startswith("picture 1 is not where it was listed")
    assert by_image[f"{case_of(own, 'case3')}-01"].state is State.OK


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG with a large size in its header."""
    parts = {b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0), b"IDAT": zlib.compress(bytes(999)), b"IEND": b""}
    made = (struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def test_what_is_no_picture_of_one_case_is_left_out_by_name_before_it_is_decoded(tmp_path: Path) -> None:
    same = encoded(head(2))
    for name, content in {
        "bomb.png": bomb(60_000, 60_000), "large.png": bomb(9_000, 9_000), "huge.png": b"", "text.png": b"words", "empty.png": b"", "scan.dcm": bytes(128) + b"DICM",
        "a.png": encoded(head(1)), "twice.png": encoded(head(1)), "both1.png": same, "sub/both2.png": same, "nobody.png": encoded(head(3)),
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(50 * 10**6 + 1)
    rows = ["path,case", "sub,c2"] + [f"{path.name},c1" for path in tmp_path.glob("*.*") if path.name != "nobody.png"]
    (tmp_path / "files.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = find_picture_cases(tmp_path)
    many = "a picture of more than 64 million pixels"
    assert {path.relative_to(tmp_path).as_posix(): reason for path, reason in found.left_out.items()} == {
        "bomb.png": many, "large.png": many, "huge.png": TOO_LARGE, "text.png": "not a picture, or a damaged one", "empty.png": "not a picture, or a damaged one",
        "scan.dcm": IS_DICOM, "twice.png": TWICE, "both1.png": IN_TWO_CASES, "sub/both2.png": IN_TWO_CASES, "nobody.png": NO_CASE,
    }  # fmt: skip
    assert [[scan.path.name for scan in case.scans] for case in found.cases] == [["a.png"]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("path,case\na.png,c1\na.png,c2\n", "files.csv, line 3: this path has a row already; keep one"),
        ("path,case\na.png,c1\n./a.png,c2\n", "files.csv, line 3: this path has a row already; keep one"),
        ("path,case\nabsent.png,c1\n", "files.csv, line 2: the path is not in the folder"),
        ("path,case\n../a.png,c1\n", "files.csv, line 2: the path is not in the folder"),
        ("path,case,modality\na.png,c1,MR\n", "files.csv: expected the columns path, case, patient, sequence, plane, date"),
        ("path,case,plane\na.png,c1,oblique\n", "files.csv, line 2, column plane: expected one of axial, coronal, sagittal, or nothing"),
        ("path,case,sequence\na.png,c1,T9\n", "files.csv, line 2, column sequence: expected one of"),
        ("path,case,date\na.png,c1,12.03.2031\n", "files.csv, line 2, column date: expected a day"),
        ("path,case,patient\na.png,c1,x\nb.png,c1,y\n", "files.csv: 1 cases have several patients each"),
        (
            "path,case\na.png,\n",
            "no picture with a case was found below `source`; most of the 2 files that were left out: a picture without a case",
        ),
        ("path,case\n", "files.csv is not there or has no row"),
    ],
)
def test_a_table_that_cannot_be_right_stops_the_listing_in_one_line(tmp_path: Path, table: str, message: str) -> None:
    for number, name in enumerate(("a.png", "b.png")):
        (tmp_path / name).write_bytes(encoded(head(number)))
    (tmp_path / "files.csv").write_text(table, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        find_picture_cases(tmp_path)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "a.png" not in str(caught.value)


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(head(1)))
    with pytest.raises(ConfigError, match=r"files\.csv is not there"):
        find_picture_cases(tmp_path)


def test_the_check_of_a_benchmark_counts_its_pictures_and_says_what_is_wanting(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "source" / "files.csv").write_text(TABLE.replace("2031-03-12", ""), encoding="utf-8")
    prepare(own)
    vocabulary = ["--vocabulary", str(ROOT / "config/vocabulary/neurology.yaml")]
    assert check_benchmark.main(["--benchmark", "mine", *config_and_data(own), *vocabulary]) == 0
    output = capsys.readouterr().out
    assert "cases: 3 listed, 0 excluded, 2 patients" in output
    assert "pictures listed: 5; with a sequence 2, with a plane 1" in output
    assert "notes, records: 1, 1" in output
    assert "look at this: 1 cases have a record but no scan date" in output
    assert "de-identification: pending" in output


def test_a_leftover_of_an_excluded_case_is_swept_and_an_excluded_case_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "out" / "sub-dead").mkdir(parents=True)
    rows = [CaseRow(case_id="dead", patient_id="p", source_sha256="", sequence_overrides={}, exclude="withdrew")]
    manifest = ingest_picture_cases("mine", rows, tmp_path / "raw", tmp_path / "out")
    assert (manifest.pictures, manifest.cases) == ((), {})
    assert not (tmp_path / "out" / "sub-dead").exists()
    rules = CleaningPolicy(key=bytes(32), profile="pseudonymised", options=(), texts=TextRules())
    assert deidentify_picture_cases(manifest, tmp_path / "out", tmp_path / "clean", rules).pictures == ()


def test_a_private_index_that_is_gone_is_told_in_one_line(own: Path) -> None:
    shutil.rmtree(own / "data" / "raw")
    with pytest.raises(Exception, match=r"list the cases again \(nmb cases list\)"):
        clean(own)


def test_an_override_of_kinds_belongs_into_files_csv(own: Path) -> None:
    table = own / "config" / "benchmarks" / "mine.cases.tsv"
    rows = read_case_table(table)
    write_case_table(table, [replace(rows[0], sequence_overrides={"series-01": "T2w"}), *rows[1:]])
    with pytest.raises(ConfigError, match=r"describe pictures in files\.csv"):
        clean(own)


def test_own_pictures_are_one_job_a_stage_and_follow_their_case_table(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own)
    for folder, name in (("models", "text"), ("graders", "rubric")):
        (own / "config" / folder).mkdir()
        shutil.copy(ROOT / "config" / folder / f"{name}.yaml", own / "config" / folder)
    run = Run.read({"benchmarks": ["mine"], "models": ["text"], "graders": ["rubric"]}, Path("config"))
    table, manifest = "config/benchmarks/mine.cases.tsv", "data/deidentified/mine/pictures.json"
    assert run.source_table("mine") == table
    files = {"table": table, "pictures": manifest, "cases": []}
    assert run.audit_files("mine") == run.review_files("mine") == files
    assert run.item_files("mine") == files | {"answers": [], "questions": [], "slices": [], "lesion_masks": []}
    assert (run.description_files("mine"), run.slice_tables("mine")) == ([], [])
    assert len(run.cases("mine")) == 3


def test_the_case_flow_tells_of_own_pictures_by_case_with_who_was_taken_out(own: Path) -> None:
    table = own / "config" / "benchmarks" / "mine.cases.tsv"
    rows = [replace(row, exclude="withdrew" if row.case_id == case_of(own, "case2") else "") for row in read_case_table(table)]
    fates = {fate["case_id"]: fate for fate in flow_of_cases(rows, own / "data" / "deidentified" / "mine")}
    assert (fates[case_of(own, "case2")]["excluded"], fates[case_of(own, "case2")]["reason"]) == (True, "withdrew")
    first = fates[case_of(own, "case1")]
    assert (first["state"], first["sequences"]) == ("ok", ["FLAIR", "unknown"])
    assert first["raw_files"] == {"not a picture, or a damaged one": 1, "used": 2}


def test_with_random_ids_and_years_alone_the_same_pictures_and_values_are_shown(own: Path) -> None:
    keyed = [fate.sha256 for fate in read_pictures(own / "data/deidentified/mine/pictures.json").pictures]
    (own / "config" / "benchmarks" / "mine.cases.tsv").unlink()
    folder = clean(prepare(own, profile="safe_harbor"))
    assert sorted(fate.sha256 for fate in read_pictures(folder / "pictures.json").pictures) == sorted(keyed)
    text = folder / f"sub-{case_of(own, 'case1')}" / "text"
    assert (text / "record.tsv").read_text(encoding="utf-8").splitlines()[1:] == [
        "age\t71\tyears\t0", "INR\t1.0\t\t-1", "follow-up\tinfarct\t\t1", "smoker\tno\t\t",
    ]  # fmt: skip
    assert " on 2031. Weakness" in (text / "note-01.txt").read_text(encoding="utf-8")


def test_a_year_or_a_day_in_the_name_of_a_folder_is_no_number_of_the_patient(tmp_path: Path) -> None:
    (tmp_path / "source" / "2031").mkdir(parents=True)
    (tmp_path / "source" / "2031" / "Screenshot 2031-03-12 at 10.png").write_bytes(encoded(head(1)))
    (tmp_path / "source" / "2031" / "note.txt").write_text("Seizures since 2029, worse from 2030 on. Chart 88123-4.\n", encoding="utf-8")
    (tmp_path / "source" / "files.csv").write_text("path,case,date\n2031,88123-4,2031-03-12\n", encoding="utf-8")
    (case,) = clean(prepare(tmp_path)).glob("sub-*/case.json")
    assert read_case(case).state is State.OK
    note = (case.parent / "text" / "note-01.txt").read_text(encoding="utf-8")
    assert "Seizures since 20" in note
    assert "88123" not in note
