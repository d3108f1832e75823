"""REDCap: export the form of a round as a data dictionary with records per rater, and convert a raw export back to rating tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import COLUMNS, PacketKey, RoundKey, read_csv, refuse_line
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.records.taxonomy import ERROR_AXIS, ERRORS

DICTIONARY = (
    "Variable / Field Name", "Form Name", "Section Header", "Field Type", "Field Label", "Choices, Calculations, OR Slider Labels",
    "Field Note", "Text Validation Type OR Show Slider Number", "Text Validation Min", "Text Validation Max", "Identifier?",
    "Branching Logic (Show field only if...)", "Required Field?", "Custom Alignment", "Question Number (surveys only)",
    "Matrix Group Name", "Matrix Ranking?", "Field Annotation",
)  # fmt: skip
"""The 18 columns of a data dictionary."""

INSTRUMENT, STATUS = "rating", "rating_complete"
RECORD = ("record_id", "packet_id", "packet_sha256", "rubric", "rater_id", "item_id", "position")
"""Read-only fields with opaque ids, filled in by us; no answer and no picture goes to the server."""

CANNOT, COMPLETE = "99", "2"
REFERENCE, MARKED = "reference_open", "error_"
REDCAP_COLUMNS = re.compile(r"redcap_.*|.*_timestamp|.*_complete")
"""Columns that REDCap adds itself."""

Lines = list[dict[str, str]]


def data_dictionary(form: RatingForm, key: RoundKey) -> Lines:
    """Return the data dictionary of a form: one radio field per axis with its anchors, and one per error.

    Parameters
    ----------
    form : RatingForm
        Rubric.
    key : RoundKey
        Key of the round; if its pages show the reference, a field asks when it was opened.

    Raises
    ------
    RatingError
        If the round has another rubric, or REDCap does not support a name or an anchor.
    """
    if key.rubric != form.rubric:
        message = f"{key.round_id}: it has the rubric {key.rubric!r}, the form in config/rating.yaml has {form.rubric!r}"
        raise RatingError(message)
    fields = [_field(name, "text", name.replace("_", " "), annotation="@READONLY") for name in RECORD]
    fields[0] |= {"Field Annotation": "", "Section Header": "The answer with this position in your page"}
    for name, axis in form.axes.items():
        ends = {axis.lowest: axis.anchors[0], axis.highest: axis.anchors[1]}
        # REDCap's syntax of choices: `code, label | code, label`; only the ends of a scale have anchors
        choices = [f"{value}, {value}{f': {ends[value]}' if value in ends else ''}" for value in range(axis.lowest, axis.highest + 1)]
        if axis.highest >= int(CANNOT) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or "|" in "".join(axis.anchors):
            message = f"{name}: REDCap does not support this axis: use lower-case letters, digits and _ in its name, no | in an anchor, and values below {CANNOT}"
            raise RatingError(message)
        fields.append(_field(name, "radio", axis.question, " | ".join([*choices, f"{CANNOT}, cannot judge"]), required="y"))
    if key.first_judgement:
        # codes 1 and 2 become `reference_shown` and `reference_seen`
        when = "0, not before this answer was judged | 1, after the first judgement | 2, before it at another answer to the same case"
        fields.append(_field(REFERENCE, "radio", "When was the reference open?", when, required="y"))
    for code in form.errors:
        field = _field(f"{MARKED}{code}", "radio", ERRORS[code].label, "0, no | 1, yes | 2, yes and significant")
        fields.append(field | {"Matrix Group Name": "errors", "Section Header": "Errors in the answer" if code == form.errors[0] else ""})
    return fields


def records_of(packet: PacketKey, rubric: str) -> Lines:
    """Return one record per answer of a rater's packet, in the order of the page."""
    head = {"packet_id": packet.packet_id, "packet_sha256": packet.packet_sha256, "rubric": rubric, "rater_id": packet.rater}
    return [
        {"record_id": f"{packet.rater}-{place}", **head, "item_id": item_id, "position": str(place)}
        for place, item_id in enumerate(packet.order, start=1)
    ]


