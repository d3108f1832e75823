"""Pictures of a row by a mapping: paths or content, single or in lists, bare or inside objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import words, written
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.config.mappings import ImagesMapping
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import QuestionImage


def mapped_pictures(
    mapping: ImagesMapping, source: SourceFolder, row: Mapping[str, Any]
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes]]:
    """Read the pictures of a row.

    Parameters
    ----------
    mapping : ImagesMapping
        Where they stand.
    source : SourceFolder
        The folder.
    row : mapping
        The row.

    Returns
    -------
    images : tuple of QuestionImage
        In order, with their labels.
    pictures : dict of str to Path or bytes
        By `file` of the images.

    Raises
    ------
    DataError
        If there is none and one is required, or one cannot be read.
    """
    entries = [entry for column in mapping.columns for entry in _entries(mapping, row[column])]
    if not entries and mapping.required:
        message = "the question has no picture"
        raise DataError(message)
    images, pictures = [], {}
    for place, entry in enumerate(entries, start=1):
        key = f"{place:03d}"
        pictures[key] = _content(mapping, source, entry)
        images.append(QuestionImage(file=key, label=_label(mapping, entry)))
    return tuple(images), pictures


def _entries(mapping: ImagesMapping, value: Any) -> list[Any]:
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        try:
            value = json.loads(value)
        except ValueError:
            message = "a list of pictures begins like JSON and is none"
            raise DataError(message) from None
    found = list(value) if isinstance(value, list | tuple) else [value]
    return [entry for entry in found if entry is not None and entry != ""]


def _content(mapping: ImagesMapping, source: SourceFolder, entry: Any) -> Path | bytes:
    if isinstance(entry, Mapping):
        if not mapping.key or mapping.key not in entry:
            message = f"a picture is an object with the keys {', '.join(sorted(map(str, entry)))}; set `images.key` to one of them"
            raise DataError(message)
        entry = entry[mapping.key]
    if isinstance(entry, bytes):
        return entry
    if mapping.form == "base64":
        return decoded(written(entry))
    return source.picture((PurePosixPath(mapping.folder) / written(entry)).as_posix())


def _label(mapping: ImagesMapping, entry: Any) -> str:
    name = words(entry, mapping.label_key) if mapping.label_key and isinstance(entry, Mapping) else ""
    return f"{mapping.label} {name}".strip() if name else ""
