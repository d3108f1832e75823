"""The series of a listed folder: a private table for the person who names kinds, and what `sequence_map` matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.config.sequence_map import MappedSequence
from neuralmedbench.errors import DataError
from neuralmedbench.files import dicom
from neuralmedbench.ingest.grouping import CaseFiles
from neuralmedbench.ingest.persons_labels import disagree, fitting_entries, numbers_of
from neuralmedbench.ingest.raw_files import frames_of, stem_of
from neuralmedbench.ingest.raw_series import RawSeries, sort_into_series
from neuralmedbench.ingest.sequences import b_value_of, label_of_header
from neuralmedbench.records.case import Sequence
from neuralmedbench.runtime.atomic_write import write_tsv

KEYWORDS = ("Modality", "SeriesNumber", "SeriesDescription", "ProtocolName", "ImageType", "ContrastBolusAgent")


@dataclass(frozen=True)
class ListedSeries:
    """One series of a listed case, with words of its header: private.

    Attributes
    ----------
    series_id : str
        As ingest will name it.
    files : int
        Number of its files.
    words : tuple of str
        Values of `KEYWORDS`; of a NIfTI file none.
    file_name : str
        Name of a NIfTI file; empty for DICOM.
    kind : str
        Kind by its header; empty for NIfTI, whose voxels are not read here.
    entries : tuple of int
        Places of the entries of `sequence_map` that it fits.
    """

    series_id: str
    files: int
    words: tuple[str, ...]
    file_name: str
    kind: str
    entries: tuple[int, ...]


def series_of_case(case: CaseFiles) -> list[RawSeries]:
    """Sort the scans of a case into series as ingest does, with the same ids."""
    paths = sorted(case.scans, key=lambda scan: scan.path)
    numbered = (replace(scan, number=number) for number, scan in enumerate(paths, start=1))
    return sort_into_series(frame for scan in numbered for frame in frames_of(scan)).series


def listed_series(series: RawSeries, mapping: SequenceOf[MappedSequence]) -> ListedSeries:
    """Describe one series; `mapping` is the `sequence_map` of the benchmark."""
    try:
        entries = tuple(fitting_entries(series, mapping))
    except DataError:  # a damaged sidecar: ingest names it
        entries = ()
    header = series.header
    if header is None:
        return ListedSeries(series.series_id, len(series.numbers), ("",) * len(KEYWORDS), stem_of(series.scans[0].path), "", entries)
    kind = label_of_header(header, [b_value_of(scan.header) for scan in series.scans if scan.header is not None]).sequence
    words = tuple(dicom.text(header, keyword) for keyword in KEYWORDS)
    return ListedSeries(series.series_id, len(series.numbers), words, "", "" if kind is Sequence.UNKNOWN else kind.value, entries)


def map_notices(
    cases: Mapping[str, Iterable[ListedSeries]], overrides: Mapping[str, Mapping[str, str]], mapping: SequenceOf[MappedSequence]
) -> list[str]:
    """Return what a person should know about `sequence_map`, a line each: entries without a series, and series with entries that disagree.

    `cases`: series by case id. `overrides`: entries of the case table by case id, which precede the map.
    """
    fitted: set[int] = set()
    doubtful: dict[tuple[int, ...], list[str]] = {}
    for case, series in cases.items():
        for one in series:
            fitted |= set(one.entries)
            if disagree(one.entries, mapping) and one.series_id not in overrides.get(case, {}):
                doubtful.setdefault(one.entries, []).append(f"{one.series_id} of case {case}")
    lines = [
        f"sequence_map: entry {place + 1} fits no series; series.tsv beside the listing has the words of all headers"
        for place in range(len(mapping))
        if place not in fitted
    ]
    for entries, names in sorted(doubtful.items()):
        lines.append(
            f"sequence_map: entries {numbers_of(entries)} disagree about {len(names)} series (first: {names[0]}), which will not be used: make"
            " them exclusive, or name the kind in `sequence_overrides`"
        )
    return lines


def write_series_table(path: Path, cases: Mapping[str, Iterable[ListedSeries]]) -> None:
    """Write the series of all cases, with words of their headers: for the private zone."""
    columns = ("case_id", "series_id", "files", "kind", "sequence_map", *KEYWORDS, "FileName")
    rows = [
        (case, one.series_id, one.files, one.kind, numbers_of(one.entries), *one.words, one.file_name)
        for case, series in cases.items()
        for one in series
    ]
    write_tsv(path, [columns, *rows])
