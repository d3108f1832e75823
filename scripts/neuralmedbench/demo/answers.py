"""The answers table, the list of planted identifiers, and the rows of the case table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from neuralmedbench.demo.cohort import Patient
from neuralmedbench.errors import DataError
from neuralmedbench.io.cases import CaseRow, digest_of_files
from neuralmedbench.io.files import read_json

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
"""Columns of answers.csv, for phantoms as for own data."""


def gather_answers(answers: list[Path], planted: list[Path]) -> tuple[list[dict[str, Any]], dict[str, Any], tuple[str, ...]]:
    """Bring the cases' answers and planted identifiers together.

    Parameters
    ----------
    answers, planted : list of Path
        `answer.json` and `planted.json` of each case, in the same order.

    Returns
    -------
    rows : list of dict
        Rows of the answers table, sorted by case id.
    identifiers : dict
        `values`: all planted strings, sorted; `by_case`: those of each case.
    columns : tuple of str
        Columns of the answers table.

    Raises
    ------
    DataError
        If the lists differ in length or a file is absent.
    """
    if len(answers) != len(planted):
        message = f"{len(answers)} answers and {len(planted)} lists of planted identifiers: give one of each for every case"
        raise DataError(message)
    rows = [read_json(path) for path in answers]
    by_case = {row["case_id"]: read_json(path) for row, path in zip(rows, planted, strict=True)}
    values = sorted({value for case in by_case.values() for value in case})
    return sorted(rows, key=lambda row: row["case_id"]), {"values": values, "by_case": by_case}, ANSWER_COLUMNS


def source_digest(listing: dict[str, Any]) -> str:
    """Digest of a case's raw files, from its `files.json`."""
    digests = [entry["sha256"] for entry in [*listing["files"], *listing["notes"]]]
    return digest_of_files([*digests, listing["record"]["sha256"]] if listing["record"] else digests)


def case_row(patient: Patient, key: bytes) -> CaseRow:
    """Make a simulated patient and give its row of the case table."""
    from neuralmedbench.demo.generate import generate_case

    case_id, patient_id = patient.case_id(key), patient.patient_id(key)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / case_id
        generate_case(patient, case_id, patient_id, out)
        digest = source_digest(read_json(out / "files.json"))
    return CaseRow(case_id=case_id, patient_id=patient_id, source_sha256=digest, sequence_overrides={}, exclude="")
