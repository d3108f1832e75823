"""The columns of the tables that come from outside, in order: who writes one and who reads one agree here."""

from __future__ import annotations

ANSWER_COLUMNS = (
    "case_id",
    "diagnosis",
    "icd10",
    "aliases",
    "differentials",
    "findings",
    "findings_complete",
    "lesion_location",
    "lesion_side",
    "lesion_behaviour",
    "lesion_size_mm",
    "lesion_position_mm",
    "rationale",
    "must_not",
    "established",
    "level",
    "turn_leaders",
)
"""The answers table of a benchmark of scans; all but the first two may be absent."""

ANSWER_KEY_COLUMNS = (*ANSWER_COLUMNS, "question_number", "family")
"""The answer key that is laid beside the released files of Neural-MedBench: one row a question, or a dialogue."""

PICTURE_COLUMNS = ("dataset", "file_path", "class", "original_class", "subclass", "modality", "modality_subtype", "plane")
"""NeuroVLM-Bench's own table of pictures; `patient_id` and `case_id` may stand beside them."""

RECORD_COLUMNS = ("variable", "value", "unit", "days_from_scan")
"""A structured health record after de-identification."""

UNKNOWN_DAY = "n/a"
"""In `days_from_scan` of a de-identified record: the value has a date, and whether it lies before the scan is not known. Empty: it has none."""
