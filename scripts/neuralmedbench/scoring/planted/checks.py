"""What a grader made of planted errors, and the criteria for which it is not used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, PLANTED, Grade, GradeState, PlantedAnswer, text_digest
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.scoring.planted.edits import EDITS, FAILED, PASSED

MET = 0.5
"""A criterion is met from this value; an error is there from 1."""


@dataclass(frozen=True, kw_only=True)
class EditCheck:
    """What one grader made of one edit, for one criterion.

    Attributes
    ----------
    edit : str
        The edit.
    criterion : str
        The criterion; those of a rubric by their kind, without number (`criterion_kind`).
    must : str
        `fall`, `rise` or `stay`: what the edit does to the criterion.
    n : int
        Patients whose edited answer and the answer it is made of both have a grade.
    detected : float
        Of these, how many were graded as expected twice: before the edit and after it. Several criteria of one kind count in parts.
    base_failed : float
        How many were not graded as expected before the edit.
    missing : int
        Patients for whom one of the two grades failed.
    """

    edit: str
    criterion: str
    must: str
    n: int
    detected: float
    base_failed: float
    missing: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the exact interval of the share detected, 0 to 1; every patient counts once per edit."""
        return clopper_pearson(self.detected, self.n, confidence) if self.n else (0.0, 1.0)

    def below(self, floor: float, confidence: float) -> bool:
        """Return True if the share detected is below a floor with its whole interval."""
        return self.n > 0 and self.interval(confidence)[1] < floor


@lru_cache(maxsize=10_000)
def criterion_kind(criterion: str) -> str:
    """Return the kind of a criterion: what stands before its number or its sequence.

    Examples
    --------
    >>> criterion_kind("mentions_finding_3"), criterion_kind("names_signal_flair"), criterion_kind("core_diagnosis")
    ('mentions_finding', 'names_signal', 'core_diagnosis')
    """
    return "names_signal" if criterion.startswith("names_signal_") else re.sub(r"_\d+$", "", criterion)


def check_grader(planted: Iterable[PlantedAnswer], grades: Iterable[Grade]) -> list[EditCheck]:
    """Compare a grader's grades of planted answers with what was expected.

    Parameters
    ----------
    planted : iterable of PlantedAnswer
        Of one benchmark.
    grades : iterable of Grade
        Of one grader for those of these answers that it was asked for.

    Returns
    -------
    list of EditCheck
        By edit and criterion, for the criteria that the grader judges; empty if it was not asked. An edit that changes a criterion has
        rows for what it changes and for the two verdicts; one that changes nothing has rows for all criteria.
    """
    return check_together([(planted, grades)])


def check_together(tests: Iterable[tuple[Iterable[PlantedAnswer], Iterable[Grade]]]) -> list[EditCheck]:
    """Do the same for answers of several models: a patient counts once per edit, with the mean over the models' answers."""
    found: dict[tuple[str, str, str], dict[str, list[tuple[float, float] | None]]] = defaultdict(lambda: defaultdict(list))
    for planted, grades in tests:
        for key, patient, share in _compared(list(planted), grades):
            found[key][patient].append(share)
    order = [edit.name for edit in EDITS]
    return [
        _check(*key, found[key].values())
        for key in sorted(found, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), key))
    ]


def _compared(
    rows: Sequence[PlantedAnswer], grades: Iterable[Grade]
) -> Iterator[tuple[tuple[str, str, str], str, tuple[float, float] | None]]:
    """For every edit, kind of criterion and direction: the patient, and the shares detected and misjudged before (None: a grade failed)."""
    values: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)
    for grade in grades:
        if grade.state is not GradeState.SKIPPED:
            values[grade.item_id, grade.text_sha256][grade.criterion] = grade.value
    bases = {(row.item_id, row.edit): row for row in rows if not row.base}
    for row in (row for row in rows if row.base):
        base = bases[row.item_id, row.base]
        after = values[row.item_id, text_digest(row.text)]
        # what the grader gave the answer of a model is known, and is not asked again
        given: dict[str, float | None] = {name: float(met) for name, met in base.expected.items()}
        before = given if base.edit in (PASSED, FAILED) else values[row.item_id, text_digest(base.text)]
        for (kind, must), criteria in _changes(base, row).items():
            asked = [name for name in criteria if name in before and name in after]
            graded = [
                (is_met(name, was) == base.expected[name], is_met(name, now) == row.expected[name])
                for name in asked
                if (was := before[name]) is not None and (now := after[name]) is not None
            ]
            share = (float(np.mean([all(pair) for pair in graded])), float(np.mean([not pair[0] for pair in graded]))) if graded else None
            if asked:
                yield (row.edit, kind, must), row.patient_id, share


