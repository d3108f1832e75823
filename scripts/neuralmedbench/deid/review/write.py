"""Write the review of a benchmark: a first page, and one offline sheet per case or group of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from neuralmedbench.deid.audit import AuditRules, audit_cases, audit_pictures
from neuralmedbench.deid.review.raw_series import count_used
from neuralmedbench.deid.review.sheet import CaseStages, case_sheet, linked_figures, stages_of
from neuralmedbench.deid.review.signature import TYPED_DIGITS, case_digest, reviewed_files
from neuralmedbench.deid.score.tally import REMOVALS_TOTAL, TOTAL, WORDS_REMOVED
from neuralmedbench.files.pages import checkbox, page, table, warning
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
    """One case, or one sheet of pictures, on the first page.

    Attributes
    ----------
    name, sheet : str
        Its name, and the file of its sheet.
    holds : str
        Description of its contents.
    warnings : tuple of str
        Reasons to look at it first.
    kept_back : str
        Reason of its quarantine; empty if it is used.
    """

    name: str
    sheet: str
    holds: str
    warnings: tuple[str, ...] = ()
    kept_back: str = ""


def index_page(audit: Audit, sheets: ReviewedFiles, lines: Sequence[IndexLine]) -> str:
    """Build the HTML of the first page; all text is escaped."""
    first = [line for line in lines if line.warnings and not line.kept_back]
    rest = [line for line in lines if not line.warnings and not line.kept_back]
    kept = [line for line in lines if line.kept_back]
    counts = [(name.replace("_", " "), str(number)) for name, number in audit.flow.items()]
    counts += [(f"reason: {kind.replace('_', ' ')}", str(number)) for kind, number in audit.reasons.items()]
    checks = [(name, str(number), audit.looked_for[name]) for name, number in audit.checks.items()]
    accepted = f", besides {audit.checks['leaks_accepted']} that a person accepted" if audit.accepted else ""
    left = f"{audit.leaks} identifying values were found after cleaning{accepted}."
    body = [
        f"<p>Profile {escape(audit.profile)}, subjects {escape(audit.kind)}. {escape(STATES[audit.state])}</p>\n",
        warning(left) if audit.leaks else f"<p>{left}</p>\n",
        *(warning(line) for line in _without_second_opinion(audit)),
        _case_list("Cases to look at first", first),
        _case_list("Cases", rest),
        _case_list("Kept back", kept),
        _accepted(audit),
        _own_rules(audit),
        _on_request(audit),
        _score(audit.score),
        _how_to_sign(sheets),
        f"<h2>Audit</h2>{table(counts)}<details><summary>What was changed and what was looked for</summary>",
        table(checks, ("check", "count", "what it counts")),
        f"<p>Options of DICOM PS3.15 Annex E: {escape(', '.join(audit.options) or 'none')}. Cleaned with",
        f" {escape(', '.join(f'{name} {number}' for name, number in audit.tools.items()) or 'unknown tools')}.</p></details>\n",
    ]
    return page(f"De-identification review: {audit.benchmark}", body)


def _without_second_opinion(audit: Audit) -> Iterator[str]:
    """Yield warnings about pictures without OCR; the audits of phantoms and public data do not record this."""
    for kind in ("series", "pictures"):
        if number := audit.checks.get(f"burned_in_{kind}_without_ocr"):
            yield (
                f"{number} {kind} should have been read by tesseract as a second opinion on burned-in text, and it is not installed:"
                " look at their borders with care, or install it and run again."
            )


def _case_list(title: str, lines: Sequence[IndexLine]) -> str:
    if not lines:
        return ""
    rows = "".join(
        f'<tr><td><a href="{escape(line.sheet)}">{escape(line.name)}</a></td><td>{escape(line.holds)}</td>'
        f"<td>{escape(line.kept_back or '; '.join(line.warnings))}</td></tr>\n"
        for line in lines
    )
    return f'<h2>{title} ({len(lines)})</h2><div class="scroll"><table>{rows}</table></div>\n'


def _own_rules(audit: Audit) -> str:
    if not audit.element_rules:
        return ""
    rows = [(rule.element, rule.action, rule.reason, rule.reviewer) for rule in audit.element_rules]
    return f"<h2>Own rules for single header elements ({len(rows)})</h2>{table(rows, ('element', 'action', 'reason', 'decided by'))}\n"


def _on_request(audit: Audit) -> str:
    if audit.views is None:
        return ""
    words = [", ".join(map(str, values)) for values in (audit.views.planes, audit.views.windows, audit.views.zooms)]
    planes, windows, zooms = map(escape, words)
    return (
        "<h2>Shown on request</h2>"
        + warning("Models that ask for them are shown any slice of these scans, not only the chosen ones: look through the whole scans.")
        + f"<p>Planes: {planes}. Windows: {windows}. Zooms: {zooms}. The signature covers this list.</p>\n"
    )


def _accepted(audit: Audit) -> str:
    if not audit.accepted:
        return ""
    rows = [(row.case_id, row.file, row.place, row.reason, f"{row.reviewer}, {row.accepted_on}") for row in audit.accepted]
    columns = ("case", "file", "element, key or line", "reason", "accepted by")
    return f"<h2>Identifying values that a person accepted ({len(rows)})</h2>{table(rows, columns)}\n"


def _score(rows: Sequence[ScoreRow]) -> str:
    """Build the HTML of the score on planted identities (phantoms only): totals, errors, and all rows."""
    if not rows:
        return ""
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
    lines = [(row.place, row.action.replace("_", " "), row.category, str(row.required), str(row.right)) for row in rows]
    return "".join(
        [
            f"<h2>Score on planted identities</h2><p>{escape(' '.join(sums_in_words))} The generator of these phantoms writes down what it plants and what has",
            " to stay; real hospitals write in ways that the generator does not.</p>\n",
            *(warning(line) for line in wrong),
            "<details><summary>Every action, counted over every file</summary>",
            table(lines, ("where", "action", "category", "required", "right")),
            "</details>\n",
        ]
    )


def _how_to_sign(sheets: ReviewedFiles) -> str:
    name, digits = escape(sheets.benchmark), escape(sheets.digest[:TYPED_DIGITS])
    reasons = ", ".join(reason.value for reason in ExcludeReason)
    command = f"nmb deid sign --benchmark {name} --reviewer INITIALS --digest {digits}"
    return (
        "<h2>Sign</h2><p>Look at every case. If something identifies a person, remove it from your folder and list the cases again, or exclude"
        " the case. When everything is in order:</p>\n"
        f"<p><code>{command} --accept-rest</code></p>\n<p>To exclude cases, name each with a reason ({reasons}):</p>\n"
        f"<p><code>{command} --exclude CASE={ExcludeReason.FACE_LEFT.value} --accept-rest</code></p>\n"
        f"<p>The {TYPED_DIGITS} digits stand for exactly what these sheets show. When a scan, a text or a picture changes, the signature is"
        " void.</p>\n"
    )


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
    body = [
        '<nav><a href="../review.html">All sheets</a></nav>\n',
        checkbox("No picture shows a face, a name, a date or a number of a patient."),
        linked_figures(((path, Path(path).stem) for path in paths), folder, at),
    ]
    return page(f"{benchmark}: pictures", body)
