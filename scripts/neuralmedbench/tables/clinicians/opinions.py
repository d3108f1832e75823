"""What the clinicians of a round say of each answer: one value an answer and axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Rating, RatingPart
from neuralmedbench.records.taxonomy import ERROR_AXIS

Said = tuple[Rating, float | None]


@dataclass(frozen=True, kw_only=True)
class ClinicianWord:
    """What a round says of one answer on one axis.

    Attributes
    ----------
    value : float or None
        The adjudicated value, or else the mean over raters; None when the answer was drawn and nobody could judge it.
    raters : int
        Raters of the round with a value, the adjudicator not among them.
    probability : float or None
        With which the answer was drawn into the round.
    adjudicated, simulated : bool
        Whether a further rater had the last word; whether a program filled the form in.
    round_id : str
        The round.
    """

    value: float | None
    raters: int
    probability: float | None
    adjudicated: bool
    simulated: bool
    round_id: str


def clinician_words(ratings: Sequence[Rating], axis: str) -> dict[Key, ClinicianWord]:
    """Give the clinicians' word on every drawn answer.

    Parameters
    ----------
    ratings : sequence of Rating
        All that were imported; second showings, controls and stale ones are passed over.
    axis : str
        Axis of the form, or `error.<code>`: a rater who judged an answer and did not mark the error says 0.

    Returns
    -------
    dict of Key to ClinicianWord
        By `records.keys.response_key`. Clinicians come before simulated raters, who never enter a word of theirs; of an answer that several
        rounds drew the last round by name counts, so that its probability is that of one draw.
    """
    groups: dict[tuple[Key, bool, str], list[Said]] = defaultdict(list)
    for row, value in with_unmarked_errors(fresh_sample(ratings), axis):
        # real ones sort last, and so win
        groups[response_key(row), not row.simulated, row.round_id].append((row, value))
    return {place[0]: _word(groups[place]) for place in sorted(groups)}


def fresh_sample(ratings: Iterable[Rating]) -> list[Rating]:
    """Ratings of drawn answers whose text stands as it was rated."""
    return [row for row in ratings if row.part is RatingPart.SAMPLE and not row.stale]


def with_unmarked_errors(ratings: Iterable[Rating], axis: str) -> list[Said]:
    """Give what was said on an axis; of an error also the zeros of raters who judged the answer and did not mark it.

    Parameters
    ----------
    ratings : iterable of Rating
        Of all axes.
    axis : str
        Axis of the form, or `error.<code>`.

    Returns
    -------
    list of (Rating, float or None)
        A rating of that rater and answer, and the value on that axis. An adjudicator is not asked for errors and gives no zero.
    """
    if not axis.startswith(ERROR_AXIS):
        return [(row, row.value) for row in ratings if row.axis == axis]
    judged: dict[tuple[object, ...], Said] = {}
    for row in ratings:
        if row.axis == axis:
            judged[_place(row)] = row, row.value
        elif row.value is not None and not row.adjudicated:
            judged.setdefault(_place(row), (row, 0.0))
    return list(judged.values())


def by_axis(ratings: Iterable[Rating]) -> dict[str, list[Rating]]:
    """Split ratings by axis; an error gets one rating of every rater and answer too, by which it is known who judged and did not mark it."""
    split: dict[str, list[Rating]] = defaultdict(list)
    judged: dict[tuple[object, ...], Rating] = {}
    for row in ratings:
        split[row.axis].append(row)
        if row.value is not None and not row.axis.startswith(ERROR_AXIS):
            judged.setdefault(_place(row), row)
    return {axis: [*rows, *judged.values()] if axis.startswith(ERROR_AXIS) else rows for axis, rows in split.items()}


def _place(row: Rating) -> tuple[object, ...]:
    return row.round_id, row.rater_id, response_key(row), row.part, row.text_sha256


def _word(said: Sequence[Said]) -> ClinicianWord:
    # where the further rater cannot judge either, the mean of those who could stands
    last = next((value for row, value in said if row.adjudicated and value is not None), None)
    values = [value for row, value in said if value is not None and not row.adjudicated]
    first = said[0][0]
    return ClinicianWord(
        value=sum(values) / len(values) if last is None and values else last,
        raters=len(values),
        probability=first.probability,
        adjudicated=last is not None,
        simulated=first.simulated,
        round_id=first.round_id,
    )
