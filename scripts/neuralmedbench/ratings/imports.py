"""Import the exports of a round and of its adjudications as rating rows; a file with any fault is refused as a whole."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from pydantic import Field

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import (
    PacketKey,
    RatedItem,
    RatedResponse,
    Rater,
    RatingExport,
    RoundKey,
    StrictModel,
    drop_duplicate_tables,
    is_table,
    read_file,
    read_table,
)
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.records.scores import Key, Rating, RatingPart, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS

FOLDER = "adjudication"
"""Folder of the first adjudication; a later one has a suffix, as in `adjudication-2`."""

KEY_FILE = "key.json"
EXPORTED = {".json", ".csv"}


class AdjudicationKey(StrictModel):
    """`key.json` of an adjudication: it never leaves this machine.

    By opaque id, `axes` names the axes to decide, and `shown` the raters whose values the page shows, in that order; `simulated` if a program
    made these ratings: then the decisions count as simulated too.
    """

    schema_name: Literal["neuralmedbench.adjudication_key/1"] = Field(alias="schema")
    round_id: str
    rubric: str
    secret: str
    first_judgement: list[str]
    simulated: bool
    packet: PacketKey
    axes: dict[str, list[str]]
    shown: dict[str, list[str]]


def import_round(folder: Path, form: RatingForm, texts: Mapping[Key, str]) -> list[Rating]:
    """Import one round.

    Parameters
    ----------
    folder : Path
        `data/ratings/<round>/` with the key and one export per rater or adjudicator, as JSON, as a table, or both.
    form : RatingForm
        Axes, ranges and errors.
    texts : mapping of response key to str
        SHA-256 of the current text of every response.

    Returns
    -------
    list of Rating
        One row per rater, response and axis, with the name of the model restored and without comments.

    Raises
    ------
    RatingError
        If a file belongs to another packet, rater or version of the rubric, names an unknown or repeated item, an unknown axis or a value
        out of range, or decides an axis that was not asked, or a rater has two complete exports.
    """
    key, exports = read_round(folder, form)
    packets = {packet.packet_id: packet for packet in key.packets}
    decisions = {one.packet.packet_id: one for one in adjudication_keys(folder)}
    ratings = []
    for export in exports:
        # an export belongs to a rater or to an adjudication, by its packet
        decision = decisions.get(export.packet_id)
        shown = decision.packet.items if decision else packets[export.packet_id].items
        for item in export.items:
            rows = _rows(folder.name, export, item, shown[item.item_id], form, blind=key.first_judgement)
            ratings += _adjudicated_rows(rows, decision, item.item_id) if decision else rows
    return [replace(row, stale=_is_stale(row, texts)) for row in ratings]


def read_round(folder: Path, form: RatingForm) -> tuple[RoundKey, list[RatingExport]]:
    """Read the exports of raters and adjudicators of a round, one each; RatingError as in :func:`import_round`."""
    path = folder / KEY_FILE
    # a reader round has the same folder layout, and its own command
    if path.is_file() and b"neuralmedbench.answers_key/" in path.read_bytes():
        message = f"{folder.name}: a round in which questions were answered, not rated; remove it from `rating_rounds` and use nmb ratings import-readers"
        raise RatingError(message)
    if not path.is_file():
        message = (
            f"{folder.name}: there is no round of this name, or its {KEY_FILE} is missing; correct `rating_rounds`, or put the key back"
        )
        raise RatingError(message)
    key = read_file(path, RoundKey)
    decisions = {one.packet.packet_id: one for one in adjudication_keys(folder)}
    # adjudicators return exports of the same form as raters
    packets = {packet.packet_id: packet for packet in (*key.packets, *(one.packet for one in decisions.values()))}
    files = [path for path in sorted(folder.iterdir()) if path.suffix in EXPORTED and path.name != KEY_FILE]
    exports = [(path.name, read_table(path) if is_table(path.name) else read_file(path, RatingExport)) for path in files]
    for name, export in exports:
        _check(name, export, key, packets, form)
        if decision := decisions.get(export.packet_id):
            _check_adjudication(name, export, decision)
    return key, _latest(drop_duplicate_tables(exports))


def adjudication_keys(folder: Path) -> list[AdjudicationKey]:
    """Read the keys of all adjudications of a round, by name."""
    return [read_file(path, AdjudicationKey) for path in sorted(folder.glob(f"{FOLDER}*/{KEY_FILE}"))]


class _Export(Protocol):
    """An export of a rating or an answer page."""

    @property
    def packet_id(self) -> str: ...

    @property
    def packet_sha256(self) -> str: ...

    @property
    def rater(self) -> Rater: ...


class _Packet(Protocol):
    """A packet in the key of a round of either kind."""

    @property
    def packet_sha256(self) -> str: ...

    @property
    def rater(self) -> str: ...


class _Entry(Protocol):
    """One item of an export."""

    @property
    def item_id(self) -> str: ...


P = TypeVar("P", bound=_Packet)
E = TypeVar("E", bound=_Entry)


def packet_of(name: str, export: _Export, packets: Mapping[str, P], round_id: str) -> P:
    """Return the packet that an export was made with; RatingError if it is of another round or another person."""
    packet = packets.get(export.packet_id)
    if packet is None or export.packet_sha256 != packet.packet_sha256:
        message = f"{name}: it was made with another packet than those of {round_id}; put it into the folder of its own round"
        raise RatingError(message)
    if export.rater.id != packet.rater:
        message = f"{name}: it names another rater than the one whose packet it is; a packet goes to one person"
        raise RatingError(message)
    return packet


def checked_entries(name: str, items: Iterable[E], known: Container[str]) -> Iterator[tuple[str, E]]:
    """Yield the items of an export with their place in it; RatingError at an unknown or a repeated item."""
    seen = set()
    for number, item in enumerate(items, start=1):
        where = f"{name}, entry {number}"
        if item.item_id not in known:
            message = f"{where}: an item that is not in the packet"
            raise RatingError(message)
        if item.item_id in seen:
            message = f"{where}: an item that appears above; keep one"
            raise RatingError(message)
        seen.add(item.item_id)
        yield where, item


def _check(name: str, export: RatingExport, key: RoundKey, packets: Mapping[str, PacketKey], form: RatingForm) -> None:
    packet = packet_of(name, export, packets, key.round_id)
    # the export must match the round, and the round the current form
    for rubric, what in ((key.rubric, "packet"), (form.rubric, "form in config/rating.yaml")):
        if export.rubric != rubric:
            message = f"{name}: rated with rubric {export.rubric[:20]!r}, the {what} has {rubric!r}; ratings of two rubrics do not mix"
            raise RatingError(message)
    for where, item in checked_entries(name, export.items, packet.items):
        _check_values(where, item, form)


def _check_values(where: str, item: RatedItem, form: RatingForm) -> None:
    if item.status != "rated" and (item.scores or item.errors or item.cannot_judge):
        message = f"{where}: it has scores or errors, but its status is {item.status}"
        raise RatingError(message)
    if item.status == "rated" and not (item.scores or item.errors or item.cannot_judge):
        message = f"{where}: its status is rated, but it has no scores"
        raise RatingError(message)
    if set(item.cannot_judge) - set(form.axes):
        message = f"{where}: cannot_judge names an axis that the form does not have; it has {', '.join(form.axes)}"
        raise RatingError(message)
    if set(item.cannot_judge) & set(item.scores):
        message = f"{where}: an axis has a value and is marked as cannot_judge; it can be only one of them"
        raise RatingError(message)
    for axis, value in item.scores.items():
        if axis not in form.axes:
            message = f"{where}: an axis that the form does not have; it has {', '.join(form.axes)}"
            raise RatingError(message)
        if not form.axes[axis].lowest <= value <= form.axes[axis].highest:
            message = f"{where}: {axis} is {value}, expected {form.axes[axis].lowest} to {form.axes[axis].highest}"
            raise RatingError(message)
    codes = [error.code for error in item.errors]
    if unknown := set(codes) - set(form.errors):
        message = f"{where}: {len(unknown)} errors that the form does not have; it has {', '.join(form.errors)}"
        raise RatingError(message)
    if len(codes) != len(set(codes)):
        message = f"{where}: an error is marked twice"
        raise RatingError(message)


def _check_adjudication(name: str, export: RatingExport, key: AdjudicationKey) -> None:
    """Refuse an export with a decision that was not asked for: an error, or an axis on which the raters did not disagree."""
    for number, item in enumerate(export.items, start=1):
        asked = set(key.axes[item.item_id])
        if item.errors or ({*item.scores, *item.cannot_judge} - asked):
            message = f"{name}, entry {number}: it decides what was not asked; an adjudicator is asked for {', '.join(sorted(asked))} here"
            raise RatingError(message)


def _latest(exports: Iterable[tuple[str, RatingExport]]) -> list[RatingExport]:
    """Select one export per rater: the complete one, or else the progress file that was saved last."""
    by_rater: dict[str, list[tuple[str, RatingExport]]] = {}
    for name, export in exports:
        by_rater.setdefault(export.rater.id, []).append((name, export))
    chosen = []
    for rows in by_rater.values():
        complete = [(name, export) for name, export in rows if export.complete]
        # nothing tells which of two complete exports is meant
        if len(complete) > 1:
            message = f"{complete[0][0]} and {complete[1][0]}: two complete exports of one rater; keep the one that counts"
            raise RatingError(message)
        chosen.append(max(complete or rows, key=lambda row: (row[1].exported, row[0]))[1])
    return chosen


def _rows(
    round_id: str, export: RatingExport, item: RatedItem, response: RatedResponse, form: RatingForm, *, blind: Collection[str]
) -> list[Rating]:
    return [
        Rating(
            round_id=round_id,
            rater_id=export.rater.id,
            item_id=response.item_id,
            arm=response.arm,
            strategy=response.strategy,
            model=response.model,
            revision=response.revision,
            repeat=response.repeat,
            text_sha256=response.text_sha256,
            axis=axis,
            value=value,
            seconds=item.seconds_active,
            stale=False,
            simulated=export.rater.simulated,
            part=response.part,
            probability=response.probability,
            informed=item.reference_seen or (item.reference_shown and axis not in blind),
        )
        for axis, value in _values(item, form).items()
    ]


def _values(item: RatedItem, form: RatingForm) -> dict[str, float | None]:
    """Return values by axis: empty for an item that was not rated, None for each axis that the rater could not judge."""
    # the status means every axis, `cannot_judge` of the item names single ones
    if item.status == "cannot_judge":
        return dict.fromkeys(form.axes)
    values: dict[str, float | None] = dict.fromkeys(item.cannot_judge)
    values |= {axis: float(value) for axis, value in item.scores.items()}
    # an error is an axis of its own: 1 is marked, 2 is marked as clinically significant
    return values | {f"{ERROR_AXIS}{error.code}": 2.0 if error.significant else 1.0 for error in item.errors}


def _adjudicated_rows(rows: Iterable[Rating], key: AdjudicationKey, item_id: str) -> list[Rating]:
    """Mark the decisions of an adjudicator on one answer; axes that were not asked for are left out."""
    asked = [row for row in rows if row.axis in key.axes[item_id]]
    return [replace(row, adjudicated=True, simulated=row.simulated or key.simulated) for row in asked]


def _is_stale(row: Rating, texts: Mapping[Key, str]) -> bool:
    """Return True if the rated text has changed; a control is not a response of a model and never becomes stale."""
    # controls have no response in the tables
    drawn = row.part in {RatingPart.SAMPLE, RatingPart.AGAIN}
    return drawn and texts.get(response_key(row)) != row.text_sha256
