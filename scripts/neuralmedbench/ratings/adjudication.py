"""Adjudication: a further rater decides the disagreements among the raters of a round."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.ratings.exports import RatedResponse, RoundKey
from neuralmedbench.ratings.form import AdjudicationSettings, RatingForm
from neuralmedbench.ratings.imports import FOLDER, AdjudicationKey, adjudication_keys, import_round, read_round
from neuralmedbench.ratings.page import Json, packet_page
from neuralmedbench.ratings.rounds import Presentation, RoundMaterial, make_packet
from neuralmedbench.records.blinding import hide_names
from neuralmedbench.records.scores import SIMULATED_ROUND, Key, Rating, RatingPart, response_key, text_digest

TITLE = "Adjudication of ratings"


class AdjudicationReason(StrEnum):
    """Reason why an axis of an answer needs adjudication."""

    APART = "values differ"
    ACROSS = "values are on both sides of a bound"
    UNJUDGED = "only some raters could judge"


@dataclass(frozen=True)
class FrozenAdjudication:
    """An adjudication before it is written; `reasons` counts axes, `left_out` answers that have changed since they were rated."""

    key: AdjudicationKey
    pages: dict[str, str]
    reasons: dict[AdjudicationReason, int]
    left_out: int


def require_new_name(folder: Path, name: str) -> None:
    """Refuse the name of an existing adjudication: its packet may be in use, and decisions are bound to its key.

    Raises
    ------
    RatingError
        If there is no such round, the name is invalid or taken, or the round is that of the simulated raters.
    """
    # the simulated round is made by a rule, which would make it again without the adjudication
    if folder.name == SIMULATED_ROUND or not folder.is_dir():
        message = (
            f"{folder.name}: {'this round is simulated by a rule and has no adjudication' if folder.is_dir() else 'there is no such round'}"
        )
        raise RatingError(message)
    if not re.fullmatch(rf"{FOLDER}(-[a-z0-9]{{1,20}})?", name):
        message = f"NAME is not valid for an adjudication; use {FOLDER}, or {FOLDER}-2 for later ratings"
        raise RatingError(message)
    if (folder / name).exists():
        message = f"{folder.name}/{name}: it exists and is never replaced; use another name for later ratings, for example {FOLDER}-2"
        raise RatingError(message)


def require_complete(folder: Path, form: RatingForm) -> None:
    """Refuse a round in which a rater has no complete export: later ratings would not be in the packet.

    Raises
    ------
    RatingError
        Naming the pseudonyms of these raters.
    """
    key, exports = read_round(folder, form)
    complete = {export.rater.id for export in exports if export.complete}
    if waiting := sorted({packet.rater for packet in key.packets} - complete):
        message = f"{folder.name}: no complete export yet of {', '.join(waiting)}; wait for it, or add --unfinished to the command"
        raise RatingError(message)


def freeze_stored_adjudication(folder: Path, name: str, material: RoundMaterial) -> FrozenAdjudication:
    """Make the packet from the files of a round; parameters and errors as in :func:`freeze_adjudication`."""
    key, _ = read_round(folder, material.form)
    texts = {response_key(one.response): text_digest(one.response.text) for one in material.candidates}
    done = {one.key for earlier in adjudication_keys(folder) for one in earlier.packet.items.values()}
    return freeze_adjudication(name, key, material, import_round(folder, material.form, texts), done=done)


def freeze_adjudication(
    name: str, key: RoundKey, material: RoundMaterial, ratings: Sequence[Rating], *, done: Collection[Key] = ()
) -> FrozenAdjudication:
    """Make the packet of an adjudicator from the ratings of a round; an equal secret and equal input give equal bytes.

    It contains no controls, and no responses of an earlier packet (`done`). RatingError if nothing has to be decided, or if ratings by
    clinicians and by a program would mix; DataError if a picture is not the one that was sent.
    """
    # first showings only: controls and repeats need no decision
    given = [row for row in ratings if row.part is RatingPart.SAMPLE and not row.adjudicated]
    simulated = {row.simulated for row in given}
    if len(simulated) > 1:
        message = f"{key.round_id}: ratings by clinicians and by a program do not mix; remove the simulated exports from its folder"
        raise RatingError(message)
    queue = {response: reasons for response, reasons in queue_of(given, material.form.adjudication).items() if response not in set(done)}
    # the key's record of each answer, for the digest of the text that was rated
    rated = {one.key: one for packet in key.packets for one in packet.items.values() if one.part is RatingPart.SAMPLE}
    # only answers whose text has not changed since they were rated
    current = {response_key(one.response): one for one in material.candidates}
    standing = {
        response: reasons
        for response, reasons in queue.items()
        if response in current and text_digest(current[response].response.text) == rated[response].text_sha256
    }
    if not standing:
        message = f"{key.round_id}: there is no disagreement to adjudicate{' beyond those in earlier packets' if done else ''}"
        raise RatingError(message)
    secret, rater = material.secret, name.replace(FOLDER, "adjudicator", 1)
    # the page shows the values of all raters of an answer, in random order and without names
    values = _values(given)
    order = {response: _shuffled(values[response], f"{secret}/{response}") for response in standing}
    shown = [
        _presentation(
            current[response],
            rated[response],
            material.names,
            {"axes": list(axes), "ratings": [_shown_values(values[response][one], axes) for one in order[response]]},
        )
        for response, axes in standing.items()
    ]
    # the packet is made like that of a rater, with one axis or more per answer instead of the whole form
    packet, data = make_packet(rater, shown, _adjudication_form(key, material.form), secret, material.root)
    responses = {item_id: one.key for item_id, one in packet.items.items()}
    whole = AdjudicationKey(
        schema="neuralmedbench.adjudication_key/1",
        round_id=key.round_id,
        rubric=key.rubric,
        secret=secret,
        first_judgement=key.first_judgement,
        simulated=True in simulated,
        packet=packet,
        axes={item_id: list(standing[response]) for item_id, response in responses.items()},
        shown={item_id: order[response] for item_id, response in responses.items()},
    )
    reasons = Counter(reason for by_axis in standing.values() for reason in by_axis.values())
    return FrozenAdjudication(whole, {rater: packet_page(data, TITLE)}, dict(reasons), len(queue) - len(standing))


def queue_of(ratings: Iterable[Rating], rules: AdjudicationSettings) -> dict[Key, dict[str, AdjudicationReason]]:
    """Find the axes on which the raters of a response disagree, in the order of the rules; sorted by response.

    Controls, second showings, stale ratings and earlier decisions are ignored.
    """
    given: dict[Key, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for row in ratings:
        if row.part is RatingPart.SAMPLE and not (row.stale or row.adjudicated):
            given[response_key(row)][row.axis].append(row.value)
    queue = {}
    for key in sorted(given):
        reasons = {axis: reason for axis in (*rules.apart, *rules.across) if (reason := _reason_for(axis, given[key].get(axis, ()), rules))}
        if reasons:
            queue[key] = reasons
    return queue


def _reason_for(axis: str, values: Sequence[float | None], rules: AdjudicationSettings) -> AdjudicationReason | None:
    # None stands for `cannot judge`
    known = [value for value in values if value is not None]
    if known and len(known) < len(values):
        return AdjudicationReason.UNJUDGED
    if axis in rules.apart and known and max(known) - min(known) >= rules.apart[axis]:
        return AdjudicationReason.APART
    if axis in rules.across and known and min(known) < rules.across[axis] <= max(known):
        return AdjudicationReason.ACROSS
    return None


def _values(ratings: Iterable[Rating]) -> dict[Key, dict[str, dict[str, float | None]]]:
    """Group values by response, rater and axis."""
    values: dict[Key, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for row in ratings:
        values[response_key(row)][row.rater_id][row.axis] = row.value
    return values


def _shuffled(raters: Mapping[str, object], seed: str) -> list[str]:
    shuffled = sorted(raters)
    Random(seed).shuffle(shuffled)
    return shuffled


def _presentation(candidate: RatingCandidate, rated: RatedResponse, names: Sequence[str], more: Json) -> Presentation:
    return Presentation(candidate, tuple(hide_names(text, names)[0] for text in candidate.answers), rated, more)


def _shown_values(values: Mapping[str, float | None], axes: Iterable[str]) -> dict[str, int | None]:
    """Return one rater's values on the axes to decide, for the page; axes that were not rated are absent."""
    rated = {axis: values[axis] for axis in axes if axis in values}
    return {axis: None if value is None else int(value) for axis, value in rated.items()}


def _adjudication_form(key: RoundKey, form: RatingForm) -> RatingForm:
    """Return the form without errors and repeats, and with the reference shown as in the round."""
    # the adjudicator sees what the raters saw
    reference = "after_first_judgement" if key.first_judgement else "never"
    shown = form.rounds.model_copy(update={"repeats": 0.0, "reference": reference, "first_judgement": tuple(key.first_judgement)})
    return form.model_copy(update={"errors": (), "rounds": shown})


def adjudication_lines(folder: Path, name: str, frozen: FrozenAdjudication) -> list[str]:
    """Return lines on what was made, and the next steps."""
    reasons = ", ".join(f"{number} x {reason}" for reason, number in sorted(frozen.reasons.items()))
    rater = frozen.key.packet.rater
    lines = [f"{folder.name}: {len(frozen.key.axes)} answers to decide ({reasons})"]
    if frozen.left_out:
        lines.append(f"  {frozen.left_out} more are left out: their answers have changed since they were rated")
    lines.append(f"Give {folder.as_posix()}/{name}/packets/{rater}.html to a person who has not rated in this round; the key stays here.")
    lines.append(f"Put the export into {folder.as_posix()}/ and run the workflow.")
    return lines
