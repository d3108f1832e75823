"""Whether what lies here is what it was made from: Snakemake's records against the files of today."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.dvc_lock import DVC_LOCK, Recorded, read_dvc_lock
from neuralmedbench.recording.changed_answers import changed_answers
from neuralmedbench.recording.metadata import Made, read_metadata
from neuralmedbench.recording.repository import LEDGERS, open_repository, why_not_versioned
from neuralmedbench.recording.snakemake import planned_rules
from neuralmedbench.recording.stages import TARGET


def reached(made: Iterable[Made], target: str) -> dict[str, Made]:
    """Pick the records of what a target was made from.

    Parameters
    ----------
    made : iterable of Made
        All records; those of models and cases that are no longer part of the run are among them.
    target : str
        Path of the target.

    Returns
    -------
    dict of str to Made
        Records of the target and of everything behind it, by path, sorted.
    """
    records = {entry.path: entry for entry in made}
    found: dict[str, Made] = {}
    waiting = [target]
    while waiting:
        path = waiting.pop()
        if path in records and path not in found:
            found[path] = records[path]
            waiting += records[path].inputs
    return dict(sorted(found.items()))


def stale_files(records: dict[str, Made], root: Path = Path()) -> list[str]:
    """Find outputs whose inputs are no longer the ones that they were made from.

    Snakemake compares an input only when it is newer than the output: a file that was put back with an old time, or results that
    were relinked in another order, pass as up to date. This looks at every recorded digest, whatever the times say.

    Parameters
    ----------
    records : dict of str to Made
        By path.
    root : Path
        The repository root.

    Returns
    -------
    list of str
        One line for each pair of output and input that do not fit. What is not here (the private zone in a clone) is passed over.
    """
    digest = cache(sha256_of)
    return [
        f"{made.path} ({made.rule}) was made from another {name} than the one that lies here"
        for made in records.values()
        if (root / made.path).exists()
        for name, recorded in sorted(made.checksums.items())
        if (root / name).is_file() and digest(root / name) != recorded
    ]


def audit_run(configfiles: Sequence[str]) -> list[str]:
    """Check a run: recorded digests, Snakemake's plan (which sees changed settings and code), `dvc.lock`, and the answers in the ledgers.

    Parameters
    ----------
    configfiles : sequence of str
        Configuration files of the run, relative to the repository root.

    Returns
    -------
    list of str
        What was checked, in words, when nothing was found.

    Raises
    ------
    DataError
        If something does not fit; all findings, one a line, stand in the message.
    ConfigError
        If there is nothing to check, or the workflow cannot be planned.
    """
    records = reached(read_metadata(), TARGET)
    if not records:
        message = f"nothing to check: Snakemake has no record of {TARGET} here; run the pipeline or `make pull`"
        raise ConfigError(message)
    stale = stale_files(records)
    planned = [f"{rule}: out of date, Snakemake would run it" for rule in planned_rules(configfiles)]
    changed: list[str] = []
    recorded: dict[str, Recorded] = {}
    cached: dict[str, Path] = {}
    if not why_not_versioned() and DVC_LOCK.is_file():
        with open_repository() as repository:
            changed = [f"{path}: not what dvc.lock records" for path in repository.changed() if not path.startswith(LEDGERS)]
            recorded, cached = read_dvc_lock(), repository.outs()
    answers, notes = changed_answers(recorded, cached)
    findings = [*stale, *planned, *changed, *answers]
    if findings:
        message = (
            f"{len(findings)} findings; `snakemake -R FILE -- {TARGET}` makes a file again, `make record` records a later run\n"
            + "\n".join(f"  {line}" for line in [*findings, *notes])
        )
        raise DataError(message)
    return [f"nothing found: {len(records)} results, their inputs, settings and records fit", *notes]
