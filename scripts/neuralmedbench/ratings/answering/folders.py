"""What a person is told of a round of answers that was frozen."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.ratings.answering.rounds import FrozenAnswers
from neuralmedbench.ratings.folders import PACKETS
from neuralmedbench.ratings.imports import KEY_FILE


def answer_round_lines(folder: Path, frozen: FrozenAnswers) -> list[str]:
    """Say what was made and what a person does with it."""
    strata = frozen.key.strata
    drawn, frame = (sum(getattr(stratum, name) for stratum in strata.values()) for name in ("drawn", "frame"))
    lines = [f"{folder.name}: {drawn} of {frame} questions drawn from {len(strata)} strata (benchmark x family x level)"]
    for packet in frozen.key.packets:
        megabytes = len(frozen.pages[packet.rater].encode()) / 1e6
        lines.append(f"  {folder.as_posix()}/{PACKETS}/{packet.rater}.html: {len(packet.order)} to answer, {megabytes:.1f} MB")
    return [
        *lines,
        f"Give each reader one page and nothing else; {KEY_FILE} never leaves this place.",
        f"Put the exports (JSON) into {folder.as_posix()}/ and run: python scripts/import_reader.py --round {folder.name}",
    ]
