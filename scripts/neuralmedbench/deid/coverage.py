"""The door for prompts: only what a passed audit covers may be shown to a model."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.records.case import Audit


def require_covered(audit: Audit, digests: Iterable[str]) -> None:
    """Refuse unless the audit passed and covers every volume or picture.

    Parameters
    ----------
    audit : Audit
        Of the benchmark.
    digests : iterable of str
        SHA-256 of the de-identified volumes (or, of `kind: pictures`, of the pictures) that requests show.

    Raises
    ------
    DeidentificationError
        If the audit is pending or failed, or something is not covered.

    Examples
    --------
    >>> require_covered(Audit(benchmark="demo", profile="pseudonymised", kind="phantom", state="passed", covered={"ab": "c1"}), ["ab"])
    """
    name = audit.benchmark
    if audit.state == "pending":
        message = (
            f"{name}: de-identification waits for a person: open data/reviews/{name}/review.html, look at the sheet of every case,"
            " sign with the command that stands there, and run again"
        )
        raise DeidentificationError(message)
    if audit.state != "passed":
        message = f"{name}: de-identification did not pass ({audit.reason or audit.state}); nothing of it may be shown to a model"
        raise DeidentificationError(message)
    missing = sorted(set(digests) - set(audit.covered))
    if missing:
        message = (
            f"{name}: {len(missing)} scans or pictures are not covered by the audit (first: {missing[0][:12]}...);"
            " run de-identification and what follows it again, or exclude in the case table what a reviewer took out"
        )
        raise DeidentificationError(message)
