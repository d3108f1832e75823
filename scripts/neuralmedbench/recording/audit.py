"""Audit a run: compare its files with Snakemake's records of their inputs, and its answers with the recorded ledgers."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.dvc_lock import DVC_LOCK, DvcOut, read_dvc_lock
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.recording.metadata import METADATA, OutputRecord, read_metadata, upstream_records
from neuralmedbench.recording.repository import LEDGERS, open_repository, why_not_versioned
from neuralmedbench.recording.stages import planned_rules

SHOWN = 3
"""Missing answers of a ledger that a finding lists."""


def changed_answers(recorded: Mapping[str, DvcOut], cached: Mapping[str, Path], root: Path = Path()) -> tuple[list[str], list[str]]:
    """Compare ledgers with their copies in DVC's cache; return findings, and notes on missing copies.

    Every ledger is also read in full, which checks each answer against the digest in its line.
    """
    findings, by_digest = [], 0
    for path, before in sorted(recorded.items()):
        # all other outs are compared by DVC
        if not path.startswith(LEDGERS):
            continue
        here, copy = root / path, cached.get(path)
        if not here.is_file():
            findings.append(f"{path}: the recorded ledger is missing here; `nmb run pull` brings it")
        # with the recorded copy, each changed answer can be named; without it, only that there is one
        elif copy is not None and copy.is_file():
            findings += _compare_lines(path, here, copy)
        else:
            by_digest += 1
            findings += _compare_digest(path, here, before)
    for here in sorted((root / LEDGERS).rglob("*.jsonl")):
        # ledgers that were never recorded are read too
        path = here.relative_to(root).as_posix()
        if not any(finding.startswith(f"{path}: ") for finding in findings):
            findings += _invalid_lines(path, here)
    notes = [f"{by_digest} recorded ledgers are not in DVC's cache: compared by digest only (`dvc fetch` brings them)"]
    return findings, notes if by_digest else []


def _compare_lines(path: str, here: Path, copy: Path) -> list[str]:
    """Check that every recorded line is among the lines here."""
    with here.open("rb") as now, copy.open("rb") as recorded:
        lines = [line.rstrip(b"\r\n") for line in now]
        known = set(lines)
        missing = [_key_and_item(line) for line in recorded if line.strip() and line.rstrip(b"\r\n") not in known]
    if not missing:
        return []
    # an answer with the same key at another line was changed, not deleted
    places = {_key_and_item(line)[0]: number for number, line in enumerate(lines, start=1)}
    shown = [f"that to {item} ({f'line {places[key]} here' if key in places else 'gone'})" for key, item in missing[:SHOWN]]
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    number = f"{len(missing)} recorded answer{'s' if len(missing) > 1 else ''}"
    remedy = "delete changed lines and run `nmb run pull`, which brings the recorded ones back"
    return [f"{path}: {number} changed or gone: {', '.join(shown)}{more}; {remedy}"]


def _compare_digest(path: str, here: Path, before: DvcOut) -> list[str]:
    """Compare the beginning of a ledger with the recorded digest: a ledger is append-only."""
    with here.open("rb") as file:
        if hashlib.md5(file.read(before.size), usedforsecurity=False).hexdigest() == before.md5:
            return []
    fault = f"its first {before.size} bytes are not what dvc.lock records: a recorded answer was changed, or answers were merged in another order"
    return [f"{path}: {fault}; `dvc fetch` brings the recorded ledger, then audit again"]


def _invalid_lines(path: str, here: Path) -> list[str]:
    try:
        read_ledger(here)
    except DataError as error:
        return [f"{path}: {error}"]
    return []


def _key_and_item(line: bytes) -> tuple[str, str]:
    """Return key and item of a line; for a line that is not an answer, its digest."""
    try:
        value = json.loads(line)
        return str(value["key"]), str(value.get("item_id") or "an item without a name")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return hashlib.sha256(line).hexdigest(), "an unreadable line"


def stale_files(records: dict[str, OutputRecord]) -> list[str]:
    """Find outputs whose inputs have changed since they were made.

    Snakemake compares an input only if it is newer than the output: a file restored with an old time, or results relinked in another
    order, pass as up to date. This compares every recorded digest, whatever the times. Absent files (the private zone in a clone) are
    skipped.
    """
    # many outputs share inputs: each file is hashed once
    digest = cache(sha256_of)
    return [
        f"{made.path} ({made.rule}) was made from another {name} than the one here"
        for made in records.values()
        if Path(made.path).exists()
        for name, recorded in sorted(made.checksums.items())
        if Path(name).is_file() and digest(Path(name)) != recorded
    ]


def _is_part(path: str, run: Run, records: Mapping[str, OutputRecord]) -> bool:
    """Return True for a recorded out that belongs to a run: its own results, and the data that they were made from.

    Ledgers may grow after a record, so they are left to the check of answers; Snakemake's records grow with every run.
    """
    if path.startswith(LEDGERS) or path == METADATA.as_posix():
        return False
    used = {name for made in records.values() for name in (made.path, *made.inputs)}
    return run.owns(path) or holds_any(path, used)


def holds_any(path: str, names: Iterable[str]) -> bool:
    """Return whether an out, a file or a folder, is or holds one of some files."""
    return any(name == path or name.startswith(f"{path}/") for name in names)


def audit_run(run: Run) -> list[str]:
    """Check a run against the recorded digests, Snakemake's plan (which sees changed settings and code), `dvc.lock` and the recorded ledgers.

    Parameters
    ----------
    run : Run
        The run; the results of other runs are not looked at.

    Returns
    -------
    list of str
        Lines that state what was checked, if nothing was found.

    Raises
    ------
    DataError
        If anything differs; the message has one line per finding.
    ConfigError
        If there is nothing to check, or the workflow cannot be planned.
    """
    records = upstream_records(read_metadata(), run.report)
    if not records:
        message = f"nothing to check: Snakemake has no record of {run.report} here; run the pipeline or `nmb run pull`"
        raise ConfigError(message)
    # four checks: recorded digests, Snakemake's plan, DVC's record, and the ledgers line by line
    stale = stale_files(records)
    planned = [f"{rule}: out of date, Snakemake would run it" for rule in planned_rules(run)]
    changed: list[str] = []
    recorded: dict[str, DvcOut] = {}
    cached: dict[str, Path] = {}
    if not why_not_versioned() and DVC_LOCK.is_file():
        with open_repository() as repository:
            changed = [f"{path}: not what dvc.lock records" for path in repository.changed() if _is_part(path, run, records)]
            recorded, cached = read_dvc_lock(), repository.outs()
    answers, notes = changed_answers(recorded, cached)
    findings = [*stale, *planned, *changed, *answers]
    if findings:
        message = (
            f"{len(findings)} findings; `{shlex.join(['snakemake', *run.options('--configfile'), '-R', 'FILE', '--', run.report])}` makes a file again, `nmb run record` records a later run\n"
            + "\n".join(f"  {line}" for line in [*findings, *notes])
        )
        raise DataError(message)
    return [f"nothing found: {len(records)} results match their inputs, settings and records", *notes]