def is_met(criterion: str, value: float) -> bool:
    """Return True if a value of a grade means that the criterion is met, or the error present."""
    return value > 0 if criterion.startswith(ERROR_AXIS) else value >= MET


def _changes(base: PlantedAnswer, edited: PlantedAnswer) -> dict[tuple[str, str], list[str]]:
    """Group the criteria of an edit by their kind and by what must happen to them."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    changed = any(base.expected.get(name, value) != value for name, value in edited.expected.items())
    for name, value in edited.expected.items():
        if name in base.expected:
            must = "stay" if base.expected[name] == value else "rise" if value else "fall"
            if must != "stay" or not changed or name in (MAIN_CONDITION, CORE_DIAGNOSIS):
                groups[criterion_kind(name), must].append(name)
    return groups


def _check(edit: str, kind: str, must: str, patients: Iterable[Sequence[tuple[float, float] | None]]) -> EditCheck:
    shares = [[share for share in answers if share is not None] for answers in patients]
    graded = [np.mean(answers, axis=0) for answers in shares if answers]
    return EditCheck(
        edit=edit,
        criterion=kind,
        must=must,
        n=len(graded),
        detected=float(sum(share[0] for share in graded)),
        base_failed=float(sum(share[1] for share in graded)),
        missing=len(shares) - len(graded),
    )


def unused_criteria(checks: Iterable[EditCheck], floor: float, confidence: float) -> frozenset[str]:
    """Return the kinds of criteria for which a grader is not used: those with an edit whose whole interval is below the floor."""
    return frozenset(check.criterion for check in checks if check.below(floor, confidence))


def asked_of_all(members: Mapping[str, Sequence[Grade]]) -> dict[str, list[Grade]]:
    """Keep the grades of planted answers that every tested member of a jury was asked for.

    Some members are tested on more patients, and errors are planted in answers of models that the member itself has passed or failed.
    """
    asked = [
        {_planted_text(row) for row in rows if row.model == PLANTED and row.state is not GradeState.SKIPPED} for rows in members.values()
    ]
    shared = set.intersection(*tested) if (tested := [one for one in asked if one]) else set()
    return {name: [row for row in rows if row.model != PLANTED or _planted_text(row) in shared] for name, rows in members.items()}


def _planted_text(grade: Grade) -> tuple[str, str, str]:
    # members that judged an answer differently may have been asked about the same words for different edits
    return grade.item_id, grade.strategy, grade.text_sha256


def believed_grades(
    grades: Sequence[Sequence[Grade]],
    planted: Sequence[PlantedAnswer],
    planted_grades: Sequence[Iterable[Grade]],
    *,
    in_answers: Sequence[Sequence[PlantedAnswer]] = (),
    floor: float,
    confidence: float,
) -> list[list[Grade]]:
    """Leave out what graders say about criteria for which they are not used.

    Parameters
    ----------
    grades : sequence of sequence of Grade
        Of the answers of one model, and of these with planted errors, by grader.
    planted, planted_grades : sequence of PlantedAnswer, sequence of iterable of Grade
        Errors planted in answers made from the references, and what each grader made of them.
    in_answers : sequence of sequence of PlantedAnswer
        Errors planted in answers of the model, by grader.
    floor, confidence : float
        As of `EditCheck.below`.

    Returns
    -------
    list of list of Grade
        Of the answers of the model, in the order of the graders.
    """
    tests = [check_grader(planted, tested) for tested in planted_grades]
    tests = [[*one, *check_grader(own, rows)] for one, own, rows in zip(tests, in_answers or [()] * len(tests), grades, strict=True)]
    return [usable_grades(rows, unused_criteria(one, floor, confidence)) for rows, one in zip(grades, tests, strict=True)]


def usable_grades(grades: Iterable[Grade], unused: frozenset[str]) -> list[Grade]:
    """Leave out the grades for criteria for which a grader is not used, and those of planted answers."""
    return [grade for grade in grades if grade.model != PLANTED and criterion_kind(grade.criterion) not in unused]
