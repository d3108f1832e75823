"""Find traces of withdrawn patients in folders, table rows, ledger lines, Snakemake's records and DVC's cache."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.files.cases import CaseRow

PLACES = ("data", "results", "logs", ".snakemake/metadata", ".dvc/cache")
"""Folders that a run writes to. Files in git (such as the case table with its pseudonyms) are not searched."""
PARQUET, GZIP, PNG = b"PAR1", b"\x1f\x8b", b"\x89PNG"
OPAQUE = (GZIP, PNG)
"""Formats of volumes and pictures, which hold no ids; their folder or `case.json` does."""


@dataclass(frozen=True, order=True)
class PatientTrace:
    """A file or folder that still holds a withdrawn patient.

    Attributes
    ----------
    path : str
        POSIX path relative to the repository root: a folder of the case, or a file.
    what : str
        Extent: `14 files`, `12 lines`, `5 rows`, `record of Snakemake`.
    """

    path: str
    what: str


def withdrawn_ids(table: Sequence[CaseRow]) -> set[str]:
    """Return the case ids of the excluded rows of a case table, and the ids of patients who have no other row.

    Examples
    --------
    >>> row = CaseRow(case_id="c1", patient_id="p1", source_sha256="", sequence_overrides={}, exclude="withdrawn")
    >>> sorted(withdrawn_ids([row]))
    ['c1', 'p1']
    """
    remaining = {row.patient_id for row in table if not row.exclude}
    excluded = [row for row in table if row.exclude]
    return {row.case_id for row in excluded} | {row.patient_id for row in excluded if row.patient_id not in remaining}


def find_traces(root: Path, ids: set[str]) -> list[PatientTrace]:
    """Find all files below the repository root that contain one of the ids.

    Parameters
    ----------
    root : Path
        The repository root.
    ids : set of str
        Case and patient ids, from `withdrawn_ids`.

    Returns
    -------
    list of PatientTrace
        Sorted by path. A folder named by an id is one entry; for other files, the rows or lines with an id are counted. Copies on a DVC
        remote or in other clones are not searched.
    """
    if not ids:
        return []
    names = re.compile("|".join(sorted(re.escape(name) for name in ids)))
    inside: dict[str, int] = defaultdict(int)
    traces: list[PatientTrace] = []
    for path in _files(root):
        relative = path.relative_to(root)
        folder = _folder_of(relative, names)
        # files in a folder of the patient are counted, not searched
        if folder:
            inside[folder] += 1
        elif extent := _extent(path, names):
            traces.append(PatientTrace(relative.as_posix(), extent))
    return sorted([*traces, *(PatientTrace(folder, _count(number, "file")) for folder, number in inside.items())])


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        yield from (path for path in sorted((root / place).rglob("*")) if path.is_file() and not path.is_symlink())


def _folder_of(relative: Path, names: re.Pattern[str]) -> str:
    """Return the path down to the first part with an id; empty if there is none."""
    for depth, part in enumerate(relative.parts, start=1):
        if names.search(part):
            return Path(*relative.parts[:depth]).as_posix()
    return ""


def _extent(path: Path, names: re.Pattern[str]) -> str:
    # the id may be in the encoded file name only
    if path.parent.name == "metadata" and names.search(_recorded_path(path.name)):
        return "record of Snakemake"
    content = path.read_bytes()
    if content.startswith(PARQUET):
        return _count(_rows(path, names), "row")
    if content.startswith(OPAQUE):
        return ""
    # everything else is searched as text, such as JSON, CSV and logs
    lines = content.decode("utf-8", errors="replace").splitlines()
    return _count(sum(names.search(line) is not None for line in lines), "line")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""


def _recorded_path(name: str) -> str:
    """Decode the name of one of Snakemake's records: the path of the output in base64."""
    try:
        return base64.b64decode(name, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _rows(path: Path, names: re.Pattern[str]) -> int:
    import pyarrow.parquet as pq

    # `repr` covers ids in nested columns
    return sum(names.search(repr(row)) is not None for row in pq.read_table(path).to_pylist())
