"""Read and check the vocabulary: every name belongs to one diagnosis, every parent exists, no diagnosis is its own ancestor."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.records.vocabulary import Diagnosis, Region, Regions, Vocabulary, normal_form

T = TypeVar("T")


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


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a vocabulary.

    Parameters
    ----------
    path : Path
        A YAML file with `version`, `diagnoses` (key -> fields of :class:`Diagnosis`), `locations` (term -> synonyms) and, if sites matter,
        `regions` (name -> fields of :class:`Region`).

    Returns
    -------
    Vocabulary
        The checked vocabulary.

    Raises
    ------
    ConfigError
        If the file is absent or malformed, a name or a code belongs to two diagnoses, or a parent does not exist.
    """
    try:
        file = read_yaml_record(path, _File)
    except FileNotFoundError:
        message = f"{path.as_posix()}: the vocabulary is not there; set `vocabulary` in config/config.yaml"
        raise ConfigError(message) from None
    diagnoses: dict[str, Diagnosis] = {key: replace(entry, key=key) for key, entry in file.diagnoses.items()}
    vocabulary = Vocabulary(
        version=file.version, digest=sha256_of(path), diagnoses=diagnoses, locations=file.locations, regions=Regions(dict(file.regions))
    )
    _check(path, vocabulary)
    return vocabulary


def read_yaml_record(path: Path, record: type[T]) -> T:
    """Read the vocabulary, or a file beside it, as one record; an absent file is a FileNotFoundError, a malformed one a ConfigError."""
    try:
        return TypeAdapter(record).validate_python(load_yaml(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError):
        message = f"{path.as_posix()}: not valid YAML"
        raise ConfigError(message) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{path.as_posix()}: {where or 'the file'}: {first['msg'][0].lower()}{first['msg'][1:]}"
        raise ConfigError(message) from None


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
