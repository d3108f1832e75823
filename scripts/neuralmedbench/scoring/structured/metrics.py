"""Metrics of structured answers: those of NeuroVLM-Bench's published evaluator, flaws included, and corrected ones.

The corrected ones have fixed denominators and one set of labels, and abstentions earn nothing.

Averages of precision, recall and F1 are over a set of labels that the caller chooses; the choice changes the meaning of an average.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from neuralmedbench.estimates.calibration import auroc, brier, calibration_error, linspace_bins, risk_coverage_area
from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.scoring.structured.form import PUBLISHED, STEPS
from neuralmedbench.scoring.structured.prediction_rows import (
    ECE_BINS,
    UNDETERMINED,
    PredictionRow,
    has_reference,
    published_confidence,
    published_label,
)
from neuralmedbench.scoring.structured_answer import FIELDS, MAX_LABEL, is_share, label

SERIES = {
    "class": ("class", "diagnosis_name"),
    "sub": ("subclass", "diagnosis_detailed"),
    "mod": ("modality", "modality"),
    "mod_sub": ("modality_subtype", "specialized_sequence"),
    "pl": ("axial_plane", "plane"),
}
"""The published evaluator's names of the five fields, with their keys in reference and answer."""
F1_OVER_REFERENCE_LABELS = frozenset({"class", "sub"})
"""Fields whose overall F1 is a mean over the labels of the reference; for the other three it includes labels of answers."""
UNCERTAIN = frozenset({UNDETERMINED, "", "nan", "n/a", "none", "null"})
EMPTY = dict.fromkeys(("accuracy", "precision", "recall", "f1", "f1_abstention", "weighted_f1"))
Metrics = dict[str, float | None]
Labels = tuple[list[str], list[str]]
Average = Literal["macro", "micro", "weighted"]
Measure = Literal["f1", "precision", "recall"]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts per label: right answers, true labels, given labels."""

    right: Mapping[str, int]
    true: Mapping[str, int]
    given: Mapping[str, int]

    @classmethod
    def of(cls, truth: Sequence[str], answers: Sequence[str | None]) -> Tally:
        """Count labels.

        Parameters
        ----------
        truth : sequence of str
            The reference.
        answers : sequence of str or None
            The answers in the same order; None is an answer that names no label: a miss of the true one, and no false alarm.
        """
        return cls(
            right=Counter(true for true, given in zip(truth, answers, strict=True) if true == given),
            true=Counter(truth),
            given=Counter(label for label in answers if label is not None),
        )

    def value(self, measure: Measure, label: str) -> float:
        """Return the measure of one label, 0 to 1; 0 where its divisor is 0."""
        true, given = self.true.get(label, 0), self.given.get(label, 0)
        divisor = {"f1": (true + given) / 2, "precision": given, "recall": true}[measure]
        return self.right.get(label, 0) / divisor if divisor else 0.0

    def average(self, measure: Measure, labels: Iterable[str], how: Average = "macro") -> float | None:
        """Average a measure over labels.

        Parameters
        ----------
        measure : str
            `f1`, `precision` or `recall`.
        labels : iterable of str
            Labels to average; their number is the divisor of a macro average.
        how : str
            `macro`: mean over labels. `weighted`: by the frequency of each true label; a plain mean if none occurs. `micro`: of the pooled counts.

        Returns
        -------
        float or None
            0 to 1; None without a label. The same as scikit-learn's `f1_score`, `precision_score` and `recall_score` with `labels` and
            `zero_division=0`.

        Examples
        --------
        >>> Tally.of(["a", "b"], ["a", None]).average("f1", ["a", "b"])
        0.5
        """
        names = sorted(set(labels))
        if how == "micro":
            # micro: pool the counts of all labels into one
            pooled = {part: sum(table.get(name, 0) for name in names) for part, table in vars(self).items()}
            return Tally(**{part: {"": number} for part, number in pooled.items()}).value(measure, "")
        if not names:
            return None
        values = [self.value(measure, name) for name in names]
        weights = [self.true.get(name, 0) for name in names] if how == "weighted" else [1] * len(names)
        if not sum(weights):
            weights = [1] * len(names)
        return sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)


def compatible_metrics(rows: Sequence[PredictionRow]) -> dict[str, Metrics]:
    """Score rows as the published evaluator does.

    Parameters
    ----------
    rows : sequence of PredictionRow
        Rows in the order of the file.

    Returns
    -------
    dict of str to dict
        By model, sorted. Metrics without `overall_` in their name are of the field `diagnosis_name` (class). All are fractions, 0 to 1,
        except `json_valid_pct` and `uncertainty`, which are percentages. None if there is nothing to compute, where the published
        evaluator gives NaN or crashes.

    Notes
    -----
    Reimplemented from its code (repository ChatMED/neurovlm-bench, version 6e87ba4). Meaning of its names, with K the labels in the reference
    and L the labels in reference or answers, including `undetermined` (null) and any unknown label:

    ===============================  =======================================================================================
    name                             meaning
    ===============================  =======================================================================================
    accuracy                         balanced accuracy: mean recall over K
    macro_f1                         mean F1 over L
    micro_f1                         share of right answers; an abstention is wrong
    weighted_f1                      mean F1 weighted by the frequency of a label in the reference
    macro_f1_abstention              mean F1 over L without `undetermined`; an abstention is a miss, not a false positive
    micro_f1_abstention              pooled F1 over the same labels
    weighted_f1_abstention           as `weighted_f1`, over the same labels
    ece, brier, auc                  of `diagnosis_confidence` for a right class; a missing or non-numeric one counts as 0, one above 1
                                     as 1, abstentions are wrong; None if any is NaN; auc None if all are right or all are wrong
    json_valid_pct                   share of rows with status success: a reply that could not be parsed counts as valid
    uncertainty                      percentage of answers that are null or a synonym of it
    overall_<field>_accuracy         balanced accuracy
    overall_<field>_precision,       means over K without `undetermined`
    _recall, _f1_abstention
    overall_<field>_f1               mean over K for class and sub, over L for mod, mod_sub and pl
    overall_<field>_weighted_f1      F1 weighted by the frequency of a label in the reference
    ===============================  =======================================================================================

    A row counts if its status is success, and for a field if the reference has a value. Duplicate rows count twice, and pictures that were
    never answered do not count. If no row has a reference for the modality, the overall values of `mod` are 0, as in the evaluator.
    """
    by_model: dict[str, list[PredictionRow]] = defaultdict(list)
    for row in rows:
        by_model[row.model].append(row)
    return {model: _published_model(by_model[model]) for model in sorted(by_model)}


def _published_model(rows: Sequence[PredictionRow]) -> Metrics:
    answered = [row for row in rows if row.success]
    metrics: Metrics = _published_class(answered)
    metrics["json_valid_pct"] = 100.0 * len(answered) / len(rows)
    for series in SERIES:
        values: dict[str, Any] = _published_field(series, _published_labels(series, answered))
        if series == "mod" and answered and values["accuracy"] is None:  # a flaw that is reproduced
            values = dict.fromkeys(values, 0.0)
        metrics |= {f"overall_{series}_{name}": value for name, value in values.items()}
    return metrics


def _counted(series: str, rows: Sequence[PredictionRow]) -> list[PredictionRow]:
    return [row for row in rows if has_reference(row.reference.get(SERIES[series][0]))]


def _published_labels(series: str, rows: Sequence[PredictionRow]) -> Labels:
    """Return the labels of reference and answers, of the rows that count for the field."""
    reference, answer = SERIES[series]
    counted = _counted(series, rows)
    truth = [published_label(series, row.reference.get(reference)) for row in counted]
    return truth, [published_label(series, row.answer.get(answer)) for row in counted]


def _abstentions_as_none(predicted: Sequence[str]) -> list[str | None]:
    return [None if label == UNDETERMINED else label for label in predicted]


def _published_class(rows: Sequence[PredictionRow]) -> Metrics:
    truth, predicted = _published_labels("class", rows)
    names = ("macro_f1", "micro_f1", "weighted_f1", "macro_f1_abstention", "micro_f1_abstention", "weighted_f1_abstention")
    if not truth:
        return dict.fromkeys((*names, "accuracy", "ece", "brier", "auc", "uncertainty"))
    plain, lenient = Tally.of(truth, predicted), Tally.of(truth, _abstentions_as_none(predicted))
    labels = {*truth, *predicted}
    right = np.array([true == given for true, given in zip(truth, predicted, strict=True)], dtype=np.float64)
    confidence = np.array(
        [published_confidence(row.answer.get("diagnosis_confidence")) for row in _counted("class", rows)], dtype=np.float64
    )
    return {
        "macro_f1": plain.average("f1", labels),
        "micro_f1": plain.average("f1", labels, "micro"),
        "weighted_f1": plain.average("f1", labels, "weighted"),
        "macro_f1_abstention": lenient.average("f1", labels - {UNDETERMINED}),
        "micro_f1_abstention": lenient.average("f1", labels - {UNDETERMINED}, "micro"),
        "weighted_f1_abstention": lenient.average("f1", labels - {UNDETERMINED}, "weighted"),
        "accuracy": plain.average("recall", truth),
        "uncertainty": 100.0 * sum(label in UNCERTAIN for label in predicted) / len(predicted),
        **_published_calibration(right, np.clip(confidence, 0.0, 1.0)),
    }


def _published_calibration(right: Floats, confidence: Floats) -> Metrics:
    if np.isnan(confidence).any():  # the published evaluator's library refuses the whole series
        return dict.fromkeys(("ece", "brier", "auc"))
    return {
        "ece": calibration_error(confidence, right, linspace_bins(confidence, ECE_BINS), ECE_BINS),
        "brier": brier(confidence, right),
        "auc": auroc(confidence, right),
    }


def _published_field(series: str, labels: Labels) -> Metrics:
    truth, predicted = labels
    if not truth:
        return dict(EMPTY)
    plain, lenient = Tally.of(truth, predicted), Tally.of(truth, _abstentions_as_none(predicted))
    real = set(truth) - {UNDETERMINED}
    return {
        "accuracy": plain.average("recall", truth),
        "precision": lenient.average("precision", real),
        "recall": lenient.average("recall", real),
        "f1": plain.average("f1", truth if series in F1_OVER_REFERENCE_LABELS else {*truth, *predicted}),
        "f1_abstention": lenient.average("f1", real),
        "weighted_f1": plain.average("f1", truth, "weighted"),
    }


REFERENCE = {"class": "class", "subtype": "subclass", "modality": "modality", "sequence": "modality_subtype", "plane": "axial_plane"}
"""Keys of the reference by field."""
CONFIDENCE = "diagnosis_confidence"
FAILED_PARSE = frozenset({"error", "raw_response"})
"""Keys of the object that the published runners write for an answer that they could not parse."""
Metric = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One expected answer: `answered`, `failed` (no call succeeded) or `absent` (no row); answer None: absent or not parsed."""

    picture: str
    state: str
    answer: Mapping[str, Any] | None = None

    def label_of(self, field: str) -> str | None:
        """Return the label of one field; None for an abstention or if there is no answer."""
        value = None if self.answer is None else self.answer.get(PUBLISHED.names[field])
        if value is None:
            return None
        try:
            return label(field, str(value)[:MAX_LABEL])
        except (RecursionError, ValueError):
            return "unreadable"


