"""Read and check the vocabulary with the names beside it, and the list of its time-critical diagnoses.

Every name belongs to one diagnosis, every parent exists, and no diagnosis is its own ancestor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of, sha256_of_value
from neuralmedbench.files.json_files import place_of_fault
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.vocabulary import Diagnosis, Disease, Diseases, Region, Regions, Urgency, Vocabulary, normal_form

T = TypeVar("T")
DISEASE_COLUMNS = ["id", "name", "synonyms", "within"]
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
"""German umlauts as they are written without them; the normal form turns ß into ss."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _UrgencyFile(Urgency):
    version: str
    status: str


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _Entry(Diagnosis):
    """A diagnosis in the file, without its key."""

    key: str = ""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _Region(Region):
    """A region in the file."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _File:
    version: str
    diagnoses: dict[str, _Entry]
    locations: dict[str, tuple[str, ...]]
    regions: dict[str, _Region] = field(default_factory=dict)
    other_diseases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _Source:
    name: str
    licence: str
    attribution: str


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _Names:
    """The names file: by diagnosis, language and source; kinds of a diagnosis, in English, by diagnosis (names of one kind in a list)."""

    version: str
    status: str
    sources: dict[str, _Source]
    names: dict[str, dict[str, dict[str, tuple[str, ...]]]]
    narrower: dict[str, tuple[str | tuple[str, ...], ...]] = field(default_factory=dict)


def names_path(vocabulary: Path) -> Path:
    """Return the file beside a vocabulary: `neurology.yaml` has `neurology.names.yaml`."""
    return vocabulary.with_suffix(".names.yaml")


def diseases_path(vocabulary: Path) -> Path:
    """Return the terminology beside a vocabulary: `neurology.yaml` has `neurology.diseases.tsv`."""
    return vocabulary.with_suffix(".diseases.tsv")


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a vocabulary, and beside it the names of its diagnoses (`names_path`) and a terminology (`diseases_path`), if they are there.

    Parameters
    ----------
    path : Path
        A YAML file with `version`, `diagnoses` (key -> fields of :class:`Diagnosis`), `locations` (term -> synonyms) and, if sites matter,
        `regions` (name -> fields of :class:`Region`) and `other_diseases` (names).

    Returns
    -------
    Vocabulary
        The checked vocabulary. The digest covers all files.

    Raises
    ------
    ConfigError
        If the file is absent, one of them is malformed, a name or a code belongs to two diagnoses, a parent does not exist, or the names are of
        a diagnosis, a source or a language that is not known.
    """
    return _read(path, tuple(sha256_of(one) for one in (path, names_path(path), diseases_path(path)) if one.is_file()))


@lru_cache(maxsize=4)
def _read(path: Path, digests: tuple[str, ...]) -> Vocabulary:
    """Read a vocabulary; `digests` of its files, so that a process reads the same content once."""
    try:
        file = _read_yaml_record(path, _File)
    except FileNotFoundError:
        message = f"{path.as_posix()}: the vocabulary is not there; set `vocabulary` in config/config.yaml"
        raise ConfigError(message) from None
    diagnoses: dict[str, Diagnosis] = {key: replace(entry, key=key) for key, entry in file.diagnoses.items()}
    vocabulary = Vocabulary(
        version=file.version,
        digest=digests[0] if len(digests) == 1 else sha256_of_value(list(digests)),
        diagnoses=diagnoses,
        locations=file.locations,
        regions=Regions(dict(file.regions)),
        other_diseases=file.other_diseases,
    )
    _check(path, vocabulary)
    if (beside := names_path(path)).is_file():
        vocabulary = _with_names(beside, vocabulary)
        _check(beside, vocabulary)
    if (beside := diseases_path(path)).is_file():
        vocabulary = replace(vocabulary, diseases=_read_diseases(beside))
    return vocabulary


def _read_diseases(path: Path) -> Diseases:
    """Read a table of diseases with the columns id, name, synonyms (between bars) and within (identifiers between spaces)."""
    entries: dict[str, Disease] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split("\t")
        if line.startswith("#") or cells == DISEASE_COLUMNS:
            continue
        if len(cells) != len(DISEASE_COLUMNS) or not cells[0] or not cells[1]:
            message = f"{path.as_posix()}: line {number}: expected {', '.join(DISEASE_COLUMNS)} between tabs, got {len(cells)} cells; correct the line"
            raise ConfigError(message)
        identifier, name, synonyms, within = cells
        entries[identifier] = Disease((name, *filter(None, synonyms.split("|"))), tuple(within.split()))
    return Diseases(entries)


