"""Calibration of confidences, and risk against coverage: `confidence.csv`, `reliability.csv`, `risk_coverage.csv`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.calibration import (
    auroc,
    brier,
    calibration_error,
    mass_bins,
    pessimistic,
    selective_accuracy,
    width_bins,
)
from neuralmedbench.estimates.contrasts import Difference, ratio_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, Ints, rate_interval
from neuralmedbench.records.items import Axis
from neuralmedbench.records.words import counted
from neuralmedbench.tables.confidence.measures import REASONS, Confidences, ConfidenceSource, Draws, gather_confidences
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, grouped_by
from neuralmedbench.tables.outcomes import FULL, Key
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, rows_of_best, value_share

FIXED = (0.5, 0.8, 1.0)
"""Coverages at which the share right has an interval."""

POINTS = tuple(number / 20 for number in range(1, 21))
"""Coverages of the curve."""


@dataclass(frozen=True, kw_only=True)
class RiskCoverageRow(ModelRow):
    """One point of a curve."""

    source: str
    coverage: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    n: int | None = None
    n_patients: int | None = None


def risk_rows(found: Confidences, draws: Draws) -> list[Cells]:
    """Rows of `risk_coverage.csv` of one model.

    The share right among the most confident part of the answers, the last one kept in part where the coverage is not a whole number of
    answers; with an interval at `FIXED`. No rows where no answer has a confidence.
    """
    known, rest = len(found.value), len(found.rest_right)
    if not known:
        return []
    total = known + rest
    levels, counts, rights = tied_groups(found, found.value)
    patients = len({*found.patients.tolist(), *found.rest_patients.tolist()})
    of_curve = head(found) | {"n": total, "n_patients": patients}
    rows: list[Cells] = []
    coverages = np.array([point for point in POINTS if point * total >= 1])
    shares, ends = selective_accuracy(counts, rights, coverages), np.cumsum(counts)
    for coverage, share in zip(coverages.tolist(), shares.tolist(), strict=True):
        # the confidence of the last answer that is kept at this coverage
        last = int(np.searchsorted(ends, coverage * total - 1e-9))
        threshold = float(levels[last]) if last < len(levels) else None
        row = of_curve | {"coverage": coverage, "value": share}
        if coverage in FIXED:
            row |= _share_interval(found, draws, share, threshold)
        rows.append(row)
    return rows


def tied_groups(found: Confidences, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Group answers of equal confidence, from the highest.

    Values, shape (values,), and the number of answers and of right ones, shape (values + 1,): those without a confidence are the last.
    """
    levels, place = np.unique(-value, return_inverse=True)
    counts = np.bincount(place.reshape(-1)).astype(np.float64)
    rights = np.bincount(place.reshape(-1), weights=found.right)
    return -levels, np.append(counts, len(found.rest_right)), np.append(rights, found.rest_right.sum())


def _share_interval(found: Confidences, draws: Draws, share: float, threshold: float | None) -> Cells:
    """Return the interval of the share right at a coverage, by the rules of rates, over the answers that are kept at least in part."""
    # without a threshold all answers are kept, those without a confidence too
    kept = np.ones(len(found.value), dtype=bool) if threshold is None else found.value >= threshold
    right, patients = found.right[kept], found.patients[kept]
    if threshold is None:
        right, patients = np.append(right, found.rest_right), np.append(patients, found.rest_patients)
    moved = share - float(right.mean())  # the last group may be kept in part
    interval = draws.share_right(right, patients)
    ends = [None if end is None else min(1.0, max(0.0, end + moved)) for end in (interval.low, interval.high)]
    return {"low": ends[0], "high": ends[1], "interval": interval.method}


def abstention_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise what answering only when sure would have gained the model with the best rank."""
    rows = [row for row in tables["risk_coverage"] if row["value"] is not None]
    n = counted(sum(row["n"] for row in rows if row["coverage"] == 1), "answer")
    for name, benchmark in sorted(study.benchmarks.items(), key=lambda pair: pair[1].config.axis is not Axis.DEPTH):
        own = {row["coverage"]: row for row in rows_of_best(rows, tables, name) if row["source"] == "stated"}
        if 0.5 in own and 1.0 in own:
            title = study.models[own[1.0]["model"]].title
            text = f"{title} is right in {value_share(own[0.5])} of the surest half of its answers and in {value_share(own[1.0])} of all"
            return Takeaway(f"{text} ({benchmark.config.title}).", n)
    return Takeaway("No ranked model states how sure it is, so nothing can be said about answering only when sure.", n)


NONE = {ConfidenceSource.STATED: "none stated", ConfidenceSource.AGREEMENT: "no vote", ConfidenceSource.TOKENS: "none kept"}
"""Note where no answer has a confidence."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceRow(ModelRow):
    """Calibration of the confidences of one model under one arm."""

    arm: str
    source: str
    n_items: int | None = None
    n_patients: int | None = None
    answers: int | None = None
    with_confidence: int | None = None
    without_confidence: int | None = None
    refused: int | None = None
    truncated: int | None = None
    abstained: int | None = None
    unparsable: int | None = None
    unstated: int | None = None
    missing: int | None = None
    mean_confidence: float | None = None
    accuracy: float | None = None
    overconfidence: float | None = None
    overconfidence_low: float | None = None
    overconfidence_high: float | None = None
    ece: float | None = None
    ece_low: float | None = None
    ece_high: float | None = None
    ece_pessimistic: float | None = None
    brier: float | None = None
    brier_low: float | None = None
    brier_high: float | None = None
    auroc: float | None = None
    auroc_low: float | None = None
    auroc_high: float | None = None
    shift: float | None = None
    shift_low: float | None = None
    shift_high: float | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReliabilityRow(ModelRow):
    """One bin of about equally many answers."""

    source: str
    bin: int | None = None
    mean_confidence: float | None = None
    share_right: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    n: int | None = None
    n_patients: int | None = None


