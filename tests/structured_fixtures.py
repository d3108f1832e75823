"""Lines in the JSONL form of NeuroVLM-Bench, and a slow reading of how its published evaluator scores them, with scikit-learn.

The reading follows the description of that evaluator word by word and shares nothing with `neuralmedbench.scoring.structured`, tables of
spellings included: of those it knows what the tests use.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

U = "undetermined"
FIELDS = {
    "class": ("class", "diagnosis_name"),
    "sub": ("subclass", "diagnosis_detailed"),
    "mod": ("modality", "modality"),
    "mod_sub": ("modality_subtype", "specialized_sequence"),
    "pl": ("axial_plane", "plane"),
}
ANSWER = {
    "modality": "MRI",
    "specialized_sequence": "T1",
    "plane": "axial",
    "diagnosis_name": "tumor",
    "diagnosis_detailed": "glioma",
    "icd10_code": "C71.9",
    "severity_score": 0.5,
    "diagnosis_confidence": 0.9,
    "severity_confidence": 0.6,
}
REFERENCE = {
    "dataset": "made-up",
    "class": "tumor",
    "subclass": "glioma",
    "modality": "MRI",
    "modality_subtype": "T1",
    "axial_plane": "axial",
}


def line(
    model: str | None = "m", picture: str = "a.png", *, status: str = "success", answer: object = ANSWER, **reference: object
) -> dict[str, Any]:
    """Make one line; `reference` changes keys of `REFERENCE`."""
    given = {"image_path": picture, "model_requested": model, "metadata": REFERENCE | reference}
    return {
        "experiment_id": "e",
        "input": given,
        "output": {"status": status, "parsed_response": answer, "error": None},
        "api_response": {},
    }


def said(**changes: object) -> dict[str, Any]:
    """Make an answer."""
    return ANSWER | changes


def jsonl(lines: Iterable[object]) -> str:
    """Write lines; a text stands as it is."""
    return "".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in lines)


def spelled(value: object) -> str:
    return U if value is None else str(value).strip().lower().replace("_", " ")


TUMORS = {
    *("carcinoma", "germinoma", "glioma", "granuloma", "medulloblastoma", "meningioma"),
    *("neurocytoma", "papilloma", "pituitary tumor", "schwannoma", "tuberculoma"),
}


def literal_label(series: str, value: object) -> str:
    text = spelled(value)
    return U if text in {"", "null", "nan"} else LITERAL[series](text)


def _literal_class(text: str) -> str:
    if "atrophy" in text or text in {"mass", "brain mass", "stromal"}:
        return "other abnormalities"
    if text in {"tumors", "brain tumor"} or any(name in text for name in TUMORS):
        return "tumor"
    if "ischemic" in text or "hemorrhagic" in text:
        return "stroke"
    return {"brain": U, "multiplesclerosis": "multiple sclerosis"}.get(text, text)


def _literal_subclass(text: str) -> str:
    parts = {"neurocytoma": "neurocitoma", "ischemic": "ischemic", "pituitary": "pituitary tumor", "astrocytoma": "glioma", "metasta": U}
    known = {"papilloma": "papiloma", "medulloblastoma": "meduloblastoma", "glioblastoma": "glioma", "hematoma": "hemorrhagic", "normal": U}
    return next((label for part, label in parts.items() if part in text), known.get(text, text))


def _literal_sequence(text: str) -> str:
    if text in {"t1 c+", "t1+c"} or "post-contrast" in text or "with contrast" in text:
        return "t1c+"
    return {"t2-weighted": "t2", "t1-weighted": "t1", "non-contrast": "t1", "none": U, "n/a": U, "brain": U}.get(text, text)


LITERAL: dict[str, Callable[[str], str]] = {
    "class": _literal_class,
    "sub": _literal_subclass,
    "mod": lambda text: "mri" if "mr" in text else text,
    "mod_sub": _literal_sequence,
    "pl": lambda text: "sagittal" if text == "s" else text,
}


def literal_metrics(lines: Iterable[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Score lines that are whole objects, as the description of the published evaluator says."""
    from sklearn import metrics

    warnings.filterwarnings("ignore", module="sklearn")
    found: dict[str, dict[str, float | None]] = {}
    lines = list(lines)
    names = {entry["input"]["model_requested"] or ("UNKNOWN_MODEL" if entry["output"]["status"] == "success" else "") for entry in lines}
    for model in sorted(names - {""}):
        own = [entry for entry in lines if (entry["input"]["model_requested"] or "UNKNOWN_MODEL") == model]
        rows = [entry for entry in own if entry["output"]["status"] == "success"]
        own = [entry for entry in own if entry["input"]["model_requested"] or entry in rows]
        values: dict[str, float | None] = {"json_valid_pct": len(rows) / len(own) * 100}
        for series, (gold_key, key) in FIELDS.items():
            kept = [entry for entry in rows if entry["input"]["metadata"].get(gold_key) not in {None, "", "null", "nan"}]
            answers = [entry["output"]["parsed_response"] or {} for entry in kept]
            true = [literal_label(series, entry["input"]["metadata"][gold_key]) for entry in kept]
            pred = [literal_label(series, answer.get(key)) for answer in answers]
            dummy = ["__dummy__" if label == U else label for label in pred]
            gold_labels, all_labels = sorted(set(true)), sorted({*true, *pred})
            prefix = f"overall_{series}_"
            if not true:
                empty = 0.0 if series == "mod" and rows else None
                values |= {prefix + name: empty for name in ("accuracy", "precision", "recall", "f1", "f1_abstention", "weighted_f1")}
            else:
                real = {"labels": [label for label in gold_labels if label != U], "average": "macro", "zero_division": 0}
                labels = gold_labels if series in {"class", "sub"} else all_labels
                values |= {
                    prefix + "accuracy": metrics.balanced_accuracy_score(true, pred),
                    prefix + "precision": metrics.precision_score(true, dummy, **real),
                    prefix + "recall": metrics.recall_score(true, dummy, **real),
                    prefix + "f1": metrics.f1_score(true, pred, labels=labels, average="macro", zero_division=0),
                    prefix + "f1_abstention": metrics.f1_score(true, dummy, **real),
                    prefix + "weighted_f1": metrics.f1_score(true, pred, labels=labels, average="weighted", zero_division=0),
                }
            if series != "class":
                continue
            for how in ("macro", "micro", "weighted"):
                spared = [label for label in all_labels if label != U]
                values[f"{how}_f1"] = metrics.f1_score(true, pred, average=how) if true else None
                values[f"{how}_f1_abstention"] = (
                    metrics.f1_score(true, dummy, labels=spared, average=how, zero_division=0) if true else None
                )
            values["accuracy"] = values["overall_class_accuracy"]
            doubtful = {"none", "null", "nan", U, "", "n/a"}
            values["uncertainty"] = 100 * sum(label in doubtful for label in pred) / len(pred) if true else None
            values |= _literal_calibration(true, pred, [answer.get("diagnosis_confidence") for answer in answers])
        found[model] = {name: _number(value) for name, value in values.items()}
    return found


def _literal_calibration(true: list[str], pred: list[str], stated: list[object]) -> dict[str, float | None]:
    from sklearn import metrics

    right, confidence = [float(a == b) for a, b in zip(true, pred, strict=True)], []
    for value in stated:
        try:
            number = float(value)  # type: ignore[arg-type]
        except Exception:
            number = 0.0
        confidence.append(number if math.isnan(number) else min(max(number, 0.0), 1.0))
    if not right or any(math.isnan(number) for number in confidence):
        return {"ece": None, "brier": None, "auc": None}
    edges = np.linspace(0, 1, 11)
    error: Any = 0.0
    for place in range(10):
        inside = [number for number, share in enumerate(confidence) if (edges[place] < share or place == 0) and share <= edges[place + 1]]
        if inside:
            gap = np.mean([right[number] for number in inside]) - np.mean([confidence[number] for number in inside])
            error += len(inside) / len(right) * abs(gap)
    auc = metrics.roc_auc_score(right, confidence) if 0 < sum(right) < len(right) else None
    return {"ece": error, "brier": metrics.brier_score_loss(np.array(right), np.array(confidence)), "auc": auc}


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)