def _read_yaml_record(path: Path, record: type[T]) -> T:
    """Read the vocabulary, or a file beside it, as one record; an absent file is a FileNotFoundError, a malformed one a ConfigError."""
    try:
        return TypeAdapter(record).validate_python(load_yaml(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError):
        message = f"{path.as_posix()}: not valid YAML"
        raise ConfigError(message) from None
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        message = f"{path.as_posix()}: {place_of_fault(error) or 'the file'}: {problem[0].lower()}{problem[1:]}"
        raise ConfigError(message) from None


def _with_names(path: Path, vocabulary: Vocabulary) -> Vocabulary:
    """Add the names of a names file to the synonyms, translations and abbreviations of their diagnoses."""
    file = _read_yaml_record(path, _Names)
    diagnoses, languages = dict(vocabulary.diagnoses), set(vocabulary.languages)
    for key in (*file.names, *file.narrower):
        if key not in diagnoses:
            message = f"{path.as_posix()}: the vocabulary has no diagnosis {key!r}; correct the key or remove it"
            raise ConfigError(message)
    for key, kinds in file.narrower.items():
        diagnoses[key] = replace(diagnoses[key], kinds=tuple((kind,) if isinstance(kind, str) else kind for kind in kinds))
    for key, by_language in file.names.items():
        written: dict[bool, list[str]] = {True: [], False: []}
        for language, by_source in by_language.items():
            if not re.fullmatch("[a-z]{2}", language):
                message = f"{path.as_posix()}: {key}: {language!r} is no language; write its two letters (ISO 639-1), such as de"
                raise ConfigError(message)
            if unknown := sorted(set(by_source) - set(file.sources)):
                message = f"{path.as_posix()}: {key}: {unknown[0]!r} is not among `sources`; add it with its licence"
                raise ConfigError(message)
            written[language == "en"] += [form for found in by_source.values() for name in found for form in _spellings(name, language)]
        short = [name for names in written.values() for name in names if name.isascii() and name.isupper()]
        english, others = ([name for name in written[of_english] if name not in short] for of_english in (True, False))
        entry = diagnoses[key]
        diagnoses[key] = replace(
            entry,
            synonyms=tuple(dict.fromkeys((*entry.synonyms, *english))),
            translations=tuple(dict.fromkeys((*entry.translations, *others))),
            abbreviations=tuple(dict.fromkeys((*entry.abbreviations, *short))),
        )
        languages |= set(by_language)
    return replace(vocabulary, diagnoses=diagnoses, languages=tuple(sorted(languages)))


def _spellings(name: str, language: str) -> Iterator[str]:
    """Yield a name, and how it is written where a keyboard lacks its umlauts, or with spaces between Chinese and Latin words."""
    yield name
    if language == "de" and (plain := name.translate(UMLAUTS)) != name:
        yield plain
    if language == "zh" and (apart := re.sub(r"(?<=[A-Za-z0-9])(?=[^\W\dA-Za-z_])|(?<=[^\W\dA-Za-z_])(?=[A-Za-z0-9])", " ", name)) != name:
        yield apart


def _check(path: Path, vocabulary: Vocabulary) -> None:
    owners: dict[str, str] = {}
    for entry in vocabulary.diagnoses.values():
        for reference in (*entry.confusable, *((entry.parent,) if entry.parent else ())):
            if reference not in vocabulary.diagnoses:
                message = f"{path.as_posix()}: {entry.key}: there is no diagnosis {reference!r}"
                raise ConfigError(message)
        _check_ancestors(path, vocabulary, entry)
        for name in {normal_form(term) for term in entry.terms} | {code.upper() for code in entry.icd10}:
            _claim(path, owners, name, entry.key)
    places: dict[str, str] = {}
    for term, synonyms in vocabulary.locations.items():
        for name in {normal_form(entry) for entry in (term, *synonyms)}:
            _claim(path, places, name, term)
    regions = vocabulary.regions.entries
    for name, region in regions.items():
        if absent := [wider for wider in region.within if wider not in regions]:
            message = f"{path.as_posix()}: regions: {name}: there is no region {absent[0]!r}"
            raise ConfigError(message)


def _check_ancestors(path: Path, vocabulary: Vocabulary, entry: Diagnosis) -> None:
    seen = {entry.key}
    parent = entry.parent
    while parent in vocabulary.diagnoses:
        if parent in seen:
            message = f"{path.as_posix()}: {entry.key}: it is its own ancestor; correct `parent`"
            raise ConfigError(message)
        seen.add(parent)
        parent = vocabulary.diagnoses[parent].parent


def _claim(path: Path, owners: dict[str, str], name: str, owner: str) -> None:
    """Assign a name to its owner; ConfigError if it is empty or belongs to another one."""
    if not name:
        message = f"{path.as_posix()}: {owner}: a name without a letter or digit"
        raise ConfigError(message)
    if owners.setdefault(name, owner) != owner:
        message = f"{path.as_posix()}: {name!r} belongs to {owners[name]} and to {owner}; give it to one of them"
        raise ConfigError(message)


def urgency_path(vocabulary: Path) -> Path:
    """Return the file beside a vocabulary: `neurology.yaml` has `neurology.urgency.yaml`."""
    return vocabulary.with_suffix(".urgency.yaml")


def read_urgency(path: Path, vocabulary: Vocabulary) -> Urgency:
    """Read which diagnoses are time-critical.

    Parameters
    ----------
    path : Path
        The file of `urgency_path`. Without one no diagnosis is known to be time-critical.
    vocabulary : Vocabulary
        The diagnoses.

    Returns
    -------
    Urgency
        Empty if there is no file.

    Raises
    ------
    ConfigError
        If the file is malformed, or lists a diagnosis that the vocabulary lacks or one without a source.
    """
    if not path.is_file():
        return Urgency()
    found = _read_yaml_record(path, _UrgencyFile)
    for key in (*found.time_critical, *found.not_time_critical):
        if key not in vocabulary.diagnoses:
            message = f"{path.as_posix()}: the vocabulary has no diagnosis {key!r}; correct the key or remove the line"
            raise ConfigError(message)
    for key, entry in found.time_critical.items():
        if not entry.source.strip():
            message = f"{path.as_posix()}: {key}: a time-critical diagnosis needs its source (body and year)"
            raise ConfigError(message)
    return found
