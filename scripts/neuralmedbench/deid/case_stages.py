"""A case after de-identification, normalisation and slice selection, for its review sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.files.cases import read_case
from neuralmedbench.files.json_files import read_json
from neuralmedbench.records.case import CaseRecord, Series, State

REVIEW = "review"
"""Folder with each stage's files for the review."""
FLAGS = {
    "burned_in_text_kept": "text is burned into it and was kept, as the yaml of the benchmark says: read all of it",
    "type_disagrees": "its name says another format than its bytes hold",
    "front_surface_removed": "the template could not be fitted reliably: the skin of the front part was removed instead of a face",
    "face_fit_borrowed": "it shows too little of the head to be fitted: its face was located by the fit of another series (see its numbers)",
    "no_head_outside_brain": "nothing lies outside the brain, so there was no face to remove",
    "no_surface": "the scan shows vessels or the like and no skin",
    "burned_in_text_hidden": "text was burned into it and was hidden: look at the rim and at the chosen pictures",
    "words_and_physics_disagree": "its description and its acquisition parameters name different kinds of scan",
    "positions_and_thickness_disagree": "the distance between slices differs from their stated thickness; the positions were used",
    "uneven_spacing": "its slices are unevenly spaced",
    "missing_slices": "slices are missing",
    "gantry_tilt": "it was acquired with a tilted gantry",
    "incomplete_volumes": "it holds volumes with fewer slices than others",
    "description_and_protocol_disagree": "its description and its protocol name different kinds of scan",
    "kind_by_physics_alone": "its kind was recognised by acquisition parameters alone, no description names it",
    "b0_only": "only the images without diffusion weighting of a diffusion series are present",
    "lossy_compression": "its pixels arrived with lossy compression",
    "contrast_unclear": "it is unclear whether contrast medium was given",
    "t1_in_other_units": "T1 before and after contrast are in different units, so they share no window",
    "patient_moved": "it lies more than 10 mm from the reference by its header",
    "part_of_the_brain": "it shows only part of the brain",
    "poor_registration": "it agrees poorly with the reference: look at the checkerboard",
    "odd_brain_volume": "the outlined brain does not have the size of an adult's",
    "poor_template_fit": "the template fits the reference poorly: look at the outline of the brain",
    "may_be_mirrored": "it fits the reference better as its own mirror image: are left and right swapped?",
}
MIRRORED = -0.02
"""A series that fits this much worse (in nats) than its mirror image may be mirrored. Series of one head that were mirrored on purpose had
margins of -0.09 to -0.34, unmirrored ones 0.16 to 0.88; two series that have nothing in common are near 0."""
NOTED = frozenset({"shared_window", "label_by_a_person"})
"""Flags that state how something was done and need no second look."""


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

    def quality(self) -> dict[str, list[dict[str, Any]]]:
        """Return the quality measures with their limits, of the case and by series."""
        path = self.normalised.folder / REVIEW / "quality.json"
        return dict(read_json(path)) if self.normalised.case.state is State.OK and path.exists() else {}

    def warnings(self) -> dict[str, list[str]]:
        """Return, by series or picture, why a reviewer should look twice: flags of all stages, and reasons for exclusion."""
        found: dict[str, list[str]] = {}
        for stage in (self.clean, self.normalised):
            for series in stage.case.series:
                found.setdefault(series.series_id, []).extend(flag for flag in series.flags if flag not in NOTED)
        for name, numbers in self.quality().items():
            if any(entry["number"] == "mirrored_margin" and entry["value"] < MIRRORED for entry in numbers):
                found.setdefault(name, []).append("may_be_mirrored")
        for picture in self.clean.case.pictures:
            found.setdefault(picture.image_id, []).extend(picture.flags)
        words = {name: [FLAGS.get(flag, flag.replace("_", " ")) for flag in dict.fromkeys(flags)] for name, flags in found.items()}
        for picture in self.clean.case.pictures:
            if picture.state is not State.OK:
                words[picture.image_id] = [f"left out: {picture.reason}"]
        for name, why in self.normalised.case.set_aside.items():
            words.setdefault(name, []).append(f"left out: {why}")
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
