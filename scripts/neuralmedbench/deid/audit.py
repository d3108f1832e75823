"""Gather the de-identification of a benchmark into its audit, the pass token: checks and counts, never values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.config.deidentification import ElementRule
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.review.accepted import row_of
from neuralmedbench.deid.review.pieces import read_tools
from neuralmedbench.deid.score.tally import read_scores, sum_scores
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, State
from neuralmedbench.records.review import OwnRule
from neuralmedbench.records.views import ViewRules

DESCRIPTIONS = {
    "leaks_accepted": "values that equal an identifier of their patient and that a person accepted, with a reason, in one file",
    "dicom_files_cleaned": "DICOM files that were cleaned",
    "nifti_headers_cleaned": "NIfTI files of which voxels and geometry alone were kept",
    "series_not_convertible": "series that no program could convert",
    "series_not_deidentified": "series left out because their face could not be located or removed, or because text remained in them",
    "series_with_brain_lost": "series left out because hidden text or the removal of the face would take too much of the brain",
    "faces_removed": "scans of which a face was removed",
    "header_private": "private elements, curves, overlays and bytes of an unknown kind that were removed from DICOM headers",
    "header_uids": "unique identifiers that were replaced under the key",
    "header_dates": "dates of DICOM headers that were shifted, or cut to the year",
    "header_text": "texts of DICOM headers that were removed or cut to words about scans",
    "header_own_rules": "elements of DICOM headers that own rules for single elements removed, replaced or kept",
    "header_table": "elements of DICOM headers that the table of PS3.15 removes, empties or replaces",
    "notes_withheld": "notes withheld as a whole: no pattern recognises names in their language or script",
    "notes_own_value": "values of the patient's own headers that were replaced in notes",
    "notes_without_known_names": "notes of patients whose headers name nobody: names were found by pattern alone",
    "record_columns_dropped": "columns of health records that were dropped",
    "record_rows_dropped": "rows of health records that name a person, a place or a number of one",
    "record_rows_of_unknown_day": "rows of health records whose date cannot be compared with the scan's: kept in the record, shown to no model",
    "record_values_changed": "values of health records that were changed (dates, ages over 89)",
    "notes_sections_cut": "sections of notes that hold the answer and were cut",
    "pictures_rewritten": "pictures that were written anew without metadata",
    "pictures_kept": "pictures of a public data set that stay as they were published, letters and arrows included",
    "burned_in_series_searched": "scans whose pixels were searched for burned-in text",
    "burned_in_series_hidden": "scans in which burned-in text was hidden under a box",
    "burned_in_series_dropped": "scans that were dropped because text is burned into them",
    "burned_in_pictures_searched": "pictures that were searched for burned-in text",
    "burned_in_pictures_hidden": "pictures in which burned-in text was hidden under a box",
    "burned_in_pictures_kept": "pictures in which text was found and kept, as the yaml of the benchmark says",
    "burned_in_pictures_dropped": "pictures that were dropped because text is burned into them",
    "burned_in_single_marks": "single burned-in letters, such as side markers, that were hidden too",
    "burned_in_series_read_by_ocr": "scans with a suspect header on which tesseract gave a second opinion",
    "burned_in_series_without_ocr": "scans with a suspect header for which there was no second opinion: tesseract is not installed",
    "burned_in_pictures_read_by_ocr": "pictures on which tesseract gave a second opinion",
    "burned_in_pictures_without_ocr": "pictures for which there was no second opinion: tesseract is not installed",
}
FAMILIES = {
    "header_": "elements of DICOM headers, by what was done to them",
    "notes_": "values in notes that were replaced or removed, by kind",
    "record_": "parts of health records, by what was done to them",
    "burned_in_": "text that is burned into pixels: what was found and what was done to it",
    "pixels_": "pixels, by what was done to them",
    "faces_": "faces, by what was done to them",
    "overlays_": "overlays of DICOM files, by what was done to them",
    "series_": "series, by what was done to them",
    "note_": "notes, by what was done to them",
    "pictures_": "pictures, by what was done to them",
}
"""Descriptions by prefix for checks without their own."""
OTHER = "what this check found"
REASONS = (
    ("identifying_values_left", r"identifying values are left"),
    ("brain_lost", r"of the brain"),
    ("face_not_located", r"\bface\b"),
    ("burned_in_text", r"burned|text remains in the pixels"),
    ("no_usable_series", r"no usable series"),
    ("no_usable_picture", r"no usable picture"),
    ("file_moved", r"not where it was listed"),
    ("damaged_file", r"damaged|cut off|truncated|cannot be read|not a picture"),
    ("geometry", r"slices lie|spacing|geometry|oblique|orientation|gantry|series of volumes"),
    ("conversion", r"convert|conversion"),
    ("notes", r"\bnotes?\b|encoding"),
    ("record", r"\brecord\b"),
)
"""Kinds of reasons, and the pattern that recognises each; the reason itself can contain numbers and is not repeated."""
PIECES = "review/"
"""Files for the reviewer are not data and are not covered by the audit."""


@dataclass(frozen=True, kw_only=True)
class AuditRules:
    """Rules by which a benchmark was de-identified.

    Attributes
    ----------
    benchmark, profile : str
        Name of the benchmark, and de-identification profile.
    subjects : str
        Kind of subjects: `phantom`, `public` or `patient`.
    options : tuple of str
        Codes of the options of DICOM PS3.15 Annex E.
    elements : tuple of OwnRule
        Own rules for single elements of headers.
    views : ViewRules or None
        Which slices may be shown on request; None: none.
    """

    benchmark: str
    profile: str
    subjects: str
    options: tuple[str, ...] = ()
    elements: tuple[OwnRule, ...] = ()
    views: ViewRules | None = None


def audit_cases(rules: AuditRules, cases: Sequence[tuple[CaseRecord, Path]]) -> Audit:
    """Audit the cases of a benchmark of `kind: scans`, before any signature.

    Parameters
    ----------
    rules : AuditRules
        Rules of their de-identification.
    cases : sequence of tuple of CaseRecord and Path
        Every de-identified case with its folder, including quarantined ones.

    Returns
    -------
    Audit
        `passed` for phantoms and public data, `pending` for patients, `failed` if identifiers remain or no case is left.
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
    accepted = tuple(row_of(case.case_id, leak) for case, _ in used for leak in case.leaks)
    audit = _audit(rules, checks, covered, flow, reasons=reasons, tools=_tools(folders))
    return replace(audit, score=sum_scores(read_scores(folders)), accepted=accepted)


