"""DICOM headers without identity: the table of PS3.15 (2026c) with what its options allow put back under a key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.deid.headers.cleaner import HeaderCleaner
from neuralmedbench.deid.headers.diff import changes, snapshot
from neuralmedbench.deid.headers.rules import HeaderRules
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.runtime.storage import full_disk_behind

if TYPE_CHECKING:
    from pydicom.dataset import Dataset


def clean_header(dataset: Dataset, rules: HeaderRules) -> Counter[str]:
    """Remove what identifies a patient from a DICOM dataset, in place, nested sequences and file meta too.

    Parameters
    ----------
    dataset : Dataset
        A whole dataset; pixels are not touched.
    rules : HeaderRules
        Key, pseudonym, dates and options.

    Returns
    -------
    Counter
        How many elements each check changed: `private`, `uids`, `dates`, `text`, `table`. An element that resists cleaning is
        removed.

    Notes
    -----
    Values are judged as they are encoded in the file, so that most elements are never decoded. An element is judged by its tag's VR in the
    standard, not by what the file claims: text cannot hide behind another VR.
    """
    return HeaderCleaner(rules).clean(dataset)


def clean_series(source: Path, target: Path, rules: HeaderRules, changed: Counter[tuple[str, str]] | None = None) -> Counter[str]:
    """Clean the files of one DICOM series.

    Parameters
    ----------
    source, target : Path
        Folder of the raw files with neutral names, and folder for the cleaned ones under the same names.
    rules : HeaderRules
        Key, pseudonym, dates and options.
    changed : Counter, optional
        Gets what became of every element, by name (see `header_diff.changes`), of the first file and of every file with an element that
        those before it lack.

    Returns
    -------
    Counter
        Sums of `clean_header`.

    Raises
    ------
    DataError
        If a file cannot be read.
    DeidentificationError
        If a file cannot be written after cleaning.
    OSError
        If the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    cleaner = HeaderCleaner(rules)
    counts: Counter[str] = Counter()
    compared: set[int] = set()
    paths = sorted(source.glob("*.dcm"))
    for number, path in enumerate(paths, start=1):
        dataset = dicom.read_dicom(path)
        is_new = changed is not None and not compared.issuperset(dataset.keys())
        compared.update(dataset.keys())
        before = snapshot(dicom.read_dicom(path)) if is_new else None
        counts += cleaner.clean(dataset)
        if before is not None and changed is not None:
            changed.update(changes(before, dataset))
        write_dicom(target / path.name, dataset, f"file {number} of {len(paths)} of a series")
    return counts


def write_dicom(path: Path, dataset: Dataset, what: str) -> None:
    """Write a cleaned dataset.

    Raises
    ------
    DeidentificationError
        If it cannot be written; the message names it by `what`.
    OSError
        If the disk is full.
    """
    try:
        dataset.save_as(path, enforce_file_format=True)
    except Exception as error:  # whatever pydicom stumbles over, its text may hold a value of the header
        if full := full_disk_behind(error):
            raise full from None
        message = f"{what} could not be written after cleaning ({type(error).__name__})"
        raise DeidentificationError(message) from None
