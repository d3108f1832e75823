"""Private files about what came in with a case: the index of its raw files (`files.json`), and the images of its series.

The index holds paths and the digests at the time of listing. From the images and descriptions, de-identification shows a reviewer the
series that are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import digest_of_files
from neuralmedbench.files.json_files import read_json, read_json_record, write_json, write_json_record

FOLDER, DESCRIPTIONS = "unused", "descriptions.json"


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One raw file: its path (absolute, or relative to the index) and the SHA-256 digest of its bytes."""

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class RawPicture(RawFile):
    """One raw picture: path, digest, and the sequence and plane given by a person, or empty."""

    sequence: str = ""
    plane: str = ""


@dataclass(frozen=True, kw_only=True)
class RawIndex:
    """The raw files of one case.

    Attributes
    ----------
    case_id, patient_id : str
        Pseudonyms.
    files : tuple of RawFile
        Scans and their sidecars, numbered from 1 in this order.
    notes : tuple of RawFile
        Clinical notes in order of time.
    record : RawFile or None
        Structured health record (`record.csv`).
    scan_date : str
        Date of the scan (`YYYYMMDD`) given by a person; empty if the headers have it.
    pictures : tuple of RawPicture
        Pictures of a case without scans, in display order.
    words : tuple of str
        Names of patient and case of pictures, and words of their paths with long numbers, in place of identifiers from headers.
    same_uids : tuple of str
        Cases of other patients whose DICOM files have UIDs of this case.
    held_back : str
        Why the case is not used before a person decided; empty if it is used.
    """

    case_id: str
    patient_id: str
    files: tuple[RawFile, ...]
    notes: tuple[RawFile, ...] = ()
    record: RawFile | None = None
    scan_date: str = ""
    pictures: tuple[RawPicture, ...] = ()
    words: tuple[str, ...] = ()
    same_uids: tuple[str, ...] = ()
    held_back: str = ""

    @property
    def source_sha256(self) -> str:
        """Digest of the case's raw files, as in the case table."""
        # order matters for pictures only: it is the order in which they are shown
        files = [file.sha256 for file in (*self.files, *self.notes, *([self.record] if self.record else []))]
        pictures = [" ".join((f"{number:03d}", one.sha256, one.sequence, one.plane)) for number, one in enumerate(self.pictures, start=1)]
        stated = [text for text in (self.scan_date, self.held_back) if text]
        return digest_of_files([*files, *pictures, *self.words, *stated, *self.same_uids])


def read_raw_index(path: Path) -> RawIndex:
    """Read a `files.json`; DataError if it is absent or invalid."""
    if not path.exists():
        message = f"{path.name}: the private index of this case's raw files is not here; list the cases again (nmb cases list)"
        raise DataError(message)
    return read_json_record(path, RawIndex, remedy="write it again with nmb cases list")


def write_raw_index(path: Path, index: RawIndex) -> None:
    """Write a `files.json`."""
    write_json_record(path, index)


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
