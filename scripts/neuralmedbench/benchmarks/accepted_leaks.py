"""Leaks that a person looked at and accepts, each with a reason; the file holds no answer and stands beside the benchmark's yaml."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.records.answer_leaks import AcceptedLeak, AcceptedLeaks, AnswerLeaks

REMEDY = "correct it, or delete it and accept again with scripts/accept_leaks.py"


def read_accepted(path: Path, benchmark: str) -> AcceptedLeaks:
    """Read what was accepted; nothing when there is no file, DataError when it does not fit, ConfigError when it is another benchmark's."""
    accepted = read_json_record(path, AcceptedLeaks, remedy=REMEDY) if path.exists() else AcceptedLeaks(benchmark=benchmark)
    if accepted.benchmark != benchmark:
        message = f"{path.name}: it is of another benchmark than {benchmark}; {REMEDY}"
        raise ConfigError(message)
    return accepted


def accept(leaks: AnswerLeaks, before: AcceptedLeaks, *, item_id: str, where: str, reason: str, reviewer: str) -> AcceptedLeaks:
    """Accept every leak of one text of one item.

    Parameters
    ----------
    leaks : AnswerLeaks
        What was found last: its digests are what is accepted, so a text that changes later is listed again.
    before : AcceptedLeaks
        What was accepted before; what is no longer found is dropped.
    item_id, where : str
        The text, as the page names it.
    reason, reviewer : str
        Why it may stay, in words that name no patient, and who says so.

    Returns
    -------
    AcceptedLeaks
        Sorted by item, place and digest.

    Raises
    ------
    ConfigError
        If nothing was found there, or the reason is empty.
    """
    if not reason.strip() or not reviewer.strip():
        message = "a leak is accepted with a reason and by somebody; give both"
        raise ConfigError(message)
    digests = {leak.digest for leak in leaks.leaks if (leak.item_id, leak.where) == (item_id, where)}
    if not digests:
        places = ", ".join(sorted({leak.where for leak in leaks.leaks if leak.item_id == item_id}))
        hint = f"something was found in {places}" if places else "take the id from the page"
        message = f"{item_id}: nothing was found in {where!r}; {hint}"
        raise ConfigError(message)
    found = {leak.digest for leak in leaks.leaks}
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    new = [
        AcceptedLeak(item_id=item_id, where=where, digest=digest, reason=reason.strip(), reviewer=reviewer, accepted_on=day)
        for digest in digests
    ]
    kept = [row for row in before.accepted if row.digest in found - digests]
    return replace(before, accepted=tuple(sorted([*kept, *new], key=lambda row: (row.item_id, row.where, row.digest))))


def write_accepted(path: Path, accepted: AcceptedLeaks) -> None:
    """Write what was accepted."""
    write_json_record(path, accepted)