def audit_pictures(rules: AuditRules, manifest: PictureManifest) -> Audit:
    """Audit a benchmark of `kind: pictures`; as `audit_cases`."""
    used = [picture for picture in manifest.pictures if picture.state is State.OK]
    flow = {"listed": len(manifest.pictures), "passed": len(used), "quarantined_deidentify": len(manifest.pictures) - len(used)}
    covered = {picture.sha256: picture.image_id for picture in used}
    reasons = Counter(kind_of_reason(picture.reason) for picture in manifest.pictures if picture.state is not State.OK)
    return _audit(rules, Counter(manifest.checks), covered, flow, reasons=reasons, tools={})


def own_rules(rules: Iterable[ElementRule]) -> tuple[OwnRule, ...]:
    """Return rules of the configuration as the audit lists them."""
    return tuple(OwnRule(element=rule.keyword, action=rule.action, reason=rule.reason, reviewer=rule.reviewer) for rule in rules)


def audit_rules(folder: Path, benchmark: str) -> AuditRules:
    """Return the rules of a benchmark; `folder` is that of the configuration."""
    config = load_benchmark(folder, benchmark)
    return AuditRules(
        benchmark=benchmark,
        profile=config.profile,
        subjects=config.subjects,
        options=config.header_options,
        elements=own_rules(config.deidentification.elements),
        views=config.view_rules,
    )


def describe_check(check: str) -> str:
    """Return the description of a check.

    Examples
    --------
    >>> describe_check("notes_email")
    'values in notes that were replaced or removed, by kind'
    """
    family = next((words for prefix, words in FAMILIES.items() if check.startswith(prefix)), OTHER)
    return DESCRIPTIONS.get(check, family)


def kind_of_reason(reason: str) -> str:
    """Return the kind of a reason.

    Examples
    --------
    >>> kind_of_reason("3 identifying values are left after cleaning: the case is kept back")
    'identifying_values_left'
    """
    return next((kind for kind, pattern in REASONS if re.search(pattern, reason)), "other")


def covered_files(case: CaseRecord) -> dict[str, str]:
    """Return the digests of a de-identified case's usable files (scans, sidecars, texts) by path."""
    return {path: digest for path, digest in case.files.items() if not path.startswith(PIECES)}


def _tools(folders: Sequence[Path]) -> dict[str, str]:
    """Join the versions of the packages that cleaned each case."""
    versions: dict[str, set[str]] = {}
    for folder in folders:
        for name, version in read_tools(folder).items():
            versions.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions[name])) for name in sorted(versions)}


def _audit(
    rules: AuditRules, checks: Counter[str], covered: dict[str, str], flow: dict[str, int], *, reasons: Counter[str], tools: dict[str, str]
) -> Audit:
    """Build the audit and decide its state."""
    leaks = checks.pop("leaks", 0)
    names = sorted(checks)
    audit = Audit(
        benchmark=rules.benchmark,
        profile=rules.profile,
        kind=rules.subjects,
        state="passed",
        checks={name: checks[name] for name in names},
        leaks=leaks,
        looked_for={name: describe_check(name) for name in names},
        covered=covered,
        flow=flow,
        reasons={kind: reasons[kind] for kind in sorted(reasons)},
        options=rules.options,
        element_rules=rules.elements,
        views=rules.views,
        tools=tools,
    )
    if leaks:
        return replace(audit, state="failed", reason=f"{leaks} identifying values are left", covered={})
    if not covered and flow["listed"]:  # a text-only data set lists nothing
        return replace(audit, state="failed", reason="no case is left: see why they were quarantined")
    if rules.subjects == "patient":
        return replace(audit, state="pending", reason="a person has to look at review.html and sign it (nmb deid sign)")
    return audit
