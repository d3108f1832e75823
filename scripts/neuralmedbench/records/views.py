"""Views: the slices that a model may ask for under the strategy `viewer`, and the actions in JSON by which it asks.

What an answer asks for is read with the list of scans alone. No volume is needed to know which slice was shown, where it lies in the patient,
or how far two points are apart.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from neuralmedbench.records.json_objects import objects_in
from neuralmedbench.records.thoughts import THINKING

SCHEMA_VERSION = 1

Vector = tuple[float, float, float]
WHOLE = 1000
"""Width and height of a picture in the unit of `at` and `points`."""
MIDDLE = (WHOLE // 2, WHOLE // 2)
MR_WINDOWS: dict[str, tuple[float, float]] = {"own": (0.0, 1.0), "dark": (0.0, 0.5), "bright": (0.5, 1.25)}
"""Windows of scans that are not CT: their ends in parts of the scan's own window, from its black (0) to its white (1)."""
CT_WINDOW_NAMES = ("brain", "blood", "bone", "soft-tissue", "wide")
"""Windows of CT; their ends are those of `imaging.windows.CT_WINDOWS`."""


@dataclass(frozen=True, kw_only=True)
class ViewRules:
    """What may be shown on request, of every scan that the audit covers: planes, windows by name, and zooms."""

    planes: tuple[str, ...]
    windows: tuple[str, ...]
    zooms: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ViewPlane:
    """The slices of a scan in one plane; places are in the space of the reference (x, y, z, LPS+, mm).

    Attributes
    ----------
    plane : str
        `axial`, `coronal` or `sagittal`.
    slices : int
        Their number; the first is the lowest, that on the right, or that in front.
    first_mm, step_mm : float
        Position of the first one along the axis of the plane, and the distance to the next.
    first_in_head, last_in_head : int
        Slices between which the brain lies.
    corner_mm, right_mm, down_mm : tuple of float
        Upper left corner of the first slice's picture without zoom, its upper edge and its left edge.
    next_mm : tuple of float
        Way from the corner of one slice to that of the next.
    resampled : bool
        True if the plane crosses thick slices.
    """

    plane: str
    slices: int
    first_mm: float
    step_mm: float
    first_in_head: int
    last_in_head: int
    corner_mm: Vector
    right_mm: Vector
    down_mm: Vector
    next_mm: Vector
    resampled: bool = False

    def position_mm(self, number: int) -> float:
        """Return the position of a slice, from 1, along the axis of the plane."""
        return self.first_mm + (number - 1) * self.step_mm

    def nearest(self, position_mm: float) -> int:
        """Return the number of the slice nearest to a position; it may be out of range."""
        return round((position_mm - self.first_mm) / self.step_mm) + 1 if self.step_mm else 1


@dataclass(frozen=True, kw_only=True)
class ViewScan:
    """One scan of a case whose slices may be shown: a row of `data/views/<benchmark>.parquet`.

    Attributes
    ----------
    benchmark, case_id, series_id : str
        The scan.
    name, sequence : str
        What actions call it (`T1w`, `T1w (2)`), and its kind.
    volume_sha256, case_sha256 : str
        Digests of the de-identified volume, which the audit covers, and of `case.json` of the normalised case, which has those of all its files.
    windows : tuple of str
        Names of the windows that may be used, the usual one first.
    planes : tuple of ViewPlane
        Planes that may be cut, that of acquisition first.
    field_of_view_mm, sent_px, side_marker : float, int, bool
        Display, as in `config.imaging.SlicesConfig`.
    """

    benchmark: str
    case_id: str
    series_id: str
    name: str
    sequence: str
    volume_sha256: str
    case_sha256: str
    windows: tuple[str, ...]
    planes: tuple[ViewPlane, ...]
    field_of_view_mm: float
    sent_px: int = 0
    side_marker: bool = False

    def of_plane(self, plane: str) -> ViewPlane:
        """Return its slices in a plane that it has."""
        return next(entry for entry in self.planes if entry.plane == plane)


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """What a model can look at in one request (strategy `viewer`).

    Attributes
    ----------
    scans : tuple of ViewScan
        The scans of the case, with the planes and windows that may be shown.
    zooms : tuple of int
        Allowed zooms.
    max_views : int
        Budget of views.
    like : str
        Path of a picture of about the size of a view, for estimates; empty if there is none.
    wrong, measured, left, closing : str
        Sentences: for an action that cannot be carried out (`{reason}`), a distance (`{mm}`), the views left (`{left}`), and the request for the
        final answer.
    """

    scans: tuple[ViewScan, ...]
    zooms: tuple[int, ...]
    max_views: int
    like: str
    wrong: str
    measured: str
    left: str
    closing: str


