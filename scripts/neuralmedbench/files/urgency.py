"""Read which diagnoses of a vocabulary are time-critical, from the file beside it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.vocabulary import read_yaml_record
from neuralmedbench.records.urgency import Urgency
from neuralmedbench.records.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _File(Urgency):
    version: str
    status: str


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
    found = read_yaml_record(path, _File)
    for key in (*found.time_critical, *found.not_time_critical):
        if key not in vocabulary.diagnoses:
            message = f"{path.as_posix()}: the vocabulary has no diagnosis {key!r}; correct the key or remove the line"
            raise ConfigError(message)
    for key, entry in found.time_critical.items():
        if not entry.source.strip():
            message = f"{path.as_posix()}: {key}: a time-critical diagnosis needs its source (body and year)"
            raise ConfigError(message)
    return found
