"""The review sheet of one case: everything a person must look at before the case may be used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from neuralmedbench.config.deidentification import MAY_BE_KEPT
from neuralmedbench.deid.headers.cleaner import SIDECAR_NAMES
from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.deid.headers.rules import OWN_RULES
from neuralmedbench.deid.review.pieces import REVIEW
from neuralmedbench.deid.review.raw_series import series_section, twin_lines
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages import THUMBNAIL_PX, checkbox, figure, page, picture_figure, table, warning
from neuralmedbench.records.case import CaseRecord, PictureFate, Series, State
from neuralmedbench.records.requests import long_prompt_line

FLAGS = {
    "burned_in_text_kept": "text is burned into it and was kept, as the yaml of the benchmark says: read all of it",
    "type_disagrees": "its name says another format than its bytes hold",
    "outer_layer_removed": "the template could not be fitted reliably: the skin of the head was removed instead of a face",
    "face_fit_borrowed": "it shows too little of the head to be fitted: its face was located by the fit of another series (see its numbers)",
    "no_head_outside_brain": "nothing lies outside the brain, so there was no face to remove",
    "no_surface": "the scan shows vessels or the like and no skin",
    "brain_hidden": "hidden text covers a small part of its brain: see how much, and whether a finding lies there",
    "burned_in_text_hidden": "text was burned into it and was hidden: look at the rim and at the chosen pictures",
    "words_and_physics_disagree": "its description and its acquisition parameters name different kinds of scan",
    "sidecar_geometry_disagrees": "the sidecar gives another distance or plane of the slices than the scan; the scan's were used",
    "positions_and_thickness_disagree": "the distance between slices differs from their stated thickness; the positions were used",
    "uneven_spacing": "its slices are unevenly spaced",
    "missing_slices": "slices are missing",
    "cut_off_files": "a file of it was cut off and left out, so that an end of the scan or a measurement is missing: copy it again",
    "gantry_tilt": "it was acquired with a tilted gantry",
    "incomplete_volumes": "it holds volumes with fewer slices than others",
    "description_and_protocol_disagree": "its description and its protocol name different kinds of scan",
    "kind_by_physics_alone": "its kind was recognised by acquisition parameters alone, no description names it",
    "b0_only": "only the images without diffusion weighting of a diffusion series are present",
    "negative_voxels": "it holds voxels as dark as air in CT, but neither its name nor its other greys are those of CT",
    "lossy_compression": "its pixels arrived with lossy compression",
    "contrast_unclear": "it is unclear whether contrast medium was given",
    "t1_in_other_units": "T1 before and after contrast are in different units, so they share no window",
    "patient_moved": "it lies more than 10 mm from the reference by its header",
    "part_of_the_brain": "it shows only part of the brain",
    "poor_registration": "it agrees poorly with the reference: look at the checkerboard",
    "odd_brain_volume": "the outlined brain does not have the size of an adult's",
    "poor_template_fit": "the template fits the reference poorly: look at the outline of the brain",
    "contrast_not_measurable": "the values in the outlined brain have a median of about zero: look at the outline of the brain",
    "may_be_mirrored": "it fits the reference better as its own mirror image: are left and right swapped?",
}
MIRRORED = -0.02
"""A series that fits this much worse (in nats) than its mirror image may be mirrored. Series of one head that were mirrored on purpose had
margins of -0.09 to -0.34, unmirrored ones 0.16 to 0.88; two series that have nothing in common are near 0."""
NOTED = frozenset({"shared_window", "label_by_a_person", "label_by_sequence_map"})
"""Flags that state how something was done and need no second look."""
SAME_UIDS = "its files have the same UIDs as those of another patient ({}): compare the sheets, it may be one scan under two names"
LEGIBLE_PX = 480
"""Large enough that remaining letters can be seen before a picture is opened."""
MARKS = re.compile(r"\[[A-Z][A-Z _-]*\]|\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b90\+")
"""Replacements of removed text: placeholders, shifted dates, ages over 89."""
ACCEPT = (
    "If a value only happens to equal an identifier and tells nobody who the patient is, it can be accepted in this file as it is; the audit"
    " then shows file, place and reason:"
)
NAMELESS = (
    "No header of this case has the patient's name: names in its texts were detected by pattern alone, and some may remain."
    " If so, take them out of the note in your folder and list the cases again."
)


@dataclass(frozen=True)
class CaseStage:
    """A case after one stage, with the folder that holds it."""

    case: CaseRecord
    folder: Path

    def piece(self, series: Series, name: str) -> Path:
        """Return the path of one of a series' review files."""
        return self.folder / REVIEW / f"{series.series_id}_{name}"


