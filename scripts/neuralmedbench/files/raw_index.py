"""The private index of one case's raw files (`files.json`): where they lie and what they held when they were listed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import digest_of_files
from neuralmedbench.files.json_files import read_json_record, write_json_record


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One raw file: its path (absolute, or relative to the index) and the SHA-256 digest of its bytes."""

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class RawPicture(RawFile):
    """One raw picture: what a person says that it shows beside its path and digest; empty where nothing is said."""

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
        Scans and what belongs to them, numbered from 1 in this order.
    notes : tuple of RawFile
        Clinical notes in order of time.
    record : RawFile or None
        Structured health record (`record.csv`).
    scan_date : str
        Day of the scan (`YYYYMMDD`) that a person gave; empty when the headers tell.
    pictures : tuple of RawPicture
        The pictures of a case that has no scans, in the order in which they are shown.
    words : tuple of str
        What the folder calls the patient and the case of pictures, and words of their paths with long numbers: they have no header.
    """

    case_id: str
    patient_id: str
    files: tuple[RawFile, ...]
    notes: tuple[RawFile, ...] = ()
    record: RawFile | None = None
    scan_date: str = ""
    pictures: tuple[RawPicture, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def source_sha256(self) -> str:
        """Digest of the case's source, as the case table holds it."""
        files = [file.sha256 for file in (*self.files, *self.notes, *([self.record] if self.record else []))]
        pictures = [" ".join((f"{number:03d}", one.sha256, one.sequence, one.plane)) for number, one in enumerate(self.pictures, start=1)]
        return digest_of_files([*files, *pictures, *self.words, *([self.scan_date] if self.scan_date else [])])


def read_raw_index(path: Path) -> RawIndex:
    """Read a `files.json`; DataError when it is absent or does not fit."""
    if not path.exists():
        message = f"{path.name}: the private index of this case's raw files is not here; list the cases again (nmb cases list)"
        raise DataError(message)
    return read_json_record(path, RawIndex, remedy="write it again with nmb cases list")


def write_raw_index(path: Path, index: RawIndex) -> None:
    """Write a `files.json`."""
    write_json_record(path, index)
