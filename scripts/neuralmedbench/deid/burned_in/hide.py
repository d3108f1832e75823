"""Detect text burned into the pixels of a series or picture, hide it under padded boxes and check the result, or drop the series or picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.constancy import Mark, distinct_planes, grey_range, nearly_same, same_in_every_slice, same_in_neighbours
from neuralmedbench.deid.burned_in.lines import Box2D, grow_line
from neuralmedbench.deid.burned_in.ocr import OcrWord, mostly_hidden, ocr_available, words_in
from neuralmedbench.deid.burned_in.single_plane import one_colour, suspicious_lines, suspicious_planes
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

Voxels = npt.NDArray[Any]
Policy = Literal["hide", "drop"]
PicturePolicy = Literal["hide", "drop", "keep"]
OUTCOMES: dict[PicturePolicy, str] = {"hide": "hidden", "drop": "dropped", "keep": "kept"}
PASSES = 2
THICKER = 1.15
"""Minimum ratio of slice distance to pixel size by which the slice axis is recognised."""
SUSPECT_TYPES = frozenset({"SECONDARY", "SCREEN SAVE", "OTHER"})
SCREENSHOTS = "1.2.840.10008.5.1.4.1.1.7"
GAP = 5.0
"""Largest gap between two parts of one line, in letter heights: the text between was written over anatomy and missed."""
BRIDGED = 4
"""Up to this many slices without a detected line between two with one are assumed to show it too."""
Mask = npt.NDArray[np.bool_]
Words = Sequence[list[OcrWord] | None]
Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""First and last + 1 along each of the three axes of the array."""
PAD = 0.35
"""Margin around a line for soft edges and descenders, in letter heights."""
MIN_PAD_PX = 2
EXTRA_PLANES = 5
"""Number of conspicuous planes of a series searched for single lines, in addition to the first, the middle and the last."""
EXTENDED_IN = 8
"""Number of slices in which a line is extended."""
FEW_PLANES = 3
"""Up to this many planes are treated as separate pictures."""
TESTS = ("same_in_every_slice", "same_in_neighbours", "one_colour", "nearly_same", "strokes", "ocr")


@dataclass(frozen=True)
class BurnedInText:
    """Text burned into a series; False as a truth value if there is none.

    Attributes
    ----------
    mask : ndarray of bool, shape (X, Y, Z)
        Voxels to hide: padded boxes around the text, in the slices that show it.
    boxes : tuple of Box
        The same as boxes; they may overlap.
    evidence : dict of str to int
        Number of marks detected by each test (`TESTS`); `single_marks` of them are one letter or sign, such as a side marker.
    ocr : bool or None
        True if tesseract read planes, False if it is not installed, None if it was not needed.
    """

    mask: Mask
    boxes: tuple[Box, ...] = ()
    evidence: dict[str, int] = field(default_factory=dict)
    ocr: bool | None = None

    def __bool__(self) -> bool:
        return bool(self.boxes)


class TextFoundError(DataError):
    """Raised for a series or picture that is dropped because text is burned into it."""


@dataclass(frozen=True)
class HiddenText:
    """A scan or a picture without burned-in text.

    Attributes
    ----------
    voxels : ndarray
        Shape and dtype as before.
    burned_in : BurnedInText
        The hidden text.
    """

    voxels: Voxels
    burned_in: BurnedInText


def hide_text(
    voxels: Voxels, slice_axis: int | None = 2, *, suspect: bool = False, words: Words | None = None, policy: Policy = "hide"
) -> HiddenText:
    """Hide burned-in text, and search again.

    `voxels`: one series, shape (X, Y, Z), any real dtype; not changed. `slice_axis`, `suspect`, `words`: as for `find_burned_in`. `policy`:
    with `drop` text is only detected, and the caller drops the series. Returns the same array if nothing was hidden. Raises
    DeidentificationError if text is still detected after it was hidden.
    """
    burned_in = find_burned_in(voxels, slice_axis, suspect=suspect, words=words)
    if policy == "drop":
        return HiddenText(voxels, burned_in)
    for _ in range(PASSES):
        if not burned_in:
            return HiddenText(voxels, burned_in)
        clean = hide_burned_in(voxels, burned_in)
        left = find_burned_in(clean, slice_axis, suspect=suspect, hidden=burned_in.mask)
        if not left:
            return HiddenText(clean, burned_in)
        evidence = dict(Counter(burned_in.evidence) + Counter(left.evidence))
        burned_in = BurnedInText(burned_in.mask | left.mask, (*burned_in.boxes, *left.boxes), evidence, burned_in.ocr)
    message = "text remains in the pixels after it was hidden: look at the scan, and exclude the case or its series"
    raise DeidentificationError(message)