@dataclass(frozen=True)
class CaseStages:
    """A case after de-identification, normalisation and slice selection."""

    clean: CaseStage
    normalised: CaseStage
    cut: CaseStage

    @property
    def case_id(self) -> str:
        """Id of the case."""
        return self.clean.case.case_id

    @property
    def kept_back(self) -> str:
        """Stage and reason of a quarantined case; empty if the case is used."""
        last = self.cut.case
        return "" if last.state is State.OK else f"Kept back at {last.quarantined_by}: {last.reason}"

    @property
    def left_out(self) -> dict[str, str]:
        """Reasons of the series that de-identification or normalisation left out, by series id."""
        return self.normalised.case.set_aside

    def quality(self) -> dict[str, list[dict[str, Any]]]:
        """Return the quality measures with their limits, of the case and by series."""
        path = self.normalised.folder / REVIEW / "quality.json"
        return dict(read_json(path)) if self.normalised.case.state is State.OK and path.exists() else {}

    def warnings(self) -> dict[str, list[str]]:
        """Return, by series or picture, why a reviewer should look twice: flags of all stages, and reasons for exclusion."""
        flags_of: dict[str, list[str]] = {}
        for stage in (self.clean, self.normalised):
            for series in stage.case.series:
                flags_of.setdefault(series.series_id, []).extend(flag for flag in series.flags if flag not in NOTED)
        for name, numbers in self.quality().items():
            if any(entry["number"] == "mirrored_margin" and entry["value"] < MIRRORED for entry in numbers):
                flags_of.setdefault(name, []).append("may_be_mirrored")
        for picture in self.clean.case.pictures:
            flags_of.setdefault(picture.image_id, []).extend(picture.flags)
        words = {name: [FLAGS.get(flag, flag.replace("_", " ")) for flag in dict.fromkeys(flags)] for name, flags in flags_of.items()}
        for picture in self.clean.case.pictures:
            if picture.state is not State.OK:
                words[picture.image_id] = [f"left out: {picture.reason}"]
        for name, why in self.left_out.items():
            words.setdefault(name, []).append(f"left out: {why}")
        for fate in self.clean.case.raw_series:
            words.setdefault(fate.series_id, []).extend(twin_lines(fate, self.left_out, kept_back=bool(self.kept_back)))
        if self.clean.case.same_uids:
            words["this case"] = [SAME_UIDS.format(", ".join(self.clean.case.same_uids))]
        return {name: lines for name, lines in words.items() if lines}


def stages_of(case_id: str, folders: Sequence[Path]) -> CaseStages:
    """Read a case after de-identification, normalisation and slice selection; a case of pictures has only the first of these stages.

    `folders`: folders of the three stages, with `sub-<case>/case.json`.
    """
    places = [folder / f"sub-{case_id}" for folder in folders]
    first = CaseStage(read_case(places[0] / "case.json"), places[0])
    if first.case.pictures:
        return CaseStages(first, first, first)
    normalised, cut = (CaseStage(read_case(place / "case.json"), place) for place in places[1:])
    return CaseStages(first, normalised, cut)


def case_sheet(stages: CaseStages, neighbours: tuple[str, str], at: Path) -> str:
    """Build the HTML of the sheet of one case; all text is escaped.

    `neighbours`: ids of the previous and the next case, empty at the ends. `at`: path of the sheet, from which links are relative.
    """
    before, after = neighbours
    ways = [f'<a href="sub-{before}.html" rel="prev">Case before</a>'] if before else []
    ways += ['<a href="../review.html">All cases</a>'] + ([f'<a href="sub-{after}.html" rel="next">Next case</a>'] if after else [])
    navigation = f"<nav>{' '.join(ways)}</nav>\n"
    body = [navigation, warning(stages.kept_back) if stages.kept_back else "", _leaks(stages.clean.case)]
    if stages.clean.case.pictures:
        body.append(_warnings(stages))
        body += [picture_section(stages.clean, at), texts_section(stages.clean)] if stages.clean.case.state is State.OK else []
    else:
        body += [
            _warnings(stages),
            series_section(stages.clean.case, stages.clean.folder, stages.left_out, kept_back=bool(stages.kept_back)),
        ]
    if not stages.clean.case.pictures and stages.clean.case.state is State.OK:
        body += [*_scans(stages), _headers(stages.clean), texts_section(stages.clean), *_imaging(stages, at)]
    return page(f"{stages.clean.case.benchmark}: case {stages.case_id}", [*body, navigation])