@dataclass(frozen=True, kw_only=True)
class SliceView:
    """One slice of a scan as it is shown: `number` from 1; `at` is the middle of a zoomed view in thousandths of the whole picture."""

    scan: ViewScan
    plane: str
    number: int
    window: str
    zoom: int = 1
    at: tuple[int, int] = MIDDLE

    @property
    def label(self) -> str:
        """Label of the picture, for example `FLAIR, axial, slice 12 of 24, z = +12 mm`."""
        slices = self.scan.of_plane(self.plane)
        axis = {"sagittal": "x", "coronal": "y", "axial": "z"}[self.plane]
        parts = [self.scan.name, self.plane, f"slice {self.number} of {slices.slices}"]
        parts.append(f"{axis} = {round(slices.position_mm(self.number)):+d} mm")
        parts += [f"{self.window} window"] if self.window != self.scan.windows[0] else []
        parts += [f"zoom {self.zoom} at {list(self.at)}"] if self.zoom > 1 else []
        return ", ".join(parts)

    @property
    def path(self) -> str:
        """Path of its picture, by everything that decides what it shows."""
        shown = {
            "case": self.scan.case_sha256,
            "series": self.scan.series_id,
            "display": [self.scan.field_of_view_mm, self.scan.sent_px, self.scan.side_marker],
            "view": [self.plane, self.number, self.window, self.zoom, *self.at],
        }
        digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
        return f"data/views/{self.scan.benchmark}/sub-{self.scan.case_id}/{digest[:24]}.png"

    def shows(self, point_mm: Vector) -> bool:
        """Return True if a point lies within the picture, whatever its distance from the slice."""
        slices = self.scan.of_plane(self.plane)
        corner = [start + (self.number - 1) * step for start, step in zip(slices.corner_mm, slices.next_mm, strict=True)]
        offset = [value - start for value, start in zip(point_mm, corner, strict=True)]
        for edge, middle in ((slices.right_mm, self.at[0]), (slices.down_mm, self.at[1])):
            along = sum(a * b for a, b in zip(offset, edge, strict=True)) / sum(a * a for a in edge)
            if abs(along - middle / WHOLE) > 0.5 / self.zoom:
                return False
        return True


class ViewAction(StrEnum):
    """What a model may do in one message."""

    SHOW = "SHOW"
    COMPARE = "COMPARE"
    MEASURE = "MEASURE"
    ANSWER = "ANSWER"


class ViewMistake(StrEnum):
    """Why an action is not carried out."""

    NO_ACTION = "no_action"
    SEVERAL = "several"
    MALFORMED = "malformed"
    NOT_HELD = "not_held"
    OUT_OF_RANGE = "out_of_range"
    NO_VIEWS = "no_views"


@dataclass(frozen=True)
class ViewStep:
    """One message of a model before its final answer, and what came of it.

    Attributes
    ----------
    action : ViewAction or None
        None if no action could be read.
    views : tuple of SliceView
        The slices shown.
    mistake : ViewMistake or None
        Why nothing was done.
    reason : str
        The same in words.
    distance_mm : float or None
        What was measured.
    """

    action: ViewAction | None
    views: tuple[SliceView, ...] = ()
    mistake: ViewMistake | None = None
    reason: str = ""
    distance_mm: float | None = None

    @property
    def cost(self) -> int:
        """Views of the budget that it uses up."""
        return max(1, len(self.views))


class _CannotDoError(Exception):
    """An action that cannot be carried out, with the kind of mistake and the reason in words."""


FINAL = re.compile(r"^[\s>*_#-]*DIFFERENTIAL(?: DIAGNOS[IE]S)?[*_]*\s*:", re.IGNORECASE | re.MULTILINE)
ANSWER_ACTION = re.compile(r"(?:```(?:json)?\s*)?\{\s*\"action\"\s*:\s*\"ANSWER\"\s*\}(?:\s*```)?\s*", re.IGNORECASE)
"""The action by which a final answer begins; the answer is read without it."""


def view_steps(viewer: Viewer, answers: Sequence[str], most_pictures: int | None = None) -> list[ViewStep]:
    """Return what the messages of a model did, up to its final answer, or until the budget is used up.

    Parameters
    ----------
    viewer : Viewer
        The scans and the budget.
    answers : sequence of str
        Its messages.
    most_pictures : int or None
        The model's picture budget, if it is smaller.
    """
    left = viewer.max_views if most_pictures is None else min(viewer.max_views, most_pictures)
    steps: list[ViewStep] = []
    for answer in answers:
        if left <= 0 or (step := read_action(viewer, answer, left)).action is ViewAction.ANSWER:
            break
        steps.append(step)
        left -= step.cost
    return steps


def read_action(viewer: Viewer, answer: str, left: int) -> ViewStep:
    """Read the one action of a message; a final answer may stand without it. `left`: views of the budget that are left."""
    said = THINKING.sub("", answer)
    found = _actions(said)
    kinds = [str(value["action"]).strip().upper() for value in found]
    if "ANSWER" in kinds[-1:] or (not found and FINAL.search(said)):
        return ViewStep(ViewAction.ANSWER)
    if not found:
        return ViewStep(None, mistake=ViewMistake.NO_ACTION, reason="there is no action in JSON in your message")
    if len(found) > 1:
        return ViewStep(None, mistake=ViewMistake.SEVERAL, reason="there is more than one action in your message")
    if kinds[0] not in ViewAction.__members__:
        return ViewStep(None, mistake=ViewMistake.MALFORMED, reason=f"`action` is one of {', '.join(ViewAction)}")
    action, value = ViewAction(kinds[0]), found[0]
    try:
        return _carried_out(viewer, action, value, left)
    except _CannotDoError as error:
        mistake, reason = error.args
        return ViewStep(action, mistake=mistake, reason=reason)


