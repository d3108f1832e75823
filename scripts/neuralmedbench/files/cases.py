"""`case.json`, the picture manifest, the audit and the case table."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError, DeidentificationError
from neuralmedbench.files.digests import sha256_of, sha256_of_files, sha256_of_value
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, Sequence, State
from neuralmedbench.runtime.atomic_write import atomic_file
from neuralmedbench.runtime.storage import full_disk_cause

REMEDY = "run its stage again"
CASE_LABEL = re.compile(r"[a-z0-9]+")
CASE_COLUMNS = ("case_id", "patient_id", "source_sha256", "sequence_overrides", "exclude")

KINDS = tuple(sequence.value for sequence in Sequence if sequence is not Sequence.UNKNOWN)
"""What a series can be set to."""


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One row of `config/benchmarks/<benchmark>.cases.tsv`.

    Attributes
    ----------
    case_id, patient_id : str
        Pseudonyms; a case id is a BIDS label.
    source_sha256 : str
        Digest over the raw files' digests, so that a changed scan is a changed row.
    sequence_overrides : dict of str to str
        Sequence by series id, where the header is wrong (`series-02=FLAIR;series-03=T1w` in the table).
    exclude : str
        Why the case is left out; empty when it is used.
    """

    case_id: str
    patient_id: str
    source_sha256: str
    sequence_overrides: dict[str, str]
    exclude: str


def read_case(path: Path) -> CaseRecord:
    """Read a `case.json`; DataError when it is absent or does not fit."""
    return read_json_record(path, CaseRecord, remedy=REMEDY)


def write_case(path: Path, case: CaseRecord) -> None:
    """Write a `case.json` with the digests of every file beside it."""
    files = {name: digest for name, digest in sha256_of_files(path.parent).items() if name != path.name}
    write_json_record(path, replace(case, files=files))


def read_pictures(path: Path) -> PictureManifest:
    """Read a `pictures.json`; DataError when it is absent or does not fit."""
    return read_json_record(path, PictureManifest, remedy=REMEDY)


def write_pictures(path: Path, manifest: PictureManifest) -> None:
    """Write a `pictures.json`."""
    write_json_record(path, manifest)


def read_audit(path: Path) -> Audit:
    """Read an `audit.json`; DataError when it is absent or does not fit."""
    return read_json_record(path, Audit, remedy=REMEDY)


def write_audit(path: Path, audit: Audit) -> None:
    """Write an `audit.json`."""
    write_json_record(path, audit)


def run_case_stage(
    stage: str, previous: Path, out: Path, step: Callable[[CaseRecord, Path], CaseRecord], *, folders: tuple[Path, ...] = ()
) -> None:
    """Run one stage on one case: pass a quarantined case on, quarantine a case whose data cannot be used.

    Parameters
    ----------
    stage : str
        `deidentify`, `normalise` or `slices`.
    previous : Path
        `case.json` of the stage before.
    out : Path
        `case.json` of this stage.
    step : callable
        Takes the case and the folder that holds it, fills the folder of `out` and gives the case as this stage leaves it.
    folders : tuple of Path
        Folders that the rule declares as outputs: they exist afterwards, empty when the case is quarantined.

    Notes
    -----
    Only `DataError` and `DeidentificationError` quarantine; anything else fails the job.
    """
    case = read_case(previous)
    base = replace(case, stage=stage, source_sha256=sha256_of(previous), files={}, checks={}, fates=())
    done = base if case.state is State.QUARANTINED else quarantine_on_error(base, lambda: step(base, previous.parent))
    for folder in folders:
        if done.state is State.QUARANTINED:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_case(out, done)


def quarantine_on_error(base: CaseRecord, step: Callable[[], CaseRecord]) -> CaseRecord:
    """Give what `step` gives, or `base` as quarantined when the step says that the data cannot be used.

    Whatever a step made of a full disk, it is passed on as that: a case is never quarantined for it.
    """
    try:
        return step()
    except (DataError, DeidentificationError) as error:
        if full := full_disk_cause(error):
            raise full from None
        return replace(
            base,
            state=State.QUARANTINED,
            reason=str(error),
            quarantined_by=base.stage,
            series=(),
            slices=(),
            pictures=tuple(picture.kept_back(f"its case was kept back: {error}") for picture in base.pictures),
            notes=(),
            record="",
        )


