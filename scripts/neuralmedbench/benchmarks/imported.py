"""After an import: the benchmark's yaml, and what a person is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.benchmarks.adapters.entry import DataSet
from neuralmedbench.benchmarks.importing import LONG_WORDS, Places
from neuralmedbench.config.load import read_yaml
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.items import Kind
from neuralmedbench.records.questions import IMPORT_RECORD, ImportRecord
from neuralmedbench.runtime.atomic_write import write_text

SHOWN = 5


def check_name(path: Path, places: Places) -> None:
    """Refuse the name of another benchmark: an import replaces the folder of its raw files as a whole.

    Parameters
    ----------
    path : Path
        The yaml of a benchmark of this name.
    places : Places
        Where an import of this name would write.

    Raises
    ------
    ConfigError
        If the yaml is of another benchmark, or the folder holds files that no import wrote.
    """
    values = read_yaml(path) if path.exists() else None
    other = isinstance(values, dict) and Path(values.get("questions") or "").as_posix() != places.tables.as_posix()
    if other or (places.pictures.exists() and not (places.tables / IMPORT_RECORD).exists()):
        message = f"{path.stem} is the name of another benchmark, whose raw files would be replaced; give another one with --name"
        raise ConfigError(message)


def write_yaml(path: Path, data_set: DataSet, record: ImportRecord, places: Places) -> bool:
    """Write the yaml of an imported benchmark when there is none: a person's settings are never replaced.

    Returns
    -------
    bool
        Whether it was written.
    """
    values = {
        "title": data_set.title,
        "kind": (Kind.PICTURES if record.images else Kind.TEXT).value,
        "axis": data_set.axis.value,
        "source": places.pictures.as_posix(),
        "questions": places.tables.as_posix(),
        "private": True,
        "subjects": "public",
        "deidentification": {"burned_in": "keep"},
        "arms": ["full", "no_image"] if record.images else ["full"],
        "samples": data_set.samples,
        "label_policy": data_set.label_policy,
    }
    head = f"# Imported by scripts/import_benchmark.py. Licence: {data_set.licence}.\n# private: true keeps it out of what is recorded and shared.\n"
    return write_new(path, head, values)


def write_new(path: Path, head: str, values: Mapping[str, Any]) -> bool:
    """Write a yaml below lines of comment, unless one is there; gives whether it was written."""
    if path.exists():
        return False
    write_text(path, head + yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=120))
    return True


def summary(record: ImportRecord, *, written: bool) -> str:
    """Say what was found: expected and imported counts always, refusals by reason, and what is empty."""
    expected = f"{record.expected} published, " if record.expected else ""
    counts = f"{expected}{record.found} found, {record.imported} imported, {len(record.refused)} refused, {record.images} pictures"
    lines = [f"{record.benchmark}: {counts}, {record.without_answer} without an answer"]
    reasons = Counter(refusal.reason for refusal in record.refused).most_common()
    for reason, number in reasons[:SHOWN]:
        first = next(refusal.where for refusal in record.refused if refusal.reason == reason)
        lines.append(f"  refused {number}: {reason} (first: {first})")
    if others := sum(number for _, number in reasons[SHOWN:]):
        lines.append(f"  refused {others} more, for other reasons: import.json has every row")
    lines += [f"  empty in {number} questions: {name}" for name, number in sorted(record.empty.items())]
    if record.long_questions:
        lines.append(
            f"  {record.long_questions} questions of more than {LONG_WORDS} words: what they tell of the case is out of reach of max_case_words and"
            " of the arms; `case_in_question: true` in a mapping puts it into the text of the case"
        )
    lines += [f"  sha256 {digest}  {name}" for name, digest in record.sources.items()]
    kept = "written" if written else "was there and is left as it is"
    lines.append(f"config/benchmarks/{record.benchmark}.yaml {kept}; add {record.benchmark} to `benchmarks` of your configuration")
    return "\n".join(lines)
