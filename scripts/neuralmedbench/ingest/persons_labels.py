"""Labels that a person gave to series: by id in the case table, or by patterns for all cases of a benchmark (`sequence_map`).

The series of a listed folder stand in a private table for that person, with what `sequence_map` matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from neuralmedbench.config.benchmark import MappedSequence, Pattern
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import KINDS, LEFT_OUT, split_override
from neuralmedbench.ingest.grouping import CaseFiles
from neuralmedbench.ingest.raw_files import frames_of, merge_sidecars, stem_of
from neuralmedbench.ingest.raw_series import RawSeries, sort_into_series
from neuralmedbench.ingest.sequences import BY_MAP, BY_PERSON, SequenceLabel, b_value_of, label_of_header
from neuralmedbench.records.case import Sequence
from neuralmedbench.runtime.atomic_write import write_tsv

FILE_NAME = "FileName"
NOT_WANTED = "left out by a person ({})"
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


@dataclass(frozen=True)
class NamedKinds:
    """Kinds that a person named.

    Attributes
    ----------
    overrides : mapping of str to str
        Entries of a case by series id: a kind, `none`, or a kind and an agent (`ceT1w:gadobutrol`). They precede `mapping`.
    mapping : sequence of MappedSequence
        `sequence_map` of the benchmark.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    mapping: SequenceOf[MappedSequence] = ()

    def label_of(self, series: RawSeries) -> SequenceLabel | None:
        """Return a person's label of a series; None if nobody named it, an unknown sequence if only the agent was named.

        Raises
        ------
        DataError
            If a person left the series out, or entries of `mapping` that disagree fit it.
        ConfigError
            If an override names an unknown kind.
        """
        if series.series_id in self.overrides:
            kind, agent = split_override(self.overrides[series.series_id])
            if kind == LEFT_OUT:
                raise DataError(NOT_WANTED.format("sequence_overrides"))
            if kind not in KINDS:
                message = f"sequence_overrides: {series.series_id} is set to an unknown kind; known kinds: {', '.join(KINDS)}, {LEFT_OUT}"
                raise ConfigError(message)
            return SequenceLabel(Sequence(kind), (BY_PERSON,), agent)
        fitting = fitting_entries(series, self.mapping)
        if not fitting:
            return None
        if disagree(fitting, self.mapping):
            message = f"sequence_map: entries {numbers_of(fitting)} fit it and disagree; make them exclusive, or name its kind in `sequence_overrides`"
            raise DataError(message)
        entry = self.mapping[fitting[0]]
        if entry.sequence == LEFT_OUT:
            raise DataError(NOT_WANTED.format(f"sequence_map, entry {numbers_of(fitting)}"))
        return SequenceLabel(Sequence(entry.sequence) if entry.sequence else Sequence.UNKNOWN, (BY_MAP,), entry.contrast_agent or "")


def fitting_entries(series: RawSeries, mapping: SequenceOf[MappedSequence]) -> list[int]:
    """Return the places of the entries of `sequence_map` whose criteria a series fits."""
    if not mapping:
        return []
    values = _values(series, {key for entry in mapping for key in entry.criteria})
    return [
        place
        for place, entry in enumerate(mapping)
        if all(any(_fits(pattern, values[key]) for pattern in _several(patterns)) for key, patterns in entry.criteria.items())
    ]


def disagree(fitting: SequenceOf[int], mapping: SequenceOf[MappedSequence]) -> bool:
    """Return whether entries that fit one series give it different kinds or agents."""
    return len({(mapping[place].sequence, mapping[place].contrast_agent) for place in fitting}) > 1


def numbers_of(places: SequenceOf[int]) -> str:
    """Return entries of `sequence_map` as a person counts them, from 1."""
    return " and ".join(str(place + 1) for place in places)


def _several(patterns: Pattern | tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return patterns if isinstance(patterns, tuple) else (patterns,)


def _fits(pattern: Pattern, values: SequenceOf[str]) -> bool:
    """Return whether one value, or all joined as in DICOM, fits a pattern; a number must be equal."""
    if not isinstance(pattern, str):
        return any(_number(value) == pattern for value in values)
    return any(fnmatchcase(value.casefold(), pattern.casefold()) for value in (*values, "\\".join(values)) if value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _values(series: RawSeries, keys: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of keys in the header of a series, or in the sidecars and the name of a NIfTI file."""
    if series.header is not None:
        return {key: dicom.texts(series.header, key) for key in keys}
    fields = merge_sidecars(sidecar.path for sidecar in series.sidecars if sidecar.is_json)
    fields[FILE_NAME] = stem_of(series.scans[0].path)
    found = {key: fields.get(key) for key in keys}
    return {key: () if value is None else tuple(map(str, value if isinstance(value, list) else [value])) for key, value in found.items()}


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