def count_text(checks: Counter[str], burned_in: BurnedInText, policy: PicturePolicy, kind: Literal["series", "pictures"]) -> None:
    """Count one series or picture in the checks.

    Adds to `checks`: `burned_in_<kind>_searched`, `..._hidden`, `..._dropped` or `..._kept`, `burned_in_single_marks` (side markers and the
    like, also hidden), and, if a second opinion was needed, `..._read_by_ocr`, or `..._without_ocr` if tesseract is not installed.
    """
    checks[f"burned_in_{kind}_searched"] += 1
    checks[f"burned_in_{kind}_{OUTCOMES[policy]}"] += bool(burned_in)
    checks["burned_in_single_marks"] += burned_in.evidence.get("single_marks", 0)
    if burned_in.ocr is not None:
        checks[f"burned_in_{kind}_{'read_by' if burned_in.ocr else 'without'}_ocr"] += 1


def reported_checks(checks: Counter[str], subjects: str) -> dict[str, int]:
    """Sort checks, and leave out those that depend on the machine unless the data are of patients.

    `subjects`: `patient`, `public` or `phantom`. For the last two, the use of tesseract is not recorded, so that records reproduced without it
    differ only where a picture differs.
    """
    return {name: checks[name] for name in sorted(checks) if subjects == "patient" or not name.endswith("_ocr")}


def has_suspect_header(header: Dataset) -> bool:
    """Return True if a raw header suggests burned-in text; called before headers are cleaned.

    Criteria: BurnedInAnnotation YES, a secondary capture, a converted or digitised picture, a derived image that is not primary, 8 bits.
    Ingest excludes the clearest of these; the others are also read by tesseract.
    """
    types = set(dicom.texts(header, "ImageType"))
    return (
        dicom.text(header, "BurnedInAnnotation").upper() == "YES"
        or dicom.text(header, "SOPClassUID").startswith(SCREENSHOTS)
        or bool(dicom.text(header, "ConversionType"))
        or bool(types & SUSPECT_TYPES)
        or dicom.number(header, "BitsStored") == 8
    )


def stacked_along(shape: tuple[int, ...], affine: npt.NDArray[np.float64], files: int | None = None) -> int | None:
    """Return the axis along which the slices of a converted scan are stacked; None if unknown.

    `affine`: shape (4, 4), voxel to mm. `files`: number of DICOM files of the series.

    Examples
    --------
    >>> stacked_along((240, 208, 30), np.diag([1.0, 1.0, 5.0, 1.0]))
    2
    """
    fitting = [axis for axis, side in enumerate(shape[:3]) if side == files]
    if len(fitting) == 1:
        return fitting[0]
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    thick = int(np.argmax(sizes))
    return thick if sizes[thick] >= THICKER * np.delete(sizes, thick).max() else None


def find_burned_in(
    voxels: Voxels, slice_axis: int | None = 2, *, suspect: bool = False, hidden: Mask | None = None, words: Words | None = None
) -> BurnedInText:
    """Detect text burned into the planes of one series.

    `voxels`: shape (X, Y, Z), any real dtype. `slice_axis`: axis along which the planes are stacked; None if unknown, then all three are
    tried. `suspect`: the header suggests burned-in text, so every plane is examined and OCR is used. `hidden`: mask of the same shape of
    text already hidden. `words`: result of `read_pictures` per plane, if OCR has already run.
    """
    axes = range(3) if slice_axis is None else (slice_axis,)
    parts = [_along(voxels, axis, suspect, hidden, words) for axis in axes]
    if len(parts) == 1:
        return parts[0]
    asked = [part.ocr for part in parts if part.ocr is not None]
    return BurnedInText(
        np.logical_or.reduce([part.mask for part in parts]),
        tuple(box for part in parts for box in part.boxes),
        dict(sum((Counter(part.evidence) for part in parts), Counter())),
        all(asked) if asked else None,
    )


