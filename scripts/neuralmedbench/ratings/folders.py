"""Write a round to its folder atomically, and print the next steps; an existing round is never replaced."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from neuralmedbench.errors import RatingError
from neuralmedbench.files.json_files import write_json
from neuralmedbench.ratings.answering.answer_rounds import FrozenReaderRound
from neuralmedbench.ratings.imports import KEY_FILE
from neuralmedbench.ratings.rounds import FrozenRound
from neuralmedbench.records.scores import SIMULATED_ROUND, RatingPart
from neuralmedbench.runtime.atomic_write import partial_folder, write_text

PACKETS = "packets"
"""Folder of the pages, next to the key; only the pages go to raters."""


class Round(Protocol):
    """A round of any kind before it is written: its key, which stays here, and the page of each rater by pseudonym."""

    @property
    def key(self) -> BaseModel:
        """Key of the round: resolves every opaque id."""

    @property
    def pages(self) -> dict[str, str]:
        """HTML by pseudonym."""


def require_new(folder: Path) -> None:
    """Refuse the name of an existing round: raters may have its packets, and ratings are bound to its key.

    Raises
    ------
    RatingError
        If the folder exists or has the name of the simulated round.
    """
    if folder.name == SIMULATED_ROUND:
        message = f"{folder.name}: this name belongs to the simulated raters of the demo; give the round another name"
        raise RatingError(message)
    if folder.exists():
        message = f"{folder.name}: this round exists and is never replaced; give the new one another name"
        raise RatingError(message)


def write_round(folder: Path, frozen: Round) -> None:
    """Write a round atomically; only the owner of the file can read the key.

    Raises
    ------
    RatingError
        As in :func:`require_new`.
    """
    require_new(folder)
    # written next to its place and renamed, so that no half-written round is ever seen
    with partial_folder(folder.parent) as work:
        made = work / folder.name
        write_json(made / KEY_FILE, frozen.key.model_dump(mode="json", by_alias=True), private=True)
        for rater, text in frozen.pages.items():
            write_text(made / PACKETS / f"{rater}.html", text)
        try:
            os.rename(made, folder)
        except OSError:  # another process created the folder in the meantime
            require_new(folder)
            raise


def round_lines(folder: Path, frozen: FrozenRound) -> list[str]:
    """Return lines on the round that was made, and the next steps."""
    # the number of controls depends on the drawn questions
    parts = Counter(rated.part for packet in frozen.key.packets for rated in packet.items.values())
    lines = _draw_lines(folder, frozen, "answers", "model x family x level", "rate")
    if not parts[RatingPart.CONTROL_RIGHT] or not parts[RatingPart.CONTROL_WRONG]:
        lines.append("  controls of one kind are missing: no question of the round has an answer to make them from")
    return [
        *lines,
        f"Give each rater one page and nothing else; {KEY_FILE} must stay on this machine.",
        f"Put the exports into {folder.as_posix()}/, add {folder.name} to `rating_rounds` of the configuration, and run the workflow.",
    ]


def reader_round_lines(folder: Path, frozen: FrozenReaderRound) -> list[str]:
    """Return lines on the reader round that was made, and the next steps."""
    return [
        *_draw_lines(folder, frozen, "questions", "benchmark x family x level", "answer"),
        f"Give each reader one page and nothing else; {KEY_FILE} must stay on this machine.",
        f"Put the exports (JSON) into {folder.as_posix()}/ and run: nmb ratings import-readers --round {folder.name}",
    ]


def _draw_lines(folder: Path, frozen: FrozenRound | FrozenReaderRound, units: str, strata: str, task: str) -> list[str]:
    """Return lines on the sizes of draw and population, and one per page."""
    drawn, frame = (sum(getattr(stratum, name) for stratum in frozen.key.strata.values()) for name in ("drawn", "frame"))
    lines = [f"{folder.name}: {drawn} of {frame} {units} drawn from {len(frozen.key.strata)} strata ({strata})"]
    for packet in frozen.key.packets:
        megabytes = len(frozen.pages[packet.rater].encode()) / 1e6
        lines.append(f"  {folder.as_posix()}/{PACKETS}/{packet.rater}.html: {len(packet.order)} to {task}, {megabytes:.1f} MB")
    return lines
