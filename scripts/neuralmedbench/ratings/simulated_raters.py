"""SIMULATED raters for the demo: a seeded model of two people who fill in the form. No person rated anything, and every export is marked so.

They exist so that the demo shows the tables of a round. Their values start from the grades of the deterministic grader, so their agreement
with it means nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.ratings.exports import MarkedError, PacketKey, RatedItem, RatedResponse, Rater, RatingExport, RoundKey
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.ratings.rounds import FrozenRound, RoundMaterial, freeze_round
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, SIMULATED_ROUND, Grade, GradeState, Key, RatingPart, response_key
from neuralmedbench.records.taxonomy import ERRORS, counts_under

ROLE = "simulated"
SECRET = hashlib.sha256(b"simulated raters of the demo").hexdigest()
"""Key for ids and orders; public, because no rater has to be blinded."""

STARTED, EXPORTED = "2000-01-01T08:00:00Z", "2000-01-01T12:00:00Z"
WORSE_UPWARDS = frozenset({"harm_extent", "harm_likelihood"})
"""Axes on which a high value is bad."""

OF_THE_RATER = frozenset({"rater_confidence"})
"""Axes about the rater, not about the answer."""

UNGRADED = 0.5
"""Assumed worth (0 to 1) of an answer without a grade."""
WORTH = {RatingPart.CONTROL_RIGHT: 0.95, RatingPart.CONTROL_WRONG: 0.1}


@dataclass(frozen=True)
class SimulatedRater:
    """Parameters of one simulated rater.

    `severity` is subtracted from the worth of every answer (0 to 1); `noise` is the standard deviation of the rater's opinion on an axis of
    an answer, `hand` that between two showings; `unjudged` and `curious` are the probabilities of 'cannot judge' and of opening the
    reference after the first judgement; `seconds` is the median time per answer.
    """

    severity: float
    noise: float
    hand: float
    unjudged: float
    curious: float
    seconds: float


SIMULATED_RATERS = {
    "simulated-1": SimulatedRater(severity=-0.03, noise=0.08, hand=0.03, unjudged=0.01, curious=0.1, seconds=45),
    "simulated-2": SimulatedRater(severity=0.08, noise=0.12, hand=0.06, unjudged=0.03, curious=0.03, seconds=70),
}
"""Invented numbers, not taken from a study."""


def simulate_round(
    form: RatingForm, candidates: Sequence[RatingCandidate], grades: Iterable[Grade], names: Sequence[str], *, root: Path = Path()
) -> tuple[RoundKey, dict[str, RatingExport]]:
    """Draw a round from the answers of the demo, as for people, and fill it in.

    Parameters
    ----------
    form : RatingForm
        Rubric. Both raters see all drawn answers; every stratum has at least one.
    candidates : sequence of RatingCandidate
        Every answer that may be drawn; without any, the round is empty.
    grades : iterable of Grade
        Grades of the deterministic grader, from which the raters start.
    names : sequence of str
        Names of models, which are hidden as for people.
    root : Path
        Repository root.

    Returns
    -------
    key : RoundKey
        Key of the round.
    exports : dict of str to RatingExport
        Complete export of each rater by pseudonym, each marked `simulated`.
    """
    frozen = _freeze(form, candidates, names, root) if candidates else _empty(form)
    worth = _worth(grades)
    asked = {one.item.item_id: one for one in candidates}
    return frozen.key, {packet.rater: _fill_in(packet, form, worth, asked) for packet in frozen.key.packets}


def _freeze(form: RatingForm, candidates: Sequence[RatingCandidate], names: Sequence[str], root: Path) -> FrozenRound:
    # at least one draw per stratum, whatever the configuration requests
    strata = len({one.stratum for one in candidates})
    settings = {
        "raters": len(SIMULATED_RATERS),
        "raters_per_response": len(SIMULATED_RATERS),
        "responses": max(form.rounds.responses, strata),
    }
    whole = form.model_copy(update={"rounds": form.rounds.model_copy(update=settings)})
    material = RoundMaterial(whole, candidates, names, root=root, secret=SECRET)
    return freeze_round(SIMULATED_ROUND, material, pseudonyms=tuple(SIMULATED_RATERS))


def _empty(form: RatingForm) -> FrozenRound:
    """Return an empty round, so that a run in which every answer was refused or is missing goes on."""
    packets = [PacketKey(packet_id=rater, packet_sha256="0" * 64, rater=rater, items={}) for rater in SIMULATED_RATERS]
    key = RoundKey(
        schema="neuralmedbench.rating_key/2", round_id=SIMULATED_ROUND, rubric=form.rubric, seed=form.rounds.seed, secret=SECRET,
        first_judgement=list(form.rounds.first_judgement), strata={}, packets=packets,
    )  # fmt: skip
    return FrozenRound(key, {})


def _worth(grades: Iterable[Grade]) -> dict[Key, float]:
    """Return the worth of each answer, 0 to 1: mostly its core diagnosis, less its main condition."""
    share = {CORE_DIAGNOSIS: 0.55, MAIN_CONDITION: 0.3}
    worth: dict[Key, float] = {}
    for grade in grades:
        if grade.criterion in share and grade.state is GradeState.OK and grade.value is not None:
            worth[response_key(grade)] = worth.get(response_key(grade), 0.1) + share[grade.criterion] * grade.value
    return worth


def _fill_in(packet: PacketKey, form: RatingForm, worth: Mapping[Key, float], candidates: Mapping[str, RatingCandidate]) -> RatingExport:
    person, items = SIMULATED_RATERS[packet.rater], []
    opened: set[str] = set()
    for position, item_id in enumerate(packet.order, start=1):
        rated = packet.items[item_id]
        one = candidates[rated.item_id]
        showing = f"{packet.rater}/{rated.part}/{_answer(rated)}"
        case = f"{one.item.benchmark}/{one.item.case_id}"
        # a rater who opens the reference has seen it at later answers to the case
        looks = bool(form.rounds.first_judgement) and one.gold is not None and Random(f"look/{showing}").random() < person.curious
        worth_of_it = worth.get(rated.key, WORTH.get(rated.part, UNGRADED))
        item = _rate(item_id, rated, packet.rater, form=form, worth=worth_of_it, one=one)
        items.append(item.model_copy(update={"position": position, "reference_shown": looks, "reference_seen": case in opened}))
        opened |= {case} if looks else set()
    return RatingExport(
        schema="neuralmedbench.rating/1", packet_id=packet.packet_id, packet_sha256=packet.packet_sha256, rubric=form.rubric,
        rater=Rater(id=packet.rater, role=ROLE, simulated=True), started=STARTED, exported=EXPORTED, complete=True, items=items,
    )  # fmt: skip


def _rate(item_id: str, rated: RatedResponse, rater: str, *, form: RatingForm, worth: float, one: RatingCandidate) -> RatedItem:
    person, answer = SIMULATED_RATERS[rater], _answer(rated)
    showing = Random(f"showing/{rater}/{rated.part}/{answer}")
    seconds = round(person.seconds * math.exp(showing.gauss(0, 0.5)), 1)
    if showing.random() < person.unjudged:
        return RatedItem(item_id=item_id, position=1, status="cannot_judge", seconds_active=seconds)
    scores, unjudged = {}, []
    for name, axis in form.axes.items():
        # noise shared by both raters, noise of this rater, and noise of this showing
        seen = Random(f"seen/{answer}/{name}").gauss(0, 0.1)
        opinion = Random(f"own/{rater}/{answer}/{name}").gauss(0, person.noise)
        value = worth + seen + opinion + showing.gauss(0, person.hand) - person.severity
        # the rater's own confidence does not depend on the answer
        if name in OF_THE_RATER:
            value = 0.75 + opinion
        if showing.random() < person.unjudged:
            unjudged.append(name)
        else:
            share = min(1.0, max(0.0, 1 - value if name in WORSE_UPWARDS else value))
            scores[name] = axis.lowest + round(share * (axis.highest - axis.lowest))
    if len(unjudged) == len(form.axes):
        return RatedItem(item_id=item_id, position=1, status="cannot_judge", seconds_active=seconds)
    return RatedItem(
        item_id=item_id, position=1, status="rated", scores=scores, cannot_judge=unjudged, errors=_marks(rater, answer, form, worth, one),
        seconds_active=seconds, revisions=showing.choice((0, 0, 0, 1)),
    )  # fmt: skip


def _marks(rater: str, answer: str, form: RatingForm, worth: float, one: RatingCandidate) -> list[MarkedError]:
    """Mark errors: in a poor answer mostly one that both raters mark, occasionally one that only this rater marks."""
    complete = one.gold is not None and one.gold.findings_complete
    lesion_shown = one.item.lesion_shown
    codes = [code for code in form.errors if counts_under(ERRORS[code], lesion_shown=lesion_shown, findings_complete=complete)]
    if not codes:
        return []
    both, single = Random(f"error/{answer}"), Random(f"error/{rater}/{answer}")
    shared = {both.choice(codes): worth < 0.5} if both.random() > worth else {}
    marks = {code: significant for code, significant in shared.items() if single.random() < 0.8}
    if single.random() < 0.1:
        marks.setdefault(single.choice(codes), False)
    return [MarkedError(code=code, significant=significant) for code, significant in sorted(marks.items())]


def _answer(rated: RatedResponse) -> str:
    """Name an answer for the seeds; its revision is left out, so that the same text gets the same ratings under another one."""
    return f"{rated.item_id}/{rated.arm}/{rated.strategy}/{rated.model}/{rated.repeat}/{rated.text_sha256}"
