"""Columns, in order, of tables that users provide, shared by their writers and readers."""

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
    "lesion_extent_mm",
    "rationale",
    "must_not",
    "harmful",
    "established",
    "level",
    "turn_leaders",
    "essential",
    "rivals",
)
"""Answers table of a benchmark of scans; only the first two columns are required."""

ANSWER_KEY_COLUMNS = (*ANSWER_COLUMNS, "question_number", "family")
"""Answer key that the user adds to the released files of Neural-MedBench: one row per question or dialogue."""

PICTURE_COLUMNS = ("dataset", "file_path", "class", "original_class", "subclass", "modality", "modality_subtype", "plane")
"""NeuroVLM-Bench's table of pictures; `patient_id` and `case_id` are optional further columns."""

RECORD_COLUMNS = ("variable", "value", "unit", "days_from_scan")
"""Structured health record after de-identification."""

UNKNOWN_DAY = "n/a"
"""In `days_from_scan` of a de-identified record: the value has a date, but its distance from the scan is unknown. Empty: it has no date."""
