"""Check step by step whether a structured answer keeps to the requested form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from neuralmedbench.records.value_rules import fields_of, read_value
from neuralmedbench.scoring.structured_answer import FIELDS, is_share, label, text_of_value

SUBTYPES = {
    "stroke": frozenset({"ischemic", "hemorrhagic"}),
    "tumor": frozenset(
        {
            "carcinoma",
            "germinoma",
            "glioma",
            "granuloma",
            "medulloblastoma",
            "meningioma",
            "neurocytoma",
            "papilloma",
            "pituitary tumor",
            "schwannoma",
            "tuberculoma",
        }
    ),
}
"""Subtypes by class; the other classes have none."""

STEPS = ("parse", "required_fields", "enums", "consistency")
"""Checks of an answer, in order: it is an object; it has every key; every value is a label of its field (or can be read by its rule) or null,
and every confidence is from 0 to 1; the subtype belongs to the class, and only an MRI has a sequence."""


@dataclass(frozen=True, kw_only=True)
class StructuredForm:
    """The requested form of a structured answer.

    `keys` must be present (null allowed); `labels` are the allowed values by key, None among them allows null; `numbers` are keys of a
    number from 0 to 1 or null; `names` maps each field of `FIELDS` to its key; `rules` are the rules of values by key.
    """

    keys: frozenset[str]
    labels: Mapping[str, frozenset[str | None]]
    numbers: frozenset[str]
    names: Mapping[str, str]
    rules: Mapping[str, str] = field(default_factory=dict)

    def passed(self, answer: Mapping[str, Any] | None) -> int:
        """Count the steps of `STEPS` that an answer passes, up to the first that fails."""
        if not answer:
            return 0
        # being an object is the first step, so one check fewer than steps
        checks = (self._complete, self._in_vocabulary, self._consistent)
        return 1 + next((place for place, check in enumerate(checks) if not check(answer)), len(checks))

    def _complete(self, answer: Mapping[str, Any]) -> bool:
        return self.keys <= answer.keys()

    def _in_vocabulary(self, answer: Mapping[str, Any]) -> bool:
        named = all(isinstance(answer[key], str | None) and answer[key] in labels for key, labels in self.labels.items())
        readable = all(answer[key] is None or read_value(rule, text_of_value(answer[key])) is not None for key, rule in self.rules.items())
        return named and readable and all(answer[key] is None or is_share(answer[key]) for key in self.numbers)

    def _consistent(self, answer: Mapping[str, Any]) -> bool:
        texts = {name: answer[key] for name, key in self.names.items() if isinstance(answer[key], str)}
        labels = {name: label(name, text) for name, text in texts.items()}
        # a subtype of the named class, and a sequence only of an MRI
        of_class = labels.get("subtype") is None or labels["subtype"] in SUBTYPES.get(labels.get("class") or "", ())
        return of_class and (labels.get("sequence") is None or labels.get("modality") == "MRI")


PUBLISHED = StructuredForm(
    keys=frozenset(
        {
            "modality",
            "specialized_sequence",
            "plane",
            "diagnosis_name",
            "diagnosis_detailed",
            "icd10_code",
            "severity_score",
            "diagnosis_confidence",
            "severity_confidence",
        }
    ),
    labels={
        "modality": frozenset({"CT", "MRI", None}),
        "specialized_sequence": frozenset({"FLAIR", "T1", "T2", "T1C+", None}),
        "plane": frozenset({"axial", "sagittal", "coronal", None}),
        "diagnosis_name": frozenset({"tumor", "stroke", "multiple sclerosis", "normal", "other abnormalities", None}),
        "diagnosis_detailed": frozenset({*SUBTYPES["stroke"], *SUBTYPES["tumor"] - {"pituitary tumor"}, "pituitary_tumor", None}),
    },
    numbers=frozenset({"severity_score", "diagnosis_confidence", "severity_confidence"}),
    names={
        "modality": "modality",
        "sequence": "specialized_sequence",
        "plane": "plane",
        "class": "diagnosis_name",
        "subtype": "diagnosis_detailed",
    },
)
"""The form requested by the published prompt of NeuroVLM-Bench: nine keys."""


@cache
def form_of(schema: str) -> StructuredForm:
    """Return the form that an item's JSON schema requests.

    Parameters
    ----------
    schema : str
        JSON schema with `properties`, as in `records.items.Item`; empty for the five fields and a confidence without closed labels.
    """
    rules: dict[str, dict[str, Any]] = json.loads(schema).get("properties", {}) if schema else {key: {} for key in (*FIELDS, "confidence")}
    return StructuredForm(
        keys=frozenset(rules),
        labels={key: frozenset(rule["enum"]) for key, rule in rules.items() if "enum" in rule},
        numbers=frozenset({"confidence"} & rules.keys()),
        names={name: name for name in FIELDS if name in rules and name not in fields_of(schema)},
        rules=fields_of(schema),
    )
