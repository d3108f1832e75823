"""Write the review of a benchmark: a first page, and one offline sheet per case or group of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.deid.audit import AuditRules, audit_cases, audit_pictures
from neuralmedbench.deid.review.raw_series import count_used
from neuralmedbench.deid.review.sheet import CaseStages, case_sheet, linked_pictures, stages_of
from neuralmedbench.deid.review.signature import TYPED_DIGITS, case_digest, reviewed_files
from neuralmedbench.deid.review.templates import TEMPLATES
from neuralmedbench.deid.score.tally import REMOVALS_TOTAL, TOTAL, WORDS_REMOVED
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.records.answer_key import ScoreRow
from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, State
from neuralmedbench.records.review import ExcludeReason, ReviewedFiles
from neuralmedbench.runtime.atomic_write import atomic_folder, write_text

STATES = {
    "passed": "These data pass without a signature: they are phantoms, or already public.",
    "pending": "No model is shown any of these data before a person has looked at every case and signed.",
    "failed": "The audit failed: nothing may be used, and no signature changes that.",
}
INDEX, SHEETS = "review.html", "sheets"
PICTURES_A_SHEET = 60


def write_case_review(rules: AuditRules, case_ids: Sequence[str], data: Path, out: Path) -> ReviewedFiles:
    """Write the review of a benchmark of `kind: scans`.

    Parameters
    ----------
    rules : AuditRules
        Rules of its de-identification.
    case_ids : sequence of str
        Cases that its table does not exclude.
    data : Path
        Folder of the data.
    out : Path
        Folder for `review.html` and `sheets/`; previous sheets are replaced.

    Returns
    -------
    ReviewedFiles
        Files shown in the sheets.
    """
    names = sorted(case_ids)
    digests: dict[str, str] = {}
    lines: list[IndexLine] = []
    clean: list[tuple[CaseRecord, Path]] = []
    with atomic_folder(out / SHEETS) as folder:
        for case, before, after in zip(names, ["", *names[:-1]], [*names[1:], ""], strict=True):
            stages = stages_of(case, stage_folders(data, rules.benchmark))
            name = f"sub-{case}.html"
            write_text(folder / name, case_sheet(stages, (before, after), out / SHEETS / name))
            lines.append(_line(stages))
            clean.append((stages.clean.case, stages.clean.folder))
            digests |= _digest_of(stages, rules)
    sheets = reviewed_files(rules.benchmark, rules.profile, digests)
    write_text(out / INDEX, index_page(audit_cases(rules, clean), sheets, lines))
    return sheets


def write_picture_review(rules: AuditRules, manifest: PictureManifest, folder: Path, out: Path) -> ReviewedFiles:
    """Write the review of a benchmark of `kind: pictures`: sheets of `PICTURES_A_SHEET` pictures; as `write_case_review`.

    Parameters
    ----------
    rules : AuditRules
        Rules of its de-identification.
    manifest : PictureManifest
        The de-identified pictures.
    folder : Path
        Folder of the pictures.
    out : Path
        Output folder.
    """
    lines: list[IndexLine] = []
    with atomic_folder(out / SHEETS) as sheets:
        for number, paths in enumerate(_groups(manifest), start=1):
            name = f"pictures-{number:04d}.html"
            write_text(sheets / name, _picture_sheet(manifest.benchmark, paths, folder, out / SHEETS / name))
            lines.append(
                IndexLine(name=f"{Path(paths[0]).stem} to {Path(paths[-1]).stem}", sheet=f"{SHEETS}/{name}", holds=f"{len(paths)} pictures")
            )
    digests = {picture.image_id: picture.sha256 for picture in manifest.pictures if picture.state is State.OK}
    seen = reviewed_files(rules.benchmark, rules.profile, digests)
    write_text(out / INDEX, index_page(audit_pictures(rules, manifest), seen, lines))
    return seen


def current_files(rules: AuditRules, case_ids: Sequence[str], data: Path) -> ReviewedFiles:
    """Return the files that the sheets of a benchmark of scans would show now; parameters as in `write_case_review`."""
    digests: dict[str, str] = {}
    for case in case_ids:
        digests |= _digest_of(stages_of(case, stage_folders(data, rules.benchmark)), rules)
    return reviewed_files(rules.benchmark, rules.profile, digests)


def _digest_of(stages: CaseStages, rules: AuditRules) -> dict[str, str]:
    """Return the digest of what a sheet shows by case; empty if the case is kept back."""
    if stages.clean.case.state is not State.OK:
        return {}
    return {stages.case_id: case_digest(stages.clean.case, stages.cut.case, rules.views)}


def stage_folders(data: Path, benchmark: str) -> list[Path]:
    """Return the folders of the three stages shown in a review."""
    return [data / stage / benchmark for stage in ("deidentified", "normalised", "slices")]


@dataclass(frozen=True)
class IndexLine:
    """One case, or one sheet of pictures, on the first page: reasons to look at it first, and why it is kept back if it is not used."""

    name: str
    sheet: str
    holds: str
    warnings: tuple[str, ...] = ()
    kept_back: str = ""


def index_page(audit: Audit, sheets: ReviewedFiles, lines: Sequence[IndexLine]) -> str:
    """Build the first page."""
    groups = {
        "Cases to look at first": [line for line in lines if line.warnings and not line.kept_back],
        "Cases": [line for line in lines if not line.warnings and not line.kept_back],
        "Kept back": [line for line in lines if line.kept_back],
    }
    counts = [(name.replace("_", " "), number) for name, number in audit.flow.items()]
    counts += [(f"reason: {kind.replace('_', ' ')}", number) for kind, number in audit.reasons.items()]
    values = {
        "title": f"De-identification review: {audit.benchmark}",
        "audit": audit,
        "state": STATES[audit.state],
        "groups": groups,
        "counts": counts,
        "checks": [(name, number, audit.looked_for[name]) for name, number in audit.checks.items()],
        "accepted": [(row.case_id, row.file, row.place, row.reason, f"{row.reviewer}, {row.accepted_on}") for row in audit.accepted],
        "element_rules": [(rule.element, rule.action, rule.reason, rule.reviewer) for rule in audit.element_rules],
        "tools": [f"{name} {number}" for name, number in audit.tools.items()],
        "without_ocr": _without_second_opinion(audit),
        "score": _score(audit.score),
        "digits": sheets.digest[:TYPED_DIGITS],
        "reasons": [reason.value for reason in ExcludeReason],
        "example": ExcludeReason.FACE_LEFT.value,
    }
    return render_page(TEMPLATES / "review.html.j2", values)


def _without_second_opinion(audit: Audit) -> dict[str, int]:
    """Count the pictures without OCR by kind; the audits of phantoms and public data do not record this."""
    counts = {kind: audit.checks.get(f"burned_in_{kind}_without_ocr", 0) for kind in ("series", "pictures")}
    return {kind: number for kind, number in counts.items() if number}


def _score(rows: Sequence[ScoreRow]) -> dict[str, list[Any]]:
    """Return the score on planted identities (phantoms only): totals and errors in words, and all rows; empty without rows."""
    sums = {(row.place, row.action): row for row in rows if (row.place, row.action) in {TOTAL[:2], REMOVALS_TOTAL[:2]}}
    sums_in_words = [
        f"{words}: {sums[key].right} of {sums[key].required} right ({sums[key].patients_right} of {sums[key].patients} phantoms without a fault)."
        for key, words in ((REMOVALS_TOTAL[:2], "Of what had to go"), (TOTAL[:2], "Of everything that was asked for"))
        if key in sums
    ]
    wrong = [
        f"{row.place}: {row.required - row.right} of {row.required} words that were removed did not have to go"
        if row.action == WORDS_REMOVED
        else f"{row.place}, {row.action.replace('_', ' ')}, {row.category}: {row.required - row.right} of {row.required} wrong"
        for row in rows
        if row.right < row.required and (row.place, row.action) not in sums
    ]
    lines = [(row.place, row.action.replace("_", " "), row.category, row.required, row.right) for row in rows]
    return {"sums": sums_in_words, "wrong": wrong, "rows": lines} if rows else {}


def _line(stages: CaseStages) -> IndexLine:
    clean, cut = stages.clean.case, stages.cut.case
    loose = [picture for picture in clean.pictures if picture.state is State.OK]
    kinds = ", ".join(series.sequence.value for series in clean.series) or ("no scans" if not clean.pictures else "pictures and no scans")
    texts = len(clean.notes) + bool(clean.record)
    used = 0 if stages.kept_back else count_used(clean, stages.left_out)
    series = f"{used} of {len(clean.raw_series)} series used; " if clean.raw_series else ""
    warnings = list(dict.fromkeys(line for lines in stages.warnings().values() for line in lines))
    if clean.leaks and not stages.kept_back:
        warnings.append("a person accepted values that equal an identifier of the patient")
    if clean.checks.get("notes_without_known_names"):
        warnings.append(
            "the patient's name is not known: read the notes with care"
            if loose
            else "no header has the patient's name: read the notes with care"
        )
    return IndexLine(
        name=stages.case_id,
        sheet=f"{SHEETS}/sub-{stages.case_id}.html",
        holds=f"{kinds}; {series}{texts} texts; {len(cut.slices) or len(loose)} pictures",
        warnings=tuple(warnings),
        kept_back=stages.kept_back,
    )


def _groups(manifest: PictureManifest) -> Iterator[list[str]]:
    paths = [picture.path for picture in manifest.pictures if picture.state is State.OK]
    for start in range(0, len(paths), PICTURES_A_SHEET):
        yield paths[start : start + PICTURES_A_SHEET]


def _picture_sheet(benchmark: str, paths: Sequence[str], folder: Path, at: Path) -> str:
    pictures = linked_pictures(((path, Path(path).stem) for path in paths), folder, at)
    return render_page(TEMPLATES / "pictures.html.j2", {"title": f"{benchmark}: pictures", "pictures": pictures})
