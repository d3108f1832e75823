"""The CSV export of a rater's page, one line per value, which REDCap, a spreadsheet or a script can write too."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import RatedItem, RatingExport
from neuralmedbench.records.taxonomy import ERROR_AXIS

WHOLE = ("schema", "packet_id", "packet_sha256", "rubric", "rater_id", "role", "years", "simulated", "started", "exported", "complete")
PER_ITEM = ("item_id", "position", "status", "seconds_active", "revisions", "reference_shown", "reference_seen")
COLUMNS = (*WHOLE, *PER_ITEM[:3], "axis", "value", *PER_ITEM[3:])


def read_table(path: Path) -> RatingExport:
    """Read an export in long format; it has no comments, unlike the JSON export. RatingError names the line, never a value.

    The first columns are equal in all lines. An axis with an empty value could not be judged; an item without values has one line without
    an axis.
    """
    try:
        # spreadsheets write a byte order mark
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            lines = list(reader)
    except (UnicodeDecodeError, csv.Error):
        message = f"{path.name}: not CSV in UTF-8; ask the rater to export again"
        raise RatingError(message) from None
    if tuple(reader.fieldnames or ()) != COLUMNS or not lines:
        message = f"{path.name}: expected lines with the columns {', '.join(COLUMNS)}"
        raise RatingError(message)
    # several lines per item: the first one creates the entry, each adds one axis
    items: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=2):
        if None in line or None in line.values() or any(line[name] != lines[0][name] for name in WHOLE):
            _refuse(path, number, "it has too few or too many cells, or is from another export than the first line")
        entry = items.setdefault(line["item_id"], {name: _value(line[name]) for name in PER_ITEM} | {"item_id": line["item_id"]})
        # status, times and flags of an item are repeated on each of its lines
        if any(entry[name] != _value(line[name]) for name in PER_ITEM if name != "item_id"):
            _refuse(path, number, "it contradicts an earlier line on the same answer")
        _add(path, number, entry, line["axis"], _value(line["value"]))
    # rebuild the JSON export and validate it as such
    head = {name: _value(lines[0][name]) for name in ("complete", "years", "simulated")}
    whole = {name: lines[0][name] for name in ("schema", "packet_id", "packet_sha256", "rubric", "started", "exported")}
    rater = {"id": lines[0]["rater_id"], "role": lines[0]["role"], "years": head["years"], "simulated": head["simulated"]}
    value = {**whole, "complete": head["complete"], "rater": rater, "items": list(items.values())}
    try:
        return RatingExport.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        message = f"{path.name}: refused at {'.'.join(str(part) for part in first['loc'])}: {first['type']}; ask the rater to export again"
        raise RatingError(message) from None


def drop_duplicate_tables(exports: Iterable[tuple[str, RatingExport]]) -> list[tuple[str, RatingExport]]:
    """Drop the complete table of a rater who has a complete JSON too; RatingError if they differ, because one was edited."""
    rows = list(exports)
    # the page can save both forms, so a pair with equal judgements is normal
    whole = {export.rater.id: (name, export) for name, export in rows if export.complete and not is_table(name)}
    kept = []
    for name, export in rows:
        other = whole.get(export.rater.id)
        if not (is_table(name) and export.complete and other):
            kept.append((name, export))
        elif _judgements(export.items) != _judgements(other[1].items):
            message = f"{name} and {other[0]}: two versions of one rater's export that differ; keep the one that counts"
            raise RatingError(message)
    return kept


def is_table(name: str) -> bool:
    """Return True if the name is that of a table."""
    return name.endswith(".csv")


def _judgements(items: Sequence[RatedItem]) -> dict[str, object]:
    return {
        item.item_id: (item.status, item.scores, sorted(item.cannot_judge), sorted((one.code, one.significant) for one in item.errors))
        for item in items
    }


def _add(path: Path, number: int, entry: dict[str, Any], axis: str, value: object) -> None:
    scores, errors, unjudged = (
        entry.setdefault(name, kind()) for name, kind in (("scores", dict), ("errors", list), ("cannot_judge", list))
    )
    if axis in scores or axis in unjudged:
        _refuse(path, number, "its axis appears above; keep one")
    if axis.startswith(ERROR_AXIS):
        if value not in (1, 2):
            _refuse(path, number, "an error has the value 2 when it is significant, else 1")
        errors.append({"code": axis.removeprefix(ERROR_AXIS), "significant": value == 2})
    elif axis and value is None:
        unjudged.append(axis)
    elif axis:
        scores[axis] = value
    elif value is not None:
        _refuse(path, number, "it has a value, but no axis")


def _value(cell: str) -> object:
    """Parse a cell as JSON: a number, true or false, None for an empty one, or else the text itself, which validation then refuses."""
    try:
        return json.loads(cell) if cell else None
    except ValueError:
        return cell


def _refuse(path: Path, number: int, why: str) -> None:
    message = f"{path.name}, line {number}: {why}"
    raise RatingError(message)
