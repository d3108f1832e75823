"""Places where text stands in several slices: one box for all of them, also in the slices between, where a test may have missed it."""

from __future__ import annotations

from dataclasses import replace

from neuralmedbench.deid.burned_in.overlays import Mark

GAP = 5.0
"""Gap between two parts of one line, in heights of a letter: what lies between was written over anatomy and not found."""
BRIDGED = 4
"""Slices without a found line between two with one that are taken to show it too."""


def joined(marks: list[Mark]) -> list[Mark]:
    """Join the lines that stand at the same place in different slices.

    Parameters
    ----------
    marks : list of Mark
        Lines, each in some slices.

    Returns
    -------
    list of Mark
        One mark for each place and run of slices: the box around all its lines, in all slices from the first to the last of the run.
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
    """Whether two lines share most of their height, and touch or nearly so."""
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
