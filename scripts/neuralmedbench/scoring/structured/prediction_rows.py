"""Read the JSONL of the published evaluator: one answer a line, with its labels; no line can stop the reading."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.yaml_text import load_yaml

UNDETERMINED = "undetermined"
"""Label of an answer that is null."""

LABELS = Path(__file__).with_name("published_labels.yaml")

NO_REFERENCE = (None, "", "null", "nan")
"""Values of the reference, compared as they stand, that take a row out of the series of a field."""

Rule = tuple[frozenset[str], tuple[str, ...], tuple[str, ...], str]

ECE_BINS = 10
"""Bins of the published code for the expected calibration error."""

UNKNOWN_MODEL = "UNKNOWN_MODEL"
"""Name of the model of an answer that names none; the published evaluator's."""

NOTES = {
    "malformed": "lines are no JSON",
    "not_utf8": "lines are not UTF-8",
    "not_object": "lines are JSON but no object",
    "failed_without_model": "failed calls name no model and count for none",
    "answered_without_model": f"answers name no model and count for {UNKNOWN_MODEL}",
    "answer_not_object": "answers are no object and count as null in every field",
    "not_a_number": "answers state a confidence that is not a number (NaN)",
    "duplicates": "rows are further rows of a model and a picture",
    "without_picture": "rows name no picture",
}
"""What is counted while reading, and what is said about it."""


@dataclass(frozen=True, kw_only=True)
class PredictionRow:
    """One line: model (or `UNKNOWN_MODEL`), picture (may be empty), whether its status is success, reference metadata, parsed answer.

    The published runners count a reply that could not be parsed as a success.
    """

    line: int
    model: str
    picture: str
    success: bool
    reference: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Rows of a file in its order, and how many lines were what (keys of `NOTES`, and `lines` and `rows`)."""

    rows: tuple[PredictionRow, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def warnings(self) -> list[str]:
        """What a person should know about the file, one clause each."""
        return [f"{self.counts[name]:,} {words}" for name, words in NOTES.items() if self.counts[name]]

    @property
    def reading(self) -> dict[str, int]:
        """Every count, zeros too."""
        return {name: self.counts[name] for name in ("lines", "rows", *NOTES)}


def read_predictions(path: Path, *, skip_byte_order_mark: bool = True) -> Predictions:
    """Read a file of predictions.

    Parameters
    ----------
    path : Path
        One JSON object a line: `input` (image_path, model_requested, metadata) and `output` (status, parsed_response); all else is ignored.
    skip_byte_order_mark : bool
        Whether a mark before the first line is no part of it. The published evaluator takes it as one, and so loses the line.

    Returns
    -------
    Predictions
        Rows that count for a model; the other lines are counted.

    Raises
    ------
    DataError
        If the file cannot be read, or no line of it counts for any model.
    """
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8-sig" if skip_byte_order_mark else "utf-8", errors="surrogateescape") as file:
            rows = tuple(_rows(file, counts))
    except OSError as error:
        message = f"{path.name}: the file cannot be read ({type(error).__name__}); expected JSONL, one answer a line"
        raise DataError(message) from None
    counts["rows"] = len(rows)
    named = Counter((row.model, row.picture) for row in rows if row.picture)
    counts["duplicates"] = sum(named.values()) - len(named)
    counts["without_picture"] = sum(not row.picture for row in rows)
    found = Predictions(rows=rows, counts=counts)
    if not rows:
        said = "; ".join(found.warnings) or "it is empty"
        message = f"{path.name}: no line holds an answer of a model ({said}); expected JSONL with `input` and `output` in every line"
        raise DataError(message)
    return found


def _rows(lines: Iterator[str], counts: Counter[str]) -> Iterator[PredictionRow]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        counts["lines"] += 1
        try:
            text.encode()
            value = json.loads(text)
        except UnicodeEncodeError:  # bytes that are not UTF-8 were read as lone surrogates
            counts["not_utf8"] += 1
        except (ValueError, RecursionError):
            counts["malformed"] += 1
        else:
            row = _row(number, value, counts)
            if row is not None:
                yield row


def _row(number: int, value: object, counts: Counter[str]) -> PredictionRow | None:
    if not isinstance(value, dict):
        counts["not_object"] += 1
        return None
    given, output = _object(value.get("input")), _object(value.get("output"))
    name, success = given.get("model_requested"), output.get("status") == "success"
    model = name.encode(errors="replace").decode() if isinstance(name, str) else ""  # half a surrogate pair cannot be written
    if not model:
        counts["answered_without_model" if success else "failed_without_model"] += 1
        if not success:
            return None
    answer, picture = output.get("parsed_response"), given.get("image_path")
    if success and answer and not isinstance(answer, dict):
        counts["answer_not_object"] += 1
    row = PredictionRow(
        line=number,
        model=model or UNKNOWN_MODEL,
        picture=picture if isinstance(picture, str) else "",
        success=success,
        reference=_object(given.get("metadata")),
        answer=_object(answer),
    )
    counts["not_a_number"] += success and math.isnan(published_confidence(row.answer.get("diagnosis_confidence")))
    return row


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def published_confidence(value: Any) -> float:
    """Give the published evaluator's number of a stated confidence: 0 for one that is missing or no number, not clipped, NaN for NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def published_label(series: str, value: object) -> str:
    """Give the published evaluator's label of a value, of an answer and of the reference alike; `undetermined` for null.

    Examples
    --------
    >>> published_label("class", "Pituitary_Tumor"), published_label("sub", "papilloma"), published_label("mod", "fMRI")
    ('tumor', 'papiloma', 'mri')
    """
    if value is None:
        return UNDETERMINED
    return _label(series, _spelled(value).strip().lower().replace("_", " "))


@lru_cache(maxsize=10_000)
def _label(series: str, text: str) -> str:
    for texts, parts, together, label in _rules(series):
        if text in texts or any(part in text for part in parts) or (together and all(part in text for part in together)):
            return label
    return text


@cache
def _rules(series: str) -> tuple[Rule, ...]:
    """Rules of one series in their order: texts, parts of which one is enough, parts that all have to be there, label."""
    table: dict[str, list[dict[str, Any]]] = load_yaml(LABELS.read_text(encoding="utf-8"))
    return tuple(
        (frozenset(rule.get("is", ())), tuple(rule.get("has", ())), tuple(rule.get("has_all", ())), rule["label"]) for rule in table[series]
    )


def _spelled(value: object) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError):  # nested too deep to be written out, or a number of thousands of digits
        return "unreadable"


def has_reference(value: object) -> bool:
    """Tell whether a value of the reference puts its row into the series of the field; a list or an object is none."""
    return not isinstance(value, list | dict) and value not in NO_REFERENCE
