"""Signatures of a review: each covers exactly the files that were shown, by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from neuralmedbench.deid.audit import covered_files
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.records.case import Audit, CaseRecord
from neuralmedbench.records.review import ExcludeReason, ReviewedFiles, SignedReview
from neuralmedbench.records.views import ViewRules

TYPED_DIGITS = 12


def case_digest(clean: CaseRecord, cut: CaseRecord, views: ViewRules | None = None) -> str:
    """Compute the digest of what a signature allows of a case.

    That is all covered and shown files (`clean` after de-identification, `cut` after slice selection), and the `views` that a model may be shown
    on request.
    """
    shown: dict[str, object] = {"files": covered_files(clean), "pictures": sorted(entry.sha256 for entry in cut.slices)}
    return sha256_of_value(shown | ({"views": asdict(views)} if views else {}))


def reviewed_files(benchmark: str, profile: str, digests: Mapping[str, str]) -> ReviewedFiles:
    """Build the record of the files shown in the sheets of a benchmark.

    `digests`: `case_digest` by case, or the digest of the file by picture. Cases quarantined by de-identification are not part of it, as none
    of their files can be used.
    """
    cases = {case: digests[case] for case in sorted(digests)}
    digest = sha256_of_value({"benchmark": benchmark, "cases": cases, "profile": profile})
    return ReviewedFiles(benchmark=benchmark, profile=profile, digest=digest, cases=cases)


def sign(
    sheets: ReviewedFiles, digest: str, reviewer: str, *, accepted: Sequence[str], accept_rest: bool, excluded: Mapping[str, ExcludeReason]
) -> SignedReview:
    """Sign the sheets of a review.

    Parameters
    ----------
    sheets : ReviewedFiles
        Files shown in the sheets.
    digest : str
        Digest as typed by the reviewer: at least the first `TYPED_DIGITS` digits.
    reviewer : str
        Initials of the reviewer.
    accepted : sequence of str
        Cases accepted by name.
    accept_rest : bool
        True to accept every case that is not named.
    excluded : dict of str to ExcludeReason
        Cases to exclude.

    Returns
    -------
    SignedReview
        The signature.

    Raises
    ------
    DeidentificationError
        If the digest does not match, or a case is unknown, decided twice or undecided.
    """
    if len(digest) < TYPED_DIGITS or not sheets.digest.startswith(digest):
        message = f"the digest does not match review.html: open it and copy the {TYPED_DIGITS} digits from there"
        raise DeidentificationError(message)
    if unknown := sorted({*accepted, *excluded} - set(sheets.cases)):
        message = f"{unknown[0]}: not a case of this review; take the ids from review.html"
        raise DeidentificationError(message)
    if twice := sorted(set(accepted) & set(excluded)):
        message = f"{twice[0]}: both accepted and excluded; choose one"
        raise DeidentificationError(message)
    open_cases = [case for case in sheets.cases if case not in excluded and case not in accepted]
    if open_cases and not accept_rest:
        message = (
            f"{len(open_cases)} cases are undecided (first: {open_cases[0]}): accept them by name (--accept), exclude them with a reason"
            " (--exclude CASE=REASON), or accept all that are not named (--accept-rest)"
        )
        raise DeidentificationError(message)
    return SignedReview(
        benchmark=sheets.benchmark,
        profile=sheets.profile,
        digest=sheets.digest,
        reviewer=reviewer,
        signed_on=f"{datetime.now(UTC):%Y-%m-%d}",
        accepted={case: seen for case, seen in sheets.cases.items() if case not in excluded},
        excluded=dict(excluded),
    )


def apply_review(audit: Audit, sheets: ReviewedFiles, signed: SignedReview | None) -> Audit:
    """Turn a pending audit into a passed one if the review was signed.

    Parameters
    ----------
    audit : Audit
        Audit before the signature.
    sheets : ReviewedFiles
        Files shown in the current sheets.
    signed : SignedReview or None
        The signature.

    Returns
    -------
    Audit
        `passed` if every case of the current sheets was accepted with its current files, or excluded; excluded cases are not covered. A case
        withdrawn after signing does not invalidate the others.
    """
    if audit.state != "pending" or signed is None:
        return audit
    seen = {case: digest for case, digest in sheets.cases.items() if case not in signed.excluded}
    if (signed.benchmark, signed.profile) != (audit.benchmark, audit.profile) or any(
        signed.accepted.get(case) != digest for case, digest in seen.items()
    ):
        return replace(audit, reason="the data changed after the review was signed: look at review.html again and sign it again")
    covered = {digest: case for digest, case in audit.covered.items() if case in seen}
    flow = {**audit.flow, "excluded_by_review": len(sheets.cases) - len(seen)}
    if not covered:
        return replace(audit, state="failed", reason="the review took every case out", covered={}, flow=flow)
    return replace(audit, state="passed", reason=f"signed on {signed.signed_on}", covered=covered, flow=flow)


def read_reviewed_files(path: Path) -> ReviewedFiles:
    """Read the record of the files shown in the sheets; DataError if it is absent or not valid."""
    return read_json_record(path, ReviewedFiles, remedy="run the pipeline again")


def read_signed(path: Path) -> SignedReview | None:
    """Read a signed review; None if absent, DataError if it is not valid."""
    return read_json_record(path, SignedReview, remedy="sign it again with nmb deid sign") if path.exists() else None


def write_signed(path: Path, signed: SignedReview) -> None:
    """Write a signed review."""
    write_json_record(path, signed)