def _leaks(case: CaseRecord) -> str:
    """List the values that equal an identifier of the patient: those that keep the case back, and those that a person accepted."""
    left = [(leak.file, leak.place, str(leak.count)) for leak in case.leaks if not leak.reviewer]
    accepted = [(leak.file, leak.place, leak.reason, f"{leak.reviewer}, {leak.accepted_on}") for leak in case.leaks if leak.reviewer]
    parts = []
    if left:
        command = f"nmb deid accept-leaks --benchmark {case.benchmark} --case {case.case_id} --file FILE --element PLACE --reason WHY --reviewer INITIALS"
        parts += [
            '<h2 class="warn">Identifying values that are left</h2>',
            table(left, ("file", "element, key or line", "values")),
            f"<p>{ACCEPT}</p>\n<p><code>{escape(command)}</code></p>\n",
        ]
    if accepted:
        question = checkbox("Each reason holds: none of these values tells who the patient is.")
        parts += [
            '<h2 class="warn">Identifying values that a person accepted</h2>',
            question,
            table(accepted, ("file", "element, key or line", "reason", "accepted by")),
        ]
    return "".join(parts)


def picture_section(stage: CaseStage, at: Path) -> str:
    """Build the HTML of a case's pictures, reduced, each with a link to the full picture."""
    shown = [picture for picture in stage.case.pictures if picture.state is State.OK]
    return "".join(
        [
            f"<h2>Pictures: what a model is shown ({len(shown)})</h2>",
            checkbox("At full size (click a picture), none shows a name, a date or a number of a patient, up to its edges."),
            checkbox(
                "None shows a face: no photograph, no surface, no profile. Faces are not removed from single pictures: exclude the case."
            ),
            checkbox("Each shows what its caption says, and no letter or arrow that belongs to the picture is hidden."),
            linked_figures(((picture.path, caption(picture)) for picture in shown), stage.folder, at, px=LEGIBLE_PX),
        ]
    )


def caption(picture: PictureFate) -> str:
    """Return a picture's caption: its id, sequence and plane."""
    words = [picture.sequence if picture.sequence != "unknown" else "", picture.plane]
    return ", ".join([picture.image_id, *(word for word in words if word)])


def linked_figures(pictures: Iterable[tuple[str, str]], folder: Path, at: Path, *, px: int = THUMBNAIL_PX) -> str:
    """Build the HTML of reduced pictures with links to the full ones; `pictures` are pairs of path below `folder` and caption."""
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
        checkbox("No scan shows a nose, a mouth, eyes or an ear by which a person could be recognised."),
        _figures(stages.clean, "surface.png", scale=1.15),
        "<h2>Text in the pictures: the edges of all slices in one picture</h2>",
        checkbox("No edge shows letters or digits. (The middle, where the head is, is left out. Text over the head can be seen below.)"),
        _figures(stages.clean, "border.png", scale=1),
        "<h2>Brain: what hidden text and the removal of the face took from it</h2>",
        table([(_name(series), brain_line(series.quality)) for series in stages.clean.case.series], ("series", "brain")),
    ]


def brain_line(quality: dict[str, float]) -> str:
    """State in words how much of the brain of a series is hidden or was removed.

    Examples
    --------
    >>> brain_line({"brain_ml": 1350.0, "brain_hidden_ml": 13.5, "brain_removed_ml": 0.0})
    '13.5 of 1350 ml (1.0%) lie under hidden text; nothing was removed'
    """
    whole = quality.get("brain_ml", 0.0)
    if not whole:
        return "not measured: no brain was located"
    hidden, removed = (quality.get(f"brain_{how}_ml", 0.0) for how in ("hidden", "removed"))
    if not hidden and not removed:
        return f"nothing of {whole:.0f} ml was hidden or removed"
    under, gone = (f"{part:.1f} of {whole:.0f} ml ({part / whole:.1%})" for part in (hidden, removed))
    return f"{f'{under} lie' if hidden else 'nothing lies'} under hidden text; {f'up to {gone} were' if removed else 'nothing was'} removed"


def _headers(stage: CaseStage) -> str:
    """List the header elements by action and name; kept and added ones are folded."""
    series_of: dict[tuple[str, str], list[str]] = {}
    read = [series.series_id for series in stage.case.series if stage.piece(series, "headers.json").exists()]
    for series in stage.case.series:
        path = stage.piece(series, "headers.json")
        for action, names in (read_json(path) if path.exists() else {}).items():
            for name in names:
                series_of.setdefault((action, name), []).append(series.series_id)
    if not series_of:
        return "<h2>Headers</h2><p>No header is left: of NIfTI files, and of DICOM that was converted when it was read, only voxels and geometry were kept.</p>\n"
    parts = []
    for action in ACTIONS:
        lines = [
            name if where == read else f"{name} ({', '.join(where)})"
            for (other, name), where in sorted(series_of.items())
            if other == action
        ]
        if lines:
            opened = "" if action in {"kept", "added"} else " open"
            entries = "".join(f'<li dir="auto">{escape(line)}</li>' for line in lines)
            parts.append(f"<details{opened}><summary>{action} ({len(lines)})</summary><ul>{entries}</ul></details>\n")
    question = checkbox("No element that was kept or cleaned names a person, a place or a device.") + _own_kept(stage)
    compared = "<p>Compared in the first file of each series, and in every file with an element that the previous ones lack.</p>\n"
    return f"<h2>Headers: what was done to each element, by name</h2>{question}{''.join(parts)}{compared}"


