"""Plain pictures: every file of a data set gives a grey or colour PNG without any name, or a reason."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from neuralmedbench.errors import ConfigError
from neuralmedbench.ingest.pictures import ingest_pictures
from neuralmedbench.records.case import PictureFate, State

RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 3


def take(folder: Path, *names: str) -> tuple[PictureFate, ...]:
    """Ingest the pictures that a table names."""
    folder.mkdir(exist_ok=True)
    (folder / "images.csv").write_text("file_path\n" + "".join(f'"{name}"\n' for name in names), encoding="utf-8")
    return ingest_pictures("mine", folder / "images.csv", folder, folder / "out").pictures


def opened(folder: Path, number: int = 1) -> Image.Image:
    """Read an ingested picture."""
    with Image.open(folder / "out" / "pictures" / f"img-{number:06d}.png") as picture:
        picture.load()
        assert not picture.info
        return picture.copy()


def encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    """Encode a picture."""
    stream = io.BytesIO()
    picture.save(stream, format=kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP", "GIF", "PPM", "JPEG2000"])
def test_pictures_of_many_formats_keep_their_pixels(tmp_path: Path, kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    (tmp_path / "p").write_bytes(encode(Image.fromarray(RAMP), kind, **options))
    (fate,) = take(tmp_path, "p")
    assert fate.state is State.OK, fate.reason
    assert np.array_equal(np.asarray(opened(tmp_path)), RAMP)


def test_the_bytes_of_a_data_uri_win_over_its_mime_type_and_the_picture_is_flagged(tmp_path: Path) -> None:
    png, jpeg = (base64.b64encode(encode(Image.fromarray(RAMP), kind)).decode() for kind in ("PNG", "JPEG"))
    fates = take(
        tmp_path, f"data:image/png;base64,{png}", f"data:image/jpeg;base64,{png}", f"data:image/jpg;base64,{jpeg}", "data:image/png;base64,@@",
        "data:text/html;base64,PGI+", "data:image/png,notbase64",
    )  # fmt: skip
    assert [fate.flags for fate in fates[:3]] == [(), ("type_disagrees",), ()]
    assert np.array_equal(np.asarray(opened(tmp_path, 2)), RAMP)
    assert [fate.reason for fate in fates[3:]] == ["a data URI that cannot be decoded"] + ["not a picture, or a damaged one"] * 2


def test_a_long_data_uri_and_a_file_that_holds_one_are_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (400, 400), dtype=np.uint8)
    uri = f"data:image/png;base64,{base64.b64encode(encode(Image.fromarray(noise), 'PNG')).decode()}"
    (tmp_path / "uri.txt").write_text(uri, encoding="ascii")
    fates = take(tmp_path, uri, "uri.txt")
    assert [fate.state for fate in fates] == [State.OK, State.OK]
    assert fates[0].sha256 == fates[1].sha256


def test_a_data_uri_may_be_written_in_capitals_and_a_file_with_one_may_start_with_a_mark(tmp_path: Path) -> None:
    body = base64.b64encode(encode(Image.fromarray(RAMP), "PNG")).decode()
    (tmp_path / "uri.txt").write_text(f"data:image/png;base64,{body}\n", encoding="utf-8-sig")
    fates = take(tmp_path, f"DATA:image/png;base64,{body}", f"data:IMAGE/PNG;BASE64,{body}", "uri.txt")
    assert [(fate.state, fate.flags) for fate in fates] == [(State.OK, ())] * 3


def test_a_picture_of_one_colour_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "grey.png").write_bytes(encode(Image.new("L", (40, 30), 7), "PNG"))
    (tmp_path / "red.png").write_bytes(encode(Image.new("RGB", (40, 30), (200, 3, 3)), "PNG"))
    (tmp_path / "good.png").write_bytes(encode(Image.fromarray(RAMP), "PNG"))
    fates = take(tmp_path, "grey.png", "red.png", "good.png")
    assert [fate.reason for fate in fates] == ["all pixels are equal; the picture shows nothing"] * 2 + [""]


def test_a_suffix_that_is_wrong_is_flagged(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(encode(Image.fromarray(RAMP), "PNG"))
    assert take(tmp_path, "a.jpg")[0].flags == ("type_disagrees",)


def test_the_orientation_of_a_photograph_is_applied_and_then_gone(tmp_path: Path) -> None:
    picture = Image.fromarray(RAMP[:, :4].copy())
    exif = picture.getexif()
    exif[0x0112] = 6
    exif[0x010E] = "Vandermeer"
    (tmp_path / "a.png").write_bytes(encode(picture, "PNG", exif=exif))
    take(tmp_path, "a.png")
    assert np.array_equal(np.asarray(opened(tmp_path)), np.rot90(RAMP[:, :4], -1))
    assert b"Vandermeer" not in (tmp_path / "out" / "pictures" / "img-000001.png").read_bytes()


def test_deep_palette_transparent_and_print_pictures_become_plain(tmp_path: Path) -> None:
    deep = Image.fromarray(RAMP.astype(np.uint16) * 300)
    palette = Image.fromarray(RAMP).convert("P")
    clear = Image.merge("LA", (Image.fromarray(RAMP), Image.fromarray(np.where(RAMP > 90, 255, 0).astype(np.uint8))))
    colour = Image.fromarray(np.stack([RAMP, RAMP[::-1], RAMP], axis=2))
    for name, content in {
        "deep.png": encode(deep, "PNG"), "deep.tif": encode(deep, "TIFF"), "palette.png": encode(palette, "PNG"),
        "clear.png": encode(clear, "PNG"), "print.jpg": encode(colour.convert("CMYK"), "JPEG", quality=95),
        "bits.png": encode(Image.fromarray(RAMP > 90), "PNG"), "float.tif": encode(Image.fromarray(RAMP.astype(np.float32) / 100), "TIFF"),
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    fates = take(tmp_path, "deep.png", "deep.tif", "palette.png", "clear.png", "print.jpg", "bits.png", "float.tif")
    assert {fate.state for fate in fates} == {State.OK}, fates
    assert opened(tmp_path, 1).getextrema() == opened(tmp_path, 2).getextrema() == opened(tmp_path, 7).getextrema() == (0, 255)
    assert np.array_equal(np.asarray(opened(tmp_path, 3)), RAMP)
    assert np.array_equal(np.asarray(opened(tmp_path, 4)), np.where(RAMP > 90, RAMP, 0))
    assert opened(tmp_path, 5).mode == "RGB"
    assert set(np.unique(np.asarray(opened(tmp_path, 6)))) == {0, 255}


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "WEBP", "PNG"])
def test_animations_and_pages_are_refused(tmp_path: Path, kind: str) -> None:
    frames = [Image.fromarray(np.roll(RAMP, shift, axis=0)) for shift in range(3)]
    (tmp_path / "a").write_bytes(
        encode(frames[0].convert("RGB"), kind, save_all=True, append_images=[one.convert("RGB") for one in frames[1:]])
    )
    assert take(tmp_path, "a")[0].reason == "several pictures in one file (an animation, or pages); store the one that is meant"


def test_whatever_the_decoder_raises_the_picture_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TypeError, for example, for a TIFF without its size."""

    def fail(picture: Image.Image) -> None:
        message = "Vandermeer"
        raise TypeError(message)

    monkeypatch.setattr(ImageOps, "exif_transpose", fail)
    (tmp_path / "a.tif").write_bytes(encode(Image.fromarray(RAMP), "TIFF"))
    assert take(tmp_path, "a.tif")[0].reason == "not a picture, or a damaged one"


