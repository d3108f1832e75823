"""Read and write `case.json`, `pictures.json`, `audit.json` and the case table; run one stage on one case."""

from __future__ import annotations

import csv
import re
import shutil
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError, DeidentificationError, IdentityLeaksError, PipelineError
from neuralmedbench.files.digests import sha256_of, sha256_of_files, sha256_of_value
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.files.packs import PACKED, SUFFIX, write_pack
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, Sequence, State
from neuralmedbench.runtime.atomic_write import write_tsv
from neuralmedbench.runtime.commands import is_debugging
from neuralmedbench.runtime.storage import full_disk_cause

REMEDY = "run its stage again"
CASE_LABEL = re.compile(r"[a-z0-9]+")
CASE_COLUMNS = ("case_id", "patient_id", "source_sha256", "sequence_overrides", "exclude")

CASE_STAGES = ("ingested", "deidentified", "normalised", "slices")
"""Folders of `data/` with a folder `<benchmark>/sub-<case>` per case."""

KINDS = tuple(sequence.value for sequence in Sequence if sequence is not Sequence.UNKNOWN)
"""Sequences that an override can name."""
LEFT_OUT = "none"
"""Override of a series that is not to be used."""
UNFORESEEN = "a file is damaged in a way that nothing expects; leave it out, or see the traceback with NMB_DEBUG=1"
NO_MEMORY = "allocate memory"
"""Words of SimpleITK, which has no class of its own for a machine without memory."""
AGENT = re.compile(r"[A-Za-z0-9]+")
CONTRAST_KINDS = (Sequence.CE_T1W.value, Sequence.CE_CT.value)
"""Sequences after which an override can name the contrast agent."""


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One row of `config/benchmarks/<benchmark>.cases.tsv`.

    Attributes
    ----------
    case_id, patient_id : str
        Pseudonyms; a case id is a BIDS label.
    source_sha256 : str
        Digest of the digests of the raw files, so that a changed scan changes the row.
    sequence_overrides : dict of str to str
        Sequence by series id, where the header is wrong (`series-02=FLAIR;series-03=none;series-04=ceT1w:gadobutrol` in the table).
    exclude : str
        Reason for which the case is excluded; empty if it is used.
    """

    case_id: str
    patient_id: str
    source_sha256: str
    sequence_overrides: dict[str, str]
    exclude: str


def read_case(path: Path) -> CaseRecord:
    """Read a `case.json`; DataError if it is absent or invalid."""
    return read_json_record(path, CaseRecord, remedy=REMEDY)


def write_case(path: Path, case: CaseRecord) -> None:
    """Write a `case.json` with the digests of all files beside it, without packs, which hold the same files."""
    others = {path.name, *(f"{name}{SUFFIX}" for name in PACKED)}
    files = {name: digest for name, digest in sha256_of_files(path.parent).items() if name not in others}
    write_json_record(path, replace(case, files=files))


def read_pictures(path: Path) -> PictureManifest:
    """Read a `pictures.json`; DataError if it is absent or invalid."""
    return read_json_record(path, PictureManifest, remedy=REMEDY)


def write_pictures(path: Path, manifest: PictureManifest) -> None:
    """Write a `pictures.json`."""
    write_json_record(path, manifest)


def read_audit(path: Path) -> Audit:
    """Read an `audit.json`; DataError if it is absent or invalid."""
    return read_json_record(path, Audit, remedy=REMEDY)


def write_audit(path: Path, audit: Audit) -> None:
    """Write an `audit.json`."""
    write_json_record(path, audit)


def run_case_stage(
    stage: str, previous: Path, out: Path, step: Callable[[CaseRecord, Path], CaseRecord], *, folders: tuple[Path, ...] = ()
) -> None:
    """Run one stage on one case; pass a quarantined case on, and quarantine a case with unusable data.

    Parameters
    ----------
    stage : str
        `deidentify`, `normalise` or `slices`.
    previous : Path
        `case.json` of the previous stage.
    out : Path
        `case.json` of this stage.
    step : callable
        Takes the case and its folder, fills the folder of `out` and returns the case after this stage.
    folders : tuple of Path
        Folders that the rule declares as outputs; they exist afterwards, empty if the case is quarantined.

    Notes
    -----
    As in `quarantine_on_error`: an error of the disk, the memory, the installation or the configuration fails the job.
    """
    case = read_case(previous)
    base = replace(case, stage=stage, source_sha256=sha256_of(previous), files={}, checks={}, fates=())
    done = base if case.state is State.QUARANTINED else quarantine_on_error(base, lambda: step(base, previous.parent))
    for folder in folders:
        if done.state is State.QUARANTINED:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in PACKED:
        write_pack(out.parent / name)
    write_case(out, done)


def quarantine_on_error(base: CaseRecord, step: Callable[[], CaseRecord]) -> CaseRecord:
    """Return the result of `step`, or `base` as quarantined if it raises an error that is about this case.

    Errors that are not are raised again: of the machine, the installation and the configuration, and a full disk even if the step wrapped it.
    """
    try:
        with foreign_input():
            return step()
    except (DataError, DeidentificationError) as error:
        if full := full_disk_cause(error):
            raise full from None
        return replace(
            base,
            state=State.QUARANTINED,
            reason=str(error),
            leaks=error.leaks if isinstance(error, IdentityLeaksError) else base.leaks,
            quarantined_by=base.stage,
            series=(),
            slices=(),
            pictures=tuple(picture.kept_back(f"its case was kept back: {error}") for picture in base.pictures),
            notes=(),
            record="",
        )


@contextmanager
def foreign_input() -> Iterator[None]:
    """Turn any error that a library raises over a damaged file into a DataError without its message, which may hold a header value.

    Errors of the machine, the installation and the pipeline itself pass; the traceback is shown to who asks for it.
    """
    try:
        yield
    except (PipelineError, OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        if NO_MEMORY in str(error):
            raise
        if is_debugging():
            traceback.print_exc()
        message = f"{type(error).__name__} in {_place_of(error)}: {UNFORESEEN}"
        raise DataError(message) from error


def _place_of(error: Exception) -> str:
    """Return the module of the library in which an error was raised, without its line."""
    library = Path(__file__).parents[1]
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return next(file.relative_to(library).as_posix() for file in reversed(files) if file.is_relative_to(library))


def case_table(config: Path, benchmark: str) -> Path:
    """Return the path of the case table of a benchmark, below the folder of the configuration."""
    return config / "benchmarks" / f"{benchmark}.cases.tsv"


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
        If the table is absent, has other columns, repeats a case or has a case id that is not a BIDS label.
    """
    if not path.exists():
        message = f"{path.as_posix()}: the case table is not there; write it with `nmb cases list`"
        raise ConfigError(message)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
            rows = list(reader)
    except (UnicodeDecodeError, OSError) as error:
        message = f"{path.as_posix()}: the case table is no text file in UTF-8 ({type(error).__name__}); save it as UTF-8 with tabs"
        raise ConfigError(message) from None
    if tuple(reader.fieldnames or ()) != CASE_COLUMNS:
        columns = ", ".join(reader.fieldnames or ()) or "none"
        message = f"{path.as_posix()}: expected the columns {', '.join(CASE_COLUMNS)}, found {columns}"
        raise ConfigError(message)
    cases = [_case_row(path, number, row) for number, row in enumerate(rows, start=2)]
    seen: set[str] = set()
    for case in cases:
        if case.case_id in seen:
            message = f"{path.as_posix()}: case {case.case_id} is listed twice; keep one row"
            raise ConfigError(message)
        seen.add(case.case_id)
    return cases


