"""Images and descriptions of the series of an ingested case, in the private zone: what de-identification shows a reviewer of unused series."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neuralmedbench.files.json_files import read_json, write_json

FOLDER, DESCRIPTIONS = "unused", "descriptions.json"


def images_folder(case_folder: Path) -> Path:
    """Return the folder for the images of unused series of an ingested case."""
    return case_folder / FOLDER


def unused_images(case_folder: Path, series_id: str) -> Path | None:
    """Return the images of an unused series of an ingested case, a folder of DICOM files or one NIfTI file; None without them."""
    places = [images_folder(case_folder) / name for name in (series_id, f"{series_id}.nii.gz")]
    return next((place for place in places if place.exists()), None)


def write_descriptions(case_folder: Path, descriptions: Mapping[str, str]) -> None:
    """Write the raw descriptions of an ingested case by series id; only the owner can read them."""
    write_json(case_folder / DESCRIPTIONS, dict(descriptions), private=True)


def read_descriptions(case_folder: Path) -> dict[str, str]:
    """Return the raw descriptions of an ingested case by series id; empty for a case of an earlier version."""
    path = case_folder / DESCRIPTIONS
    return {str(name): str(words) for name, words in read_json(path).items()} if path.exists() else {}
