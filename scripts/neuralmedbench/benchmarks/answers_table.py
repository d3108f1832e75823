"""The answers table: one row per case, written by the people who know the diagnosis."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.case import Sequence as Scan
from neuralmedbench.records.columns import ANSWER_COLUMNS
from neuralmedbench.records.items import Level

V = TypeVar("V")

REQUIRED = ("case_id", "diagnosis")
SIDES = ("left", "right", "bilateral", "midline")
YES, NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0", ""})
SEQUENCES = {sequence.value.lower(): sequence.value for sequence in Scan}


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
    """One row of the answers table; the fields of the lesion are those of :class:`records.items.Lesion`."""

    case_id: str
    diagnosis: str
    icd10: str = ""
    aliases: tuple[str, ...] = ()
    differentials: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    findings_complete: bool = False
    lesion_location: str = ""
    lesion_side: str = ""
    lesion_behaviour: dict[str, str] = field(default_factory=dict)
    lesion_size_mm: float | None = None
    lesion_position_mm: tuple[float, float, float] | None = None
    lesion_extent_mm: tuple[float, float, float] | None = None
    rationale: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    harmful: tuple[str, ...] = ()
    established: str = ""
    level: Level = Level.NONE
    turn_leaders: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


def read_answers(path: Path) -> dict[str, AnswerRow]:
    """Read an answers table by case id: a CSV with `ANSWER_COLUMNS`, of which `case_id` and `diagnosis` are required; `|` separates lists.

    ConfigError if it is missing or has other columns; DataError, with line and column but never a value, for an invalid cell or a repeated
    case.
    """
    rows: dict[str, AnswerRow] = {}
    for line, cells in read_cells(path, ANSWER_COLUMNS):
        row = answer_row(f"{path.name}, line {line}", cells)
        if row.case_id in rows:
            message = f"{path.name}, line {line}: this case has a row already; keep one"
            raise DataError(message)
        rows[row.case_id] = row
    return rows


def read_cells(path: Path, known: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read the rows of an answers table with the columns `known`, each with its line number; errors as in `read_answers`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_columns(path.name, reader.fieldnames or (), known)
            table = [(reader.line_num, row) for row in reader]
    except OSError:
        message = "the answers table is not there or cannot be read; correct `answers` in the benchmark's yaml, or take it out"
        raise ConfigError(message) from None
    except (csv.Error, UnicodeDecodeError) as error:
        message = f"{path.name}: not a CSV file in UTF-8 ({type(error).__name__}); save it as CSV UTF-8"
        raise DataError(message) from None
    # DictReader puts surplus cells under the key None, and None into missing cells
    for line, row in table:
        if None in row or any(value is None for value in row.values()):
            message = (
                f"{path.name}, line {line}: expected {len(reader.fieldnames or ())} cells as in the first line;"
                " put a cell with a comma in double quotes"
            )
            raise DataError(message)
    return table


def _check_columns(name: str, columns: Sequence[str], known: Sequence[str]) -> None:
    # a table separated by semicolons or tabs has a single column
    if len(columns) == 1 and columns[0].startswith(REQUIRED):
        message = f"{name}: the cells are not separated by commas; save it as CSV with commas"
        raise ConfigError(message)
    if missing := [column for column in REQUIRED if column not in columns]:
        message = f"{name}: the column {missing[0]!r} is missing in the first line"
        raise ConfigError(message)
    # unknown columns are errors: a misspelt one would silently lose its answers
    for column in columns:
        if column not in known:
            near = difflib.get_close_matches(column, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known columns: {', '.join(known)}"
            message = f"{name}: unknown column {column!r}; {hint}"
            raise ConfigError(message)


def answer_row(where: str, cells: dict[str, str]) -> AnswerRow:
    """Read one row; DataError as in `read_answers`."""

    def read(column: str, reader: Callable[[str], V], expected: str) -> V:
        try:
            return reader(cells.get(column, "").strip())
        except (KeyError, ValueError):
            message = f"{where}, column {column}: expected {expected}"
            raise DataError(message) from None

    def words(column: str) -> str:
        return cells.get(column, "").strip()

    def parts(column: str) -> tuple[str, ...]:
        return _parts(words(column), "|")

    # a code alone is enough to name a diagnosis
    if not words("diagnosis") and not words("icd10"):
        message = f"{where}, column diagnosis: expected a diagnosis or an ICD-10 code; take the row out if it is not known"
        raise DataError(message)
    return AnswerRow(
        case_id=read("case_id", _filled, "the case id of the case table"),
        diagnosis=words("diagnosis") or words("icd10"),
        icd10=words("icd10"),
        aliases=parts("aliases"),
        differentials=parts("differentials"),
        findings=parts("findings"),
        findings_complete=read("findings_complete", _boolean, "true or false"),
        lesion_location=words("lesion_location"),
        lesion_side=read("lesion_side", _side, f"{', '.join(SIDES)}, none or nothing"),
        lesion_behaviour=read("lesion_behaviour", _behaviour, f"SEQUENCE=signal; ... with a sequence of {', '.join(SEQUENCES.values())}"),
        lesion_size_mm=read("lesion_size_mm", _size, "a positive number of mm"),
        lesion_position_mm=read("lesion_position_mm", _position, 'three numbers "x y z" in mm (LPS+)'),
        lesion_extent_mm=read("lesion_extent_mm", _extent, 'three positive numbers "x y z" in mm'),
        rationale=parts("rationale"),
        must_not=parts("must_not"),
        harmful=parts("harmful"),
        established=words("established"),
        turn_leaders=parts("turn_leaders"),
        essential=parts("essential"),
        rivals=parts("rivals"),
        level=read("level", lambda text: Level(text.lower() or Level.NONE), "direct, complex, dialogue or nothing"),
    )


def _parts(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _filled(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _boolean(text: str) -> bool:
    if text.lower() not in YES | NO:
        raise ValueError
    return text.lower() in YES


def _side(text: str) -> str:
    if text.lower() not in (*SIDES, "none", ""):
        raise ValueError
    return "" if text.lower() == "none" else text.lower()


def _behaviour(text: str) -> dict[str, str]:
    pairs = [part.split("=") for part in _parts(text, ";")]
    return {SEQUENCES[sequence.strip().lower()]: _filled(signal.strip().lower()) for sequence, signal in pairs}


def _size(text: str) -> float | None:
    if not text:
        return None
    if not 0 < float(text) < float("inf"):
        raise ValueError
    return float(text)


def _position(text: str) -> tuple[float, float, float] | None:
    if not text:
        return None
    x, y, z = (float(part) for part in text.split())
    if not all(abs(value) < float("inf") for value in (x, y, z)):
        raise ValueError
    return x, y, z


def _extent(text: str) -> tuple[float, float, float] | None:
    widths = _position(text)
    if widths is not None and min(widths) <= 0:
        raise ValueError
    return widths