def hide_burned_in(voxels: Voxels, burned_in: BurnedInText) -> Voxels:
    """Set the detected text to the background of the series, which is the lowest value outside the boxes.

    `voxels`: shape (X, Y, Z), any real dtype, as given to `find_burned_in`; not changed. Returns a copy of the same dtype; all other voxels
    are identical.
    """
    clean = voxels.copy()
    outside = voxels[~burned_in.mask]
    clean[burned_in.mask] = np.nanmin(outside) if outside.size else 0
    return clean


def merge_marks(marks: list[Mark]) -> list[Mark]:
    """Merge lines at the same place in different slices.

    Returns one mark per place and run of slices: the box around all its lines, in all slices from the first to the last of the run, including
    those in which a test missed it.
    """
    places: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda one: (one.vertical, one.box, one.slices)):
        fitting = next((place for place in places if any(_same_place(mark, other) for other in place[-8:])), None)
        if fitting is None:
            places.append([mark])
        else:
            fitting.append(mark)
    done = []
    for place in places:
        slices = sorted({index for mark in place for index in mark.slices})
        tops, bottoms, lefts, rights = zip(*(mark.box for mark in place), strict=True)
        box = (min(tops), max(bottoms), min(lefts), max(rights))
        height = max(mark.height for mark in place)
        done += [replace(place[0], box=box, slices=run, height=height) for run in _runs(slices)]
    return done


def _same_place(one: Mark, other: Mark) -> bool:
    """Return True if two lines share most of their height and (nearly) touch."""
    if one.vertical != other.vertical:
        return False
    across, along = ((0, 1), (2, 3)) if not one.vertical else ((2, 3), (0, 1))
    shared = min(one.box[across[1]], other.box[across[1]]) - max(one.box[across[0]], other.box[across[0]])
    larger = max(mark.box[across[1]] - mark.box[across[0]] for mark in (one, other))
    overlap = min(one.box[along[1]], other.box[along[1]]) - max(one.box[along[0]], other.box[along[0]])
    return shared >= 0.6 * larger and overlap > -GAP * max(one.height, other.height)


def _runs(slices: list[int]) -> list[tuple[int, ...]]:
    runs = [[slices[0], slices[0]]]
    for index in slices[1:]:
        if index - runs[-1][1] <= BRIDGED + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return [tuple(range(first, last + 1)) for first, last in runs]


def _along(voxels: Voxels, axis: int, suspect: bool, hidden: Mask | None, words: Words | None) -> BurnedInText:
    """Detect text in the planes along one axis."""
    order = (axis, *(other for other in range(3) if other != axis))
    if voxels.strides[order[1]] < voxels.strides[order[2]]:
        order = (order[0], order[2], order[1])  # rows contiguous in memory
    planes = np.ascontiguousarray(voxels.transpose(order))  # one axis is searched as a stack of planes
    if planes.dtype.kind == "f" and not np.isfinite(planes).all():
        planes = np.nan_to_num(planes, nan=0.0, posinf=0.0, neginf=0.0)
    done = None if hidden is None else np.ascontiguousarray(hidden.transpose(order))
    marks, ocr = _search(planes, suspect, done, words)
    mask = _mask_of(planes, marks)
    boxes = tuple(_in_volume(mark, planes.shape, order) for _, mark in marks)
    counts = Counter(name for name, _ in marks)
    counts["single_marks"] = sum(mark.single for _, mark in marks)
    evidence = {name: counts[name] for name in (*TESTS, "single_marks") if counts[name]}
    return BurnedInText(mask.transpose(np.argsort(order)), boxes, evidence, ocr)


