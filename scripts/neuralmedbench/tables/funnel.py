"""The funnel: of the same items, the share of answers that are right, and stay so under ever stricter conditions (topic `funnel`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.ratings.form import PassRule
from neuralmedbench.records.items import Arm, is_headline
from neuralmedbench.records.scores import Key as AnswerKey
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.scoring.scores import PASS_VALUE
from neuralmedbench.tables.clinicians.opinions import ClinicianVerdict, verdicts_of
from neuralmedbench.tables.declare import Measure, MeasureRow, ModelRows, grouped_by, no_labels, of_models, topic
from neuralmedbench.tables.outcomes import FULL, Key, Outcomes

Accepted = Mapping[AnswerKey, bool]
"""Whether an answer is accepted, by its key; an answer that nobody judged is absent."""

CLINICIANS, GRADER = "clinicians", "a grader"

LEAST_RATED = 0.5
"""Where no grader judges rubrics, acceptance is a step if clinicians rated all answers to this share of the items: raters see a sample. (Our rule.)"""


@dataclass(frozen=True)
class FunnelStep:
    """One step of the funnel: a condition on an answer.

    Attributes
    ----------
    name, words : str
        Its name in the table, and what is left after it, in a sentence.
    arms : tuple of str
        The condition is about answers under the first of these arms that was asked; empty: about the answer itself.
    passes : bool
        True if the answer under that arm has to pass, False if it must not.
    met : callable
        Of a condition on the answer itself: whether a right answer meets it; None if that is not known. It gets the answer, and which
        answers are accepted.
    """

    name: str
    words: str
    arms: tuple[str, ...] = ()
    passes: bool = True
    met: Callable[[Score, Accepted], bool | None] = lambda score, accepted: True


def _located(score: Score, accepted: Accepted) -> bool | None:
    return all(score.evidence.values()) if score.evidence else None


STEPS = (
    FunnelStep("right", "are right"),
    FunnelStep("beyond_history", "where the history alone does not suffice", (Arm.NO_IMAGE,), passes=False),
    FunnelStep(
        "from_picture", "where another patient's pictures do not lead there", ("image_of_another", Arm.SHUFFLED_IMAGE), passes=False
    ),
    FunnelStep("located", "that also name the right place", met=_located),
    FunnelStep("stable", "that also withstand a wrong suggestion", ("suggestion-wrong",)),
    FunnelStep("accepted", "accepted by {judged_by}", met=lambda score, accepted: accepted.get(response_key(score))),
)
"""The conditions in order, as in `MEASURES`; those that a run did not measure are left out."""


@of_models("funnel", partial(verdicts_of, simulated=False))
def funnel_rows(made: ModelRows, rated: Mapping[AnswerKey, ClinicianVerdict]) -> Iterator[MeasureRow]:
    """Share of answers that meet a condition and all before it, by `place`, for models that were asked under an arm of a further step than the first.

    All steps are about the same items. `source` says who accepted answers: clinicians, a grader, or both.
    """
    outcomes, model = made.outcomes, made.model
    arms = {step.name: next((str(arm) for arm in step.arms if Key(model, arm) in outcomes.counts), "") for step in STEPS}
    answers = [score for score in made.benchmark.scores.get(model, ()) if is_headline(score)]
    accepted, judged_by = accepted_answers(answers, rated, made.study.form.passes)
    own = _own_values(outcomes, model, accepted)
    steps = [step for step in STEPS if (arms[step.name] if step.arms else np.isfinite(own[step.name]).any())]
    if len(steps) < 2 or not np.isfinite(own["right"]).any():
        return
    others = {step.name: outcomes.pass1_of_complete_items(Key(model, arms[step.name])) for step in steps if step.arms}
    shares = funnel_shares(steps, own, others)
    # every step is about the same items
    known = np.isfinite(np.array(list(shares.values()))).all(axis=0)
    if not known.any():
        return
    asked = FULL
    for place, step in enumerate(steps, start=1):
        # patients who share a request under an arm of this step or one before are one
        asked += f" {arms[step.name]}" if step.arms else ""
        judges = judged_by if step.name == "accepted" else ""
        row = made.rate(
            step.name, np.where(known, shares[step.name], np.nan), arm=asked, slice="place", value_of_slice=str(place), source=judges
        )
        yield replace(row, arm=arms[step.name] or FULL)


def accepted_answers(
    answers: Sequence[Score], rated: Mapping[AnswerKey, ClinicianVerdict], passes: PassRule | None
) -> tuple[dict[AnswerKey, bool], str]:
    """Return which answers are accepted, and by whom.

    Parameters
    ----------
    answers : sequence of Score
        Answers of one model under the arm full.
    rated : mapping
        Clinicians' verdicts on answers.
    passes : PassRule or None
        What clinicians pass.

    Returns
    -------
    accepted, judged_by : dict, str
        By answer: True if the clinicians who rated it pass it; if none did, if it gets at least half of the points of its rubric. Empty
        without a grader of rubrics if clinicians rated less than `LEAST_RATED` of the items.
    """
    by_grader = {response_key(score): score.rubric >= PASS_VALUE for score in answers if score.rubric is not None}
    values = {key: rated[key].value for score in answers if (key := response_key(score)) in rated}
    by_clinicians = {key: value >= passes.from_ for key, value in values.items() if passes and value is not None}
    if not by_grader:
        items = {score.item_id for score in answers}
        unrated = {score.item_id for score in answers if not score.missing and response_key(score) not in by_clinicians}
        if len(items - unrated) < LEAST_RATED * len(items):
            by_clinicians = {}
    judges = [name for name, found in ((CLINICIANS, by_clinicians), (GRADER, by_grader.keys() - by_clinicians.keys())) if found]
    return by_grader | by_clinicians, " and ".join(judges)


def funnel_shares(steps: Sequence[FunnelStep], own: Mapping[str, Floats], others: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return, for each step, the share of answers per item that meet it and all steps before it.

    Parameters
    ----------
    steps : sequence of FunnelStep
        The steps.
    own : mapping of str to ndarray of float, shape (items,)
        By step about the answer itself: the share of answers that are right and meet this and all earlier conditions of that kind.
    others : mapping of str to ndarray of float, shape (items,)
        By step about another arm: the share of answers that pass there.

    Returns
    -------
    dict of str to ndarray of float, shape (items,)
        By step; NaN where a part is not known. Answers under different arms are drawn independently of each other, so that within an
        item their shares multiply.
    """
    shares: dict[str, Floats] = {}
    of_answer, of_arms = own[steps[0].name], np.ones_like(own[steps[0].name])
    for step in steps:
        if step.arms:
            of_arms = of_arms * (others[step.name] if step.passes else 1 - others[step.name])
        else:
            of_answer = own[step.name]
        shares[step.name] = of_answer * of_arms
    return shares


