"""Of loose pictures only pixels are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

import build_review
import deidentify_pictures
import gather_audit
import ingest_pictures
from fixtures.deid import write_config
from neuralmedbench.deid.pictures import without_text
from neuralmedbench.deid.review.signature import read_reviewed_files
from neuralmedbench.files.cases import read_audit, read_pictures
from neuralmedbench.records.case import State


def write_table(folder: Path) -> Path:
    folder.mkdir()
    text = PngImagePlugin.PngInfo()
    text.add_text("Patient", "Vandermeer")
    grey = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    grey.save(folder / "Vandermeer_1.png", pnginfo=text)
    red = np.arange(64, dtype=np.uint8).reshape(8, 8, 1) + np.array([90, 0, 0], dtype=np.uint8)
    Image.fromarray(red).save(folder / "b.jpg", comment=b"Vandermeer")
    Image.fromarray((np.arange(64) * 900).astype(np.uint16).reshape(8, 8)).save(folder / "deep.png")
    (folder / "broken.png").write_bytes(b"not a picture")
    names = ["Vandermeer_1.png", "b.jpg", "deep.png", "broken.png", "absent.png", "../../etc/passwd"]
    (folder / "images.csv").write_text("file_path,class\n" + "".join(f"{name},normal\n" for name in names), encoding="utf-8")
    return folder / "images.csv"


def test_pictures_travel_without_names_and_metadata_and_bad_rows_are_kept_back(tmp_path: Path) -> None:
    table = write_table(tmp_path / "raw")
    config = write_config(tmp_path / "config", tmp_path, kind="pictures", subjects="public", answers=table.as_posix())
    first, second = tmp_path / "ingested" / "pictures.json", tmp_path / "data" / "deidentified" / "mine" / "pictures.json"
    assert ingest_pictures.main(["--benchmark", "mine", "--config", str(config), "--out", str(first)]) == 0
    assert deidentify_pictures.main(["--benchmark", "mine", "--config", str(config), "--pictures", str(first), "--out", str(second)]) == 0
    manifest = read_pictures(second)
    assert [picture.state is State.OK for picture in manifest.pictures] == [True, True, True, False, False, False]
    assert all(picture.reason for picture in manifest.pictures if picture.state is not State.OK)
    for path in [*(tmp_path / "ingested").rglob("*.png"), *second.parent.rglob("*.png")]:
        assert path.name.startswith("img-0")
        assert b"Vandermeer" not in path.read_bytes()
        with Image.open(path) as picture:
            assert picture.mode in {"L", "RGB"}
            assert not picture.info
    with Image.open(second.parent / "pictures" / "img-000003.png") as deep:
        assert deep.getextrema() == (0, 255)  # 16-bit grey is scaled, not clipped
    common = ["--benchmark", "mine", "--config", str(config)]
    sheets = tmp_path / "data" / "reviews" / "mine" / "review.json"
    assert build_review.main([*common, "--data", str(tmp_path / "data"), "--out", str(sheets)]) == 0
    places = ["--folder", str(second.parent), "--shown", str(sheets), "--signed", str(tmp_path / "none.json")]
    assert gather_audit.main([*common, *places, "--out", str(tmp_path / "audit.json")]) == 0
    audit = read_audit(tmp_path / "audit.json")
    assert (audit.state, sorted(audit.covered.values())) == ("passed", ["img-000001", "img-000002", "img-000003"])
    assert set(read_reviewed_files(sheets).cases) == {"img-000001", "img-000002", "img-000003"}
    sheet = (sheets.parent / "sheets" / "pictures-0001.html").read_text(encoding="utf-8")
    assert sheet.count("data:image/png;base64,") == 3
    assert "../../../deidentified/mine/pictures/img-000001.png" in sheet


def test_letters_in_a_corner_are_hidden_and_anatomy_is_not() -> None:
    plain = np.zeros((200, 200), dtype=np.uint8)
    plain[60:140, 60:140] = 200
    assert without_text(Image.fromarray(plain))[0].tobytes() == plain.tobytes()
    picture = Image.fromarray(plain)
    ImageDraw.Draw(picture).text((6, 6), "VANDERMEER 4821337", fill=255, font=ImageFont.load_default_imagefont())
    assert picture.tobytes() != plain.tobytes()
    assert without_text(picture)[0].tobytes() == plain.tobytes()


def test_a_public_picture_whose_letters_belong_to_the_question_is_kept_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    figure = Image.fromarray(np.zeros((200, 200), dtype=np.uint8))
    ImageDraw.Draw(figure).text((4, 4), "FIGURE A", fill=255, font=ImageFont.load_default(28))
    figure.save(folder / "a.png")
    (folder / "images.csv").write_text("file_path\na.png\n", encoding="utf-8")
    config = write_config(tmp_path / "config", tmp_path, kind="pictures", subjects="public", answers=(folder / "images.csv").as_posix())
    first = tmp_path / "ingested" / "pictures.json"
    assert ingest_pictures.main(["--benchmark", "mine", "--config", str(config), "--out", str(first)]) == 0
    kept = {}
    for policy in ("hide", "keep"):
        out = tmp_path / policy / "pictures.json"
        rules = {"deidentification": {"burned_in": policy}, "answers": (folder / "images.csv").as_posix()}
        config = write_config(tmp_path / "config", tmp_path, kind="pictures", subjects="public", **rules)
        command = ["--benchmark", "mine", "--config", str(config), "--pictures", str(first), "--out", str(out)]
        assert deidentify_pictures.main(command) == 0
        kept[policy] = np.asarray(Image.open(out.parent / "pictures" / "img-000001.png"))
    assert np.array_equal(kept["keep"], np.asarray(figure))
    assert not np.array_equal(kept["hide"], np.asarray(figure)), "a test that cannot fail: the letters were not found"
