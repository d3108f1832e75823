"""Primary and secondary suppression: hide numbers about parts of a benchmark so that none about few patients can be derived from the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neuralmedbench.estimates.intervals import Floats

Label = tuple[str, str]
"""The part that a number is about: the grouping of the items, and the group."""

Mask = int
"""A set of items, one bit per item: Python's integers are fast sets."""

TOLERANCE = 1e-7
"""Largest residual of an exact least-squares fit to zeros and ones."""


def mask_of(places: Iterable[int]) -> Mask:
    """Return the set of some indices.

    Examples
    --------
    >>> mask_of([0, 2])
    5
    """
    found = 0
    for place in places:
        found |= 1 << place
    return found


class CellSize:
    """The patients of the items, to decide whether a set of items belongs to few patients."""

    def __init__(self, patients: Sequence[str], fewest: int) -> None:
        own: dict[str, list[int]] = defaultdict(list)
        for place, patient in enumerate(patients):
            own[patient].append(place)
        self.items, self.fewest = len(patients), fewest
        self._patients = {patient: mask_of(places) for patient, places in own.items()}
        self._most = max((len(places) for places in own.values()), default=1)

    def few(self, mask: Mask) -> bool:
        """Return True if a set holds items of at least one patient, but of fewer patients than may be shown."""
        if not mask or mask.bit_count() >= self.fewest * self._most:
            return False
        return sum(bool(mask & own) for own in self._patients.values()) < self.fewest


def two_weights_tell(items: Iterable[int], fewest: int) -> bool:
    """Return True if a mean over items and one over patients tell together of fewer than `fewest` patients.

    Both are sums over patients, with the weights number of items and 1. Their difference leaves out the patients with one number of items,
    whichever it is, so those with another number must be none or many.

    Parameters
    ----------
    items : iterable of int
        Number of items of each patient.
    fewest : int
        Smallest number of patients that may be told of.

    Examples
    --------
    >>> two_weights_tell([2] * 30, 10), two_weights_tell([2] * 29 + [6], 10), two_weights_tell([1, 2, 3] * 10, 10)
    (False, True, False)
    """
    sizes = Counter(items)
    return any(0 < sizes.total() - number < fewest for number in sizes.values())


def suppressed_cells(cells: Mapping[Label, Mask], total: Mask, size: CellSize) -> tuple[set[Label], set[Label]]:
    """Return the parts to hide.

    Parameters
    ----------
    cells : mapping of Label to Mask
        Items of every number that could be shown; the groups of one grouping may overlap.
    total : Mask
        Set of items whose numbers are always shown.
    size : CellSize
        Patients of the items, and the least number of patients of a shown number.

    Returns
    -------
    small : set of Label
        Parts about few patients (primary suppression).
    companions : set of Label
        Parts to hide with them (secondary suppression): else a difference of shown parts would be about few patients, or a small part
        would be a sum and difference of shown ones.

    Notes
    -----
    Two rules, applied until both hold. The rest of a shown set, after removing the shown groups of one grouping (or the
    total) within it, is empty or about enough patients. And no small set is a linear combination of shown sets (of their items). The
    smallest set involved is hidden. Primary and complementary suppression: Hundepool et al., Statistical Disclosure Control (Wiley 2012), chapter 4.
    """
    small = {label for label, mask in cells.items() if size.few(mask)}
    hidden = set(small)
    while True:
        shown = {label: cells[label] for label in sorted(cells.keys() - hidden) if cells[label]}
        # hide one more part at a time until no part about few patients can be derived
        more = _beyond(shown, total, size) or _difference(shown, total, size)
        more = more or _combination(shown, total, sorted({cells[label] for label in small}), size.items)
        if more is None:
            return small, hidden - small
        hidden.add(more)


def _beyond(shown: Mapping[Label, Mask], total: Mask, size: CellSize) -> Label | None:
    return next((label for label, mask in shown.items() if total and not total & ~mask and size.few(mask & ~total)), None)


def _difference(shown: Mapping[Label, Mask], total: Mask, size: CellSize) -> Label | None:
    groupings: dict[str, list[tuple[Label, Mask]]] = defaultdict(list)
    for label, mask in shown.items():
        groupings[label[0]].append((label, mask))
    for whole in dict.fromkeys((total, *shown.values())):
        for groups in groupings.values():
            # remove the shown groups of one grouping from a shown set
            within = [(label, mask) for label, mask in groups if not mask & ~whole]
            rest = whole
            for _, mask in within:
                rest &= ~mask
            if within and size.few(rest):
                return min(within, key=lambda group: (group[1].bit_count(), group[0]))[0]
    return None


def _combination(shown: Mapping[Label, Mask], total: Mask, targets: Sequence[Mask], size: int) -> Label | None:
    if not targets or not shown:
        return None
    columns = list(dict.fromkeys((*shown.values(), total)))
    atoms = np.unique(_bits([*columns, *targets], size), axis=0)  # items that are in the same sets are one unknown
    known, wanted = atoms[:, : len(columns)], atoms[:, len(columns) :]
    # a small set that the shown ones fit exactly could be derived from them
    factors = np.linalg.lstsq(known, wanted, rcond=None)[0]
    found = np.abs(known @ factors - wanted).max(axis=0) < TOLERANCE
    for target in np.flatnonzero(found):
        used = {columns[place] for place in np.flatnonzero(np.abs(factors[:, target]) > TOLERANCE)}
        candidates = [label for label, mask in shown.items() if mask in used]
        if candidates:
            return min(candidates, key=lambda label: (shown[label].bit_count(), label))
    return None


def _bits(masks: Sequence[Mask], size: int) -> Floats:
    """Return sets as columns: shape (items, sets), 0 or 1."""
    length = (size + 7) // 8
    rows = [np.frombuffer(mask.to_bytes(length, "little"), dtype=np.uint8) for mask in masks]
    return np.unpackbits(np.array(rows), axis=1, bitorder="little")[:, :size].T.astype(np.float64)