def read_export(path: Path, form: RatingForm, key: RoundKey, exported: str) -> dict[str, Lines]:
    """Read a raw REDCap export of a round.

    Parameters
    ----------
    path : Path
        CSV with raw data (codes, no labels), comma separated, of one or several raters.
    form : RatingForm
        Axes and errors.
    key : RoundKey
        Key of the round; an export is complete if every answer of the packet is, and is marked as complete in REDCap.
    exported : str
        Time of the export.

    Returns
    -------
    dict of str to list of dict
        By rater: lines for `ratings.exports.read_table`, without seconds, role and years, which REDCap does not record.

    Raises
    ------
    RatingError
        If the file is not such an export; the message names line and field, never a value.
    """
    rows, columns = read_csv(path, "export raw data as CSV again")
    names = set(columns)
    fields = {row["Variable / Field Name"] for row in data_dictionary(form, key)}
    # a labelled export has other column names, and is refused here
    unexpected = sorted(name for name in (names - fields - {STATUS}) if not REDCAP_COLUMNS.fullmatch(name))
    if missing := sorted((fields | {STATUS}) - names) or unexpected:
        message = f"{path.name}: not a raw export of this form; missing or unexpected fields: {', '.join(missing[:5])}"
        raise RatingError(message)
    by_rater: dict[str, list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            refuse_line(path, number, "it has too few or too many cells")
        by_rater[row["rater_id"]].append((number, row))
    packets = {packet.rater: packet for packet in key.packets}
    if not by_rater or set(by_rater) - set(packets):
        message = f"{path.name}: it has no record, or one of a rater who has no packet in {key.round_id}"
        raise RatingError(message)
    return {rater: _lines(path, given, form, packets[rater], exported) for rater, given in sorted(by_rater.items())}


def _field(name: str, kind: str, label: str, choices: str = "", *, required: str = "", annotation: str = "") -> dict[str, str]:
    field = dict.fromkeys(DICTIONARY, "")
    return field | {
        "Variable / Field Name": name,
        "Form Name": INSTRUMENT,
        "Field Type": kind,
        "Field Label": label,
        "Choices, Calculations, OR Slider Labels": choices,
        "Required Field?": required,
        "Field Annotation": annotation,
    }


def _lines(path: Path, rows: Sequence[tuple[int, Mapping[str, str]]], form: RatingForm, packet: PacketKey, exported: str) -> Lines:
    judged = [_values(path, number, row, form) for number, row in rows]
    # complete: all items of the packet, each with every axis and marked as complete
    whole = {row["item_id"] for _, row in rows} == set(packet.items)
    complete = whole and all(
        row[STATUS] == COMPLETE and set(form.axes) <= set(values) for (_, row), values in zip(rows, judged, strict=True)
    )
    lines = []
    for (_, row), values in zip(rows, judged, strict=True):
        # `cannot judge` on every axis is the status of the whole item
        unjudged = bool(form.axes) and all(values.get(axis) == "" for axis in form.axes) and len(values) == len(form.axes)
        head = {name: row.get(name, "") for name in COLUMNS} | {
            "schema": "neuralmedbench.rating/1", "simulated": "false", "exported": exported, "complete": str(complete).lower(), "revisions": "0",
            "status": "cannot_judge" if unjudged else "rated" if values else "not_rated",
            "reference_shown": str(row.get(REFERENCE) == "1").lower(), "reference_seen": str(row.get(REFERENCE) == "2").lower(),
        }  # fmt: skip
        lines += [head | {"axis": axis, "value": value} for axis, value in (values.items() if values and not unjudged else [("", "")])]
    return lines


def _values(path: Path, number: int, row: Mapping[str, str], form: RatingForm) -> dict[str, str]:
    """Return the values of one record by axis: empty if the rater could not judge, absent for an error that was not marked."""
    values = {}
    for axis, anchors in form.axes.items():
        codes = {str(value) for value in range(anchors.lowest, anchors.highest + 1)}
        if row[axis] not in codes | {CANNOT, ""}:
            refuse_line(path, number, f"{axis} is not a code of the form; export raw data, no labels")
        if row[axis]:
            values[axis] = "" if row[axis] == CANNOT else row[axis]
    for code in form.errors:
        if row[f"{MARKED}{code}"] not in {"", "0", "1", "2"}:
            refuse_line(path, number, f"{MARKED}{code} is not a code of the form; export raw data, no labels")
        if row[f"{MARKED}{code}"] in {"1", "2"}:
            values[f"{ERROR_AXIS}{code}"] = row[f"{MARKED}{code}"]
    return values