def confidence_tables(study: Study) -> tuple[list[ConfidenceRow], list[ReliabilityRow], list[RiskCoverageRow]]:
    """Make the three tables about confidence.

    Rows of `confidence.csv` (one per benchmark, model, arm and source), and of the arm full `reliability.csv` (its bins) and
    `risk_coverage.csv`. Strategy direct.
    """
    summary: list[ConfidenceRow] = []
    bins: list[ReliabilityRow] = []
    risks: list[RiskCoverageRow] = []
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        found = list(gather_confidences(study, benchmark))
        # other arms are compared with the arm full
        full = {(one.model, one.source): one for one in found if one.arm == FULL}
        for one in found:
            # under an arm with shared requests, patients who share one are one cluster
            by = outcomes.by_patient(study.settings, Key(one.model, one.arm), Key(one.model))
            joined = cluster_of_patients(outcomes.patients, by)
            draws = Draws(one, by, joined)
            summary.append(ConfidenceRow(**_summary(one, draws), **_shift(one, full, by)))
            if one.arm == FULL:
                bins += [ReliabilityRow(**row) for row in _bins(one, draws)]
                risks += [RiskCoverageRow(**row) for row in risk_rows(one, draws)]
    return summary, bins, risks


def cluster_of_patients(patients: Ints, by: ByPatient) -> Ints:
    """Return the cluster of each patient in `by`, shape (patients,), as `Draws` takes it."""
    joined = np.zeros(int(patients.max(initial=-1)) + 1, dtype=np.int64)
    joined[patients] = by.codes
    return joined


def head(found: Confidences) -> Cells:
    """Return the columns of the three tables that say whose confidence it is."""
    return {"benchmark": found.benchmark, "model": found.model, "source": str(found.source)}


def _ends(name: str, ends: tuple[float | None, float | None]) -> Cells:
    return {f"{name}_low": ends[0], f"{name}_high": ends[1]}


def _summary(found: Confidences, draws: Draws) -> Cells:
    known, absent = len(found.value), len(found.rest_right)
    row = head(found) | {
        "arm": found.arm,
        "n_items": len(set(found.items.tolist())),
        "n_patients": len(set(found.patients.tolist())),
        "answers": known + absent,
        "with_confidence": known,
        "without_confidence": absent,
        "missing": found.missing,
        "ece_pessimistic": pessimistic(None, 0, absent),
        "note": "" if known else "no answer" if not absent else NONE[found.source],
    }
    row |= {reason: found.reasons[reason] for reason in REASONS}
    if not known:
        return row
    value, right, equal_width = found.value, found.right, width_bins(found.value)
    separates, apart = auroc(value, right), calibration_error(value, right, equal_width)
    row |= {
        "mean_confidence": float(value.mean()),
        "accuracy": float(right.mean()),
        "overconfidence": float((value - right).mean()),
        "ece": apart,
        "ece_pessimistic": pessimistic(apart, known, absent),
        "brier": (squared := brier(value, right)),
        "auroc": separates,
    }
    row |= _ends("overconfidence", overconfidence_interval(found, draws))
    if 0 < row["accuracy"] < 1 and apart is not None:  # if all answers are right, or all wrong, so are all resamples: no interval
        row |= _ends("ece", draws.error_interval(apart)) | _ends("brier", draws.around(squared, draws.brier))
    return row | _ends("auroc", draws.around(separates, draws.auroc, auroc(draws.groups.astype(np.float64), right)))


