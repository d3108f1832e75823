"""The byte-level search for planted strings: every shareable file is unpacked and decoded as far as anything can be hidden in it."""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow.parquet as pq

from neuralmedbench.deid.score.files import png_text
from neuralmedbench.files.answer_key import bare, left_in, searchable

DATA_URI = re.compile(rb"(?:data:[\w.+/;=-]*;base64,|;base64\"[^<>]*>)([A-Za-z0-9+/=]+)")
"""A data URI, or what the report holds in its place: a script element that says in its type that it is base64."""

PERCENT_URI = re.compile(rb"data:[\w.+/;=-]*,([^\s\"'<>]*%[0-9A-Fa-f]{2}[^\s\"'<>]*)")
LONG = 8
"""Strings of so many letters and digits do not stand among voxels by chance."""


def leaks_in(files: Iterable[Path], root: Path, words: Sequence[str]) -> list[str]:
    """Give `<file>: <word>` for every planted string in the content or the name of a file, whatever its case, accents and separators."""
    found = []
    for path in files:
        name = path.relative_to(root).as_posix()
        text = "\n".join([searchable(name.encode()), *map(searchable, _encoded_names(name)), *map(searchable, unpacked(path.read_bytes()))])
        found += [f"{name}: {word}" for word in left_in(text, words)]
        found += [f"{name}: {word} (voxels)" for word in _in_voxels(path, words)]
    return found


def _encoded_names(name: str) -> Iterator[bytes]:
    """Parts of a path that hold another path, as Snakemake's metadata do."""
    joined = "".join(part for part in name.split("/") if len(part) > 12)
    for part in (*name.split("/"), joined.replace("@", "")):
        try:
            yield base64.urlsafe_b64decode(part.encode() + b"==")
        except (binascii.Error, ValueError):
            continue
    yield unquote_to_bytes(name)


def unpacked(content: bytes) -> Iterator[bytes]:
    """Give everything readable in a file: compressed and embedded parts too, pixels and voxels not."""
    if content.startswith(b"\x1f\x8b"):
        yield from unpacked(gzip.decompress(content))
    elif _is_nifti(content):
        yield content[: _voxels_at(content)]
    elif content.startswith(b"\x89PNG"):
        yield png_text(content)
    elif content.startswith(b"PAR1"):
        yield "\n".join(_cells(content)).encode()
    else:
        yield DATA_URI.sub(b" ", content)
        for match in DATA_URI.finditer(content):
            yield from unpacked(base64.b64decode(match[1] + b"=="))
        for match in PERCENT_URI.finditer(content):
            yield unquote_to_bytes(match[1])
        if b"&" in content and b";" in content:
            yield html.unescape(DATA_URI.sub(b" ", content).decode("utf-8", "replace")).encode()


def _is_nifti(content: bytes) -> bool:
    return content[:4] in {b"\x5c\x01\x00\x00", b"\x00\x00\x01\x5c"}


def _voxels_at(content: bytes) -> int:
    import struct

    little = content[:1] == b"\x5c"
    return max(352, int(struct.unpack(("<" if little else ">") + "f", content[108:112])[0]))


def _in_voxels(path: Path, words: Sequence[str]) -> list[str]:
    if not path.name.endswith((".nii", ".nii.gz")):
        return []
    content = path.read_bytes()
    voxels = (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).replace(b"\0", b"")  # UTF-16 is UTF-8 without zeros
    return [word for word in words if len(bare(word)) >= LONG and word.encode() in voxels]


def _cells(content: bytes) -> Iterator[str]:
    """Every cell and name of a parquet table, and its metadata."""
    file = pq.ParquetFile(io.BytesIO(content))
    yield str(file.schema_arrow)
    for pair in (file.schema_arrow.metadata or {}).items():
        yield from (part.decode("utf-8", "replace") for part in pair)
    yield from _leaves(file.read().to_pylist())


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif value is not None:
        yield str(value)
