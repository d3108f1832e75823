"""What every check of the audit counts, and the kinds of reasons for which cases are kept back, in fixed words."""

from __future__ import annotations

import re

WORDS = {
    "dicom_files_cleaned": "DICOM files that were cleaned",
    "nifti_headers_cleaned": "NIfTI files of which voxels and geometry alone were kept",
    "series_not_convertible": "series that no program could convert",
    "faces_removed": "scans of which a face was removed",
    "header_private": "private elements, curves, overlays and bytes of an unknown kind that were removed from DICOM headers",
    "header_uids": "unique identifiers that were replaced under the key",
    "header_dates": "dates of DICOM headers that were shifted, or cut to the year",
    "header_text": "texts of DICOM headers that were removed or cut to words about scans",
    "header_table": "elements of DICOM headers that the table of PS3.15 removes, empties or replaces",
    "notes_withheld": "notes withheld as a whole: no pattern recognises names in their language or script",
    "notes_own_value": "values of the patient's own headers that were replaced in notes",
    "notes_without_known_names": "notes of patients whose headers name nobody: names were found by pattern alone",
    "record_columns_dropped": "columns of health records that were dropped",
    "record_rows_dropped": "rows of health records that name a person, a place or a number of one",
    "record_rows_of_unknown_day": "rows of health records whose date cannot be compared with the scan's: kept in the record, shown to no model",
    "record_values_changed": "values of health records that were changed (dates, ages over 89)",
    "notes_sections_cut": "sections of notes that hold the answer and were cut",
    "pictures_rewritten": "pictures that were written anew without metadata",
    "pictures_kept": "pictures of a public data set that stay as they were published, letters and arrows included",
    "burned_in_series_searched": "scans whose pixels were searched for burned-in text",
    "burned_in_series_hidden": "scans in which burned-in text was hidden under a box",
    "burned_in_series_dropped": "scans that were dropped because text is burned into them",
    "burned_in_pictures_searched": "pictures that were searched for burned-in text",
    "burned_in_pictures_hidden": "pictures in which burned-in text was hidden under a box",
    "burned_in_pictures_kept": "pictures in which text was found and kept, as the yaml of the benchmark says",
    "burned_in_pictures_dropped": "pictures that were dropped because text is burned into them",
    "burned_in_single_marks": "single burned-in letters, such as side markers, that were hidden too",
    "burned_in_series_read_by_ocr": "scans with a suspect header on which tesseract gave a second opinion",
    "burned_in_series_without_ocr": "scans with a suspect header for which there was no second opinion: tesseract is not installed",
    "burned_in_pictures_read_by_ocr": "pictures on which tesseract gave a second opinion",
    "burned_in_pictures_without_ocr": "pictures for which there was no second opinion: tesseract is not installed",
}
FAMILIES = {
    "header_": "elements of DICOM headers, by what was done to them",
    "notes_": "values in notes that were replaced or removed, by kind",
    "record_": "parts of health records, by what was done to them",
    "burned_in_": "text that is burned into pixels: what was found and what was done to it",
    "pixels_": "pixels, by what was done to them",
    "faces_": "faces, by what was done to them",
    "overlays_": "overlays of DICOM files, by what was done to them",
    "series_": "series, by what was done to them",
    "note_": "notes, by what was done to them",
    "pictures_": "pictures, by what was done to them",
}
"""Checks of one family share its words when they have none of their own."""
OTHER = "what this check found"

REASONS = (
    ("identifying_values_left", r"identifying values are left"),
    ("face_not_located", r"\bface\b"),
    ("burned_in_text", r"burned"),
    ("no_usable_series", r"no usable series"),
    ("no_usable_picture", r"no usable picture"),
    ("damaged_file", r"damaged|cut off|truncated|cannot be read|not a picture"),
    ("geometry", r"slices lie|spacing|geometry|oblique|orientation|gantry|series of volumes"),
    ("conversion", r"convert|conversion"),
    ("notes", r"\bnotes?\b|encoding"),
    ("record", r"\brecord\b"),
)
"""Kinds of reasons, and the words by which the line of a reason is known; the line itself can hold numbers and is not repeated."""


def words_for(check: str) -> str:
    """Say what a check counts.

    Examples
    --------
    >>> words_for("notes_email")
    'values in notes that were replaced or removed, by kind'
    """
    family = next((words for prefix, words in FAMILIES.items() if check.startswith(prefix)), OTHER)
    return WORDS.get(check, family)


def kind_of_reason(reason: str) -> str:
    """Name the kind of a reason.

    Examples
    --------
    >>> kind_of_reason("3 identifying values are left after cleaning: the case is kept back")
    'identifying_values_left'
    """
    return next((kind for kind, found in REASONS if re.search(found, reason)), "other")
