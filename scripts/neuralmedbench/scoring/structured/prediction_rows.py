"""Read the JSONL files of the published evaluator: one answer per line, with its labels; no invalid line stops the reading."""

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
"""Label of a null answer."""

LABELS = Path(__file__).with_name("published_labels.yaml")

NO_REFERENCE = (None, "", "null", "nan")
"""Reference values that exclude a row from a field; compared without normalisation."""

Rule = tuple[frozenset[str], tuple[str, ...], tuple[str, ...], str]

ECE_BINS = 10
"""Bins of the published code for the expected calibration error."""

UNKNOWN_MODEL = "UNKNOWN_MODEL"
"""Name of the model of an answer that names none; the published evaluator's."""

NOTES = {
    "malformed": "lines are not valid JSON",
    "not_utf8": "lines are not UTF-8",
    "not_object": "lines are JSON but not an object",
    "failed_without_model": "failed calls name no model and are not counted",
    "answered_without_model": f"answers name no model and count for {UNKNOWN_MODEL}",
    "answer_not_object": "answers are not an object and count as null in every field",
    "not_a_number": "answers state a confidence that is not a number (NaN)",
    "duplicates": "rows are further rows of a model and a picture",
    "without_picture": "rows name no picture",
}
"""Problems counted while reading, with the text of their warnings."""


@dataclass(frozen=True, kw_only=True)
class PredictionRow:
    """One line: model (or `UNKNOWN_MODEL`), picture (may be empty), success (its status), reference metadata, parsed answer.

    The published runners report a reply that could not be parsed as a success.
    """

    line: int
    model: str
    picture: str
    success: bool
    reference: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Rows of a file in its order, and counts by the keys of `NOTES`, with `lines` and `rows`."""

    rows: tuple[PredictionRow, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the file, one clause each."""
        return [f"{self.counts[name]:,} {words}" for name, words in NOTES.items() if self.counts[name]]

    @property
    def reading(self) -> dict[str, int]:
        """All counts, including zeros."""
        return {name: self.counts[name] for name in ("lines", "rows", *NOTES)}


def read_predictions(path: Path, *, skip_byte_order_mark: bool = True) -> Predictions:
    """Read a file of predictions.

    Parameters
    ----------
    path : Path
        One JSON object per line: `input` (image_path, model_requested, metadata) and `output` (status, parsed_response); other keys are
        ignored.
    skip_byte_order_mark : bool
        True to skip a byte order mark before the first line. The published evaluator does not, and so loses that line.

    Returns
    -------
    Predictions
        Rows that count for a model; problems of the other lines are counted.

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
    by_picture = Counter((row.model, row.picture) for row in rows if row.picture)
    counts["duplicates"] = sum(by_picture.values()) - len(by_picture)
    counts["without_picture"] = sum(not row.picture for row in rows)
    predictions = Predictions(rows=rows, counts=counts)
    if not rows:
        problems = "; ".join(predictions.warnings) or "it is empty"
        message = f"{path.name}: no line has an answer of a model ({problems}); expected JSONL with `input` and `output` in every line"
        raise DataError(message)
    return predictions


def _rows(lines: Iterator[str], counts: Counter[str]) -> Iterator[PredictionRow]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        counts["lines"] += 1
        try:
            text.encode()  # fails for bytes that are not UTF-8
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
    """Return a stated confidence as the published evaluator reads it: 0 if missing or not a number, not clipped, NaN for NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def published_label(series: str, value: object) -> str:
    """Return the published evaluator's label of a value, in answers and reference alike; `undetermined` for null.

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
    """Read the rules of one field in order: exact texts, parts of which any one matches, parts that must all occur, label."""
    table: dict[str, list[dict[str, Any]]] = load_yaml(LABELS.read_text(encoding="utf-8"))
    return tuple(
        (frozenset(rule.get("is", ())), tuple(rule.get("has", ())), tuple(rule.get("has_all", ())), rule["label"]) for rule in table[series]
    )


def _spelled(value: object) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError):  # nested too deep, or a number with thousands of digits
        return "unreadable"


def has_reference(value: object) -> bool:
    """Return True if a reference value includes its row in a field; lists and objects do not."""
    return not isinstance(value, list | dict) and value not in NO_REFERENCE
