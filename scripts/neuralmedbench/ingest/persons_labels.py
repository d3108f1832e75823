"""Labels that a person gave to series: by id in the case table, or by patterns for all cases of a benchmark (`sequence_map`)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from neuralmedbench.config.sequence_map import MappedSequence, Pattern
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import KINDS, LEFT_OUT, split_override
from neuralmedbench.ingest.import_series import read_object
from neuralmedbench.ingest.raw_files import stem_of
from neuralmedbench.ingest.raw_series import RawSeries
from neuralmedbench.ingest.sequences import BY_MAP, BY_PERSON, SequenceLabel
from neuralmedbench.records.case import Sequence

FILE_NAME = "FileName"
NOT_WANTED = "left out by a person ({})"


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
    fields: dict[str, object] = {}
    for sidecar in series.sidecars:  # from far to near
        fields |= read_object(sidecar.path) if sidecar.path.suffix.lower() == ".json" else {}
    fields[FILE_NAME] = stem_of(series.scans[0].path)
    found = {key: fields.get(key) for key in keys}
    return {key: () if value is None else tuple(map(str, value if isinstance(value, list) else [value])) for key, value in found.items()}
