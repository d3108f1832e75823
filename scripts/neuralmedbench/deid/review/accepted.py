"""Identifying values that a person accepted, each in one place of one file as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.identity import Identity, fold, identity_pattern
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.records.review import AcceptedIdentityLeak, AcceptedIdentityLeaks, IdentityLeak

REMEDY = "correct it, or delete it and accept again with `nmb deid accept-leaks`"


def accepted_path(config_folder: Path, benchmark: str) -> Path:
    """Return the path of the accepted values of a benchmark."""
    return config_folder / "benchmarks" / f"{benchmark}.identity-leaks.json"


def read_accepted_leaks(config_folder: Path, benchmark: str) -> AcceptedIdentityLeaks:
    """Read the accepted values of a benchmark; none without a file. DataError if it is invalid, ConfigError if it is another benchmark's."""
    path = accepted_path(config_folder, benchmark)
    accepted = read_json_record(path, AcceptedIdentityLeaks, remedy=REMEDY) if path.exists() else AcceptedIdentityLeaks(benchmark=benchmark)
    if accepted.benchmark != benchmark:
        message = f"{path.name}: it belongs to a benchmark other than {benchmark}; {REMEDY}"
        raise ConfigError(message)
    return accepted


def write_accepted_leaks(config_folder: Path, accepted: AcceptedIdentityLeaks) -> None:
    """Write the accepted values of a benchmark."""
    write_json_record(accepted_path(config_folder, accepted.benchmark), accepted)


def accept(
    before: AcceptedIdentityLeaks,
    case: CaseRecord,
    identity: Identity,
    *,
    places: Sequence[tuple[str, str]],
    reason: str,
    reviewer: str,
) -> AcceptedIdentityLeaks:
    """Accept the values in places of files of a case.

    Parameters
    ----------
    before : AcceptedIdentityLeaks
        Those accepted before. Those of the same place and file are replaced.
    case : CaseRecord
        The case after de-identification, with its leaks.
    identity : Identity
        Values of its patient, none of which the reason may repeat.
    places : sequence of tuple of str
        Files and places in them, as in the message that kept the case back.
    reason, reviewer : str
        Why the value identifies nobody, and the initials of who decided it.

    Returns
    -------
    AcceptedIdentityLeaks
        Sorted by case, file and place.

    Raises
    ------
    ConfigError
        If nothing was found there, if reason or initials are empty, or if one of them repeats a value of the patient.
    """
    if not reason.strip() or not reviewer.strip():
        message = "accepting an identifying value needs --reason and --reviewer; give both"
        raise ConfigError(message)
    pattern = identity_pattern(identity)
    if pattern is not None and pattern.search(fold(f"{reason} / {reviewer}")):
        message = f"case {case.case_id}: --reason or --reviewer repeats a value of the patient, and the audit shows both; use other words"
        raise ConfigError(message)
    there = {(leak.file, leak.place): leak for leak in case.leaks}
    if missing := [named for named in places if named not in there]:
        found = "; ".join(f"{leak.file}, {leak.place}" for leak in case.leaks) or "nothing"
        message = f"case {case.case_id}: no identifying value was left in {', '.join(missing[0])}; found were: {found}"
        raise ConfigError(message)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    rows = {(row.case_id, row.file, row.place): row for row in before.accepted}
    for file, place in places:
        leak = replace(there[file, place], reason=reason.strip(), reviewer=reviewer.strip(), accepted_on=day)
        rows[case.case_id, file, place] = row_of(case.case_id, leak)
    return replace(before, accepted=tuple(rows[key] for key in sorted(rows)))


def row_of(case_id: str, leak: IdentityLeak) -> AcceptedIdentityLeak:
    """Return the row of a leak that was accepted."""
    return AcceptedIdentityLeak(
        case_id=case_id,
        file=leak.file,
        place=leak.place,
        digest=leak.digest,
        reason=leak.reason,
        reviewer=leak.reviewer,
        accepted_on=leak.accepted_on,
    )
