"""The verdict on an update: a new revision against the one in use, margin by margin, on the same patients. Never a recommendation."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.readiness import Margin, UpdateKind
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.exact import holm_known
from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.estimates.noninferiority import gap_bounds, gaps_of, margin_test
from neuralmedbench.models.causes import can_be_asked, next_step
from neuralmedbench.models.life import last_day, life_words
from neuralmedbench.records.items import Item, is_headline
from neuralmedbench.records.responses import MISSING_STATES, Response, ResponseState, is_by_another_model
from neuralmedbench.records.scores import Grade
from neuralmedbench.records.words import counted, listing
from neuralmedbench.scoring.llm.model_grading import NO_ANSWER
from neuralmedbench.tables.answers import Samples, gather_answers
from neuralmedbench.tables.outcomes import FULL, Key, headline
from neuralmedbench.tables.readiness import (
    AFTER,
    JUDGES,
    NOT_MET,
    WHOLE,
    Member,
    ModelAnswers,
    answers_of,
    known_groups,
    model_rows,
    when_stated,
)
from neuralmedbench.tables.study import BenchmarkStudy, Study

APPROVE, CONDITIONAL, REVIEW, REJECT = "approve", "conditional", "review", "reject"
NO_EVENT = frozenset({"max_wrong_side", "max_confident_errors"})
"""Kinds of error that an answer can only make by stating something: one that does not state it has no such error."""
MOST_CASES = 10
IN_USE, NEW = "in use", "new"
UNANSWERED = frozenset(NO_ANSWER.format(state) for state in (ResponseState.FAILED, ResponseState.OVER_BUDGET))
"""Why a grade is missing that can be asked for again."""
NO_MARGIN = "config/readiness.yaml: `update` states no margin; thresholds belong to the site: docs/readiness.md explains them"


@dataclass(frozen=True, kw_only=True)
class PairedPatients:
    """The patients whose answers of both revisions were judged for one kind of error.

    Attributes
    ----------
    gaps : dict of str to float
        By patient: share of bad answers of the new revision minus that of the one in use.
    old, new : float
        Mean shares of bad answers.
    eligible, unpaired : int
        Items to judge, and those of them without a complete verdict because answers or grades are missing.
    appeared, vanished : dict of str to list of str
        By patient: cases with an error in a new answer and in none of the revision in use; and the reverse.
    """

    gaps: dict[str, float]
    old: float
    new: float
    eligible: int
    unpaired: int
    appeared: dict[str, list[str]]
    vanished: dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class MarginVerdict:
    """One margin of an update.

    Attributes
    ----------
    old, new : float or None
        Mean shares of bad answers over patients; None if no patient could be compared.
    value, low, high : float or None
        New minus old, above 0 is worse, with one-sided bounds at the level of the look.
    p_within, p_beyond : float or None
        Of the tests that it is worse by less, and by more (the latter corrected after Holm over all margins).
    shown, exceeded : bool
        Whether the margin is shown to hold, and to be exceeded.
    note : str
        Why it cannot be shown, if it is not because of the numbers.
    """

    group: str
    kind: str
    margin: float
    essential: bool
    patients: int
    old: float | None = None
    new: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_within: float | None = None
    p_beyond: float | None = None
    shown: bool = False
    exceeded: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """New errors of one kind: patients who have one only under the new revision, those who have it only under the old one, and some cases."""

    group: str
    kind: str
    limit: int
    appeared: int
    vanished: int
    cases: tuple[str, ...]

    @property
    def raised(self) -> bool:
        """True if more patients than stated have a new error."""
        return self.appeared > self.limit


@dataclass(frozen=True, kw_only=True)
class UpdatePair:
    """Both revisions of a model on one benchmark, ready to be judged.

    Attributes
    ----------
    pairs : mapping of (str, str) to PairedPatients
        By group and kind of error, for every margin and alarm.
    reservations : tuple of str
        Why there is no approval whatever the margins say, each a sentence.
    blocked : tuple of str
        Why there is no verdict, each with the next step.
    last_days : tuple of str
        Until when the revisions can be asked, where that is known and near.
    """

    benchmark: str
    model: str
    reference: str
    revision: str
    answered_on: str = ""
    stated: str = ""
    pairs: Mapping[tuple[str, str], PairedPatients] = field(default_factory=dict)
    reservations: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    last_days: tuple[str, ...] = ()


def judge_margins(
    gaps: Mapping[tuple[str, str], Floats], margins: Sequence[Margin], *, level: float, reject_level: float
) -> list[MarginVerdict]:
    """Test every margin of an update.

    Parameters
    ----------
    gaps : mapping of (str, str) to ndarray of float, shape (patients,)
        By group and kind: gaps of patients, above 0 is worse.
    margins : sequence of Margin
        The margins.
    level : float
        Error of this look for approval. An approval needs every margin, so no part of the error is spent on their number.
    reject_level : float
        Error for rejection: one margin is enough for it, so these tests are corrected after Holm.
    """
    found: list[MarginVerdict] = []
    for margin in margins:
        own = gaps.get(margin[:2], np.zeros(0))
        row = MarginVerdict(**margin._asdict(), patients=len(own))
        if len(own):
            test = margin_test(gaps_of(own), margin.margin)
            row = replace(row, value=gaps_of(own).value, p_within=test.p_within, p_beyond=test.p_beyond, shown=test.p_within <= level)
        found.append(row)
    corrected = holm_known([row.p_beyond for row in found])
    return [row if p is None else replace(row, p_beyond=p, exceeded=p <= reject_level) for row, p in zip(found, corrected, strict=True)]


def outcome_of(rows: Sequence[MarginVerdict], *, reserved: bool = False) -> str:
    """Return the outcome: reject, approve, conditional or review.

    Rejected if a margin is shown to be exceeded; approved if all are shown to hold; conditional if all essential ones are and another one is
    not; otherwise a person has to look. With a reservation there is no approval.
    """
    if any(row.exceeded for row in rows):
        return REJECT
    essential = [row for row in rows if row.essential]
    if rows and not reserved and all(row.shown for row in rows):
        return APPROVE
    return CONDITIONAL if essential and not reserved and all(row.shown for row in essential) else REVIEW


def verdicts_of(
    pair: UpdatePair, margins: Sequence[Margin], *, level: float, reject_level: float, most_missing: float
) -> list[MarginVerdict]:
    """Test the margins of a pair; of a kind with too many items unpaired none is shown."""
    gaps = {key: np.array(list(found.gaps.values())) for key, found in pair.pairs.items()}
    rows = []
    for row in judge_margins(gaps, margins, level=level, reject_level=reject_level):
        found, note = pair.pairs[row.group, row.kind], ""
        if not row.patients:
            rows.append(replace(row, note="not measured"))
            continue
        if found.unpaired > most_missing * found.eligible:
            note = f"{found.unpaired} of {counted(found.eligible, 'item')} have an answer or a grade missing"
        low, high = gap_bounds(gaps_of(gaps[row.group, row.kind]), level) if level > 0 else (-1.0, 1.0)
        rows.append(replace(row, old=found.old, new=found.new, low=low, high=high, shown=row.shown and not note, note=note))
    return rows


def alarms_of(pair: UpdatePair, limits: Mapping[str, Mapping[UpdateKind, int | None]]) -> list[Alarm]:
    """Count the patients with new errors of each kind that has a limit; a rule about counts, not a test."""
    return [
        Alarm(
            group=group,
            kind=kind,
            limit=limit,
            appeared=len(found.appeared),
            vanished=len(found.vanished),
            cases=tuple(dict.fromkeys(case for cases in found.appeared.values() for case in cases))[:MOST_CASES],
        )
        for group, kinds in limits.items()
        for kind, limit in kinds.items()
        if limit is not None
        for found in [pair.pairs[group, kind]]
    ]


def read_pair(study: Study, model: str, today: datetime.date) -> UpdatePair:
    """Pair the answers of a model's present revision with those of the one in use.

    Parameters
    ----------
    study : Study
        A run with the benchmark of `update` and the model.
    model : str
        The model.
    today : date
        Day from which the last days of the two revisions are counted.

    Raises
    ------
    ConfigError
        If no margin is stated, the run lacks benchmark or model, or it is a limited one.
    """
    update, members = study.readiness.update, known_groups(study.readiness, study.vocabulary)
    benchmark, revision = _benchmark(study, model), study.models[model].revision
    if unanswered := [*_unanswered(study, benchmark, model)]:
        reference = study.models[model].reference_revision or "none"
        return UpdatePair(benchmark=benchmark.name, model=model, reference=reference, revision=revision, blocked=tuple(unanswered))
    old, new = answers_of(study, benchmark, model, earlier=True), answers_of(study, benchmark, model)
    keys = [margin[:2] for margin in update.margins]
    keys += [(group, kind) for group, kinds in update.alarms.items() for kind, limit in kinds.items() if limit is not None]
    items = sorted((row for row in benchmark.items if row.item_id in old.gold), key=lambda row: row.item_id)
    frame = gather_answers(items, {IN_USE: benchmark.earlier[model], NEW: benchmark.scores[model]})
    sides = (old, frame.of(Key(IN_USE))), (new, frame.of(Key(NEW)))
    pairs: dict[tuple[str, str], PairedPatients] = {
        key: pair_patients(items, sides, members[key[0]], key[1]) for key in dict.fromkeys(keys)
    }
    stated = when_stated(study.readiness, benchmark.responses[model])
    days = sorted({row.called_on for row in benchmark.responses[model] if is_headline(row)} - {""})
    return UpdatePair(
        benchmark=benchmark.name,
        model=model,
        reference=benchmark.earlier[model][0].revision,
        revision=revision,
        answered_on=" to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        stated=stated,
        pairs=pairs,
        reservations=tuple(_reservations(study, benchmark, model, members, stated)),
        blocked=tuple(_incomparable(study, benchmark, model)),
        last_days=tuple(_last_days(study.models[model], benchmark.earlier_responses[model], today)),
    )


def _last_days(model: ModelConfig, in_use: Sequence[Response], today: datetime.date) -> Iterator[str]:
    """Yield until when the two revisions can be asked; the one in use is known by the name under which it answered."""
    served = Counter(row.served_model for row in in_use if row.served_model).most_common(1)
    for which, day in (("in use", last_day(model, served[0][0]) if served else None), ("new", last_day(model))):
        if day:
            yield from (f"The revision that is {which}: {words}." for words in life_words(day, today))


def _benchmark(study: Study, model: str) -> BenchmarkStudy:
    update = study.readiness.update
    if not update.margins or update.benchmark is None:
        raise ConfigError(NO_MARGIN)
    if update.benchmark not in study.benchmarks or model not in study.models:
        what, name = ("benchmark", update.benchmark) if update.benchmark not in study.benchmarks else ("model", model)
        message = f"the run has no {what} {name}; give its configuration with --configfiles, and make its report first"
        raise ConfigError(message)
    if study.limit:
        message = "a limited run (`limit`) asks too few questions for a verdict on an update; make a whole one"
        raise ConfigError(message)
    return study.benchmarks[update.benchmark]


def _unanswered(study: Study, benchmark: BenchmarkStudy, model: str) -> Iterator[str]:
    """Yield which of the two revisions has no answers."""
    for rows, which in (
        (benchmark.earlier[model], study.models[model].reference_revision),
        (benchmark.scores[model], study.models[model].revision),
    ):
        if not headline(rows):
            name = f"revision {which}" if which else "a revision before the present one"
            yield f"There are no answers of {name} to {benchmark.name}. Raise `revision` in config/models/{model}.yaml after an update, and run the workflow."


def pair_patients(items: Sequence[Item], sides: Sequence[tuple[ModelAnswers, Samples]], member: Member, kind: str) -> PairedPatients:
    """Compare the shares of bad answers of each patient under two revisions.

    Parameters
    ----------
    items : sequence of Item
        The items with a reference.
    sides : sequence of (ModelAnswers, Samples)
        The answers of the revision in use and of the new one, in the frame with missing ones.
    member : callable
        Whether a diagnosis belongs to the group.
    kind : str
        Kind of error.

    Returns
    -------
    PairedPatients
        Over the items of the group that the revision in use was asked, and that either of the two revisions could be judged on. Every item of
        a patient counts the same, and every patient.
    """
    gold = sides[0][0].gold
    of_group = np.array([member(gold[item.item_id].answer) for item in items])
    bad, known = zip(*(_judged(samples, kind, answers) for answers, samples in sides), strict=True)
    asked = [samples.number() for _, samples in sides]
    eligible = of_group & sides[0][1].asked & (known[0] + known[1] > 0)
    complete = sides[0][1].answered & sides[1][1].answered
    if kind not in NO_EVENT:
        complete &= (known[0] == asked[0]) & (known[1] == asked[1])
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    appeared: dict[str, list[str]] = defaultdict(list)
    vanished: dict[str, list[str]] = defaultdict(list)
    for place in np.flatnonzero(eligible & complete).tolist():
        item, (before, after) = items[place], [int(side[place]) for side in bad]
        shares[item.patient_id].append((before / int(asked[0][place]), after / int(asked[1][place])))
        if (after > 0) is not (before > 0):
            (appeared if after else vanished)[item.patient_id].append(item.case_id)
    means = {patient: np.mean(values, axis=0) for patient, values in sorted(shares.items())}
    old, new = np.mean(list(means.values()), axis=0) if means else (0.0, 0.0)
    return PairedPatients(
        gaps={patient: float(after - before) for patient, (before, after) in means.items()},
        old=float(old),
        new=float(new),
        eligible=int(eligible.sum()),
        unpaired=int((eligible & ~complete).sum()),
        appeared=dict(appeared),
        vanished=dict(vanished),
    )


def _judged(samples: Samples, kind: str, answers: ModelAnswers) -> tuple[Ints, Ints]:
    """Count the bad answers to each item, and those with a verdict; shape (items,)."""
    verdicts = [None if row is None or row.missing else JUDGES[kind](row, answers) for row in samples.scores]
    good = kind.startswith("min_")
    known = np.array([verdict is not None for verdict in verdicts], dtype=bool)
    bad = known & np.array([verdict is not good for verdict in verdicts], dtype=bool)
    return samples.number(bad), samples.number(known)


def _reservations(study: Study, benchmark: BenchmarkStudy, model: str, members: Mapping[str, Member], stated: str) -> Iterator[str]:
    if stated == AFTER:
        yield "The margins were written down after the new revision was first asked."
    if model in benchmark.config.reference_pool:
        yield "The items were chosen by answers of this model, so a new revision may look better than it is."
    not_met = [row for row in model_rows(study, benchmark, model, members) if row.get("use")]
    for row in not_met:
        if row["condition"] == WHOLE and row["verdict"] == NOT_MET:
            title = study.readiness.uses[row["use"]].title
            yield f"The new revision does not meet the site's conditions on {title} ({study.readiness.groups[row['group']].title})."


def _incomparable(study: Study, benchmark: BenchmarkStudy, model: str) -> Iterator[str]:
    """Yield what makes the two revisions incomparable: answers and grades that are missing, those of other models, and of several ones."""
    yield from _missing(study, benchmark, model)
    for grader in study.all_graders:
        sides = [_served_models(grades.get((model, grader), ())) for grades in (benchmark.earlier_grades, benchmark.grades)]
        if sides[0] != sides[1] and all(sides):
            yield (
                f"The grader {grader} was served as {_names(sides[0])} when it graded the revision in use, and as {_names(sides[1])} when it"
                f" graded the new one: grade both again. Raise `revision` in config/graders/{grader}.yaml and run the workflow."
            )
    whole = study.models[model].backend in ("server", "transformers")
    for rows, which in ((benchmark.earlier_responses[model], "in use"), (benchmark.responses[model], "new")):
        served = {(row.served_model, row.fingerprint if whole else "") for row in rows if row.served_model and row.arm == FULL}
        if len(served) > 1:
            yield (
                f"The answers of the revision that is {which} came from {counted(len(served), 'engine')} ({_names(served)}): give each a"
                f" revision of its own. Raise `revision` in config/models/{model}.yaml and run the workflow."
            )


def _missing(study: Study, benchmark: BenchmarkStudy, model: str) -> Iterator[str]:
    """Yield which answers and grades are missing that can be asked for, and which another model gave than the one asked."""
    missing = [row.error for row in benchmark.responses[model] if is_headline(row) and row.state in MISSING_STATES]
    answers = [why for why in missing if can_be_asked(why)] if study.models[model].backend != "imported" else []
    graded = [row for (who, _), grades in benchmark.grades.items() if who == model for row in grades if is_headline(row)]
    grades = [row.explanation for row in graded if row.explanation in UNANSWERED]
    for noun, causes in (("answer", answers), ("grade", grades)):
        if causes:
            why = Counter(causes).most_common(1)[0][0] or "no reason is known"
            yield f"{counted(len(causes), noun)} of the new revision can still be asked for (most often: {why}). Run `nmb run retry` with the configuration of this run."
    for which, rows in (("in use", benchmark.earlier_responses[model]), ("new", benchmark.responses[model])):
        others = Counter(row.error for row in rows if is_headline(row) and is_by_another_model(row.error))
        yield from (
            f"{counted(number, 'answer')} of the revision that is {which} were {why}; {next_step(why)}." for why, number in others.items()
        )
    for grader in study.all_graders:
        sides = (benchmark.earlier_grades, benchmark.grades)
        others = Counter(
            row.explanation for grades in sides for row in grades.get((model, grader), ()) if is_by_another_model(row.explanation)
        )
        yield from (f"{counted(number, 'grade')} of {grader} were {why}; {next_step(why)}." for why, number in others.items())


def _served_models(grades: Iterable[Grade]) -> set[tuple[str, str]]:
    return {(row.served_model, row.fingerprint) for row in grades if row.served_model and is_headline(row)}


def _names(served: Iterable[tuple[str, str]]) -> str:
    return listing([" ".join(filter(None, pair)) for pair in sorted(served)])