def case_files(table: Path, folder: Path) -> list[Path]:
    """List the `case.json` of all cases of a table that are not excluded, in `folder/sub-<case>` of one stage.

    Commands take the table and the folder, because thousands of paths exceed the length of a command line.
    """
    return [folder / f"sub-{row.case_id}" / "case.json" for row in read_case_table(table) if not row.exclude]


def unlisted_cases(data: Path, benchmark: str, table: Iterable[CaseRow]) -> dict[str, str]:
    """Return the cases with a folder of a stage but without a row of the case table, by id, with their patient's id (empty if unknown).

    They were taken out of the source folder after a run: nothing makes or reads their files any more.
    """
    listed = {row.case_id for row in table}
    found: dict[str, str] = {}
    for folder in (folder for stage in CASE_STAGES for folder in sorted((data / stage / benchmark).glob("sub-*"))):
        case = folder.name.removeprefix("sub-")
        if folder.is_dir() and case not in listed:
            found[case] = found.get(case) or _patient_of(folder / "case.json")
    return found


def _patient_of(record: Path) -> str:
    try:
        return read_case(record).patient_id
    except DataError:  # a killed run, or a file that somebody changed
        return ""


def unlisted_notice(benchmark: str, cases: Iterable[str]) -> str:
    """Return what a person should know about `unlisted_cases`, in one line."""
    names = sorted(cases)
    held = (
        "1 case is no longer listed, but its files are"
        if len(names) == 1
        else f"{len(names)} cases are no longer listed, but their files are"
    )
    first = names[0] if len(names) == 1 else f"first: {names[0]}"
    return (
        f"{held} still in data/ ({first}): `nmb cases held --benchmark {benchmark}` lists them, `nmb cases remove --benchmark {benchmark}"
        f" {names[0]}` deletes them"
    )


