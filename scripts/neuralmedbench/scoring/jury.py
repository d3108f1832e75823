"""Juries: several graders vote on a grade; a member that failed is missing, never zero."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuralmedbench.records.scores import Grade, GradeState, Key, response_key

LEAST_SHARE = 0.5
"""Share of the members that must vote for a jury to have a grade."""

Ballot = tuple[Key, str, str]


def decide(votes: Sequence[float], rule: str) -> float:
    """Combine votes into one value.

    Parameters
    ----------
    votes : sequence of float
        Values of the members that voted, at least one.
    rule : str
        `majority`: the lower median, the largest value that more than half of the votes reach. For votes of 0 and 1 it is 1 only if more
        than half are 1; a tie is 0, for merits and for errors alike. `mean`: the mean.

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
    return float(sorted(votes)[(len(votes) - 1) // 2])  # the lower median


def ballots(members: Mapping[str, Sequence[Grade]]) -> dict[Ballot, dict[str, Grade]]:
    """Group the grades of a jury's members.

    Parameters
    ----------
    members : mapping of str to sequence of Grade
        Grades of each member, with a value or without.

    Returns
    -------
    dict
        Grades by member, for each response key, digest of its text and criterion.
    """
    by_ballot: dict[Ballot, dict[str, Grade]] = defaultdict(dict)
    for member, grades in members.items():
        for grade in grades:
            by_ballot[response_key(grade), grade.text_sha256, grade.criterion][member] = grade
    return dict(by_ballot)


def votes_of(grades: Mapping[str, Grade]) -> dict[str, float]:
    """Return the value of each member that voted."""
    return {member: grade.value for member, grade in grades.items() if grade.state is GradeState.OK and grade.value is not None}


def has_quorum(votes: int, members: int) -> bool:
    """Return True if the votes are enough for a grade: those of at least half of the members."""
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
        One row per response and criterion for which any member has a row. The explanation says how many voted. With fewer than half of
        the members the grade is `failed`, or `skipped` (`not_graded`) if no member could be asked (read the language). Calls are recorded with the members only.
    """
    return [_grade(grades, len(members), jury=jury, rule=rule) for grades in ballots(members).values()]


def _grade(grades: Mapping[str, Grade], members: int, *, jury: str, rule: str) -> Grade:
    votes = votes_of(grades)
    summary = f"{len(votes)} of {members} members voted"
    if has_quorum(len(votes), members):
        counts = ", ".join(f"{value:g} ({count})" for value, count in sorted(Counter(votes.values()).items()))
        value, state, summary = decide(list(votes.values()), rule), GradeState.OK, f"{summary}: {counts}"
    else:
        states = {grade.state for grade in grades.values()}
        alike = len(states) == 1 and not votes
        value, state = None, states.pop() if alike else GradeState.FAILED
    first = next(iter(grades.values()))
    # a jury makes no call, so nothing of its members' calls is counted again
    no_call = {"served_model": "", "fingerprint": "", "called_on": "", "destination": "", "attempts": 0, "characters_sent": 0, "calls": ()}
    return replace(first, grader=jury, value=value, state=state, explanation=summary, **no_call)  # type: ignore[arg-type]
