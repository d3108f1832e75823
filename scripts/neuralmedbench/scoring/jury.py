"""Juries: several graders vote on a grade; a member that failed is missing, never zero."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuralmedbench.records.keys import Key, response_key
from neuralmedbench.records.scores import Grade, GradeState

LEAST_SHARE = 0.5
"""With fewer of its members a jury has no grade."""

Ballot = tuple[Key, str, str]


def decide(votes: Sequence[float], rule: str) -> float:
    """Make one value of the votes.

    Parameters
    ----------
    votes : sequence of float
        Values of the members who voted, at least one.
    rule : str
        `majority`: the largest value that more than half of the votes reach, which is the lower median. Of 0 and 1 it is 1 only where more
        than half say so; with an even number a tie is 0, for what is good of an answer and for what is bad of it. `mean`: their mean.

    Returns
    -------
    float
        The value.

    Examples
    --------
    >>> decide([0, 1], "majority"), decide([0, 1, 1], "majority"), decide([0, 1], "mean")
    (0.0, 1.0, 0.5)
    """
    if rule == "mean":
        return sum(votes) / len(votes)
    return float(sorted(votes)[(len(votes) - 1) // 2])


def ballots(members: Mapping[str, Sequence[Grade]]) -> dict[Ballot, dict[str, Grade]]:
    """Gather the grades of a jury's members.

    Parameters
    ----------
    members : mapping of str to sequence of Grade
        Grades of each member, with a value or without.

    Returns
    -------
    dict
        By response, digest of its text and criterion: grades by member.
    """
    found: dict[Ballot, dict[str, Grade]] = defaultdict(dict)
    for member, grades in members.items():
        for grade in grades:
            found[response_key(grade), grade.text_sha256, grade.criterion][member] = grade
    return dict(found)


def votes_of(grades: Mapping[str, Grade]) -> dict[str, float]:
    """Give the values by member of those who voted."""
    return {member: grade.value for member, grade in grades.items() if grade.state is GradeState.OK and grade.value is not None}


def enough(votes: int, members: int) -> bool:
    """Whether so many votes are enough for a grade: half of the members, or more."""
    return votes > 0 and votes >= LEAST_SHARE * members


def grade_with_jury(members: Mapping[str, Sequence[Grade]], *, jury: str, rule: str) -> list[Grade]:
    """Let a jury vote on the responses of one model.

    Parameters
    ----------
    members : mapping of str to sequence of Grade
        Grades of each member, in the jury's order.
    jury : str
        Its name.
    rule : str
        As of `decide`.

    Returns
    -------
    list of Grade
        One row for each response and criterion that a member graded, or could not. The explanation says how many voted. Without half of the
        members the grade is `failed`, or `skipped` when nobody could be asked. It names no call: those stand with the members.
    """
    return [_grade(grades, len(members), jury=jury, rule=rule) for grades in ballots(members).values()]


def _grade(grades: Mapping[str, Grade], members: int, *, jury: str, rule: str) -> Grade:
    votes = votes_of(grades)
    said = f"{len(votes)} of {members} members voted"
    if enough(len(votes), members):
        counts = ", ".join(f"{value:g} ({count})" for value, count in sorted(Counter(votes.values()).items()))
        value, state, said = decide(list(votes.values()), rule), GradeState.OK, f"{said}: {counts}"
    else:
        states = {grade.state for grade in grades.values()}
        value, state = None, GradeState.SKIPPED if states == {GradeState.SKIPPED} else GradeState.FAILED
    first = next(iter(grades.values()))
    no_call = {"served_model": "", "fingerprint": "", "called_on": "", "destination": "", "attempts": 0, "characters_sent": 0}
    return replace(first, grader=jury, value=value, state=state, explanation=said, **no_call)  # type: ignore[arg-type]
