"""The key of an adjudication, which lies in its round's folder; its export is one of the round, with fewer lines to fill in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.exports import Export, PacketKey, Strict, read_file
from neuralmedbench.records.scores import Rating

FOLDER = "adjudication"
"""Name of the first one's folder; a later one has more behind it, as in `adjudication-2`."""


class AdjudicationKey(Strict):
    """`key.json` of an adjudication: never leaves this place.

    `axes` names by opaque id what is decided, `shown` the raters whose values the page shows, in that order; `simulated` when a program made
    these ratings: then what is decided is simulated too.
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


def adjudication_keys(folder: Path) -> list[AdjudicationKey]:
    """Read the keys of all adjudications of a round, by name."""
    return [read_file(path, AdjudicationKey) for path in sorted(folder.glob(f"{FOLDER}*/key.json"))]


def check_decided(name: str, export: Export, key: AdjudicationKey) -> None:
    """Refuse an export that decides what was not asked.

    Raises
    ------
    RatingError
        If it has an error, or an axis on which the raters of that answer did not disagree.
    """
    for number, item in enumerate(export.items, start=1):
        asked = set(key.axes[item.item_id])
        if item.errors or ({*item.scores, *item.cannot_judge} - asked):
            message = f"{name}, entry {number}: it decides what was not asked; an adjudicator is asked for {', '.join(sorted(asked))} here"
            raise RatingError(message)


def decided(rows: Iterable[Rating], key: AdjudicationKey, item_id: str) -> list[Rating]:
    """Mark what an adjudicator said of one answer; axes that were not asked are left out, as where nothing of it could be judged."""
    asked = [row for row in rows if row.axis in key.axes[item_id]]
    return [replace(row, adjudicated=True, simulated=row.simulated or key.simulated) for row in asked]
