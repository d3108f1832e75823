"""Read the pictures of a row: those of the question, and options that are pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.options import is_missing, names_of, order_of
from neuralmedbench.benchmarks.adapters.paths import listed
from neuralmedbench.benchmarks.adapters.rows import cell_text, column_text
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.config.mapping_sections import ImagesMapping, OptionsMapping, PictureForm
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import CURRENT_SCAN, OPTION, PART, PRIOR_SCAN
from neuralmedbench.records.options import option_name
from neuralmedbench.records.questions import LETTERS, QuestionImage


def mapped_pictures(
    mapping: ImagesMapping, source: SourceFolder, row: Mapping[str, Any], table: Path, *, before: int = 0
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes]]:
    """Read the labelled pictures of a row, and their files or bytes by `file`; DataError if a required picture is missing.

    Pictures of an earlier examination come before those of the present one. `before` pictures of the question were read before.
    """
    roles = mapping.roles or ("picture",) * len(mapping.columns)
    entries = [(role, entry) for column, role in zip(mapping.columns, roles, strict=True) for entry in _pictures(row[column])]
    entries.sort(key=lambda one: one[0] != PRIOR_SCAN)
    if not entries and mapping.required:
        message = "the question has no picture"
        raise DataError(message)
    images, pictures, number = [], {}, Counter[str]()
    for place, (role, entry) in enumerate(entries, start=before + 1):
        key = f"{place:03d}"
        pictures[key] = _content(mapping, source, entry, table)
        number[role] += 1
        several = role == PART or sum(other == role for other, _ in entries) > 1
        name = f"{NAMES[role]} {number[role]}" if several and role in NAMES else NAMES.get(role, "")
        images.append(QuestionImage(file=key, label=name or _label(mapping, entry), role=role))
    return tuple(images), pictures


NAMES = {PRIOR_SCAN: "Earlier image", CURRENT_SCAN: "Present image", PART: "Image"}
"""Labels by role; numbered where a question has several. No date is known."""


def _pictures(value: Any) -> list[Any]:
    return [entry for entry in _all_pictures(value) if entry is not None and entry != ""]


def _all_pictures(value: Any) -> list[Any]:
    if isinstance(value, str) and value.strip()[:1] in {"[", "{"}:
        value = listed(value)
        if isinstance(value, str):
            message = "a list of pictures begins like JSON but is invalid"
            raise DataError(message)
    return list(value) if isinstance(value, list | tuple) else [value]


def _content(mapping: PictureForm, source: SourceFolder, entry: Any, table: Path) -> Path | bytes:
    if isinstance(entry, Mapping):
        if not mapping.key or mapping.key not in entry:
            message = f"a picture is an object with the keys {', '.join(sorted(map(str, entry)))}; set its `key` to one of them"
            raise DataError(message)
        entry = entry[mapping.key]
    if isinstance(entry, bytes):
        return entry
    if mapping.form == "base64":
        return decoded(cell_text(entry))
    # below a folder that the mapping names, a path with a slash in front is a path too
    name = cell_text(entry).lstrip("/") if mapping.folder else cell_text(entry)
    return source.picture(f"{name}{mapping.suffix}" if name else "", folder=mapping.folder, beside=table)


def _label(mapping: ImagesMapping, entry: Any) -> str:
    name = column_text(entry, mapping.label_key) if mapping.label_key and isinstance(entry, Mapping) else ""
    return f"{mapping.label} {name}".strip() if name else ""


def option_pictures(
    mapping: OptionsMapping, form: PictureForm, source: SourceFolder, row: Mapping[str, Any], table: Path
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes], tuple[str, ...]]:
    """Read options that are pictures, one per letter, and the names that the answer may use for them: path, else label."""
    entries = _all_pictures(row[mapping.column]) if mapping.column else [row.get(column) for column in mapping.columns]
    if letters := names_of(entries, form.key):
        entries = [entries[place] for place in order_of(letters)]
    # options may be missing at the end, not in between
    there = [entry is not None and not (isinstance(entry, str) and is_missing(entry, mapping.missing)) for entry in entries]
    count = sum(there)
    if not all(there[:count]):
        message = "an option is empty"
        raise DataError(message)
    if count > len(LETTERS):
        message = f"{count} options; expected 2 to {len(LETTERS)}"
        raise DataError(message)
    images = tuple(QuestionImage(file=f"option-{place}", label=option_name(place), role=OPTION) for place in range(count))
    pictures = {image.file: _content(form, source, entry, table) for image, entry in zip(images, entries, strict=False)}
    names = (
        entry if isinstance(entry, str) and form.form == "path" else image.label for image, entry in zip(images, entries, strict=False)
    )
    return images, pictures, tuple(names)