def _own_kept(stage: CaseStage) -> str:
    """Show the descriptions in the sidecars of a case if own rules keep any: a person has to read what the profile would have removed."""
    rows = []
    for series in stage.case.series:
        path = stage.folder / series.path.replace(".nii.gz", ".json")
        sidecar = read_json(path) if path.suffix == ".json" and path.exists() else {}
        if OWN_RULES in sidecar.get("DeidentificationMethod", ()):
            keys = sorted({SIDECAR_NAMES.get(keyword, keyword) for keyword in MAY_BE_KEPT} & set(sidecar))
            rows += [(_name(series), key, str(sidecar[key])) for key in keys]
    if not rows:
        return ""
    question = checkbox("No description that stays names anybody; own rules keep what the profile would have removed.")
    return f"{question}{table(rows, ('series', 'element', 'value that stays'))}"


def texts_section(stage: CaseStage) -> str:
    """Build the HTML of a case's notes and record, escaped, with replacements marked."""
    case = stage.case
    texts = [*case.notes, *([case.record] if case.record else [])]
    if not texts:
        return "<h2>Notes and record</h2><p>This case has none.</p>\n"
    words = {path: (stage.folder / path).read_text(encoding="utf-8") for path in texts}
    shown = "".join(f'<h3>{escape(path)}</h3><pre dir="auto" tabindex="0">{marked(text)}</pre>\n' for path, text in words.items())
    line = long_prompt_line([sum(map(len, words.values()))], "cases' texts")
    long = warning(line) if line else ""
    nameless = warning(NAMELESS) if case.checks.get("notes_without_known_names") else ""
    question = checkbox("No text names a person, a place, a calendar date or a number of the patient, and none gives the answer away.")
    return f"<h2>Notes and record, replacements marked</h2>{question}{nameless}{long}{shown}"


def marked(text: str) -> str:
    """Escape a text and mark its replacements.

    Examples
    --------
    >>> marked("[NAME] was seen < once")
    '<mark>[NAME]</mark> was seen &lt; once'
    """
    return MARKS.sub(lambda match: f"<mark>{match[0]}</mark>", escape(text, quote=False))


def _imaging(stages: CaseStages, at: Path) -> list[str]:
    if stages.normalised.case.state is not State.OK:
        return []
    normalised, cut = stages.normalised, stages.cut
    return [
        "<h2>Sides and brain: three planes of each series in one space</h2>",
        checkbox("R is at the left of axial and coronal planes. Lesions lie on the side given in the notes, and on the same side in every series."),
        checkbox("The yellow line follows the brain in every series."),
        _figures(normalised, "planes.png", scale=1.25),
        "<h2>Registration: checkerboard of the reference and the series</h2>",
        checkbox("Ventricles, sulci and skull continue from field to field without a step."),
        _figures(normalised, "registration.png", scale=1.25) or "<p>One series only.</p>",
        "<h2>Quality</h2>",
        _quality(stages),
        "<h2>Chosen pictures: what a model is shown</h2>",
        checkbox("They show the brain in the kind of scan given in the caption, and nothing else."),
        *(_chosen(cut, series, at) for series in cut.case.series),
    ]  # fmt: skip


def _quality(stages: CaseStages) -> str:
    rows = [
        (f"{series.series_id}, as acquired and after defacing", name.replace("_", " "), f"{value:g}", "")
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
    """Show the chosen slices of a series, reduced, each with a link to the full picture."""
    slices = [entry for entry in stage.case.slices if entry.volume_sha256 == series.volume_sha256]
    if not slices:
        return ""
    links = " ".join(
        f'<a href="{escape(Path(os.path.relpath(stage.folder / entry.path, at.parent)).as_posix())}">{escape(entry.image_id)}</a>'
        for entry in slices
    )
    return f"{figure(stage.piece(series, 'slices.png'), f'{_name(series)}, {len(slices)} pictures')}<p>As they are: {links}</p>\n"
