"""Images that a case holds twice: slices sent again under other UIDs, and whole series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf

from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.ingest.pixels import pixel_digest
from neuralmedbench.ingest.raw_files import RawScan
from neuralmedbench.ingest.raw_series import RawSeries


def without_copies(scans: SequenceOf[RawScan]) -> tuple[tuple[RawScan, ...], tuple[RawScan, ...]]:
    """Tell the images of a series from copies of them: same place, same pixels.

    Parameters
    ----------
    scans : sequence of RawScan
        DICOM images of one series.

    Returns
    -------
    tuple of two tuples of RawScan
        What is kept, in the order of `scans`, and the copies. Pixels are read only where two images lie at the same place.
    """
    places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        places[_place(scan)].append(scan)
    most = max(len(at_one_place) for at_one_place in places.values())
    if most == 1:
        return tuple(scans), ()
    different = {place: _first_of_each(at_one_place) for place, at_one_place in places.items() if len(at_one_place) > 1}
    # several volumes lie at the same places: their empty slices are equal and are no copies
    volumes = max((len(firsts) for firsts in different.values()), default=1)
    copies: set[int] = set()
    for place, firsts in different.items():
        spare = [scan for scan in places[place] if id(scan) not in firsts]
        copies |= {id(scan) for scan in spare[max(0, volumes - len(firsts)) :]}
    return tuple(scan for scan in scans if id(scan) not in copies), tuple(scan for scan in scans if id(scan) in copies)


def _first_of_each(scans: list[RawScan]) -> set[int]:
    """Identities of the first image with each content."""
    firsts: dict[str, int] = {}
    for scan in scans:
        firsts.setdefault(pixel_digest(scan), id(scan))
    return set(firsts.values())


def copied_series(series: Iterable[RawSeries]) -> dict[str, str]:
    """Find series that were sent again: every image of them is in an earlier series, at the same place and with the same pixels.

    Parameters
    ----------
    series : iterable of RawSeries
        All series of a case.

    Returns
    -------
    dict of str to str
        By the id of the copy, the id of the series that it repeats.
    """
    found: dict[str, str] = {}
    known: list[tuple[RawSeries, dict[tuple[float, ...], list[RawScan]]]] = []
    for one in series:
        if one.header is None:
            continue
        places: dict[tuple[float, ...], list[RawScan]] = defaultdict(list)
        for scan in one.scans:
            places[_place(scan)].append(scan)
        original = next((other for other, theirs in known if set(places) <= set(theirs) and _repeats(places, theirs)), None)
        if original is None:
            known.append((one, places))
        else:
            found[one.series_id] = original.series_id
    return found


def _repeats(places: dict[tuple[float, ...], list[RawScan]], theirs: dict[tuple[float, ...], list[RawScan]]) -> bool:
    return all({pixel_digest(scan) for scan in scans} <= {pixel_digest(scan) for scan in theirs[place]} for place, scans in places.items())


def _place(scan: RawScan) -> tuple[float, ...]:
    """Where an image lies and how large it is; images of different series are compared only when this is equal."""
    header = scan.header
    if header is None:
        message = "an image without a header has no place"
        raise DataError(message)
    numbers = (*dicom.numbers(header, "ImagePositionPatient"), *dicom.numbers(header, "ImageOrientationPatient"))
    return (*(round(number, 2) + 0.0 for number in numbers), *(dicom.number(header, side) or 0.0 for side in ("Rows", "Columns")))
