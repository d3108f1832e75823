"""Choose slices evenly, by content, or around a lesion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import DataError

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
MIN_AREA = 0.25
"""Smallest brain area of a slice, as a fraction of the largest one."""
MIN_GREYS, GREY_TAILS = 12, (2.0, 98.0)
"""Smallest range of the greys of a picture that shows anything, between these percentiles: less is black, or a few dots on black."""
GREY_BINS = 32
"""Bins of the grey histogram for the entropy; finer ones measure noise."""


def shows_tissue(grey: npt.NDArray[np.uint8]) -> bool:
    """Return True if a picture shows something: neither black, nor a few dots, nor of one grey; shape (rows, columns)."""
    low, high = np.percentile(grey, GREY_TAILS)
    return bool(high - low >= MIN_GREYS)


def usable_slices(brain: Mask) -> npt.NDArray[np.intp]:
    """Return the slices along axis 0 that show enough brain; parameters as in `uniform_slices`."""
    area = brain.sum(axis=(1, 2))
    return np.flatnonzero((area > 0) & (area >= MIN_AREA * area.max()))


def uniform_slices(brain: Mask, count: int) -> list[int]:
    """Spread slices evenly over the part of the head that shows enough brain.

    Parameters
    ----------
    brain : ndarray of bool, shape (N, rows, columns)
        Brain mask; axis 0 is the slice axis.
    count : int
        Number of slices, at least 1.

    Returns
    -------
    list of int
        Indices along axis 0, ascending, all different.

    Raises
    ------
    DataError
        If the mask is empty, or fewer than `count` slices show enough brain.

    Examples
    --------
    >>> uniform_slices(np.ones((9, 4, 4), dtype=bool), 3)
    [0, 4, 8]
    """
    usable = _enough(brain, count)
    picks = np.linspace(0, len(usable) - 1, count).round().astype(int)
    return [int(index) for index in usable[picks]]


def content_slices(brain: Mask, scores: Numbers, count: int) -> list[int]:
    """Divide the brain into `count` parts, and choose the slice with the highest score in each.

    Parameters
    ----------
    brain, count
        As in `uniform_slices`.
    scores : ndarray of float, shape (N,)
        Content of each slice, for example from `slice_scores`.

    Returns
    -------
    list of int
        Indices along axis 0, ascending, all different. Of equal scores, the slice nearest to the middle of its part is chosen, the lower
        one of two.

    Raises
    ------
    DataError
        As `uniform_slices`.
    """
    picks = []
    for part in np.array_split(_enough(brain, count), count):
        distance = np.abs(part - part.mean())
        # the last key sorts first; rounded, so that the last bits of a score do not decide
        picks.append(int(part[np.lexsort((part, distance, -scores[part].round(9)))[0]]))
    return picks


def slice_scores(grey: npt.NDArray[np.uint8], brain: Mask) -> Numbers:
    """Measure the visible content of each slice, without any label.

    Parameters
    ----------
    grey : ndarray of uint8, shape (N, rows, columns)
        The scan through its window, so that scalp and artefacts beyond it do not count.
    brain : ndarray of bool, shape (N, rows, columns)
        Brain mask.

    Returns
    -------
    ndarray of float, shape (N,)
        Sum of two z-scores over the usable slices: entropy of the brain's grey values (bits), and edges (mean difference of neighbouring
        pixels). An average slice has 0; so have unusable ones.
    """
    usable = usable_slices(brain)
    entropy, edges = np.zeros(len(brain)), np.zeros(len(brain))
    for index in usable:
        inside, picture = brain[index], grey[index].astype(np.float32)
        # grey values 0 to 255 in `GREY_BINS` bins
        share = np.bincount((grey[index][inside].astype(int) * GREY_BINS) >> 8, minlength=GREY_BINS) / inside.sum()
        entropy[index] = -float((share[share > 0] * np.log2(share[share > 0])).sum())
        # differences of neighbours inside the brain: its outline is no edge
        steps = [np.abs(np.diff(picture, axis=axis))[_pairs(inside, axis)] for axis in (0, 1)]
        edges[index] = float(np.concatenate(steps).mean()) if sum(len(step) for step in steps) else 0.0
    scores = np.zeros(len(brain))
    for measure in (entropy, edges):
        spread = float(measure[usable].std()) if len(usable) else 0.0
        if spread > 0:
            scores[usable] += (measure[usable] - measure[usable].mean()) / spread
    return scores


def lesion_slices(index: float, reach: float, count: int, total: int) -> list[int]:
    """Spread slices over a lesion, from `reach` below its centre to `reach` above.

    Parameters
    ----------
    index, reach : float
        Centre and half extent in slices.
    count, total : int
        Number of slices to choose, and of all slices.

    Returns
    -------
    list of int
        `count` indices (fewer when the stack has fewer), ascending, all different; neighbours where the lesion is thinner.

    Examples
    --------
    >>> lesion_slices(10.0, 4.0, 3, 40), lesion_slices(10.2, 0.3, 4, 40)
    ([6, 10, 14], [9, 10, 11, 12])
    """
    count = min(count, total)
    # floor(x + 0.5) rounds halves up, unlike round()
    if count == 1:
        return [int(np.floor(np.clip(index, 0, total - 1) + 0.5))]
    reach = max(reach, (count - 1) / 2)
    # both ends stay in the stack, and far enough apart for `count` slices
    first = float(np.clip(index - reach, 0, total - count))
    last = float(np.clip(index + reach, first + count - 1, total - 1))
    return [int(np.floor(place + 0.5)) for place in np.linspace(first, last, count).round(6)]


def _enough(brain: Mask, count: int) -> npt.NDArray[np.intp]:
    usable = usable_slices(brain)
    if len(usable) < count:
        message = (
            f"{len(usable)} slices show at least {MIN_AREA:.0%} of the largest brain area and are not black, {count} were asked for:"
            " look at the outline of the brain, or lower slices.per_sequence"
        )
        raise DataError(message)
    return usable


def _pairs(inside: Mask, axis: int) -> Mask:
    """Return a mask of neighbours along an axis that are both in the brain."""
    first, second = (inside[:-1], inside[1:]) if axis == 0 else (inside[:, :-1], inside[:, 1:])
    return first & second
