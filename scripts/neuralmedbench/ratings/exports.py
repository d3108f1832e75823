"""Files of a rating round: the export of a rater's page, also as CSV with one line per value, and the key of the round."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neuralmedbench.errors import RatingError
from neuralmedbench.records.scores import Key, RatingPart
from neuralmedbench.records.taxonomy import ERROR_AXIS

M = TypeVar("M", bound=BaseModel)
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pseudonym = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")]
WHOLE = ("schema", "packet_id", "packet_sha256", "rubric", "rater_id", "role", "years", "simulated", "started", "exported", "complete")
PER_ITEM = ("item_id", "position", "status", "seconds_active", "revisions", "reference_shown", "reference_seen")
COLUMNS = (*WHOLE, *PER_ITEM[:3], "axis", "value", *PER_ITEM[3:])


class StrictModel(BaseModel):
    """Part of an external file: unknown keys are errors, and types are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MarkedError(StrictModel):
    """An error that a rater marked."""

    code: str
    significant: bool


class RatedItem(StrictModel):
    """One response as one rater saw it.

    `cannot_judge` names single axes; the status of that name means all of them. `reference_shown`: the reference was opened at this answer,
    after the first judgement; `reference_seen`: it was opened earlier, at another answer to the same case.
    """

    item_id: str
    position: int = Field(ge=1)
    status: Literal["rated", "cannot_judge", "not_rated"]
    scores: dict[str, int] = Field(default_factory=dict)
    cannot_judge: list[str] = Field(default_factory=list)
    errors: list[MarkedError] = Field(default_factory=list)
    seconds_active: float | None = Field(None, ge=0, le=86_400)
    revisions: int = Field(0, ge=0)
    reference_shown: bool = False
    reference_seen: bool = False
    comment: str = ""


class Rater(StrictModel):
    """A rater, by pseudonym; `simulated` if a program filled the form in for the demo."""

    id: Pseudonym
    role: str = ""
    years: float | None = None
    simulated: bool = False


class RatingExport(StrictModel):
    """One export of the form."""

    schema_name: Literal["neuralmedbench.rating/1"] = Field(alias="schema")
    packet_id: str
    packet_sha256: Digest
    rubric: str
    rater: Rater
    started: str
    exported: str
    complete: bool
    items: list[RatedItem]


class RatedResponse(StrictModel):
    """The answer of an opaque id: the key of a response and the digest of its text, or of the text of a control.

    `probability` is that of the draw within its `stratum`; `again_of` is the opaque id of the first showing; `masked` counts the model names
    hidden in the text.
    """

    item_id: str
    arm: str
    strategy: str
    model: str
    revision: str
    repeat: int
    text_sha256: Digest
    part: RatingPart = RatingPart.SAMPLE
    stratum: str = ""
    probability: float | None = Field(None, gt=0, le=1)
    again_of: str = ""
    masked: int = Field(0, ge=0)

    @property
    def key(self) -> Key:
        """The key of the response."""
        return self.item_id, self.arm, self.strategy, self.model, self.revision, self.repeat


class PacketKey(StrictModel):
    """One rater's packet; `packet_sha256` is the digest of its content, `order` the order of the answers."""

    packet_id: str
    packet_sha256: Digest
    rater: Pseudonym
    items: dict[str, RatedResponse]
    order: list[str] = Field(default_factory=list)


class StratumKey(StrictModel):
    """Size of a stratum and number of draws from it; all its members have the same probability."""

    frame: int = Field(ge=1)
    drawn: int = Field(ge=1)
    probability: float = Field(gt=0, le=1)


class RoundKey(StrictModel):
    """`key.json` of a round: it never leaves this machine and never goes to a rater.

    `seed` is that of the draw; opaque ids and orders are derived from `secret`; `first_judgement` names the axes that are rated before the
    reference is shown, and is empty if it is never shown.
    """

    schema_name: Literal["neuralmedbench.rating_key/2"] = Field(alias="schema")
    round_id: str
    rubric: str
    seed: int
    secret: str
    first_judgement: list[str]
    strata: dict[str, StratumKey]
    packets: list[PacketKey]


def read_file(path: Path, model: type[M]) -> M:
    """Read an export or a key.

    Raises
    ------
    RatingError
        If it is missing, is not JSON or is invalid; the message names the key, never what a rater wrote.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        message = f"{path.name}: the file is missing; put it back into the folder of its round"
        raise RatingError(message) from None
    return _validated(path, content, model)


def _validated(path: Path, content: str | bytes, model: type[M]) -> M:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        # `include_input=False` keeps the text of raters out of the message
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        message = f"{path.name}: refused at {where}: {first['type']}; ask the rater to export again"
        raise RatingError(message) from None


def read_table(path: Path) -> RatingExport:
    """Read an export in long format; it has no comments, unlike the JSON export. RatingError names the line, never a value.

    The first columns are equal in all lines. An axis with an empty value could not be judged; an item without values has one line without
    an axis.
    """
    lines, columns = read_csv(path, "ask the rater to export again")
    if columns != COLUMNS or not lines:
        message = f"{path.name}: expected lines with the columns {', '.join(COLUMNS)}"
        raise RatingError(message)
    # several lines per item: the first one creates the entry, each adds one axis
    items: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=2):
        if None in line or None in line.values() or any(line[name] != lines[0][name] for name in WHOLE):
            refuse_line(path, number, "it has too few or too many cells, or is from another export than the first line")
        entry = items.setdefault(line["item_id"], {name: _value(line[name]) for name in PER_ITEM} | {"item_id": line["item_id"]})
        # status, times and flags of an item are repeated on each of its lines
        if any(entry[name] != _value(line[name]) for name in PER_ITEM if name != "item_id"):
            refuse_line(path, number, "it contradicts an earlier line on the same answer")
        _add(path, number, entry, line["axis"], _value(line["value"]))
    # rebuild the JSON export and validate it as such
    head = {name: _value(lines[0][name]) for name in ("complete", "years", "simulated")}
    whole = {name: lines[0][name] for name in ("schema", "packet_id", "packet_sha256", "rubric", "started", "exported")}
    rater = {"id": lines[0]["rater_id"], "role": lines[0]["role"], "years": head["years"], "simulated": head["simulated"]}
    value = {**whole, "complete": head["complete"], "rater": rater, "items": list(items.values())}
    return _validated(path, json.dumps(value), RatingExport)


def read_csv(path: Path, remedy: str) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Read the lines and the columns of a table; RatingError with the remedy if it is not CSV in UTF-8."""
    try:
        # spreadsheets write a byte order mark
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            return list(reader), tuple(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error):
        message = f"{path.name}: not CSV in UTF-8; {remedy}"
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
        refuse_line(path, number, "its axis appears above; keep one")
    if axis.startswith(ERROR_AXIS):
        if value not in (1, 2):
            refuse_line(path, number, "an error has the value 2 when it is significant, else 1")
        errors.append({"code": axis.removeprefix(ERROR_AXIS), "significant": value == 2})
    elif axis and value is None:
        unjudged.append(axis)
    elif axis:
        scores[axis] = value
    elif value is not None:
        refuse_line(path, number, "it has a value, but no axis")


def _value(cell: str) -> object:
    """Parse a cell as JSON: a number, true or false, None for an empty one, or else the text itself, which validation then refuses."""
    try:
        return json.loads(cell) if cell else None
    except ValueError:
        return cell


def refuse_line(path: Path, number: int, why: str) -> NoReturn:
    """Refuse a line of a table; `why` does not quote it."""
    message = f"{path.name}, line {number}: {why}"
    raise RatingError(message)