def overconfidence_interval(found: Confidences, draws: Draws) -> tuple[float | None, float | None]:
    """Return the interval of mean confidence minus share right; where all or none is right, from the exact bounds of the share."""
    if 0 < found.right.mean() < 1:
        return draws.by.percentiles(draws.overconfidence, draws.clusters)
    share, mean = rate_interval(found.right, ByPatient(draws.cluster_of(found.patients), draws.by.settings)), float(found.value.mean())
    return (None, None) if share.low is None or share.high is None else (mean - share.high, mean - share.low)


def _shift(found: Confidences, full: Mapping[tuple[str, ConfidenceSource], Confidences], by: ByPatient) -> Cells:
    """Return how much more overconfident a model is under an arm than under full, on the items with a confidence under both."""
    other = full.get((found.model, found.source))
    if found.arm == FULL or other is None:
        return {}
    shift = shift_between(found, other, np.intersect1d(found.items, other.items), by)
    return {"shift": shift.value, "shift_low": shift.low, "shift_high": shift.high}


def shift_between(found: Confidences, other: Confidences, items: Ints, by: ByPatient) -> Difference:
    """Return the overconfidence of the first minus that of the second on some items; `by` are the patients of all items."""
    return ratio_difference(found.of_items(items).gaps(len(by.codes)), other.of_items(items).gaps(len(by.codes)), by)


def _bins(found: Confidences, draws: Draws) -> list[Cells]:
    """Return the bins of about equally many answers, the least confident first."""
    if not found.value.size:
        return []
    place = mass_bins(found.value)
    rows = []
    for number, bin_ in enumerate(sorted(set(place.tolist())), start=1):
        inside = place == bin_
        share = draws.share_right(found.right[inside], found.patients[inside])
        value = found.value[inside]
        row = head(found) | {"bin": number, "mean_confidence": float(value.mean())}
        row |= {"share_right": share.value, "low": share.low, "high": share.high}
        row |= {"interval": share.method, "n": int(inside.sum()), "n_patients": len(set(found.patients[inside].tolist()))}
        rows.append(row)
    return rows


def confidence_sentence(study: Study, rows: list[Cells]) -> str:
    """State which models are overconfident by their stated confidences under the arm full: their intervals lie above zero."""
    models_only = [row for row in rows if row["model"] not in study.readers]
    stated = [row for row in models_only if row["arm"] == FULL and row["source"] == ConfidenceSource.STATED and row["with_confidence"]]
    if not stated:
        return "No model of this run states how sure it is."
    sure = [row for row in stated if row["overconfidence_low"] is not None and row["overconfidence_low"] > 0]
    models = f"of {len({row['model'] for row in stated})} models that state how sure they are"
    if not sure:
        return f"None {models} is too sure of itself beyond its interval."
    worst = max(sure, key=lambda row: (row["overconfidence"], row["model"], row["benchmark"]))
    number = len({row["model"] for row in sure})
    says = f"{study.models[worst['model']].title} is {100 * worst['mean_confidence']:.0f} % sure and {100 * worst['accuracy']:.0f} % right"
    verb = "is too sure of itself beyond its interval" if number == 1 else "are too sure of themselves beyond their intervals"
    where = f" on {study.benchmarks[worst['benchmark']].config.title}" if len(study.benchmarks) > 1 else ""
    return f"{number} {models} {verb} (not corrected for the number of models): {says}{where}."


def confidence_statements() -> list[str]:
    """Return the rules of measurement of confidence, for the page."""
    return [
        (
            "Confidence: mean confidence minus share right, Brier score, and area under the ROC curve of confidence for right, over the answers "
            "that have a confidence and did not abstain; the others are counted. Agreement: the share of an item's samples that name the elected "
            "diagnosis."
        ),
        (
            "Risk and coverage: coverage is the part of all answers that are not missing, the surest first; answers without a confidence stand "
            "last, equal confidences count by expectation over every order of them. (Our rule.)"
        ),
    ]


def confidence_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise which models are overconfident."""
    rows = [row for row in tables["confidence"] if row["arm"] == FULL]
    stated = sum(row["with_confidence"] or 0 for row in rows)
    return Takeaway(confidence_sentence(study, tables["confidence"]), f"{counted(stated, 'answer')} with a confidence")


CONFIDENCE = Table(
    name="confidence",
    row=ConfidenceRow,
    rows=lambda results: results.once(confidence_tables)[0],
    suppression=Suppression(f"{MODEL} arm source", labels=arm_labels),
    takeaways={"confidence": confidence_takeaway},
)

RELIABILITY = Table(
    name="reliability",
    row=ReliabilityRow,
    rows=lambda results: results.once(confidence_tables)[1],
    suppression=Suppression(f"{MODEL} source bin", group=grouped_by("benchmark model source")),
)

RISK_COVERAGE = Table(
    name="risk_coverage",
    row=RiskCoverageRow,
    rows=lambda results: results.once(confidence_tables)[2],
    suppression=Suppression(f"{MODEL} source coverage", surest=True),
    takeaways={"abstention": abstention_takeaway},
)