def _actions(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text that have the key `action`, equal ones once."""
    actions: list[dict[str, Any]] = []
    for value in objects_in(text):
        named = {str(key).strip().lower(): entry for key, entry in value.items()}
        if "action" in named and named not in actions:
            actions.append(named)
    return actions


def _carried_out(viewer: Viewer, action: ViewAction, value: Mapping[str, Any], left: int) -> ViewStep:
    if action is ViewAction.COMPARE:
        names = value.get("sequences")
        if not isinstance(names, list) or len(names) != 2:
            raise _CannotDoError(ViewMistake.MALFORMED, "`sequences` of COMPARE is a list of two scans")
        if left < 2:
            raise _CannotDoError(ViewMistake.NO_VIEWS, "COMPARE needs two views, and one is left")
        first = _view(viewer, {**value, "sequence": names[0]})
        other = _one_of(viewer.scans, names[1], "sequence")
        slices = other.of_plane(first.plane)
        number = slices.nearest(first.scan.of_plane(first.plane).position_mm(first.number))
        if not 1 <= number <= slices.slices:
            raise _CannotDoError(ViewMistake.OUT_OF_RANGE, f"{other.name} does not reach that slice")
        window = first.window if first.window in other.windows else other.windows[0]
        return ViewStep(
            action, (first, SliceView(scan=other, plane=first.plane, number=number, window=window, zoom=first.zoom, at=first.at))
        )
    view = _view(viewer, value)
    if action is ViewAction.SHOW:
        return ViewStep(action, (view,))
    points = value.get("points")
    if not isinstance(points, list) or len(points) != 2:
        raise _CannotDoError(ViewMistake.MALFORMED, "`points` of MEASURE is a list of two points [x, y]")
    (x1, y1), (x2, y2) = (_point(point, "points") for point in points)
    slices = view.scan.of_plane(view.plane)
    wide, high = (math.hypot(*edge) / view.zoom / WHOLE for edge in (slices.right_mm, slices.down_mm))
    return ViewStep(action, distance_mm=math.hypot((x2 - x1) * wide, (y2 - y1) * high))


def _view(viewer: Viewer, value: Mapping[str, Any]) -> SliceView:
    scan = _one_of(viewer.scans, value.get("sequence"), "sequence")
    plane = _word(value.get("plane"), [entry.plane for entry in scan.planes], "plane")
    window = _word(value.get("window", scan.windows[0]), scan.windows, "window")
    number, zoom = _whole(value.get("slice"), "slice"), _whole(value.get("zoom", 1), "zoom")
    slices = scan.of_plane(plane)
    if not 1 <= number <= slices.slices:
        raise _CannotDoError(ViewMistake.OUT_OF_RANGE, f"{scan.name}, {plane}, has slices 1 to {slices.slices}")
    if zoom not in viewer.zooms:
        raise _CannotDoError(ViewMistake.NOT_HELD, f"`zoom` is one of {', '.join(map(str, viewer.zooms))}")
    # without zoom the whole picture is shown, wherever its middle is wanted
    at = _point(value["at"], "at") if zoom > 1 and value.get("at") is not None else MIDDLE
    return SliceView(scan=scan, plane=plane, number=number, window=window, zoom=zoom, at=at)


def _one_of(scans: Sequence[ViewScan], word: object, key: str) -> ViewScan:
    name = _word(word, [scan.name for scan in scans], key)
    return next(scan for scan in scans if scan.name == name)


def _word(word: object, allowed: Sequence[str], key: str) -> str:
    if not isinstance(word, str):
        raise _CannotDoError(ViewMistake.MALFORMED, f"`{key}` is missing; it is one of {', '.join(allowed)}")
    found = next((name for name in allowed if name.casefold() == word.strip().casefold()), None)
    if found is None:
        raise _CannotDoError(ViewMistake.NOT_HELD, f"`{key}` is one of {', '.join(allowed)}")
    return found


def _is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a finite number; a whole number of hundreds of digits is one, though it is no float."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _whole(value: object, key: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,6}\s*", value):
        return int(value)
    if isinstance(value, bool) or not _is_number(value) or value != int(value):
        raise _CannotDoError(ViewMistake.MALFORMED, f"`{key}` is a whole number")
    return int(value)


def _point(value: object, key: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_number, value)):
        raise _CannotDoError(ViewMistake.MALFORMED, f"`{key}` holds x and y, each from 0 to {WHOLE}")
    if not all(0 <= part <= WHOLE for part in value):
        raise _CannotDoError(ViewMistake.OUT_OF_RANGE, f"`{key}` holds x and y, each from 0 to {WHOLE}")
    x, y = (round(part) for part in value)
    return x, y


def viewer_digest(viewer: Viewer) -> dict[str, Any]:
    """Return what a digest of a request holds of its viewer: all that can be shown or said, without the picture for estimates."""
    return {name: value for name, value in asdict(viewer).items() if name != "like"}