def _own_values(outcomes: Outcomes, model: str, accepted: Accepted) -> dict[str, Floats]:
    """Return the shares of answers that meet the conditions on the answer itself, each with all before it; NaN where one is not known."""
    samples, right = outcomes.answers.of(Key(model)), outcomes.pass1_of_complete_items(Key(model))
    values, kept = {STEPS[0].name: right}, samples["passed"]
    for step in STEPS[1:]:
        if step.arms:
            continue
        verdicts = [None if score is None else step.met(score, accepted) for score in samples.scores]
        known = np.array([verdict is not None for verdict in verdicts], dtype=bool)
        if not (kept & known).any():
            # a condition that is known of no answer is not measured, and later ones stand without it
            values[step.name] = np.full(len(right), np.nan)
            continue
        kept = kept & np.array(verdicts, dtype=bool)
        # of wrong answers too, so that whether an item counts does not depend on who is right
        unknown = samples.number(samples["there"] & ~known) > 0
        values[step.name] = np.where(unknown | np.isnan(right), np.nan, samples.number(kept) / np.maximum(samples.number(), 1))
    return values


MEASURES = (
    Measure("right", "Right", "Answers that pass, of all answers."),
    Measure("beyond_history", "Not from the history", "Share of all answers that are right and whose item fails without the pictures."),
    Measure(
        "from_picture",
        "From this picture",
        "Share of all answers that are right and whose item fails without the pictures, and with another patient's.",
    ),
    Measure("located", "At the right place", "Share of all answers that meet the conditions before and name the place of the lesion."),
    Measure("stable", "Firm", "Share of all answers that meet the conditions before and whose item passes under a wrong suggestion."),
    Measure(
        "accepted",
        "Accepted",
        "Share of all answers that meet the conditions before and that clinicians or a rubric grader (`source`) accept.",
    ),
)

TABLE = topic(
    "funnel",
    funnel_rows,
    MEASURES,
    labels=no_labels,
    group=grouped_by("benchmark model"),
)
