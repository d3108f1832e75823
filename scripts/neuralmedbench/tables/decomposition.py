"""Perception or reasoning: the effect of telling the findings in words, tested against another patient's findings and the findings alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from neuralmedbench.estimates.contrasts import Difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Interval, repaired_share
from neuralmedbench.estimates.prediction_powered import correct_rate
from neuralmedbench.records.items import Arm
from neuralmedbench.records.results import PASS1_PATIENTS
from neuralmedbench.tables.calibrated import GraderAccuracy, accuracy_of_score
from neuralmedbench.tables.declare import ContrastRow, Measure, MeasureRow, ModelRows, arm_labels, ends_of, of_models, side_labels, topic

Row = MeasureRow | ContrastRow

TOLD = Arm.FINDINGS_DISCLOSED
ARMS = (Arm.FULL, TOLD, Arm.FINDINGS_OF_ANOTHER, Arm.FINDINGS_AND_HISTORY, Arm.FINDINGS_ONLY)

GAIN, EFFECT, BEYOND = "gain", "effect", "beyond"
CONTRASTS = {GAIN: Arm.FULL, EFFECT: Arm.FINDINGS_OF_ANOTHER, BEYOND: Arm.FINDINGS_ONLY}
"""Differences of pass@1 told the findings, minus pass@1 under this arm."""

UNSHOWN = {
    GAIN: "no share: whether the findings help is inconclusive",
    EFFECT: "no share: whether they help more than another patient's is inconclusive",
    BEYOND: "no share: the findings alone may name the answer",
}
"""Why no share is given if the interval of a contrast holds 0."""

SHARE, BEYOND_GRADER = "share", "share_beyond_grader"


@of_models("decomposition", accuracy_of_score)
def decomposition_rows(made: ModelRows, accuracy: GraderAccuracy | None) -> Iterator[Row]:
    """Perception or reasoning: the change of pass@1 when the findings are given in words."""
    outcomes, full, told = made.outcomes, made.key(), made.key(TOLD)
    if told not in outcomes.counts:
        return
    both = outcomes.complete(full, told)
    if not both.any():
        yield made.plain(SHARE, both, arm=TOLD, note="no item was asked under both arms")
        return
    asked = [arm for arm in ARMS if made.key(arm) in outcomes.counts]
    rates = {arm: made.passes(made.key(arm), both) for arm in asked}
    contrasts = {name: made.passes_contrast(name, told, made.key(other), both) for name, other in CONTRASTS.items() if other in asked}
    yield from rates.values()
    yield from contrasts.values()
    before, after = (outcomes.pass1_of_complete_items(key)[both] for key in (full, told))
    by = outcomes.by_patient(made.study.settings, told, full).at(both)
    change = (after - before) * by.item_weights
    yield made.plain("repaired", both, arm=TOLD, value=float(np.maximum(change, 0).mean()))
    yield made.plain("made", both, arm=TOLD, value=float(np.maximum(-change, 0).mean()))
    share, note = share_of_errors(before, after, contrasts, by)
    yield made.plain(SHARE, both, arm=TOLD, **ends_of(share), note=note)
    ends = share_beyond_grader(rates[Arm.FULL].value or 0.0, rates[TOLD].value or 0.0, accuracy) if accuracy else None
    if accuracy and ends:
        yield made.plain(BEYOND_GRADER, both, arm=TOLD, low=ends[0], high=ends[1], source=accuracy.source)


def share_of_errors(full: Floats, told: Floats, contrasts: Mapping[str, ContrastRow | Difference], by: ByPatient) -> tuple[Interval, str]:
    """Return the share of the errors that the findings repair, and the reason if it is not identified.

    Parameters
    ----------
    full, told : ndarray of float, shape (items,)
        pass@1 of the common items without and with the findings.
    contrasts : mapping of str to ContrastRow or Difference
        The differences of `CONTRASTS` that were asked for.
    by : ByPatient
        Patients of these items.

    Returns
    -------
    Interval
        (told - full) / (1 - full). It is known only where the intervals of all of `CONTRASTS` are above 0 and their p values small. (Our rule.)
    str
        The first reason why it is not known.
    """
    note = _why_no_share(full, contrasts, by.settings.confidence)
    if note:
        return Interval(), note
    weights = by.item_weights
    share = repaired_share((told - full) * weights, (1 - full) * weights, by)
    return (share, "") if share.low is not None else (Interval(), "too few errors for an interval of their share")


def _why_no_share(full: Floats, contrasts: Mapping[str, ContrastRow | Difference], confidence: float) -> str:
    """Return the reason why no share is given; empty if one is."""
    if (full >= 1).all():
        return "no error under full"
    gain = contrasts[GAIN]
    if gain.high is not None and gain.high < 0:
        return "the findings made it worse"
    for name, reason in UNSHOWN.items():
        if name not in contrasts:
            return f"not asked under {CONTRASTS[name]}"
        if not _above_zero(contrasts[name], confidence):
            return reason
    return ""


def _above_zero(contrast: ContrastRow | Difference, confidence: float) -> bool:
    """Return True if a difference is shown to be positive."""
    return contrast.p_value is not None and contrast.p_value < 1 - confidence and (contrast.value or 0) > 0


def share_beyond_grader(full: float, told: float, accuracy: GraderAccuracy) -> tuple[float, float] | None:
    """Return the smallest and largest repaired share over the range of the grader's sensitivity and specificity; None if no pair allows one.

    A right answer that the grader fails stays an error however it is told, so an insensitive grader makes the share look small.
    """
    shares = []
    for sensitivity, specificity in product(accuracy.sensitivity[:3], accuracy.specificity[:3]):
        if sensitivity is None or specificity is None:
            continue
        before, after = (correct_rate(rate, sensitivity, specificity) for rate in (full, told))
        if before is not None and after is not None and before < 1:
            shares.append((after - before) / (1 - before))
    return (min(shares), max(shares)) if shares else None


MEASURES = (
    Measure(
        PASS1_PATIENTS,
        "pass@1",
        "pass@1 with the findings, averaged over patients, on items answered with and without them.",
    ),
    Measure(
        GAIN,
        "Findings minus none",
        "pass@1 with the findings minus pass@1 under the full request.",
        "points",
    ),
    Measure(
        EFFECT,
        "True minus another's",
        "pass@1 with the patient's findings minus pass@1 with another patient's.",
        "points",
    ),
    Measure(
        BEYOND,
        "Beyond findings alone",
        "pass@1 with the findings minus pass@1 with the findings and nothing else.",
        "points",
        main=False,
    ),
    Measure("repaired", "Errors removed", "Errors per answer that the findings remove."),
    Measure("made", "Errors added", "Errors per answer that the findings add."),
    Measure(
        SHARE,
        "Share of errors repaired",
        "Net share of errors that the findings repair; given only where the findings are significantly better than three controls.",
    ),
    Measure(
        BEYOND_GRADER,
        "Beyond grader's errors",
        "Smallest and largest share repaired that the grader's own errors allow.",
    ),
)

# every row is of the items that are asked with the findings
TABLE = topic(
    "decomposition",
    decomposition_rows,
    MEASURES,
    labels=lambda row: [*side_labels(row), *arm_labels({"arm": TOLD})],
    takeaways={},
)
