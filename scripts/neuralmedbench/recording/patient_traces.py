"""Find traces of withdrawn patients in folders, table rows, ledger lines, Snakemake's records and DVC's cache."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.files.cases import CASE_STAGES, CaseRow
from neuralmedbench.files.packs import SUFFIX, packed_files
from neuralmedbench.recording.metadata import METADATA, path_of

PLACES = ("data", "results", "logs", ".snakemake/metadata", ".dvc/cache")
"""Folders that a run writes to. Files in git (such as the case table with its pseudonyms) are not searched."""
PARQUET, GZIP, PNG, ZIP = b"PAR1", b"\x1f\x8b", b"\x89PNG", b"PK\x03\x04"
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


def withdrawn_ids(table: Sequence[CaseRow], unlisted: Mapping[str, str] | None = None) -> set[str]:
    """Return the ids of withdrawn cases, and of patients who have no other case.

    `table`: the case table, whose excluded rows are withdrawn. `unlisted`: cases that lost their row (`files.cases.unlisted_cases`).

    Examples
    --------
    >>> row = CaseRow(case_id="c1", patient_id="p1", source_sha256="", sequence_overrides={}, exclude="withdrawn")
    >>> sorted(withdrawn_ids([row]))
    ['c1', 'p1']
    """
    remaining = {row.patient_id for row in table if not row.exclude}
    withdrawn = {row.case_id: row.patient_id for row in table if row.exclude} | dict(unlisted or {})
    return {*withdrawn, *withdrawn.values()} - remaining - {""}


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
    names = _pattern(ids)
    inside: dict[str, int] = defaultdict(int)
    traces: list[PatientTrace] = []
    for path in _files(root):
        relative = path.relative_to(root)
        folder = _folder_of(relative, names)
        # files in a folder of the patient are counted, not searched
        if folder:
            inside[folder] += 1
        elif extent := _extent(path, names, root / METADATA):
            traces.append(PatientTrace(relative.as_posix(), extent))
    return sorted([*traces, *(PatientTrace(folder, _count(number, "file")) for folder, number in inside.items())])


def _pattern(ids: set[str]) -> re.Pattern[str]:
    """Return a pattern that finds ids as whole words: `case1` is not in `case12`."""
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(sorted(re.escape(name) for name in ids))})(?![a-z0-9])")


def remove_case(root: Path, benchmark: str, case: str) -> list[str]:
    """Delete the folders, review sheet and logs of one case; files that hold other cases too are left.

    Parameters
    ----------
    root : Path
        The repository root.
    benchmark, case : str
        Name of the benchmark, id of the case.

    Returns
    -------
    list of str
        What was deleted, relative to the root.
    """
    data = root / "data"
    places = [data / "raw" / benchmark / case, *(data / stage / benchmark / f"sub-{case}" for stage in CASE_STAGES)]
    places += [data / "reviews" / benchmark / "sheets" / f"sub-{case}.html", *(root / "logs").rglob(f"{benchmark}_{case}.log")]
    places += [data / "altered" / benchmark / "png" / f"sub-{case}{end}" for end in ("", SUFFIX)]
    places.append(data / "views" / benchmark / f"sub-{case}")
    found = [place for place in places if place.exists() or place.is_symlink()]
    for place in found:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    return [place.relative_to(root).as_posix() for place in found]


def _files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        yield from (path for path in sorted((root / place).rglob("*")) if path.is_file() and not path.is_symlink())


def _folder_of(relative: Path, names: re.Pattern[str]) -> str:
    """Return the path down to the first part with an id; empty if there is none."""
    for depth, part in enumerate(relative.parts, start=1):
        if names.search(part):
            return Path(*relative.parts[:depth]).as_posix()
    return ""


def _extent(path: Path, names: re.Pattern[str], records: Path) -> str:
    # the id may be in the encoded file name only
    if path.is_relative_to(records) and names.search(_output_of(path.relative_to(records))):
        return "record of Snakemake"
    content = path.read_bytes()
    if content.startswith(PARQUET):
        return _count(_rows(path, names), "row")
    # everything else is searched as text, such as JSON, CSV and logs
    parts = packed_files(path).values() if content.startswith(ZIP) else [content]
    lines = (line for part in parts if not part.startswith(OPAQUE) for line in part.decode("utf-8", errors="replace").splitlines())
    return _count(sum(names.search(line) is not None for line in lines), "line")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""


def _output_of(record: Path) -> str:
    """Return the path of the output that one of Snakemake's records is about; empty for another file among them."""
    try:
        return path_of(record)
    except ValueError:
        return ""


def _rows(path: Path, names: re.Pattern[str]) -> int:
    import pyarrow.parquet as pq

    # `repr` covers ids in nested columns
    return sum(names.search(repr(row)) is not None for row in pq.read_table(path).to_pylist())
