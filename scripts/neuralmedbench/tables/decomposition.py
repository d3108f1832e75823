"""Perception or reasoning: the effect of telling the findings in words, tested against another patient's findings and the findings alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, paired_difference
from neuralmedbench.estimates.intervals import ByPatient, Floats, patients_rate, repaired_share
from neuralmedbench.estimates.prediction_powered import correct_rate
from neuralmedbench.records.items import Arm
from neuralmedbench.records.words import counted, percent, percent_span, points, points_span
from neuralmedbench.tables.calibrated import GraderAccuracy, accuracy_of_score
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import Key, Outcomes
from neuralmedbench.tables.rows import Cells, ModelRow, Tables, with_ends
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, largest, rows_of_best, share

ARMS = {
    "f": Arm.FULL,
    "d": Arm.FINDINGS_DISCLOSED,
    "donor": Arm.FINDINGS_OF_ANOTHER,
    "history": Arm.FINDINGS_AND_HISTORY,
    "leak": Arm.FINDINGS_ONLY,
}
"""Arms of the table by the column that has their pass@1."""

CONTRASTS = {"gain": ("d", "f"), "effect": ("d", "donor"), "beyond": ("d", "leak")}
"""Paired differences by the name of their column: the first rate minus the second."""

UNSHOWN = {
    "gain": "telling the findings was not shown to help",
    "effect": "the findings were not shown to help more than another patient's",
    "beyond": "the findings alone may name the answer: with pictures and history the model was not shown to do better",
}
"""Why no share is given if a contrast was not shown to be above 0."""


def decompose(passed: Mapping[str, Floats], by_of: Callable[..., ByPatient]) -> Cells:
    """Compare pass@1 with and without the findings, and give the share of the errors that they repair if it is identified.

    Parameters
    ----------
    passed : mapping of str to ndarray of float, shape (items,)
        Passes of each item under the arms, by the columns of `ARMS`; NaN if unknown. `f` and `d` are needed.
    by_of : callable
        Gives the patients of the items, joined where they share a request under the arms that are named.

    Returns
    -------
    dict
        The columns of `DecompositionRow` that are numbers, `shown` and `note`. The share is (d - f) / (1 - f). It is shown only where the
        intervals of all of `CONTRASTS` are above 0 and their p values small; otherwise `note` has the first reason. (Our rule.)
    """
    both = ~(np.isnan(passed["f"]) | np.isnan(passed["d"]))
    if not both.any():
        return {"shown": False, "note": "no item was asked under both arms", "n_items": 0, "n_patients": 0}
    known = {name: np.where(both, values, np.nan) for name, values in passed.items()}
    cells: Cells = {"n_items": int(both.sum()), "n_patients": by_of().at(both).clusters}
    for name, values in known.items():
        cells |= with_ends({name: patients_rate(values, by_of(name))})
    by = by_of("d", "f").at(both)
    weights = by.item_weights
    change = (known["d"] - known["f"])[both] * weights
    cells |= {"repaired": float(np.maximum(change, 0).mean()), "made": float(np.maximum(-change, 0).mean())}
    found = {name: paired_difference(known[a], known[b], by_of(a, b)) for name, (a, b) in CONTRASTS.items() if a in known and b in known}
    for name, contrast in found.items():
        cells |= {name: contrast.value, f"{name}_low": contrast.low, f"{name}_high": contrast.high, f"{name}_p": contrast.p_value}
    note = _why_no_share(cells["f"], found, by.settings.confidence)
    if not note:
        repaired = repaired_share(change, (1 - known["f"])[both] * weights, by)
        if repaired.low is None:
            note = "too few errors for an interval of their share"
        else:
            cells |= {"share": repaired.value, "share_low": repaired.low, "share_high": repaired.high}
    return cells | {"shown": not note, "note": note}


def _above_zero(contrast: Difference, confidence: float) -> bool:
    """Return True if a difference is shown to be positive."""
    return contrast.p_value is not None and contrast.p_value < 1 - confidence and (contrast.value or 0) > 0


def _why_no_share(full: float, found: Mapping[str, Difference], confidence: float) -> str:
    """Return the reason why no share is given; empty if one is."""
    if full >= 1:
        return "no error under full"
    if found["gain"].high is not None and found["gain"].high < 0:
        return "the findings made it worse"
    for name, reason in UNSHOWN.items():
        if name not in found:
            return f"not asked under {ARMS[CONTRASTS[name][1]]}"
        if not _above_zero(found[name], confidence):
            return reason
    return ""


def share_beyond_grader(f: float, d: float, accuracy: GraderAccuracy) -> Cells:
    """Return the range of the repaired share over the range of the grader's sensitivity and specificity, and these two.

    A right answer that the grader fails stays an error however it is told, so an insensitive grader makes the share look small.
    """
    cells: Cells = {"grader_known_from": accuracy.source}
    for name, known in (("sensitivity", accuracy.sensitivity), ("specificity", accuracy.specificity)):
        cells |= {name: known.value, f"{name}_low": known.low, f"{name}_high": known.high}
    shares = []
    for sensitivity, specificity in product(accuracy.sensitivity[:3], accuracy.specificity[:3]):
        if sensitivity is None or specificity is None:
            continue
        before, after = (correct_rate(rate, sensitivity, specificity) for rate in (f, d))
        if before is not None and after is not None and before < 1:
            shares.append((after - before) / (1 - before))
    if shares:
        cells |= {"share_beyond_grader_low": min(shares), "share_beyond_grader_high": max(shares)}
    return cells


@dataclass(frozen=True, kw_only=True)
class DecompositionRow(ModelRow):
    """One model: pass@1 under the arms with findings in words, their differences, and the share of its errors that the findings repair."""

    f: float | None = None
    f_low: float | None = None
    f_high: float | None = None
    d: float | None = None
    d_low: float | None = None
    d_high: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    gain_p: float | None = None
    repaired: float | None = None
    made: float | None = None
    donor: float | None = None
    donor_low: float | None = None
    donor_high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    effect_p: float | None = None
    history: float | None = None
    history_low: float | None = None
    history_high: float | None = None
    leak: float | None = None
    leak_low: float | None = None
    leak_high: float | None = None
    beyond: float | None = None
    beyond_low: float | None = None
    beyond_high: float | None = None
    beyond_p: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    share_beyond_grader_low: float | None = None
    share_beyond_grader_high: float | None = None
    sensitivity: float | None = None
    sensitivity_low: float | None = None
    sensitivity_high: float | None = None
    specificity: float | None = None
    specificity_low: float | None = None
    specificity_high: float | None = None
    grader_known_from: str | None = None
    shown: bool | None = None
    note: str | None = None
    n_items: int | None = None
    n_patients: int | None = None


def decomposition_rows(study: Study) -> list[DecompositionRow]:
    """Rows of `decomposition.csv`, for the benchmarks that have the arm findings_disclosed."""
    rows, accuracy = [], accuracy_of_score(study)
    for benchmark in study.benchmarks.values():
        outcomes = benchmark.outcomes
        for model in study.models:
            keys = {name: Key(model, arm) for name, arm in ARMS.items()}
            if keys["d"] not in outcomes.counts:
                continue
            cells = _compared(study, outcomes, keys)
            if accuracy and cells.get("gain") is not None:
                cells |= share_beyond_grader(cells["f"], cells["d"], accuracy)
            rows.append(DecompositionRow(benchmark=benchmark.name, model=model, **cells))
    return rows


def _compared(study: Study, outcomes: Outcomes, keys: Mapping[str, Key]) -> Cells:
    passed = {name: outcomes.pass1_of_complete_items(key) for name, key in keys.items() if key in outcomes.counts}
    return decompose(passed, lambda *names: outcomes.by_patient(study.settings, *(keys[name] for name in names)))


def decomposition_sentence(study: Study, tables: Tables, benchmark: str) -> str:
    """State the effect of the findings on the model of rank 1; empty if it was not asked with them."""
    rows = rows_of_best(tables["decomposition"], tables, benchmark)
    if not rows or rows[0].get("gain") is None:
        return ""
    row = rows[0]
    # the effect that the first screen shows; without another patient's findings, what the findings change
    told, instead, name = (
        ("the patient's findings", "told another patient's", "effect")
        if row.get("effect") is not None
        else ("the findings", "without them", "gain")
    )
    other = percent(row["donor" if name == "effect" else "f"])
    span = points_span(row[f"{name}_low"], row[f"{name}_high"])
    known = f" ({span}; exploratory)" if span else " (exploratory)"
    title = study.models[row["model"]].title
    sentence = f"Told {told}, {title} passes {percent(row['d'])} of {counted(row['n_items'], 'item')}, {instead} {other}: {points(row[name])} points{known}"
    sentence += f"; without any, {percent(row['f'])}" if name == "effect" else ""
    if row["shown"]:
        sentence += f". The findings repair {share(row, 'share')} of its errors"
        span = percent_span(row.get("share_beyond_grader_low"), row.get("share_beyond_grader_high"))
        sentence += f"; within what is known of the grader's errors, {span}." if span else "; how often the grader errs is not known."
    else:
        sentence += f". No share of its errors is given: {row['note']}."
    if row.get("leak") is not None:
        sentence += f" The findings alone, without pictures and history, pass {share(row, 'leak')}."
    return sentence


def perception_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State the effect of the findings on the best model."""
    rows = tables["decomposition"]
    stated = [one for name in study.benchmarks if (one := decomposition_sentence(study, tables, name))]
    if not stated and rows:
        number = len({row["model"] for row in rows})
        stated = [f"{counted(number, 'model')} {'was' if number == 1 else 'were'} told the findings, none of rank 1."]
    return Takeaway(" ".join(stated) or "No item was asked with its findings disclosed.", largest(rows))


TABLE = Table(
    name="decomposition",
    row=DecompositionRow,
    rows=of_study(decomposition_rows),
    suppression=Suppression(MODEL, labels=lambda row: arm_labels({"arm": Arm.FINDINGS_DISCLOSED})),
    takeaways={"perception": perception_takeaway},
)