def read_case_table(path: Path) -> list[CaseRow]:
    """Read the case table of a benchmark.

    Parameters
    ----------
    path : Path
        `config/benchmarks/<benchmark>.cases.tsv`.

    Returns
    -------
    list of CaseRow
        The rows in the order of the file, excluded ones too.

    Raises
    ------
    ConfigError
        If the table is absent, lacks a column, repeats a case or holds an id that is not a label.
    """
    if not path.exists():
        message = f"{path.as_posix()}: the case table is not there; write it with `nmb cases list`"
        raise ConfigError(message)
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        rows = list(reader)
    if tuple(reader.fieldnames or ()) != CASE_COLUMNS:
        found = ", ".join(reader.fieldnames or ()) or "none"
        message = f"{path.as_posix()}: expected the columns {', '.join(CASE_COLUMNS)}, found {found}"
        raise ConfigError(message)
    cases = [_case_row(path, number, row) for number, row in enumerate(rows, start=2)]
    seen: set[str] = set()
    for case in cases:
        if case.case_id in seen:
            message = f"{path.as_posix()}: case {case.case_id} stands there twice; keep one row"
            raise ConfigError(message)
        seen.add(case.case_id)
    return cases


def case_files(table: Path, folder: Path) -> list[Path]:
    """Give `case.json` of every case that a table does not exclude, as one stage left it in `folder/sub-<case>`.

    Commands are given table and folder because thousands of paths are longer than a command line may be.
    """
    return [folder / f"sub-{row.case_id}" / "case.json" for row in read_case_table(table) if not row.exclude]


def _case_row(path: Path, number: int, row: dict[str, str]) -> CaseRow:
    if any(value is None for value in row.values()) or None in row:
        message = f"{path.as_posix()}, line {number}: expected {len(CASE_COLUMNS)} cells separated by tabs"
        raise ConfigError(message)
    if not CASE_LABEL.fullmatch(row["case_id"]):
        message = f"{path.as_posix()}, line {number}: a case id holds lower-case letters and digits only"
        raise ConfigError(message)
    overrides = read_overrides(row["sequence_overrides"])
    if any(sequence not in KINDS for sequence in overrides.values()):
        message = f"{path.as_posix()}, line {number}: sequence_overrides looks like series-02=FLAIR;series-03=T1w, with a kind of {', '.join(KINDS)}"
        raise ConfigError(message)
    return CaseRow(
        case_id=row["case_id"],
        patient_id=row["patient_id"] or row["case_id"],
        source_sha256=row["source_sha256"],
        sequence_overrides=overrides,
        exclude=row["exclude"],
    )


def read_overrides(text: str) -> dict[str, str]:
    """Read kinds of scan by series id as a cell or an argument holds them (`series-02=FLAIR;series-03=T1w`)."""
    pairs = (pair.partition("=") for pair in text.split(";") if pair.strip())
    return {series.strip(): sequence.strip() for series, _, sequence in pairs}


def write_overrides(overrides: dict[str, str]) -> str:
    """Write kinds of scan by series id as `read_overrides` reads them."""
    return ";".join(f"{series}={sequence}" for series, sequence in overrides.items())


def write_case_table(path: Path, rows: list[CaseRow]) -> None:
    """Write the case table of a benchmark, sorted by case id."""
    with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(CASE_COLUMNS)
        for row in sorted(rows, key=lambda row: row.case_id):
            writer.writerow([row.case_id, row.patient_id, row.source_sha256, write_overrides(row.sequence_overrides), row.exclude])


def digest_of_files(digests: list[str]) -> str:
    """Digest of a case's raw files: over the sorted digests, so that names and order do not matter."""
    return sha256_of_value(sorted(digests))