def _case_row(path: Path, number: int, row: dict[str, str]) -> CaseRow:
    if any(value is None for value in row.values()) or None in row:
        message = f"{path.as_posix()}, line {number}: expected {len(CASE_COLUMNS)} cells separated by tabs"
        raise ConfigError(message)
    if not CASE_LABEL.fullmatch(row["case_id"]):
        message = f"{path.as_posix()}, line {number}: a case id holds lower-case letters and digits only"
        raise ConfigError(message)
    overrides = read_overrides(row["sequence_overrides"])
    if not all(map(_is_override, overrides.values())):
        message = (
            f"{path.as_posix()}, line {number}: sequence_overrides looks like series-02=FLAIR;series-03=none;series-04=ceT1w:gadobutrol, with a"
            f" kind of {', '.join(KINDS)}, {LEFT_OUT} to leave a series out, and after {' or '.join(CONTRAST_KINDS)} the agent in one word"
        )
        raise ConfigError(message)
    return CaseRow(
        case_id=row["case_id"],
        patient_id=row["patient_id"] or row["case_id"],
        source_sha256=row["source_sha256"],
        sequence_overrides=overrides,
        exclude=row["exclude"],
    )


def read_overrides(text: str) -> dict[str, str]:
    """Parse sequences by series id from a cell or an argument (`series-02=FLAIR;series-03=T1w`)."""
    pairs = (pair.partition("=") for pair in text.split(";") if pair.strip())
    return {series.strip(): sequence.strip() for series, _, sequence in pairs}


def split_override(value: str) -> tuple[str, str]:
    """Split an override into its kind and the contrast agent, which may be empty.

    Examples
    --------
    >>> split_override("ceT1w:gadobutrol"), split_override("FLAIR")
    (('ceT1w', 'gadobutrol'), ('FLAIR', ''))
    """
    kind, _, agent = value.partition(":")
    return kind.strip(), agent.strip()


def _is_override(value: str) -> bool:
    kind, agent = split_override(value)
    return kind in {*KINDS, LEFT_OUT} and (":" not in value or (kind in CONTRAST_KINDS and AGENT.fullmatch(agent) is not None))


def write_overrides(overrides: dict[str, str]) -> str:
    """Format sequences by series id for `read_overrides`."""
    return ";".join(f"{series}={sequence}" for series, sequence in overrides.items())


def write_case_table(path: Path, rows: list[CaseRow]) -> None:
    """Write the case table of a benchmark, sorted by case id."""
    lines = [
        (row.case_id, row.patient_id, row.source_sha256, write_overrides(row.sequence_overrides), row.exclude)
        for row in sorted(rows, key=lambda row: row.case_id)
    ]
    write_tsv(path, [CASE_COLUMNS, *lines])


def digest_of_files(digests: list[str]) -> str:
    """Return the digest of a case's raw files: over their sorted digests, so that names and order do not matter."""
    return sha256_of_value(sorted(digests))
