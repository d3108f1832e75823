"""Gather what de-identification did into the pass token of a benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.io.files import read_json, sha256_of_value, write_json_record
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, State

VOLUMES = (".nii.gz",)


@dataclass(frozen=True, kw_only=True)
class SignedReview:
    """What a person signed (`data/reviews/<benchmark>.json`).

    Attributes
    ----------
    benchmark : str
        Whose.
    digest : str
        Digest of what was seen (`review_digest`); a change of any covered file makes the signature void.
    reviewer : str
        Who signed.
    signed_on : str
        Day, YYYY-MM-DD.
    """

    benchmark: str
    digest: str
    reviewer: str
    signed_on: str


def audit_cases(benchmark: str, profile: str, subjects: str, cases: Sequence[CaseRecord]) -> Audit:
    """Audit the cases of a benchmark of `kind: scans`, before any signature.

    Parameters
    ----------
    benchmark, profile, subjects : str
        Whose, under which profile, and whose data they are: `phantom`, `public` or `patient`.
    cases : sequence of CaseRecord
        Every de-identified case, quarantined ones too.

    Returns
    -------
    Audit
        `passed` for phantoms and public data, `pending` for patients, `failed` when identifiers were found or nothing is left.
    """
    used = [case for case in cases if case.state is State.OK]
    checks: Counter[str] = Counter()
    for case in used:
        checks.update(case.checks)
    leaks = checks.pop("leaks", 0)
    covered = {digest: case.case_id for case in used for path, digest in case.files.items() if path.endswith(VOLUMES)}
    flow = {"listed": len(cases), "passed": len(used)}
    for stage in ("ingest", "deidentify"):
        flow[f"quarantined_{stage}"] = sum(case.quarantined_by == stage for case in cases)
    return _decide(Audit(
        benchmark=benchmark, profile=profile, kind=subjects, state="failed", checks=_sorted(checks), leaks=leaks, covered=covered, flow=flow
    ))  # fmt: skip


def audit_pictures(profile: str, subjects: str, manifest: PictureManifest) -> Audit:
    """Audit a benchmark of `kind: pictures`; as `audit_cases`."""
    used = [picture for picture in manifest.pictures if picture.state is State.OK]
    checks = dict(manifest.checks)
    leaks = checks.pop("leaks", 0)
    flow = {"listed": len(manifest.pictures), "passed": len(used), "quarantined_deidentify": len(manifest.pictures) - len(used)}
    covered = {picture.sha256: picture.image_id for picture in used}
    return _decide(Audit(
        benchmark=manifest.benchmark, profile=profile, kind=subjects, state="failed", checks=_sorted(checks), leaks=leaks, covered=covered,
        flow=flow,
    ))  # fmt: skip


def _sorted(checks: Counter[str] | dict[str, int]) -> dict[str, int]:
    return {name: checks[name] for name in sorted(checks)}


def _decide(audit: Audit) -> Audit:
    if audit.leaks:
        return replace(audit, reason=f"{audit.leaks} identifying values are left", covered={})
    if not audit.covered:
        return replace(audit, reason="no case is left: see why they were quarantined")
    if audit.kind == "patient":
        return replace(audit, state="pending", reason="a person has to look at review.html and sign it (scripts/sign_review.py)")
    return replace(audit, state="passed")


def review_digest(audit: Audit, texts: Sequence[str]) -> str:
    """Digest of what a reviewer sees: every covered file and every cleaned text.

    Parameters
    ----------
    audit : Audit
        Before the signature.
    texts : sequence of str
        Digests of the cleaned notes and records.
    """
    return sha256_of_value({"covered": audit.covered, "texts": sorted(texts), "profile": audit.profile})


def text_digests(cases: Sequence[CaseRecord]) -> list[str]:
    """Digests of the cleaned notes and records of the cases that are used."""
    return [digest for case in cases if case.state is State.OK for path, digest in case.files.items() if path.startswith("text/")]


def apply_review(audit: Audit, digest: str, review: SignedReview | None) -> Audit:
    """Let a signature turn a pending audit into a passed one, when it was given for exactly this data."""
    if audit.state != "pending" or review is None:
        return audit
    if review.digest != digest or review.benchmark != audit.benchmark:
        return replace(audit, reason="the data changed after the review was signed: look at review.html again and sign it again")
    return replace(audit, state="passed", reason=f"signed on {review.signed_on}")


def read_review(path: Path) -> SignedReview | None:
    """Read a signed review; None when there is none, DeidentificationError when it does not fit."""
    if not path.exists():
        return None
    try:
        return TypeAdapter(SignedReview).validate_python(read_json(path))
    except ValidationError:
        message = f"{path.name}: not a signed review; sign it again with scripts/sign_review.py"
        raise DeidentificationError(message) from None


def write_review(path: Path, review: SignedReview) -> None:
    """Write a signed review."""
    write_json_record(path, review)
