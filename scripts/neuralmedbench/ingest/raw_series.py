"""The raw files of a case, sorted into series; every file that is no part of a scan is set aside with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.files import dicom
from neuralmedbench.ingest.bids import applies_to, entities_of
from neuralmedbench.ingest.orientation import slice_position
from neuralmedbench.ingest.raw_files import Kind, RawScan, stem_of
from neuralmedbench.ingest.set_aside import file_reason, is_several_planes

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

SPLITTING_TYPES = frozenset({
    "ADC", "FA", "PHASE", "P", "R", "I", "TRACEW", "EADC", "MPR", "PROJECTION IMAGE", "MIP", "MNIP", "MINIP", "SUBTRACTION", "DERIVED",
    "PHASE MAP", "ADC MAP", "T1 MAP", "T2 MAP", "IP", "OP", "W", "F",
})  # fmt: skip
"""Words of ImageType that make another kind of image within one series."""


@dataclass(frozen=True)
class RawSeries:
    """The files of one series.

    Attributes
    ----------
    series_id : str
        `series-01`...
    scans : tuple of RawScan
        DICOM images in the order of their positions, or one NIfTI file.
    beside : tuple of RawScan
        What belongs to a NIfTI file: gradients, sidecars; what BIDS lets it inherit first, from far to near.
    """

    series_id: str
    scans: tuple[RawScan, ...]
    beside: tuple[RawScan, ...] = ()

    @property
    def header(self) -> Dataset | None:
        """Header of the first image; None for NIfTI."""
        return self.scans[0].header

    @property
    def numbers(self) -> list[int]:
        """Numbers of its files, ascending."""
        return sorted({scan.number for scan in (*self.scans, *self.beside)})


@dataclass
class Sorted:
    """All raw files of a case: the series, and the reasons of the others by file number."""

    series: list[RawSeries] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)


def sort_into_series(scans: Iterable[RawScan]) -> Sorted:
    """Sort raw files into series.

    Parameters
    ----------
    scans : iterable of RawScan
        All raw files of one case, multi-frame objects frame by frame.

    Returns
    -------
    Sorted
        DICOM series by series number, then NIfTI files by name; ids count all of them, so that an override of a label never
        changes another series' id.
    """
    result = Sorted()
    groups: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    seen: set[str] = set()
    volumes: list[RawScan] = []
    beside: list[RawScan] = []
    for scan in scans:
        if scan.header is not None:
            uid = dicom.text(scan.header, "SOPInstanceUID")
            reason = "duplicate of another file" if uid in seen else file_reason(scan.header)
            seen |= {uid} - {""}
            if reason:
                result.set_aside[scan.number] = reason
            else:
                groups[(dicom.number(scan.header, "SeriesNumber") or 0.0, dicom.text(scan.header, "SeriesInstanceUID"))].append(scan)
        elif scan.kind is Kind.NIFTI:
            volumes.append(scan)
        elif scan.kind is Kind.BESIDE:
            beside.append(scan)
        else:
            result.set_aside[scan.number] = scan.why_not
    found: list[tuple[tuple[RawScan, ...], tuple[RawScan, ...]]] = []
    for key in sorted(groups):
        found += [(part, ()) for part in _split(groups[key], result)]
    for scan in sorted(volumes, key=lambda scan: scan.path.as_posix()):
        found.append(((scan,), tuple(sorted((one for one in beside if _belongs(one.path, scan.path)), key=_nearness))))
    taken = {one.number for _, extra in found for one in extra}
    result.set_aside.update({scan.number: "gradients or a sidecar without their scan" for scan in beside if scan.number not in taken})
    result.series = [RawSeries(f"series-{place:02d}", part, extra) for place, (part, extra) in enumerate(found, start=1)]
    return result


def _belongs(beside: Path, scan: Path) -> bool:
    """Whether gradients or a sidecar say something about a scan: by one name in one folder, or as BIDS lets scans inherit."""
    one, other = stem_of(beside), stem_of(scan)
    if beside.parent == scan.parent and one == other:
        return True
    return beside.parent in scan.parents and applies_to(one, other)


def _nearness(beside: RawScan) -> tuple[int, int, str]:
    """Far folders and names that say little first: what comes later wins."""
    return len(beside.path.parts), len(entities_of(stem_of(beside.path))), beside.path.as_posix()


def _split(scans: list[RawScan], result: Sorted) -> list[tuple[RawScan, ...]]:
    """One SeriesInstanceUID may hold several kinds of image: echoes, maps, orientations."""
    parts: dict[tuple[object, ...], list[RawScan]] = defaultdict(list)
    for scan in scans:
        parts[_kind_of_image(scan.header)].append(scan)
    if is_several_planes([part[0].header for part in parts.values()], len(scans)):
        result.set_aside.update({scan.number: "localizer (few slices in several planes)" for scan in scans})
        return []
    return [tuple(sorted(part, key=_position_key(part[0].header))) for _, part in sorted(parts.items(), key=lambda part: str(part[0]))]


def _kind_of_image(header: Dataset | None) -> tuple[object, ...]:
    if header is None:
        return ()
    orientation = tuple(round(cosine, 1) + 0.0 for cosine in dicom.numbers(header, "ImageOrientationPatient"))
    types = tuple(sorted(SPLITTING_TYPES & {part.replace("_", " ") for part in dicom.texts(header, "ImageType")}))
    echo = round(dicom.number(header, "EchoTime") or 0.0)
    return echo, types, orientation, dicom.number(header, "Rows"), dicom.number(header, "Columns")


def _position_key(first: Dataset | None) -> Callable[[RawScan], tuple[float, float, int]]:
    def key(scan: RawScan) -> tuple[float, float, int]:
        header = scan.header
        if header is None or first is None:
            return 0.0, 0.0, scan.number
        return slice_position(header, first), dicom.number(header, "InstanceNumber") or 0.0, scan.number

    return key
