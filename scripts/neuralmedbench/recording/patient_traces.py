"""Find what still holds a withdrawn patient: folders, table rows, ledger lines, Snakemake's records, objects of DVC's cache."""

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
"""Where a run leaves something. What git holds (the case table with its pseudonyms) is none of it."""
PARQUET, GZIP, PNG = b"PAR1", b"\x1f\x8b", b"\x89PNG"
OPAQUE = (GZIP, PNG)
"""Volumes and pictures: they name nobody, their folder or their `case.json` does."""


@dataclass(frozen=True, order=True)
class PatientTrace:
    """Something that still holds a withdrawn patient.

    Attributes
    ----------
    path : str
        POSIX path relative to the repository root: a folder of the case, or a file.
    what : str
        How much of it: `14 files`, `12 lines`, `5 rows`, `record of Snakemake`.
    """

    path: str
    what: str


def withdrawn_ids(table: Sequence[CaseRow]) -> set[str]:
    """Case ids of the excluded rows of a case table, and the ids of patients who have no other row.

    Examples
    --------
    >>> row = CaseRow(case_id="c1", patient_id="p1", source_sha256="", sequence_overrides={}, exclude="withdrawn")
    >>> sorted(withdrawn_ids([row]))
    ['c1', 'p1']
    """
    kept = {row.patient_id for row in table if not row.exclude}
    gone = [row for row in table if row.exclude]
    return {row.case_id for row in gone} | {row.patient_id for row in gone if row.patient_id not in kept}


def find_traces(root: Path, ids: set[str]) -> list[PatientTrace]:
    """Find everything below the repository root that names one of the ids.

    Parameters
    ----------
    root : Path
        The repository root.
    ids : set of str
        Case and patient ids, as `withdrawn_ids` gives them.

    Returns
    -------
    list of Held
        Sorted by path. A folder that bears an id is one entry; of other files every row or line that names an id is counted. Copies on a
        DVC remote and in other clones are not seen from here.
    """
    if not ids:
        return []
    names = re.compile("|".join(sorted(re.escape(name) for name in ids)))
    inside: dict[str, int] = defaultdict(int)
    found: list[PatientTrace] = []
    for path in _files(root):
        relative = path.relative_to(root)
        folder = _folder_of(relative, names)
        if folder:
            inside[folder] += 1
        elif what := _what(path, names):
            found.append(PatientTrace(relative.as_posix(), what))
    return sorted([*found, *(PatientTrace(folder, _count(number, "file")) for folder, number in inside.items())])


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        yield from (path for path in sorted((root / place).rglob("*")) if path.is_file() and not path.is_symlink())


def _folder_of(relative: Path, names: re.Pattern[str]) -> str:
    """Path down to the first part that bears an id; empty when none does."""
    for depth, part in enumerate(relative.parts, start=1):
        if names.search(part):
            return Path(*relative.parts[:depth]).as_posix()
    return ""


def _what(path: Path, names: re.Pattern[str]) -> str:
    if path.parent.name == "metadata" and names.search(_recorded_path(path.name)):
        return "record of Snakemake"
    content = path.read_bytes()
    if content.startswith(PARQUET):
        return _count(_rows(path, names), "row")
    if content.startswith(OPAQUE):
        return ""
    lines = content.decode("utf-8", errors="replace").splitlines()
    return _count(sum(names.search(line) is not None for line in lines), "line")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""


def _recorded_path(name: str) -> str:
    """Snakemake names the record of a file by its path in base64."""
    try:
        return base64.b64decode(name, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _rows(path: Path, names: re.Pattern[str]) -> int:
    import pyarrow.parquet as pq

    return sum(names.search(repr(row)) is not None for row in pq.read_table(path).to_pylist())