def test_what_is_no_picture_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    png = encode(Image.fromarray(RAMP), "PNG")
    noise = encode(Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)), "PNG")
    for name, content in {
        "empty.png": b"", "cut.png": noise[:-600], "text.png": b"Vandermeer", "page.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "drawing.svg": b"<svg/>", "good.png": png,
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    (tmp_path / "away.png").symlink_to("/etc/hostname")
    names = [
        "empty.png",
        "cut.png",
        "text.png",
        "page.eps",
        "drawing.svg",
        "away.png",
        "../up.png",
        "/etc/hostname",
        "x" * 5000,
        "",
        "good.png",
    ]
    fates = take(tmp_path, *names)
    damaged, outside, absent = "not a picture, or a damaged one", "the path of the file leaves the folder", "the file is not there"
    assert [fate.reason for fate in fates] == [
        "an empty file (0 bytes)", damaged, damaged, damaged, damaged, outside, outside, outside, absent, absent, "",
    ]  # fmt: skip
    assert [path.name for path in (tmp_path / "out" / "pictures").iterdir()] == ["img-000011.png"]


@pytest.mark.parametrize("content", [b"file_path\n\xff\xfe\x00a\n", b"name\na.png\n"])
def test_a_table_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "images.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=r"images\.csv: "):
        ingest_pictures("mine", tmp_path / "images.csv", tmp_path, tmp_path / "out")
