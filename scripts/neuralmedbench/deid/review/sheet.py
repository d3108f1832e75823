"""The review sheet of one case: everything a person must look at before the case may be used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.config.deidentification import MAY_BE_KEPT
from neuralmedbench.deid.headers.cleaner import SIDECAR_NAMES
from neuralmedbench.deid.headers.diff import ACTIONS
from neuralmedbench.deid.headers.rules import OWN_RULES
from neuralmedbench.deid.review.pieces import REVIEW
from neuralmedbench.deid.review.raw_series import count_used, series_rows, twin_lines
from neuralmedbench.deid.review.templates import TEMPLATES
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.files.pages.pictures import THUMBNAIL_PX, PagePicture, picture_of, reduced_picture
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
MARKS = re.compile(r"(\[[A-Z][A-Z _-]*\]|\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b90\+)")
"""Replacements of removed text: placeholders, shifted dates, ages over 89."""


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
    """Build the sheet of one case.

    `neighbours`: ids of the previous and the next case, empty at the ends. `at`: path of the sheet, from which links are relative.
    """
    stage, case = stages.clean, stages.clean.case
    clean, left_out = case.state is State.OK, stages.left_out
    pictures = [picture for picture in case.pictures if clean and picture.state is State.OK]
    scans = bool(clean and not case.pictures)
    names = {series.series_id: _name(series) for series in case.series}
    kept_back = bool(stages.kept_back)
    texts = _text_pieces(stage) if clean else {}
    values = {
        "title": f"{case.benchmark}: case {stages.case_id}",
        "neighbours": neighbours,
        "kept_back": stages.kept_back,
        "case": case,
        "leaks": [(leak.file, leak.place, leak.count) for leak in case.leaks if not leak.reviewer],
        "accepted": [(leak.file, leak.place, leak.reason, f"{leak.reviewer}, {leak.accepted_on}") for leak in case.leaks if leak.reviewer],
        "warnings": [(names.get(name, name), line) for name, lines in stages.warnings().items() for line in lines],
        "came_in": series_rows(case, stage.folder, left_out, kept_back=kept_back),
        "used": 0 if kept_back else count_used(case, left_out),
        "pictures": linked_pictures(((picture.path, caption(picture)) for picture in pictures), stage.folder, at, px=LEGIBLE_PX),
        "clean": clean,
        "scans": _scan_values(stage) if scans else None,
        "texts": texts,
        "long_texts": long_prompt_line([sum(len(piece) for pieces in texts.values() for piece in pieces)], "cases' texts") if texts else "",
        "imaging": _imaging(stages, at) if scans and stages.normalised.case.state is State.OK else None,
    }
    return render_page(TEMPLATES / "case.html.j2", values)


def caption(picture: PictureFate) -> str:
    """Return a picture's caption: its id, sequence and plane."""
    words = [picture.sequence if picture.sequence != "unknown" else "", picture.plane]
    return ", ".join([picture.image_id, *(word for word in words if word)])


def linked_pictures(pictures: Iterable[tuple[str, str]], folder: Path, at: Path, *, px: int = THUMBNAIL_PX) -> list[PagePicture]:
    """Return reduced pictures with links to the full ones; `pictures` are pairs of path below `folder` and caption."""
    return [reduced_picture(folder / path, words, px=px, link=_link(folder / path, at)) for path, words in pictures]


def _link(path: Path, at: Path) -> str:
    return Path(os.path.relpath(path, at.parent)).as_posix()


def _name(series: Series) -> str:
    return f"{series.series_id}, {series.sequence.value}"


def _pieces(stage: CaseStage, piece: str, *, scale: float = 1.0) -> list[PagePicture]:
    """Return one of the review files of each series that has it."""
    paths = {_name(series): stage.piece(series, piece) for series in stage.case.series}
    return [picture_of(path, name, scale=scale) for name, path in paths.items() if path.exists()]


def _scan_values(stage: CaseStage) -> dict[str, Any]:
    """Return what a sheet shows of de-identified scans: surfaces, edges, brain and headers."""
    return {
        "surfaces": _pieces(stage, "surface.png", scale=1.15),
        "borders": _pieces(stage, "border.png"),
        "brains": [(_name(series), brain_line(series.quality)) for series in stage.case.series],
        "headers": _headers(stage),
        "kept_by_rules": _kept_by_rules(stage),
    }


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


def _headers(stage: CaseStage) -> dict[str, list[str]]:
    """Return the names of the header elements by action, each with its series if only some have it."""
    series_of: dict[tuple[str, str], list[str]] = {}
    read = [series.series_id for series in stage.case.series if stage.piece(series, "headers.json").exists()]
    for series in stage.case.series:
        path = stage.piece(series, "headers.json")
        for action, names in (read_json(path) if path.exists() else {}).items():
            for name in names:
                series_of.setdefault((action, name), []).append(series.series_id)
    lines: dict[str, list[str]] = {action: [] for action in ACTIONS}
    for (action, name), where in sorted(series_of.items()):
        lines.setdefault(action, []).append(name if where == read else f"{name} ({', '.join(where)})")
    return {action: names for action, names in lines.items() if names}


def _kept_by_rules(stage: CaseStage) -> list[tuple[str, str, str]]:
    """Return the descriptions that own rules keep in sidecars: a person has to read what the profile would have removed."""
    rows = []
    for series in stage.case.series:
        path = stage.folder / series.path.replace(".nii.gz", ".json")
        sidecar = read_json(path) if path.suffix == ".json" and path.exists() else {}
        if OWN_RULES in sidecar.get("DeidentificationMethod", ()):
            keys = sorted({SIDECAR_NAMES.get(keyword, keyword) for keyword in MAY_BE_KEPT} & set(sidecar))
            rows += [(_name(series), key, str(sidecar[key])) for key in keys]
    return rows


def _text_pieces(stage: CaseStage) -> dict[str, list[str]]:
    """Return the notes and the record of a case by path, each in pieces of which every second is a replacement."""
    paths = [*stage.case.notes, *([stage.case.record] if stage.case.record else [])]
    return {path: MARKS.split((stage.folder / path).read_text(encoding="utf-8")) for path in paths}


def _imaging(stages: CaseStages, at: Path) -> dict[str, Any]:
    """Return what a sheet shows of normalised scans and chosen pictures."""
    return {
        "planes": _pieces(stages.normalised, "planes.png", scale=1.25),
        "registrations": _pieces(stages.normalised, "registration.png", scale=1.25),
        "quality": _quality(stages),
        "chosen": list(_chosen(stages.cut, at)),
    }


def _quality(stages: CaseStages) -> list[tuple[str, str, str, str]]:
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
    return rows


def _end(word: str, value: float | None) -> str:
    return "" if value is None else f"{word} {value:g}"


def _chosen(stage: CaseStage, at: Path) -> Iterator[tuple[PagePicture, dict[str, str]]]:
    """Yield the chosen slices of each series in one picture, and the links to the full ones by image."""
    for series in stage.case.series:
        slices = [entry for entry in stage.case.slices if entry.volume_sha256 == series.volume_sha256]
        if slices:
            links = {entry.image_id: _link(stage.folder / entry.path, at) for entry in slices}
            yield picture_of(stage.piece(series, "slices.png"), f"{_name(series)}, {len(slices)} pictures"), links
