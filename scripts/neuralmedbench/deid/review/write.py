"""Everything that a person is shown before the data of a benchmark may be used: a first page, and one offline sheet per case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neuralmedbench.deid.audit import Rules, audit_cases, audit_pictures
from neuralmedbench.deid.case_stages import CaseStages, stages_of
from neuralmedbench.deid.review.index import Line, index_page
from neuralmedbench.deid.review.picture_section import linked_figures
from neuralmedbench.deid.review.sheet import case_sheet
from neuralmedbench.deid.review.signature import case_digest, shown
from neuralmedbench.files.pages import page, tick
from neuralmedbench.records.case import CaseRecord, PictureManifest, State
from neuralmedbench.records.review import Shown
from neuralmedbench.runtime.atomic_write import whole_folder, write_text

INDEX, SHEETS = "review.html", "sheets"
PICTURES_A_SHEET = 60


def stage_folders(data: Path, benchmark: str) -> list[Path]:
    """Give the folders of the three stages that a review shows."""
    return [data / stage / benchmark for stage in ("deidentified", "normalised", "slices")]


def shown_now(rules: Rules, case_ids: Sequence[str], data: Path) -> Shown:
    """Tell what the sheets of a benchmark of scans would show of the data as they are now; parameters as in `write_case_review`."""
    digests = {}
    for case in case_ids:
        stages = stages_of(case, stage_folders(data, rules.benchmark))
        if stages.clean.case.state is State.OK:
            digests[case] = case_digest(stages.clean.case, stages.cut.case)
    return shown(rules.benchmark, rules.profile, digests)


def write_case_review(rules: Rules, case_ids: Sequence[str], data: Path, out: Path) -> Shown:
    """Write the review of a benchmark of `kind: scans`.

    Parameters
    ----------
    rules : Rules
        Under which it was de-identified.
    case_ids : sequence of str
        The cases that its table does not exclude.
    data : Path
        Folder of the data.
    out : Path
        Folder to write `review.html` and `sheets/` to; sheets that lay there before are replaced.

    Returns
    -------
    Shown
        What the sheets show.
    """
    names = sorted(case_ids)
    digests: dict[str, str] = {}
    lines: list[Line] = []
    clean: list[tuple[CaseRecord, Path]] = []
    with whole_folder(out / SHEETS) as folder:
        for case, before, after in zip(names, ["", *names[:-1]], [*names[1:], ""], strict=True):
            stages = stages_of(case, stage_folders(data, rules.benchmark))
            name = f"sub-{case}.html"
            write_text(folder / name, case_sheet(stages, (before, after), out / SHEETS / name))
            lines.append(_line(stages))
            clean.append((stages.clean.case, stages.clean.folder))
            if stages.clean.case.state is State.OK:
                digests[case] = case_digest(stages.clean.case, stages.cut.case)
    sheets = shown(rules.benchmark, rules.profile, digests)
    write_text(out / INDEX, index_page(audit_cases(rules, clean), sheets, lines))
    return sheets


def _line(stages: CaseStages) -> Line:
    clean, cut = stages.clean.case, stages.cut.case
    loose = [picture for picture in clean.pictures if picture.state is State.OK]
    kinds = ", ".join(series.sequence.value for series in clean.series) or ("no scans" if not clean.pictures else "pictures and no scans")
    texts = len(clean.notes) + bool(clean.record)
    warnings = list(dict.fromkeys(line for lines in stages.warnings().values() for line in lines))
    if clean.checks.get("notes_without_known_names"):
        warnings.append(
            "nothing tells the patient's name: read the notes with care"
            if loose
            else "no header tells the patient's name: read the notes with care"
        )
    return Line(
        name=stages.case_id,
        sheet=f"{SHEETS}/sub-{stages.case_id}.html",
        holds=f"{kinds}; {texts} texts; {len(cut.slices) or len(loose)} pictures",
        warnings=tuple(warnings),
        kept_back=stages.kept_back,
    )


def write_picture_review(rules: Rules, manifest: PictureManifest, folder: Path, out: Path) -> Shown:
    """Write the review of a benchmark of `kind: pictures`: sheets of `PICTURES_A_SHEET` pictures; as `write_case_review`.

    Parameters
    ----------
    rules : Rules
        Under which it was de-identified.
    manifest : PictureManifest
        The de-identified pictures.
    folder : Path
        Folder that holds them.
    out : Path
        Folder to write to.
    """
    lines: list[Line] = []
    with whole_folder(out / SHEETS) as sheets:
        for number, paths in enumerate(_groups(manifest), start=1):
            name = f"pictures-{number:04d}.html"
            write_text(sheets / name, _picture_sheet(manifest.benchmark, paths, folder, out / SHEETS / name))
            lines.append(
                Line(name=f"{Path(paths[0]).stem} to {Path(paths[-1]).stem}", sheet=f"{SHEETS}/{name}", holds=f"{len(paths)} pictures")
            )
    digests = {picture.image_id: picture.sha256 for picture in manifest.pictures if picture.state is State.OK}
    seen = shown(rules.benchmark, rules.profile, digests)
    write_text(out / INDEX, index_page(audit_pictures(rules, manifest), seen, lines))
    return seen


def _groups(manifest: PictureManifest) -> Iterator[list[str]]:
    paths = [picture.path for picture in manifest.pictures if picture.state is State.OK]
    for start in range(0, len(paths), PICTURES_A_SHEET):
        yield paths[start : start + PICTURES_A_SHEET]


def _picture_sheet(benchmark: str, paths: Sequence[str], folder: Path, at: Path) -> str:
    body = [
        '<nav><a href="../review.html">All sheets</a></nav>\n',
        tick("No picture shows a face, a name, a date or a number of a patient."),
        linked_figures(((path, Path(path).stem) for path in paths), folder, at),
    ]
    return page(f"{benchmark}: pictures", body)
