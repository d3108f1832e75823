"""Detectors that compare slices: drawn marks keep their pixels from slice to slice where anatomy changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.lines import MIN_GLYPH_PX, Box2D, TextLine, find_lines, is_thin

Plane = npt.NDArray[Any]
Planes = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
MIN_CONTRAST = 0.08
"""Minimum difference from the surroundings, as a fraction of the grey range of a series."""
SURROUNDINGS_PX = 15
BACKGROUND_PART = 0.05
"""A value that is constant over a larger part of a picture is background or padding."""
MAX_OVERLAY_PART = 0.15
MIN_MARK_PX = 6
MIN_BRIGHT = 0.25
"""If at least this part of a mark is brighter than its surroundings, its letters are bright."""
WIDER = 1.6
"""A mark that is not wider than its height by this factor, and 2 pixels, is a single letter."""
EDGE_PX, MIN_INK = 2, 0.03
MIN_PLANES = 4
RUN = 3
"""Number of neighbouring slices in which a line of text must be identical."""
MIN_RUN_PX = 20
MIN_MAIN_COLOUR = 0.25
MAX_AROUND, MAX_FLOOR_AROUND = 0.1, 0.01
"""Largest fraction of the pixels around a line that may have the value of its letters; smaller for the lowest value, because where noise was
clipped at zero, zeros coincide in several slices by chance."""
STAYS, SURELY_STAYS = 0.9, 0.95
"""Least part of the pixels of the letters' value that keep it in all slices of a run. Chance has a median of 0.6 in real scans of 8 bits, flat
white matter 0.8 to 0.9, text 1.0."""
STAYS_THROUGHOUT = 0.7
"""The same for all slices, if the value also fills a part of the anatomy. White text on bone clipped to white has 0.75, flat anatomy 0.1 to 0.6."""
THICKEST_COLOUR = 0.11
"""Half the width of strokes of one value, in letter heights. Measured: letters 0.07 to 0.15 (up to 1.1 pixels), flat white matter from 0.11 (3 pixels)."""
EVIDENCE, SURE_EVIDENCE = 40.0, 8.0
"""Least evidence against chance in nats, and the least if `SURELY_STAYS` is reached, or all slices are compared."""
COMPARED_PX, COMPARED_NEAR_PX = (300, 2000), 100
"""Number of pixels of similar grey from which the chance is estimated, in the whole plane and around a line; the highest estimate counts."""
LETTER_STEADY, MIN_LETTER_PX, MAX_LETTER_PART = 0.15, 8, 0.01
"""Limits for a single letter: a smaller variation than that of a line, as a fraction of its contrast, and its area."""


@dataclass(frozen=True)
class Mark:
    """A detected mark or line of text.

    Attributes
    ----------
    box : Box2D
        Tight box in the plane.
    slices : tuple of int
        Indices of the slices that show it.
    height : float
        Letter height in pixels.
    single : bool
        True for at most one letter.
    vertical : bool
        True if the line runs along the columns.
    """

    box: Box2D
    slices: tuple[int, ...]
    height: float
    single: bool = False
    vertical: bool = False

    @classmethod
    def of(cls, line: TextLine, slices: Sequence[int]) -> Mark:
        """Make a mark from a line and its slices."""
        return cls(line.box, tuple(slices), line.height, vertical=line.vertical)


def grey_range(planes: Planes) -> float:
    """Compute the grey range of a series: 0.5th to 99.7th percentile of a sample."""
    part = planes.reshape(-1)[:: max(1, planes.size // 200_000)]
    low, high = np.percentile(part, (0.5, 99.7))
    return float(high - low) or float(part.max() - part.min())


def distinct_planes(planes: Planes) -> npt.NDArray[np.intp]:
    """Return the indices of the planes that differ from the previous one: duplicate slices would make anatomy look constant."""
    differs = np.array([True, *((one != other).any() for one, other in zip(planes[1:], planes[:-1], strict=True))])
    return np.flatnonzero(differs)


def same_in_every_slice(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Detect pixels that have the same value in every slice and stand out from their surroundings.

    `planes`: shape (slices, rows, columns). `span`: see `grey_range`. `skip`: mask of the same shape of text already detected. Returns marks
    in all slices; none if there are fewer than `MIN_PLANES` slices.
    """
    from scipy import ndimage

    if len(planes) < MIN_PLANES:
        return []
    # 1. pixels that never change, without background and text already detected
    same = np.logical_and.reduce([one == other for one, other in zip(planes[1:], planes[:-1], strict=True)])
    kept = same & ~_background(planes[0], same)
    if skip is not None:
        kept &= ~skip.any(axis=0)
    # the outermost pixels of a picture that was resampled or cropped are often constant
    kept[:EDGE_PX] = kept[-EDGE_PX:] = kept[:, :EDGE_PX] = kept[:, -EDGE_PX:] = False
    if not kept.any():
        return []
    # 2. of these, the ones that contrast with the mean of the slices around them
    level = planes[:: max(1, len(planes) // 16)].mean(axis=0, dtype=np.float32)
    bright = kept & (planes[0] - opening(level, SURROUNDINGS_PX) > MIN_CONTRAST * span)
    strong = bright | kept & (closing(level, SURROUNDINGS_PX) - planes[0] > MIN_CONTRAST * span)
    if not strong.any() or strong.mean() > MAX_OVERLAY_PART:
        return []
    # 3. group them into lines, which run along the rows more often than along the columns
    labels, _ = ndimage.label(ndimage.binary_dilation(kept, structure=np.ones((5, 9))))
    drawn = kept & np.isin(labels, np.unique(labels[strong]))  # keep letters whole, even where their ground is equally bright
    marks = []
    for number, place in enumerate(ndimage.find_objects(labels), start=1):
        of_group = labels[place] == number
        letters = strong[place] & of_group
        if letters.sum() < MIN_MARK_PX:
            continue
        # constant air beside bright letters is no part of them, although it is darker than they are
        light = letters & bright[place]
        values = planes[0][place][light if light.sum() >= MIN_BRIGHT * letters.sum() else letters]
        mark = drawn[place] & of_group & (planes[0][place] >= values.min()) & (planes[0][place] <= values.max())
        if _is_frame(mark, place, drawn.shape):
            continue
        for top, bottom, left, right in _text_lines(mark):
            box = (place[0].start + top, place[0].start + bottom, place[1].start + left, place[1].start + right)
            sides = (bottom - top, right - left)
            single = max(sides) < WIDER * min(sides) + 2
            marks.append(Mark(box, tuple(range(len(planes))), float(min(sides)), single=single, vertical=sides[0] > sides[1]))
    return _without_anatomy(marks, planes[:: max(1, len(planes) // 16)], drawn)


def _text_lines(mark: Mask) -> list[Box2D]:
    """Return the tight box of each line of a block of text; of the whole mark if it has none along the rows."""
    from scipy import ndimage

    # a gap of one row may be inside letters
    inked = ndimage.binary_closing(np.pad(mark.any(axis=1), 2))[2:-2]
    boxes = []
    for (rows,) in ndimage.find_objects(ndimage.label(inked)[0]):
        columns = np.flatnonzero(mark[rows].any(axis=0))
        boxes.append((rows.start, rows.stop, int(columns[0]), int(columns[-1]) + 1))
    if any(right - left >= WIDER * (bottom - top) + 2 for top, bottom, left, right in boxes):
        return boxes
    tops, bottoms, lefts, rights = zip(*boxes, strict=True)
    return [(min(tops), max(bottoms), min(lefts), max(rights))]


def _is_frame(mark: Mask, place: tuple[slice, slice], shape: tuple[int, ...]) -> bool:
    """Return True for a frame around the picture, and for a row of padding, which are no text."""
    down, across = (np.flatnonzero(mark.any(axis=axis)) for axis in (1, 0))
    sides = (down[-1] - down[0] + 1, across[-1] - across[0] + 1)
    if mark.sum() < MIN_INK * sides[0] * sides[1] and sides[0] * sides[1] > MAX_OVERLAY_PART * shape[0] * shape[1]:
        return True
    first, last = (place[0].start + down[0], place[1].start + across[0]), (place[0].start + down[-1], place[1].start + across[-1])
    margins = (*first, shape[0] - 1 - last[0], shape[1] - 1 - last[1])
    return bool(min(sides) < MIN_GLYPH_PX and min(margins) <= 2 * EDGE_PX)


def _without_anatomy(marks: list[Mark], planes: Planes, drawn: Mask) -> list[Mark]:
    """Drop marks of a value that anatomy has too, flat or clipped, unless one of this value stays beyond chance."""
    clear = np.ones(drawn.shape, dtype=bool)
    for mark in marks:
        clear[mark.box[0] : mark.box[1], mark.box[2] : mark.box[3]] = False
    colours = [_main_colour(planes[0], drawn, mark.box)[1] for mark in marks]
    common = {colour for colour in colours if colour in (planes.min(), planes.max()) or _fills(planes, colour)}
    chance = common - {
        colour
        for mark, colour in zip(marks, colours, strict=True)
        if colour in common and _stays_beyond_chance(planes, (drawn, clear), mark.box, colour, least=STAYS_THROUGHOUT)
    }
    kept = []
    for mark, colour in zip(marks, colours, strict=True):
        if colour in chance:
            continue
        if colour in common and _staying(planes, drawn, mark.box, colour)[1] < STAYS_THROUGHOUT:
            continue
        if _fills(planes, colour) and not is_thin(planes[0] == colour, mark.box, mark.height):
            continue
        kept.append(mark)
    return kept


def _fills(planes: Planes, colour: float) -> bool:
    """Return True if a value fills a large part of a series, as that of anatomy does."""
    return bool((planes == colour).mean() > BACKGROUND_PART)


def _background(plane: Planes, same: Mask) -> Mask:
    """Return the constant ground: values that fill a large part of the picture, where they are connected or reach the frame."""
    from scipy import ndimage

    values, counts = np.unique(plane[same], return_counts=True)
    ground = same & np.isin(plane, values[counts > BACKGROUND_PART * plane.size])
    labels, count = ndimage.label(ground)
    if not count:
        return ground
    sizes = np.bincount(labels.ravel())
    large = sizes > 0.005 * plane.size
    large[np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))] = True
    large[0] = False
    return np.asarray(large[labels])


def same_in_neighbours(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Detect lines of text with identical pixels in a few neighbouring slices.

    `planes`, `span`, `skip`: as in `same_in_every_slice`.
    """
    run = min(RUN, len(planes))
    if run < 2:
        return []
    marks = []
    pairs = [one == other for one, other in zip(planes[1:], planes[:-1], strict=True)]
    darkest, brightest = planes.min(), planes.max()
    for first in range(len(planes) - run + 1):
        same = np.logical_and.reduce(pairs[first : first + run - 1])
        if same.mean() > BACKGROUND_PART:  # the background is constant too
            values, counts = np.unique(planes[first][same], return_counts=True)
            same &= ~np.isin(planes[first], values[counts > BACKGROUND_PART * same.size])
        if skip is not None:
            same &= ~skip[first]
        if same.sum() < MIN_RUN_PX or not _may_stand_out(planes[first], same, span):
            continue
        plane = planes[first].astype(np.float32)
        same &= _stands_out(plane, plane, span)
        # clipped bone and air stay in place too: letters that touch them are searched without them
        clipped = np.isin(planes[first], (darkest, brightest)) & same
        lines = find_lines(same) + (find_lines(same & ~clipped) if clipped.any() else [])
        # letters have one main value, which is rare around them
        clear, floor = _outside(plane.shape, lines), float(plane.min())
        for line in lines:
            part, colour = _main_colour(planes[first], same, line.box)
            most = MAX_FLOOR_AROUND if colour == floor else MAX_AROUND
            rare = part >= MIN_MAIN_COLOUR and _share_around(planes[first], clear, line.box, colour) <= most
            here = planes[first : first + run]
            if (
                rare
                and is_thin(planes[first] == colour, line.box, line.height, THICKEST_COLOUR)
                and _stays_beyond_chance(here, (same, clear), line.box, colour, least=STAYS, evidence=EVIDENCE)
            ):
                marks.append(Mark.of(line, range(first, first + run)))
    return marks


def _stays_beyond_chance(
    planes: Planes, masks: tuple[Mask, Mask], box: Box2D, colour: float, *, least: float = 0.0, evidence: float = SURE_EVIDENCE
) -> bool:
    """Return True if the pixels of a value keep it from plane to plane more often than chance explains.

    `planes`: shape (planes, rows, columns). `masks`: constant pixels of a plane that stand out, and its pixels outside all lines.
    `least`: smallest part that must keep the value. `evidence`: as `EVIDENCE`. With few grey levels (8 bits), and in smooth scans,
    neighbouring planes have equal values by chance; how often is measured in this scan, at pixels of similar grey outside the lines.
    """
    marks, clear = masks
    count, stays = _staying(planes, marks, box, colour)
    if stays < least:
        return False
    chance = _chance_of_staying(planes, clear, box, colour, count)
    if stays <= chance:
        return False
    # log likelihood ratio of the observed frequency and chance
    other = (1 - stays) * np.log((1 - stays) / (1 - chance)) if stays < 1 else 0.0
    found = count * (stays * np.log(stays / chance) + other)
    return bool(found >= (SURE_EVIDENCE if stays >= SURELY_STAYS else evidence))


def _staying(planes: Planes, marks: Mask, box: Box2D, colour: float) -> tuple[float, float]:
    """Return the number of pixels of a value in a box, averaged over the planes, and the part of them that keep it in all planes."""
    from scipy import ndimage

    top, bottom, left, right = box
    drawn = planes[:, top:bottom, left:right] == colour
    if colour == planes.min():  # black letters beside air, which is black at random
        drawn &= ndimage.binary_dilation(marks[top:bottom, left:right] & drawn[0], np.ones((3, 3)))
    count = float(drawn.sum()) / len(planes)
    return count, float(drawn.all(axis=0).sum()) / count


def _chance_of_staying(planes: Planes, clear: Mask, box: Box2D, colour: float, count: float) -> float:
    """Estimate the chance that a pixel of about this value, but not of exactly this one, which may be text, has one value in all planes.

    Pixels clipped to black or white keep their value for another reason, so that only the chance of these two values is estimated from them.
    """
    chances = []
    clipped = planes.min(), planes.max()
    everywhere = (slice(None), slice(None))
    for place, numbers in ((everywhere, COMPARED_PX), (_around(box), (COMPARED_NEAR_PX,))):
        values = planes[:, *place][:, clear[place]].astype(np.float64)
        same = (values[1:] == values[:-1]).all(axis=0)
        away = np.abs(values - colour)
        other = (away > 0) & ~np.isin(values, clipped)
        apart = away[other]
        for number in numbers:
            if apart.size < number:
                continue
            wanted = min(number * len(planes), apart.size - 1)
            near = other & (away <= np.partition(apart, wanted)[wanted])
            chances.append((float((same & near[0]).sum()) + 0.5) / (float(near.sum()) / len(planes) + 1))
        # a value that is much more frequent elsewhere is no colour of text, so that its own chance counts, unless it is constant
        own = float((away == 0).sum()) / len(planes)
        if place is everywhere and own >= 2 * count:
            steady = float((same & (away[0] == 0)).sum()) / own
            chances += [steady] if steady < SURELY_STAYS else []
    return min(max(chances, default=0.0) or 1e-3, 0.99)


def _around(box: Box2D) -> tuple[slice, slice]:
    """Return the rows and columns of a box and its surroundings."""
    top, bottom, left, right = box
    pad = max(SURROUNDINGS_PX // 2, min(bottom - top, right - left))
    return slice(max(top - pad, 0), bottom + pad), slice(max(left - pad, 0), right + pad)


def _may_stand_out(plane: Planes, same: Mask, span: float) -> bool:
    """Return True if enough pixels of a mask differ from pixels at a small distance: a fast test before `_stands_out`."""
    values, here = plane.ravel(), np.flatnonzero(same)
    level, far = values[here].astype(np.float32), SURROUNDINGS_PX // 2
    high, wide = plane.shape
    rows, columns = np.divmod(here, wide)
    above, below = np.maximum(rows - far, 0), np.minimum(rows + far, high - 1)
    before, after = np.maximum(columns - far, 0), np.minimum(columns + far, wide - 1)
    around = (rows * wide + after, rows * wide + before, below * wide + columns, above * wide + columns)
    differs = [np.abs(values[there].astype(np.float32) - level) > MIN_CONTRAST * span for there in around]
    return int(np.logical_or.reduce(differs).sum()) >= MIN_RUN_PX


def _main_colour(plane: Planes, marks: Mask, box: Box2D) -> tuple[float, float]:
    """Return the fraction of the marks in a box with the most frequent value, and that value: letters have one, a smooth surface has many."""
    top, bottom, left, right = box
    values, counts = np.unique(plane[top:bottom, left:right][marks[top:bottom, left:right]], return_counts=True)
    return (float(counts.max() / counts.sum()), float(values[counts.argmax()])) if len(values) else (0.0, 0.0)


def _outside(shape: tuple[int, ...], lines: Sequence[TextLine]) -> Mask:
    """Return the mask of pixels outside all boxes."""
    clear = np.ones(shape, dtype=bool)
    for line in lines:
        top, bottom, left, right = line.box
        clear[top:bottom, left:right] = False
    return clear


def _share_around(plane: Planes, clear: Mask, box: Box2D, colour: float) -> float:
    """Return the fraction of the pixels around a box that have a value."""
    around = _around(box)
    ring = plane[around][clear[around]]
    return float((ring == colour).mean()) if ring.size else 1.0


def nearly_same(planes: Planes, span: float, skip: Mask | None = None) -> list[Mark]:
    """Detect lines of text of nearly constant brightness over the slices, as left by lossy compression or resampling.

    `planes`, `span`, `skip`: as in `same_in_every_slice`.
    """
    from scipy import ndimage

    if len(planes) < 2 * MIN_PLANES:
        return []
    some = planes[np.unique(np.linspace(0, len(planes) - 1, 24).round().astype(int))]
    low, high = some.min(axis=0).astype(np.float32), some.max(axis=0).astype(np.float32)
    marks = []
    # letters stand out in every slice from the brightest (darkest) that their surroundings ever are
    bright, dark = low - opening(high, SURROUNDINGS_PX), closing(low, SURROUNDINGS_PX) - high
    for contrast, values in ((bright, -low), (dark, high)):
        steady = (contrast > 2 * MIN_CONTRAST * span) & (high - low < 0.5 * contrast)
        if skip is not None:
            steady &= ~skip.any(axis=0)
        marks += [Mark.of(line, range(len(planes))) for line in find_lines(steady, min_glyphs=4, min_strokes=4.0)]
        labels, _ = ndimage.label(steady & (high - low < LETTER_STEADY * contrast), structure=np.ones((3, 3)))
        sizes = np.bincount(labels.ravel())
        for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
            if MIN_LETTER_PX <= sizes[number] <= MAX_LETTER_PART * low.size and _is_small(values, labels == number, contrast):
                box = (rows.start, rows.stop, columns.start, columns.stop)
                marks.append(Mark(box, tuple(range(len(planes))), float(rows.stop - rows.start), single=True))
    return marks


def _is_small(values: npt.NDArray[np.float32], mark: Mask, contrast: npt.NDArray[np.float32]) -> bool:
    """Return True if a dark mark is not just the tip of a large dark area (bright marks: with the sign inverted)."""
    from scipy import ndimage

    labels, _ = ndimage.label(values < values[mark].max() + 0.3 * float(contrast[mark].min()))
    touched = np.unique(labels[mark])
    area = np.isin(labels, touched[touched > 0])
    at_frame = area[0].any() or area[-1].any() or area[:, 0].any() or area[:, -1].any()
    return not at_frame and bool(area.mean() <= MAX_LETTER_PART)


def _stands_out(values: npt.NDArray[np.float32], level: npt.NDArray[np.float32], span: float) -> Mask:
    """Return the mask of pixels brighter or darker than their surroundings within a few pixels."""
    bright = values - opening(level, SURROUNDINGS_PX)
    dark = closing(level, SURROUNDINGS_PX) - values
    return np.asarray(np.maximum(bright, dark) > MIN_CONTRAST * span)


def opening(plane: Plane, side: int) -> Plane:
    """Remove structures brighter than their surroundings and smaller than a square (grey-scale morphological opening).

    `plane`: shape (rows, columns), any real dtype without NaN. `side`: side of the square, odd, in pixels. Returns the values of
    `scipy.ndimage.grey_opening` with the squares cut off at the frame.

    Examples
    --------
    >>> opening(np.array([[1, 9, 1, 1, 5, 5, 5]]), 3)
    array([[1, 1, 1, 1, 5, 5, 5]])
    """
    return _extremes(_extremes(plane, side, np.minimum), side, np.maximum)


def closing(plane: Plane, side: int) -> Plane:
    """Remove structures darker than their surroundings and smaller than a square; as `opening`."""
    return _extremes(_extremes(plane, side, np.maximum), side, np.minimum)


def _extremes(plane: Plane, side: int, pick: np.ufunc) -> Plane:
    """Return the minimum or maximum of the square around each pixel, axis by axis; many times faster than scipy's filters, same result."""
    kind = np.finfo(plane.dtype) if plane.dtype.kind == "f" else np.iinfo(plane.dtype)
    half = side // 2
    padded = np.full([length + 2 * half for length in plane.shape], kind.max if pick is np.minimum else kind.min, dtype=plane.dtype)
    padded[half : half + plane.shape[0], half : half + plane.shape[1]] = plane
    for axis in (0, 1):
        turned, covered = np.moveaxis(padded, axis, 0), 1
        while covered < side:  # combining two windows of n pixels covers up to 2 n
            step = min(covered, side - covered)
            turned = pick(turned[:-step], turned[step:])
            covered += step
        padded = np.moveaxis(turned, 0, axis)
    return padded
