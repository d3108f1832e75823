"""Pictures of a row that come as a list, with the labels by which the text speaks of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import parts, texts, words, written
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.questions import QuestionImage

EMBEDDED, PATHS = "image", "image_path"
"""Columns: pictures as base64, and their paths beside the table; either may be absent or empty."""


def figures(
    source: SourceFolder, table: Path, row: Mapping[str, Any], *, numbered: bool = False
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes]]:
    """Read the pictures of a row of MMRareBench or MRareBench.

    Parameters
    ----------
    source : SourceFolder
        The folder.
    table : Path
        The table; paths of pictures are relative to its folder.
    row : mapping
        Its row, with `image` (JSON list of base64) or `image_path` (JSON list), and `figure_mapping` (JSON, label to path) or
        `image_slot_map` (JSON list of objects with `public_slot`).
    numbered : bool
        Whether a picture without a label is called `Image <n>`.

    Returns
    -------
    images : tuple of QuestionImage
        In the order of the row, each with its label.
    pictures : dict of str to Path or bytes
        By `file` of the images.

    Raises
    ------
    DataError
        If the row has neither column, or a picture cannot be read or is not there.
    """
    if EMBEDDED not in row and PATHS not in row:
        message = f"neither the column {EMBEDDED!r} nor {PATHS!r} is there; found {', '.join(sorted(row))}"
        raise DataError(message)
    paths = texts(row.get(PATHS))
    embedded = [decoded(text) for text in texts(row.get(EMBEDDED))]
    folder = table.parent.relative_to(source.folder)
    contents: Sequence[Path | bytes] = embedded or [source.picture((folder / path).as_posix()) for path in paths]
    names = paths if len(paths) == len(contents) else ("",) * len(contents)
    labels = _labels(row, names, numbered=numbered)
    keys = [f"{place:03d}" for place in range(1, len(contents) + 1)]
    images = tuple(QuestionImage(file=key, label=label) for key, label in zip(keys, labels, strict=True))
    return images, dict(zip(keys, contents, strict=True))


def _labels(row: Mapping[str, Any], names: Sequence[str], *, numbered: bool) -> list[str]:
    slots = [words(slot, "public_slot") if isinstance(slot, dict) else "" for slot in parts(row.get("image_slot_map"))]
    mapping = _mapping(words(row, "figure_mapping"))
    by_name = {PurePosixPath(path).name: label for label, path in mapping.items()}
    # pictures inside the table have no names: as many labels as pictures are taken in their order
    in_order = list(mapping) if not any(names) and len(mapping) == len(names) else []
    found = []
    for place, name in enumerate(names):
        slot = slots[place] if len(slots) == len(names) else ""
        label = slot or by_name.get(PurePosixPath(name).name, "") or (in_order[place] if in_order else "")
        found.append(label or (f"Image {place + 1}" if numbered else ""))
    return found


def _mapping(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        message = "the column 'figure_mapping' holds no JSON object"
        raise DataError(message)
    return {str(label).strip().removesuffix(":"): written(path) for label, path in value.items()}