def corrected_metrics(rows: Sequence[PredictionRow], *, own_pictures: bool = False) -> dict[str, dict[str, Any]]:
    """Score rows with fixed denominators.

    Parameters
    ----------
    rows : sequence of PredictionRow
        Rows in the order of the file.
    own_pictures : bool
        True if a model is expected to answer only the pictures of its own rows; otherwise every model is expected to answer every picture
        in the file. A row without a picture is expected of its own model only.

    Returns
    -------
    dict of str to dict
        By model, sorted: `calls`, `validity` (by step of `form.STEPS`) and `fields` (by field). A metric is `value` with its `n`, and
        `count` if it is a share of n. Values are fractions, 0 to 1; None if n is 0.

    Notes
    -----
    If a model has several rows for a picture, the first that succeeded counts. The reference of a picture is taken from the first row that
    states it, whichever model's: a failed call often has none. Spellings are those of `field_aliases.yaml`, which was not tuned on answers.
    """
    reference, pictures = _references(rows), dict.fromkeys(_picture(row) for row in rows if row.picture)
    by_model: dict[str, dict[str, list[PredictionRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_model[row.model][_picture(row)].append(row)
    # labels of the whole file, so that macro means have the same labels for every model
    labels = {field: {known[field] for known in reference.values() if field in known} for field in FIELDS}
    metrics = {}
    for model in sorted(by_model):
        by_picture = by_model[model]
        expected = list(by_picture) if own_pictures else [*pictures, *(picture for picture in by_picture if picture not in pictures)]
        outcomes = [_outcome(picture, by_picture.get(picture, [])) for picture in expected]
        fields = {field: _field_metrics(field, outcomes, reference, labels[field]) for field in FIELDS}
        fields["class"] |= _confidence_metrics(outcomes, reference)
        metrics[model] = {"calls": _calls(outcomes, by_picture), "validity": _validity(outcomes), "fields": fields}
    return metrics


def _picture(row: PredictionRow) -> str:
    return row.picture or f"line {row.line}"


def _references(rows: Sequence[PredictionRow]) -> dict[str, dict[str, str]]:
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        for field, key in REFERENCE.items():
            value = row.reference.get(key)
            known = label(field, value[:MAX_LABEL]) if isinstance(value, str) and value.strip().lower() != "nan" else None
            if known is not None:
                labels[_picture(row)].setdefault(field, known)
    return dict(labels)


def _outcome(picture: str, rows: Sequence[PredictionRow]) -> Outcome:
    row = next((row for row in rows if row.success), None)
    if row is None:
        return Outcome(picture=picture, state="failed" if rows else "absent")
    return Outcome(picture=picture, state="answered", answer=None if not row.answer or row.answer.keys() >= FAILED_PARSE else row.answer)


def _share(count: int, n: int) -> Metric:
    return {"value": count / n if n else None, "count": count, "n": n}


def _calls(outcomes: Sequence[Outcome], by_picture: Mapping[str, Sequence[PredictionRow]]) -> Metric:
    states = Counter(outcome.state for outcome in outcomes)
    shares = {state: _share(states[state], len(outcomes)) for state in ("answered", "failed", "absent")}
    return {**shares, "further_rows": sum(len(rows) - 1 for rows in by_picture.values())}


def _validity(outcomes: Sequence[Outcome]) -> Metric:
    passed = [PUBLISHED.passed(outcome.answer) for outcome in outcomes]
    return {step: _share(sum(number > place for number in passed), len(passed)) for place, step in enumerate(STEPS)}


def _field_metrics(field: str, outcomes: Sequence[Outcome], reference: Mapping[str, Mapping[str, str]], labels: set[str]) -> Metric:
    """Return the metrics of one field over all expected answers with a reference; `labels` are the reference labels of the whole file."""
    known = [outcome for outcome in outcomes if field in reference.get(outcome.picture, {})]
    truth = [reference[outcome.picture][field] for outcome in known]
    predicted = [outcome.label_of(field) for outcome in known]
    answered = [given for given in predicted if given is not None]
    right, n = sum(true == given for true, given in zip(truth, predicted, strict=True)), len(known)
    counts = Tally.of(truth, [given if given in labels else None for given in predicted])
    vocabulary = labels | {label(field, name) for name in PUBLISHED.labels[PUBLISHED.names[field]] if name is not None}
    commonest = max(Counter(truth).values(), default=0)
    return {
        "plain_accuracy": _share(right, n),
        "balanced_accuracy": {"value": counts.average("recall", truth), "n": n},
        "macro_f1_over_reference_labels": {"value": counts.average("f1", labels) if n else None, "labels": len(labels), "n": n},
        "weighted_f1_over_reference_labels": {"value": counts.average("f1", truth, "weighted"), "n": n},
        "coverage": _share(len(answered), n),
        "selective_accuracy": _share(right, len(answered)),
        "out_of_vocabulary": _share(sum(given not in vocabulary for given in answered), len(answered)),
        "commonest_label": _share(commonest, n),
    }


def _confidence_metrics(outcomes: Sequence[Outcome], reference: Mapping[str, Mapping[str, str]]) -> Metric:
    """Return the calibration of the class: over answers with a stated confidence, and pessimistically over all expected answers."""
    known = [outcome for outcome in outcomes if "class" in reference.get(outcome.picture, {})]
    predicted = [outcome.label_of("class") for outcome in known]
    right = np.array(
        [given == reference[outcome.picture]["class"] for outcome, given in zip(known, predicted, strict=True)], dtype=np.float64
    )
    raw = [None if outcome.answer is None else outcome.answer.get(CONFIDENCE) for outcome in known]
    named = np.array([given is not None for given in predicted], dtype=bool)
    usable = np.array([is_share(value) for value in raw], dtype=bool) & named
    confidence = np.array([float(value) if use else 0.0 for value, use in zip(raw, usable, strict=True)], dtype=np.float64)  # type: ignore[arg-type]
    # the pessimistic reading of an unusable confidence: 1 if the answer is wrong, 0 if it is right
    against = np.where(usable, confidence, 1 - right)
    # for risk and coverage: abstentions last, after answers without a usable confidence
    order = np.where(named, confidence, -1.0)
    stated = confidence[usable], right[usable]
    n, n_all = int(usable.sum()), len(known)
    ece = calibration_error(*stated, linspace_bins(stated[0], ECE_BINS), ECE_BINS)
    # each unusable confidence is a bin of its own with the widest gap, so that it cannot offset a gap within a shared bin
    gaps = n * (ece or 0.0) + n_all - n
    unusable = sum(value is not None and not is_share(value) for value in raw)
    return {
        "confidence_stated": _share(n, n_all),
        "confidence_unusable": _share(unusable, n_all),
        "ece_of_stated_confidence": {"value": ece, "n": n},
        "brier_of_stated_confidence": {"value": brier(*stated), "n": n},
        "auroc_of_stated_confidence": {"value": auroc(*stated), "n": n},
        "risk_coverage_area_of_stated_confidence": {"value": risk_coverage_area(*stated), "n": n},
        "ece_pessimistic": {"value": gaps / n_all if n_all else None, "n": n_all},
        "brier_pessimistic": {"value": brier(against, right), "n": n_all},
        "risk_coverage_area": {"value": risk_coverage_area(order, right), "n": n_all},
    }
