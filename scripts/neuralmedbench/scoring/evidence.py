"""Compare what an answer states of the lesion with the reference: side, region, picture, and point or box on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.layouts import Layout
from neuralmedbench.config.model import Downscale
from neuralmedbench.config.section import Section
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.coordinates import Convention, full_scale, to_fractions
from neuralmedbench.records.items import Arm, Item, LesionOnSlice, ShownLesion
from neuralmedbench.records.scores import Prediction, StatedPlace
from neuralmedbench.records.value_rules import overlap
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.places import NEAR_MM, location_right, numbered_images, side_right, sides

OVERLAPS = {"box_0.3": 0.3, "box_0.5": 0.5}
"""Least intersection over union of a right box."""

KINDS = ("side", "region", "slice", "point", *OVERLAPS)
"""Kinds of evidence that an answer may state."""

ASKED: dict[str, tuple[str, ...]] = {"checklist": ("side", "region"), "evidence": KINDS, "short": ()}
"""Kinds that each answer form asks for in items with a ranked differential."""

Box = tuple[float, float, float, float]

Lesions = Mapping[tuple[str, str], ShownLesion]
"""The known lesion on each picture, by case and picture."""


@dataclass(frozen=True)
class Pictures:
    """What is needed to judge places: the known lesions, the kinds and the unit that were asked for, how the provider shrinks pictures.

    `y_first` says whether y was asked for before x, `layouts` are those in which the model was asked, by arm.
    """

    lesions: Lesions = field(default_factory=dict)
    asked: Sequence[str] = KINDS
    coordinates: Convention = Convention.THOUSANDTHS
    shrinks: Downscale | None = None
    y_first: bool = False
    layouts: Mapping[str, Layout] = field(default_factory=dict)

    def under(self, arm: str, item: Item) -> tuple[Item, Pictures] | None:
        """Return an item and the lesions on its pictures as an arm shows them: `full`, or all of it in another layout; None for other arms."""
        if arm == Arm.FULL:
            return item, self
        if arm not in self.layouts:
            return None
        layout = self.layouts[arm]
        own = [(item.case_id, image.image_id) for image in item.images]
        lesions = {key: _in_square(self.lesions[key], layout) for key in own if key in self.lesions}
        stated = layout.config.coordinates
        unit, y_first = (stated[0], stated[1] == "yx") if stated else (self.coordinates, self.y_first)
        return layout.item_as_shown(item), replace(self, lesions=lesions, coordinates=unit, y_first=y_first)


def _in_square(row: ShownLesion, layout: Layout) -> ShownLesion:
    """Return the lesion on a picture that a layout pads to a square, in the middle of it, and scales."""
    if layout.config.square_px is None or row.size_px is None:
        return row
    width, height = row.size_px
    side = max(row.size_px)
    left, top = (side - width) // 2, (side - height) // 2

    def moved(box: Box) -> Box:
        x1, y1, x2, y2 = box
        return (x1 * width + left) / side, (y1 * height + top) / side, (x2 * width + left) / side, (y2 * height + top) / side

    slices = (replace(one, frame=moved(one.frame), box=moved(one.box) if one.box else None) for one in row.slices)
    return replace(row, size_px=(layout.config.square_px,) * 2, slices=tuple(slices))


class PlaceSettings(Section):
    """How places in answers are read."""

    form: Literal["checklist", "evidence", "short"] = Field("short", description="Form of the answers that was asked for.")
    coordinates: Convention = Field(Convention.THOUSANDTHS, description="Unit of the coordinates in answers.")
    downscale: Downscale = Downscale()
    layout_arms: tuple[str, ...] = Field((), description="Arms that ask the model in another input layout.")


def read_pictures(lesions: Path | None, places: PlaceSettings, *, folder: Path = Path("config")) -> Pictures:
    """Read the table of known lesions; `folder` is that of the configuration."""
    rows = read_records(lesions, ShownLesion) if lesions else []
    layouts = {
        name: arm.layout for name, arm in load_arms(folder, places.layout_arms, "layout arms").items() if arm.layout and arm.shows_all
    }
    return Pictures(
        {(row.case_id, row.image_id): row for row in rows}, ASKED[places.form], places.coordinates, places.downscale, layouts=layouts
    )


@dataclass(frozen=True)
class EvidenceVerdict:
    """The fields of a score on evidence; see `records.scores.Score`."""

    evidence: dict[str, bool]
    box_overlap: float | None = None
    evidence_unread: str = ""


def judge_evidence(prediction: Prediction, item: Item, reference: ReferenceAnswer, pictures: Pictures) -> EvidenceVerdict:
    """Judge the side, region, picture, point and box that an answer states.

    Parameters
    ----------
    prediction : Prediction
        The answer as read; of a refused or truncated one, a prediction without anything.
    item : Item
        The question, as the arm shows it (`Pictures.under`).
    reference : ReferenceAnswer
        Its reference, with the vocabulary of places.
    pictures : Pictures
        The known lesion on each picture, and the unit of the coordinates.

    Returns
    -------
    EvidenceVerdict
        What was not asked for or the reference does not know is absent from `evidence`: without a side, a place that the vocabulary knows,
        a picture that shows the lesion, or a box on it. What the answer does not state, or what could not be read, is wrong.
    """
    verdict = _judge(prediction, item, reference, pictures)
    asked = {kind: right for kind, right in verdict.evidence.items() if kind in pictures.asked}
    if not asked.keys() - {"side", "region"}:
        return EvidenceVerdict(asked)
    return replace(verdict, evidence=asked)


def _judge(prediction: Prediction, item: Item, reference: ReferenceAnswer, pictures: Pictures) -> EvidenceVerdict:
    lesion = reference.gold.lesion
    if lesion is None:
        return EvidenceVerdict({})
    stated, found = prediction.fields or {}, dict[str, bool]()
    location, side = stated.get("location", ""), stated.get("side", "")
    if lesion.side:
        # a place on the other side contradicts the side
        found["side"] = side_right(side, lesion) and (not sides(location) or side_right(location, lesion))
    if normal_form(lesion.location) in reference.vocabulary.places:
        found["region"] = location_right(location, lesion, reference.vocabulary)
    shown = [pictures.lesions.get((item.case_id, image.image_id)) for image in numbered_images(item)]
    if not any(row is not None and row.shown for row in shown):
        return EvidenceVerdict(found)
    seen = _see(prediction.place or StatedPlace(), shown, pictures)
    found["slice"] = seen.on_lesion
    if not any(one.box for row in shown if row is not None for one in row.slices):
        return EvidenceVerdict(found, evidence_unread=seen.unread)
    share = max((overlap(box, seen.box) for box in seen.lesions), default=0.0) if seen.box else 0.0
    found["point"] = any(_inside(seen.point, box) for box in seen.lesions) if seen.point else False
    found |= {name: share >= least for name, least in OVERLAPS.items()}
    return EvidenceVerdict(found, share, seen.unread)


@dataclass(frozen=True)
class _Seen:
    """What an answer points at: whether that slice shows the lesion; in fractions its box, its point (a box's middle) and the lesion's boxes."""

    on_lesion: bool = False
    box: tuple[float, ...] = ()
    point: tuple[float, ...] = ()
    lesions: tuple[Box, ...] = ()
    unread: str = ""


def _see(place: StatedPlace, shown: Sequence[ShownLesion | None], pictures: Pictures) -> _Seen:
    if place.unread and place.picture is None and place.position_mm is None:
        return _Seen(unread=place.unread)
    # the only picture need not be named
    number = 1 if place.picture is None and place.position_mm is None and place.box and len(shown) == 1 else place.picture
    if number is None and place.position_mm is None:
        return _Seen(unread="names no picture for its box" if place.box else place.unread)
    if number is None:
        # several sequences show that position
        at = [
            one for row in shown if row for one in row.slices or () if abs(round(one.position_mm) - (place.position_mm or 0.0)) <= NEAR_MM
        ]
        return _Seen(any(one.shown for one in at), unread="names no picture for its box" if place.box else place.unread)
    row = shown[number - 1] if number <= len(shown) else None
    if row is None:
        return _Seen(unread=place.unread)
    numbers, unread = _fractions(place.box, row, pictures)
    point = tuple((numbers[axis] + numbers[axis + len(numbers) // 2]) / 2 for axis in (0, 1)) if len(numbers) == 4 else numbers
    on = _slices(place, row, point)
    return _Seen(
        any(one.shown for one in on) if row.slices else row.shown,
        numbers if len(numbers) == 4 else (),
        point,
        tuple(one.box for one in on if one.box),
        "; ".join(filter(None, (place.unread, unread, "" if on or not row.slices else "does not say which slice of the picture"))),
    )


def _slices(place: StatedPlace, row: ShownLesion, point: tuple[float, ...]) -> list[LesionOnSlice]:
    """Return the slices of a picture that an answer means: the only one, the one at its position, or the one under its point."""
    if len(row.slices) == 1:
        return list(row.slices)
    if place.position_mm is not None:
        return [one for one in row.slices if abs(round(one.position_mm) - place.position_mm) <= NEAR_MM]
    return [one for one in row.slices if point and _inside(point, one.frame)]


def _fractions(numbers: tuple[float, ...], row: ShownLesion, pictures: Pictures) -> tuple[tuple[float, ...], str]:
    """Return coordinates as fractions of the picture; the reason if they cannot be those of the unit that was asked for."""
    unit = pictures.coordinates
    if not numbers:
        return (), ""
    if row.size_px is None:
        return (), "the size of the picture is not known"
    scale = full_scale(unit, row.size_px, pictures.shrinks.size_of(row.size_px) if pictures.shrinks else None)
    if any(not 0 <= value <= scale[place % 2] for place, value in enumerate(numbers)):
        return (), "its coordinates are beyond the picture in the unit that was asked for"
    if unit is not Convention.FRACTION and max(numbers) <= 1:
        return (), "its coordinates are fractions, which were not asked for"
    if len(numbers) == 4 and not (numbers[0] < numbers[2] and numbers[1] < numbers[3]):
        return (), "its box has no area, or its corners are exchanged"
    return to_fractions(numbers, scale), ""


def _inside(point: Sequence[float], box: Box) -> bool:
    x, y = point
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]
