"""Freezing an adjudication: one packet for a further rater, with the values of the others in no order, and the key that stays here."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.adjudicating.files import FOLDER, AdjudicationKey
from neuralmedbench.ratings.adjudicating.queue import Reason, queue_of
from neuralmedbench.ratings.candidates import Candidate
from neuralmedbench.ratings.exports import Form, RatedResponse, RoundKey
from neuralmedbench.ratings.packet import packet_page
from neuralmedbench.ratings.page import Json
from neuralmedbench.ratings.rounds import Showing, make_packet
from neuralmedbench.records.blinding import hide_names
from neuralmedbench.records.keys import Key, response_key, text_digest
from neuralmedbench.records.scores import Rating, RatingPart

TITLE = "Adjudication of ratings"


@dataclass(frozen=True)
class FrozenAdjudication:
    """An adjudication before it is written; `reasons` counts axes, `left_out` answers that are not there any more as they were rated."""

    key: AdjudicationKey
    pages: dict[str, str]
    reasons: dict[Reason, int]
    left_out: int


def freeze_adjudication(
    name: str,
    key: RoundKey,
    form: Form,
    ratings: Sequence[Rating],
    candidates: Iterable[Candidate],
    *,
    names: Sequence[str],
    done: Collection[Key] = (),
    root: Path = Path(),
    secret: str = "",
) -> FrozenAdjudication:
    """Make the packet of an adjudicator.

    Parameters
    ----------
    name : str
        Of its folder.
    key : RoundKey
        Of the round.
    form : Form
        The rubric, and what counts as a disagreement.
    ratings : sequence of Rating
        Of the round, as they are imported.
    candidates : iterable of Candidate
        Answers as they stand now.
    names : sequence of str
        Names by which an answer could give its model away.
    done : collection of Key
        Responses that an earlier packet has asked for.
    root : Path
        Repository root, to which the paths of pictures are relative.
    secret : str
        Hexadecimal; ids and orders come from it. A new one is made when it is empty.

    Returns
    -------
    FrozenAdjudication
        With the same secret and the same input the same bytes. Controls are never in it.

    Raises
    ------
    RatingError
        If there is nothing to decide, or ratings of clinicians and of a program would mix.
    DataError
        If a picture is not the one that was sent.
    """
    given = [row for row in ratings if row.part is RatingPart.SAMPLE and not row.adjudicated]
    simulated = {row.simulated for row in given}
    if len(simulated) > 1:
        message = f"{key.round_id}: ratings of clinicians and of a program do not mix; take the simulated exports out of its folder"
        raise RatingError(message)
    queue = {response: reasons for response, reasons in queue_of(given, form.adjudication).items() if response not in set(done)}
    rated = {_response(one): one for packet in key.packets for one in packet.items.values() if one.part is RatingPart.SAMPLE}
    now = {response_key(one.response): one for one in candidates}
    standing = {
        response: reasons
        for response, reasons in queue.items()
        if response in now and text_digest(now[response].response.text) == rated[response].text_sha256
    }
    if not standing:
        message = (
            f"{key.round_id}: there is no disagreement that a further rater has to decide{' and that was not asked before' if done else ''}"
        )
        raise RatingError(message)
    secret, rater = secret or secrets.token_hex(32), name.replace(FOLDER, "adjudicator", 1)
    values = _values(given)
    order = {response: _in_no_order(values[response], f"{secret}/{response}") for response in standing}
    shown = [
        _showing(
            now[response],
            rated[response],
            names,
            {"axes": list(axes), "ratings": [_of(values[response][one], axes) for one in order[response]]},
        )
        for response, axes in standing.items()
    ]
    packet, data = make_packet(rater, shown, _form_of(key, form), secret, root)
    responses = {item_id: _response(one) for item_id, one in packet.items.items()}
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
    reasons = Counter(reason for found in standing.values() for reason in found.values())
    return FrozenAdjudication(whole, {rater: packet_page(data, TITLE)}, dict(reasons), len(queue) - len(standing))


def responses_of(key: AdjudicationKey) -> set[Key]:
    """Responses that a packet has asked for."""
    return {_response(one) for one in key.packet.items.values()}


def _form_of(key: RoundKey, form: Form) -> Form:
    """Give the form without errors and repeats, with the reference shown as in the round."""
    reference = "after_first_judgement" if key.first_judgement else "never"
    shown = form.rounds.model_copy(update={"repeats": 0.0, "reference": reference, "first_judgement": tuple(key.first_judgement)})
    return form.model_copy(update={"errors": (), "rounds": shown})


def _showing(candidate: Candidate, rated: RatedResponse, names: Sequence[str], more: Json) -> Showing:
    return Showing(candidate, tuple(hide_names(text, names)[0] for text in candidate.answers), rated, more)


def _values(ratings: Iterable[Rating]) -> dict[Key, dict[str, dict[str, float | None]]]:
    """Values by response, rater and axis."""
    values: dict[Key, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for row in ratings:
        values[response_key(row)][row.rater_id][row.axis] = row.value
    return values


def _of(values: Mapping[str, float | None], axes: Iterable[str]) -> dict[str, int | None]:
    """Give one rater's values on the axes to decide, as the page shows them; an axis that was not rated is not there."""
    found = {axis: values[axis] for axis in axes if axis in values}
    return {axis: None if value is None else int(value) for axis, value in found.items()}


def _in_no_order(raters: Mapping[str, object], seed: str) -> list[str]:
    shuffled = sorted(raters)
    Random(seed).shuffle(shuffled)
    return shuffled


def _response(one: RatedResponse) -> Key:
    return one.item_id, one.arm, one.strategy, one.model, one.revision, one.repeat
