"""From the exports of a round to rating rows; a file that does not fit is refused whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.adjudicating.files import adjudication_keys, check_decided, decided
from neuralmedbench.ratings.exports import Export, Form, PacketKey, RatedItem, RatedResponse, RoundKey, read_file
from neuralmedbench.ratings.tables import is_table, read_table, without_twins
from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Rating, RatingPart
from neuralmedbench.records.taxonomy import ERROR_AXIS

KEY_FILE = "key.json"
EXPORTED = {".json", ".csv"}


def import_round(folder: Path, form: Form, texts: Mapping[Key, str]) -> list[Rating]:
    """Import one round.

    Parameters
    ----------
    folder : Path
        `data/ratings/<round>/` with the key and one export a rater or adjudicator, as JSON, as a table, or as both.
    form : Form
        Axes, ranges and errors.
    texts : mapping of response key to str
        SHA-256 of the text of every response as it stands now.

    Returns
    -------
    list of Rating
        One row a rater, response and axis, with the model's name put back; comments are left behind.

    Raises
    ------
    RatingError
        If a file belongs to another packet, another rater or another version of the rubric, names an unknown or repeated item, an
        unknown axis or a value out of its range, decides what was not asked, or if a rater exported twice as complete.
    """
    key, exports = read_round(folder, form)
    packets = {packet.packet_id: packet for packet in key.packets}
    decisions = {one.packet.packet_id: one for one in adjudication_keys(folder)}
    ratings = []
    for export in exports:
        decision = decisions.get(export.packet_id)
        shown = decision.packet.items if decision else packets[export.packet_id].items
        for item in export.items:
            rows = _rows(folder.name, export, item, shown[item.item_id], form, blind=key.first_judgement)
            ratings += decided(rows, decision, item.item_id) if decision else rows
    return [replace(row, stale=_is_stale(row, texts)) for row in ratings]


def read_round(folder: Path, form: Form) -> tuple[RoundKey, list[Export]]:
    """Read what raters and adjudicators of a round sent back, one export each; RatingError as in :func:`import_round`."""
    path = folder / KEY_FILE
    if path.is_file() and b"neuralmedbench.answers_key/" in path.read_bytes():
        message = f"{folder.name}: a round in which questions were answered, not rated; take it out of `rating_rounds` and use scripts/import_reader.py"
        raise RatingError(message)
    if not path.is_file():
        message = f"{folder.name}: there is no round of this name, or its {KEY_FILE} is gone; correct `rating_rounds`, or put the key back"
        raise RatingError(message)
    key = read_file(path, RoundKey)
    decisions = {one.packet.packet_id: one for one in adjudication_keys(folder)}
    packets = {packet.packet_id: packet for packet in (*key.packets, *(one.packet for one in decisions.values()))}
    files = [path for path in sorted(folder.iterdir()) if path.suffix in EXPORTED and path.name != KEY_FILE]
    exports = [(path.name, read_table(path) if is_table(path.name) else read_file(path, Export)) for path in files]
    for name, export in exports:
        _check(name, export, key, packets.get(export.packet_id), form)
        if decision := decisions.get(export.packet_id):
            check_decided(name, export, decision)
    return key, _latest(without_twins(exports))


def _is_stale(row: Rating, texts: Mapping[Key, str]) -> bool:
    """Whether the rated text stands no more; a control is nobody's response and cannot go stale."""
    drawn = row.part in {RatingPart.SAMPLE, RatingPart.AGAIN}
    return drawn and texts.get(response_key(row)) != row.text_sha256


def _check(name: str, export: Export, key: RoundKey, packet: PacketKey | None, form: Form) -> None:
    if packet is None or export.packet_sha256 != packet.packet_sha256:
        message = f"{name}: it was made with another packet than those of {key.round_id}; put it into the folder of its own round"
        raise RatingError(message)
    if export.rater.id != packet.rater:
        message = f"{name}: it names another rater than the one whose packet it is; a packet goes to one person"
        raise RatingError(message)
    for rubric, what in ((key.rubric, "packet"), (form.rubric, "form in config/rating.yaml")):
        if export.rubric != rubric:
            message = f"{name}: rated with rubric {export.rubric[:20]!r}, the {what} has {rubric!r}; ratings of two rubrics do not mix"
            raise RatingError(message)
    seen = set()
    for number, item in enumerate(export.items, start=1):
        where = f"{name}, entry {number}"
        if item.item_id not in packet.items:
            message = f"{where}: an item that is not in the packet"
            raise RatingError(message)
        if item.item_id in seen:
            message = f"{where}: an item that was rated above; keep one"
            raise RatingError(message)
        seen.add(item.item_id)
        _check_values(where, item, form)


def _check_values(where: str, item: RatedItem, form: Form) -> None:
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
        message = f"{where}: an axis has a value and cannot be judged; it is one of them"
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


def _latest(exports: Iterable[tuple[str, Export]]) -> list[Export]:
    """One export a rater: the complete one, or else the progress file that was saved last."""
    by_rater: dict[str, list[tuple[str, Export]]] = {}
    for name, export in exports:
        by_rater.setdefault(export.rater.id, []).append((name, export))
    chosen = []
    for rows in by_rater.values():
        complete = [(name, export) for name, export in rows if export.complete]
        if len(complete) > 1:
            message = f"{complete[0][0]} and {complete[1][0]}: two complete exports of one rater; keep the one that counts"
            raise RatingError(message)
        chosen.append(max(complete or rows, key=lambda row: (row[1].exported, row[0]))[1])
    return chosen


def _values(item: RatedItem, form: Form) -> dict[str, float | None]:
    """Value by axis: none for an item that was not rated, None on every axis that the rater could not judge."""
    if item.status == "cannot_judge":
        return dict.fromkeys(form.axes)
    values: dict[str, float | None] = dict.fromkeys(item.cannot_judge)
    values |= {axis: float(value) for axis, value in item.scores.items()}
    return values | {f"{ERROR_AXIS}{error.code}": 2.0 if error.significant else 1.0 for error in item.errors}


def _rows(round_id: str, export: Export, item: RatedItem, response: RatedResponse, form: Form, *, blind: Collection[str]) -> list[Rating]:
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
