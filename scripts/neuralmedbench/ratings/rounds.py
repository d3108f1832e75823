"""Freeze a rating round: draw the answers with known probabilities, make one blinded packet per rater, and a key that stays here."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import TypeVar

from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.candidates import RatingCandidate, make_controls, reference_lines
from neuralmedbench.ratings.exports import PacketKey, RatedResponse, RoundKey, StratumKey
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.ratings.page import Json, answer_data, packet_data, packet_page, read_pictures
from neuralmedbench.records.blinding import hide_names
from neuralmedbench.records.scores import RatingPart, response_key, text_digest

T = TypeVar("T", bound=Hashable)
GAP = 10
"""Number of other answers between two answers to the same case, if there are enough."""


@dataclass(frozen=True)
class StratifiedDraw:
    """Result of a draw: positions of the drawn candidates, ascending within a stratum, and the sizes of each stratum."""

    places: tuple[int, ...]
    strata: dict[str, StratumKey]


@dataclass(frozen=True)
class Presentation:
    """One answer as one rater sees it; `more` holds further data for the page."""

    candidate: RatingCandidate
    answers: tuple[str, ...]
    rated: RatedResponse
    more: Json = field(default_factory=dict)


@dataclass(frozen=True)
class FrozenRound:
    """A round before it is written: its key, and the page of each rater by pseudonym."""

    key: RoundKey
    pages: dict[str, str]


@dataclass(frozen=True)
class RoundMaterial:
    """Input of the packets of a round.

    Attributes
    ----------
    form : RatingForm
        Rubric, and settings of the draw and the page.
    candidates : sequence of RatingCandidate
        Every answer that may be shown: the population of the draw probabilities.
    names : sequence of str
        Names that could reveal the model of an answer; they are hidden.
    root : Path
        Repository root; paths of pictures are relative to it.
    secret : str
        Hexadecimal key for opaque ids and orders; a new one by default.
    """

    form: RatingForm
    candidates: Sequence[RatingCandidate]
    names: Sequence[str]
    root: Path = Path()
    secret: str = field(default_factory=lambda: secrets.token_hex(32))


def freeze_round(round_id: str, material: RoundMaterial, *, pseudonyms: Sequence[str] = ()) -> FrozenRound:
    """Draw a round and make its packets.

    Parameters
    ----------
    round_id : str
        Name of the round; it is part of the seed, so another name draws other answers.
    material : RoundMaterial
        The form and the answers.
    pseudonyms : sequence of str
        Pseudonyms of the raters; `rater-1` and so on if empty.

    Returns
    -------
    FrozenRound
        Equal bytes for an equal secret and equal input.

    Raises
    ------
    RatingError
        If there is nothing to draw, or fewer answers are requested than there are strata.
    DataError
        If a picture is not the one that was sent.
    """
    form, settings = material.form, material.form.rounds
    # sorted, so that the draw does not depend on the order of the input
    frame = sorted(material.candidates, key=lambda one: response_key(one.response))
    if not frame:
        message = f"{round_id}: there is no answer to draw from the families {', '.join(settings.families)}; run the workflow first"
        raise RatingError(message)
    drawn = draw([one.stratum for one in frame], settings.responses, f"{settings.seed}/{round_id}")
    chosen = [_presentation(frame[place], material.names, drawn.strata[frame[place].stratum].probability) for place in drawn.places]
    # controls are seen by every rater, drawn answers by `raters_per_response` of them
    controls = [
        Presentation(control.candidate, (control.text,), _control(control.candidate, control.text, control.part))
        for control in make_controls([one.candidate for one in chosen], settings.controls, Random(f"{settings.seed}/{round_id}/controls"))
    ]
    seen_by = assign_raters(len(chosen), settings.raters, settings.raters_per_response)
    packets, pages = [], {}
    for number in range(settings.raters):
        rater = pseudonyms[number] if pseudonyms else f"rater-{number + 1}"
        assigned = [one for one, raters in zip(chosen, seen_by, strict=True) if number in raters]
        key, data = make_packet(rater, [*assigned, *controls], form, material.secret, material.root)
        packets.append(key)
        pages[rater] = packet_page(data)
    whole = RoundKey(
        schema="neuralmedbench.rating_key/2",
        round_id=round_id,
        rubric=form.rubric,
        seed=settings.seed,
        secret=material.secret,
        first_judgement=list(settings.first_judgement),
        strata=drawn.strata,
        packets=packets,
    )
    return FrozenRound(whole, pages)


def _presentation(candidate: RatingCandidate, names: Sequence[str], probability: float) -> Presentation:
    # model names in the answer are masked; the digest is that of the original text
    hidden = [hide_names(text, names) for text in candidate.answers]
    response = candidate.response
    rated = RatedResponse(
        item_id=response.item_id,
        arm=response.arm,
        strategy=response.strategy,
        model=response.model,
        revision=response.revision,
        repeat=response.repeat,
        text_sha256=text_digest(response.text),
        stratum=candidate.stratum,
        probability=probability,
        masked=sum(count for _, count in hidden),
    )
    return Presentation(candidate, tuple(text for text, _ in hidden), rated)


def _control(candidate: RatingCandidate, text: str, part: RatingPart) -> RatedResponse:
    return RatedResponse(
        item_id=candidate.item.item_id, arm=candidate.response.arm, strategy=candidate.response.strategy, model="", revision="", repeat=0,
        text_sha256=text_digest(text), part=part,
    )  # fmt: skip


def make_packet(rater: str, presentations: Sequence[Presentation], form: RatingForm, secret: str, root: Path) -> tuple[PacketKey, Json]:
    """Make one rater's packet: the key of its ids, and its data from `ratings.page.packet_data`.

    Ids and order are derived from the secret, not from the seed, which is known. The share `repeats` of the drawn answers is shown twice.
    """
    random = Random(f"{secret}/{rater}")
    # ids are derived from the secret and the rater, so that they cannot be linked across packets
    packet_id = opaque_id(secret, rater, "packet")
    shown = {opaque_id(secret, rater, _name(one)): one for one in presentations}
    # only drawn answers are repeated, never controls
    drawn = [item_id for item_id, one in shown.items() if one.rated.part is RatingPart.SAMPLE]
    again = {
        opaque_id(secret, rater, f"again/{first}"): first for first in random.sample(sorted(drawn), round(form.rounds.repeats * len(drawn)))
    }
    for item_id, first in again.items():
        rated = shown[first].rated.model_copy(update={"part": RatingPart.AGAIN, "again_of": first})
        shown[item_id] = replace(shown[first], rated=rated)
    # answers to one case are kept apart on the page
    cases = {item_id: f"{one.candidate.item.benchmark}/{one.candidate.item.case_id}" for item_id, one in shown.items()}
    order = presentation_order(shown, cases, again, random)
    items = [_item(item_id, opaque_id(secret, rater, f"case/{cases[item_id]}"), shown[item_id], form) for item_id in order]
    pictures = read_pictures((turn for one in shown.values() for turn in one.candidate.sent), root)
    data = packet_data(packet_id, rater, form, items, pictures)
    rated_items: Mapping[str, RatedResponse] = {item_id: one.rated for item_id, one in shown.items()}
    key = PacketKey(packet_id=packet_id, packet_sha256=data["packet_sha256"], rater=rater, items=dict(rated_items), order=order)
    return key, data


def _item(item_id: str, group: str, one: Presentation, form: RatingForm) -> Json:
    gold = one.candidate.gold
    shows_reference = form.rounds.reference != "never"
    reference = reference_lines(one.candidate.item, gold) if shows_reference and gold else ()
    return answer_data(item_id, group, one.candidate.sent, one.answers, reference) | one.more


def _name(one: Presentation) -> str:
    """Name an answer for its opaque id; the revision is left out, so that a new one changes no order."""
    rated = one.rated
    return "/".join((rated.part, rated.item_id, rated.arm, rated.strategy, rated.model, str(rated.repeat)))


def allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Allocate draws to strata as evenly as their sizes allow, at least 1 each; a remainder goes to the first ones by name.

    RatingError if there are fewer draws than strata: answers of a stratum without draws would have no weight.

    Examples
    --------
    >>> allocate({"a": 2, "b": 9, "c": 9}, 11)
    {'a': 2, 'b': 5, 'c': 4}
    """
    if total < len(sizes):
        message = (
            f"{total} are to be drawn from {len(sizes)} strata, each of which needs at least one; raise the number in config/rating.yaml"
        )
        raise RatingError(message)
    given = dict.fromkeys(sorted(sizes), 0)
    # in turns: share the rest equally among the strata that are not yet exhausted
    left = min(total, sum(sizes.values()))
    while left:
        room = [name for name in given if given[name] < sizes[name]]
        share = max(1, left // len(room))
        for name in room:
            step = min(share, sizes[name] - given[name], left)
            given[name] += step
            left -= step
    return given


def draw(strata: Sequence[str], total: int, seed: str) -> StratifiedDraw:
    """Draw without replacement within each stratum: if n of N responses are drawn, each has the probability n / N.

    `strata` gives the stratum of each candidate in the order of their keys; equal seeds and candidates give equal draws.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(strata):
        members[name].append(place)
    counts = allocate({name: len(places) for name, places in members.items()}, total)
    # each stratum has its own seed, so that a change in one does not change the draw in another
    chosen = [place for name in sorted(members) for place in sorted(Random(f"{seed}/{name}").sample(members[name], counts[name]))]
    keys = {
        name: StratumKey(frame=len(places), drawn=counts[name], probability=counts[name] / len(places)) for name, places in members.items()
    }
    return StratifiedDraw(tuple(chosen), keys)


def assign_raters(number: int, raters: int, per_response: int) -> list[tuple[int, ...]]:
    """Assign raters to each of `number` responses: all groups of `per_response` raters in turn, so that every pair shares equally many.

    Examples
    --------
    >>> assign_raters(4, 3, 2)
    [(0, 1), (0, 2), (1, 2), (0, 1)]
    """
    groups = list(combinations(range(raters), per_response))
    return [groups[place % len(groups)] for place in range(number)]


def presentation_order(entries: Iterable[T], cases: Mapping[T, str], again: Mapping[T, T], random: Random) -> list[T]:
    """Shuffle the answers of a packet, with at least `GAP` others between two of a case if possible, and second showings after the first."""
    left = sorted(entries, key=str)
    random.shuffle(left)
    to_come = Counter(cases[entry] for entry in left)
    order: list[T] = []
    last: dict[str, int] = {}
    placed: set[T] = set()
    while left:
        ready = [entry for entry in left if entry not in again or again[entry] in placed]
        # `far`: the last answer to the same case is more than GAP positions back
        far = [entry for entry in ready if len(order) - last.get(cases[entry], -GAP - 1) > GAP]
        # a case with so many answers left that they would end up close together takes precedence
        urgent = [entry for entry in far if (to_come[cases[entry]] - 1) * (GAP + 1) + 1 >= len(left)]
        if urgent:
            chosen = max(urgent, key=lambda entry: to_come[cases[entry]])
        else:
            # if no case is far enough away, take the one seen longest ago
            chosen = far[0] if far else min(ready, key=lambda entry: last.get(cases[entry], -1))
        left.remove(chosen)
        placed.add(chosen)
        to_come[cases[chosen]] -= 1
        last[cases[chosen]] = len(order)
        order.append(chosen)
    return order


def opaque_id(secret: str, rater: str, name: str) -> str:
    """Return an id that can neither be guessed nor linked with that of another rater."""
    return hmac.new(bytes.fromhex(secret), f"{rater}\n{name}".encode(), hashlib.sha256).hexdigest()[:16]
