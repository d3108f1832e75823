"""The numbers of the published evaluator of NeuroVLM-Bench, under its names, with its flaws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuralmedbench.estimates.calibration import auroc, brier, calibration_error, linspace_bins
from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.estimates.label_averages import average, tally
from neuralmedbench.scoring.structured.prediction_rows import (
    ECE_BINS,
    UNDETERMINED,
    PredictionRow,
    has_reference,
    published_confidence,
    published_label,
)

SERIES = {
    "class": ("class", "diagnosis_name"),
    "sub": ("subclass", "diagnosis_detailed"),
    "mod": ("modality", "modality"),
    "mod_sub": ("modality_subtype", "specialized_sequence"),
    "pl": ("axial_plane", "plane"),
}
"""Its names of the five fields, with the keys of the reference and of the answer."""

F1_OVER_REFERENCE_LABELS = frozenset({"class", "sub"})
"""Fields whose overall F1 is a mean over the labels of the reference; of the other three the answered ones count too."""

UNCERTAIN = frozenset({UNDETERMINED, "", "nan", "n/a", "none", "null"})
EMPTY = dict.fromkeys(("accuracy", "precision", "recall", "f1", "f1_abstention", "weighted_f1"))

Metrics = dict[str, float | None]
Labels = tuple[list[str], list[str]]


def compatible_metrics(rows: Sequence[PredictionRow]) -> dict[str, Metrics]:
    """Score rows as the published evaluator does.

    Parameters
    ----------
    rows : sequence of PredictionRow
        Rows in the order of the file.

    Returns
    -------
    dict of str to dict
        By model, sorted. Metrics without `overall_` in their name are of the field `diagnosis_name` (class). All are fractions, 0 to 1, but
        `json_valid_pct` and `uncertainty`, which are percentages. None where there is nothing to compute: the published evaluator has NaN
        there, or crashes.

    Notes
    -----
    Read from its code (repository ChatMED/neurovlm-bench, version 6e87ba4) and written anew. What its names mean, with K the labels that occur
    in the reference and L those that occur in reference or answers, `undetermined` (null) and every free word included:

    ===============================  =======================================================================================
    name                             meaning
    ===============================  =======================================================================================
    accuracy                         balanced accuracy: mean recall over K
    macro_f1                         mean F1 over L
    micro_f1                         share of right answers, an abstention being wrong
    weighted_f1                      mean F1 weighted by how often a label is true
    macro_f1_abstention              mean F1 over L without `undetermined`; an abstention is a miss and nobody's false alarm
    micro_f1_abstention              pooled F1 over the same labels
    weighted_f1_abstention           as `weighted_f1`, over the same labels
    ece, brier, auc                  of `diagnosis_confidence` for a right class; a missing one or one that is no number is 0, above 1 is
                                     1, abstentions are wrong; None when one of them is NaN; auc None when all are right, or all wrong
    json_valid_pct                   rows with status success of all rows: a reply that could not be parsed counts as valid
    uncertainty                      share of answers that are null or a word for it, in percent
    overall_<field>_accuracy         balanced accuracy
    overall_<field>_precision,       means over K without `undetermined`
    _recall, _f1_abstention
    overall_<field>_f1               mean over K for class and sub, over L for mod, mod_sub and pl
    overall_<field>_weighted_f1      F1 weighted by how often a label is true
    ===============================  =======================================================================================

    A row counts when its status is success; in a field, when the reference has a value for it. Rows that stand twice count twice, and
    pictures that were never answered do not show. Without any reference for the modality the overall values of `mod` are 0, not None, which is
    how the evaluator has it.
    """
    by_model: dict[str, list[PredictionRow]] = defaultdict(list)
    for row in rows:
        by_model[row.model].append(row)
    return {model: _model_metrics(by_model[model]) for model in sorted(by_model)}


def _model_metrics(rows: Sequence[PredictionRow]) -> Metrics:
    answered = [row for row in rows if row.success]
    found: Metrics = _class_metrics(answered)
    found["json_valid_pct"] = 100.0 * len(answered) / len(rows)
    for series in SERIES:
        values: dict[str, Any] = _overall(series, _labels(series, answered))
        if series == "mod" and answered and values["accuracy"] is None:
            values = dict.fromkeys(values, 0.0)
        found |= {f"overall_{series}_{name}": value for name, value in values.items()}
    return found


def _counted(series: str, rows: Sequence[PredictionRow]) -> list[PredictionRow]:
    return [row for row in rows if has_reference(row.reference.get(SERIES[series][0]))]


def _labels(series: str, rows: Sequence[PredictionRow]) -> Labels:
    """Labels of reference and answers of the rows that the field has."""
    reference, answer = SERIES[series]
    counted = _counted(series, rows)
    truth = [published_label(series, row.reference.get(reference)) for row in counted]
    return truth, [published_label(series, row.answer.get(answer)) for row in counted]


def _abstaining(said: Sequence[str]) -> list[str | None]:
    return [None if label == UNDETERMINED else label for label in said]


def _class_metrics(rows: Sequence[PredictionRow]) -> Metrics:
    truth, said = _labels("class", rows)
    names = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_abstention", "micro_f1_abstention", "weighted_f1_abstention")
    if not truth:
        return dict.fromkeys((*names, "accuracy", "ece", "brier", "auc", "uncertainty"))
    plain, spared = tally(truth, said), tally(truth, _abstaining(said))
    labels = {*truth, *said}
    right = np.array([true == given for true, given in zip(truth, said, strict=True)], dtype=np.float64)
    confidence = np.array(
        [published_confidence(row.answer.get("diagnosis_confidence")) for row in _counted("class", rows)], dtype=np.float64
    )
    return {
        "macro_f1": average(plain, "f1", labels),
        "micro_f1": average(plain, "f1", labels, "micro"),
        "weighted_f1": average(plain, "f1", labels, "weighted"),
        "macro_f1_abstention": average(spared, "f1", labels - {UNDETERMINED}),
        "micro_f1_abstention": average(spared, "f1", labels - {UNDETERMINED}, "micro"),
        "weighted_f1_abstention": average(spared, "f1", labels - {UNDETERMINED}, "weighted"),
        "accuracy": average(plain, "recall", truth),
        "uncertainty": 100.0 * sum(label in UNCERTAIN for label in said) / len(said),
        **_calibration(right, np.clip(confidence, 0.0, 1.0)),
    }


def _calibration(right: Floats, confidence: Floats) -> Metrics:
    if np.isnan(confidence).any():  # its library refuses such a series as a whole
        return dict.fromkeys(("ece", "brier", "auc"))
    return {
        "ece": calibration_error(confidence, right, linspace_bins(confidence, ECE_BINS), ECE_BINS),
        "brier": brier(confidence, right),
        "auc": auroc(confidence, right),
    }


def _overall(series: str, labels: Labels) -> Metrics:
    truth, said = labels
    if not truth:
        return dict(EMPTY)
    plain, spared = tally(truth, said), tally(truth, _abstaining(said))
    real = set(truth) - {UNDETERMINED}
    return {
        "accuracy": average(plain, "recall", truth),
        "precision": average(spared, "precision", real),
        "recall": average(spared, "recall", real),
        "f1": average(plain, "f1", truth if series in F1_OVER_REFERENCE_LABELS else {*truth, *said}),
        "f1_abstention": average(spared, "f1", real),
        "weighted_f1": average(plain, "f1", truth, "weighted"),
    }
