"""The sheet of one case: everything a person has to look at before the case may be used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from neuralmedbench.deid.case_stages import CaseStage, CaseStages
from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages import THUMBNAIL_PX, figure, page, picture_figure, table, tick, warning
from neuralmedbench.records.case import PictureFate, Series, State

LEGIBLE_PX = 480
"""So large that letters which were left can be seen before a picture is opened."""
MARKS = re.compile(r"\[[A-Z][A-Z _-]*\]|\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b90\+")
"""What stands in the place of something that was removed: placeholders, shifted dates, ages over 89."""
NAMELESS = (
    "No header of this case tells the patient's name: names in its texts were found by pattern alone, and some can be left."
    " If so, take them out of the note in your folder and list the cases again."
)


def case_sheet(stages: CaseStages, neighbours: tuple[str, str], at: Path) -> str:
    """HTML of the sheet of one case; all text is escaped.

    `neighbours`: case before and case after it, empty at the ends.
    """
    before, after = neighbours
    ways = [f'<a href="sub-{before}.html" rel="prev">Case before</a>'] if before else []
    ways += ['<a href="../review.html">All cases</a>'] + ([f'<a href="sub-{after}.html" rel="next">Next case</a>'] if after else [])
    navigation = f"<nav>{' '.join(ways)}</nav>\n"
    body = [navigation, warning(stages.kept_back) if stages.kept_back else ""]
    if stages.clean.case.pictures:
        body.append(_warnings(stages))
        body += [picture_section(stages.clean, at), texts_section(stages.clean)] if stages.clean.case.state is State.OK else []
    elif stages.clean.case.state is State.OK:
        body += [_warnings(stages), *_scans(stages), _headers(stages.clean), texts_section(stages.clean), *_imaging(stages, at)]
    return page(f"{stages.clean.case.benchmark}: case {stages.case_id}", [*body, navigation])


def picture_section(stage: CaseStage, at: Path) -> str:
    """HTML of the pictures of a case, small, each with a link to the picture itself."""
    shown = [picture for picture in stage.case.pictures if picture.state is State.OK]
    return "".join(
        [
            f"<h2>Pictures: what a model is shown ({len(shown)})</h2>",
            tick("Opened in its full size (follow the picture), none shows a name, a date or a number of a patient, up to its rims."),
            tick("None shows a face: no photograph, no surface, no profile. Faces of single pictures are not removed: exclude the case."),
            tick("Each is what its caption says, and no letter or arrow that was meant to be seen is hidden."),
            linked_figures(((picture.path, caption(picture)) for picture in shown), stage.folder, at, px=LEGIBLE_PX),
        ]
    )


def caption(picture: PictureFate) -> str:
    """Name a picture as a reviewer sees it: its id, and what it is said to show."""
    words = [picture.sequence if picture.sequence != "unknown" else "", picture.plane]
    return ", ".join([picture.image_id, *(word for word in words if word)])


def linked_figures(pictures: Iterable[tuple[str, str]], folder: Path, at: Path, *, px: int = THUMBNAIL_PX) -> str:
    """HTML of pictures, given by path below a folder and caption: small, with links from where the page lies to the pictures as they are."""
    body = []
    for path, words in pictures:
        link = escape(Path(os.path.relpath(folder / path, at.parent)).as_posix())
        body.append(f'<a href="{link}">{picture_figure(folder / path, words, px=px).rstrip()}</a>\n')
    return "".join(body)


def _warnings(stages: CaseStages) -> str:
    names = {series.series_id: _name(series) for series in stages.clean.case.series}
    rows = [(names.get(series, series), line) for series, lines in stages.warnings().items() for line in lines]
    return f'<h2 class="warn">Look twice</h2>{table(rows)}' if rows else ""


def _name(series: Series) -> str:
    return f"{series.series_id}, {series.sequence.value}"


def _figures(stage: CaseStage, piece: str, *, scale: float) -> str:
    shown = [series for series in stage.case.series if stage.piece(series, piece).exists()]
    return "".join(figure(stage.piece(series, piece), _name(series), scale=scale) for series in shown)


def _scans(stages: CaseStages) -> list[str]:
    return [
        "<h2>Faces: the surface of each scan, from the front, the right and the left</h2>",
        tick("No scan shows a nose, a mouth, eyes or an ear by which somebody could be recognised."),
        _figures(stages.clean, "surface.png", scale=1.15),
        "<h2>Text in the pictures: the rim of all slices at once</h2>",
        tick(
            "No rim shows letters or figures. (The middle is left out; what is bright there is the head. Text over the head is seen below.)"
        ),
        _figures(stages.clean, "border.png", scale=1),
    ]


def _headers(stage: CaseStage) -> str:
    """List what became of the headers by name; what was kept is folded."""
    found: dict[tuple[str, str], list[str]] = {}
    read = [series.series_id for series in stage.case.series if stage.piece(series, "headers.json").exists()]
    for series in stage.case.series:
        path = stage.piece(series, "headers.json")
        for action, names in (read_json(path) if path.exists() else {}).items():
            for name in names:
                found.setdefault((action, name), []).append(series.series_id)
    if not found:
        return "<h2>Headers</h2><p>No DICOM: of NIfTI files voxels and geometry alone were kept.</p>\n"
    parts = []
    for action in ACTIONS:
        lines = [
            name if where == read else f"{name} ({', '.join(where)})" for (other, name), where in sorted(found.items()) if other == action
        ]
        if lines:
            opened = "" if action in {"kept", "added"} else " open"
            entries = "".join(f"<li>{escape(line)}</li>" for line in lines)
            parts.append(f"<details{opened}><summary>{action} ({len(lines)})</summary><ul>{entries}</ul></details>\n")
    question = tick("Nothing that describes a person, a place or a device by name is among what was kept or cleaned.")
    compared = "<p>Compared in the first file of each series, and in every file with an element that those before it lack.</p>\n"
    return f"<h2>Headers: what became of each element, by name</h2>{question}{''.join(parts)}{compared}"


def texts_section(stage: CaseStage) -> str:
    """HTML of the notes and the record of a case, escaped, with what was replaced marked."""
    case = stage.case
    texts = [*case.notes, *([case.record] if case.record else [])]
    if not texts:
        return "<h2>Notes and record</h2><p>This case has none.</p>\n"
    shown = "".join(
        f'<h3>{escape(path)}</h3><pre tabindex="0">{marked((stage.folder / path).read_text(encoding="utf-8"))}</pre>\n' for path in texts
    )
    nameless = warning(NAMELESS) if case.checks.get("notes_without_known_names") else ""
    question = tick("No text names a person, a place, a date of the calendar or a number of the patient, and none gives the answer away.")
    return f"<h2>Notes and record: what was replaced is marked</h2>{question}{nameless}{shown}"


def marked(text: str) -> str:
    """Escape a text and mark what stands in the place of something else.

    Examples
    --------
    >>> marked("[NAME] was seen < once")
    '<mark>[NAME]</mark> was seen &lt; once'
    """
    return MARKS.sub(lambda found: f"<mark>{found[0]}</mark>", escape(text, quote=False))


def _imaging(stages: CaseStages, at: Path) -> list[str]:
    if stages.normalised.case.state is not State.OK:
        return []
    normalised, cut = stages.normalised, stages.cut
    return [
        "<h2>Sides and brain: three planes of each series in one space</h2>",
        tick("R is at the left of axial and coronal planes. What is wrong with the brain lies on the side that the notes tell, and on the"
             " same side in every series."),
        tick("The yellow line follows the brain in every series."),
        _figures(normalised, "planes.png", scale=1.25),
        "<h2>Registration: fields of the reference and of the series take turns</h2>",
        tick("Ventricles, furrows and skull run on from field to field without a step."),
        _figures(normalised, "registration.png", scale=1.25) or "<p>One series only.</p>",
        "<h2>Quality</h2>",
        _quality(stages),
        "<h2>Chosen pictures: what a model is shown</h2>",
        tick("They show the brain, the kind of scan that the caption says, and nothing else."),
        *(_chosen(cut, series, at) for series in cut.case.series),
    ]  # fmt: skip


def _quality(stages: CaseStages) -> str:
    rows = [
        (f"{series.series_id}, as it came and as it was defaced", name.replace("_", " "), f"{value:g}", "")
        for series in stages.clean.case.series
        for name, value in sorted(series.quality.items())
    ]
    for name, numbers in stages.quality().items():
        for entry in numbers:
            least, most = entry["allowed"] or (None, None)
            allowed = " and ".join(part for part in (_end("at least", least), _end("at most", most)) if part)
            rows.append((name, entry["number"].replace("_", " "), f"{entry['value']:g}", allowed))
    return f"<details><summary>Numbers and their limits</summary>{table(rows, ('series', 'number', 'value', 'allowed'))}</details>\n"


def _end(word: str, value: float | None) -> str:
    return "" if value is None else f"{word} {value:g}"


def _chosen(stage: CaseStage, series: Series, at: Path) -> str:
    """Show the pictures of a series small, each with a link to the picture itself."""
    slices = [entry for entry in stage.case.slices if entry.volume_sha256 == series.volume_sha256]
    if not slices:
        return ""
    links = " ".join(
        f'<a href="{escape(Path(os.path.relpath(stage.folder / entry.path, at.parent)).as_posix())}">{escape(entry.image_id)}</a>'
        for entry in slices
    )
    return f"{figure(stage.piece(series, 'slices.png'), f'{_name(series)}, {len(slices)} pictures')}<p>As they are: {links}</p>\n"
