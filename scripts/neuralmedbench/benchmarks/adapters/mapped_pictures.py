"""Pictures of a row by a mapping: paths or content, single or in lists, bare or inside objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import words, written
from neuralmedbench.benchmarks.option_pictures import option_name
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.config.mappings import ImagesMapping, OptionsMapping, PictureForm
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import OPTION
from neuralmedbench.records.questions import LETTERS, QuestionImage


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
    entries = [entry for column in mapping.columns for entry in _entries(row[column])]
    if not entries and mapping.required:
        message = "the question has no picture"
        raise DataError(message)
    images, pictures = [], {}
    for place, entry in enumerate(entries, start=1):
        key = f"{place:03d}"
        pictures[key] = _content(mapping, source, entry)
        images.append(QuestionImage(file=key, label=_label(mapping, entry)))
    return tuple(images), pictures


def option_pictures(
    mapping: OptionsMapping, form: PictureForm, source: SourceFolder, row: Mapping[str, Any]
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes], tuple[str, ...]]:
    """Read options that are pictures.

    Parameters
    ----------
    mapping : OptionsMapping
        Where they stand.
    form : PictureForm
        How.
    source : SourceFolder
        The folder.
    row : mapping
        The row.

    Returns
    -------
    images : tuple of QuestionImage
        One an option, in order, labelled with its letter.
    pictures : dict of str to Path or bytes
        By `file` of the images.
    names : tuple of str
        By which the right one may be named: its path where its cell holds one, else its label.

    Raises
    ------
    DataError
        If one is missing between others, there are too many, or one cannot be read.
    """
    entries = _all_entries(row[mapping.column]) if mapping.column else [row.get(column) for column in mapping.columns]
    nothing = {"", *mapping.missing}
    there = [entry is not None and not (isinstance(entry, str) and entry.strip() in nothing) for entry in entries]
    count = sum(there)
    if not all(there[:count]):
        message = "an option is empty"
        raise DataError(message)
    if count > len(LETTERS):
        message = f"{count} options; expected 2 to {len(LETTERS)}"
        raise DataError(message)
    images = tuple(QuestionImage(file=f"option-{place}", label=option_name(place), role=OPTION) for place in range(count))
    pictures = {image.file: _content(form, source, entry) for image, entry in zip(images, entries, strict=False)}
    names = (
        entry if isinstance(entry, str) and form.form == "path" else image.label for image, entry in zip(images, entries, strict=False)
    )
    return images, pictures, tuple(names)


def _entries(value: Any) -> list[Any]:
    return [entry for entry in _all_entries(value) if entry is not None and entry != ""]


def _all_entries(value: Any) -> list[Any]:
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        try:
            value = json.loads(value)
        except ValueError:
            message = "a list of pictures begins like JSON and is none"
            raise DataError(message) from None
    return list(value) if isinstance(value, list | tuple) else [value]


def _content(mapping: PictureForm, source: SourceFolder, entry: Any) -> Path | bytes:
    if isinstance(entry, Mapping):
        if not mapping.key or mapping.key not in entry:
            message = f"a picture is an object with the keys {', '.join(sorted(map(str, entry)))}; set its `key` to one of them"
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
