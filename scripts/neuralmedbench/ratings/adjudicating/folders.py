"""An adjudication in the folder of its round: when it may be made, from which ratings, and what a person is told of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.adjudicating.files import FOLDER, adjudication_keys
from neuralmedbench.ratings.adjudicating.rounds import FrozenAdjudication, freeze_adjudication, responses_of
from neuralmedbench.ratings.candidates import Candidate
from neuralmedbench.ratings.exports import Form
from neuralmedbench.ratings.imports import import_round, read_round
from neuralmedbench.records.keys import response_key, text_digest
from neuralmedbench.records.scores import SIMULATED_ROUND


def require_new_name(folder: Path, name: str) -> None:
    """Refuse a name that is taken: somebody may hold that packet, and what it decides is bound to its key.

    Raises
    ------
    RatingError
        If there is no such round, the name does not fit or is taken, or the round is that of the simulated raters.
    """
    if folder.name == SIMULATED_ROUND or not folder.is_dir():
        message = f"{folder.name}: {'a rule makes this round, nobody decides in it' if folder.is_dir() else 'there is no such round'}"
        raise RatingError(message)
    if not re.fullmatch(rf"{FOLDER}(-[a-z0-9]{{1,20}})?", name):
        message = f"NAME is no name of an adjudication; take {FOLDER}, or {FOLDER}-2 for ratings that came in later"
        raise RatingError(message)
    if (folder / name).exists():
        message = (
            f"{folder.name}/{name}: is there already and is never made again; ratings that came in later need another name, as {FOLDER}-2"
        )
        raise RatingError(message)


def require_complete(folder: Path, form: Form) -> None:
    """Refuse a round of which a rater has not sent a complete export: what comes later would not be in the packet.

    Raises
    ------
    RatingError
        With the pseudonyms of these raters.
    """
    key, exports = read_round(folder, form)
    complete = {export.rater.id for export in exports if export.complete}
    if waiting := sorted({packet.rater for packet in key.packets} - complete):
        message = f"{folder.name}: no complete export yet of {', '.join(waiting)}; wait for it, or add --unfinished to the command"
        raise RatingError(message)


def freeze(folder: Path, name: str, form: Form, candidates: Sequence[Candidate], names: Sequence[str]) -> FrozenAdjudication:
    """Make the packet out of what lies in the folder of a round; see :func:`adjudicating.rounds.freeze_adjudication`."""
    key, _ = read_round(folder, form)
    texts = {response_key(one.response): text_digest(one.response.text) for one in candidates}
    done = set().union(*(responses_of(one) for one in adjudication_keys(folder)))
    return freeze_adjudication(name, key, form, import_round(folder, form, texts), candidates, names=names, done=done)


def adjudication_lines(folder: Path, name: str, frozen: FrozenAdjudication) -> list[str]:
    """Say what was made and what a person does with it."""
    reasons = ", ".join(f"{number} x {reason}" for reason, number in sorted(frozen.reasons.items()))
    rater = frozen.key.packet.rater
    lines = [f"{folder.name}: {len(frozen.key.axes)} answers to decide ({reasons})"]
    if frozen.left_out:
        lines.append(f"  {frozen.left_out} more are left out: their answers are not there any more as they were rated")
    lines.append(f"Give {folder.as_posix()}/{name}/packets/{rater}.html to a person who has rated none of this round; the key stays here.")
    lines.append(f"Put the export into {folder.as_posix()}/ and run the workflow.")
    return lines
