"""Outcome of each listed case: one row per case for the case flow of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.files.cases import CaseRow, read_case
from neuralmedbench.records.case import CaseRecord, State


def case_outcome(row: CaseRow, case: CaseRecord | None) -> dict[str, Any]:
    """Return the outcome of one case.

    Parameters
    ----------
    row : CaseRow
        Its row of the case table.
    case : CaseRecord or None
        The case after its last stage; None if the table excludes it.

    Returns
    -------
    dict
        `case_id`, `patient_id`, `state`, `quarantined_by`, `reason`, `excluded`, the sequences of its pictures (`sequences`), reasons for
        excluded series (`set_aside`), and counts of raw files (`raw_files`).
    """
    outcome: dict[str, Any] = {"case_id": row.case_id, "patient_id": row.patient_id, "state": State.OK.value, "quarantined_by": ""}
    if case is None:
        return outcome | {"reason": row.exclude, "sequences": [], "set_aside": [], "raw_files": {}, "excluded": True}
    sequences = {entry.sequence.value for entry in case.slices} | {entry.sequence for entry in case.pictures if entry.state is State.OK}
    outcome |= {"state": case.state.value, "quarantined_by": case.quarantined_by, "raw_files": case.raw_files}
    return outcome | {
        "reason": case.reason,
        "sequences": sorted(sequences),
        "set_aside": sorted(case.set_aside.values()),
        "excluded": False,
    }


def flow_of_cases(table: Sequence[CaseRow], folder: Path) -> list[dict[str, Any]]:
    """Return the outcome of every case of a table, sorted by case id; `folder` has `sub-<case>/case.json` of the last stage."""
    rows = sorted(table, key=lambda row: row.case_id)
    return [case_outcome(row, None if row.exclude else read_case(folder / f"sub-{row.case_id}" / "case.json")) for row in rows]
