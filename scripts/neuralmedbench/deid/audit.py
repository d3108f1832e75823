"""Gather what de-identification did into the pass token of a benchmark: checks and counts, never values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.deid.review.check_words import kind_of_reason, words_for
from neuralmedbench.deid.review.pieces import read_tools
from neuralmedbench.deid.score.tally import read_scores, sum_scores
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, State

PIECES = "review/"
"""What is made for the reviewer alone is no data: the audit does not cover it."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Under which rules a benchmark was de-identified.

    Attributes
    ----------
    benchmark, profile : str
        Whose, and under which profile.
    subjects : str
        Whose data they are: `phantom`, `public` or `patient`.
    options : tuple of str
        Options of DICOM PS3.15 Annex E, by code.
    """

    benchmark: str
    profile: str
    subjects: str
    options: tuple[str, ...] = ()


def covered_files(case: CaseRecord) -> dict[str, str]:
    """Digests of the files of a de-identified case that may be used: scans, sidecars and texts, by path."""
    return {path: digest for path, digest in case.files.items() if not path.startswith(PIECES)}


def audit_cases(rules: Rules, cases: Sequence[tuple[CaseRecord, Path]]) -> Audit:
    """Audit the cases of a benchmark of `kind: scans`, before any signature.

    Parameters
    ----------
    rules : Rules
        Under which they were de-identified.
    cases : sequence of tuple of CaseRecord and Path
        Every de-identified case with its folder, quarantined ones too.

    Returns
    -------
    Audit
        `passed` for phantoms and public data, `pending` for patients, `failed` when identifiers were found or nothing is left.
    """
    used = [(case, folder) for case, folder in cases if case.state is State.OK]
    checks: Counter[str] = Counter()
    for case, _ in used:
        checks.update(case.checks)
    flow = {"listed": len(cases), "passed": len(used)}
    for stage in ("ingest", "deidentify"):
        flow[f"quarantined_{stage}"] = sum(case.quarantined_by == stage for case, _ in cases)
    covered = {digest: case.case_id for case, _ in used for digest in covered_files(case).values()}
    reasons = Counter(kind_of_reason(case.reason) for case, _ in cases if case.state is not State.OK)
    folders = [folder for _, folder in used]
    audit = _audit(rules, checks, covered, flow, reasons=reasons, tools=_tools(folders))
    return replace(audit, score=sum_scores(read_scores(folders)))


def audit_pictures(rules: Rules, manifest: PictureManifest) -> Audit:
    """Audit a benchmark of `kind: pictures`; as `audit_cases`."""
    used = [picture for picture in manifest.pictures if picture.state is State.OK]
    flow = {"listed": len(manifest.pictures), "passed": len(used), "quarantined_deidentify": len(manifest.pictures) - len(used)}
    covered = {picture.sha256: picture.image_id for picture in used}
    reasons = Counter(kind_of_reason(picture.reason) for picture in manifest.pictures if picture.state is not State.OK)
    return _audit(rules, Counter(manifest.checks), covered, flow, reasons=reasons, tools={})


def _tools(folders: Sequence[Path]) -> dict[str, str]:
    """Join the versions of the packages that cleaned the cases."""
    versions: dict[str, set[str]] = {}
    for folder in folders:
        for name, version in read_tools(folder).items():
            versions.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions[name])) for name in sorted(versions)}


def _audit(
    rules: Rules, checks: Counter[str], covered: dict[str, str], flow: dict[str, int], *, reasons: Counter[str], tools: dict[str, str]
) -> Audit:
    """Put the audit together and decide."""
    leaks = checks.pop("leaks", 0)
    names = sorted(checks)
    audit = Audit(
        benchmark=rules.benchmark,
        profile=rules.profile,
        kind=rules.subjects,
        state="passed",
        checks={name: checks[name] for name in names},
        leaks=leaks,
        looked_for={name: words_for(name) for name in names},
        covered=covered,
        flow=flow,
        reasons={kind: reasons[kind] for kind in sorted(reasons)},
        options=rules.options,
        tools=tools,
    )
    if leaks:
        return replace(audit, state="failed", reason=f"{leaks} identifying values are left", covered={})
    if not covered and flow["listed"]:  # a data set of words alone lists nothing
        return replace(audit, state="failed", reason="no case is left: see why they were quarantined")
    if rules.subjects == "patient":
        return replace(audit, state="pending", reason="a person has to look at review.html and sign it (scripts/sign_review.py)")
    return audit
