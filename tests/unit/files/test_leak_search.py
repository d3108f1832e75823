"""The search for planted strings finds each of them wherever a file can hide it, and reports no others."""

from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from fixtures.leak import leaks_in
from neuralmedbench.files.answer_key import find_planted, searchable
from neuralmedbench.report.cases import pack

WORDS = ("Vandermeer", "Thérèse Lindqvist", "48213371", "+31 20 555 0148", "Καραγιάννη", "高村", "192.0.2.118")


def png(*, text: str = "", packed: str = "", behind: bytes = b"") -> bytes:
    info = PngImagePlugin.PngInfo()
    if text:
        info.add_text("Comment", text)
    if packed:
        info.add_text("Comment", packed, zip=True)
    held = io.BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(held, "PNG", pnginfo=info)
    return held.getvalue() + behind


def nifti(*, description: bytes = b"", extension: bytes = b"", voxels: bytes = b"") -> bytes:
    field = np.zeros(4096, np.uint8)
    field[100 : 100 + len(voxels)] = np.frombuffer(voxels, np.uint8)
    image = nibabel.Nifti1Image(field.reshape((16, 16, 16), order="F"), np.eye(4))
    image.header["descrip"] = description
    if extension:
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", extension))
    return image.to_bytes()


def parquet(column: str, value: object, note: str = "") -> bytes:
    table = pa.table({column: [value]}).replace_schema_metadata({"note": note})
    held = io.BytesIO()
    pq.write_table(table, held)
    return held.getvalue()


def packed(name: str, content: bytes) -> bytes:
    """Return a pack of one file."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(name, content)
    return held.getvalue()


def uri(kind: str, content: bytes) -> bytes:
    return f"<img src='data:{kind};base64,{base64.b64encode(content).decode()}'>".encode()


HELD = b'<script type="image/webp;base64" id="picture-00">'


def case_page(case: Any) -> bytes:
    """Return a case as in the report."""
    return f'<details><script type="application/gzip;base64" class="case-data">{pack(case)}</script></details>'.encode()


CASES: dict[str, Callable[[], tuple[str, bytes]]] = {
    "text": lambda: ("a.txt", b"seen: Vandermeer"),
    "other case": lambda: ("a.log", b"job of VANDERMEER done"),
    "underscores": lambda: ("a.txt", b"t2_flair_vandermeer4821"),
    "separators in a number": lambda: ("a.txt", b"call +31-20-555.0148"),
    "without accents": lambda: ("a.tsv", b"name\tTherese  Lindqvist"),
    "decomposed accents": lambda: ("a.tsv", "The\u0301re\u0300se-Lindqvist".encode()),
    "Greek without accents": lambda: ("a.txt", "ΚΑΡΑΓΙΑΝΝΗ".encode()),
    "Latin-1": lambda: ("a.txt", "Thérèse Lindqvist".encode("latin-1")),
    "UTF-16": lambda: ("a.bin", "id 高村".encode("utf-16")),
    "UTF-16 at an odd place": lambda: ("a.bin", b"x" + "Vandermeer".encode("utf-16-be")),
    "JSON escapes": lambda: ("a.json", json.dumps({"name": "高村"}).encode()),
    "gzip": lambda: ("a.gz", gzip.compress(b"MRN 48213371")),
    "gzip in gzip": lambda: ("a.gz", gzip.compress(gzip.compress(b"MRN 48213371"))),
    "NIfTI header": lambda: ("a.nii.gz", gzip.compress(nifti(description=b"Vandermeer"))),
    "NIfTI extension": lambda: ("a.nii.gz", gzip.compress(nifti(extension=b"of 48213371"))),
    "NIfTI without compression": lambda: ("a.nii", nifti(description=b"48213371")),
    "voxels": lambda: ("a.nii.gz", gzip.compress(nifti(voxels=b"Vandermeer"))),
    "voxels in UTF-16": lambda: ("a.nii", nifti(voxels="Vandermeer".encode("utf-16-le"))),
    "PNG text": lambda: ("a.png", png(text="Vandermeer")),
    "PNG packed text": lambda: ("a.png", png(packed="192.0.2.118")),
    "behind a PNG": lambda: ("a.png", png(behind=b"Vandermeer")),
    "PNG in a pack": lambda: ("png.zip", packed("a.png", png(packed="Vandermeer"))),
    "name in a pack": lambda: ("png.zip", packed("VANDERMEER.png", png())),
    "parquet cell": lambda: ("a.parquet", parquet("text", "line\nVandermeer")),
    "parquet nested cell": lambda: ("a.parquet", parquet("turns", [{"text": "of 48213371"}])),
    "parquet bytes": lambda: ("a.parquet", parquet("blob", b"Vandermeer")),
    "parquet column": lambda: ("a.parquet", parquet("vandermeer", 1)),
    "parquet metadata": lambda: ("a.parquet", parquet("a", 1, note="Vandermeer")),
    "HTML entity": lambda: ("a.html", b"<p>Th&eacute;r&#232;se Lindqvist;</p>"),
    "data URI of text": lambda: ("a.html", uri("text/plain", b"48213371")),
    "data URI of a PNG": lambda: ("a.html", uri("image/png", png(packed="Vandermeer"))),
    "data URI in percent": lambda: ("a.html", b"<img src='data:image/svg+xml,%3Ctext%3EVander%6Deer%3C/text%3E'>"),
    "case of the report": lambda: ("a.html", case_page({"items": [{"responses": {"text": ["x" * 90_000, "of Vandermeer"]}}]})),
    "case of the report, in other letters": lambda: ("a.html", case_page({"items": [{"question": "高村"}]})),
    "picture of the report": lambda: (
        "a.html",
        uri("image/png", png(text="Vandermeer")).replace(b"<img src='data:image/png;base64,", HELD),
    ),
    "SVG": lambda: ("a.svg", b"<svg><text>Vandermeer</text></svg>"),
    "file name": lambda: ("sub-1_VANDERMEER_T1w.json", b"{}"),
    "folder name": lambda: ("48213371/case.json", b"{}"),
    "name of Snakemake's metadata": lambda: (base64.urlsafe_b64encode(b"data/Vandermeer/case.json").decode(), b"{}"),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_planted_string_is_found_in(tmp_path: Path, kind: str) -> None:
    name, content = CASES[kind]()
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    assert len(leaks_in([path], tmp_path, WORDS)) >= 1


def test_nothing_is_found_in_files_that_hold_nothing(tmp_path: Path) -> None:
    contents = {
        "a.txt": b"meer van der; 148213371; 192.0.21.18; sha256 a48213f371",
        "a.png": png(text="Gadobutrol"),
        "a.nii.gz": gzip.compress(nifti(description=b"dcm2niix")),
        "a.parquet": parquet("text", "no name"),
        "a.bin": zlib.compress(b"nothing"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert leaks_in(sorted(tmp_path.iterdir()), tmp_path, WORDS) == []


def test_a_digest_that_holds_a_short_number_by_chance_is_no_leak_and_a_long_number_is() -> None:
    digest = "3e0da0dfbac97190ba977e8331b8fe58"
    assert find_planted(searchable(f'{{"md5": "{digest}"}}'.encode()), ["8.3.31"]) == []
    assert find_planted(searchable(b'{"md5": "8.3.31"}'), ["8.3.31"]) == ["8.3.31"]
    number = "12345678901234567890123456789012"
    assert find_planted(searchable(number.encode()), [number]) == [number], "digits alone are no digest"