def _search(planes: Voxels, suspect: bool, done: Mask | None, words: Words | None) -> tuple[list[tuple[str, Mark]], bool | None]:
    """Run all tests over planes (slices, rows, columns); returns marks with the name of their test, and `BurnedInText.ocr`."""
    span = grey_range(planes)
    if not span > 0:
        return [], None
    # from the strongest evidence to the weakest; each test skips what the previous ones detected
    marks: list[tuple[str, Mark]] = []
    differing = distinct_planes(planes)
    few = len(differing) <= FEW_PLANES
    for test in (same_in_every_slice, same_in_neighbours, nearly_same):
        known = _mask_of(planes, marks, done)[differing] if marks or done is not None else None
        # duplicate slices are left out of the comparison, and get the same marks afterwards
        drawn = test(planes[differing] if len(differing) < len(planes) else planes, span, known)
        marks += [(test.__name__, _grown(_in_duplicates(mark, differing, len(planes)), planes)) for mark in drawn]
    marks += [("one_colour", _grown(mark, planes)) for mark in one_colour(planes, span, done)]
    # single lines in a few planes, and from there to their neighbours
    known = _mask_of(planes, [(name, mark) for name, mark in marks if not mark.single], done)
    suspicious = range(len(planes)) if few or suspect else suspicious_planes(planes, span, EXTRA_PLANES)
    looked_at = {0, len(planes) // 2, len(planes) - 1, *suspicious}
    marks += _single_lines(planes, looked_at, span, known)
    # merge detections at one place; OCR last, as a second opinion on single pictures and suspect series
    for kind in ("same_in_neighbours", "one_colour", "strokes"):
        of_kind = [mark for name, mark in marks if name == kind]
        marks = [(name, mark) for name, mark in marks if name != kind] + [(kind, mark) for mark in merge_marks(of_kind)]
    ocr = None
    if few or suspect:
        ocr = ocr_available()
        marks += [("ocr", mark) for mark in words_in(planes, span, done, words)] if ocr else []
    return marks, ocr


def _mask_of(planes: Voxels, marks: list[tuple[str, Mark]], done: Mask | None = None) -> Mask:
    mask = np.zeros(planes.shape, dtype=bool) if done is None else done.copy()
    for _, mark in marks:
        top, bottom, left, right = _padded(mark, planes.shape[1:])
        for index in mark.slices:
            mask[index, top:bottom, left:right] = True
    return mask


def _grown(mark: Mark, planes: Voxels) -> Mark:
    """Extend the line of a mark to both sides, in a few of its slices."""
    if mark.single:
        return mark
    some = mark.slices[:: max(1, len(mark.slices) // EXTENDED_IN)]
    box, height = mark.box, mark.height
    for _ in range(2):  # the detected box may hold only part of the first letters
        boxes = np.array([grow_line(planes[index], box, height, vertical=mark.vertical) for index in some])
        box = (int(boxes[:, 0].min()), int(boxes[:, 1].max()), int(boxes[:, 2].min()), int(boxes[:, 3].max()))
        height = float(min(box[1] - box[0], box[3] - box[2], 1.6 * height))
    return replace(mark, box=box)


def _in_duplicates(mark: Mark, differing: npt.NDArray[np.intp], count: int) -> Mark:
    """Map slices of the distinct planes to all planes: a duplicate of the previous plane shows the same."""
    stands_for = np.searchsorted(differing, np.arange(count), side="right") - 1
    return replace(mark, slices=tuple(np.flatnonzero(np.isin(stands_for, mark.slices)).tolist()))


def _single_lines(planes: Voxels, looked_at: set[int], span: float, known: Mask) -> list[tuple[str, Mark]]:
    """Search some planes for lines, and the neighbours of each plane that shows one."""
    marks, waiting, seen = [], sorted(looked_at), set(looked_at)
    while waiting:
        index = waiting.pop()
        lines = [suspicion.line for suspicion in suspicious_lines(planes[index], span) if suspicion.sure]
        new = [line for line in lines if not mostly_hidden(known, index, line.box)]
        marks += [("strokes", _grown(Mark.of(line, [index]), planes)) for line in new]
        neighbours = {other for other in (index - 1, index + 1) if new and 0 <= other < len(planes)} - seen
        waiting, seen = [*waiting, *sorted(neighbours)], seen | neighbours
    return marks


def _padded(mark: Mark, shape: tuple[int, ...]) -> Box2D:
    pad = max(MIN_PAD_PX, round(PAD * min(mark.height, 0.1 * max(shape))))
    top, bottom, left, right = mark.box
    return max(top - pad, 0), min(bottom + pad, shape[0]), max(left - pad, 0), min(right + pad, shape[1])


def _in_volume(mark: Mark, shape: tuple[int, ...], order: tuple[int, ...]) -> Box:
    top, bottom, left, right = _padded(mark, shape[1:])
    sides = ((mark.slices[0], mark.slices[-1] + 1), (top, bottom), (left, right))
    by_axis = dict(zip(order, sides, strict=True))
    return by_axis[0], by_axis[1], by_axis[2]
